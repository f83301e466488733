//! Settle: how an attempt ended → the feed's state, what is recorded, and what the client gets next.

use flare_model::feed::{Failure, Settled, Verdict};

use super::courier::Job;
use super::judge::{Ending, Times, judge};
use super::shard::Shard;
use super::subscriber::Standstill;
use super::sweeping;

impl Shard {
    /// Settles an attempt. If the subscription is gone meanwhile, it recreates nothing.
    pub fn settle(&mut self, job: Job, ending: Ending, times: Times) {
        self.in_flight -= 1;
        self.hanging -= usize::from(job.probe);
        if self.stopping && self.in_flight == 0 {
            self.drained.notify_one();
        }
        let Job { key, lane, attempt, compiled, host, change, .. } = job;
        let jitter = self.shared.chance.unit();
        let judgement = judge(&compiled.spec, &attempt, &ending, times, jitter);
        let monotonic = self.shared.clock.monotonic();
        let Some(subscriber) = self.subscriber(key, compiled.number) else { return };
        subscriber.in_flight -= 1;
        let slot = &mut subscriber.lanes[usize::from(lane)];
        let tally = slot.feed.tally_mut();
        let mut retry = false;
        match &judgement.verdict {
            Verdict::Delivered => {
                tally.delivered += 1;
                tally.last_success_at = Some(times.ended);
                if subscriber.fortune.failures > 0 {
                    subscriber.fortune.succeeded();
                }
            }
            Verdict::Discarded => {
                tally.discarded += 1;
                subscriber.fortune.succeeded();
            }
            Verdict::Retry { trouble, .. } | Verdict::GiveUp { trouble, .. } => {
                tally.failed += 1;
                let error = trouble.error.clone();
                let error = error.unwrap_or_else(|| format!("answered {}", trouble.status.unwrap_or(0)));
                let timed_out = matches!(ending, Ending::Failed { timed_out: true, .. });
                tally.last_failure = Some(Box::new(Failure { at: times.ended, status: trouble.status, error }));
                subscriber.fortune.failed(times.ended, monotonic, timed_out);
                retry = matches!(judgement.verdict, Verdict::Retry { .. });
                tracing::debug!(
                    subscription.id = %compiled.id,
                    document = %change.document.url,
                    attempt = trouble.attempts,
                    status = trouble.status,
                    error = trouble.error.as_deref(),
                    retry,
                    "the client did not take a notification"
                );
            }
        }
        let again = slot.feed.settle(attempt.ordinal, judgement.verdict);
        if judgement.gone && subscriber.standstill == Standstill::None {
            subscriber.standstill = Standstill::Disabled;
            let reason = "the client answered 410 Gone".to_owned();
            self.shared.report.disable(compiled.id.clone(), reason, times.ended);
        } else if again == Settled::Again {
            subscriber.due.push_front((lane, attempt.ordinal));
        } else if retry {
            self.schedule_retry(key, lane, attempt.ordinal);
        }
        self.mark_dirty(key, lane, false);
        sweeping::go_on(self, key);
        self.ready_for(key, host);
    }
}
