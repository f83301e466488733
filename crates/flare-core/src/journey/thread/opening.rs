//! A subscription is taken over, or further lanes of it: as the ledger has them they come in, and are at work afterwards.

use std::sync::Arc;

use flare_model::feed::Feed;
use flare_model::ids::{FeedId, LaneId, Ordinal, Seq};
use flare_provider::Opened;

use crate::journey::log::tail::Tails;
use crate::journey::permits::concurrency::{Borrowed, Common};
use crate::journey::reading::sweeping;
use crate::journey::subscriber::decision::Decision;
use crate::journey::subscriber::lane::FeedLane;
use crate::journey::subscriber::lanes::Lanes;
use crate::journey::subscriber::placement::Placement;
use crate::journey::subscriber::{Standstill, Subscriber};
use crate::journey::worker::Worker;
use crate::journey::worker::subscribers::Place;
use crate::notification::compiled::Compiled;

/// Lanes of a subscription, as the ledger has them.
pub(in crate::journey) struct TakenOver {
    pub opened: Vec<Opened>,
    /// Under which they were opened.
    pub epoch: u64,
}

impl Worker {
    /// Takes over a subscription, or lanes of one that has others here. Answers where it is.
    pub(in crate::journey) fn open(
        &mut self,
        tails: &Tails,
        compiled: Arc<Compiled>,
        taken: TakenOver,
        standstill: Standstill,
        placement: Placement,
        common: Option<Arc<Common>>,
    ) -> Place {
        let TakenOver { opened, epoch } = taken;
        let here = self.subscribers.find(compiled.number);
        let stands = here.map_or(standstill != Standstill::None, |place| self.subscribers[place].stands());
        let came: Vec<u8> = opened.iter().map(|opened| opened.feed.lane).collect();
        let lanes = self.open_lanes(tails, &compiled, opened, epoch, stands);
        let place = match here {
            Some(place) => {
                // It has other lanes here, which stay as they are; its settings are what it was told last.
                let subscriber = &mut self.subscribers[place];
                lanes.into_iter().for_each(|lane| subscriber.lanes.insert(lane));
                select(&subscriber.compiled, &mut subscriber.lanes);
                place
            }
            None => self.take_in(compiled, lanes.into_iter().collect(), standstill, placement, common),
        };
        let (now, failing_after) = (self.now(), self.tools.limits.failing_after);
        self.subscribers[place].remember(now, failing_after);
        self.begin_lanes(place, &came);
        place
    }

    /// The lanes of a subscription that were opened, as the ledger has them.
    fn open_lanes(
        &mut self,
        tails: &Tails,
        compiled: &Compiled,
        opened: Vec<Opened>,
        epoch: u64,
        stands: bool,
    ) -> Vec<FeedLane> {
        let keeps_state = compiled.spec.keeps_state();
        if keeps_state {
            // They may have been here before, and at another thread since.
            let feeds: Vec<FeedId> = opened.iter().map(|opened| opened.feed).collect();
            self.states.forget(&feeds);
        }
        let (now, resource) = (self.now(), compiled.resource.number);
        let lanes = opened.into_iter().map(|Opened { feed: id, saved, head }| {
            let tail = tails.lane_at(LaneId { resource, index: id.lane }, head);
            let begun = saved.is_of_another_log(head);
            let mut feed = Feed::open(saved, head);
            feed.keep_states(keeps_state);
            feed.wake_up(now, stands);
            FeedLane::new(id, epoch, feed, tail, begun)
        });
        lanes.collect()
    }

    /// A subscription that is new here.
    fn take_in(
        &mut self,
        compiled: Arc<Compiled>,
        mut lanes: Lanes,
        standstill: Standstill,
        placement: Placement,
        common: Option<Arc<Common>>,
    ) -> Place {
        let part = placement.share(compiled.spec.concurrency, self.thread);
        let borrowed = common.map(|common| Box::new(Borrowed::new(common, 0, part)));
        select(&compiled, &mut lanes);
        let hosts = self.hosts.use_by(&compiled);
        let mut subscriber = Subscriber::new(compiled, lanes, hosts, placement, standstill, self.now());
        subscriber.borrowed = borrowed;
        let place = self.subscribers.insert(subscriber);
        self.join_hosts(place);
        self.change_mode(place);
        place
    }

