//! One connection from Flare to a client, looked at from outside of the task that serves it.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;

/// A connection that seems open is looked at again so many times, this far apart, before anybody is blamed for it.
const LOOKS: usize = 20;
const MOMENT: Duration = Duration::from_millis(2);

pub struct Connection {
    /// The same socket, asked directly: what the runtime knows of it may be older than what the system knows.
    socket: std::net::TcpStream,
    /// Requests read from it.
    served: AtomicU64,
}

impl Connection {
    /// The connection, and its stream.
    pub fn of(stream: TcpStream) -> io::Result<(Connection, TcpStream)> {
        let stream = stream.into_std()?;
        let socket = stream.try_clone()?;
        Ok((Connection { socket, served: AtomicU64::new(0) }, TcpStream::from_std(stream)?))
    }

    /// Closes it for both sides: that its task is done does not do that, as long as someone may ask about it.
    pub fn close(&self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    /// Another request was read from it; its number.
    pub fn reads(&self) -> u64 {
        self.served.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Whether the other side has neither closed nor reset it.
    pub fn is_open(&self) -> bool {
        match self.socket.peek(&mut [0; 1]) {
            Ok(read) => read > 0,
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }

    /// Whether it is open and stays so for a moment: on a machine that is busy, the word that the other side has closed it may
    /// be overtaken by what that side sends next on another connection.
    pub fn stays_open(&self) -> bool {
        (0..LOOKS).all(|_| {
            let is_open = self.is_open();
            if is_open {
                std::thread::sleep(MOMENT);
            }
            is_open
        })
    }

    /// Whether the answer to its request with this number surely arrived, now that something else began: a sender that
    /// did not wait for it would have closed the connection.
    pub fn proves_answer(&self, number: u64) -> bool {
        self.served.load(Ordering::SeqCst) > number || self.is_open()
    }
}
