//! Settle: how an attempt ended → the feed's state, what is recorded, and what the client gets next.

use std::time::Duration;

use flare_model::feed::{Action, Failure, Settled, Trouble, Verdict};
use flare_model::judge::{Judgement, Times, judge};
use flare_model::pace::{Ask, Ended};

use crate::journey::reading::sweeping;
use crate::journey::subscriber::{Standstill, Subscriber};
use crate::journey::worker::Worker;
use crate::journey::worker::breaker::Silence;
use crate::journey::worker::job::Job;
use crate::journey::worker::moments::Lasted;
use crate::notification::Notification;
use crate::notification::ending::Ending;

impl Worker {
    /// Settles an attempt that ended. If the subscription is gone meanwhile, it recreates nothing.
    pub fn settle(&mut self, mut job: Job, ending: &Ending, lasted: Lasted) {
        let times = self.times(lasted);
        self.ended(&mut job);
        self.took(job.place, lasted.until.saturating_sub(lasted.since));
        if let Some(lost) = self.heard_of(&job, ending, lasted) {
            self.make_up_for(job.host, lost);
            job.notification.attempt.first_attempt_at =
                job.notification.attempt.first_attempt_at.map(|at| at.saturating_add(lost));
        }
        let Notification { compiled, attempt, .. } = &job.notification;
        let jitter = || self.tools.chance.unit();
        let mut judgement = judge(&compiled.spec, attempt, &ending.heard(), times, jitter);
        self.tell_what_it_has(&job.notification, &mut judgement.verdict);
        if !self.is_open(&job) {
            return;
        }
        let Some(subscriber) = self.subscribers.get_mut(job.place) else { return };
        // A document that was settled before is sent on request: how old it is tells nothing of how late it comes.
        let settled = subscriber.lanes[job.lane].feed.cursor();
        let asked_for = job.notification.attempt.replay > 0
            || job.notification.attempt.attempts == 0 && job.notification.attempt.seq <= settled;
        let late = (!asked_for).then(|| times.ended.since(job.notification.change.document.updated_at));
        let shown_failing = subscriber.is_shown_failing(times.ended, self.tools.limits.failing_after);
        count(subscriber, &job, &judgement, ending, times, lasted);
        let well = matches!(judgement.verdict, Verdict::Delivered | Verdict::Discarded { .. });
        if shown_failing && well {
            subscriber.lanes[job.lane].feed.tally_mut().health_mut().recovered_at = Some(times.ended);
        }
        if subscriber.fortune.struggling() {
            let next = subscriber.next_due(Ask::First).map(|next| subscriber.due[next]);
            subscriber.let_go_of_documents(next);
        }
        if let Some(drive) = subscriber.drive().filter(|_| job.driven) {
            drive.ends(&judgement.verdict);
        }
        let gone = judgement.gone && subscriber.standstill == Standstill::None;
        if gone {
            self.decide(job.place, "the client answered 410 Gone".to_owned(), times.ended);
        } else {
            self.watch_fortune(&job, times);
        }
        self.tools.desk.counts.judged(&judgement.verdict, late);
        self.conclude(job, judgement.verdict);
    }

    /// What is left without a delivery says which revision the client has, as far as that is known here.
    fn tell_what_it_has(&self, told: &Notification, verdict: &mut Verdict) {
        let (Verdict::Discarded { story: Some(story), .. } | Verdict::GiveUp { trouble: story, .. }) =
            verdict
        else {
            return;
        };
        if told.attempt.action != Action::Create {
            story.has = self.tools.desk.last_delivered(told.compiled.number, &told.change.document.url);
        }
    }

    /// An attempt that was decided, and not begun because its host does not answer, waits without being counted.
    pub fn withhold(&mut self, mut job: Job, wait: Duration) {
        self.ended(&mut job);
        if !self.is_open(&job) {
            return;
        }
        let Some(subscriber) = self.subscribers.get_mut(job.place) else { return };
        if let Some(drive) = subscriber.drive().filter(|_| job.driven) {
            drive.withheld();
        }
        let now = self.now();
        let trouble = Box::new(Trouble {
            attempts: job.notification.attempt.attempts,
            first_attempt_at: job.notification.attempt.first_attempt_at.unwrap_or(now),
            last_attempt_at: now,
            action: job.notification.attempt.action,
            status: None,
            error: Some("not sent yet: the host does not answer".to_owned()),
            response: None,
            unheard: job.notification.attempt.unheard,
            has: None,
            lent: None,
        });
        self.conclude(job, Verdict::Retry { due: now.saturating_add(wait), doubtful: false, trouble });
    }

