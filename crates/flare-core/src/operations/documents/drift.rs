//! Drift: what a client has and lacks, document by document, a page at a time.
//!
//! A page costs what it shows and skips, not what there is. Documents are walked by key: first, where only those
//! that lag are asked for, the ones that the client is owed (bitmaps, by lane and ordinal), then the log (by lane
//! and seq). A document that changes while someone pages moves to the end of its lane: it may come twice, and is
//! never left out.

use std::fmt;
use std::str::FromStr;

use flare_model::document::Document;
use flare_model::feed::ClientHas;
use flare_model::ids::{LaneId, Ordinal, ResourceId, Seq, SubscriptionId};
use flare_model::revision::Revision;
use flare_provider::{LaneState, ScanLane};
use schemars::JsonSchema;
use serde::Serialize;

use crate::journey::{Command, ListOwed, Owed, OwedOfLane};
use crate::operations::App;
use crate::operations::Done;
use crate::operations::documents::known::settings;
use crate::registry::Subscription;

/// Documents looked at for one page, at most. When full: the page ends early, and `next` says where to go on.
const LOOKED_AT: usize = 10_000;
/// Documents read at once: their contents are read with them.
const SLICE: usize = 256;
const SLICE_BYTES: usize = 1 << 20;

/// Which documents.
#[derive(Clone, Copy, Debug)]
pub struct DriftQuery {
    /// Only those that the client is owed something about.
    pub lagging: bool,
    /// At most so many.
    pub limit: usize,
    /// After so many.
    pub offset: usize,
    /// Beyond this place.
    pub after: Option<DriftPlace>,
}

impl DriftQuery {
    /// The most that may be skipped without a place to go on from.
    pub const SKIP: usize = LOOKED_AT;
}

/// Where a page ended: what `next` says and `after` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriftPlace {
    /// Among those that are owed: lane and ordinal.
    Owed(u8, Ordinal),
    /// In the log: lane and seq.
    Log(u8, Seq),
}

impl DriftPlace {
    /// How it is written.
    pub const PATTERN: &str = "^[os](0|[1-9][0-9]?|1[0-9]{2}|2[0-4][0-9]|25[0-5])\\.[0-9]{1,18}$";
}

impl fmt::Display for DriftPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DriftPlace::Owed(lane, ordinal) => write!(f, "o{lane}.{ordinal}"),
            DriftPlace::Log(lane, seq) => write!(f, "s{lane}.{seq}"),
        }
    }
}

impl FromStr for DriftPlace {
    type Err = ();

    fn from_str(text: &str) -> Result<DriftPlace, ()> {
        let (kind, rest) = text.split_at_checked(1).ok_or(())?;
        let (lane, number) = rest.split_once('.').ok_or(())?;
        let (lane, number) = (lane.parse().map_err(|_| ())?, number.parse().map_err(|_| ())?);
        match kind {
            "o" => Ok(DriftPlace::Owed(lane, Ordinal(number))),
            "s" => Ok(DriftPlace::Log(lane, Seq(number))),
            _ => Err(()),
        }
    }
}

/// One document, as one client has it.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftView {
    /// The document.
    pub document: String,
    /// Its newest revision.
    pub revision: Revision,
    /// Whether it is deleted; left out where it is not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deleted: bool,
    /// What the client has of it.
    pub client_has: ClientHas,
    /// Whether the client is going to be told something of it.
    pub owed: bool,
    /// Why, in words.
    pub why: String,
}

/// A part of the list.
pub struct DriftPage {
    /// How many there are in all, tombstones included.
    pub total: u64,
    /// That is a bound: so many, or fewer. Only of those that lag, where many have yet to be looked at.
    pub total_is_bound: bool,
    /// The part.
    pub documents: Vec<DriftView>,
    /// Where to go on, unless this was the end.
    pub next: Option<DriftPlace>,
}

/// A page that is being filled.
struct Filling<'a> {
    subscription: &'a Subscription,
    query: DriftQuery,
    skip: usize,
    looked_at: usize,
    documents: Vec<DriftView>,
    last: Option<DriftPlace>,
}

/// Where documents of a page come from.
#[derive(Clone, Copy)]
enum Whence<'a> {
    /// They were owed when the feed was asked.
    Owed,
    /// The log, beside what was owed of the lane.
    Log(Option<&'a OwedOfLane>),
}

impl App {
    /// What a client has and lacks.
    pub async fn drift(
        &self,
        resource: &ResourceId,
        id: &SubscriptionId,
        query: DriftQuery,
    ) -> Done<DriftPage> {
        let subscription = self.subscription(resource, id)?;
        let mut page = Filling {
            subscription: &subscription,
            query,
            skip: query.offset,
            looked_at: 0,
            documents: Vec::new(),
            last: query.after,
        };
        let number = subscription.compiled.resource.number;
        let lanes = self.store.documents.lanes().await?;
        let lanes: Vec<LaneState> = lanes.into_iter().filter(|lane| lane.lane.resource == number).collect();
        let all = lanes.iter().map(|lane| lane.documents + lane.tombstones).sum();
        if !query.lagging {
            let ended = self.walk_log(&mut page, &lanes, None).await?;
            return Ok(page.end(all, false, ended));
        }
        self.count_lanes().await?;
        let owed = self.owed(&mut page).await?;
        let to_come = self.to_come(&subscription, &owed).await?;
        let total = (owed.total() + to_come.lagging).saturating_sub(to_come.settled);
        let ended = page.is_full() || self.walk_log(&mut page, &lanes, Some(&owed)).await?;
        let more = page.is_full() && total > 0;
        Ok(page.end(total, to_come.is_bound, ended && !more))
    }

