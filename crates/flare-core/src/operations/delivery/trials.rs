//! A test: a sample notification, or one about a real document, is sent to a client now, and nothing changes.

use std::sync::Arc;

use bytes::Bytes;
use flare_model::document::{Document, Row};
use flare_model::feed::{Action, Attempt};
use flare_model::ids::{Ordinal, ResourceId, Seq, SubscriptionId};
use flare_model::invalid::Invalid;
use flare_model::layout::rfc3339;
use flare_model::resource::Resource;
use flare_model::revision::{Date, Revision};
use flare_model::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::journey::Trial;
use crate::notification::change::Change;
use crate::observe::{Exchange, Outcome, RequestView, ResponseView, Timing};
use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;
use crate::operations::documents::explain::{DocumentKey, document_key};

/// `POST .../test`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct TestDraft {
    /// About this document, as it is; without it about one that is made up.
    #[schemars(extend("format" = "document-url"))]
    pub document: Option<String>,
    /// What to tell; without it what would be told.
    pub action: Option<Action>,
}

/// How a test went.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "TestResult")]
pub struct TestView {
    /// How it ended.
    pub outcome: Outcome,
    /// About which document.
    pub document: String,
    /// What was told.
    pub action: Action,
    /// The notification's id.
    pub webhook_id: String,
    /// When it began.
    pub began_at: Timestamp,
    /// How long its parts took.
    pub timing: Timing,
    /// What was sent.
    pub request: RequestView,
    /// What came back, where anything did.
    pub response: Option<ResponseView>,
    /// What went wrong where there was no answer.
    pub error: Option<String>,
}

impl App {
    /// Sends a test and waits for how it goes.
    pub async fn test(&self, resource: &ResourceId, id: &SubscriptionId, draft: TestDraft) -> Done<TestView> {
        let subscription = self.subscription(resource, id)?;
        let resource = &subscription.compiled.resource;
        let (document, usual) = match &draft.document {
            None => (sample(resource, self.clock.now()), Action::Create),
            Some(url) => {
                let document = self.document_of(resource, url).await?;
                let row = (document.lane.index, document.row);
                let seen = self.known_of(&subscription, vec![row]).await?.glimpses.pop().flatten();
                let held = seen.is_some_and(|seen| seen.held && !seen.doubt);
                let usual = match (document.row.deleted, held) {
                    (true, _) => Action::Delete,
                    (false, true) => Action::Update,
                    (false, false) => Action::Create,
                };
                (document, usual)
            }
        };
        let action = draft.action.unwrap_or(usual);
        if document.row.deleted && action != Action::Delete {
            return Err(
                Invalid::new("action", "the document is deleted: there is only `delete` to tell").into()
            );
        }
        let most = self.config.delivery.tests;
        let busy =
            || Failure::TooMany(format!("{most} tests are under way (delivery.tests); wait for one of them"));
        let _one = self.tests.try_acquire().map_err(|_| busy())?;
        let compiled = subscription.compiled.clone();
        let attempt = Attempt {
            ordinal: document.row.ordinal,
            seq: document.row.seq,
            action,
            replay: 0,
            attempts: 0,
            first_attempt_at: None,
            unheard: false,
        };
        let webhook_id = self.entropy.fresh_id("msg_test");
        let (url, revision) = (document.url.clone(), document.revision.clone());
        let change = Change::new(document);
        let trial = Trial { compiled: compiled.clone(), change, attempt, id: webhook_id.clone() };
        // Nothing is kept of a test, so a stop does not wait for one.
        let tried = self.stop.run_until_cancelled(self.journey.try_out(trial)).await.flatten();
        let tried = tried.ok_or_else(|| self.left(&subscription))?;
        let excerpt = self.config.http.client.excerpt_limit.as_usize();
        let kept = Exchange::of(&tried.request, &tried.ending, excerpt, &compiled.echoes);
        let status = tried.ending.status();
        Ok(TestView {
            outcome: Outcome::of(&compiled.spec, &tried.ending),
            document: url.to_string(),
            action,
            webhook_id,
            began_at: tried.began,
            timing: Timing::new(tried.spans, None),
            request: RequestView::new(&compiled, action, &url, &revision, Some(&kept)),
            response: status.map(|status| ResponseView::new(status, Some(&kept))),
            error: kept.error,
        })
    }

    /// A document of a resource by its url.
    pub async fn document_of(&self, resource: &Resource, url: &str) -> Done<Document> {
        let key = document_key(resource, url)?;
        let mine = match &key {
            DocumentKey::Url(url) => {
                let owner = self.registry.find(&resource.account, url);
                owner.is_some_and(|owner| owner.number == resource.number)
            }
            DocumentKey::Name(_) => true,
        };
        let found = match mine {
            true => self.store.documents.get(resource.lane_of(key.as_str()), key.as_str()).await?,
            false => None,
        };
        let (key, kind) = (key.as_str(), resource.kind());
        let unknown = || Invalid::new("document", format!("{key} is not a document of this {kind}"));
        Ok(found.ok_or_else(unknown)?)
    }
}

/// A document that could be one of the resource's.
fn sample(resource: &Resource, now: Timestamp) -> Document {
    let segment = |segment: &str| if segment.starts_with('{') { "sample" } else { segment }.to_owned();
    let url: Arc<str> = match resource.consumer() {
        Some(_) => "sample".into(),
        None => resource.view.endpoint.split('/').map(segment).collect::<Vec<String>>().join("/").into(),
    };
    let text = now.to_string();
    let has_dates = resource.is_raw() || resource.change().is_some_and(|change| change.format().is_some());
    let revision = match (has_dates, rfc3339::parse(&text)) {
        (true, Ok(instant)) => Revision::Date(Date::new(instant, text)),
        _ => Revision::Integer(1),
    };
    let mut content = serde_json::to_value(&revision).expect("a revision is plain data");
    for name in resource.change().map_or("revision", |change| change.field()).rsplit('.') {
        content = json!({ name: content });
    }
    if let Value::Object(fields) = &mut content {
        fields.entry("sample").or_insert(true.into());
    }
    let row = Row { ordinal: Ordinal(0), seq: Seq(0), born: Seq(0), before: Seq(0), deleted: false };
    Document {
        lane: resource.lane_of(&url),
        row,
        url,
        revision,
        updated_at: now,
        content: Bytes::from(content.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flare_model::ids::ResourceNumber;
    use flare_model::resource::ResourceView;

    #[test]
    fn a_sample_fits_its_resource() {
        for (change, words) in [
            (json!({"field": "rev"}), r#""rev":1"#),
            (
                json!({"field": "meta.at", "format": "2006-01-02T15:04:05Z07:00"}),
                r#""meta":{"at":"1970-01-01"#,
            ),
        ] {
            let view = ResourceView {
                id: ResourceId::new("r"),
                endpoint: "http://h:81/a/{x}/b/{y}".into(),
                change: serde_json::from_value(change).unwrap(),
                lanes: 8,
                created_at: Timestamp::from_millis(0),
            };
            let resource = Resource::compile(view, ResourceNumber(1)).unwrap();
            let document = sample(&resource, Timestamp::from_millis(0));
            assert_eq!(&*document.url, "http://h:81/a/sample/b/sample");
            let text = String::from_utf8(document.content.to_vec()).unwrap();
            assert!(text.contains(words) && text.contains(r#""sample":true"#), "{text}");
            let change = resource.change().unwrap();
            assert_eq!(change.read(&document.content).ok().as_ref(), Some(&document.revision));
        }
    }
}
