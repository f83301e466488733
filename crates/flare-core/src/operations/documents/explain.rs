//! Explain: one document and one subscription come in; everything known about the two is gathered, and goes out as
//! a verdict with its facts.

use flare_model::document::Document;
use flare_model::explain::{Candidate, Evidence, Explanation, Known, Membership, Settings, explain};
use flare_model::filter::{Inputs, Json};
use flare_model::ids::{FeedId, SubscriptionId};
use flare_model::invalid::Invalid;
use flare_model::resource::Resource;
use flare_model::subscription::Disabled;
use flare_model::url::DocumentUrl;

use crate::journey::{Command, Decision, KnownOfDocuments};
use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;
use crate::registry::Subscription;

impl App {
    /// Why a client was or was not told about a document.
    pub async fn explain(&self, url: &DocumentUrl, id: &SubscriptionId) -> Done<Explanation> {
        let subscription = self.registry.subscription_by_id(id);
        let subscription =
            subscription.ok_or_else(|| Failure::NotFound(format!("there is no subscription {id}")))?;
        let resource = &subscription.compiled.resource;
        let owner = self.registry.find(url);
        let fitting = self.registry.fitting(url).into_iter();
        let others = fitting.filter(|fits| owner.as_ref().is_none_or(|owner| owner.number != fits.number));
        let lane = resource.lane_of(url.as_str());
        let document = match owner.as_ref().is_some_and(|owner| owner.number == resource.number) {
            true => self.store.documents.get(lane, url.as_str()).await?,
            false => None,
        };
        let rows = document.iter().map(|document| (lane.index, document.row)).collect();
        let KnownOfDocuments { mut glimpses, condition } = self.known_of(&subscription, rows).await?;
        let glimpse = glimpses.pop().flatten();
        let dead = match (&document, glimpse.as_ref().is_some_and(|glimpse| glimpse.dead)) {
            (Some(document), true) => {
                // Dead letters are not kept in memory: the ledger has to know what the thread knows.
                self.record(&subscription).await?;
                let feed = FeedId { subscription: subscription.number(), lane: lane.index };
                let standing = self.store.ledger.standing(feed, document.row.ordinal).await?;
                standing.and_then(|standing| standing.trouble).map(|trouble| *trouble)
            }
            _ => None,
        };
        let mut settings = settings(&subscription);
        if let (None, Some(Decision { reason, at })) =
            (&settings.disabled, self.decision(&subscription).await)
        {
            settings.disabled = Some(Disabled { since: at, reason, start_over: false });
        }
        Ok(explain(&Evidence {
            now: self.clock.now(),
            url: url.as_str().to_owned(),
            resource: resource.id().clone(),
            owner: owner.as_deref().map(pattern),
            fitting: others.map(|other| pattern(&other)).collect(),
            document: document.as_ref().map(known),
            membership: document.as_ref().and_then(|document| membership(&subscription, document)),
            glimpse,
            dead,
            subscription: settings,
            condition,
        }))
    }

    /// The url of a document in a query, checked.
    pub fn document_url(&self, text: &str) -> Done<DocumentUrl> {
        Ok(DocumentUrl::parse(text).map_err(|e| Invalid::new("document", e))?)
    }

    /// What the thread of a subscription knows of some documents, by lane.
    pub(in crate::operations) async fn known_of(
        &self,
        subscription: &Subscription,
        rows: Vec<(u8, flare_model::document::Row)>,
    ) -> Done<KnownOfDocuments> {
        let number = subscription.number();
        let examined = self.journey.ask(number, |reply| Command::KnownOf(number, rows.clone(), reply)).await;
        examined.flatten().ok_or_else(|| self.left(subscription))
    }
}

fn pattern(resource: &Resource) -> Candidate {
    Candidate { id: resource.id().clone(), endpoint: resource.view.endpoint.clone() }
}

/// What the filter of a subscription says of a document as it is now.
pub(in crate::operations) fn membership(
    subscription: &Subscription,
    document: &Document,
) -> Option<Membership> {
    let filter = subscription.compiled.spec.filter.as_ref().filter(|_| !document.row.deleted)?;
    let resource = &subscription.compiled.resource;
    let names = resource.pattern.wildcards().iter().map(String::as_str);
    let wildcards: Vec<(&str, &str)> = names.zip(resource.values(&document.url)).collect();
    let json = match Json::new(document.content.clone()) {
        Ok(json) => json,
        Err(error) => return Some(Membership::Unclear(error.to_string())),
    };
    let inputs = Inputs {
        document: &json,
        revision: &document.revision,
        wildcards: &wildcards,
        action: None,
        state: None,
    };
    Some(match filter.decide(&inputs) {
        Ok(true) => Membership::Included,
        Ok(false) => Membership::Excluded,
        Err(error) => Membership::Unclear(error.to_string()),
    })
}

/// What an explanation needs of a document.
pub(in crate::operations) fn known(document: &Document) -> Known {
    Known {
        revision: document.revision.clone(),
        row: document.row,
        lane: document.lane.index,
        updated_at: document.updated_at,
    }
}

/// What an explanation needs of a subscription.
pub(in crate::operations) fn settings(subscription: &Subscription) -> Settings {
    let stored = &subscription.stored;
    Settings {
        created_at: stored.created_at,
        start: subscription.compiled.spec.start,
        paused_since: stored.paused_since,
        disabled: stored.disabled.clone(),
        rate_limit: subscription.compiled.spec.rate_limit,
    }
}
