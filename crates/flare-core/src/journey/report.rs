//! What a delivery thread tells the node: clients that fail and recover, that something was decided, and that it has to stop.

use std::sync::Arc;

use flare_model::ids::SubscriptionId;
use flare_model::time::Timestamp;
use flare_provider::ProviderError;
use tokio::sync::{Notify, mpsc, watch};

/// What a delivery thread tells the node.
#[derive(Debug, PartialEq)]
pub enum Event {
    /// Nothing has succeeded for a while.
    Failing {
        /// Which.
        id: SubscriptionId,
        /// When failures began.
        since: Timestamp,
        /// When this was seen.
        at: Timestamp,
    },
    /// A failing one works again.
    Recovered {
        /// Which.
        id: SubscriptionId,
        /// When this was seen.
        at: Timestamp,
    },
}

/// Events on their way.
const EVENTS: usize = 1024;

/// The way to the node.
#[derive(Clone)]
pub struct Report {
    /// Bound: [`EVENTS`]. When full: the event is dropped with a warning, and the operator is not told of it.
    events: mpsc::Sender<Event>,
    /// Rung when something was decided; the decision itself stays with its subscription.
    decided: Arc<Notify>,
    /// The reason to stop, once there is one.
    fatal: Arc<watch::Sender<Option<String>>>,
}

/// The reason to stop, once there is one.
pub type Fatal = watch::Receiver<Option<String>>;

impl Report {
    /// The way to the node, and its two ends.
    pub fn new() -> (Report, Fatal, mpsc::Receiver<Event>) {
        let (events, received) = mpsc::channel(EVENTS);
        let (sender, fatal) = watch::channel(None);
        (Report { events, decided: Arc::default(), fatal: Arc::new(sender) }, fatal, received)
    }

    /// Something was decided that has to be durable: the node comes for it.
    pub fn decided(&self) {
        self.decided.notify_one();
    }

    /// Returns when something was decided since the last time.
    pub async fn wait_for_decision(&self) {
        self.decided.notified().await;
    }

    /// Nothing has succeeded for a while.
    pub fn failing(&self, id: SubscriptionId, since: Timestamp, at: Timestamp) {
        self.tell(Event::Failing { id, since, at });
    }

    /// A failing subscription works again.
    pub fn recovered(&self, id: SubscriptionId, at: Timestamp) {
        self.tell(Event::Recovered { id, at });
    }

    fn tell(&self, event: Event) {
        if self.events.try_send(event).is_err() {
            tracing::warn!("too many subscriptions fail or recover at once, the operator is not told of one");
        }
    }

    /// Nothing can be trusted to work any more: the node stops.
    pub fn fatal(&self, error: ProviderError) {
        let mut words = error.to_string();
        let mut cause = std::error::Error::source(&error);
        while let Some(deeper) = cause {
            words = format!("{words}: {deeper}");
            cause = deeper.source();
        }
        self.fatal.send_if_modified(|reason| {
            let first = reason.is_none();
            if first {
                *reason = Some(words);
            }
            first
        });
    }
}

#[cfg(test)]
mod tests {
    use flare_provider::ErrorKind;
    use futures_util::FutureExt as _;

    use super::*;

    const AT: Timestamp = Timestamp::from_millis(1);

    #[tokio::test]
    async fn what_has_to_be_heard_is_heard_though_events_are_dropped() {
        let (report, fatal, mut events) = Report::new();
        let id = |number: usize| SubscriptionId::new(format!("s{number}"));
        for number in 0..EVENTS + 3 {
            report.failing(id(number), AT, AT);
        }
        report.decided();
        report.fatal(ProviderError::new(ErrorKind::Internal, "ledger.write", "the disk failed to sync"));
        report.fatal(ProviderError::new(ErrorKind::Internal, "ledger.write", "something later"));
        // A decision stays with its subscription: the bell is enough, and one ring for all of them.
        assert!(report.wait_for_decision().now_or_never().is_some());
        assert!(report.wait_for_decision().now_or_never().is_none());
        assert_eq!(
            fatal.borrow().as_deref(),
            Some("ledger.write: the disk failed to sync"),
            "the first counts"
        );
        for number in 0..EVENTS {
            assert_eq!(events.try_recv(), Ok(Event::Failing { id: id(number), since: AT, at: AT }));
        }
        assert!(events.try_recv().is_err(), "what came when it was full is dropped");
        report.recovered(id(0), AT);
        assert_eq!(events.try_recv(), Ok(Event::Recovered { id: id(0), at: AT }), "there is room again");
    }
}
