//! The hosts that a delivery thread sends to: who stands in line there, and how many couriers (one per connection) take
//! work from the line, as many as the [caps](crate::journey::permits::caps) of the node allow. In: a subscription that
//! has something to send, a courier that is idle or leaves, a call. Out: whether a courier is to be made, or to leave.

use std::collections::{HashMap, VecDeque};
use std::ops::{Index, IndexMut};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flare_model::explain::InLine;
use flare_model::sharing::HostNumber;
use slab::Slab;

use crate::journey::bell::Call;
use crate::journey::permits::caps::{Caps, TooFew, WantedConnection};
use crate::journey::permits::pool::Permits;
use crate::journey::permits::shares::SlowRequests;
use crate::journey::worker::breaker::Breaker;
use crate::journey::worker::job::{Job, Summons};
use crate::journey::worker::queue::Queue;
use crate::journey::worker::subscribers::Place;
use crate::notification::compiled::Compiled;
use crate::notification::host::Destination;

/// For so long a courier works for its host, even if a host that has no connection waits for one. A shorter time would
/// have connections opened more often than used.
pub const TURN: Duration = Duration::from_millis(100);

/// A destination.
pub struct Host {
    /// Where it is.
    pub key: Destination,
    /// Its number among those whose connections clients share by how long theirs take.
    pub number: HostNumber,
    /// Subscriptions with something to take, served in turn.
    pub queue: Queue,
    /// Attempts decided elsewhere that go here. Bound: the concurrency of the subscriptions.
    pub handed: VecDeque<Job>,
    /// Couriers with nothing to do.
    pub idle: Vec<Rc<Summons>>,
    /// Couriers in all.
    pub couriers: u32,
    /// Whether it is tried at all.
    pub breaker: Breaker,
    /// Who was the last to get an answer: the first to ask whether it answers again.
    pub answered_last: Option<Place>,
    /// Nothing may be sent to it now, whatever stands in line: an alarm is set, or a probe is under way, and then it is
    /// looked again. Without this, hosts that are all left alone would take a connection from each other without end.
    pub rests: bool,
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

/// The hosts of a thread. A host is there as long as a subscription may send to it or a courier is on its way; until then
/// its index holds.
pub struct Hosts {
    thread: usize,
    caps: Arc<Caps>,
    /// Bound: those that its subscriptions send to, or that couriers are on the way to.
    hosts: Slab<Host>,
    index: HashMap<Destination, usize>,
    numbers: HashMap<HostNumber, usize>,
    /// Connections open or opening.
    connections: usize,
    starved: Starved,
}

/// Hosts that wait for a connection because as many are open to all hosts as may be. Bound: each host once.
#[derive(Default)]
struct Starved {
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
        self.queue.has_trusted() || !self.rests && self.has_some_in_line()
    }

    /// Whether nothing is sent to it for now, but to find out whether it answers.
    pub fn is_left_alone(&self) -> bool {
        self.rests || !self.breaker.is_closed()
    }

    fn has_some_in_line(&self) -> bool {
        !self.queue.is_empty() || !self.handed.is_empty()
    }
}

impl Index<usize> for Hosts {
    type Output = Host;

    fn index(&self, index: usize) -> &Host {
        &self.hosts[index]
    }
}

impl IndexMut<usize> for Hosts {
    fn index_mut(&mut self, index: usize) -> &mut Host {
        &mut self.hosts[index]
    }
}

impl Hosts {
    /// None yet.
    pub fn new(thread: usize, caps: Arc<Caps>) -> Hosts {
        let (hosts, index, numbers) = (Slab::new(), HashMap::new(), HashMap::new());
        Hosts { thread, caps, hosts, index, numbers, connections: 0, starved: Starved::default() }
    }

    /// All of them, each with its index.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Host)> {
        self.hosts.iter()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Connections open or opening.
    pub fn connections(&self) -> usize {
        self.connections
    }

    /// The connections that a host stands in line for, if it does.
    pub fn in_line(&self, index: usize) -> Option<InLine> {
        let host = &self.hosts[index];
        match host.waits {
            Waits::No => None,
            Waits::ForItsOwn => Some(self.connections_to(host, self.caps.slow_of(host.number))),
            Waits::ForAny | Waits::ShutOut => Some(self.connections_to_all(self.caps.slow_in_all())),
        }
    }

    /// The connections that a client of a host waits for because those that are slow have them.
    pub fn in_line_for_share(&self, index: usize) -> InLine {
        let host = &self.hosts[index];
        match self.caps.slow(host.number) {
            SlowRequests::ToHost(slow) => self.connections_to(host, slow),
            SlowRequests::ToAll(slow) => self.connections_to_all(slow),
        }
    }

    fn connections_to(&self, host: &Host, slow: u32) -> InLine {
        let Host { key, permits, .. } = host;
        InLine { host: Some(key.to_string()), open: permits.out(), most: permits.cap(), slow: Some(slow) }
    }

