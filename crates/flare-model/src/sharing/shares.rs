//! The connections of a node, to each host and in all, as far as they are shared by class. In: a delivery thread wants to
//! begin a request for a client, one grows old, one ends. Out: whether it may begin, and whom else it lets begin.
//!
//! Whoever may not begin stands in line, and is granted its share as soon as there is room: a grant counts as begun. So
//! room that somebody in line could use is never left, nobody who comes later overtakes, and there is nothing to be tried
//! again. What a host and what all hosts allow is decided in one step: two threads cannot each have one half of it.
//!
//! A share is kept while its connection is waited for. So nobody is given one for whom there would be no connection: of the
//! connections in all some are for hosts that have none, and the shares of hosts that have some are no more than the rest.

use std::collections::{BTreeMap, BTreeSet};

use super::{Class, kept};

/// One host among those of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostNumber(u64);

/// A thread that stood in line may begin a request of this class. It counts as begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// To which host.
    pub host: HostNumber,
    /// Which thread.
    pub thread: usize,
    /// Of which class.
    pub class: Class,
}

/// What is open, and who waits.
#[derive(Debug)]
pub struct Shares {
    all: Pool,
    hosts: BTreeMap<HostNumber, HostShares>,
    next_host: u64,
    next_ticket: u64,
    /// How many may be open beyond the first of each host.
    further: u32,
    /// How many are.
    further_open: u32,
    /// By class, hosts that have room for somebody who waits, but not all hosts together have. Those that came first are
    /// first. Bound: each host once for each class.
    starved: [Starved; 3],
}

/// Hosts that have room for somebody who waits, but not all hosts together have.
#[derive(Debug, Default)]
struct Starved {
    /// Those that have nothing open.
    without: BTreeSet<(u64, HostNumber)>,
    /// Those that have something open.
    with_some: BTreeSet<(u64, HostNumber)>,
}

impl Starved {
    fn part(&mut self, has_some: bool) -> &mut BTreeSet<(u64, HostNumber)> {
        if has_some { &mut self.with_some } else { &mut self.without }
    }
}

#[derive(Debug)]
struct HostShares {
    pool: Pool,
    /// Bound: each thread once for each class.
    line: Vec<Waiting>,
    /// Its tickets among those that are starved.
    starved: [Option<u64>; 3],
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    thread: usize,
    class: Class,
    /// How many requests the client has open that is next on that thread.
    held: u32,
    ticket: u64,
}

/// Connections: how many there are, what is open, and which clients there are.
#[derive(Debug)]
struct Pool {
    slots: u32,
    open: [u32; 3],
    users: [u32; 4],
}

fn counted(class: Class) -> Option<usize> {
    (class as usize).checked_sub(1)
}

impl Pool {
    fn new(slots: u32) -> Pool {
        Pool { slots, open: [0; 3], users: [0; 4] }
    }

    /// How many requests of this class and the slower ones may be open: all but what is kept for the quicker classes that
    /// are there. If any is, what is kept for the quick counts too: one that answers late for a while is quick again soon.
    fn most(&self, class: Class) -> u32 {
        if self.users.iter().sum::<u32>() <= 1 {
            // There is nobody to share with: as many as there are connections, which are counted elsewhere.
            return u32::MAX;
        }
        let quicker = &self.users[..class as usize];
        if quicker.iter().all(|users| *users == 0) {
            return self.slots.max(1);
        }
        let kept = kept(self.slots);
        let others = kept.iter().zip(quicker).skip(1).filter(|(_, users)| **users > 0);
        let kept = kept[0] + others.map(|(kept, _)| kept).sum::<u32>();
        self.slots.saturating_sub(kept).max(1)
    }

    /// Whether one more may begin: within what is left for its class, and for each that is quicker.
    fn may_begin(&self, class: Class) -> bool {
        let within = |class: Class| match counted(class) {
            None => true,
            Some(index) => self.open[index..].iter().sum::<u32>() < self.most(class),
        };
        Class::COUNTED.into_iter().take_while(|other| *other <= class).all(within)
    }

    fn begin(&mut self, class: Class) {
        if let Some(index) = counted(class) {
            self.open[index] += 1;
        }
    }

    fn end(&mut self, class: Class) {
        if let Some(index) = counted(class) {
            self.open[index] -= 1;
        }
    }
}

impl HostShares {
    fn open(&self) -> u32 {
        self.pool.open.iter().sum()
    }

