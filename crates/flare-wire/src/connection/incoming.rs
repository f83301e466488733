//! What has arrived and was not taken yet.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};

use crate::answer::reading::HEAD_LIMIT;

/// Enough for most answers: a read that does not fill it is also known to be the last for now.
const FIRST: usize = 4096;

/// A buffer. Bound: [`HEAD_LIMIT`], to which only a head makes it grow; a reader that leaves more than that behind is
/// told that there was no room.
#[derive(Default)]
pub(super) struct Incoming {
    /// All of it is initialised; made with the first read.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Incoming {
    /// What was not taken yet.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// So much of it was taken.
    pub fn consume(&mut self, taken: usize) {
        self.start += taken;
    }

    /// Reads once. Returns how many bytes came; none means that the other side has ended.
    pub fn poll_fill(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Poll<io::Result<usize>> {
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        if self.end == self.buffer.len() {
            self.make_room()?;
        }
        let mut room = ReadBuf::new(&mut self.buffer[self.end..]);
        ready!(Pin::new(stream).poll_read(cx, &mut room))?;
        let came = room.filled().len();
        self.end += came;
        Poll::Ready(Ok(came))
    }

    fn make_room(&mut self) -> io::Result<()> {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        } else if self.buffer.len() < HEAD_LIMIT {
            self.buffer.resize((self.buffer.len() * 2).clamp(FIRST, HEAD_LIMIT), 0);
        } else {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(())
    }

    /// Between two answers: gives back what a large head took.
    pub fn shrink(&mut self) {
        if self.start == self.end && self.buffer.len() > FIRST {
            *self = Incoming::default();
        }
    }
}
