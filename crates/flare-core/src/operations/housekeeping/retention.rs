//! Retention: tombstones go when their time is over and no feed needs them any more. A feed that is in the way
//! for too long is disabled, with the reason; what its client has is remembered within a bound.

use std::sync::Arc;
use std::time::Duration;

use flare_model::document::Document;
use flare_model::duration::HumanDuration;
use flare_model::ids::{FeedId, LaneId, Seq, SubscriptionNumber};
use flare_model::subscription::{Disabled, Stored};
use flare_model::time::Timestamp;
use flare_provider::{LaneState, ScanLane};
use roaring::RoaringTreemap;

use crate::journey::passive::{Ask, EndLeases, LeaseEnd};
use crate::journey::{Command, TombstonesNeeded};
use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;
use crate::registry::Subscription;

/// Tombstones that go in one commit.
const SLICE: usize = 1000;

/// How long the trace of something deleted is kept for those who follow the catalog, and twice that at most. Whoever was away for
/// longer reads the whole catalog anew, which takes no more than a start does.
const LONGEST_ABSENCE: Duration = Duration::from_secs(24 * 60 * 60);

/// Which tombstones go: of a lane, those up to a change that were accepted before a time, but for some documents.
#[derive(Clone, Copy)]
struct Going<'a> {
    lane: LaneId,
    upto: Seq,
    before: Timestamp,
    keep: &'a RoaringTreemap,
}

impl App {
    /// The epoch under which this process removes what nobody needs: the first time, that begins durably.
    pub(in crate::operations) async fn sweeper(&self) -> Done<u64> {
        if self.member.is_some() {
            let elsewhere = || Failure::Conflict("another node removes what nobody needs".to_owned());
            return self.house.epoch().ok_or_else(elsewhere);
        }
        let begin = async {
            let epoch = self.journey.epoch().await?;
            self.store.documents.begin_sweeping(epoch).await?;
            Ok(epoch)
        };
        self.sweeper.get_or_try_init(|| begin).await.copied()
    }

    /// Forgets the traces of deletions that nobody can still be waiting for: those that were there a day ago.
    pub(in crate::operations) async fn forget_deletions(&self) -> Done<()> {
        if !self.keeps_house() {
            return Ok(());
        }
        let now = self.clock.monotonic();
        let noted = *self.deletions.lock();
        match noted {
            Some((at, _)) if now.saturating_sub(at) < LONGEST_ABSENCE => return Ok(()),
            Some((_, version)) => {
                let forgotten = self.store.catalog.forget_deletions(version).await?;
                tracing::debug!(forgotten, version, "traces of deletions are forgotten");
            }
            None => {}
        }
        let version = self.store.catalog.version().await?;
        *self.deletions.lock() = Some((now, version));
        Ok(())
    }

    pub(in crate::operations) async fn remove_tombstones(&self) -> Done<()> {
        if !self.keeps_house() {
            return Ok(());
        }
        let _turn = self.house.turn.lock().await;
        for LaneState { lane, tombstones, .. } in self.store.documents.lanes().await? {
            if tombstones > 0 {
                self.tidy_lane(lane, tombstones).await?;
            }
        }
        Ok(())
    }

    async fn tidy_lane(&self, lane: LaneId, tombstones: u64) -> Done<()> {
        let (head, followers) = self.followers_at(lane).await?;
        let (mut upto, mut keep) = (head, RoaringTreemap::new());
        let mut disabled = Vec::new();
        for subscription in followers {
            let Some(needs) = self.needs(&subscription, lane).await else {
                match self.is_gone(&subscription)? {
                    true => continue,
                    // A feed that cannot be asked keeps everything of its lane.
                    false => return Ok(()),
                }
            };
            if subscription.stored.disabled.as_ref().is_some_and(|disabled| disabled.start_over) {
                let anything = has_anything(&subscription.stored, &needs);
                disabled
                    .push((subscription, if anything { Has::Anything } else { Has::Documents(needs.has) }));
                continue;
            }
            if self.is_in_the_way(&subscription, lane, &needs, head).await? {
                // What its client has is known in the next round.
                return self.disable_for_being_behind(&subscription).await;
            }
            upto = upto.min(needs.cursor);
            keep |= needs.documents;
        }
        let retention = &self.config.domain.retention;
        let Some(before) = self.steps.older_than(&*self.clock, retention.tombstones) else { return Ok(()) };
        // Who begins again is told of the end of what it has, for as long as that is remembered.
        let mut held = Some(keep.clone());
        for (_, has) in &disabled {
            held = match (held, has) {
                (Some(held), Has::Documents(has)) => Some(held | has),
                _ => None,
            };
        }
        let went = match &held {
            Some(held) => self.forget(&Going { lane, upto, before, keep: held }).await?,
            None => 0,
        };
        let mut over = tombstones.saturating_sub(went).saturating_sub(u64::from(retention.held));
        while over > 0 && !disabled.is_empty() {
            let going = Going { lane, upto, before, keep: &keep };
            let slice = SLICE.min(usize::try_from(over).unwrap_or(SLICE));
            let oldest = self.store.documents.tombstones(lane, upto, before, &keep, slice).await?;
            let Some((_, last)) = oldest.last() else { break };
            let ordinals: RoaringTreemap = oldest.iter().map(|(ordinal, _)| ordinal.0).collect();
            self.say_forgotten(&disabled, &ordinals).await?;
            over -= self.forget(&Going { upto: *last, ..going }).await?.clamp(1, over);
        }
        Ok(())
    }