    /// What became too old before its turn came is given up, and nothing is sent.
    pub fn give_up_untried(&mut self, mut job: Job, verdict: Verdict) {
        self.ended(&mut job);
        if job.probe {
            // It found nothing out; the next one does.
            self.hosts[job.host].breaker.leave_off();
        }
        if !self.is_open(&job) {
            return;
        }
        let Some(subscriber) = self.subscribers.get_mut(job.place) else { return };
        if let Some(drive) = subscriber.drive().filter(|_| job.driven) {
            drive.ends(&verdict);
        }
        self.tools.desk.counts.judged(&verdict, None);
        self.conclude(job, verdict);
    }

    /// When an attempt began and ended, as this thread counts time.
    pub(in crate::journey) fn times(&self, Lasted { began, since, until }: Lasted) -> Times {
        Times {
            began: self.moment(since),
            ended: self.moment(until),
            by_the_wall: began.saturating_add(until.saturating_sub(since)),
        }
    }

    /// An attempt that was under way when the clock was set: the first one of its document moved too.
    fn keep_up(&self, job: &mut Job) {
        let by = self.offset.saturating_sub(job.offset);
        job.notification.attempt.first_attempt_at =
            job.notification.attempt.first_attempt_at.map(|at| at.moved(by));
        job.offset = self.offset;
    }

    /// Whether the lane of an attempt is still what it was: not gone, and not opened anew meanwhile.
    pub(in crate::journey) fn is_open(&self, job: &Job) -> bool {
        self.subscribers.lane(job.place, job.lane).is_some_and(|slot| slot.epoch == job.epoch)
    }

    /// An attempt whose lane was cut has come to its end: nobody knows what its client did with it, and the next owner
    /// of the lane takes that for unknown.
    pub fn cut_off(&mut self, mut job: Job, lasted: Lasted) {
        self.ended(&mut job);
        if job.probe {
            // Whoever waits for what it finds out is not kept waiting.
            let nothing = Ending::Failed { status: None, error: String::new(), sent: true, timed_out: false };
            self.heard_of(&job, &nothing, lasted);
        }
    }

    /// One attempt fewer is open.
    fn ended(&mut self, job: &mut Job) {
        self.keep_up(job);
        self.in_flight -= 1;
        if let Some(class) = job.share.take() {
            self.tools.caps.end_share(self.hosts[job.host].number, class);
        }
        if self.stopping && self.in_flight == 0 {
            self.drained.notify_one();
        }
        if self.is_open(job)
            && let Some(subscriber) = self.subscribers.get_mut(job.place)
        {
            subscriber.in_flight -= 1;
            job.age.take().into_iter().for_each(|age| subscriber.service.is_rid_of(age));
            subscriber.lanes[job.lane].in_flight -= 1;
            self.give_back(job.place);
        }
    }

    /// The verdict goes to the feed; what follows from it is scheduled and recorded.
    fn conclude(&mut self, job: Job, verdict: Verdict) {
        let Job { place, lane, notification: Notification { attempt, change, .. }, host, .. } = job;
        let retry = matches!(verdict, Verdict::Retry { .. });
        if self.subscribers[place].compiled.spec.keeps_state() {
            self.keep_state(place, lane, &attempt, &change.document, &verdict);
        }
        let Some(slot) = self.subscribers.lane_mut(place, lane) else { return };
        let again = slot.feed.settle(attempt.ordinal, verdict);
        // Before anything else: what follows may look at all lanes, for somebody who waits in line.
        self.mark_dirty(place, lane, false);
        let subscriber = &mut self.subscribers[place];
        if again == Settled::Next {
            self.owe_next(place, lane, attempt.ordinal);
        } else if again == Settled::Again {
            subscriber.due.push_front((lane, attempt.ordinal));
        } else if retry && subscriber.standstill != Standstill::Disabled {
            self.schedule_retry(place, lane, attempt.ordinal);
        }
        sweeping::go_on(self, place);
        self.rest_when_quiet(place);
        self.leave_when_drained(place, lane);
        self.ready_for(place, host);
    }

