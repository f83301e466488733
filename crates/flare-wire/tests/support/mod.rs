//! A stream that does as it is told, for tests of one side alone.

#![allow(dead_code, reason = "each test has a part of it")]

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use flare_wire::{Connection, ReadLimits, Request, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub const LIMITS: ReadLimits = ReadLimits { read: 100_000, keep: 1000 };

/// What happens next when it is read.
pub enum Read {
    Bytes(&'static [u8]),
    Fails(io::ErrorKind),
    /// Nothing, until something was written.
    AfterWrite,
    /// Nothing, until so many bytes were written.
    AfterBytes(usize),
}

/// Reads as scripted, then ends; takes a bounded number of bytes with each write, and fails after a number of writes.
pub struct Told {
    pub reads: VecDeque<Read>,
    pub takes: usize,
    pub writes_until_failure: usize,
    /// Each write's bytes and in how many parts they were given.
    pub writes: Vec<(Vec<u8>, usize)>,
    written: u64,
    read_since_write: bool,
}

impl Told {
    pub fn new(reads: impl IntoIterator<Item = Read>) -> Told {
        Told {
            reads: reads.into_iter().collect(),
            takes: usize::MAX,
            writes_until_failure: usize::MAX,
            writes: Vec::new(),
            written: 0,
            read_since_write: true,
        }
    }

    pub fn wire(&self) -> Vec<u8> {
        self.writes.iter().flat_map(|(bytes, _)| bytes.clone()).collect()
    }

    fn write(&mut self, parts: &[&[u8]]) -> io::Result<usize> {
        self.writes_until_failure =
            self.writes_until_failure.checked_sub(1).ok_or(io::ErrorKind::BrokenPipe)?;
        let mut bytes = parts.concat();
        bytes.truncate(self.takes);
        let wrote = bytes.len();
        self.writes.push((bytes, parts.len()));
        self.written += wrote as u64;
        self.read_since_write = false;
        Ok(wrote)
    }
}

impl Stream for &mut Told {
    fn written(&self) -> u64 {
        self.written
    }
}

impl AsyncRead for Told {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let waits = match this.reads.front() {
            Some(Read::AfterWrite) => std::mem::replace(&mut this.read_since_write, true),
            Some(Read::AfterBytes(count)) => this.written < *count as u64,
            _ => false,
        };
        if waits {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if let Some(Read::AfterWrite | Read::AfterBytes(_)) = this.reads.front() {
            this.reads.pop_front();
        }
        match this.reads.pop_front() {
            Some(Read::Bytes(bytes)) => buf.put_slice(bytes),
            Some(Read::Fails(kind)) => return Poll::Ready(Err(kind.into())),
            Some(Read::AfterWrite | Read::AfterBytes(_)) | None => {}
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Told {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(self.get_mut().write(&[buf]))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let parts: Vec<&[u8]> = bufs.iter().map(|buf| &**buf).collect();
        Poll::Ready(self.get_mut().write(&parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// Runs a future that never waits for anything but itself.
pub fn run<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    for _ in 0..1_000_000 {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
    panic!("it waits for something that does not happen");
}

/// What is written of a request.
pub fn bytes_of(request: Request) -> Vec<u8> {
    let mut told = Told::new([Read::AfterWrite]);
    let _ = run(Connection::new(&mut told).exchange(request, LIMITS, |_| ()));
    told.wire()
}

/// Polls once.
pub fn poll_once<T>(future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => Some(value),
        Poll::Pending => None,
    }
}
