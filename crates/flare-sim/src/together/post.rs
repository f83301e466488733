//! What is on its way between nodes and what they talk to. It goes on whatever becomes of its sender: a request that nobody
//! waits for any more is done all the same.

use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

/// Whoever has something to send. Clones send by the same post.
#[derive(Clone)]
pub struct Post {
    /// Bound: what nodes have asked for and not been answered, and twice as much where it is doubled.
    sent: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
}

/// What is to be carried.
pub struct Bag {
    sent: mpsc::UnboundedReceiver<BoxFuture<'static, ()>>,
}

pub fn open() -> (Post, Bag) {
    let (post, bag) = mpsc::unbounded_channel();
    (Post { sent: post }, Bag { sent: bag })
}

impl Post {
    /// Sends something on its way.
    pub fn carry(&self, message: BoxFuture<'static, ()>) {
        // Nobody carries anything only when the simulation is over.
        let _ = self.sent.send(message);
    }
}

impl Bag {
    /// Carries everything, side by side.
    pub async fn carry_all(mut self) {
        while let Some(message) = self.sent.recv().await {
            tokio::task::spawn_local(message);
        }
    }
}