    /// Whether a host answers. Returns for how long nothing was sent to it, if that is known only now.
    fn heard_of(
        &mut self,
        job: &Job,
        ending: &Ending,
        Lasted { since, until, .. }: Lasted,
    ) -> Option<Duration> {
        let host = job.host;
        let silence = match ending {
            Ending::Failed { sent, .. } => Some(Silence { since, until, reached: *sent, probe: job.probe }),
            Ending::Answered(_) | Ending::Taken | Ending::Refused(_) => None,
        };
        let silent = silence.is_some();
        if !silent {
            self.hosts[host].answered_last = Some(job.place);
        }
        let breaker = &mut self.hosts[host].breaker;
        if !silent && breaker.is_closed() {
            return breaker.answered(until);
        }
        let (was_closed, jitter) = (breaker.is_closed(), self.tools.chance.unit());
        let lost = match silence {
            Some(silence) => breaker.silence(&silence, &self.tools.limits.breaker, jitter),
            None => breaker.answered(until),
        };
        self.hosts[host].rests = false;
        if was_closed && !self.hosts[host].breaker.is_closed() {
            self.leave_alone(host);
        }
        let key = &self.hosts[host].key;
        if was_closed && !self.hosts[host].breaker.is_closed() {
            self.tools.desk.counts.breakers.add(1);
            tracing::warn!(host = %key, "host does not answer, leaving it alone for a while");
        } else if !was_closed && !silent {
            tracing::info!(host = %key, "host answers again");
        }
        if !self.hosts[host].queue.is_empty() {
            // Whoever stands in line was turned away while the probe was under way.
            self.summon(host);
        }
        lost
    }

    /// A host is left alone from now on, but for those who had no failure of their own where it could be reached.
    fn leave_alone(&mut self, host: usize) {
        self.return_shares_of(host);
        let (subscribers, host) = (&self.subscribers, &mut self.hosts[host]);
        if host.breaker.spares_the_innocent() {
            let innocent = |place| subscribers.get(place).is_some_and(|subscriber| subscriber.is_innocent());
            host.queue.trust(innocent);
        }
    }

    /// The time in which nothing was sent to a host counts against nobody's time to live.
    fn make_up_for(&mut self, host: usize, lost: Duration) {
        let there = self.subscribers.iter_mut().filter(|(_, subscriber)| subscriber.hosts.contains(&host));
        let mut touched = Vec::new();
        for (place, subscriber) in there {
            for slot in subscriber.lanes.iter_mut().filter(|slot| !slot.feed.waiting().is_empty()) {
                slot.feed.prolong(lost);
                touched.push((place, slot.id.lane));
            }
        }
        for (place, lane) in touched {
            self.mark_dirty(place, lane, false);
        }
    }

    /// Tells the operator of a client that fails for long, and of its recovery; gives it up if so configured.
    fn watch_fortune(&mut self, job: &Job, times: Times) {
        let (failing_after, disable_after) =
            (self.tools.limits.failing_after, self.tools.limits.disable_after);
        let Some(subscriber) = self.subscribers.get_mut(job.place) else { return };
        // Where several threads serve it, it fails only if it does so on all of them.
        let since = subscriber.fortune.failing_since.and_then(|_| subscriber.fares_in_all().failing_since);
        let Some(since) = since else {
            if std::mem::take(&mut subscriber.recovering) {
                self.tools.report.recovered(job.notification.compiled.id.clone(), times.ended);
            }
            return;
        };
        let failing = times.ended.since(since);
        let untold = failing >= failing_after && !std::mem::replace(&mut subscriber.fortune.told, true);
        let tried = failing.saturating_sub(subscriber.fortune.untried);
        let hopeless =
            !disable_after.is_zero() && tried >= disable_after && subscriber.standstill == Standstill::None;
        subscriber.recovering |= untold;
        if untold {
            self.tools.report.failing(job.notification.compiled.id.clone(), since, times.ended);
        }
        if hopeless {
            let limit = flare_model::duration::HumanDuration(disable_after);
            let reason = format!("nothing has succeeded for {limit} (delivery.disable-after)");
            self.decide(job.place, reason, times.ended);
        }
    }
}