    fn connections_to_all(&self, slow: u32) -> InLine {
        InLine { host: None, open: self.caps.all.out(), most: self.caps.all.cap(), slow: Some(slow) }
    }

    /// How many subscriptions wait for a connection.
    pub fn waiting(&self) -> usize {
        let waiting = |host: &Host| match host.waits {
            Waits::No => host.queue.in_line(),
            _ => host.queue.in_line() + host.queue.len(),
        };
        self.hosts.iter().map(|(_, host)| waiting(host)).sum()
    }

    /// Which host has this number.
    pub fn of_number(&self, number: HostNumber) -> Option<usize> {
        self.numbers.get(&number).copied()
    }

    /// Whether there is a host at an index.
    pub fn contains(&self, index: usize) -> bool {
        self.hosts.contains(index)
    }

    /// The hosts that a subscription sends to, by action; from now on it uses them.
    pub fn use_by(&mut self, compiled: &Compiled) -> [usize; 3] {
        [0, 1, 2].map(|action| {
            let index = self.find_or_make(&compiled.requests[action].to);
            self.hosts[index].users += 1;
            index
        })
    }

    /// A subscription sends to these hosts no more.
    pub fn leave(&mut self, hosts: [usize; 3]) {
        for index in hosts {
            let host = &mut self.hosts[index];
            host.users -= 1;
            if host.users == 0 {
                host.idle.drain(..).for_each(|summons| summons.dismiss());
            }
            self.forget_unused(index);
        }
    }

    fn find_or_make(&mut self, key: &Destination) -> usize {
        if let Some(index) = self.index.get(key) {
            return *index;
        }
        let (permits, number) = self.caps.host(key);
        let index = self.hosts.insert(Host {
            key: key.clone(),
            number,
            queue: Queue::default(),
            handed: VecDeque::new(),
            idle: Vec::new(),
            couriers: 0,
            breaker: Breaker::default(),
            answered_last: None,
            rests: false,
            users: 0,
            permits,
            waits: Waits::No,
        });
        self.index.insert(key.clone(), index);
        self.numbers.insert(number, index);
        index
    }

    /// A host that nobody sends to, and nobody is on the way to, is forgotten.
    fn forget_unused(&mut self, index: usize) {
        let Some(host) = self.hosts.get(index) else { return };
        if host.users > 0 || host.couriers > 0 || host.has_some_in_line() {
            return;
        }
        self.wait_for(index, Waits::No);
        let Host { key, permits, number, .. } = self.hosts.remove(index);
        self.index.remove(&key);
        self.numbers.remove(&number);
        self.caps.call(permits.leave(self.thread), || Call::Host(key.clone()));
        self.caps.forget_host(&key, permits);
    }

    /// A host waits for something else than before, as the last of those that do.
    fn wait_for(&mut self, index: usize, waits: Waits) {
        let Starved { shut_out, wanting_more } = &mut self.starved;
        match std::mem::replace(&mut self.hosts[index].waits, waits) {
            Waits::ShutOut => {
                shut_out.retain(|other| *other != index);
                self.caps.shuts_out(false);
            }
            Waits::ForAny => wanting_more.retain(|other| *other != index),
            Waits::No | Waits::ForItsOwn => {}
        }
        match waits {
            Waits::ShutOut => {
                shut_out.push_back(index);
                self.caps.shuts_out(true);
            }
            Waits::ForAny => wanting_more.push_back(index),
            Waits::No | Waits::ForItsOwn => {}
        }
    }

    /// Calls an idle courier of a host. Without one: whether a new one is to be made, and its connection is counted.
    #[must_use = "a courier that was counted is made"]
    pub fn summon(&mut self, index: usize) -> bool {
        let host = &mut self.hosts[index];
        if let Some(summons) = host.idle.pop() {
            summons.wake();
            return false;
        }
        host.waits == Waits::No && !self.stands_behind_others(index) && self.may_connect(index, false)
    }

    /// The same, if there is work for one.
    #[must_use = "a courier that was counted is made"]
    pub fn summon_if_needed(&mut self, index: usize) -> bool {
        self.hosts[index].has_work() && self.summon(index)
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
        if self.hosts[index].permits.stand_behind_others(self.thread) {
            // Or it would come to the line for all connections past threads that waited for this host before it.
            self.wait_for_its_own(index);
        } else {
            self.wait_for(index, waits);
        }
        true
    }

    /// A host stands in line for a connection of its own: whoever has an idle one closes it.
    fn wait_for_its_own(&mut self, index: usize) {
        let Host { key, permits, .. } = &self.hosts[index];
        self.caps.call(permits.idle_elsewhere(self.thread), || Call::Idle(Some(key.clone())));
        self.wait_for(index, Waits::ForItsOwn);
    }

