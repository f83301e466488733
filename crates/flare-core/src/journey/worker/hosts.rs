//! The hosts that a delivery thread sends to: who stands in line there, and the couriers (one per connection) that take
//! work from the line, as many as the [caps](crate::journey::permits::caps) of the node allow.
//!
//! A host is there as long as a subscription may send to it or a courier is on its way; until then its index holds.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use crate::journey::bell::Call;
use crate::journey::permits::pool::Permits;
use crate::journey::sending::courier;
use crate::journey::worker::Worker;
use crate::journey::worker::breaker::Breaker;
use crate::notification::compiled::Compiled;
use crate::notification::host::HostKey;

/// For so long a courier works for its host, even if a host that has no connection waits for one. A shorter time would
/// have connections opened more often than used.
pub const TURN: Duration = Duration::from_millis(100);

/// A destination.
pub struct Host {
    /// Where it is.
    pub key: HostKey,
    /// Subscriptions with something to take, served in turn. Bound: each once.
    pub ready: VecDeque<usize>,
    /// Attempts decided elsewhere that go here. Bound: the concurrency of the subscriptions.
    pub handed: VecDeque<courier::Job>,
    /// Couriers with nothing to do.
    pub idle: Vec<Rc<courier::Summons>>,
    /// Couriers in all.
    pub couriers: u32,
    /// Whether it is tried at all.
    pub breaker: Breaker,
    /// How many subscriptions send here, each counted for each of its actions.
    users: usize,
    /// The connections that all threads together may have to it.
    permits: Arc<Permits>,
    waits: Waits,
}

/// Whether a host waits for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waits {
    No,
    /// As many are open to it as may be.
    ForItsOwn,
    /// As many are open to all hosts as may be. It has some.
    ForAny,
    /// The same, and it has none.
    ShutOut,
}

/// Hosts that wait for a connection because as many are open to all hosts as may be. Bound: each host once.
#[derive(Default)]
pub struct Starved {
    /// Those that have none.
    shut_out: VecDeque<usize>,
    /// Those that have some.
    wanting_more: VecDeque<usize>,
}

impl Starved {
    fn is_empty(&self) -> bool {
        self.shut_out.is_empty() && self.wanting_more.is_empty()
    }

    fn first(&self) -> Option<usize> {
        self.shut_out.front().or(self.wanting_more.front()).copied()
    }

    fn last_becomes_first(&mut self, waits: Waits) {
        match waits {
            Waits::ShutOut => self.shut_out.rotate_right(1),
            Waits::ForAny => self.wanting_more.rotate_right(1),
            Waits::No | Waits::ForItsOwn => {}
        }
    }
}

impl Host {
    fn has_work(&self) -> bool {
        !self.ready.is_empty() || !self.handed.is_empty()
    }
}

impl Worker {
    /// The hosts that a subscription sends to, by action; from now on it uses them.
    pub fn use_hosts(&mut self, compiled: &Compiled) -> [usize; 3] {
        [0, 1, 2].map(|action| {
            let index = self.host(&compiled.requests[action].host);
            self.hosts[index].users += 1;
            index
        })
    }

    /// A subscription sends to these hosts no more.
    pub fn leave_hosts(&mut self, hosts: [usize; 3]) {
        for index in hosts {
            let host = &mut self.hosts[index];
            host.users -= 1;
            if host.users == 0 {
                host.idle.drain(..).for_each(|summons| summons.dismiss());
            }
            self.forget_unused(index);
        }
    }

    fn host(&mut self, key: &HostKey) -> usize {
        if let Some(index) = self.host_index.get(key) {
            return *index;
        }
        let index = self.hosts.insert(Host {
            key: key.clone(),
            ready: VecDeque::new(),
            handed: VecDeque::new(),
            idle: Vec::new(),
            couriers: 0,
            breaker: Breaker::default(),
            users: 0,
            permits: self.tools.caps.host(key),
            waits: Waits::No,
        });
        self.host_index.insert(key.clone(), index);
        index
    }