    /// Removes the tombstones that go.
    async fn forget(&self, going: &Going<'_>) -> Done<u64> {
        let Going { lane, upto, before, keep } = *going;
        self.journey.pass_over(lane, |Document { row, updated_at, .. }| {
            row.deleted && row.seq <= upto && *updated_at < before && !keep.contains(row.ordinal.0)
        });
        let mut removed = 0;
        loop {
            let going = self.store.documents.tombstones(lane, upto, before, keep, SLICE).await?;
            let sweeper = self.sweeper().await?;
            let documents = &self.store.documents;
            let went = documents.remove_tombstones(sweeper, lane, upto, before, keep, SLICE).await?;
            self.journey.removed(lane, &going);
            self.journey.observe().counts().retention.tombstones.add_among_many(went);
            removed += went;
            if went < SLICE as u64 {
                return Ok(removed);
            }
        }
    }

    /// Tombstones are about to go that disabled subscriptions need: it is counted before it happens, so that nothing is
    /// missed silently.
    async fn say_forgotten(&self, disabled: &[(Arc<Subscription>, Has)], going: &RoaringTreemap) -> Done<()> {
        for (subscription, has) in disabled {
            let forgotten = has.of(going);
            if forgotten == 0 {
                continue;
            }
            let _catalog = self.catalog.lock().await;
            let Some(current) = self.registry.subscription_by_id(subscription.id()) else { continue };
            self.keep(&current, |stored| stored.forgotten += forgotten).await?;
            tracing::warn!(
                subscription.id = %subscription.id(),
                forgotten,
                "deleted documents are forgotten that the client of a disabled subscription still has"
            );
        }
        Ok(())
    }

    /// Who follows a lane, and its newest change then. Nobody is created or changed at that moment, so whoever follows it
    /// later, or wants more of it, begins there or beyond: of what was there before, these are all who need anything.
    pub(in crate::operations) async fn followers_at(
        &self,
        lane: LaneId,
    ) -> Done<(Seq, Vec<Arc<Subscription>>)> {
        let _catalog = self.catalog.lock().await;
        let (_, head) = self.store.documents.fetch(lane, &[]).await?;
        // Whoever another node created up to now begins there or beyond, or is known after this.
        self.catch_up_with_catalog().await?;
        let resource =
            self.registry.all_tracked().into_iter().find(|resource| resource.number == lane.resource);
        let followers = resource.map(|r| self.registry.subscriptions(r.id(), 0, usize::MAX).entries);
        Ok((head, followers.unwrap_or_default()))
    }

    pub(in crate::operations) async fn needs(
        &self,
        subscription: &Subscription,
        lane: LaneId,
    ) -> Option<TombstonesNeeded> {
        let number = subscription.number();
        if self.member.is_some() {
            return self.needs_as_recorded(subscription, lane).await;
        }
        self.journey.ask(number, |reply| Command::TombstonesNeeded(number, lane.index, reply)).await.flatten()
    }

    /// The same as the ledger has it, whichever node serves the subscription: never less than it needs in truth.
    async fn needs_as_recorded(&self, subscription: &Subscription, lane: LaneId) -> Option<TombstonesNeeded> {
        let number = subscription.number();
        let before = SubscriptionNumber(number.0 - 1);
        let found = self.store.ledger.needs(lane, before, 1).await.ok()?;
        // Of one that was not opened yet on this log nothing is known.
        let needs = found.into_iter().find(|needs| needs.feed.subscription == number && !needs.strange)?;
        let disabled = subscription.stored.disabled.is_some();
        Some(TombstonesNeeded {
            cursor: needs.cursor,
            documents: needs.documents,
            has: if disabled { needs.has } else { RoaringTreemap::new() },
            moved_at: needs.moved_at,
            begun: false,
        })
    }

