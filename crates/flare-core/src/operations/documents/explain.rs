//! Explain: one document and one subscription come in; everything known about the two is gathered, and goes out as
//! a verdict with its facts.

use flare_model::access::Caller;
use flare_model::document::Document;
use flare_model::explain::{Candidate, Evidence, Explanation, Lately, explain};
use flare_model::ids::SubscriptionId;
use flare_model::invalid::Invalid;
use flare_model::resource::Resource;
use flare_model::subscription::Disabled;
use flare_model::url::DocumentUrl;

use crate::journey::Decision;
use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;
use crate::operations::documents::known::{Seen, known, settings};

impl App {
    /// Why a client was or was not told about a document.
    pub async fn explain(&self, by: &Caller, document: &str, id: &SubscriptionId) -> Done<Explanation> {
        let subscription = self.registry.subscription_for(by, id);
        let subscription =
            subscription.ok_or_else(|| Failure::NotFound(format!("there is no subscription {id}")))?;
        let resource = &subscription.compiled.resource;
        let key = document_key(resource, document)?;
        // Other resources are told of to whom they are there for.
        let sees = |other: &Resource| other.number == resource.number || by.sees(other);
        let (owner, fitting) = match &key {
            DocumentKey::Url(url) => {
                let owner = self.registry.find(&resource.account, url).filter(|owner| sees(owner));
                (owner, self.registry.fitting(&resource.account, url))
            }
            DocumentKey::Name(_) => (Some(resource.clone()), Vec::new()),
        };
        let fitting = fitting.into_iter().filter(|fits| sees(fits));
        let others = fitting.filter(|fits| owner.as_ref().is_none_or(|owner| owner.number != fits.number));
        let lane = resource.lane_of(key.as_str());
        let document = match owner.as_ref().is_some_and(|owner| owner.number == resource.number) {
            true => self.store.documents.get(lane, key.as_str()).await?,
            false => None,
        };
        let documents: Vec<Document> = document.into_iter().collect();
        let (mut seen, condition) = self.look_at(&subscription, &documents).await?;
        let seen = seen.pop().flatten();
        let mut settings = settings(&subscription);
        if let (None, Some(Decision { reason, at })) =
            (&settings.disabled, self.decision(&subscription).await)
        {
            settings.disabled = Some(Disabled { since: at, reason, start_over: false });
        }
        let (glimpse, filter, when, lately) = match seen {
            Some(Seen { glimpse, filter, when, lately, .. }) => (Some(glimpse), filter, when, lately),
            None => (None, None, None, Lately::default()),
        };
        Ok(explain(&Evidence {
            now: self.clock.now(),
            url: key.as_str().to_owned(),
            resource: resource.id().clone(),
            owner: owner.as_deref().map(pattern),
            fitting: others.map(|other| pattern(&other)).collect(),
            document: documents.first().map(known),
            filter,
            when,
            glimpse,
            lately,
            subscription: settings,
            condition,
        }))
    }

    /// The url of a document in a query, checked.
    pub fn document_url(&self, text: &str) -> Done<DocumentUrl> {
        Ok(DocumentUrl::parse(text).map_err(|e| Invalid::new("document", e))?)
    }
}

/// What a document is kept under.
pub(in crate::operations) enum DocumentKey {
    /// The url of a document of a resource, normalised.
    Url(DocumentUrl),
    /// The name of a document of a consumer.
    Name(String),
}

impl DocumentKey {
    /// As it is kept.
    pub(in crate::operations) fn as_str(&self) -> &str {
        match self {
            DocumentKey::Url(url) => url.as_str(),
            DocumentKey::Name(name) => name,
        }
    }
}

/// A document of a resource or consumer as somebody wrote it, checked.
pub(in crate::operations) fn document_key(resource: &Resource, text: &str) -> Result<DocumentKey, Invalid> {
    match resource.consumer() {
        Some(_) => Ok(DocumentKey::Name(text.to_owned())),
        None => DocumentUrl::parse(text).map(DocumentKey::Url).map_err(|e| Invalid::new("document", e)),
    }
}

fn pattern(resource: &Resource) -> Candidate {
    Candidate { id: resource.id().clone(), endpoint: resource.view.endpoint.clone() }
}
