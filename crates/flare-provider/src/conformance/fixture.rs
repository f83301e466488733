//! What the behaviours are written with: short ways to make entities, writes and records, and to read a store
//! whole. Everything here panics where a store does not answer, since a behaviour then has nothing to show.

use std::sync::Arc;

use bytes::Bytes;
use flare_model::document::{Document, Intent, Outcome, Row, Write};
use flare_model::feed::{Record, Saved, Standing};
use flare_model::ids::{FeedId, LaneId, Ordinal, ResourceNumber, Seq, SubscriptionNumber};
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use parking_lot::Mutex;

use super::{Factory, Instance};
use crate::catalog::{Entity, EntityKind, NewEntity, Start};
use crate::documents::{Changed, LaneState, Newest, ScanLane, Witness};
use crate::error::{ErrorKind, Result};
use crate::ledger::{FeedWrite, Opened};
use crate::{Conflict, Store};

/// When everything in the suite is accepted, unless it says otherwise.
pub const NOW: Timestamp = Timestamp::from_millis(1_767_323_045_678);

/// By what writes of the suite are routed, unless it says otherwise: no catalog is newer.
pub const NEWEST: u64 = u64::MAX;

/// A store and the engine it belongs to.
pub struct Stage {
    /// The engine through its contracts.
    pub store: Store,
    instance: Box<dyn Instance>,
}

impl Stage {
    /// An empty store.
    pub async fn fresh(factory: &dyn Factory) -> Stage {
        Stage::of(factory.fresh().await)
    }

    /// The same store in another process.
    pub async fn crash(self) -> Stage {
        let Stage { store, instance } = self;
        drop(store);
        Stage::of(instance.crash_and_reopen().await)
    }

    /// Another process on the same store; `None` where the engine is for one at a time.
    pub async fn join(&self) -> Option<Stage> {
        self.instance.join().await.map(Stage::of)
    }

    fn of(instance: Box<dyn Instance>) -> Stage {
        Stage { store: instance.store(), instance }
    }

    /// Creates a resource without keys.
    pub async fn resource(&self, id: &str, lanes: u16) -> Entity {
        self.create(resource(id, lanes)).await
    }

    /// Creates a subscription without keys.
    pub async fn subscription(&self, id: &str, parent: &str, start: Start) -> Entity {
        self.create(NewEntity { start, ..subscription(id, parent) }).await
    }

    /// Creates an entity that nothing stands against.
    pub async fn create(&self, new: NewEntity) -> Entity {
        self.store.catalog.create(new).await.expect("nothing stands against it")
    }

    /// Deletes an entity that is there.
    pub async fn delete(&self, entity: &Entity) {
        let deleted = self.store.catalog.delete(entity.kind, &entity.id).await;
        assert!(deleted.expect("nothing stands against it"), "{} was there", entity.id);
    }

    /// Commits writes to lanes that exist.
    pub async fn commit(&self, batch: Vec<Write>) -> Vec<Outcome> {
        let answers = self.store.documents.commit(batch).await.expect("the log takes it");
        answers.into_iter().map(|answer| answer.expect("the lane exists").outcome).collect()
    }

    /// A document that is known, be it a tombstone.
    pub async fn document(&self, lane: LaneId, url: &str) -> Document {
        self.store.documents.get(lane, url).await.expect("the log is read").expect("the document is known")
    }

    /// All documents of a lane in the order of their changes, read in small pages.
    pub async fn scan(&self, lane: LaneId) -> Vec<Document> {
        let mut all = Vec::new();
        let mut after = Seq(0);
        loop {
            let scan = ScanLane { lane, after, upto: Seq(u64::MAX), rows: 100, bytes: 1 << 20 };
            let page = self.store.documents.scan(scan).await.expect("the log is read");
            all.extend(page.documents);
            if page.upto >= page.head {
                return all;
            }
            assert!(page.upto > after, "a page that is not the last leads on");
            after = page.upto;
        }
    }

    /// The state of one lane, if it exists.
    pub async fn lane_state(&self, lane: LaneId) -> Option<LaneState> {
        let lanes = self.store.documents.lanes().await.expect("the log is read");
        lanes.into_iter().find(|state| state.lane == lane)
    }

    /// Opens a feed that exists.
    pub async fn open(&self, feed: FeedId, epoch: u64) -> Opened {
        let opened = self.store.ledger.open(&[feed], epoch).await.expect("nobody has a higher epoch");
        opened.into_iter().next().expect("the feed exists")
    }

    /// What a feed has, as a new owner finds it.
    pub async fn saved(&self, feed: FeedId) -> Saved {
        let epoch = self.epoch().await;
        self.open(feed, epoch).await.saved
    }

    /// Opens a feed for the first time in a behaviour, and answers the epoch to write it with.
    pub async fn own(&self, feed: FeedId) -> u64 {
        let epoch = self.epoch().await;
        self.open(feed, epoch).await;
        epoch
    }

    /// A new epoch.
    pub async fn epoch(&self) -> u64 {
        self.store.ledger.next_epoch().await.expect("the ledger answers")
    }

    /// Writes one record, and answers what became of it.
    pub async fn try_write(&self, feed: FeedId, epoch: u64, record: Record) -> Result<()> {
        let answers = self.store.ledger.write(vec![FeedWrite { feed, epoch, record }]).await;
        answers.expect("the ledger takes it").pop().expect("an answer per record")
    }

