//! What several nodes of a simulation share beside the store: the coordinator, the doorbell, and the ways to them.

mod coordinator;
pub mod documents;
mod doorbell;
pub mod ledger;
mod post;
pub mod tenures;
pub mod ways;

use std::sync::Arc;
use std::time::Duration;

use flare_model::cluster::life::Settings;
use flare_promises::dice::Dice;
use flare_provider::memory::MemoryDoorbell;
use flare_provider::{Cluster, Doorbell};

use crate::clock::Time;
use crate::house::Place;
use crate::stage::Stage;
pub use coordinator::Coordinator;
use doorbell::{Bell, Hearing};
pub use post::Bag;
use post::Post;

/// What several nodes share.
pub struct Together {
    pub coordinator: Arc<Coordinator>,
    pub settings: Terms,
    hearing: Hearing,
    bell: MemoryDoorbell,
    post: Post,
}

/// How the cluster is set.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    pub lease: Duration,
    pub margin: Duration,
    pub poll: Duration,
    pub drain: Duration,
}

impl Terms {
    fn draw(dice: &mut Dice) -> Terms {
        let lease = Duration::from_millis(*dice.pick(&[1_000, 1_500, 3_000]));
        Terms {
            lease,
            margin: lease / 5,
            poll: Duration::from_millis(*dice.pick(&[300, 1_000])),
            drain: Duration::from_millis(*dice.pick(&[200, 2_000])),
        }
    }
}

/// The way of one node to the others.
pub struct Link {
    pub settings: Settings,
    pub cluster: Arc<dyn Cluster>,
    pub doorbell: Arc<dyn Doorbell>,
    pub poll: Duration,
}

impl Together {
    pub fn new(time: &Time, dice: &mut Dice) -> (Together, Bag) {
        let (post, bag) = post::open();
        let settings = Terms::draw(dice);
        let time = time.clone();
        let long = settings.lease.as_millis() as u64 * 2;
        // In some clusters the network is good, but for what the schedule cuts.
        let trouble = *dice.pick(&[0, 4, 12]);
        let coordinator = Coordinator::new(Arc::new(move || time.passed()), dice.fork(1), trouble, long);
        let hearing = Hearing::new(*dice.pick(&[0, 20, 60]), dice.fork(2));
        (Together { coordinator, settings, hearing, bell: MemoryDoorbell::new(), post }, bag)
    }

    /// The way of the node at a place to the others.
    pub fn link(&self, stage: &Arc<Stage>, place: &Place) -> Link {
        let Terms { lease, margin, poll, drain } = self.settings;
        let settings = Settings {
            node: place.name(),
            lease,
            renew: lease / 3,
            margin,
            drain_timeout: drain,
            rebalance_delay: lease,
            moves: 4,
        };
        let cluster = coordinator::Line {
            coordinator: self.coordinator.clone(),
            node: place.name().to_string(),
            ways: place.ways.clone(),
            drift: place.drift,
            post: self.post.clone(),
            stage: Arc::downgrade(stage),
        };
        let doorbell =
            Bell { inner: self.bell.clone(), hearing: self.hearing.clone(), ways: place.ways.clone() };
        Link { settings, cluster: Arc::new(cluster), doorbell: Arc::new(doorbell), poll }
    }

    /// Nothing goes wrong any more.
    pub fn heal(&self) {
        self.coordinator.heal();
        self.hearing.heal();
    }
}