    /// Whether a feed has not moved for longer than it may, with changes beyond it.
    async fn is_in_the_way(
        &self,
        subscription: &Subscription,
        lane: LaneId,
        needs: &TombstonesNeeded,
        head: Seq,
    ) -> Done<bool> {
        let feed = FeedId { subscription: subscription.number(), lane: lane.index };
        if needs.cursor >= head {
            self.behind.forget(feed);
            return Ok(false);
        }
        let (limit, now) = (self.config.domain.retention.feed, self.clock.monotonic());
        if let Some(behind) = self.behind.look(feed, needs.cursor, now) {
            return Ok(behind > limit);
        }
        let before = match needs.begun {
            true => self.note_beginning(subscription).await?,
            false => self.behind_before(subscription, lane, needs).await?,
        };
        self.behind.watch(feed, needs.cursor, now, before, limit);
        Ok(false)
    }

    /// For how long a feed may have stood still before this process: since the first change beyond it came, its client
    /// last took something, or it began.
    async fn behind_before(
        &self,
        subscription: &Subscription,
        lane: LaneId,
        needs: &TombstonesNeeded,
    ) -> Done<Duration> {
        let scan = ScanLane { lane, after: needs.cursor, upto: Seq(u64::MAX), rows: 1, bytes: 1 };
        let page = self.store.documents.scan(scan).await?;
        let Some(first) = page.documents.first() else { return Ok(Duration::ZERO) };
        let since = Some(first.updated_at).max(needs.moved_at).max(subscription.stored.begun_at);
        let late = self.steps.late(&*self.clock, self.config.domain.retention.feed);
        Ok(since.map_or(Duration::ZERO, |since| late.since(since)))
    }

    /// A subscription began again with this process, because its numbers were those of another log: that is kept, so that
    /// the next process knows too. It has stood still for no time.
    async fn note_beginning(&self, subscription: &Subscription) -> Done<Duration> {
        let _catalog = self.catalog.lock().await;
        if let Some(current) = self.registry.subscription_by_id(subscription.id())
            && current.stored.begun_at < Some(self.started_at)
        {
            self.keep(&current, |stored| stored.begun_at = Some(self.started_at)).await?;
        }
        Ok(Duration::ZERO)
    }

    async fn disable_for_being_behind(&self, subscription: &Subscription) -> Done<()> {
        let limit = HumanDuration(self.config.domain.retention.feed);
        let reason = format!(
            "it has not moved for longer than {limit} with changes waiting (domain.retention.feed); resuming sends everything again"
        );
        let disabled = Disabled { since: self.clock.now(), reason, start_over: true };
        self.disable(subscription.id(), disabled).await
    }

    /// Has a disabled subscription begin again on all of its lanes. When this returns that is durable; until it is, and
    /// until the catalog says that it goes on, the subscription stays disabled, and to resume it begins again once more.
    /// The caller holds the catalog.
    pub(in crate::operations) async fn begin_again(&self, current: &Subscription) -> Done<Arc<Subscription>> {
        let number = current.number();
        let in_flight = || {
            let detail = "an attempt is still in flight; try again when it has ended";
            Failure::Conflict(detail.into())
        };
        // A lease may last for hours, and whoever has it gets everything again anyway.
        let all = EndLeases { document: None, word: LeaseEnd::Expired };
        let ended = |reply| Command::Passive(number, Ask::EndLeases(all, reply));
        let ended = self.journey.ask(number, ended).await;
        ended.ok_or_else(|| self.left(current))?;
        // All or none: what is disabled begins nothing, so that what is not in flight now will not be.
        if self.inspect(current).await?.in_flight > 0 {
            return Err(in_flight());
        }
        // From here on its feeds may not say any more what its client has, see `has_anything`.
        let current = self.keep(current, |stored| stored.begun_at = Some(self.clock.now())).await?;
        let begun = self.journey.ask(number, |reply| Command::BeginAgain(number, reply)).await;
        if !begun.ok_or_else(|| self.left(&current))? {
            return Err(in_flight());
        }
        self.behind.forget_all(number);
        self.record(&current).await?;
        Ok(current)
    }
}

/// Whether the client of a disabled subscription may have anything: its feeds began again, and then it was not resumed,
/// because Flare was killed.
pub(in crate::operations) fn has_anything(stored: &Stored, needs: &TombstonesNeeded) -> bool {
    needs.begun || stored.disabled.as_ref().is_some_and(|disabled| stored.begun_at > Some(disabled.since))
}

/// What the client of a disabled subscription has of a lane, as far as anybody knows.
enum Has {
    Anything,
    Documents(RoaringTreemap),
}

impl Has {
    /// How many of these documents.
    fn of(&self, documents: &RoaringTreemap) -> u64 {
        match self {
            Has::Anything => documents.len(),
            Has::Documents(has) => has.intersection_len(documents),
        }
    }
}
