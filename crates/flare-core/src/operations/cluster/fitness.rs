//! Whether this node works, looked at from time to time: is the store read and written, do delivery threads answer, does what there
//! is to record become durable. In: the journey and the store. Out: signs, from which `flare_model::cluster::life` concludes.
//!
//! Time counts only while it is looked: a node that was suspended has missed nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flare_model::cluster::UnitId;
use flare_model::cluster::life::{Event, Signs};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use crate::operations::App;

/// It is looked so many times between two renewals of the lease.
const LOOKS: u32 = 2;

/// Between two looks no more than so many times their distance counts.
const COUNTS: u32 = 2;

/// Since when the store does not answer, for people.
#[derive(Default)]
pub(in crate::operations) struct StoreSeen {
    /// In milliseconds of the monotonic clock, and one more; 0 while it answers.
    lost_since: AtomicU64,
}

impl StoreSeen {
    /// It was asked, and answered or not. Says since when it does not.
    pub fn asked(&self, answered: bool, now: Duration) -> Option<Duration> {
        if answered {
            self.lost_since.store(0, Ordering::Release);
            return None;
        }
        let now = u64::try_from(now.as_millis()).unwrap_or(u64::MAX).saturating_add(1);
        let known = self.lost_since.compare_exchange(0, now, Ordering::AcqRel, Ordering::Acquire);
        Some(Duration::from_millis(known.map_or_else(|known| known, |_| now) - 1))
    }
}

/// A question to the store that is under way, and whether it was answered.
type Probe = BoxFuture<'static, bool>;

/// What was looked at.
#[derive(Default)]
struct Looks {
    signs: Signs,
    /// Looks at the catalog that had ended well.
    followed: u64,
    /// By delivery thread.
    threads: Vec<ThreadLooks>,
    reading: Option<Probe>,
    writing: Option<Probe>,
    /// What was asked of the store since the last look was answered.
    was_read: bool,
    was_written: bool,
}

#[derive(Default)]
struct ThreadLooks {
    recorded: u64,
    /// For how long it has something to record, and nothing became durable.
    unrecorded: Duration,
    asked: Option<oneshot::Receiver<()>>,
    /// For how long it does not answer.
    silent: Duration,
}

impl App {
    /// How often this node looks at itself.
    pub(in crate::operations) fn looks_at_itself_every(&self) -> Duration {
        self.config.cluster.renews_every() / LOOKS
    }

    /// Notices whether this node works, and tells the cluster, until it stops.
    pub(in crate::operations) async fn notice(self: Arc<App>) {
        let Some(member) = self.member.clone() else { return std::future::pending().await };
        let every = member.settings.renew / LOOKS;
        let mut looks = Looks::default();
        looks.threads.resize_with(self.journey.threads(), ThreadLooks::default);
        // At once for the first time: until then nobody knows whether it works.
        let mut looked = self.clock.monotonic().saturating_sub(every);
        loop {
            let wait = (looked + every).saturating_sub(self.clock.monotonic());
            tokio::select! {
                biased;
                answered = ended(&mut looks.reading) => looks.was_read |= answered,
                answered = ended(&mut looks.writing) => looks.was_written |= answered,
                () = tokio::time::sleep(wait) => {
                    let now = self.clock.monotonic();
                    let passed = now.saturating_sub(looked).min(every * COUNTS);
                    looked = now;
                    self.look_at_store(&mut looks, passed, every);
                    self.look_at_threads(&mut looks, passed).await;
                    member.tell(Event::Notices(looks.signs.clone()));
                }
            }
        }
    }