    /// A subscription that was opened begins: what was decided about it elsewhere holds here too, and one that was
    /// created just now has its marks raised at once.
    pub(super) fn begin_subscription(&mut self, place: Place, fresh: bool, decision: Option<Decision>) {
        if let Some(Decision { reason, at }) = decision {
            self.decide(place, reason, at);
        }
        // A passive one begins when it is asked to, and may never be.
        if fresh && self.subscribers.get(place).is_some_and(|subscriber| subscriber.passive.is_none()) {
            self.raise_marks(place);
        }
    }

    /// Lanes that came are looked at, and what waits in them gets its alarms.
    fn begin_lanes(&mut self, place: Place, came: &[u8]) {
        for lane in came {
            self.begin_era(place, *lane);
        }
        self.follow(place);
        self.watch_leases(place, came);
        self.set_going(place, came);
        self.rest_when_quiet(place);
        // A filter that was changed before the last end and not swept for is now; a log may be another one.
        for lane in came {
            self.record_what_changed(place, *lane);
        }
    }

    /// Its feeds send the revisions that it asks for.
    pub(super) fn follow(&mut self, place: Place) {
        let revisions = self.subscribers[place].compiled.spec.revisions;
        for lane in self.subscribers.lanes(place) {
            let slot = self.subscribers.lane_mut(place, lane);
            if slot.is_some_and(|slot| slot.follow(revisions)) {
                self.begin_era(place, lane);
                self.subscribers[place].mark_unread(lane);
                self.mark_dirty(place, lane, true);
            }
        }
    }

    /// Raises the marks of a new subscription with the next record, so that its first change need not wait.
    fn raise_marks(&mut self, place: Place) {
        let block = self.tools.limits.issue_block;
        for lane in self.subscribers.lanes(place) {
            let Some(slot) = self.subscribers.lane_mut(place, lane) else { continue };
            slot.feed.want_issue(Seq(slot.feed.position().0 + block));
            self.mark_dirty(place, lane, false);
        }
    }

    /// Everything that waits in some lanes gets its alarm, each of them is looked at.
    pub(super) fn set_going(&mut self, place: Place, lanes: &[u8]) {
        if self.subscribers[place].stands() {
            return;
        }
        let waiting: Vec<(u8, Ordinal)> = {
            let lanes = lanes.iter().filter_map(|lane| self.subscribers.lane(place, *lane));
            let each = lanes.flat_map(|lane| {
                let waiting = lane.feed.waiting().iter();
                waiting.map(|(ordinal, standing)| (standing.due(), lane.id.lane, *ordinal))
            });
            // What is due by now is tried in the order in which it was.
            let mut each: Vec<_> = each.collect();
            each.sort_unstable();
            each.into_iter().map(|(_, lane, ordinal)| (lane, ordinal)).collect()
        };
        for (lane, ordinal) in waiting {
            self.schedule_retry(place, lane, ordinal);
        }
        let subscriber = &mut self.subscribers[place];
        let again: Vec<(u8, Ordinal)> = {
            let lanes = lanes.iter().filter_map(|lane| subscriber.lanes.get(*lane));
            let each =
                lanes.flat_map(|lane| lane.feed.to_decide_again().map(|ordinal| (lane.id.lane, ordinal)));
            each.collect()
        };
        subscriber.due.extend(again);
        for lane in lanes {
            if subscriber.lanes.get(*lane).is_some_and(|slot| slot.parked.is_none()) {
                subscriber.mark_unread(*lane);
            }
        }
        sweeping::go_on(self, place);
        self.ready(place);
    }
}

/// Tells the feeds of a subscription which filter there is.
pub(super) fn select(compiled: &Compiled, lanes: &mut Lanes) {
    for lane in lanes.iter_mut() {
        lane.feed.select(compiled.spec.filter.is_some(), compiled.filter_changes);
    }
    for lane in lanes.numbers() {
        lanes.note(lane);
    }
}