    /// Adds what is owed of that which the feeds have read.
    async fn owed(&self, page: &mut Filling<'_>) -> Done<Owed> {
        let after = match page.query.after {
            Some(DriftPlace::Owed(lane, ordinal)) => Some((lane, ordinal)),
            // Already in the log: only the totals are wanted.
            Some(DriftPlace::Log(..)) => Some((u8::MAX, Ordinal(u64::MAX))),
            None => None,
        };
        let number = page.subscription.number();
        let limit = page.skip + page.query.limit;
        let list = ListOwed { subscription: number, after, limit };
        let owed = self.journey.ask(number, |reply| Command::Owed(list, reply)).await;
        let owed = owed.flatten().ok_or_else(|| self.left(page.subscription))?;
        let skipped = page.skip.min(owed.documents.len());
        page.skip -= skipped;
        let shown = owed.documents[skipped..].iter().take(page.query.limit);
        let shown: Vec<(u8, Ordinal)> = shown.copied().collect();
        for group in shown.chunk_by(|a, b| a.0 == b.0) {
            let lane = LaneId { resource: page.subscription.compiled.resource.number, index: group[0].0 };
            let ordinals: Vec<Ordinal> = group.iter().map(|(_, ordinal)| *ordinal).collect();
            for ordinals in ordinals.chunks(SLICE) {
                let (found, _) = self.store.documents.fetch(lane, ordinals).await?;
                let found: Vec<Document> = found.into_iter().flatten().collect();
                self.show(page, found, Whence::Owed).await?;
            }
            page.last = group.last().map(|(lane, ordinal)| DriftPlace::Owed(*lane, *ordinal));
        }
        Ok(owed)
    }

    /// Adds documents of the log: all, or those beyond the positions of the readers. Returns whether it came to the
    /// end.
    async fn walk_log(&self, page: &mut Filling<'_>, lanes: &[LaneState], owed: Option<&Owed>) -> Done<bool> {
        for state in lanes {
            let index = state.lane.index;
            let mut after = match page.query.after {
                Some(DriftPlace::Log(lane, _)) if index < lane => continue,
                Some(DriftPlace::Log(lane, seq)) if index == lane => seq,
                _ => Seq(0),
            };
            let met = owed.and_then(|owed| owed.lanes.get(&index));
            after = after.max(met.map(|met| met.to_come_from).unwrap_or_default());
            let here = (state.documents + state.tombstones) as usize;
            if !page.query.lagging && after == Seq(0) && page.skip >= here {
                page.skip -= here;
                page.last = Some(DriftPlace::Log(index, state.head));
                continue;
            }
            while after < state.head {
                if page.is_full() || page.looked_at >= LOOKED_AT {
                    return Ok(false);
                }
                let room = if page.query.lagging { SLICE } else { page.skip + page.room() };
                let scan = ScanLane {
                    lane: state.lane,
                    after,
                    upto: Seq(u64::MAX),
                    rows: room.min(SLICE),
                    bytes: SLICE_BYTES,
                };
                let found = self.store.documents.scan(scan).await?;
                page.looked_at += found.documents.len();
                let seen_to = self.show(page, found.documents, Whence::Log(met)).await?;
                after = seen_to.unwrap_or(found.upto).max(Seq(after.0));
                page.last = Some(DriftPlace::Log(index, after));
            }
        }
        Ok(true)
    }

    /// Adds what is to be shown of some documents of one lane. Returns where it stopped, if the page was full before
    /// the end.
    async fn show(
        &self,
        page: &mut Filling<'_>,
        found: Vec<Document>,
        whence: Whence<'_>,
    ) -> Done<Option<Seq>> {
        let (examined, condition) = self.look_at(page.subscription, &found).await?;
        let settings = settings(page.subscription);
        let mut before = None;
        for (document, seen) in found.iter().zip(examined) {
            let Some(seen) = seen else { continue };
            let glimpse = &seen.glimpse;
            let wanted = match whence {
                _ if !page.query.lagging => true,
                Whence::Owed => glimpse.lags(),
                // What was owed when the feeds were asked was among the others.
                Whence::Log(met) => {
                    let shown = met.is_some_and(|met| met.all.contains(document.row.ordinal.0));
                    glimpse.lags() && !shown
                }
            };
            if wanted && matches!(whence, Whence::Log(_)) && page.skip > 0 {
                page.skip -= 1;
            } else if wanted {
                if page.is_full() {
                    return Ok(before);
                }
                page.documents.push(DriftView {
                    document: document.url.to_string(),
                    revision: document.revision.clone(),
                    deleted: document.row.deleted,
                    client_has: seen.client_has(),
                    owed: glimpse.is_owed(),
                    why: seen.why(&settings, &condition),
                });
            }
            before = Some(document.row.seq);
        }
        Ok(None)
    }
}

impl Filling<'_> {
    fn room(&self) -> usize {
        self.query.limit - self.documents.len()
    }

    fn is_full(&self) -> bool {
        self.room() == 0
    }

    fn end(self, total: u64, total_is_bound: bool, ended: bool) -> DriftPage {
        let next = self.last.filter(|_| !ended);
        DriftPage { total, total_is_bound, documents: self.documents, next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_comes_back_as_it_was() {
        for place in [DriftPlace::Owed(3, Ordinal(77)), DriftPlace::Log(255, Seq(u64::MAX))] {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for odd in ["", "x1.2", "o1", "o300.1", "s1.-1", "s1.x", "é1.1"] {
            assert_eq!(odd.parse::<DriftPlace>(), Err(()), "{odd}");
        }
    }
}
