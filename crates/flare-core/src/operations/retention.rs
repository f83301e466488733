//! Retention: tombstones go when their time is over and no feed needs them any more. A feed that is in the way
//! for too long is disabled, with the reason.

use std::sync::Arc;
use std::time::Duration;

use flare_model::document::Document;
use flare_model::duration::HumanDuration;
use flare_model::ids::{LaneId, Seq};
use flare_model::subscription::Disabled;
use flare_provider::{LaneState, ScanLane};
use roaring::RoaringTreemap;

use super::{App, Done};
use crate::journey::{Command, Needs};
use crate::registry::Subscription;

/// The longest time between two looks.
const ROUND: Duration = Duration::from_secs(60);

/// Tombstones that go in one commit.
const SLICE: usize = 1000;

impl App {
    /// Keeps house until the node stops.
    pub async fn keep_house(&self) {
        let retention = &self.config.domain.retention;
        let round = ROUND.min(retention.tombstones).min(retention.history);
        loop {
            tokio::time::sleep(round).await;
            if let Err(failure) = self.remove_tombstones().await {
                tracing::warn!(error = %failure, "old tombstones could not be removed, trying again later");
            }
            if let Err(failure) = self.trim_history().await {
                tracing::warn!(error = %failure, "old revisions could not be removed, trying again later");
            }
        }
    }

    async fn remove_tombstones(&self) -> Done<()> {
        'lanes: for LaneState { lane, tombstones, .. } in self.store.documents.lanes().await? {
            if tombstones == 0 {
                continue;
            }
            let (head, followers) = self.followers_at(lane).await?;
            let (mut upto, mut keep) = (head, RoaringTreemap::new());
            for subscription in followers {
                let Some(needs) = self.needs(&subscription, lane).await else {
                    match self.is_gone(&subscription)? {
                        true => continue,
                        // A feed that cannot be asked keeps everything of its lane.
                        false => continue 'lanes,
                    }
                };
                if subscription.stored.disabled.as_ref().is_some_and(|disabled| disabled.start_over) {
                    continue;
                }
                if needs.cursor < head && self.is_in_the_way(lane, needs.cursor).await? {
                    self.disable_for_being_behind(&subscription).await?;
                    continue;
                }
                upto = upto.min(needs.cursor);
                keep |= needs.documents;
            }
            let retention = self.config.domain.retention.tombstones;
            let Some(before) = self.steps.older_than(&*self.clock, retention) else { continue };
            self.journey.pass_over(lane, |Document { row, updated_at, .. }| {
                row.deleted && row.seq <= upto && *updated_at < before && !keep.contains(row.ordinal.0)
            });
            let documents = &self.store.documents;
            let removed = &self.journey.observe().counts().retention.tombstones;
            loop {
                let went = documents.remove_tombstones(lane, upto, before, &keep, SLICE).await?;
                removed.add_among_many(went);
                if went < SLICE as u64 {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Who follows a lane, and its newest change then. Nobody is created or changed at that moment, so whoever follows it
    /// later, or wants more of it, begins there or beyond: of what was there before, these are all who need anything.
    pub(super) async fn followers_at(&self, lane: LaneId) -> Done<(Seq, Vec<Arc<Subscription>>)> {
        let _catalog = self.catalog.lock().await;
        let (_, head) = self.store.documents.fetch(lane, &[]).await?;
        let resources = self.registry.resources(0, usize::MAX).entries;
        let resource = resources.into_iter().find(|resource| resource.number == lane.resource);
        let followers = resource.map(|r| self.registry.subscriptions(r.id(), 0, usize::MAX).entries);
        Ok((head, followers.unwrap_or_default()))
    }

    async fn needs(&self, subscription: &Subscription, lane: LaneId) -> Option<Needs> {
        let number = subscription.number();
        self.journey.ask(number, |reply| Command::Needs(number, lane.index, reply)).await.flatten()
    }

    /// Whether the first change beyond a cursor has waited for longer than a feed may.
    async fn is_in_the_way(&self, lane: LaneId, cursor: Seq) -> Done<bool> {
        let scan = ScanLane { lane, after: cursor, upto: Seq(u64::MAX), rows: 1, bytes: 1 };
        let page = self.store.documents.scan(scan).await?;
        let limit = self.config.domain.retention.feed;
        let now = self.clock.now();
        Ok(page.documents.first().is_some_and(|document| now.since(document.updated_at) > limit))
    }

    async fn disable_for_being_behind(&self, subscription: &Subscription) -> Done<()> {
        let limit = HumanDuration(self.config.domain.retention.feed);
        let reason = format!(
            "changes have waited for it longer than {limit} (domain.retention.feed); resuming sends everything again"
        );
        let disabled = Disabled { since: self.clock.now(), reason, start_over: true };
        self.disable(subscription.id(), disabled).await
    }
}
