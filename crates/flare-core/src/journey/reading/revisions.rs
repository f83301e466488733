//! Every revision: a document that waits is due → the first revision it is owed, from the tail or the store, and the
//! attempt for it. For subscriptions with `delivery.revision: all`, and for those that had it until what was owed by then
//! is settled.

use std::sync::Arc;

use flare_model::feed::{Attempt, Feed, Next};
use flare_model::ids::{Ordinal, Seq, SubscriptionNumber};
use flare_model::subscription::Revisions;
use flare_provider::OlderRevision;

use crate::journey::reading::insist::insist;
use crate::journey::reading::interest;
use crate::journey::reading::states::Waiting;
use crate::journey::reading::sweeping;
use crate::journey::subscriber::lane::FeedLane;
use crate::journey::subscriber::lane::Looked;
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::Place;
use crate::notification::change::Change;

/// What became of a document that was due.
pub enum Due {
    /// An attempt.
    Job(Attempt, Arc<Change>),
    /// Nothing to send now.
    Nothing,
    /// A higher mark is needed first.
    Marks,
    /// It has to be looked for in the store, where as much is looked for as may be.
    Later,
}

impl FeedLane {
    /// The feed sends what the subscription asks for. Answers whether that is a change: then another era begins, since
    /// what was read under the other rule is not what is needed now.
    pub fn follow(&mut self, revisions: Revisions) -> bool {
        match (revisions, self.feed.since()) {
            (Revisions::All, None) => {
                let again = self.feed.every_revision(self.tail.head());
                // A feed at rest has none, and takes no room for it.
                if !again.is_empty() {
                    self.aside.swept.extend(again);
                }
            }
            (Revisions::Last, Some(_)) => self.feed.newest_only(),
            _ => return false,
        }
        true
    }
}

impl Worker {
    /// Decides on the next revision of a document that waits.
    pub fn take_revision(&mut self, place: Place, lane: u8, ordinal: Ordinal) -> Due {
        let block = self.tools.limits.issue_block;
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return Due::Nothing };
        let looked = slot.aside.any().and_then(|aside| aside.looked.remove(&ordinal));
        let Some(from) = slot.feed.owed_from(ordinal) else { return Due::Nothing };
        let since = slot.feed.since();
        if slot.feed.is_open(ordinal) || slot.feed.is_unrecorded(ordinal) {
            return Due::Nothing;
        }
        let position = slot.feed.position();
        let holds = |looked: &Looked| looked.holds(from, position);
        let recent = || {
            let (change, head) = match since {
                Some(since) => slot.tail.revision_from(ordinal, from, since)?,
                // Only the newest is sent again: nothing older is looked for.
                None => {
                    let head = slot.tail.head();
                    let newest = slot.tail.newest(ordinal)?;
                    (Some(newest).filter(|newest| newest.row().seq >= from), head)
                }
            };
            Some(Looked { from, change, head })
        };
        // What other nodes wrote may have been read from the store before the tail has it.
        let Some(looked) = looked.filter(holds).or_else(|| recent().filter(holds)) else {
            if !self.subscribers[place].may_fetch() {
                return Due::Later;
            }
            self.look(place, lane, ordinal, from, since.unwrap_or(Feed::NOTHING_OLDER));
            return Due::Nothing;
        };
        if let Some(change) = &looked.change
            && !slot.feed.may_issue(change.row().seq)
        {
            slot.feed.want_issue(Seq(change.row().seq.0 + block));
            slot.aside.looked.insert(ordinal, looked);
            return Due::Marks;
        }
        let mut state = None;
        if self.subscribers[place].compiled.spec.keeps_state()
            && let Some(change) = &looked.change
        {
            let Some(known) = self.state_before(place, lane, change.row(), Waiting::Retry) else {
                if let Some(slot) = self.subscribers.lane_mut(place, lane) {
                    slot.aside.looked.insert(ordinal, looked);
                }
                return Due::Nothing;
            };
            state = known;
        }
        let subscriber = &mut self.subscribers[place];
        let feed = &mut subscriber.lanes[lane].feed;
        let (change, clock) = (looked.change.as_deref(), &*self.tools.clock);
        let next = interest::next_revision(&subscriber.compiled, feed, ordinal, change, state, clock);
        self.mark_dirty(place, lane, false);
        match (next, looked.change) {
            (Next::Send(attempt), Some(change)) => return Due::Job(attempt, change),
            (Next::Passed, _) => self.owe_next(place, lane, ordinal),
            _ => sweeping::go_on(self, place),
        }
        Due::Nothing
    }

    /// The next revision of a document goes out once the record is durable that says so; so that is written soon.
    pub fn owe_next(&mut self, place: Place, lane: u8, ordinal: Ordinal) {
        if let Some(slot) = self.subscribers.lane_mut(place, lane) {
            slot.aside.swept.push(ordinal);
        }
        self.hurry(place, lane);
    }

    /// Looks for the next revision in the store; the document is due again when it is found.
    fn look(&mut self, place: Place, lane: u8, ordinal: Ordinal, from: Seq, since: Seq) {
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return };
        slot.aside.fetching += 1;
        let (id, era) = (slot.tail.lane(), slot.era);
        let (worker, tools) = (self.handle(), self.tools.clone());
        self.tasks.spawn_local(async move {
            let read = || tools.pages.next_revision(id, since, ordinal, from);
            let Some((change, head)) = insist(&tools, read).await else { return };
            let mut worker = worker.borrow_mut();
            if let Some(slot) = worker.slot_of_era(place.feed(lane), era) {
                slot.aside.fetching -= 1;
                slot.aside.looked.insert(ordinal, Looked { from, change, head });
            }
            worker.due_again(place, lane, ordinal);
        });
    }

    /// Revisions are about to go that a feed may need. Answers those that it will never send for that.
    pub fn lose(
        &mut self,
        number: SubscriptionNumber,
        lane: u8,
        revisions: &[OlderRevision],
    ) -> Vec<(Ordinal, Seq)> {
        let Some(place) = self.subscribers.find(number) else { return Vec::new() };
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return Vec::new() };
        let Some(since) = slot.feed.since() else { return Vec::new() };
        let mut lost = Vec::new();
        for kept in revisions.iter().filter(|kept| kept.until > since) {
            if let Some(aside) = slot.aside.any() {
                aside.looked.remove(&kept.ordinal);
            }
            if slot.feed.lacks(kept.ordinal, kept.seq) {
                lost.push((kept.ordinal, kept.seq));
            }
        }
        slot.feed.lose(&lost);
        self.mark_dirty(place, lane, false);
        lost
    }
}
