//! The way to a sink. In: a notification. Out: what became of it. A sink that takes several at once gets those that wait
//! together, and every sink is one of the destinations whose connections are counted and whose silence is noticed.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use flare_provider::bridge::{Outgoing, Sent, Sink};

use super::gathering::Gathering;

/// The way to a sink. Two of the same name lead to the same place.
pub struct Outlet {
    name: Box<str>,
    way: Way,
}

enum Way {
    /// One after the other, for each who sends.
    Single(Arc<dyn Sink>),
    /// Several at once.
    Gathered(Arc<Gathering>),
    /// There is none, for this reason.
    Closed(String),
}

impl Outlet {
    /// The way to this sink.
    pub fn new(name: impl Into<Box<str>>, sink: Arc<dyn Sink>) -> Outlet {
        let way = match sink.most() {
            0 | 1 => Way::Single(sink),
            _ => Way::Gathered(Gathering::new(sink)),
        };
        Outlet { name: name.into(), way }
    }

    /// No way: whatever is sent fails, for this reason.
    pub fn closed(name: impl Into<Box<str>>, why: String) -> Outlet {
        Outlet { name: name.into(), way: Way::Closed(why) }
    }

    /// Sends one. `begun` is set as soon as the sink may have it, so that whoever stops waiting knows whether it may.
    pub async fn send(&self, outgoing: Outgoing, begun: &mut bool) -> Sent {
        match &self.way {
            Way::Single(sink) => {
                *begun = true;
                let answers = sink.send(vec![outgoing]).await;
                answers.into_iter().next().unwrap_or_else(unanswered)
            }
            Way::Gathered(gathering) => gathering.send(outgoing, begun).await,
            Way::Closed(why) => Sent::Failed(why.clone()),
        }
    }
}

/// A sink that does not answer for every notification breaks its contract; what became of that one nobody knows.
pub(super) fn unanswered() -> Sent {
    Sent::Unknown("the sink gave no answer for it".to_owned())
}

impl fmt::Display for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Outlet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl PartialEq for Outlet {
    fn eq(&self, other: &Outlet) -> bool {
        self.name == other.name
    }
}

impl Eq for Outlet {}

impl Hash for Outlet {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl PartialOrd for Outlet {
    fn partial_cmp(&self, other: &Outlet) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Outlet {
    fn cmp(&self, other: &Outlet) -> Ordering {
        self.name.cmp(&other.name)
    }
}
