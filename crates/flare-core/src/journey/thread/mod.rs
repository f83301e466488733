//! The body of a delivery thread: it listens to the bell, the clock and the node, until it is told to stop.

pub mod command;
pub mod leaving;
pub mod spawn;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flare_model::feed::Feed;
use flare_model::ids::{FeedId, Ordinal, Seq, SubscriptionNumber};
use flare_model::time::Timestamp;
use flare_provider::Opened;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::TaskTracker;

use crate::journey::asking::census;
use crate::journey::asking::survey;
use crate::journey::bell::Bell;
use crate::journey::log::tail::Tails;
use crate::journey::permits::concurrency::{Borrowed, Common};
use crate::journey::reading::sweeping;
use crate::journey::sending::errand;
use crate::journey::sending::trial;
use crate::journey::settling::recorder;
use crate::journey::subscriber::decision::Decision;
use crate::journey::subscriber::lane::Era;
use crate::journey::subscriber::lane::FeedLane;
use crate::journey::subscriber::lane::Noted;
use crate::journey::subscriber::lane::Sweeping;
use crate::journey::subscriber::lanes::Lanes;
use crate::journey::subscriber::pace::Fortune;
use crate::journey::subscriber::placement::Placement;
use crate::journey::subscriber::{Standstill, Stood, Subscriber};
use crate::journey::thread::command::Command;
use crate::journey::worker::subscribers::Place;
use crate::journey::worker::{Tools, Worker};
use crate::notification::compiled::Compiled;

/// Serves as one delivery thread, until it is told to stop.
async fn serve(
    thread: usize,
    tools: Arc<Tools>,
    bell: Arc<Bell>,
    tails: Arc<Tails>,
    mut commands: mpsc::Receiver<Command>,
) {
    let worker = Worker::new(thread, tools, TaskTracker::new());
    let recording = tokio::task::spawn_local(recorder::recorder(worker.clone()));
    let earlier = worker.borrow().alarms.earlier();
    let stopped = loop {
        let next = worker.borrow_mut().ring_alarms().unwrap_or(Duration::from_secs(3600));
        tokio::select! {
            // In this order, so that a simulation can be repeated: the seldom before the frequent, which would crowd it
            // out. Commands are bounded by the runtime's budget of a task, beyond which they are not ready.
            biased;
            command = commands.recv() => match command {
                Some(Command::Stop(done)) => break Some(done),
                Some(command) => obey(&worker, &tails, command),
                None => break None,
            },
            () = earlier.notified() => {}
            () = tokio::time::sleep(next) => {}
            rung = bell.heard() => worker.borrow_mut().rung(rung),
        }
    };
    stop(&worker, recording).await;
    if let Some(done) = stopped {
        let _ = done.send(());
    }
}

/// Finishes what is in flight, then records that nothing is.
async fn stop(worker: &Rc<RefCell<Worker>>, recording: tokio::task::JoinHandle<()>) {
    let drained = {
        let mut worker = worker.borrow_mut();
        worker.stopping = true;
        worker.hosts.dismiss_idle_couriers();
        worker.drained.clone()
    };
    while worker.borrow().in_flight > 0 {
        drained.notified().await;
    }
    // The recorder may be waiting for a commit: what it took is durable or will be found again.
    recorder::finish(worker, recording).await;
    for (_, subscriber) in worker.borrow_mut().subscribers.iter_mut() {
        subscriber.lanes.iter_mut().for_each(|lane| lane.feed.close());
    }
    recorder::write_all(worker).await;
}

