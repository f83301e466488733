//! Looking for documents: the beginning of a url comes in, documents go out, those that changed last first.
//!
//! The log is ordered by change, so it is walked backwards in windows of so many changes of each lane. A search looks
//! for a bounded time and says where to go on: with a million documents a rare beginning takes several pages. A page
//! that is full in the middle of a window says after which document of it to go on. A document that changes meanwhile
//! moves to the front; what was not yet looked at is never left out.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use flare_model::access::Caller;
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
    /// Where an earlier page ended.
    pub after: SearchPlace,
    /// At most so many.
    pub limit: usize,
}

/// Where a page of a search ended: what `next` says and `after` takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SearchPlace {
    /// Windows that were looked at.
    window: u64,
    /// The last document that was shown of the window after them.
    last: Option<Order>,
}

/// Where a document stands in its window: those that changed last come first. Each has a place of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    updated_at: i64,
    resource: u64,
    lane: u8,
    seq: u64,
}

impl fmt::Display for SearchPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.window)?;
        match self.last {
            None => Ok(()),
            Some(Order { updated_at, resource, lane, seq }) => {
                write!(f, ".{updated_at}.{resource}.{lane}.{seq}")
            }
        }
    }
}

impl FromStr for SearchPlace {
    type Err = ();

    fn from_str(text: &str) -> Result<SearchPlace, ()> {
        fn number<T: FromStr>(text: Option<&str>) -> Result<T, ()> {
            text.ok_or(())?.parse().map_err(|_| ())
        }
        let mut parts = text.split('.');
        let window = number(parts.next())?;
        let last = match parts.next() {
            None => None,
            updated_at => Some(Order {
                updated_at: number(updated_at)?,
                resource: number(parts.next())?,
                lane: number(parts.next())?,
                seq: number(parts.next())?,
            }),
        };
        if parts.next().is_some() { Err(()) } else { Ok(SearchPlace { window, last }) }
    }
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
    /// Where to go on, unless this was the end.
    pub next: Option<SearchPlace>,
}

impl App {
    /// Documents whose url begins so.
    pub async fn search(&self, by: &Caller, query: SearchQuery) -> Done<SearchPage> {
        let lanes = self.lanes_to_search(by, &query).await?;
        let deepest = lanes.iter().map(|lane| lane.head.0.div_ceil(WINDOW)).max().unwrap_or(0);
        let (began, SearchPlace { mut window, mut last }) = (self.clock.monotonic(), query.after);
        let mut documents = Vec::new();
        while window < deepest && documents.len() < query.limit {
            if window > query.after.window && self.clock.monotonic().saturating_sub(began) > PATIENCE {
                break;
            }
            let mut found = Vec::new();
            for lane in &lanes {
                self.search_window(lane, window, &query.prefix, &mut found).await?;
            }
            // Those before it were on the page before; the window may have moved on since, its documents have not.
            found.retain(|(order, _)| last.is_none_or(|last| *order < last));
            found.sort_unstable_by_key(|(order, _)| std::cmp::Reverse(*order));
            let room = query.limit - documents.len();
            let rest = found.len() > room;
            found.truncate(room);
            last = if rest { found.last().map(|(order, _)| *order).or(last) } else { None };
            documents.extend(found.into_iter().map(|(_, document)| document));
            if rest {
                break;
            }
            window += 1;
        }
        Ok(SearchPage { documents, next: (window < deepest).then_some(SearchPlace { window, last }) })
    }

    async fn search_window(
        &self,
        lane: &LaneState,
        window: u64,
        prefix: &str,
        found: &mut Vec<(Order, FoundView)>,
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
            found.extend(fitting.map(|document| (Order::of(&document), FoundView::from(document))));
        }
        Ok(())
    }

    async fn lanes_to_search(&self, by: &Caller, query: &SearchQuery) -> Done<Vec<LaneState>> {
        let may_fit = |resource: &Resource| {
            if resource.consumer().is_some() {
                return true;
            }
            let endpoint = &resource.view.endpoint;
            let fixed = endpoint.split('{').next().unwrap_or(endpoint);
            fixed.starts_with(&query.prefix) || query.prefix.starts_with(fixed)
        };
        let wanted = match &query.resource {
            Some(id) => vec![self.registry.tracked(id).ok_or_else(|| unknown_resource(id))?],
            None => self.registry.resources_for(by, 0, usize::MAX).entries,
        };
        let wanted = wanted.iter().filter(|resource| by.sees_whole(resource) && may_fit(resource));
        let numbers: Vec<_> = wanted.map(|resource| resource.number).collect();
        let lanes = self.store.documents.lanes().await?.into_iter();
        Ok(lanes.filter(|lane| numbers.contains(&lane.lane.resource)).take(LANES).collect())
    }
}

impl Order {
    fn of(document: &Document) -> Order {
        Order {
            updated_at: document.updated_at.millis(),
            resource: document.lane.resource.0,
            lane: document.lane.index,
            seq: document.row.seq.0,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_is_written() {
        let last = Order { updated_at: -5, resource: 7, lane: 3, seq: 99 };
        for place in [SearchPlace::default(), SearchPlace { window: 4, last: Some(last) }] {
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for text in ["", "x", "1.2", "1.2.3.4.5.6", "1.2.3.400.5", "-1"] {
            assert_eq!(text.parse::<SearchPlace>(), Err(()), "{text}");
        }
    }
}
