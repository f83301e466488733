//! An endpoint that is asked again and again: what it says changed becomes documents. `ETag` and `Last-Modified` are part of the
//! position, and so durable; an answer 304 costs nothing. What an endpoint says is a state: a document that is as it was is not fed.

mod fetch;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flare_model::bridge::HttpPollSource;
use flare_model::consumer::{Condition, Understood};
use flare_model::ids::{Seq, url_hash};
use flare_model::resource::Resource;
use flare_model::retry::parse_retry_after;
use flare_model::revision::Revision;
use flare_provider::{ProviderError, ScanLane};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

use super::reading::Ended;
use super::unit::{Became, Incoming, Stopped, Unit};
use super::{Tools, backoff};
use fetch::{Fetched, NotFetched};

/// How long to wait after a failure, at first and at most; an interval that is longer is longer.
const FIRST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(300);

/// So many documents are stored at once.
const CHUNK: usize = 500;

/// An endpoint that is polled.
pub struct Poll {
    /// What it takes.
    pub tools: Arc<Tools>,
    /// The consumer.
    pub resource: Arc<Resource>,
    /// Where, and how often.
    pub settings: HttpPollSource,
    /// Cancelled when it is to stop.
    pub stop: CancellationToken,
}

/// What came of looking through an answer.
#[derive(Default)]
struct Looked {
    /// The names of those that can be read.
    names: BTreeSet<String>,
    /// What is to be stored.
    changed: Vec<Incoming>,
    /// Those that cannot be read: all of them, how many are among what is to be stored, and how many are left out.
    unreadable: Vec<Bytes>,
    tried: usize,
    left_out: usize,
}

/// What an endpoint said of what it last answered: the position of a poll.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Validators {
    #[serde(skip_serializing_if = "Option::is_none")]
    etag: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_modified: Option<String>,
    /// What was asked for and how it was read: of something else they say nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    of: Option<String>,
}

/// What came of a turn.
enum Turn {
    Done,
    /// Something is to be tried again after this, at the earliest.
    Again(Duration),
    Failed(Condition, String, Option<Duration>),
    Fenced,
    /// It was told to stop.
    Told,
}

