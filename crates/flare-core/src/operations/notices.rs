//! What the operator is told: a subscription fails, works again, or was disabled. To the log always, and by a POST
//! to `notify.url` where one is configured.

use std::time::Duration;

use bytes::Bytes;
use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::time::Timestamp;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use serde::Serialize;
use tokio::sync::mpsc;

use super::App;
use crate::door::fresh_id;
use crate::journey::HostKey;
use crate::observe::count::{Notice as Told, Post};

/// A notice to the operator, as it is posted.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    event: &'static str,
    at: Timestamp,
    subscription: SubscriptionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<ResourceId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    since: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// The way to the task that posts.
pub struct Notices {
    /// Bound: 256. When full: the notice is only in the log.
    sender: mpsc::Sender<Notice>,
}

impl Notices {
    /// The way, and its end for [`App::post_notices`].
    pub fn new() -> (Notices, mpsc::Receiver<Notice>) {
        let (sender, receiver) = mpsc::channel(256);
        (Notices { sender }, receiver)
    }
}

impl App {
    pub(super) fn tell_failing(&self, id: SubscriptionId, since: Timestamp, at: Timestamp) {
        tracing::warn!(subscription.id = %id, since = %since, "subscription is failing");
        self.journey.observe().counts().operator.told(Told::Failing);
        let reason = Some("nothing has succeeded since then".to_owned());
        self.tell("subscription.failing", id, at, Some(since), reason);
    }

    pub(super) fn tell_recovered(&self, id: SubscriptionId, at: Timestamp) {
        tracing::info!(subscription.id = %id, "subscription works again");
        self.journey.observe().counts().operator.told(Told::Recovered);
        self.tell("subscription.recovered", id, at, None, None);
    }

    pub(super) fn tell_disabled(&self, id: SubscriptionId, at: Timestamp, reason: String) {
        tracing::warn!(subscription.id = %id, reason, "subscription disabled");
        self.journey.observe().counts().operator.told(Told::Disabled);
        self.tell("subscription.disabled", id, at, None, Some(reason));
    }

    fn tell(
        &self,
        event: &'static str,
        subscription: SubscriptionId,
        at: Timestamp,
        since: Option<Timestamp>,
        reason: Option<String>,
    ) {
        if self.config.notify.url.get().is_none() {
            return;
        }
        let known = self.registry.subscription_by_id(&subscription);
        let resource = known.map(|known| known.compiled.resource.id().clone());
        let notice = Notice { event, at, subscription, resource, since, reason };
        if let Err(error) = self.notices.sender.try_send(notice) {
            self.journey.observe().counts().operator.post(Post::Dropped);
            tracing::warn!(error = %error, "a notice to the operator was not posted");
        }
    }

    /// Posts notices one after the other, each tried a few times, until the node stops.
    pub async fn post_notices(&self, mut notices: mpsc::Receiver<Notice>) {
        let Some(uri) = self.config.notify.url.get() else {
            // Nothing is ever sent here without a url; the task lasts as long as the node.
            return std::future::pending().await;
        };
        let host = HostKey::of(&uri);
        while let Some(notice) = notices.recv().await {
            let id = fresh_id("msg");
            let mut pause = Duration::from_secs(1);
            let mut post = Post::Failed;
            for attempt in 1..=self.config.notify.attempts {
                let request = self.notice_request(&notice, &uri, &id);
                match self.journey.errand(host.clone(), request, self.config.notify.timeout).await {
                    Ok(answer) if (200..300).contains(&answer.status) => {
                        post = Post::Posted;
                        break;
                    }
                    Ok(answer) => {
                        tracing::warn!(
                            status = answer.status,
                            attempt,
                            "the operator's webhook refused a notice"
                        );
                    }
                    Err(error) => tracing::warn!(error, attempt, "the operator's webhook was not reached"),
                }
                tokio::time::sleep(pause).await;
                pause *= 2;
            }
            self.journey.observe().counts().operator.post(post);
        }
    }

    fn notice_request(&self, notice: &Notice, uri: &Uri, id: &str) -> Request<Full<Bytes>> {
        let body = serde_json::to_vec(notice).expect("a notice is plain data");
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = uri.path_and_query().map_or_else(Uri::default, |path| Uri::from(path.clone()));
        let headers = request.headers_mut();
        let text = |text: &str| HeaderValue::from_str(text).expect("checked with the configuration");
        headers.insert(HOST, text(authority));
        headers.insert(USER_AGENT, self.user_agent.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert("webhook-id", text(id));
        headers.insert("webhook-timestamp", HeaderValue::from(notice.at.millis().div_euclid(1000)));
        request
    }
}