pub(super) fn obey(worker: &Rc<RefCell<Worker>>, tails: &Tails, command: Command) {
    let mut worker = worker.borrow_mut();
    let worker = &mut *worker;
    match command {
        Command::Open { compiled, opened, standstill, fresh, placement, common, decision } => {
            let place = worker.open(tails, compiled, opened, standstill, placement, common);
            if let Some(Decision { reason, at }) = decision {
                worker.decide(place, reason, at);
            }
            // A passive one begins when it is asked to, and may never be.
            if fresh && worker.subscribers[place].passive.is_none() {
                worker.raise_marks(place);
            }
        }
        Command::Replace(compiled) => worker.replace(compiled),
        Command::Stand { number, standstill, paused_since } => worker.stand(number, standstill, paused_since),
        Command::Remove(number, reply) => {
            worker.remove(number);
            let _ = reply.send(());
        }
        Command::Place(placement, common) => worker.placed(placement, common),
        Command::Drain(number, lanes) => worker.drain(number, lanes),
        Command::Release(number, lanes, reply) => worker.release(number, lanes, reply),
        Command::MaySweep(number, reply) => {
            let _ = reply.send(worker.may_sweep(number));
        }
        Command::Inspect(number, reply) => {
            let _ = reply.send(worker.inspect(number));
        }
        Command::Examine(number, rows, reply) => {
            let _ = reply.send(worker.examine(number, &rows));
        }
        Command::Owed(list, reply) => {
            let _ = reply.send(worker.owed(list));
        }
        Command::Record(number, reply) => worker.record_now(number, reply),
        Command::Sweep(number, kind, replay, reply) => {
            let _ = reply.send(worker.begin_sweep(number, kind, replay));
        }
        Command::BeginAgain(number, reply) => {
            let _ = reply.send(worker.begin_again(number));
        }
        Command::Request(number, rows, replay, reply) => {
            let mut taken = 0;
            let now = worker.now();
            for (lane, row) in rows {
                let Some(place) = worker.subscribers.find(number) else { break };
                let Some(slot) = worker.subscribers.lane_mut(place, lane) else { continue };
                // Where revisions are sent in turn, one that was just replaced is not sent again.
                let newest = slot.tail.newest(row.ordinal);
                let outdated = newest.is_some_and(|newest| newest.row().seq != row.seq);
                if outdated && slot.feed.is_in_turn() {
                    continue;
                }
                if slot.feed.request(&row, replay, now) {
                    slot.swept.push(row.ordinal);
                    taken += 1;
                    worker.mark_dirty(place, lane, true);
                    worker.subscribers[place].fortune.probe_at = Duration::ZERO;
                }
            }
            let _ = reply.send(taken);
        }
        Command::DropDead(number, letters, reply) => {
            let mut dropped = 0;
            for (lane, ordinal, seq) in letters {
                let Some(place) = worker.subscribers.find(number) else { break };
                let Some(slot) = worker.subscribers.lane_mut(place, lane) else { continue };
                if slot.feed.drop_dead(ordinal, seq) {
                    dropped += 1;
                    worker.mark_dirty(place, lane, true);
                }
            }
            let _ = reply.send(dropped);
        }
        Command::Needs(number, lane, reply) => {
            let _ = reply.send(worker.needs(number, lane));
        }
        Command::Owes(number, lane, reply) => {
            let _ = reply.send(worker.owes(number, lane));
        }
        Command::Lose(number, lane, revisions, reply) => {
            let _ = reply.send(worker.lose(number, lane, &revisions));
        }
        Command::Dead(number, reply) => {
            let _ = reply.send(worker.dead(number));
        }
        Command::ClockMoved(offset) => worker.clock_moved(offset),
        Command::Census(reply) => {
            worker.tasks.spawn_local(census::take(worker.handle(), reply));
        }
        Command::Survey(reply) => {
            worker.tasks.spawn_local(survey::take(worker.handle(), reply));
        }
        Command::Errand(errand) => {
            worker.tasks.spawn_local(errand::run(worker.tools.clone(), *errand));
        }
        Command::Passive(number, ask) => worker.passive_ask(number, ask),
        Command::Try(trial, reply) => {
            worker.tasks.spawn_local(trial::run(worker.tools.clone(), trial, reply));
        }
        Command::Decided(reply) => {
            let _ = reply.send(worker.decided());
        }
        Command::Decision(number, reply) => {
            let _ = reply.send(worker.decision(number));
        }
        Command::Stop(_) => unreachable!("the caller ends the loop on it"),
    }
}

