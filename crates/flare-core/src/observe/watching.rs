//! Attempts as they end, for whoever watches. Costs one load of a counter when nobody does.
//!
//! Bound: [`KEPT`] attempts for all watchers together. When full: the oldest goes, and a watcher that had not come to
//! it is told how many it missed; delivery never waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::broadcast::{self, Receiver, Sender};
use tokio_util::sync::CancellationToken;

use super::attempt::Entry;

const KEPT: usize = 1024;

/// The way to the watchers.
pub struct Watchers {
    sender: Sender<Entry>,
    watchers: Arc<AtomicUsize>,
    most: usize,
    closed: CancellationToken,
}

/// What a watcher hears.
pub enum News {
    /// An attempt has ended.
    Ended(Entry),
    /// So many were missed.
    Skipped(u64),
}

/// One who watches. Dropping it ends that.
pub struct Watcher {
    receiver: Receiver<Entry>,
    watchers: Arc<AtomicUsize>,
    closed: CancellationToken,
    /// Once it is over: how much of what had ended by then it has yet to hear.
    left: Option<usize>,
}

impl Watchers {
    /// For so many watchers at most.
    pub fn new(most: usize) -> Watchers {
        let (sender, _) = broadcast::channel(KEPT);
        Watchers { sender, watchers: Arc::default(), most, closed: CancellationToken::new() }
    }

    /// Whether anybody watches.
    pub fn is_watched(&self) -> bool {
        self.watchers.load(Ordering::Relaxed) > 0
    }

    /// An attempt has ended.
    pub fn tell(&self, entry: Entry) {
        // The last watcher may have left just now.
        let _ = self.sender.send(entry);
    }

    /// Watches from now on; nothing when too many do.
    pub fn watch(&self) -> Option<Watcher> {
        let room = |watching: usize| (watching < self.most).then_some(watching + 1);
        self.watchers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).ok()?;
        let receiver = self.sender.subscribe();
        Some(Watcher { receiver, watchers: self.watchers.clone(), closed: self.closed.clone(), left: None })
    }

    /// Every watcher hears that it is over.
    pub fn close(&self) {
        self.closed.cancel();
    }
}

impl Watcher {
    /// The next news; nothing once the node stops and what had ended by then is told. What ends later is not: that
    /// may go on for as long as somebody listens.
    pub async fn next(&mut self) -> Option<News> {
        if self.left.is_none() {
            tokio::select! {
                biased;
                () = self.closed.cancelled() => self.left = Some(self.receiver.len()),
                heard = self.receiver.recv() => return match heard {
                    Ok(entry) => Some(News::Ended(entry)),
                    Err(RecvError::Lagged(missed)) => Some(News::Skipped(missed)),
                    Err(RecvError::Closed) => None,
                },
            }
        }
        let left = self.left.as_mut()?;
        *left = left.checked_sub(1)?;
        match self.receiver.try_recv() {
            Ok(entry) => Some(News::Ended(entry)),
            Err(TryRecvError::Lagged(missed)) => Some(News::Skipped(missed)),
            Err(TryRecvError::Empty | TryRecvError::Closed) => None,
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.watchers.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::fixture::{compiled, entry};

    #[tokio::test]
    async fn a_watcher_that_is_too_slow_hears_how_much_it_missed() {
        let tail = Watchers::new(1);
        assert!(!tail.is_watched());
        let mut watcher = tail.watch().unwrap();
        assert!(tail.is_watched() && tail.watch().is_none(), "there is room for one");
        let one = compiled(1);
        for number in 0..KEPT as u64 + 10 {
            tail.tell(entry(&one, number, 0));
        }
        let Some(News::Skipped(10)) = watcher.next().await else { panic!("ten were missed") };
        let Some(News::Ended(next)) = watcher.next().await else { panic!("the rest is there") };
        assert_eq!(next.id.number(), 10);
        drop(watcher);
        assert!(!tail.is_watched());
        let mut last = tail.watch().unwrap();
        tail.close();
        assert!(last.next().await.is_none());
    }

    #[tokio::test]
    async fn what_ended_before_the_node_stops_is_told() {
        let tail = Watchers::new(1);
        let mut watcher = tail.watch().unwrap();
        let one = compiled(1);
        (0..20).for_each(|number| tail.tell(entry(&one, number, 0)));
        tail.close();
        for number in 0..20 {
            let Some(News::Ended(next)) = watcher.next().await else { panic!("{number} is not told") };
            assert_eq!(next.id.number(), number);
            tail.tell(entry(&one, 99, 0));
        }
        assert!(watcher.next().await.is_none(), "what ends later is not waited for");
    }
}
