//! A change on its way to the clients: one shared copy of the document, and the bodies made of it so far.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use flare_model::document::{Document, Row};
use flare_model::feed::Action;
use flare_model::filter::{Json, Unreadable};
use flare_wire::{Lines, Name};
use parking_lot::Mutex;

use crate::trace::Context;

/// A document as it was committed, shared by everyone who has to tell about it.
pub struct Change {
    /// The document.
    pub document: Document,
    superseded: AtomicBool,
    /// Bound: one entry for each action and body shape in use by the resource's subscriptions; when there are
    /// more shapes than [`KEPT_BODIES`], further bodies are built for each delivery.
    bodies: Mutex<Vec<(BodyKey, Bytes)>>,
    /// The document as expressions see it, made when the first one looks and shared by all. Bound: see
    /// [`Json`]; most often about as large as the document.
    json: OnceLock<Box<Result<Json, Unreadable>>>,
    texts: OnceLock<Texts>,
    /// The trace it belongs to, for a change that came from an origin in this life and is traced.
    trace: Option<Box<Context>>,
}

/// What every request says of a document, whoever it goes to; made by the first one and shared.
pub struct Texts {
    /// Its url and its revision, as headers. A revision may be any text the origin wrote: control characters, which
    /// cannot stand in a header, are percent-encoded there.
    pub lines: Lines,
    /// Its revision.
    pub revision: Box<str>,
}

/// Which body: the action and the shape's number (subscriptions with the same shape share it).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BodyKey {
    /// What is told.
    pub action: Action,
    /// The shape, as interned by the registry.
    pub shape: u64,
}

const FLARE_DOCUMENT: Name<'static> = Name::fixed("flare-document");
const FLARE_REVISION: Name<'static> = Name::fixed("flare-revision");

const KEPT_BODIES: usize = 8;

impl Change {
    /// Wraps a committed document.
    pub fn new(document: Document) -> Arc<Change> {
        Change::traced(document, None)
    }

    /// The same with the trace it belongs to.
    pub fn traced(document: Document, trace: Option<Box<Context>>) -> Arc<Change> {
        Arc::new(Change {
            document,
            superseded: AtomicBool::new(false),
            bodies: Mutex::new(Vec::new()),
            json: OnceLock::new(),
            texts: OnceLock::new(),
            trace,
        })
    }

    /// The trace it belongs to.
    #[inline]
    pub fn trace(&self) -> Option<&Context> {
        self.trace.as_deref()
    }

    /// The numbers that decide.
    pub fn row(&self) -> &Row {
        &self.document.row
    }

    /// A newer change of the same document is known.
    pub fn supersede(&self) {
        self.superseded.store(true, Ordering::Release);
    }

    /// Whether a newer change of the same document is known.
    pub fn is_superseded(&self) -> bool {
        self.superseded.load(Ordering::Acquire)
    }

    /// What it weighs in memory, about.
    pub fn weight(&self) -> usize {
        self.document.content.len() * 2 + self.document.url.len() + 256
    }

    /// The document as expressions see it; one without fields for a tombstone.
    pub fn json(&self) -> Result<&Json, Unreadable> {
        let made = self.json.get_or_init(|| {
            let document = &self.document;
            Box::new(match document.row.deleted {
                true => Ok(Json::nothing()),
                false => Json::new(document.content.clone()),
            })
        });
        made.as_ref().as_ref().map_err(Clone::clone)
    }

    /// What every request says of the document, which its resource calls by this name.
    pub fn texts(&self, name: &str) -> &Texts {
        self.texts.get_or_init(|| {
            let revision = self.document.revision.to_string();
            let lines = Lines::of_texts([(FLARE_DOCUMENT, name), (FLARE_REVISION, &revision)]);
            Texts { lines, revision: revision.into() }
        })
    }

    /// The body for a key, built once and shared.
    pub fn body(&self, key: BodyKey, build: impl FnOnce() -> Bytes) -> Bytes {
        let mut bodies = self.bodies.lock();
        if let Some((_, body)) = bodies.iter().find(|(known, _)| *known == key) {
            return body.clone();
        }
        let body = build();
        if bodies.len() < KEPT_BODIES {
            bodies.push((key, body.clone()));
        }
        body
    }
}
