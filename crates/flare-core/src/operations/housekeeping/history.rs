//! Older revisions go when no feed needs them any more, or when a document has too many or too old ones: then the
//! clients that have not got them go on with the oldest that is left, and what they miss is counted and told.

use std::collections::HashSet;
use std::sync::Arc;

use flare_model::ids::{LaneId, Ordinal, Seq};
use flare_model::subscription::Revisions;
use flare_model::time::Timestamp;
use flare_provider::{LaneState, OlderRevision};

use crate::journey::{Command, RevisionsNeeded};
use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;
use crate::registry::Subscription;

/// Revisions looked at in one read.
const PAGE: usize = 4096;

/// What may go, and what has to.
struct Bounds {
    /// The newest change when the followers were listed. Who wants what was replaced later is not known: someone who came
    /// after that, or has wanted every revision since, may.
    listed_at: Seq,
    /// Revisions of one document.
    most: usize,
    /// Those replaced before this go.
    replaced_after: Timestamp,
}

/// What becomes of the older revisions of a document.
#[derive(Debug, Default, PartialEq)]
struct Verdicts {
    /// Nobody needs them.
    done: Vec<(Ordinal, Seq)>,
    /// They go though someone may need them.
    lost: Vec<OlderRevision>,
}

impl App {
    pub(in crate::operations) async fn trim_history(&self) -> Done<()> {
        if !self.keeps_house() {
            return Ok(());
        }
        let _turn = self.house.turn.lock().await;
        for LaneState { lane, revisions, .. } in self.store.documents.lanes().await? {
            if revisions > 0 {
                self.trim_lane(lane).await?;
            }
        }
        Ok(())
    }

    async fn trim_lane(&self, lane: LaneId) -> Done<()> {
        let (listed_at, listed) = self.followers_at(lane).await?;
        let mut followers = Vec::new();
        for subscription in listed {
            let behind = subscription.stored.disabled.as_ref().is_some_and(|disabled| disabled.start_over);
            if subscription.compiled.spec.revisions == Revisions::Last || behind {
                continue;
            }
            let number = subscription.number();
            let owes =
                self.journey.ask(number, |reply| Command::RevisionsNeeded(number, lane.index, reply)).await;
            let Some(owes) = owes.flatten() else {
                match self.is_gone(&subscription)? {
                    true => continue,
                    // Without an answer everything is kept: it is changing.
                    false => return Ok(()),
                }
            };
            // A crash must not go back to where something is needed again that is gone.
            match self.record(&subscription).await {
                Err(Failure::NotFound(_)) => continue,
                recorded => recorded?,
            }
            followers.push((subscription, owes));
        }
        let retention = &self.config.domain.retention;
        let replaced_after = self.steps.older_than(&*self.clock, retention.history);
        let bounds = Bounds {
            listed_at,
            most: retention.revisions as usize,
            replaced_after: replaced_after.unwrap_or(Timestamp::from_millis(i64::MIN)),
        };
        let needs: Vec<&RevisionsNeeded> = followers.iter().map(|(_, owes)| owes).collect();
        let (mut after, mut document) = (None, Vec::<OlderRevision>::new());
        loop {
            let page = self.store.documents.revisions(lane, after, PAGE).await?;
            let last = page.len() < PAGE;
            after = page.last().map(|kept| (kept.ordinal, kept.seq));
            let mut verdicts = Verdicts::default();
            for kept in page {
                if document.first().is_some_and(|first| first.ordinal != kept.ordinal) {
                    verdicts.judge(&document, &needs, &bounds);
                    document.clear();
                }
                document.push(kept);
            }
            if last {
                verdicts.judge(&document, &needs, &bounds);
            }
            self.remove(lane, verdicts, &followers).await?;
            if last {
                return Ok(());
            }
        }
    }

    async fn remove(
        &self,
        lane: LaneId,
        verdicts: Verdicts,
        followers: &[(Arc<Subscription>, RevisionsNeeded)],
    ) -> Done<()> {
        let Verdicts { done: mut gone, lost } = verdicts;
        // A client may have got some of them since it was asked.
        let mut missed = HashSet::new();
        if !lost.is_empty() {
            for (subscription, _) in followers {
                let (number, index) = (subscription.number(), lane.index);
                let lose = |reply| Command::Lose(number, index, lost.clone(), reply);
                let Some(owed) = self.journey.ask(number, lose).await else {
                    match self.is_gone(subscription)? {
                        true => continue,
                        false => return Err(self.left(subscription)),
                    }
                };
                if owed.is_empty() {
                    continue;
                }
                // Told before it happens: what goes is never missed silently.
                match self.record(subscription).await {
                    Err(Failure::NotFound(_)) => continue,
                    recorded => recorded?,
                }
                tracing::warn!(
                    subscription.id = %subscription.id(),
                    removed = lost.len(),
                    owed = owed.len(),
                    "revisions were removed from the history before every client got them"
                );
                missed.extend(owed);
            }
        }
        gone.extend(lost.iter().map(|kept| (kept.ordinal, kept.seq)));
        if !gone.is_empty() {
            let sweeper = self.sweeper().await?;
            let removed = self.store.documents.remove_revisions(sweeper, lane, &gone).await?;
            let quantities = [gone.len() - missed.len(), missed.len()];
            let counts = &self.journey.observe().counts().retention.revisions;
            counts.iter().zip(quantities).for_each(|(count, went)| count.add_among_many(went as u64));
            tracing::debug!(lane = lane.index, removed, "older revisions removed");
        }
        Ok(())
    }
}

