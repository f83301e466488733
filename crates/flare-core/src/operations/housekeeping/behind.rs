//! How long feeds have been behind: looks at their cursors come in; for how long each has stood where it stands, with
//! changes beyond it, goes out. How old those changes are says nothing of that: a feed that begins again meets the oldest
//! first.

use std::collections::HashMap;
use std::time::Duration;

use flare_model::ids::{FeedId, Seq, SubscriptionNumber};
use parking_lot::Mutex;

/// For so long at least a feed is watched before it is called behind for too long: what is known of the time before the
/// process comes from a clock that may have been set meanwhile.
const LEAST: Duration = Duration::from_secs(3600);

/// The feeds that were behind when they were last looked at.
#[derive(Default)]
pub struct Behind {
    /// Bound: one for each feed.
    feeds: Mutex<HashMap<FeedId, Watched>>,
}

struct Watched {
    /// Where it stands.
    cursor: Seq,
    /// Since when, monotonic.
    since: Duration,
    /// For how long it stood there before this process.
    before: Duration,
}

impl Behind {
    /// Looks at a feed that is behind, at a monotonic time. Answers for how long it has not moved; `None` if this process
    /// has not looked at it before.
    pub fn look(&self, feed: FeedId, cursor: Seq, now: Duration) -> Option<Duration> {
        let mut feeds = self.feeds.lock();
        let watched = feeds.get_mut(&feed)?;
        if watched.cursor != cursor {
            // It goes on, or began again.
            *watched = Watched { cursor, since: now, before: Duration::ZERO };
        }
        Some(now.saturating_sub(watched.since).saturating_add(watched.before))
    }

    /// Watches a feed from now on, which has stood where it stands for a while, as far as is known; it may be so for `limit`.
    pub fn watch(&self, feed: FeedId, cursor: Seq, now: Duration, before: Duration, limit: Duration) {
        let before = before.min(limit.saturating_sub(LEAST.min(limit)));
        self.feeds.lock().insert(feed, Watched { cursor, since: now, before });
    }

    /// A feed is not behind, or its subscription begins again.
    pub fn forget(&self, feed: FeedId) {
        self.feeds.lock().remove(&feed);
    }

    /// A subscription is gone, or begins again.
    pub fn forget_all(&self, subscription: SubscriptionNumber) {
        self.feeds.lock().retain(|feed, _| feed.subscription != subscription);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEED: FeedId = FeedId { subscription: SubscriptionNumber(1), lane: 0 };
    const DAY: Duration = Duration::from_secs(24 * 3600);

    #[test]
    fn a_feed_is_behind_for_as_long_as_it_has_not_moved() {
        let behind = Behind::default();
        assert_eq!(behind.look(FEED, Seq(5), DAY), None);
        behind.watch(FEED, Seq(5), DAY, Duration::ZERO, DAY * 30);
        assert_eq!(behind.look(FEED, Seq(5), DAY * 4), Some(DAY * 3));
        assert_eq!(behind.look(FEED, Seq(6), DAY * 5), Some(Duration::ZERO), "it goes on");
        assert_eq!(behind.look(FEED, Seq(6), DAY * 7), Some(DAY * 2));
        assert_eq!(behind.look(FEED, Seq(0), DAY * 8), Some(Duration::ZERO), "it began again");
        behind.forget_all(FEED.subscription);
        assert_eq!(behind.look(FEED, Seq(0), DAY * 9), None);
    }

    #[test]
    fn what_was_before_the_process_counts_but_never_alone() {
        let behind = Behind::default();
        behind.watch(FEED, Seq(5), Duration::ZERO, DAY * 20, DAY * 30);
        assert_eq!(behind.look(FEED, Seq(5), DAY), Some(DAY * 21));
        behind.watch(FEED, Seq(5), Duration::ZERO, DAY * 3650, DAY * 30);
        assert_eq!(behind.look(FEED, Seq(5), Duration::ZERO), Some(DAY * 30 - LEAST));
        behind.watch(FEED, Seq(5), Duration::ZERO, DAY, Duration::from_secs(1));
        assert_eq!(behind.look(FEED, Seq(5), Duration::ZERO), Some(Duration::ZERO));
    }
}