    fn look_at_store(&self, looks: &mut Looks, passed: Duration, every: Duration) {
        let Some(member) = &self.member else { return };
        let patience = member.settings.lease;
        // What follows the catalog reads more often than this, as a rule.
        let followed = self.ringing.as_ref().map_or(0, |ringing| ringing.follows_ended());
        let read = std::mem::take(&mut looks.was_read) || followed != looks.followed;
        looks.followed = followed;
        looks.signs.unread = if read { Duration::ZERO } else { looks.signs.unread + passed };
        if read || looks.signs.unread > every * COUNTS {
            self.store_seen.asked(read, self.clock.monotonic().saturating_sub(looks.signs.unread));
        }
        if looks.signs.unread >= every && looks.reading.is_none() {
            let catalog = self.store.catalog.clone();
            let ask = async move { catalog.version().await.is_ok() };
            looks.reading = Some(within(patience, ask));
        }
        // Whether it can be written is tried only while somebody says that it cannot.
        let seen = member.seen();
        if seen.trouble.is_none() && seen.troubled.is_empty() {
            (looks.signs.unwritten, looks.was_written) = (Duration::ZERO, false);
            return;
        }
        let written = std::mem::take(&mut looks.was_written);
        looks.signs.unwritten = if written { Duration::ZERO } else { looks.signs.unwritten + passed };
        if looks.writing.is_none() {
            let ledger = self.store.ledger.clone();
            let ask = async move { ledger.next_epoch().await.is_ok() };
            looks.writing = Some(within(patience, ask));
        }
    }

    async fn look_at_threads(&self, looks: &mut Looks, passed: Duration) {
        let Some(member) = &self.member else { return };
        let mut silenced = BTreeSet::new();
        for (thread, pulse) in self.journey.pulses().iter().enumerate() {
            let of = &mut looks.threads[thread];
            let recorded = pulse.recorded();
            let stands = pulse.is_recording() && recorded == of.recorded;
            of.unrecorded = if stands { of.unrecorded + passed } else { Duration::ZERO };
            of.recorded = recorded;
            let heard = of.asked.as_mut().map(oneshot::Receiver::try_recv);
            if heard == Some(Ok(())) && member.tenancy.is_silenced(thread) {
                tracing::warn!(thread, "a delivery thread answers again");
                self.journey.hear_again(thread).await;
            }
            if heard != Some(Err(oneshot::error::TryRecvError::Empty)) {
                of.asked = self.journey.ask_to_answer(thread);
                // One that cannot even be asked has not answered.
                if of.asked.is_some() {
                    of.silent = Duration::ZERO;
                    continue;
                }
            }
            of.silent += passed;
            if of.silent >= member.settings.lease * 2 {
                if !member.tenancy.is_silenced(thread) {
                    tracing::error!(thread, "a delivery thread does not answer: its units go to other nodes");
                    member.tenancy.silence(thread);
                }
                silenced.extend(self.units_on(thread));
            }
        }
        let longest =
            |of: fn(&ThreadLooks) -> Duration| looks.threads.iter().map(of).max().unwrap_or_default();
        looks.signs.unrecorded = longest(|thread| thread.unrecorded);
        looks.signs.silent = longest(|thread| thread.silent);
        looks.signs.silenced = silenced;
    }

    /// The units of which a delivery thread has lanes.
    fn units_on(&self, thread: usize) -> Vec<UnitId> {
        let opened = self.opened.lock();
        let there = opened
            .iter()
            .filter(|(_, unit)| self.journey.has_lanes_of(thread, unit.compiled.number, &unit.lanes));
        there.map(|(unit, _)| unit.clone()).collect()
    }
}

/// Waits for an answer; for ever while nothing is asked.
async fn ended(probe: &mut Option<Probe>) -> bool {
    let Some(asked) = probe else { return std::future::pending().await };
    let answered = asked.await;
    *probe = None;
    answered
}

/// No answer in time is none.
fn within(patience: Duration, ask: impl Future<Output = bool> + Send + 'static) -> Probe {
    async move { tokio::time::timeout(patience, ask).await.unwrap_or_default() }.boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_is_lost_since_it_was_first_asked_in_vain() {
        let seen = StoreSeen::default();
        let at = Duration::from_secs;
        assert_eq!(seen.asked(true, at(1)), None);
        assert_eq!(seen.asked(false, at(2)), Some(at(2)));
        assert_eq!(seen.asked(false, at(9)), Some(at(2)));
        assert_eq!(seen.asked(true, at(10)), None);
        assert_eq!(seen.asked(false, Duration::ZERO), Some(Duration::ZERO));
    }
}