impl Poll {
    /// Asks until it is told to stop. It stops between two turns, and lets go of a request under way.
    pub async fn run(self, mut unit: Unit) -> Ended {
        let (mut failures, of) = (0, self.question());
        unit.says_again = true;
        loop {
            let known = validators(&unit).filter(|known| known.of == of).unwrap_or_default();
            let turn = tokio::select! {
                biased;
                () = self.stop.cancelled() => return Ended::Told,
                fetched = fetch::fetch(&self.tools, &self.settings, &known) => fetched,
            };
            let turn = match turn {
                Ok(None) => Turn::Done,
                Ok(Some(mut fetched)) => {
                    fetched.validators.of.clone_from(&of);
                    // It reads, however long it takes to store what it read.
                    if unit.progress.condition == Condition::Preparing {
                        unit.turns(Condition::Active, None).await;
                    }
                    self.take_in(&mut unit, fetched).await
                }
                Err(NotFetched { condition, error, retry_after }) => {
                    let now = self.tools.clock.now().millis().div_euclid(1000);
                    let wait = retry_after.and_then(|text| parse_retry_after(&text, now));
                    Turn::Failed(condition, error, wait)
                }
            };
            let interval = self.settings.interval.0;
            // A tenth of it by chance: those who poll one host do not ask it all at once.
            let jittered = interval.mul_f64(0.95 + self.tools.chance.unit() / 10.0);
            let wait = match turn {
                Turn::Fenced => return Ended::Fenced,
                Turn::Told => return Ended::Told,
                Turn::Done => {
                    failures = 0;
                    unit.turns(Condition::Active, None).await;
                    jittered
                }
                Turn::Again(wait) => {
                    failures = 0;
                    unit.turns(Condition::Active, None).await;
                    jittered.min(wait)
                }
                Turn::Failed(condition, error, asked) => {
                    failures += 1;
                    unit.turns(condition, Some(error)).await;
                    let wait = backoff(failures, FIRST.max(interval), MOST.max(interval), &self.tools.chance);
                    asked.map_or(wait, |asked| asked.min(MOST).max(wait))
                }
            };
            tokio::select! {
                () = self.stop.cancelled() => return Ended::Told,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Stores what has changed. Validators are kept once all of it is stored: whatever comes between, it is asked for again.
    async fn take_in(&self, unit: &mut Unit, fetched: Fetched) -> Turn {
        let Fetched { items, validators } = fetched;
        let (mut looked, said) = (Looked::default(), items.len());
        for (place, item) in items.into_iter().enumerate() {
            if let Err(error) = self.look(unit, place, item, &mut looked).await {
                return store_failed(&error);
            }
        }
        let Looked { names, mut changed, unreadable, left_out, .. } = looked;
        if !self.resource.is_raw() {
            unit.progress.forget_unsaid(unreadable.iter().map(|item| &item[..]));
        }
        if left_out > 0 {
            unit.notes(format!("{left_out} documents of the answer cannot be read and are not kept, beside those that are dead letters"));
        }
        // Something that cannot be read may be any document: then none of them is missing.
        if self.settings.deletes && names.len() == said {
            match self.missing(unit, &names).await {
                // First, because they make room where an account may have so many documents.
                Ok(gone) => changed.splice(0..0, gone).for_each(drop),
                Err(error) => return store_failed(&error),
            }
        }
        let mut again: Option<Duration> = None;
        let mut left = &changed[..];
        while !left.is_empty() {
            let Some(allowed) = self.allowed(unit, left.len().min(CHUNK)).await else { return Turn::Told };
            let (chunk, rest) = left.split_at(allowed);
            left = rest;
            match unit.take_in(chunk, None).await {
                Ok(became) => {
                    let stored = became.iter().filter(|became| !matches!(became, Became::Again(_))).count();
                    unit.acknowledged(stored);
                    let waits = became.into_iter().filter_map(|became| match became {
                        Became::Again(wait) => Some(wait),
                        Became::Stored | Became::Dead => None,
                    });
                    again = waits.chain(again).min();
                }
                Err(stopped) => return not_stored(stopped),
            }
        }
        // What is to be tried again has to be answered again.
        let position = match again {
            Some(_) => Validators::default(),
            None => validators,
        };
        let position = serde_json::to_string(&position).expect("validators are plain data");
        if unit.progress.position.as_ref() != Some(&position) {
            match unit.take_in(&[], Some(position)).await {
                Ok(_) => {}
                Err(stopped) => return not_stored(stopped),
            }
        }
        again.map_or(Turn::Done, Turn::Again)
    }

    /// How many of so many documents may be stored: it waits until some may. None: it was told to stop.
    async fn allowed(&self, unit: &Unit, wanted: usize) -> Option<usize> {
        loop {
            let wait = match unit.allowed(wanted) {
                Ok(allowed) => return Some(allowed.clamp(1, wanted)),
                Err(wait) => wait,
            };
            tokio::select! {
                () = self.stop.cancelled() => return None,
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Looks at a document of the answer. It is to be stored unless it is as it was.
    async fn look(
        &self,
        unit: &mut Unit,
        place: usize,
        item: Bytes,
        looked: &mut Looked,
    ) -> Result<(), ProviderError> {
        let settings = self.resource.consumer().expect("only consumers are read");
        let now = self.tools.clock.now();
        let mut incoming = Incoming {
            position: place.to_string(),
            order: 0,
            payload: item,
            given_out: None,
            understood: None,
        };
        if self.resource.is_raw() {
            // The whole answer is one message, and one that is as it was is none.
            let key = super::run::WHOLE;
            incoming.position = unit.progress.arrived.saturating_add(1).to_string();
            let same = self.stored(key).await?.is_some_and(|(content, _)| content == incoming.payload);
            looked.changed.extend((!same).then_some(incoming));
            return Ok(());
        }
        let Ok(understood) = settings.reader.understand(&incoming.payload) else {
            looked.unreadable.push(incoming.payload.clone());
            if unit.progress.is_given_up(&incoming.payload) {
                return Ok(());
            }
            match unit.progress.may_try(looked.tried) {
                true => {
                    looked.tried += 1;
                    looked.changed.push(incoming);
                }
                false => looked.left_out += 1,
            }
            return Ok(());
        };
        looked.names.insert(understood.name.clone());
        if settings.reader.goes_by_arrival() {
            let same = self.stored(&understood.name).await?;
            if same.is_some_and(|(content, _)| content == incoming.payload) && !understood.is_delete {
                return Ok(());
            }
            incoming.order = unit.progress.arrive(now);
        }
        incoming.understood = Some(understood);
        looked.changed.push(incoming);
        Ok(())
    }

    /// A live document as it is stored.
    async fn stored(&self, name: &str) -> Result<Option<(Bytes, Revision)>, ProviderError> {
        let found = self.tools.store.documents.get(self.resource.lane_of(name), name).await?;
        let live = found.filter(|document| !document.row.deleted);
        Ok(live.map(|document| (document.content, document.revision)))
    }

    /// Those that are stored and not in a whole list: they were deleted.
    async fn missing(
        &self,
        unit: &mut Unit,
        names: &BTreeSet<String>,
    ) -> Result<Vec<Incoming>, ProviderError> {
        let mut gone = Vec::new();
        for lane in self.resource.lanes() {
            let mut after = Seq(0);
            loop {
                let scan = ScanLane { lane, after, upto: Seq(u64::MAX), rows: 1000, bytes: 8 << 20 };
                let page = self.tools.store.documents.scan(scan).await?;
                let live = page.documents.iter().filter(|document| !document.row.deleted);
                for document in live.filter(|document| !names.contains(&*document.url)) {
                    // Without a revision of its own the delete takes the document's.
                    let revision = match &document.revision {
                        Revision::Integer(_) if self.goes_by_arrival() => {
                            Revision::Integer(unit.progress.arrive(self.tools.clock.now()))
                        }
                        known => known.clone(),
                    };
                    let name = document.url.to_string();
                    gone.push(Incoming {
                        position: name.clone(),
                        order: 0,
                        payload: Bytes::new(),
                        given_out: None,
                        understood: Some(Understood { name, revision: Some(revision), is_delete: true }),
                    });
                }
                if page.upto >= page.head || page.upto <= after {
                    break;
                }
                after = page.upto;
            }
        }
        Ok(gone)
    }

    /// What is asked for and how it is read, as a short name.
    fn question(&self) -> Option<String> {
        let draft = &self.resource.consumer()?.draft;
        // Without its credentials: a position is shown.
        let asked = serde_json::to_string(&(draft.source.redacted(), &draft.payload)).ok()?;
        Some(format!("{:016x}", url_hash(&asked)))
    }

    fn goes_by_arrival(&self) -> bool {
        self.resource.consumer().is_some_and(|consumer| consumer.reader.goes_by_arrival())
    }
}

fn not_stored(stopped: Stopped) -> Turn {
    match stopped {
        Stopped::Fenced => Turn::Fenced,
        Stopped::Full(why) => Turn::Failed(Condition::Failing, why, None),
        Stopped::Store(error) => store_failed(&error),
    }
}

fn store_failed(error: &ProviderError) -> Turn {
    Turn::Failed(Condition::Failing, format!("the store does not take it: {}", error.detail), None)
}

fn validators(unit: &Unit) -> Option<Validators> {
    serde_json::from_str(unit.progress.position.as_deref()?).ok()
}