    /// The next one in line, of those that its host and all hosts together have room for: who is new, then who holds
    /// least, then who has waited longest.
    fn next(&self, all: &Pool) -> Option<usize> {
        let may = |(_, waiting): &(usize, &Waiting)| {
            self.pool.may_begin(waiting.class) && all.may_begin(waiting.class)
        };
        let order =
            |(_, waiting): &(usize, &Waiting)| (waiting.class != Class::New, waiting.held, waiting.ticket);
        self.line.iter().enumerate().filter(may).min_by_key(order).map(|(index, _)| index)
    }
}

impl Shares {
    /// So many connections in all.
    pub fn new(slots: u32) -> Shares {
        Shares {
            all: Pool::new(slots),
            hosts: BTreeMap::new(),
            next_host: 0,
            next_ticket: 0,
            further: slots,
            further_open: 0,
            starved: Default::default(),
        }
    }

    /// From now on so many may be open beyond the first of each host: the other connections are for hosts that have none.
    #[must_use = "whoever is granted something is told"]
    pub fn set_further(&mut self, further: u32) -> Vec<Grant> {
        self.further = further;
        self.serve()
    }

    /// Whether a host may have one more, as far as the others are to have one, too.
    fn may_have_one_more(&self, has_some: bool) -> bool {
        let alone = self.all.users.iter().sum::<u32>() <= 1;
        !has_some || alone || self.further_open < self.further
    }

    /// Begins or ends requests at a host.
    fn count(&mut self, host: HostNumber, change: impl Fn(&mut Pool)) {
        let Some(there) = self.hosts.get_mut(&host) else { return };
        let before = there.open();
        change(&mut there.pool);
        change(&mut self.all);
        let now = there.open();
        self.further_open = self.further_open + now.saturating_sub(1) - before.saturating_sub(1);
        if (before > 0) != (now > 0) {
            for (starved, ticket) in self.starved.iter_mut().zip(there.starved) {
                let Some(ticket) = ticket else { continue };
                starved.part(before > 0).remove(&(ticket, host));
                starved.part(now > 0).insert((ticket, host));
            }
        }
    }

    /// A host that may have so many connections.
    pub fn add_host(&mut self, slots: u32) -> HostNumber {
        let host = HostNumber(self.next_host);
        self.next_host += 1;
        let (pool, line, starved) = (Pool::new(slots), Vec::new(), [None; 3]);
        self.hosts.insert(host, HostShares { pool, line, starved });
        host
    }

    /// Nobody has this host any more.
    #[must_use = "whoever is granted something is told"]
    pub fn remove_host(&mut self, host: HostNumber) -> Vec<Grant> {
        let Some(gone) = self.hosts.remove(&host) else { return Vec::new() };
        self.further_open -= gone.open().saturating_sub(1);
        for (index, starved) in self.starved.iter_mut().enumerate() {
            gone.starved[index].map(|ticket| starved.part(gone.open() > 0).remove(&(ticket, host)));
            self.all.open[index] -= gone.pool.open[index];
        }
        for (all, users) in self.all.users.iter_mut().zip(gone.pool.users) {
            *all -= users;
        }
        self.serve()
    }

    /// A client of this class sends to a host from now on.
    pub fn join(&mut self, host: HostNumber, class: Class) {
        let Some(there) = self.hosts.get_mut(&host) else { return };
        there.pool.users[class as usize] += 1;
        self.all.users[class as usize] += 1;
    }

    /// A client of this class sends there no more.
    #[must_use = "whoever is granted something is told"]
    pub fn quit(&mut self, host: HostNumber, class: Class) -> Vec<Grant> {
        let Some(there) = self.hosts.get_mut(&host) else { return Vec::new() };
        there.pool.users[class as usize] -= 1;
        self.all.users[class as usize] -= 1;
        self.consider(host);
        self.serve()
    }

    /// How many requests a client may have open of which none has ended yet: one at first, and what is its part once that
    /// is open for as long as those of a slow client; whatever there is where it has the host for itself, or where it is
    /// slow and nobody waits.
    pub fn first_requests(&self, host: HostNumber, class: Class) -> u32 {
        let Some(HostShares { pool, line, .. }) = self.hosts.get(&host) else { return u32::MAX };
        match (pool.users.iter().sum::<u32>(), class) {
            (0 | 1, _) => u32::MAX,
            (_, Class::Slow) if line.is_empty() => u32::MAX,
            (users, Class::Slow) => (pool.slots / users).max(1),
            (_, _) => 1,
        }
    }

    /// Begins a request of this class, for a client that has so many open. False: the thread stands in line, and is
    /// granted one for whichever of its clients of this class is next.
    pub fn begin(&mut self, host: HostNumber, thread: usize, class: Class, held: u32) -> bool {
        let Some(there) = self.hosts.get(&host) else { return true };
        let by_all = self.all.may_begin(class) && self.may_have_one_more(there.open() > 0);
        if by_all && there.pool.may_begin(class) {
            self.count(host, |pool| pool.begin(class));
            return true;
        }
        if !self.is_next(host, thread, class, held) {
            let waiting = Waiting { thread, class, held, ticket: self.next_ticket };
            self.next_ticket += 1;
            there_is(&mut self.hosts, host).line.push(waiting);
            self.consider(host);
        }
        false
    }

