//! What all delivery threads together may have open to clients, and how a thread is called when it may open something.
//!
//! A cap is one pool of [`Permits`], whatever the number of threads. Each thread takes from it when it opens a
//! connection and gives back when it has closed it; whoever waits hears its bell.

use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Weak};

use flare_model::sharing::{HostNumber, Shares};
use parking_lot::Mutex;

use crate::journey::bell::{Bell, Call};
use crate::journey::permits::pool::{CalledThreads, Permits};
use crate::notification::host::Destination;

/// The caps of a node.
pub struct Caps {
    connections: u32,
    connections_per_host: u32,
    /// Connections to all hosts.
    pub all: Permits,
    /// Those of them that are not the first of their thread to their host. A host can have one whatever the others take,
    /// up to half of all: clients that hang must not take the last connection from one that does not.
    pub further: Permits,
    /// Who has what of them, by how long requests take. Locked for a moment, and never for a client that is quick.
    pub(super) shares: Mutex<Shares>,
    /// HostPermits that wait for a connection and have none, of all threads.
    shut_out: AtomicUsize,
    hosts: Mutex<HostPermits>,
    /// Whoever takes several permits has it meanwhile: nobody finds one gone that comes back at once.
    opening: Mutex<()>,
    bells: Vec<Arc<Bell>>,
}

/// A connection that a thread would like to open.
pub struct WantedConnection<'a> {
    /// Which thread.
    pub thread: usize,
    /// Where to.
    pub key: &'a Destination,
    /// The permits for it.
    pub host: &'a Permits,
    /// Whether the thread has one there already.
    pub further: bool,
    /// Whether the thread has been called for a connection, whichever it may be.
    pub in_turn: bool,
}

/// What there are too few of for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooFew {
    /// Connections to its host.
    ToHost,
    /// Connections to all hosts.
    ToAll,
}

#[derive(Default)]
struct HostPermits {
    /// Bound: the hosts that some thread has.
    permits: HashMap<Destination, (Weak<Permits>, HostNumber)>,
    /// How many hosts the threads have, each by itself.
    places: u32,
}

impl Caps {
    /// These caps; `bells` has one for each delivery thread.
    pub fn new(connections: u32, connections_per_host: u32, bells: Vec<Arc<Bell>>) -> Caps {
        Caps {
            connections,
            connections_per_host,
            all: Permits::new(connections),
            further: Permits::new(connections),
            shares: Mutex::new(Shares::new(connections)),
            shut_out: AtomicUsize::new(0),
            hosts: Mutex::default(),
            opening: Mutex::default(),
            bells,
        }
    }

    /// Calls threads.
    pub fn call(&self, threads: CalledThreads, what: impl Fn() -> Call) {
        for thread in threads.iter() {
            self.bells[thread].call(what());
        }
    }

    /// Calls one thread.
    pub fn call_one(&self, thread: usize, what: Call) {
        self.bells[thread].call(what);
    }

    /// A thread has a host from now on: the permits for it, which it shares with the others that have it, and its number
    /// among those that clients share by how long theirs take.
    pub fn host(&self, key: &Destination) -> (Arc<Permits>, HostNumber) {
        let mut hosts = self.hosts.lock();
        let known = hosts.permits.get(key).and_then(|(permits, number)| Some((permits.upgrade()?, *number)));
        let host = known.unwrap_or_else(|| {
            let permits = Arc::new(Permits::new(self.connections_per_host));
            let number = self.shares.lock().add_host(self.connections_per_host);
            hosts.permits.insert(key.clone(), (Arc::downgrade(&permits), number));
            (permits, number)
        });
        hosts.places += 1;
        self.share_out(&hosts);
        host
    }

    /// A thread has a host no more.
    pub fn forget_host(&self, key: &Destination, permits: Arc<Permits>) {
        let mut hosts = self.hosts.lock();
        drop(permits);
        if let Some((known, number)) = hosts.permits.get(key)
            && known.strong_count() == 0
        {
            self.grant(self.shares.lock().remove_host(*number));
            hosts.permits.remove(key);
        }
        hosts.places -= 1;
        self.share_out(&hosts);
    }

