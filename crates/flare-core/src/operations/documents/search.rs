//! Looking for documents: the beginning of a url comes in, documents go out, those that changed last first.
//!
//! The log is ordered by change, so it is walked backwards in windows of so many changes of each lane. A search looks
//! for a bounded time and says where to go on: with a million documents a rare beginning takes several pages. A
//! document that changes meanwhile moves to the front; what was not yet looked at is never left out.

use std::sync::Arc;
use std::time::Duration;

use flare_model::document::Document;
use flare_model::ids::{ResourceId, Seq};
use flare_model::resource::Resource;
use flare_model::revision::Revision;
use flare_model::time::Timestamp;
use flare_provider::{LaneState, ScanLane};

use crate::operations::App;
use crate::operations::Done;
use crate::operations::unknown_resource;

/// Changes of each lane in a window.
const WINDOW: u64 = 32;
/// Contents are read with the documents: no more than this of a lane at once.
const WINDOW_BYTES: usize = 1 << 20;
/// How long one page looks. When it is over: the page ends, and `next` says where to go on.
const PATIENCE: Duration = Duration::from_millis(100);
/// Lanes walked side by side. When there are more: the first are.
const LANES: usize = 256;

/// What to look for.
#[derive(Clone, Debug)]
pub struct SearchQuery {
    /// Only documents of this resource.
    pub resource: Option<ResourceId>,
    /// How their urls begin.
    pub prefix: String,
    /// Windows that earlier pages looked at.
    pub skip: u64,
    /// About so many: what is found in one window comes whole.
    pub limit: usize,
}

/// A document that was found.
pub struct FoundView {
    /// Its url.
    pub document: Arc<str>,
    /// As the origin wrote it.
    pub revision: Revision,
    /// When Flare accepted the last change.
    pub updated_at: Timestamp,
    /// Whether it is a tombstone.
    pub deleted: bool,
}

/// A part of what there is.
pub struct SearchPage {
    /// The documents, those that changed last first within a window.
    pub documents: Vec<FoundView>,
    /// Windows looked at by now, unless this was the end.
    pub next: Option<u64>,
}

impl App {
    /// Documents whose url begins so.
    pub async fn search(&self, query: SearchQuery) -> Done<SearchPage> {
        let lanes = self.lanes_to_search(&query).await?;
        let deepest = lanes.iter().map(|lane| lane.head.0.div_ceil(WINDOW)).max().unwrap_or(0);
        let (began, mut window) = (self.clock.monotonic(), query.skip);
        let mut documents = Vec::new();
        while window < deepest && documents.len() < query.limit {
            if window > query.skip && self.clock.monotonic().saturating_sub(began) > PATIENCE {
                break;
            }
            let mut found = Vec::new();
            for lane in &lanes {
                self.search_window(lane, window, &query.prefix, &mut found).await?;
            }
            found.sort_by_key(|document| std::cmp::Reverse(document.updated_at));
            documents.extend(found);
            window += 1;
        }
        Ok(SearchPage { documents, next: (window < deepest).then_some(window) })
    }

    async fn search_window(
        &self,
        lane: &LaneState,
        window: u64,
        prefix: &str,
        found: &mut Vec<FoundView>,
    ) -> Done<()> {
        let upto = lane.head.0.saturating_sub(window.saturating_mul(WINDOW));
        let mut after = upto.saturating_sub(WINDOW);
        while after < upto {
            let scan = ScanLane {
                lane: lane.lane,
                after: Seq(after),
                upto: Seq(upto),
                rows: WINDOW as usize,
                bytes: WINDOW_BYTES,
            };
            let page = self.store.documents.scan(scan).await?;
            after = page.upto.0.max(after + 1);
            let fitting = page.documents.into_iter().filter(|document| document.url.starts_with(prefix));
            found.extend(fitting.map(FoundView::from));
        }
        Ok(())
    }

    async fn lanes_to_search(&self, query: &SearchQuery) -> Done<Vec<LaneState>> {
        let may_fit = |resource: &Resource| {
            let endpoint = &resource.view.endpoint;
            let fixed = endpoint.split('{').next().unwrap_or(endpoint);
            fixed.starts_with(&query.prefix) || query.prefix.starts_with(fixed)
        };
        let wanted = match &query.resource {
            Some(id) => vec![self.registry.resource(id).ok_or_else(|| unknown_resource(id))?],
            None => self.registry.resources(0, usize::MAX).entries,
        };
        let numbers: Vec<_> =
            wanted.iter().filter(|resource| may_fit(resource)).map(|resource| resource.number).collect();
        let lanes = self.store.documents.lanes().await?.into_iter();
        Ok(lanes.filter(|lane| numbers.contains(&lane.lane.resource)).take(LANES).collect())
    }
}

impl From<Document> for FoundView {
    fn from(document: Document) -> FoundView {
        FoundView {
            document: document.url,
            revision: document.revision,
            updated_at: document.updated_at,
            deleted: document.row.deleted,
        }
    }
}
