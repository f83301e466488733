//! One of the two stores that are compared: operations come in, answers go out as text, without the numbers,
//! versions and epochs that an engine may choose.

use std::collections::BTreeMap;
use std::sync::Arc;

use flare_model::document::{Intent, Write};
use flare_model::feed::Record;
use flare_model::ids::{FeedId, LaneId, Ordinal, ResourceNumber, Seq, SubscriptionNumber};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use roaring::RoaringTreemap;

use super::operation::{Change, Operation, Place};
use crate::Store;
use crate::catalog::{Entity, EntityKind, NewEntity};
use crate::conformance::Factory;
use crate::conformance::dump::{
    Dump, dump, show_document, show_entity, show_lane, show_opened, show_standings,
};
use crate::conformance::fixture::{NEWEST, Stage, resource, subscription};
use crate::documents::ScanLane;
use crate::error::Result;
use crate::ledger::{FeedWrite, ListStandings};

/// A number that no engine gives out in a test.
const NOBODY: u64 = 1 << 40;

/// A store and what the operations so far have made of it.
pub struct Side {
    /// Always there, but while it crashes.
    stage: Option<Stage>,
    slots: BTreeMap<(EntityKind, u8), Entity>,
    owners: BTreeMap<u8, Owners>,
}

/// The epochs under which the subscription in a slot was taken over.
#[derive(Clone, Copy)]
struct Owners {
    present: u64,
    former: u64,
}

impl Side {
    pub async fn fresh(factory: &dyn Factory) -> Side {
        let stage = Some(Stage::fresh(factory).await);
        Side { stage, slots: BTreeMap::new(), owners: BTreeMap::new() }
    }

    pub async fn dump(&self) -> Dump {
        dump(&self.store()).await
    }

    /// Does it, and tells what came of it. `turn` makes new ids unique.
    pub async fn perform(&mut self, turn: usize, operation: &Operation) -> String {
        match operation {
            Operation::Crash => {
                let stage = self.stage.take().expect("it is there between operations");
                self.stage = Some(stage.crash().await);
                "crashed".to_owned()
            }
            Operation::CreateResource { slot, lanes, keys } => {
                let new = NewEntity { keys: texts(keys), ..resource(&format!("r{turn}"), *lanes) };
                self.create(*slot, new).await
            }
            Operation::CreateSubscription { slot, resource, keys, start } => {
                let parent = self.slots.get(&(EntityKind::Resource, *resource));
                let parent = parent.map_or("nobody", |entity| &entity.id);
                let new = subscription(&format!("s{turn}"), parent);
                self.create(
                    *slot,
                    NewEntity { keys: texts(keys), start: *start, history: turn.is_multiple_of(2), ..new },
                )
                .await
            }
            Operation::Replace { .. } | Operation::Delete { .. } | Operation::List { .. } => {
                self.change(turn, operation).await
            }
            Operation::TakeOver { slot } => self.take_over(*slot).await,
            Operation::OpenLate { slot } => {
                let Some(owners) = self.owners.get(slot) else { return "nobody opened it".to_owned() };
                self.open(*slot, owners.former).await
            }
            Operation::Write { slot, lane, late, record } => self.write(*slot, *lane, *late, record).await,
            Operation::Standings { slot, dead, offset, limit } => {
                let subscription = self.feed(*slot, 0).subscription;
                let list = ListStandings { subscription, dead: *dead, offset: *offset, limit: *limit };
                told(self.store().ledger.standings(list).await, |found| show_standings(&found))
            }
            Operation::Standing { slot, lane, ordinal } => {
                let feed = self.feed(*slot, *lane);
                told(self.store().ledger.standing(feed, Ordinal(*ordinal)).await, |found| {
                    format!("{found:?}")
                })
            }
            Operation::State { slot, lane, life, ordinal } => {
                let (feed, ordinal) = (self.feed(*slot, *lane), Ordinal(*ordinal));
                told(self.store().ledger.state(feed, *life, ordinal).await, |found| format!("{found:?}"))
            }
            reading_or_commit => self.documents(reading_or_commit).await,
        }
    }

