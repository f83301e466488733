//! Feeds whose record is to be written. In: a feed that changed, and whether something waits for its record. Out: what the
//! recorder writes next.

use std::rc::Rc;

use tokio::sync::{Notify, oneshot};

use crate::journey::worker::subscribers::FeedPlace;

/// Feeds whose record is to be written.
#[derive(Default)]
pub struct Unrecorded {
    /// Soon. Bound: each feed once.
    feeds: Vec<FeedPlace>,
    /// At once: something waits for it. Bound: each feed once.
    urgent: Vec<FeedPlace>,
    /// Who wants to know when all that is known now is durable.
    waiters: Vec<oneshot::Sender<()>>,
    /// Rung with the first of either.
    rung: Rc<Notify>,
    /// Rung with the first urgent one.
    hurry: Rc<Notify>,
}

impl Unrecorded {
    /// A feed that is not among them is to be recorded soon.
    pub fn add(&mut self, feed: FeedPlace) {
        if self.feeds.is_empty() {
            self.rung.notify_one();
        }
        self.feeds.push(feed);
    }

    /// A feed that is not among the urgent ones is to be recorded at once.
    pub fn add_urgent(&mut self, feed: FeedPlace) {
        self.urgent.push(feed);
        self.wake();
    }

    /// Someone wants to know when all that is known now is durable.
    pub fn tell_when_durable(&mut self, reply: oneshot::Sender<()>) {
        self.waiters.push(reply);
        self.wake();
    }

    /// Has the recorder look at once.
    pub fn wake(&self) {
        self.rung.notify_one();
        self.hurry.notify_one();
    }

    /// Rung with the first of them, and with the first urgent one.
    pub fn bells(&self) -> (Rc<Notify>, Rc<Notify>) {
        (self.rung.clone(), self.hurry.clone())
    }

    /// Whether nothing is to be recorded.
    pub fn is_empty(&self) -> bool {
        self.feeds.is_empty() && !self.is_urgent()
    }

    /// Whether something waits for a record.
    pub fn is_urgent(&self) -> bool {
        !self.urgent.is_empty() || !self.waiters.is_empty()
    }

    /// What is to be written next: the urgent ones, and if it is `due`, the others too. Whoever waits wants all that was
    /// known when it asked, and some of that may be in the list that is not urgent: its feed was urgent already, for an
    /// earlier record.
    pub fn take(&mut self, due: bool) -> Batch {
        let waiters = std::mem::take(&mut self.waiters);
        let mut feeds = std::mem::take(&mut self.urgent);
        feeds.sort_unstable();
        feeds.dedup();
        let all = due || !waiters.is_empty();
        if all {
            // Behind the urgent ones, which do not wait for them.
            let mut others = std::mem::take(&mut self.feeds);
            others.retain(|feed| feeds.binary_search(feed).is_err());
            feeds.append(&mut others);
        }
        Batch { feeds, all, waiters }
    }
}

/// What the recorder writes before it looks again.
pub struct Batch {
    /// Each once, the urgent ones first.
    pub feeds: Vec<FeedPlace>,
    /// There were no others. If there were, some of these are among them.
    pub all: bool,
    /// Who wants to know when it is durable.
    pub waiters: Vec<oneshot::Sender<()>>,
}
