//! Reads of the store for feeds that are behind the tail, and for retries of documents that are not recent.

use std::time::Duration;

use flare_model::ids::Ordinal;
use flare_provider::{ErrorKind, ProviderError};

use super::shard::{Shard, Shared};

/// A store that cannot be read now is asked again so often.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// Reads until the store can be read. `None`: it never will, and the node stops.
pub async fn insist<T, F>(shared: &Shared, read: impl Fn() -> F) -> Option<T>
where
    F: Future<Output = Result<T, ProviderError>>,
{
    loop {
        match read().await {
            Ok(found) => return Some(found),
            Err(error) => {
                if !may_try_again(shared, error).await {
                    return None;
                }
            }
        }
    }
}

/// Waits if trying again makes sense; otherwise the node has to stop.
async fn may_try_again(shared: &Shared, error: ProviderError) -> bool {
    if error.kind != ErrorKind::Unavailable {
        shared.report.fatal(error);
        return false;
    }
    tokio::time::sleep(PATIENCE).await;
    true
}

impl Shard {
    /// Reads a page of a lane beyond a feed's position; the feed is ready again when it is there.
    pub fn load_page(&mut self, key: usize, lane: u8) {
        let subscriber = &mut self.subscribers[key];
        let number = subscriber.compiled.number;
        let slot = &mut subscriber.lanes[usize::from(lane)];
        if slot.loading {
            return;
        }
        slot.loading = true;
        let (position, tail, since) = (slot.feed.position(), slot.tail.clone(), slot.feed.since());
        let (shard, shared) = (self.handle(), self.shared.clone());
        self.tasks.spawn_local(async move {
            let read = || shared.pages.page(tail.lane(), position, tail.floor(), since);
            let Some(page) = insist(&shared, read).await else { return };
            let mut shard = shard.borrow_mut();
            let Some(subscriber) = shard.subscriber(key, number) else { return };
            let Some(slot) = subscriber.lanes.get_mut(lane) else { return };
            slot.loading = false;
            // Which revisions are wanted may have changed meanwhile.
            slot.page = Some(page).filter(|_| slot.feed.since() == since);
            subscriber.mark_unread(lane);
            shard.ready(key);
        });
    }

    /// Reads a document that waits; it is due again when it is there.
    pub fn fetch(&mut self, key: usize, lane: u8, ordinal: Ordinal) {
        let subscriber = &mut self.subscribers[key];
        let number = subscriber.compiled.number;
        let slot = &mut subscriber.lanes[usize::from(lane)];
        slot.fetching += 1;
        let id = slot.tail.lane();
        let (shard, shared) = (self.handle(), self.shared.clone());
        self.tasks.spawn_local(async move {
            let read = || shared.pages.document(id, ordinal);
            let Some((change, head)) = insist(&shared, read).await else { return };
            let mut shard = shard.borrow_mut();
            let Some(subscriber) = shard.subscriber(key, number) else { return };
            let Some(slot) = subscriber.lanes.get_mut(lane) else { return };
            slot.fetching = slot.fetching.saturating_sub(1);
            // A document that is not there any more went with its resource.
            if let Some(change) = change {
                slot.fetched.insert(ordinal, (change, head));
                subscriber.due.push_front((lane, ordinal));
            }
            shard.ready(key);
        });
    }
}