    /// Writes one record of a feed that this epoch owns.
    pub async fn write(&self, feed: FeedId, epoch: u64, record: Record) {
        self.try_write(feed, epoch, record).await.expect("the epoch owns the feed");
    }

    /// One standing.
    pub async fn standing(&self, feed: FeedId, ordinal: u64) -> Option<Standing> {
        self.store.ledger.standing(feed, Ordinal(ordinal)).await.expect("the ledger answers")
    }
}

/// A resource to create.
pub fn resource(id: &str, lanes: u16) -> NewEntity {
    NewEntity {
        kind: EntityKind::Resource,
        id: id.to_owned(),
        parent: None,
        keys: Vec::new(),
        body: format!("the body of {id}"),
        lanes,
        start: Start::Now,
        history: false,
        capture: None,
    }
}

/// A subscription to create.
pub fn subscription(id: &str, parent: &str) -> NewEntity {
    let parent = Some(parent.to_owned());
    NewEntity { kind: EntityKind::Subscription, parent, ..resource(id, 0) }
}

/// The same with keys.
pub fn with_keys(new: NewEntity, keys: &[&str]) -> NewEntity {
    NewEntity { keys: keys.iter().map(|key| (*key).to_owned()).collect(), ..new }
}

/// A lane of a resource.
pub fn lane(resource: &Entity, index: u8) -> LaneId {
    LaneId { resource: ResourceNumber(resource.number), index }
}

/// A feed of a subscription.
pub fn feed(subscription: &Entity, lane: u8) -> FeedId {
    FeedId { subscription: SubscriptionNumber(subscription.number), lane }
}

/// A PUT with an integer revision; the content tells the url and the revision.
pub fn put(lane: LaneId, url: &str, revision: i64) -> Write {
    put_content(lane, url, revision, content(url, revision))
}

/// The content of [`put`].
pub fn content(url: &str, revision: i64) -> Bytes {
    Bytes::from(format!(r#"{{"url":"{url}","revision":{revision}}}"#))
}

/// A PUT with this content.
pub fn put_content(lane: LaneId, url: &str, revision: i64, content: Bytes) -> Write {
    let intent = Intent::Put { revision: Revision::Integer(revision), content };
    Write { lane, url: Arc::from(url), intent, at: NOW, routed_by: NEWEST }
}

/// A DELETE.
pub fn delete(lane: LaneId, url: &str, revision: Option<i64>) -> Write {
    let intent = Intent::Delete { revision: revision.map(Revision::Integer) };
    Write { lane, url: Arc::from(url), intent, at: NOW, routed_by: NEWEST }
}

/// Ordinals by their numbers.
pub fn ordinals(numbers: &[u64]) -> Vec<Ordinal> {
    numbers.iter().copied().map(Ordinal).collect()
}

/// Which conflict it is, and that it is one.
pub fn conflict<T: std::fmt::Debug>(result: Result<T>) -> Conflict {
    let error = result.expect_err("a conflict");
    let ErrorKind::Conflict(conflict) = error.kind else { panic!("no conflict: {error}") };
    conflict
}

/// Somebody has the id or the key.
pub fn taken(id: &str) -> Conflict {
    Conflict::Taken(id.into())
}

/// That this is fenced.
pub fn assert_fenced<T: std::fmt::Debug>(result: Result<T>) {
    let error = result.expect_err("an old epoch");
    assert_eq!(error.kind, ErrorKind::Fenced, "{error}");
}

/// A witness that remembers. Bound: the changes of one behaviour.
#[derive(Default)]
pub struct Recorder {
    heard: Mutex<Vec<Changed>>,
}

impl Recorder {
    /// One that hears of every change of the store from now on.
    pub fn over(store: &Store) -> Arc<Recorder> {
        let recorder = Arc::new(Recorder::default());
        store.documents.watch(recorder.clone());
        recorder
    }

    /// All that was heard of a lane so far, in the order in which it was.
    pub fn heard(&self, lane: LaneId) -> Vec<Document> {
        let heard = self.heard.lock();
        let documents = heard.iter().map(|changed| &changed.document);
        documents.filter(|document| document.lane == lane).cloned().collect()
    }

    /// Of each change of a lane that was heard the head before it, and its own seq.
    pub fn heads(&self, lane: LaneId) -> Vec<(Seq, Seq)> {
        let heard = self.heard.lock();
        let own = heard.iter().filter(|changed| changed.document.lane == lane);
        own.map(|changed| (changed.head_before(), changed.document.row.seq)).collect()
    }

    /// Which changes of a lane are the newest of their documents, by what was heard: each takes the place of the one
    /// that it says it does.
    pub fn newest(&self, lane: LaneId) -> Newest {
        let mut newest = Newest::default();
        let heard = self.heard.lock();
        for Changed { document, replaced } in heard.iter().filter(|changed| changed.document.lane == lane) {
            let Row { seq, deleted, .. } = document.row;
            let known = newest.seqs.remove(replaced.0);
            assert_eq!(known, *replaced != Seq(0), "{seq} takes the place of one that is there");
            newest.tombstones.remove(replaced.0);
            newest.seqs.insert(seq.0);
            if deleted {
                newest.tombstones.insert(seq.0);
            }
        }
        newest
    }
}

impl Witness for Recorder {
    fn committed(&self, changes: Vec<Changed>) {
        self.heard.lock().extend(changes);
    }
}
