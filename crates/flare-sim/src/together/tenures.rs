//! Whose each feed is, as the ledger has it, for whoever judges what clients are told. Every request comes from one life of
//! one node ([`Sender`]). A feed that goes to another without having been left by the last one leaves doubt about what that
//! knew; and whoever begins something of a feed that another has by now was suspended beyond its lease, or is wrong
//! (promise 1).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use flare_core::journey::Tenancy;
use flare_model::ids::{FeedId, lane_of};
use flare_promises::told::Told;

use crate::stage::Inside;

/// So long after it went on a node may not have noticed yet that it was suspended.
const GRACE: Duration = Duration::from_millis(50);

/// One life of one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Sender {
    pub node: usize,
    pub life: u64,
}

/// Whose each feed is.
#[derive(Default)]
pub struct Tenures {
    nodes: BTreeMap<usize, Node>,
    feeds: BTreeMap<FeedId, Tenure>,
    /// The feeds of clients, by lane.
    of_clients: BTreeMap<(usize, u8), FeedId>,
    /// The epoch of the last record of each feed.
    recorded: BTreeMap<FeedId, u64>,
    /// Requests of nodes that had the feed before, and that came after, or were open, when another took it over.
    overtaken: BTreeSet<u64>,
    /// For each slot of a suspended node the requests that slipped out: one at most.
    slipped: BTreeMap<(usize, u64, usize, String), u64>,
    /// How many slipped out in all.
    pub late: u64,
    /// The epoch under which is swept.
    sweeper: u64,
    /// Lives that have ended as they should, with how many units they had cut.
    left: BTreeMap<Sender, u64>,
}

#[derive(Default)]
struct Node {
    life: u64,
    lives: bool,
    tenancy: Option<Arc<Tenancy>>,
    /// It stands still.
    stands: bool,
    went_on: Option<Duration>,
    /// How often it stood still.
    stood: u64,
}

struct Tenure {
    sender: Sender,
    epoch: u64,
    /// How many units that life had cut by then.
    cuts: u64,
}

impl Tenures {
    /// A life begins.
    pub fn begins(&mut self, sender: Sender, tenancy: Arc<Tenancy>) {
        let life = Node { life: sender.life, lives: true, tenancy: Some(tenancy), ..Node::default() };
        self.nodes.insert(sender.node, life);
    }

    /// The node is gone: it has left nothing undone, or it did not come to that.
    pub fn ends(&mut self, node: usize, cleanly: bool) {
        let life = self.nodes.get(&node).map(|found| Sender { node, life: found.life });
        if let (Some(sender), true) = (life, cleanly) {
            let cuts = self.cuts(sender);
            self.left.extend(cuts.map(|cuts| (sender, cuts)));
        }
        if let Some(node) = self.nodes.get_mut(&node) {
            node.lives = false;
        }
    }

    /// The node stands still, or goes on.
    pub fn stands(&mut self, node: usize, stands: bool, now: Duration) {
        if let Some(node) = self.nodes.get_mut(&node) {
            node.stands = stands;
            node.stood += u64::from(stands);
            node.went_on = (!stands).then_some(now);
        }
    }

    fn lives(&self, sender: Sender) -> Option<&Node> {
        self.nodes.get(&sender.node).filter(|node| node.lives && node.life == sender.life)
    }

    fn is_suspended(&self, sender: Sender, now: Duration) -> bool {
        let suspended = |node: &Node| node.stands || node.went_on.is_some_and(|at| now <= at + GRACE);
        self.lives(sender).is_some_and(suspended)
    }

    fn cuts(&self, sender: Sender) -> Option<u64> {
        let tenancy = self.lives(sender)?.tenancy.as_ref()?;
        Some(tenancy.cut_units.load(Ordering::Relaxed))
    }

    /// Whether somebody left a feed as it is recorded.
    fn was_left(&self, tenure: &Tenure, now: Duration) -> bool {
        let cuts = self.cuts(tenure.sender).or_else(|| self.left.get(&tenure.sender).copied());
        cuts == Some(tenure.cuts) && !self.is_suspended(tenure.sender, now)
    }

    /// Whether a feed of a client is another's.
    fn is_anothers(&self, sender: Sender, client: usize, lane: u8) -> bool {
        let feed = self.of_clients.get(&(client, lane)).and_then(|feed| self.feeds.get(feed));
        feed.is_some_and(|tenure| tenure.sender != sender)
    }

    /// Whether a request was overtaken by another node.
    pub fn is_overtaken(&self, request: u64) -> bool {
        self.overtaken.contains(&request)
    }
}

