//! The node among others: it serves the units that it is given (`obey`), follows what others write (`follow`), rings for them
//! (`ring`), notices whether it works (`fitness`), says how it and the cluster fare (`health`, `nodes`, `assignments`, `stats`), and knows where the rest is served (`owners`).
//!
//! A node by itself is a cluster of one: it has all units, and everything here answers the same way.

mod assignments;
mod fitness;
mod follow;
mod health;
mod lines;
mod nodes;
mod obey;
mod owners;
mod ring;
mod stats;
mod units;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use flare_model::cluster::life::Exit;
use flare_provider::{Doorbell, ErrorKind, ProviderError};
use tokio::sync::mpsc;

pub use assignments::{AssignmentQuery, AssignmentView, ExplanationView, RerouteDraft, RerouteView};
pub use health::{Colour as ClusterColour, HealthQuery, HealthView};
pub use nodes::NodeView;
pub use owners::{Owner, Shard};
pub use stats::{NodeStats, StatsView};

pub(in crate::operations) use fitness::StoreSeen;
pub(in crate::operations) use lines::Lines;
pub(in crate::operations) use nodes::Busy;
pub(in crate::operations) use ring::{Announced, Ringing};

use crate::cluster::{Driver, Member, Order};
use crate::journey::Lost;
use crate::operations::App;

/// What makes a node one of several.
pub struct Membership {
    /// The node in its cluster.
    pub member: Arc<Member>,
    /// What drives it.
    pub driver: Driver,
    /// Whether that has a thread of its own.
    pub apart: bool,
    /// What it is told to do.
    pub orders: mpsc::UnboundedReceiver<Order>,
    /// Lanes that delivery threads found to be another's.
    pub lost: mpsc::Receiver<Lost>,
    /// How others are told, and tell, that there is something to look at; without one it is looked at from time to time.
    pub doorbell: Option<Arc<dyn Doorbell>>,
    /// How often that is.
    pub poll: Duration,
}

/// What the chores of a member need.
pub(in crate::operations) struct Orders {
    pub driver: Driver,
    pub apart: bool,
    pub orders: mpsc::UnboundedReceiver<Order>,
    pub lost: mpsc::Receiver<Lost>,
}

/// Whether this node keeps house for all.
#[derive(Default)]
pub(in crate::operations) struct House {
    /// 0 while it does not.
    epoch: AtomicU64,
    /// Held while something is removed.
    pub turn: tokio::sync::Mutex<()>,
}

impl House {
    pub fn begin(&self, epoch: u64) {
        self.epoch.store(epoch, Ordering::Release);
    }

    pub fn end(&self) {
        self.epoch.store(0, Ordering::Release);
    }

    pub fn epoch(&self) -> Option<u64> {
        Some(self.epoch.load(Ordering::Acquire)).filter(|epoch| *epoch > 0)
    }
}

impl App {
    /// Whether this node removes what nobody needs any more: one by itself, or the one that was given that.
    pub(in crate::operations) fn keeps_house(&self) -> bool {
        self.member.is_none() || self.house.epoch().is_some()
    }

    /// Lives in the cluster. When it is out of it for good, without having been told to leave, the node ends.
    pub(in crate::operations) async fn live(self: Arc<App>, driver: Driver, apart: bool) {
        let exit = match apart {
            true => driver.run_apart().await,
            false => Ok(driver.run().await),
        };
        match exit {
            Ok(Exit::Left) => {}
            Err(error) => {
                let detail = "there is no thread that lives in the cluster";
                self.journey
                    .give_up(ProviderError::new(ErrorKind::Internal, "cluster.live", detail).because(error));
            }
            Ok(Exit::NameTaken) => {
                let node = self.member.as_ref().map(|member| member.node().to_string()).unwrap_or_default();
                let detail = format!(
                    "another live node is called \"{node}\": give each its own name (cluster.node), or stop the other"
                );
                self.journey.give_up(ProviderError::new(ErrorKind::Fenced, "cluster.join", detail));
            }
        }
        self.left.cancel();
        std::future::pending().await
    }

    /// Hands all units over and leaves the cluster, if the node is in one. Returns when it has left, or after as long as what is
    /// in flight may take and a little more.
    pub async fn leave_cluster(&self) {
        let Some(member) = &self.member else { return };
        member.leave();
        let most = member.settings.drain_timeout + member.settings.lease;
        if tokio::time::timeout(most, self.left.cancelled()).await.is_err() {
            tracing::warn!(
                "the cluster was not left in time; what this node had goes to others when its lease is over"
            );
        }
    }

    /// Gives up units of which another node has lanes.
    pub(in crate::operations) async fn give_up_lost(self: Arc<App>, mut lost: mpsc::Receiver<Lost>) {
        while let Some(Lost { number, lane, epoch }) = lost.recv().await {
            tracing::warn!(subscription.number = number.0, lane, epoch, "another node has taken a lane over");
            if let (Some(member), Some(unit)) = (&self.member, self.unit_of(number, lane)) {
                member.tell(flare_model::cluster::life::Event::Fenced(unit));
            }
        }
        std::future::pending().await
    }
}
