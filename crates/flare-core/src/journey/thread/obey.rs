//! What the node asks of a delivery thread is done. In: a command. Out: what it says, and an answer where it wants one.

use std::cell::RefCell;
use std::rc::Rc;

use flare_model::feed::Standing;
use flare_model::ids::SubscriptionNumber;
use tokio::sync::oneshot;

use crate::journey::asking::census;
use crate::journey::asking::notable;
use crate::journey::log::tail::Tails;
use crate::journey::sending::errand;
use crate::journey::sending::trial;
use crate::journey::thread::command::{AskedFor, Command, Requested};
use crate::journey::thread::opening::TakenOver;
use crate::journey::worker::Worker;

/// Does what a command says.
pub fn obey(worker: &Rc<RefCell<Worker>>, tails: &Tails, command: Command) {
    let worker = &mut *worker.borrow_mut();
    match command {
        Command::Open { compiled, opened, epoch, standstill, fresh, placement, common, decision } => {
            let place =
                worker.open(tails, compiled, TakenOver { opened, epoch }, standstill, placement, common);
            worker.begin_subscription(place, fresh, decision);
        }
        Command::Replace(compiled) => worker.replace(compiled),
        Command::Stand { number, standstill, paused_since } => worker.stand(number, standstill, paused_since),
        Command::Remove(number, reply) => {
            worker.remove(number);
            answer(reply, ());
        }
        Command::Place(placement, common) => worker.placed(placement, common),
        Command::Drain(number, lanes) => worker.drain(number, lanes),
        Command::Release(number, lanes, reply) => worker.release(number, lanes, reply),
        Command::Cut(number, lanes, reply) => {
            worker.cut(number, &lanes);
            answer(reply, ());
        }
        Command::Record(number, reply) => worker.record_now(number, reply),
        Command::Sweep(number, kind, replay, reply) => {
            answer(reply, worker.begin_sweep(number, kind, replay));
        }
        Command::BeginAgain(number, reply) => answer(reply, worker.begin_again(number)),
        Command::Request(number, asked, replay, reply) => {
            answer(reply, worker.request(number, asked, replay));
        }
        Command::DropDead(number, letters, reply) => answer(reply, worker.drop_dead(number, letters)),
        Command::Lose(number, lane, revisions, reply) => {
            answer(reply, worker.lose(number, lane, &revisions));
        }
        Command::Passive(number, ask) => worker.passive_ask(number, ask),
        Command::ClockMoved(offset) => worker.clock_moved(offset),
        Command::Errand(errand) => {
            worker.tasks.spawn_local(errand::run(worker.tools.clone(), *errand));
        }
        Command::Try(trial, reply) => {
            worker.tasks.spawn_local(trial::run(worker.tools.clone(), trial, reply));
        }
        Command::MaySweep(number, reply) => answer(reply, worker.may_sweep(number)),
        Command::Progress(number, reply) => answer(reply, worker.progress(number)),
        Command::KnownOf(number, rows, reply) => answer(reply, worker.known_of(number, &rows)),
        Command::Owed(list, reply) => answer(reply, worker.owed(list)),
        Command::TombstonesNeeded(number, lane, reply) => {
            answer(reply, worker.tombstones_needed(number, lane))
        }
        Command::RevisionsNeeded(number, lane, reply) => answer(reply, worker.revisions_needed(number, lane)),
        Command::Dead(number, reply) => answer(reply, worker.dead(number)),
        Command::Decided(reply) => answer(reply, worker.decided()),
        Command::Decision(number, reply) => answer(reply, worker.decision(number)),
        Command::Census(reply) => {
            worker.tasks.spawn_local(census::take(worker.handle(), reply));
        }
        Command::Notable(reply) => {
            worker.tasks.spawn_local(notable::take(worker.handle(), reply));
        }
        Command::Stop(_) => unreachable!("the caller ends the loop on it"),
    }
}

/// Whoever asked may have left meanwhile.
fn answer<T>(reply: oneshot::Sender<T>, value: T) {
    let _ = reply.send(value);
}

impl Worker {
    /// Owes single documents again, and has a client that failed probed at once.
    fn request(&mut self, number: SubscriptionNumber, asked: Vec<AskedFor>, replay: u64) -> Requested {
        let mut requested = Requested::default();
        let Some(place) = self.subscribers.find(number) else { return requested };
        let now = self.now();
        for AskedFor { lane, row, head } in asked {
            let Some(slot) = self.subscribers.lane_mut(place, lane) else { continue };
            // It was read a while ago. Where revisions are sent in turn, an older one must not follow a newer one.
            let row = match slot.tail.still_newest(row.ordinal, row.seq, head) {
                Some(false) if slot.feed.is_in_turn() => continue,
                None if slot.feed.is_in_turn() => {
                    requested.unsure.push((lane, row.ordinal));
                    continue;
                }
                // What is owed is the newest: the client may have got that meanwhile, and is told it again as what it is,
                // a replay.
                _ => slot.tail.newest(row.ordinal).map_or(row, |newest| *newest.row()),
            };
            if slot.feed.request(&row, replay, now) {
                slot.aside.swept.push(row.ordinal);
                requested.taken += 1;
                self.mark_dirty(place, lane, true);
                self.subscribers[place].fortune.try_now();
            }
        }
        requested
    }

    /// Drops dead letters. Answers how many there were.
    fn drop_dead(&mut self, number: SubscriptionNumber, letters: Vec<(u8, Standing)>) -> usize {
        let Some(place) = self.subscribers.find(number) else { return 0 };
        let mut dropped = 0;
        for (lane, letter) in letters {
            let Some(slot) = self.subscribers.lane_mut(place, lane) else { continue };
            if slot.feed.drop_dead(letter.ordinal, letter.seq, Some(letter)) {
                dropped += 1;
                self.mark_dirty(place, lane, true);
            }
        }
        dropped
    }
}