impl Inside {
    fn lane(&self, client: usize, document: &str) -> u8 {
        let lanes = self.world.resources[self.clients[client].resource].lanes;
        lane_of(document, u16::try_from(lanes).unwrap_or(1))
    }

    /// A node has opened feeds of a client, and the ledger has that.
    pub fn takes_over(&mut self, sender: Sender, client: usize, feeds: &[FeedId], epoch: u64) {
        let now = self.now();
        let Some(tenures) = &mut self.tenures else { return };
        let mut wrong = Vec::new();
        let mut doubtful = BTreeSet::new();
        let cuts = tenures.cuts(sender).unwrap_or_default();
        for feed in feeds {
            tenures.of_clients.insert((client, feed.lane), *feed);
            let Some(before) = tenures.feeds.insert(*feed, Tenure { sender, epoch, cuts }) else { continue };
            if before.epoch >= epoch {
                wrong.push((
                    String::new(),
                    format!("the epoch of {feed:?} falls: {epoch} after {}", before.epoch),
                ));
            }
            if !tenures.was_left(&before, now) {
                doubtful.insert(feed.lane);
            }
        }
        let lanes: BTreeSet<u8> = feeds.iter().map(|feed| feed.lane).collect();
        let urls: Vec<String> = self.clients[client].pairs.keys().cloned().collect();
        for url in urls {
            let lane = self.lane(client, &url);
            let open = match self.clients[client].pairs.get_mut(&url) {
                Some(pair) if lanes.contains(&lane) => pair.is_overtaken(doubtful.contains(&lane)),
                _ => continue,
            };
            let Some(tenures) = &mut self.tenures else { return };
            for (request, by) in open {
                tenures.overtaken.insert(request);
                if !tenures.is_suspended(by, now) {
                    wrong.push((
                        url.clone(),
                        format!("#{request} is open while another node takes its feed over"),
                    ));
                }
            }
        }
        let blurred = self.world.now();
        if !doubtful.is_empty() {
            self.clients[client].blurred = blurred;
        }
        if self.clock_was_set {
            self.operator_ends_leases(client);
        }
        self.note(|| {
            format!("{sender:?} opens {lanes:?} of client {client} under {epoch}, in doubt {doubtful:?}")
        });
        for (url, what) in wrong {
            self.wrong(Some(client), &url, what);
        }
    }

    /// A record of a feed was taken.
    pub fn records(&mut self, feed: FeedId, epoch: u64) {
        let Some(tenures) = &mut self.tenures else { return };
        let before = tenures.recorded.insert(feed, epoch).unwrap_or_default();
        if epoch < before {
            let what = format!("a record of {feed:?} under epoch {epoch} is taken after one under {before}");
            self.wrong(None, "", what);
        }
    }

    /// Somebody keeps house from now on.
    pub fn sweeps(&mut self, epoch: u64) {
        if let Some(tenures) = &mut self.tenures {
            tenures.sweeper = epoch;
        }
    }

    /// What nobody needs is removed under an epoch.
    pub fn removes(&mut self, epoch: u64) {
        let sweeper = self.tenures.as_ref().map_or(0, |tenures| tenures.sweeper);
        if epoch < sweeper {
            self.wrong(None, "", format!("epoch {epoch} removes what {sweeper} has to judge"));
        }
    }

    /// Whether a request slips out of a node that has the feed no more; if so it is judged, and nothing else is to be.
    pub fn slips_out(&mut self, sender: Sender, client: usize, told: &Told, request: u64) -> bool {
        let (now, lane) = (self.now(), self.lane(client, &told.document));
        let Some(tenures) = &mut self.tenures else { return false };
        if !tenures.is_anothers(sender, client, lane) {
            return false;
        }
        let suspended = tenures.is_suspended(sender, now);
        let stood = tenures.nodes.get(&sender.node).map_or(0, |node| node.stood);
        let slipped = tenures.slipped.entry((sender.node, stood, client, told.document.clone())).or_default();
        *slipped += 1;
        let often = *slipped > 1;
        tenures.overtaken.insert(request);
        tenures.late += 1;
        self.note(|| {
            format!("#{request} to client {client} slips out of {sender:?}: {told} {}", told.document)
        });
        // What the client makes of it is the client's.
        let document = self.world.resources[self.clients[client].resource].documents.get(&told.document);
        self.clients[client].pair(document, &told.document);
        if !suspended || often {
            let what = format!("#{request}: {sender:?} tells what another node has to tell: {told}");
            self.wrong(Some(client), &told.document, what);
        }
        true
    }
}