    async fn create(&mut self, slot: u8, new: NewEntity) -> String {
        let created = self.store().catalog.create(new).await;
        if let Ok(entity) = &created {
            self.slots.insert((entity.kind, slot), entity.clone());
            if entity.kind == EntityKind::Subscription {
                self.owners.remove(&slot);
            }
        }
        told(created, |entity| show_entity(&entity))
    }

    async fn change(&mut self, turn: usize, operation: &Operation) -> String {
        let catalog = self.store().catalog;
        match operation {
            Operation::Replace { kind, slot, keys, late } => {
                let Some(entity) = self.slots.get_mut(&(*kind, *slot)) else { return "nobody".to_owned() };
                let version = entity.version + u64::from(*late);
                let (keys, body, history) = (texts(keys), turn.to_string(), turn.is_multiple_of(2));
                let asked = Entity { version, keys, body, history, ..entity.clone() };
                let replaced = catalog.replace(asked).await;
                if let Ok(Some(replaced)) = &replaced {
                    *entity = replaced.clone();
                }
                told(replaced, |replaced| format!("{:?}", replaced.as_ref().map(show_entity)))
            }
            Operation::Delete { kind, slot } => {
                let id = self.slots.get(&(*kind, *slot)).map_or("nobody", |entity| &entity.id);
                told(catalog.delete(*kind, id).await, |deleted| format!("{deleted}"))
            }
            Operation::List { kind, limit } => {
                let first = catalog.list(*kind, 0, 1).await.expect("entities are read");
                let after = first.first().map_or(0, |entity| entity.number);
                told(catalog.list(*kind, after, *limit).await, |page| {
                    format!("{:?}", page.iter().map(show_entity).collect::<Vec<_>>())
                })
            }
            other => unreachable!("{other:?} is no change of the catalog"),
        }
    }

    async fn documents(&self, operation: &Operation) -> String {
        let documents = self.store().documents;
        match operation {
            Operation::Commit(changes) => {
                let batch = changes.iter().map(|change| self.as_write(change)).collect();
                told(documents.commit(batch).await, |answers| {
                    let each = answers.into_iter().map(|answer| {
                        told(answer, |done| format!("{:?} {}..{}", done.outcome, done.before, done.after))
                    });
                    each.collect::<Vec<_>>().join(" ")
                })
            }
            Operation::Get { at, url } => {
                let found = documents.get(self.lane(*at), &name(*url)).await;
                told(found, |found| format!("{:?}", found.as_ref().map(show_document)))
            }
            Operation::Fetch { at, ordinals } => {
                let ordinals: Vec<Ordinal> = ordinals.iter().copied().map(Ordinal).collect();
                told(documents.fetch(self.lane(*at), &ordinals).await, |(found, head)| {
                    let found = found.iter().map(|found| found.as_ref().map(show_document));
                    format!("{:?} of {head}", found.collect::<Vec<_>>())
                })
            }
            Operation::Scan { at, after, upto, rows, bytes } => {
                let (lane, rows, bytes) = (self.lane(*at), *rows, *bytes);
                self.scan(ScanLane { lane, after: Seq(*after), upto: Seq(*upto), rows, bytes }).await
            }
            Operation::Lanes => {
                let mut lanes = documents.lanes().await.expect("lanes are read");
                lanes.sort_by_key(|state| state.lane);
                format!("{:?}", lanes.iter().map(show_lane).collect::<Vec<_>>())
            }
            Operation::RemoveTombstones { at, upto, before, keep, limit } => {
                let keep: RoaringTreemap = keep.iter().collect();
                let (lane, upto, before) = (self.lane(*at), Seq(*upto), Timestamp::from_millis(*before));
                let removed = documents.remove_tombstones(0, lane, upto, before, &keep, *limit).await;
                told(removed, |removed| format!("removed {removed}"))
            }
            other => unreachable!("{other:?} is none of the documents"),
        }
    }

