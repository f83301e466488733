//! What moves while one looks: a page listens to a topic, and with every sample of the history, once a second, each
//! topic that someone listens to is rendered, once for all its listeners, and sent to them as Turbo Streams over
//! Server-Sent Events.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use flare_core::operations::App;
use flare_http::error::ApiError;
use flare_model::access::Account;
use flare_model::ids::SubscriptionId;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::header::{CONTENT_TYPE, HeaderValue};
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, watch};

use super::dashboard::{self, Look};
use super::{cluster, subscriptions};

/// A page that hears nothing for a few seconds says that it has lost its node, so it hears something so often, also where
/// there is nothing new to show.
const WORD: Duration = Duration::from_secs(1);

/// How a page that moves gets at those who listen.
pub type Listeners = Extension<Arc<Live>>;

/// What can be listened to. A page that moves has one of its own, and an arm in [`render`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Topic {
    /// The dashboard, over a range of time.
    Dashboard(Look, Account),
    /// The node.
    Cluster,
    /// How a subscription stands.
    Subscription(SubscriptionId),
    /// Its last attempts.
    Attempts(SubscriptionId),
    /// The progress of its replays.
    Replays(SubscriptionId),
}

/// The streams of a topic, as they are now; `None` where there is nothing to show any more.
async fn render(app: &App, topic: &Topic) -> Option<String> {
    match topic {
        Topic::Cluster => cluster::stream(app).await,
        Topic::Dashboard(look, account) => dashboard::stream(app, *look, account).await,
        Topic::Subscription(id) => subscriptions::show_stream(app, id).await,
        Topic::Attempts(id) => subscriptions::attempts_stream(app, id).await,
        Topic::Replays(id) => subscriptions::replays_stream(app, id).await,
    }
}

/// Who listens to what.
pub struct Live {
    /// Bound: `ui.listeners`. When full: 429, and the page stands still.
    room: Arc<Semaphore>,
    /// The newest event of each topic; a listener that is slow misses the ones between. One per topic that is
    /// listened to, so never more than there are listeners.
    topics: Mutex<HashMap<Topic, watch::Sender<Bytes>>>,
    wanted: Notify,
}

impl Live {
    /// Room for so many listeners.
    pub fn new(listeners: usize) -> Live {
        Live { room: Arc::new(Semaphore::new(listeners)), topics: Mutex::default(), wanted: Notify::new() }
    }

    fn subscribe(&self, topic: Topic) -> Result<(OwnedSemaphorePermit, watch::Receiver<Bytes>), ApiError> {
        let room = self.room.clone().try_acquire_owned().map_err(|_| {
            ApiError::too_many(
                "as many pages listen as may (ui.listeners); this one stands still until it is loaded again",
            )
        })?;
        let mut topics = self.topics.lock();
        let receiver = topics.entry(topic).or_insert_with(|| watch::Sender::new(Bytes::new())).subscribe();
        // The event that others got last may be older than the page that begins to listen, and would take back what it
        // shows; a new one is made at once.
        self.wanted.notify_one();
        Ok((room, receiver))
    }

    /// The topics that someone listens to; the others are forgotten.
    fn listened(&self) -> Vec<Topic> {
        let mut topics = self.topics.lock();
        topics.retain(|_, sender| sender.receiver_count() > 0);
        topics.keys().cloned().collect()
    }

    fn publish(&self, topic: &Topic, event: Bytes) {
        if let Some(sender) = self.topics.lock().get(topic) {
            sender.send_replace(event);
        }
    }
}

/// Renders what is listened to, for as long as the node lives. Without listeners it sleeps.
pub async fn run(app: &App, live: &Live) {
    let mut samples = app.history.watch();
    loop {
        let topics = live.listened();
        if topics.is_empty() {
            live.wanted.notified().await;
            continue;
        }
        for topic in topics {
            // A mistake in a page must not end the node: the page stands still, and the log says why.
            match AssertUnwindSafe(render(app, &topic)).catch_unwind().await {
                Ok(Some(html)) => live.publish(&topic, event(&html)),
                Ok(None) => {}
                Err(_) => tracing::error!(topic = ?topic, "a live page could not be rendered"),
            }
        }
        tokio::select! {
            // The history lives as long as the node.
            _ = samples.changed() => {}
            () = live.wanted.notified() => {}
        }
    }
}

/// Answers with a topic's events, until the reader goes or the node stops.
pub fn listen(app: &App, live: &Live, topic: Topic) -> Result<Response, ApiError> {
    let (room, receiver) = live.subscribe(topic)?;
    let events = stream::unfold((room, receiver), |(room, mut receiver)| async {
        loop {
            let event = match tokio::time::timeout(WORD, receiver.changed()).await {
                Ok(changed) => {
                    changed.ok()?;
                    receiver.borrow_and_update().clone()
                }
                Err(_) => Bytes::from_static(b"event: alive\ndata: yes\n\n"),
            };
            if !event.is_empty() {
                return Some((Ok::<_, Infallible>(event), (room, receiver)));
            }
        }
    });
    let events = events.take_until(app.stop.clone().cancelled_owned());
    // A word at once, so that the browser knows that the way is open: how often the page moves, so that it knows when it
    // does not, and how soon to come back.
    let every = app.history.sample().as_millis();
    let opened = format!("retry: 1000\nevent: every\ndata: {every}\n\n");
    let opened = stream::once(async move { Ok(Bytes::from(opened)) });
    let mut response = Response::new(Body::from_stream(opened.chain(events)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

/// One event: each line of the text on a line of its own.
fn event(html: &str) -> Bytes {
    let mut event = String::with_capacity(html.len() + 64);
    for line in html.lines().filter(|line| !line.trim().is_empty()) {
        writeln!(event, "data: {line}").expect("writing to a string cannot fail");
    }
    event.push('\n');
    event.into()
}

/// A Turbo Stream that puts new content in place of the element with this id, changing only what differs, so that
/// focus and scrolling stay.
pub fn replace(target: &str, html: &str) -> String {
    format!(
        r#"<turbo-stream action="replace" method="morph" target="{target}"><template>{html}</template></turbo-stream>"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::dashboard::Range;

    #[test]
    fn an_event_has_every_line_of_its_text() {
        assert_eq!(event("<a>\n\n b</a>\r\n"), "data: <a>\ndata:  b</a>\n\n");
    }

    #[tokio::test]
    async fn topics_without_listeners_are_forgotten_and_their_room_is_free_again() {
        let topic = || Topic::Dashboard(Look { range: Range::Minutes, whole: false }, Account::default());
        let live = Live::new(1);
        let first = live.subscribe(topic()).unwrap();
        assert!(live.subscribe(topic()).is_err());
        assert_eq!(live.listened(), [topic()]);
        drop(first);
        assert!(live.listened().is_empty());
        let (_room, mut again) = live.subscribe(topic()).unwrap();
        live.publish(&topic(), Bytes::from_static(b"x"));
        again.changed().await.unwrap();
    }

    #[tokio::test]
    async fn a_page_is_not_told_what_was_so_before_it_was_made() {
        let live = Live::new(2);
        let (_first, mut earlier) = live.subscribe(Topic::Cluster).unwrap();
        live.publish(&Topic::Cluster, Bytes::from_static(b"old"));
        earlier.changed().await.unwrap();
        let (_second, mut later) = live.subscribe(Topic::Cluster).unwrap();
        assert!(!later.has_changed().unwrap());
        live.wanted.notified().await;
        live.publish(&Topic::Cluster, Bytes::from_static(b"new"));
        later.changed().await.unwrap();
        assert_eq!(*later.borrow(), "new");
    }
}