    /// A host that nobody sends to, and nobody is on the way to, is forgotten.
    fn forget_unused(&mut self, index: usize) {
        let Some(host) = self.hosts.get(index) else { return };
        if host.users > 0 || host.couriers > 0 || host.has_work() {
            return;
        }
        self.wait_for(index, Waits::No);
        let Host { key, permits, .. } = self.hosts.remove(index);
        self.host_index.remove(&key);
        let caps = &self.tools.caps;
        caps.call(permits.leave(self.thread), || Call::Host(key.clone()));
        caps.forget_host(&key, permits);
    }

    /// A host waits for something else than before, as the last of those that do.
    fn wait_for(&mut self, index: usize, waits: Waits) {
        let Starved { shut_out, wanting_more } = &mut self.starved;
        match std::mem::replace(&mut self.hosts[index].waits, waits) {
            Waits::ShutOut => {
                shut_out.retain(|other| *other != index);
                self.tools.caps.shuts_out(false);
            }
            Waits::ForAny => wanting_more.retain(|other| *other != index),
            Waits::No | Waits::ForItsOwn => {}
        }
        match waits {
            Waits::ShutOut => {
                shut_out.push_back(index);
                self.tools.caps.shuts_out(true);
            }
            Waits::ForAny => wanting_more.push_back(index),
            Waits::No | Waits::ForItsOwn => {}
        }
    }

    /// Gets a courier for a host: an idle one, or a new one where there is room.
    pub fn summon(&mut self, index: usize) {
        let host = &mut self.hosts[index];
        if let Some(summons) = host.idle.pop() {
            summons.wake();
            return;
        }
        if host.waits == Waits::No && !self.stands_behind_others(index) {
            self.connect(index);
        }
    }

    /// A host that wants a connection stands behind those of this thread that waited before it; one that has none, only
    /// behind others that have none.
    fn stands_behind_others(&mut self, index: usize) -> bool {
        let Starved { shut_out, wanting_more } = &self.starved;
        let waits = match self.hosts[index].couriers {
            0 if shut_out.is_empty() => return false,
            0 => Waits::ShutOut,
            _ if shut_out.is_empty() && wanting_more.is_empty() => return false,
            _ => Waits::ForAny,
        };
        self.wait_for(index, waits);
        true
    }

    /// Makes a new courier, if there is room for its connection.
    fn connect(&mut self, index: usize) {
        if !self.may_connect(index) {
            return;
        }
        self.hosts[index].couriers += 1;
        self.connections += 1;
        let worker = self.handle();
        self.tasks.spawn_local(courier::courier(worker, index));
    }

    /// Takes what a connection to a host takes of the caps, or stands in line for what there is too little of.
    fn may_connect(&mut self, index: usize) -> bool {
        let (thread, tools) = (self.thread, self.tools.clone());
        let caps = &tools.caps;
        let host = &self.hosts[index];
        let (key, permits, couriers) = (&host.key, &host.permits, host.couriers);
        if !permits.take(thread) {
            caps.call(permits.idle_elsewhere(thread), || Call::Idle(Some(key.clone())));
            self.wait_for(index, Waits::ForItsOwn);
            return false;
        }
        let further = couriers > 0;
        let granted = if further && !caps.further.take(thread) {
            false
        } else if caps.all.take(thread) {
            true
        } else {
            if further {
                caps.call(caps.further.give(1), || Call::Connection);
            }
            false
        };
        if !granted {
            caps.call(permits.give(1), || Call::Host(key.clone()));
            self.wait_for(index, if further { Waits::ForAny } else { Waits::ShutOut });
            if !self.dismiss_an_idle_courier(None) {
                caps.call(caps.all.idle_elsewhere(thread), || Call::Idle(None));
            }
        } else if !self.starved.is_empty() {
            // In line a thread is once, whichever of its hosts it stands for: with what this one took it left the line,
            // and stands again for the others.
            caps.call_one(thread, Call::Connection);
        }
        granted
    }

    /// Has a courier that is idle leave: one of this host, or of any. False: there is none.
    fn dismiss_an_idle_courier(&mut self, host: Option<usize>) -> bool {
        let summons = match host {
            Some(index) => self.hosts[index].idle.pop(),
            None => self.hosts.iter_mut().find_map(|(_, host)| host.idle.pop()),
        };
        summons.inspect(|summons| summons.dismiss()).is_some()
    }