    /// On a thread that is in line, the next client has so many requests open. False: it is not in line.
    pub fn is_next(&mut self, host: HostNumber, thread: usize, class: Class, held: u32) -> bool {
        let Some(there) = self.hosts.get_mut(&host) else { return false };
        let mut line = there.line.iter_mut();
        let waiting = line.find(|waiting| waiting.thread == thread && waiting.class == class);
        waiting.map(|waiting| waiting.held = held).is_some()
    }

    /// A thread has no client of this class any more that waits.
    pub fn leave_line(&mut self, host: HostNumber, thread: usize, class: Class) {
        let Some(there) = self.hosts.get_mut(&host) else { return };
        there.line.retain(|waiting| waiting.thread != thread || waiting.class != class);
        let others = there.line.iter().any(|waiting| waiting.class == class);
        if let (Some(index), false) = (counted(class), others)
            && let Some(ticket) = there.starved[index].take()
        {
            let has_some = there.open() > 0;
            self.starved[index].part(has_some).remove(&(ticket, host));
        }
    }

    /// A request that is open counts as one of a slower class from now on, whether there is room for that or not.
    pub fn ages(&mut self, host: HostNumber, from: Class, to: Class) {
        self.count(host, |pool| {
            pool.end(from);
            pool.begin(to);
        });
    }

    /// A request that was begun, or granted, as one of this class has ended.
    #[must_use = "whoever is granted something is told"]
    pub fn end(&mut self, host: HostNumber, class: Class) -> Vec<Grant> {
        self.count(host, |pool| pool.end(class));
        self.consider(host);
        self.serve()
    }

    /// How many requests are open at a host that are slow to end.
    pub fn slow(&self, host: HostNumber) -> u32 {
        self.hosts.get(&host).map_or(0, |there| there.pool.open[1] + there.pool.open[2])
    }

    /// The same at all hosts.
    pub fn slow_in_all(&self) -> u32 {
        self.all.open[1] + self.all.open[2]
    }

    /// Whether it is all hosts together that have no room for what waits at this one.
    pub fn is_starved(&self, host: HostNumber) -> bool {
        self.hosts.get(&host).is_some_and(|there| there.starved.iter().any(Option::is_some))
    }

    /// A host has room for those who wait there, by itself: they are served in turn with those of other hosts.
    fn consider(&mut self, host: HostNumber) {
        let Some(there) = self.hosts.get_mut(&host) else { return };
        for class in Class::COUNTED {
            let Some(index) = counted(class) else { continue };
            let wants =
                there.line.iter().any(|waiting| waiting.class == class) && there.pool.may_begin(class);
            if wants && there.starved[index].is_none() {
                there.starved[index] = Some(self.next_ticket);
                self.starved[index].part(there.open() > 0).insert((self.next_ticket, host));
                self.next_ticket += 1;
            }
        }
    }

    /// Grants what there is room for: to who is new first, then to the host that was starved first.
    fn serve(&mut self) -> Vec<Grant> {
        let mut grants = Vec::new();
        loop {
            let may = |class: &Class| self.all.may_begin(*class);
            let more = self.may_have_one_more(true);
            let first = |class: Class| {
                let Starved { without, with_some } = &self.starved[counted(class)?];
                let first = without.first().into_iter().chain(with_some.first().filter(|_| more)).min();
                first.map(|(ticket, host)| (class != Class::New, *ticket, class, *host))
            };
            let next = Class::COUNTED.into_iter().filter(may).filter_map(first).min();
            let Some((_, ticket, class, host)) = next else { return grants };
            let Some(index) = counted(class) else { return grants };
            let Some(there) = self.hosts.get_mut(&host) else { return grants };
            there.starved[index] = None;
            self.starved[index].part(there.open() > 0).remove(&(ticket, host));
            let Some(next) = there.next(&self.all) else { continue };
            let Waiting { thread, class, .. } = there.line.remove(next);
            self.count(host, |pool| pool.begin(class));
            grants.push(Grant { host, thread, class });
            self.consider(host);
        }
    }
}

fn there_is(hosts: &mut BTreeMap<HostNumber, HostShares>, host: HostNumber) -> &mut HostShares {
    hosts.get_mut(&host).expect("the host was found just now")
}

#[cfg(test)]
#[path = "shares_tests.rs"]
mod tests;