impl Verdicts {
    /// Judges all older revisions of one document, which come in order.
    fn judge(&mut self, document: &[OlderRevision], needs: &[&RevisionsNeeded], bounds: &Bounds) {
        let too_many = document.len().saturating_sub(bounds.most);
        for (index, kept) in document.iter().enumerate() {
            if kept.until > bounds.listed_at || needs.iter().any(|owes| owes.is_in_flight(kept)) {
                // The next round knows more.
                continue;
            }
            if !needs.iter().any(|owes| owes.needs(kept)) {
                self.done.push((kept.ordinal, kept.seq));
            } else if index < too_many || kept.replaced_at < bounds.replaced_after {
                self.lost.push(*kept);
            }
        }
    }
}

impl RevisionsNeeded {
    fn needs(&self, kept: &OlderRevision) -> bool {
        let waits = || self.owed.get(&kept.ordinal).is_some_and(|from| *from <= kept.seq);
        let unsettled = kept.seq > self.cursor && !self.ahead.contains(kept.seq);
        kept.until > self.since && (unsettled || waits())
    }

    fn is_in_flight(&self, kept: &OlderRevision) -> bool {
        self.in_flight.get(&kept.ordinal) == Some(&kept.seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flare_model::feed::Ahead;

    fn kept(seq: u64) -> OlderRevision {
        let (ordinal, replaced_at) = (Ordinal(1), Timestamp::from_millis(seq as i64));
        OlderRevision { ordinal, seq: Seq(seq), until: Seq(seq + 1), replaced_at }
    }

    fn judged(owes: &[&RevisionsNeeded], most: usize, replaced_after: i64) -> (Vec<u64>, Vec<u64>) {
        judged_at(100, owes, most, replaced_after)
    }

    fn judged_at(
        listed_at: u64,
        owes: &[&RevisionsNeeded],
        most: usize,
        replaced_after: i64,
    ) -> (Vec<u64>, Vec<u64>) {
        let document: Vec<OlderRevision> = (1..=6).map(kept).collect();
        let replaced_after = Timestamp::from_millis(replaced_after);
        let bounds = Bounds { listed_at: Seq(listed_at), most, replaced_after };
        let mut verdicts = Verdicts::default();
        verdicts.judge(&document, owes, &bounds);
        let done = verdicts.done.into_iter().map(|(_, seq)| seq.0).collect();
        (done, verdicts.lost.into_iter().map(|kept| kept.seq.0).collect())
    }

    fn owes(since: u64, cursor: u64, owed: &[u64]) -> RevisionsNeeded {
        let owed = owed.iter().map(|from| (Ordinal(1), Seq(*from))).collect();
        let (ahead, in_flight) = Default::default();
        RevisionsNeeded { since: Seq(since), cursor: Seq(cursor), ahead, owed, in_flight }
    }

    #[test]
    fn what_nobody_needs_goes() {
        assert_eq!(judged(&[], 100, 0), (vec![1, 2, 3, 4, 5, 6], vec![]));
        assert_eq!(judged(&[&owes(0, 4, &[])], 100, 0), (vec![1, 2, 3, 4], vec![]));
        assert_eq!(judged(&[&owes(0, 4, &[3])], 100, 0), (vec![1, 2], vec![]));
        assert_eq!(judged(&[&owes(0, 4, &[]), &owes(2, 0, &[])], 100, 0), (vec![1], vec![]));
    }

    #[test]
    fn what_was_replaced_after_the_followers_were_listed_stays() {
        assert_eq!(
            judged_at(4, &[], 100, 0),
            (vec![1, 2, 3], vec![]),
            "someone who came later may need the rest"
        );
        assert_eq!(judged_at(4, &[&owes(0, 1, &[])], 1, 100), (vec![1], vec![2, 3]), "however many they are");
    }

    #[test]
    fn what_a_client_got_beyond_its_cursor_is_not_lost_to_it() {
        let ahead = Ahead { horizon: Seq(4), holes: vec![Seq(2)], extras: vec![Seq(6)] };
        let owes = RevisionsNeeded { ahead, ..owes(0, 1, &[]) };
        assert_eq!(judged(&[&owes], 100, 0), (vec![1, 3, 4, 6], vec![]));
        assert_eq!(judged(&[&owes], 1, 100), (vec![1, 3, 4, 6], vec![2, 5]));
    }

    #[test]
    fn what_is_in_flight_is_neither_done_nor_lost_yet() {
        let owes = RevisionsNeeded { in_flight: [(Ordinal(1), Seq(3))].into(), ..owes(0, 1, &[]) };
        assert_eq!(judged(&[&owes], 1, 100), (vec![1], vec![2, 4, 5, 6]));
    }

    #[test]
    fn what_is_too_much_or_too_old_is_lost_to_whoever_needs_it() {
        assert_eq!(judged(&[&owes(0, 1, &[])], 3, 0), (vec![1], vec![2, 3]));
        assert_eq!(judged(&[&owes(0, 1, &[])], 100, 5), (vec![1], vec![2, 3, 4]));
    }
}
