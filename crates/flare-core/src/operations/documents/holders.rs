//! Who has a document: its url comes in, the subscriptions of its resource go out, a page at a time, each with what
//! its client has and why.

use std::sync::Arc;
use std::time::Duration;

use flare_model::access::Caller;
use flare_model::document::Document;
use flare_model::feed::ClientHas;
use flare_model::resource::Resource;
use flare_model::url::DocumentUrl;

use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;
use crate::operations::documents::known::settings;
use crate::registry::Subscription;

/// How long one page looks for clients that lag. When it is over: the page ends, and `next` says where to go on.
const PATIENCE: Duration = Duration::from_millis(100);

/// Which clients.
#[derive(Clone, Copy, Debug)]
pub struct HoldersQuery {
    /// Only those that are owed something about the document.
    pub lagging: bool,
    /// After so many subscriptions.
    pub offset: usize,
    /// At most so many.
    pub limit: usize,
}

/// One client and the document.
pub struct HolderView {
    /// The subscription.
    pub subscription: Arc<Subscription>,
    /// What its client has.
    pub client_has: ClientHas,
    /// In words.
    pub why: String,
}

/// A part of the list.
pub struct HoldersPage {
    /// How many subscriptions the resource has.
    pub total: usize,
    /// The part.
    pub entries: Vec<HolderView>,
    /// After how many to go on, unless this was the end.
    pub next: Option<usize>,
}

impl App {
    /// A document that Flare has or remembers the deletion of, and its resource.
    pub async fn document(&self, by: &Caller, url: &DocumentUrl) -> Done<(Arc<Resource>, Document)> {
        let unknown = || Failure::NotFound(format!("there is no document {url}"));
        let resource = self.registry.find_for(by, url).ok_or_else(unknown)?;
        let found = self.store.documents.get(resource.lane_of(url.as_str()), url.as_str()).await?;
        Ok((resource, found.ok_or_else(unknown)?))
    }

    /// Who has a document, and who lacks it.
    pub async fn holders(
        &self,
        resource: &Resource,
        document: &Document,
        query: HoldersQuery,
    ) -> Done<HoldersPage> {
        const BATCH: usize = 100;
        let began = self.clock.monotonic();
        let mut page = HoldersPage { total: 0, entries: Vec::new(), next: None };
        let mut at = query.offset;
        loop {
            let part = self.registry.subscriptions(resource.id(), at, BATCH);
            page.total = part.total;
            if part.entries.is_empty() {
                return Ok(page);
            }
            for subscription in part.entries {
                let late = self.clock.monotonic().saturating_sub(began) > PATIENCE;
                if page.entries.len() == query.limit || late && at > query.offset {
                    page.next = Some(at);
                    return Ok(page);
                }
                at += 1;
                let Some(holder) = self.holder(subscription, document, query.lagging).await? else {
                    continue;
                };
                page.entries.push(holder);
            }
        }
    }

    async fn holder(
        &self,
        subscription: Arc<Subscription>,
        document: &Document,
        lagging: bool,
    ) -> Done<Option<HolderView>> {
        if self.member.is_some() && !self.journey.serves_all(subscription.number()) {
            // Only the node that serves it knows.
            return Ok(None);
        }
        let (seen, condition) = match self.look_at(&subscription, std::slice::from_ref(document)).await {
            Ok((mut seen, condition)) => (seen.pop().flatten(), condition),
            // Deleted meanwhile: the list goes on without it.
            Err(Failure::NotFound(_)) => return Ok(None),
            Err(failure) => return Err(failure),
        };
        let seen = seen.filter(|seen| !lagging || seen.glimpse.lags());
        Ok(seen.map(|seen| HolderView {
            client_has: seen.client_has(),
            why: seen.why(&settings(&subscription), &condition),
            subscription,
        }))
    }
}