    /// A courier has nothing to do: whether it should leave, because nobody sends there any more, or somebody else
    /// waits for a connection.
    pub fn idle_courier_should_leave(&mut self, index: usize) -> bool {
        let (caps, host) = (&self.tools.caps, &self.hosts[index]);
        host.permits.idles(self.thread);
        caps.all.idles(self.thread);
        host.users == 0
            || host.permits.is_wanted_elsewhere(self.thread)
            || caps.all.is_wanted()
            || host.couriers > 1 && caps.further.is_wanted()
    }

    /// Whether a courier that has worked for a turn should leave: because a host waits that has no connection at all, or
    /// another thread waits for this host, and this one has more than its part.
    pub fn busy_courier_should_leave(&self, index: usize) -> bool {
        let (caps, host) = (&self.tools.caps, &self.hosts[index]);
        if caps.somebody_is_shut_out() {
            return true;
        }
        // Each thread that has the host holds its permits once.
        let part = || host.permits.cap() / Arc::strong_count(&host.permits) as u32;
        host.permits.is_wanted_elsewhere(self.thread) && host.couriers > part()
    }

    /// A courier has left, its connection closed.
    pub fn courier_left(&mut self, index: usize) {
        self.connections -= 1;
        let host = &mut self.hosts[index];
        host.couriers -= 1;
        let last = host.couriers == 0;
        if last && host.waits == Waits::ForAny {
            // What it stood in line for is one more. Now it takes one, or is shut out.
            self.wait_for(index, Waits::No);
        }
        let (caps, host) = (&self.tools.caps, &self.hosts[index]);
        caps.call(host.permits.give(1), || Call::Host(host.key.clone()));
        if !last {
            caps.call(caps.further.give(1), || Call::Connection);
        }
        caps.call(caps.all.give(1), || Call::Connection);
        // Behind those who waited.
        if host.has_work() && !self.stopping {
            self.summon(index);
        }
        self.forget_unused(index);
    }

    /// This thread was called for something that it stood in line for, or that others do.
    pub fn called(&mut self, call: Call) {
        match call {
            Call::Host(key) => self.called_for_host(&key),
            Call::Connection => self.called_for_connection(),
            Call::Hanging => self.next_that_hangs(),
            Call::Concurrency(number) => self.called_for_concurrency(number),
            Call::Idle(key) => self.called_for_idle(key.as_ref()),
        }
    }

    fn called_for_host(&mut self, key: &HostKey) {
        let Some(&index) = self.host_index.get(key) else { return };
        if self.hosts[index].waits == Waits::ForItsOwn {
            self.wait_for(index, Waits::No);
            self.summon_if_needed(index);
        }
        let permits = &self.hosts[index].permits;
        self.tools.caps.call(permits.decline(self.thread), || Call::Host(key.clone()));
    }

    fn called_for_connection(&mut self) {
        while let Some(index) = self.starved.first() {
            let waited = self.hosts[index].waits;
            self.wait_for(index, Waits::No);
            let host = &mut self.hosts[index];
            if host.has_work() && !self.stopping {
                match host.idle.pop() {
                    Some(summons) => summons.wake(),
                    None => self.connect(index),
                }
            }
            if self.hosts[index].waits == waited {
                // Then there is none for the others either. It keeps its place.
                self.starved.last_becomes_first(waited);
                break;
            }
        }
        let (thread, caps) = (self.thread, &self.tools.caps);
        caps.call(caps.all.decline(thread), || Call::Connection);
        caps.call(caps.further.decline(thread), || Call::Connection);
    }

    /// The same, if there is work for one.
    pub fn summon_if_needed(&mut self, index: usize) {
        if self.hosts[index].has_work() && !self.stopping {
            self.summon(index);
        }
    }

    fn called_for_idle(&mut self, key: Option<&HostKey>) {
        let index = key.and_then(|key| self.host_index.get(key)).copied();
        if key.is_some() && index.is_none() || self.dismiss_an_idle_courier(index) {
            return;
        }
        let permits = index.map_or(&self.tools.caps.all, |index| &self.hosts[index].permits);
        permits.idles_no_more(self.thread);
    }
}
