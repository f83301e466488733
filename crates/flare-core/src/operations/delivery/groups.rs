//! Dead letters by what went wrong: how many there are of each kind, those of one kind, and what a replay of one kind
//! goes over.

use std::collections::HashMap;

use flare_model::feed::{Standing, Trouble};
use flare_model::ids::{Ordinal, ResourceId, SubscriptionId};
use flare_provider::ListStandings;

use crate::operations::App;
use crate::operations::Done;
use crate::operations::delivery::dead_letters::DeadLetterPage;
use crate::registry::Subscription;

/// Dead letters read at once: their answers are read with them.
const SLICE: u64 = 4096;
/// Dead letters looked at to say which kinds there are, and to list those of one kind. When there are more: it says so.
const LOOKED_AT: u64 = 10_000;
/// Kinds that are told apart. When there are more: the rest is counted together.
const KINDS: usize = 50;

/// A kind of dead letters: all that have this status of the last answer, or, without one, this error.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DeadLetterKind {
    /// The status of the last answer.
    pub status: Option<u16>,
    /// What went wrong where there was no answer.
    pub error: Option<String>,
}

/// Which kinds there are.
#[derive(Debug, Default)]
pub struct DeadLetterKinds {
    /// Each with how many, the most first.
    pub kinds: Vec<(DeadLetterKind, u64)>,
    /// How many are of a kind that is not told apart.
    pub others: u64,
    /// How many were looked at.
    pub looked_at: u64,
    /// How many there are in all.
    pub total: u64,
}

impl DeadLetterKind {
    /// The kind of a dead letter. An answer that came is told by its status alone: what its reader said of it differs
    /// from one to the next. One that did not come as a whole is told by what went wrong, like one that did not come at all.
    fn of(trouble: Option<&Trouble>) -> DeadLetterKind {
        let error = trouble.and_then(|trouble| trouble.error.clone());
        let status = trouble.filter(|_| error.is_none()).and_then(|trouble| trouble.status);
        DeadLetterKind { status, error }
    }

    fn has(&self, standing: &Standing) -> bool {
        DeadLetterKind::of(standing.trouble.as_deref()) == *self
    }
}

impl App {
    /// Which kinds of dead letters a subscription has.
    pub async fn dead_letter_kinds(
        &self,
        resource: &ResourceId,
        id: &SubscriptionId,
    ) -> Done<DeadLetterKinds> {
        let subscription = self.subscription(resource, id)?;
        self.record(&subscription).await?;
        let (mut counts, mut found) = (HashMap::<DeadLetterKind, u64>::new(), DeadLetterKinds::default());
        loop {
            let (total, slice) = self.dead_slice(&subscription, found.looked_at).await?;
            (found.total, found.looked_at) = (total, found.looked_at + slice.len() as u64);
            for (_, standing) in &slice {
                let kind = DeadLetterKind::of(standing.trouble.as_deref());
                match counts.len() < KINDS || counts.contains_key(&kind) {
                    true => *counts.entry(kind).or_default() += 1,
                    false => found.others += 1,
                }
            }
            if slice.is_empty() || found.looked_at >= LOOKED_AT.min(total) {
                break;
            }
        }
        found.kinds = counts.into_iter().collect();
        found.kinds.sort_by(|(a, many), (b, few)| {
            few.cmp(many).then_with(|| (a.status, &a.error).cmp(&(b.status, &b.error)))
        });
        Ok(found)
    }

    /// Lists the dead letters of one kind, among those that are looked at.
    pub async fn dead_letters_of(
        &self,
        resource: &ResourceId,
        id: &SubscriptionId,
        kind: &DeadLetterKind,
        offset: u64,
        limit: u64,
    ) -> Done<DeadLetterPage> {
        let subscription = self.subscription(resource, id)?;
        self.record(&subscription).await?;
        let (mut read, mut fitting, mut shown) = (0, 0, Vec::new());
        while read < LOOKED_AT {
            let (_, slice) = self.dead_slice(&subscription, read).await?;
            if slice.is_empty() {
                break;
            }
            read += slice.len() as u64;
            for (lane, standing) in slice.into_iter().filter(|(_, standing)| kind.has(standing)) {
                if fitting >= offset && (shown.len() as u64) < limit {
                    shown.push((lane, standing));
                }
                fitting += 1;
            }
        }
        Ok(DeadLetterPage { total: fitting, letters: self.letters(&subscription, shown).await? })
    }

    /// The documents of all dead letters of one kind, by lane and ordinal.
    pub(in crate::operations) async fn dead_of(
        &self,
        subscription: &Subscription,
        kind: &DeadLetterKind,
    ) -> Done<Vec<(u8, Ordinal)>> {
        self.record(subscription).await?;
        let (mut read, mut fitting) = (0, Vec::new());
        loop {
            let (_, slice) = self.dead_slice(subscription, read).await?;
            if slice.is_empty() {
                break;
            }
            read += slice.len() as u64;
            let of_kind = slice.iter().filter(|(_, standing)| kind.has(standing));
            fitting.extend(of_kind.map(|(lane, standing)| (*lane, standing.ordinal)));
        }
        // One that left meanwhile moves those behind it up.
        fitting.sort_unstable();
        fitting.dedup();
        Ok(fitting)
    }

    async fn dead_slice(&self, subscription: &Subscription, offset: u64) -> Done<(u64, Vec<(u8, Standing)>)> {
        let list = ListStandings { subscription: subscription.number(), dead: true, offset, limit: SLICE };
        Ok(self.store.ledger.standings(list).await?)
    }
}