    /// Where a page is cut, its `upto` is the engine's choice within the gap: it is checked, not compared.
    async fn scan(&self, scan: ScanLane) -> String {
        let page = self.store().documents.scan(scan).await.expect("a lane is read");
        let bytes: usize = page.documents.iter().map(|document| document.content.len()).sum();
        let cut = page.documents.len() >= scan.rows || (!page.documents.is_empty() && bytes >= scan.bytes);
        let end = scan.upto.min(page.head);
        let last = page.documents.last().map_or(Seq(0), |document| document.row.seq);
        if cut {
            assert!(last <= page.upto && page.upto <= end, "{scan:?} says {}", page.upto);
        } else {
            assert_eq!(page.upto, end, "{scan:?}");
        }
        format!("{:?} of {}", page.documents.iter().map(show_document).collect::<Vec<_>>(), page.head)
    }

    async fn take_over(&mut self, slot: u8) -> String {
        let present = self.store().ledger.next_epoch().await.expect("an epoch is given");
        let former = self.owners.get(&slot).map_or(0, |owners| owners.present);
        assert!(present > former, "epochs grow");
        self.owners.insert(slot, Owners { present, former });
        self.open(slot, present).await
    }

    async fn open(&self, slot: u8, epoch: u64) -> String {
        let feeds: Vec<FeedId> = (0..4).map(|lane| self.feed(slot, lane)).collect();
        told(self.store().ledger.open(&feeds, epoch).await, |mut opened| {
            opened.sort_by_key(|opened| opened.feed);
            format!("{:?}", opened.into_iter().map(show_opened).collect::<Vec<_>>())
        })
    }

    async fn write(&self, slot: u8, lane: u8, late: bool, record: &Record) -> String {
        let Some(owners) = self.owners.get(&slot) else { return "nobody opened it".to_owned() };
        let epoch = if late { owners.former } else { owners.present };
        let write = FeedWrite { feed: self.feed(slot, lane), epoch, record: Record::clone(record) };
        told(self.store().ledger.write(vec![write]).await, |answers| {
            answers.into_iter().map(|answer| told(answer, |()| "written".to_owned())).collect()
        })
    }

    fn store(&self) -> Store {
        self.stage.as_ref().expect("it is there between operations").store.clone()
    }

    fn number(&self, kind: EntityKind, slot: u8) -> u64 {
        self.slots.get(&(kind, slot)).map_or(NOBODY, |entity| entity.number)
    }

    fn lane(&self, at: Place) -> LaneId {
        LaneId { resource: ResourceNumber(self.number(EntityKind::Resource, at.slot)), index: at.lane }
    }

    fn feed(&self, slot: u8, lane: u8) -> FeedId {
        let subscription = SubscriptionNumber(self.number(EntityKind::Subscription, slot));
        FeedId { subscription, lane }
    }

    fn as_write(&self, change: &Change) -> Write {
        let revision = change.revision.map(Revision::Integer);
        let intent = match revision {
            Some(revision) if !change.delete => {
                Intent::Put { revision, content: vec![b'x'; change.size].into() }
            }
            revision => Intent::Delete { revision },
        };
        let at = Timestamp::from_millis(change.moment);
        Write { lane: self.lane(change.at), url: Arc::from(name(change.url)), intent, at, routed_by: NEWEST }
    }
}

fn name(url: u8) -> String {
    format!("http://h/{url}")
}

fn texts(keys: &[u8]) -> Vec<String> {
    keys.iter().map(|key| format!("key {key}")).collect()
}

/// Of an error, only the kind: which of several conflicts is named is the engine's choice.
fn told<T>(result: Result<T>, show: impl FnOnce(T) -> String) -> String {
    match result {
        Ok(value) => show(value),
        Err(error) => format!("{:?}", error.kind),
    }
}