/// Counts an outcome, and what it says about the client.
fn count(
    subscriber: &mut Subscriber,
    job: &Job,
    judgement: &Judgement,
    ending: &Ending,
    times: Times,
    lasted: Lasted,
) {
    let first = job.notification.attempt.attempts == 0;
    let ask = if first { Ask::First } else { Ask::Retry };
    let request = Ended { ask, began: lasted.since, ended: lasted.until };
    let concurrency = subscriber.compiled.spec.concurrency;
    let tally = subscriber.lanes[job.lane].feed.tally_mut();
    match &judgement.verdict {
        Verdict::Delivered => {
            tally.delivered += 1;
            tally.last_success_at = Some(times.ended);
            if let Some(health) = &mut tally.health {
                health.failing_since = None;
            }
            subscriber.fortune.succeeded(concurrency);
            subscriber.tell_others(times.ended);
        }
        Verdict::Discarded { .. } => {
            tally.discarded += 1;
            let health = tally.health_mut();
            (health.last_discard_at, health.failing_since) = (Some(times.ended), None);
            subscriber.fortune.succeeded(concurrency);
            subscriber.tell_others(times.ended);
        }
        Verdict::Retry { trouble, .. } | Verdict::GiveUp { trouble, .. } => {
            tally.failed += 1;
            let error = trouble.error.clone();
            let error = error.unwrap_or_else(|| format!("answered {}", trouble.status.unwrap_or(0)));
            let timed_out = matches!(ending, Ending::Failed { timed_out: true, .. });
            tally.last_failure = Some(Box::new(Failure { at: times.ended, status: trouble.status, error }));
            if let Some(asked) = judgement.throttled {
                subscriber.fortune.throttled(request, subscriber.in_flight, asked);
            }
            subscriber.fortune.failed(request, times.ended, timed_out, &job.notification.compiled.spec.retry);
            tally.health_mut().failing_since = subscriber.fortune.failing_since;
            subscriber.warn_others(times.ended);
            tracing::debug!(
                subscription.id = %job.notification.compiled.id,
                document = %job.notification.change.document.url,
                attempt = trouble.attempts,
                status = trouble.status,
                error = trouble.error.as_deref(),
                retry = matches!(judgement.verdict, Verdict::Retry { .. }),
                "the client did not take a notification"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use flare_model::document::{Document, Row};
    use flare_model::feed::{Everything, Met};
    use flare_model::ids::{LaneId, Ordinal, Seq};
    use flare_model::revision::Revision;
    use tokio::sync::oneshot;
    use tokio::task::LocalSet;

    use super::*;
    use crate::journey::passive::{Ask, Reservation};
    use crate::journey::subscriber::passive::Passive;
    use crate::journey::testing::fixture::{Thread, marked};
    use crate::journey::worker::subscribers::FeedPlace;
    use crate::notification::change::Change;

    #[tokio::test]
    async fn a_document_that_failed_counts_as_waiting_before_anybody_else_asks_for_one() {
        let all = async {
            let thread = Thread::new();
            let FeedPlace { place, lane } = thread.open(1, marked(100), Standstill::None);
            let mut worker = thread.worker.borrow_mut();
            let (reply, _told) = oneshot::channel();
            let lease = Duration::from_secs(1);
            worker.subscribers[place].passive = Some(Box::<Passive>::default());
            let reservation = Reservation {
                quantity: 1,
                lease,
                patient: true,
                gathers_until: lease,
                leased: Vec::new(),
                reply,
            };
            worker.passive_ask(place.number(), Ask::Reserve(reservation));
            let row =
                Row { ordinal: Ordinal(1), seq: Seq(51), born: Seq(51), before: Seq(0), deleted: false };
            let now = worker.now();
            let subscriber = &mut worker.subscribers[place];
            let met = subscriber.lanes[0].feed.read(&row, &mut Everything);
            let Met::Send(attempt) = met else { panic!("{met:?}") };
            let compiled = subscriber.compiled.clone();
            let change = Change::new(Document {
                lane: LaneId { resource: compiled.resource.number, index: lane },
                row,
                url: "http://h/1".into(),
                revision: Revision::Integer(1),
                updated_at: now,
                content: Default::default(),
            });
            let notification = Notification { attempt, change, state: None, compiled, span: None };
            let (host, offset) = (subscriber.host, worker.offset);
            let job = Job {
                place,
                lane,
                epoch: 1,
                notification,
                host,
                offset,
                share: None,
                age: None,
                probe: false,
                driven: true,
            };
            let trouble = Box::new(Trouble {
                attempts: 1,
                first_attempt_at: now,
                last_attempt_at: now,
                action: attempt.action,
                status: Some(503),
                error: None,
                response: None,
                unheard: false,
                has: None,
                lent: None,
            });
            // Due at once, so that whoever waits in line is looked at; and there is more to read, for which there was no room.
            worker.subscribers[place].mark_unread(lane);
            worker.conclude(job, Verdict::Retry { due: now, doubtful: true, trouble });
            assert_eq!(worker.subscribers[place].waiting(), 1);
        };
        LocalSet::new().run_until(all).await;
    }
}