    /// Takes what a connection to a host takes of the caps, and counts it; or stands in line for what there is too
    /// little of. `in_turn`: the thread was called for a connection.
    fn may_connect(&mut self, index: usize, in_turn: bool) -> bool {
        let (thread, caps) = (self.thread, self.caps.clone());
        let Host { key, permits, couriers, .. } = &self.hosts[index];
        let further = *couriers > 0;
        match caps.take_connection(&WantedConnection { thread, key, host: permits, further, in_turn }) {
            Ok(()) => {}
            Err(TooFew::ToHost) => {
                self.wait_for_its_own(index);
                return false;
            }
            Err(TooFew::ToAll) => {
                self.wait_for(index, if further { Waits::ForAny } else { Waits::ShutOut });
                if !self.dismiss_an_idle_courier(None) {
                    caps.call(caps.all.idle_elsewhere(thread), || Call::Idle(None));
                }
                return false;
            }
        }
        if !self.starved.is_empty() {
            // In line a thread is once, whichever of its hosts it stands for: with what this one took it left the line,
            // and stands again for the others.
            caps.call_one(thread, Call::Connection);
        }
        self.hosts[index].couriers += 1;
        self.connections += 1;
        true
    }

    /// Has every courier that is idle leave: the thread stops.
    pub fn dismiss_idle_couriers(&mut self) {
        self.hosts.iter_mut().for_each(|(_, host)| host.idle.drain(..).for_each(|summons| summons.dismiss()));
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
        let (caps, host) = (&self.caps, &self.hosts[index]);
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
        let (caps, host) = (&self.caps, &self.hosts[index]);
        if caps.somebody_is_shut_out() {
            return true;
        }
        // Each thread that has the host holds its permits once.
        let part = || host.permits.cap() / Arc::strong_count(&host.permits) as u32;
        host.permits.is_wanted_elsewhere(self.thread) && host.couriers > part()
    }

    /// A courier has left, its connection closed. Answers whether a new one is to be made, for work that is left.
    #[must_use = "a courier that was counted is made"]
    pub fn courier_left(&mut self, index: usize, stopping: bool) -> bool {
        self.connections -= 1;
        let host = &mut self.hosts[index];
        host.couriers -= 1;
        let last = host.couriers == 0;
        if last && host.waits == Waits::ForAny {
            // What it stood in line for is one more. Now it takes one, or is shut out.
            self.wait_for(index, Waits::No);
        }
        let (caps, host) = (&self.caps, &self.hosts[index]);
        caps.call(host.permits.give(1), || Call::Host(host.key.clone()));
        if !last {
            caps.call(caps.further.give(1), || Call::Connection);
        }
        caps.call(caps.all.give(1), || Call::Connection);
        // Behind those who waited.
        let new = !stopping && self.summon_if_needed(index);
        self.forget_unused(index);
        new
    }

    /// The thread was called for one more connection to a host. Answers the host if a courier is to be made for it.
    #[must_use = "a courier that was counted is made"]
    pub fn called_for_host(&mut self, key: &Destination, stopping: bool) -> Option<usize> {
        let index = *self.index.get(key)?;
        let mut new = false;
        if self.hosts[index].waits == Waits::ForItsOwn {
            self.wait_for(index, Waits::No);
            new = !stopping && self.summon_if_needed(index);
        }
        let permits = &self.hosts[index].permits;
        self.caps.call(permits.decline(self.thread), || Call::Host(key.clone()));
        new.then_some(index)
    }

    /// The thread was called for one more connection of all. Answers the hosts for each of which a courier is to be made.
    #[must_use = "a courier that was counted is made"]
    pub fn called_for_connection(&mut self, stopping: bool) -> Vec<usize> {
        let mut new = Vec::new();
        while let Some(index) = self.starved.first() {
            let waited = self.hosts[index].waits;
            self.wait_for(index, Waits::No);
            let host = &mut self.hosts[index];
            if host.has_work() && !stopping {
                match host.idle.pop() {
                    Some(summons) => summons.wake(),
                    None if self.may_connect(index, true) => new.push(index),
                    None => {}
                }
            }
            if self.hosts[index].waits == waited {
                // Then there is none for the others either. It keeps its place.
                self.starved.last_becomes_first(waited);
                break;
            }
        }
        let (thread, caps) = (self.thread, &self.caps);
        caps.call(caps.all.decline(thread), || Call::Connection);
        caps.call(caps.further.decline(thread), || Call::Connection);
        new
    }

    /// Other threads wait for connections, to this host or to any: as many that are idle are to be closed. A call is heard
    /// once, however many have called.
    pub fn called_for_idle(&mut self, key: Option<&Destination>) {
        let index = key.and_then(|key| self.index.get(key)).copied();
        if key.is_some() && index.is_none() {
            return;
        }
        let permits = index.map_or(&self.caps.all, |index| &self.hosts[index].permits);
        let waiting = permits.waiting_elsewhere(self.thread).max(1);
        let dismissed = (0..waiting).take_while(|_| self.dismiss_an_idle_courier(index)).count();
        if dismissed == 0 {
            let permits = index.map_or(&self.caps.all, |index| &self.hosts[index].permits);
            permits.idles_no_more(self.thread);
        }
    }
}

#[cfg(test)]
#[path = "hosts_tests.rs"]
mod tests;