impl Worker {
    pub(super) fn open(
        &mut self,
        tails: &Tails,
        compiled: Arc<Compiled>,
        opened: Vec<Opened>,
        standstill: Standstill,
        placement: Placement,
        common: Option<Arc<Common>>,
    ) -> Place {
        let number = compiled.number;
        let resource = compiled.resource.number;
        let keeps_state = compiled.spec.keeps_state();
        if keeps_state {
            // Its lanes may have been here before, and at another thread since.
            let feeds: Vec<FeedId> = opened.iter().map(|opened| opened.feed).collect();
            self.states.forget(&feeds);
        }
        let here = self.subscribers.find(number);
        let stands = here.map_or(standstill != Standstill::None, |place| self.subscribers[place].stands());
        let now = self.now();
        let came: Vec<u8> = opened.iter().map(|opened| opened.feed.lane).collect();
        let lanes = opened.into_iter().map(|Opened { feed, saved, head }| {
            let lane = flare_model::ids::LaneId { resource, index: feed.lane };
            let tail = tails.lane(lane, head);
            let id = feed;
            let begun = saved.is_of_another_log(head);
            let mut feed = Feed::open(saved, head);
            feed.keep_states(keeps_state);
            feed.wake_up(now, stands);
            FeedLane {
                noted: Noted::default(),
                id,
                feed,
                tail,
                begun,
                looked: Default::default(),
                hurries: false,
                queued: false,
                parked: None,
                page: None,
                loading: false,
                era: Era::default(),
                fetched: Default::default(),
                dirty: false,
                wants_record: false,
                swept: Vec::new(),
                sweeping: Sweeping::Rests,
                fetching: 0,
                in_flight: 0,
                leaving: None,
            }
        });
        if let Some(place) = here {
            // It has other lanes here, which stay as they are; its settings are what it was told last.
            let subscriber = &mut self.subscribers[place];
            lanes.for_each(|lane| subscriber.lanes.insert(lane));
            select(&subscriber.compiled, &mut subscriber.lanes);
            self.begin_lanes(place, &came);
            return place;
        }
        let part = placement.share(compiled.spec.concurrency, self.thread);
        let borrowed = common.map(|common| Box::new(Borrowed::new(common, 0, part)));
        let mut lanes: Lanes = lanes.collect();
        select(&compiled, &mut lanes);
        let hosts = self.hosts.use_by(&compiled);
        let place = self.subscribers.insert(Subscriber {
            compiled,
            standstill,
            decision: None,
            stood: stands.then(|| Stood::found(now)),
            lanes,
            unread: Default::default(),
            due: Default::default(),
            placement,
            borrowed,
            in_flight: 0,
            queued: false,
            waits_to_hang: false,
            host: hosts[1],
            hosts,
            fortune: Fortune::default(),
            recovering: false,
            bucket: None,
            alarm: Duration::MAX,
            passive: None,
            leases: None,
        });
        self.change_mode(place);
        self.begin_lanes(place, &came);
        place
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
    fn follow(&mut self, place: Place) {
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
    fn set_going(&mut self, place: Place, lanes: &[u8]) {
        if self.subscribers[place].stands() {
            return;
        }
        let waiting: Vec<(u8, Ordinal)> = {
            let lanes = lanes.iter().filter_map(|lane| self.subscribers.lane(place, *lane));
            let each =
                lanes.flat_map(|lane| lane.feed.waiting().keys().map(|ordinal| (lane.id.lane, *ordinal)));
            each.collect()
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

    fn replace(&mut self, compiled: Arc<Compiled>) {
        let Some(place) = self.subscribers.find(compiled.number) else { return };
        let hosts = self.hosts.use_by(&compiled);
        // Its lanes stay where they are until they are sent elsewhere.
        let subscriber = &mut self.subscribers[place];
        subscriber.compiled = compiled;
        let keeps_state = subscriber.compiled.spec.keeps_state();
        subscriber.lanes.iter_mut().for_each(|lane| lane.feed.keep_states(keeps_state));
        self.share_concurrency(place);
        self.follow(place);
        let subscriber = &mut self.subscribers[place];
        if subscriber.queued && subscriber.host != hosts[1] {
            // The host it had may be left alone for long, and the one that it has now need not wait for that.
            subscriber.queued = false;
            self.hosts[subscriber.host].ready.retain(|waiting| *waiting != place);
        }
        subscriber.host = hosts[1];
        let before = std::mem::replace(&mut subscriber.hosts, hosts);
        self.hosts.leave(before);
        let subscriber = &mut self.subscribers[place];
        select(&subscriber.compiled, &mut subscriber.lanes);
        for lane in subscriber.lanes.numbers() {
            self.mark_dirty(place, lane, false);
        }
        self.change_mode(place);
        sweeping::go_on(self, place);
        self.ready(place);
    }

    pub(super) fn stand(
        &mut self,
        number: SubscriptionNumber,
        standstill: Standstill,
        paused_since: Option<Timestamp>,
    ) {
        let now = self.now();
        let Some(place) = self.subscribers.find(number) else { return };
        if standstill != Standstill::Paused {
            // It is durable, or somebody lets the subscription go on all the same.
            self.forget_decision(number);
        }
        let stood = self.subscribers[place].stand(standstill, now);
        self.subscribers[place].let_go_of_documents();
        self.drive_may_end(place);
        self.rest_when_quiet(place);
        let Some(stood) = stood else { return };
        let subscriber = &mut self.subscribers[place];
        subscriber.fortune = Fortune::default();
        if let Some(since) = paused_since {
            let paused = stood.lasted(now, since);
            for lane in subscriber.lanes.numbers() {
                let Some(slot) = self.subscribers.lane_mut(place, lane) else { continue };
                slot.feed.prolong(paused);
                self.record_what_changed(place, lane);
            }
        }
        let lanes = self.subscribers.lanes(place);
        self.set_going(place, &lanes);
    }

    /// Once nothing of a subscription that stands still is in flight, its marks are taken back, with the record that
    /// has the last outcomes: what the origin changes from now on was not sent, even if the process is killed.
    pub(super) fn rest_when_quiet(&mut self, place: Place) {
        let Some(subscriber) = self.subscribers.get_mut(place) else { return };
        if subscriber.standstill == Standstill::None || subscriber.in_flight > 0 {
            return;
        }
        for lane in subscriber.lanes.numbers() {
            let Some(slot) = self.subscribers.lane_mut(place, lane) else { continue };
            slot.feed.pause();
            self.record_what_changed(place, lane);
        }
    }

    pub(super) fn record_now(&mut self, number: SubscriptionNumber, reply: oneshot::Sender<()>) {
        let Some(place) = self.subscribers.find(number) else {
            let _ = reply.send(());
            return;
        };
        // The recorder writes all it has for whoever waits; a feed with nothing to record goes on meanwhile.
        for lane in self.subscribers.lanes(place) {
            self.record_what_changed(place, lane);
        }
        self.unrecorded.tell_when_durable(reply);
    }

    /// Where several threads serve a subscription, some of them may do so while others have an attempt in flight and
    /// answer false. It is then still disabled, with all of this to be done, and to do it twice is as to do it once.
    fn begin_again(&mut self, number: SubscriptionNumber) -> bool {
        let Some(place) = self.subscribers.find(number) else { return false };
        let subscriber = &mut self.subscribers[place];
        if subscriber.in_flight > 0 || subscriber.leases.is_some() {
            return false;
        }
        subscriber.due.clear();
        for slot in subscriber.lanes.iter_mut() {
            slot.swept.clear();
            slot.feed.begin_again(slot.tail.head());
        }
        for lane in subscriber.lanes.numbers() {
            self.begin_era(place, lane);
            // Parked at the end of its lane, it would wait for the next change.
            self.subscribers[place].mark_unread(lane);
            self.mark_dirty(place, lane, false);
        }
        true
    }
}

/// Tells the feeds of a subscription which filter there is.
fn select(compiled: &Compiled, lanes: &mut Lanes) {
    for lane in lanes.iter_mut() {
        lane.feed.select(compiled.spec.filter.is_some(), compiled.filter_changes);
    }
    for lane in lanes.numbers() {
        lanes.note(lane);
    }
}