    fn share_out(&self, hosts: &HostPermits) {
        let further = self.connections - hosts.places.min(self.connections / 2);
        self.grant(self.shares.lock().set_further(further));
        self.call(self.further.resize(further), || Call::Connection);
    }

    /// Takes every permit that a connection takes. Or takes none, and the thread stands in line for what there are too few
    /// of.
    ///
    /// Where several threads want the same host, one may be kept a permit of the host while another is kept one of all;
    /// if each waited for the other's, each would have to make way for the next in its line, and so on without end. So
    /// the turn that counts is the one in the line for all: whoever has it takes what is kept for others of the rest.
    /// It either opens a connection, or waits for a permit that somebody uses and gives back.
    pub fn take_connection(&self, wanted: &WantedConnection) -> Result<(), TooFew> {
        let WantedConnection { thread, key, host, further, in_turn } = *wanted;
        let take = |permits: &Permits| match in_turn {
            true => permits.take_before_others(thread),
            false => permits.take(thread),
        };
        let _whole = self.opening.lock();
        if !take(host) {
            return Err(TooFew::ToHost);
        }
        if !further || take(&self.further) {
            if self.all.take(thread) {
                return Ok(());
            }
            if further {
                self.call(self.further.give(1), || Call::Connection);
            }
        }
        self.call(host.give(1), || Call::Host(key.clone()));
        Err(TooFew::ToAll)
    }

    /// A host has no connection and waits for one, or does so no more.
    pub fn shuts_out(&self, is_shut_out: bool) {
        if is_shut_out {
            self.shut_out.fetch_add(1, SeqCst);
        } else {
            self.shut_out.fetch_sub(1, SeqCst);
        }
    }

    /// Whether a host has no connection, waits for one, and nobody has made room for it yet.
    pub fn somebody_is_shut_out(&self) -> bool {
        self.shut_out.load(SeqCst) > 0 && self.all.is_wanted()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notification::host::HostKey;

    fn key(host: &str) -> Destination {
        key_at(host, 80)
    }

    fn key_at(host: &str, port: u16) -> Destination {
        HostKey { https: false, host: host.into(), port, identity: None }.into()
    }

    #[tokio::test]
    async fn threads_share_a_host_as_long_as_one_of_them_has_it() {
        let bells: Vec<Arc<Bell>> = (0..2).map(|_| Arc::default()).collect();
        let caps = Caps::new(8, 1, bells.clone());
        let (here, there) = (caps.host(&key("a")).0, caps.host(&key("a")).0);
        assert!(here.take(0) && !there.take(1));
        caps.forget_host(&key("b"), caps.host(&key("b")).0);
        caps.call(here.give(1), || Call::Host(key("a")));
        assert_eq!(bells[1].heard().await.calls, [Call::Host(key("a"))]);
        caps.forget_host(&key("a"), here);
        assert!(there.take(1), "the others keep it");
        caps.forget_host(&key("a"), there);
        assert!(caps.hosts.lock().permits.is_empty(), "what nobody has is forgotten");
    }

    #[test]
    fn every_host_can_have_one_connection_up_to_half_of_all() {
        let caps = Caps::new(8, 8, vec![Arc::default()]);
        let hosts: Vec<_> = ["a", "b", "c"].iter().map(|name| (key(name), caps.host(&key(name)).0)).collect();
        assert_eq!(caps.further.cap(), 5);
        let more: Vec<_> = (0..9).map(|port| key_at("d", port)).collect();
        let more: Vec<_> = more.into_iter().map(|key| (caps.host(&key).0, key)).collect();
        assert_eq!(caps.further.cap(), 4);
        more.into_iter().for_each(|(permits, key)| caps.forget_host(&key, permits));
        hosts.into_iter().for_each(|(key, permits)| caps.forget_host(&key, permits));
        assert_eq!(caps.further.cap(), 8);
    }
}
