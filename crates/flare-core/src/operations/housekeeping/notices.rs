//! What the operator is told: a subscription fails, works again, or was disabled. To the log always, and by a POST
//! to `notify.url` where one is configured.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::time::Timestamp;
use flare_wire::{Beginning, Method, Name, Request, Room, Value};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use http::Uri;
use serde::Serialize;
use tokio::sync::{Semaphore, mpsc};

use crate::notification::host::HostKey;
use crate::notification::message::{WEBHOOK_ID, WEBHOOK_TIMESTAMP};
use crate::observe::count::{Notice as Told, Post};
use crate::operations::App;

const USER_AGENT: Name<'static> = Name::fixed("user-agent");
const CONTENT_TYPE: Name<'static> = Name::fixed("content-type");

/// Posts under way at once.
const AT_ONCE: usize = 8;

/// Notices that are being tried or wait for their turn.
const OUTBOX: usize = 256;

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

/// Notices that are to be posted: those about one subscription one after the other, so that they arrive in their order.
#[derive(Default)]
struct Outbox {
    /// Bound: [`OUTBOX`], those under way included. When full: the rest stays in the queue of [`Notices`].
    waiting: VecDeque<Notice>,
    underway: HashSet<SubscriptionId>,
}

impl Outbox {
    fn has_room(&self) -> bool {
        self.waiting.len() + self.underway.len() < OUTBOX
    }

    fn add(&mut self, notice: Notice) {
        self.waiting.push_back(notice);
    }

    /// The oldest one that does not have to wait for another.
    fn next(&mut self) -> Option<Notice> {
        let free = |notice: &Notice| !self.underway.contains(&notice.subscription);
        let notice = self.waiting.remove(self.waiting.iter().position(free)?)?;
        self.underway.insert(notice.subscription.clone());
        Some(notice)
    }

    /// The one about this subscription was posted or given up.
    fn done(&mut self, subscription: &SubscriptionId) {
        self.underway.remove(subscription);
    }
}

/// How long to wait after an attempt, from a second on, doubled each time; not at all after the last one. Pure.
fn pause_after(attempt: u32, attempts: u32) -> Option<Duration> {
    (attempt < attempts).then(|| Duration::from_secs(1 << (attempt - 1).min(20)))
}

impl App {
    pub(in crate::operations) fn tell_failing(&self, id: SubscriptionId, since: Timestamp, at: Timestamp) {
        tracing::warn!(subscription.id = %id, since = %since, "subscription is failing");
        self.journey.observe().counts().operator.told(Told::Failing);
        let reason = Some("nothing has succeeded since then".to_owned());
        self.tell("subscription.failing", id, at, Some(since), reason);
    }

    pub(in crate::operations) fn tell_recovered(&self, id: SubscriptionId, at: Timestamp) {
        tracing::info!(subscription.id = %id, "subscription works again");
        self.journey.observe().counts().operator.told(Told::Recovered);
        self.tell("subscription.recovered", id, at, None, None);
    }

    pub(in crate::operations) fn tell_disabled(&self, id: SubscriptionId, at: Timestamp, reason: String) {
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

    /// Posts notices, each tried a few times, until the node stops. One that is refused holds up only those about the
    /// same subscription.
    pub(in crate::operations) async fn post_notices(
        self: Arc<App>,
        uri: Uri,
        mut notices: mpsc::Receiver<Notice>,
    ) {
        let to = Operator { host: HostKey::of(&uri), beginning: self.notice_beginning(&uri), uri };
        let room = Semaphore::new(AT_ONCE);
        let mut outbox = Outbox::default();
        let mut posting = FuturesUnordered::new();
        loop {
            while let Some(notice) = outbox.next() {
                posting.push(self.post_notice(notice, &to, &room));
            }
            tokio::select! {
                biased;
                notice = notices.recv(), if outbox.has_room() => match notice {
                    Some(notice) => outbox.add(notice),
                    None => return,
                },
                Some(subscription) = posting.next() => outbox.done(&subscription),
            }
        }
    }

    /// Posts a notice or gives it up, and answers whom it was about.
    async fn post_notice(&self, notice: Notice, to: &Operator, room: &Semaphore) -> SubscriptionId {
        let id = self.entropy.fresh_id("msg");
        let (attempts, timeout) = (self.config.notify.attempts, self.config.notify.timeout);
        let mut post = Post::Failed;
        for attempt in 1..=attempts {
            // Only while it is under way: one that waits for its next attempt takes no room.
            let answer = {
                let _room = room.acquire().await;
                self.journey.errand(to.host.clone(), to.request(&notice, &id), timeout, None).await
            };
            match answer {
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
            if let Some(pause) = pause_after(attempt, attempts) {
                tokio::time::sleep(pause).await;
            }
        }
        self.journey.observe().counts().operator.post(post);
        notice.subscription
    }

    /// What every notice begins with.
    fn notice_beginning(&self, uri: &Uri) -> Beginning {
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let fields = [(USER_AGENT, self.user_agent.as_str()), (CONTENT_TYPE, "application/json")];
        let fields = fields.map(|(name, value)| {
            (name, Value::new(value.as_bytes()).expect("checked with the configuration"))
        });
        Beginning::new(Method::Post, authority, fields).expect("checked with the configuration")
    }
}

/// Where notices go.
struct Operator {
    host: HostKey,
    beginning: Beginning,
    uri: Uri,
}

impl Operator {
    fn request(&self, notice: &Notice, id: &str) -> Request {
        let target = self.uri.path_and_query().map_or("/", |target| target.as_str());
        let mut request = Request::new(Room::default(), &self.beginning, |path| path.push_str(target));
        request.text(WEBHOOK_ID, id);
        request.number(WEBHOOK_TIMESTAMP, notice.at.millis().div_euclid(1000));
        request.set_body(serde_json::to_vec(notice).expect("a notice is plain data").into());
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(event: &'static str, subscription: &str) -> Notice {
        let (at, subscription) = (Timestamp::from_millis(0), SubscriptionId::new(subscription));
        Notice { event, at, subscription, resource: None, since: None, reason: None }
    }

    #[test]
    fn a_notice_waits_only_for_those_about_the_same_subscription() {
        let mut outbox = Outbox::default();
        for (event, subscription) in [("failing", "one"), ("recovered", "one"), ("failing", "two")] {
            outbox.add(notice(event, subscription));
        }
        let next = |outbox: &mut Outbox| {
            outbox.next().map(|notice| format!("{} {}", notice.subscription, notice.event))
        };
        assert_eq!(next(&mut outbox).as_deref(), Some("one failing"));
        assert_eq!(next(&mut outbox).as_deref(), Some("two failing"));
        assert_eq!(next(&mut outbox), None);
        outbox.done(&SubscriptionId::new("one"));
        assert_eq!(next(&mut outbox).as_deref(), Some("one recovered"));
    }

    #[test]
    fn no_more_are_taken_on_than_there_is_room_for() {
        let mut outbox = Outbox::default();
        for number in 0..OUTBOX {
            assert!(outbox.has_room());
            outbox.add(notice("failing", &number.to_string()));
            outbox.next();
        }
        assert!(!outbox.has_room(), "those under way count too");
        outbox.done(&SubscriptionId::new("7"));
        assert!(outbox.has_room());
    }

    #[test]
    fn the_last_attempt_is_not_waited_after() {
        let pauses: Vec<_> = (1..=4).map(|attempt| pause_after(attempt, 4)).collect();
        assert_eq!(pauses, [1, 2, 4, 0].map(|secs| (secs > 0).then(|| Duration::from_secs(secs))));
        assert_eq!(pause_after(1, 1), None);
    }
}
