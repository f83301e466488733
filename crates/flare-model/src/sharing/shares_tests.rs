//! In: clients of every class at a few hosts, on a few threads, by chance. Out: that no room is left that somebody could
//! use, that nobody waits for ever, and that the quick always find what is kept for them.

use super::super::Line;
use super::*;

fn one_host(slots: u32, users: &[(Class, u32)]) -> (Shares, HostNumber) {
    let mut shares = Shares::new(1_000);
    let host = shares.add_host(slots);
    for (class, count) in users {
        (0..*count).for_each(|_| shares.join(host, *class));
    }
    (shares, host)
}

#[test]
fn what_is_slow_leaves_a_part_to_whoever_is_quicker_and_is_there() {
    use Class::{Middling, New, Quick, Slow};
    let most = |users: &[(Class, u32)], class| {
        let (mut shares, host) = one_host(64, users);
        (0..).find(|_| !shares.begin(host, 0, class, 0)).expect("there is an end")
    };
    assert_eq!(most(&[(Slow, 200)], Slow), 64, "nobody else is there");
    assert!(Pool { users: [0, 0, 0, 1], ..Pool::new(0) }.may_begin(Slow), "it is alone");
    assert_eq!(most(&[(Slow, 200), (Quick, 1)], Slow), 62);
    assert_eq!(most(&[(Slow, 200), (Middling, 1)], Slow), 60, "it may have been quick");
    assert_eq!(most(&[(Slow, 200), (Quick, 1), (New, 1), (Middling, 1)], Slow), 58);
    assert_eq!(most(&[(Slow, 200), (Quick, 1), (New, 1), (Middling, 1)], Middling), 60);
    assert_eq!(most(&[(Slow, 200), (Quick, 1), (New, 1), (Middling, 1)], New), 62);
}

#[test]
fn what_grows_old_counts_as_slow_whether_there_is_room_or_not() {
    let (mut shares, host) = one_host(4, &[(Class::Quick, 3), (Class::Slow, 1)]);
    (0..3).for_each(|_| shares.ages(host, Class::Quick, Class::Middling));
    assert_eq!(shares.slow(host), 3);
    assert!(!shares.begin(host, 0, Class::Slow, 0));
    assert_eq!(shares.end(host, Class::Middling), [Grant { host, thread: 0, class: Class::Slow }]);
}

#[test]
fn a_client_of_which_nothing_is_known_begins_with_one_request_unless_it_is_alone() {
    let (mut shares, host) = one_host(64, &[(Class::New, 1)]);
    assert_eq!(shares.first_requests(host, Class::New), u32::MAX);
    (0..7).for_each(|_| shares.join(host, Class::Slow));
    assert_eq!(shares.first_requests(host, Class::New), 1);
    assert_eq!(shares.first_requests(host, Class::Slow), u32::MAX, "nobody waits");
    while shares.begin(host, 0, Class::Slow, 0) {}
    assert_eq!(shares.first_requests(host, Class::New), 1);
    assert_eq!(shares.first_requests(host, Class::Slow), 8);
    (0..200).for_each(|_| shares.join(host, Class::Slow));
    assert_eq!(shares.first_requests(host, Class::Slow), 1);
}

#[test]
fn who_is_new_goes_first_then_who_holds_least() {
    let (mut shares, host) = one_host(1, &[(Class::Slow, 3)]);
    assert!(shares.begin(host, 0, Class::Slow, 0));
    assert!(!shares.begin(host, 0, Class::Slow, 1) && !shares.begin(host, 1, Class::Middling, 0));
    assert!(!shares.begin(host, 2, Class::New, 7));
    let mut order = Vec::new();
    let mut ended = Class::Slow;
    while let [grant] = shares.end(host, ended)[..] {
        ended = grant.class;
        order.push(grant.thread);
    }
    assert_eq!(order, [2, 1, 0]);
}

#[test]
fn hosts_that_wait_for_the_connections_of_all_take_turns() {
    let mut shares = Shares::new(1);
    let [a, b] = [shares.add_host(8), shares.add_host(8)];
    [a, b].into_iter().for_each(|host| shares.join(host, Class::Slow));
    assert!(shares.begin(a, 0, Class::Slow, 0));
    assert!(!shares.begin(a, 0, Class::Slow, 0) && !shares.begin(b, 0, Class::Slow, 0));
    assert!(shares.is_starved(a) && shares.is_starved(b));
    let mut granted = Vec::new();
    let mut open = a;
    for _ in 0..6 {
        let [grant] = shares.end(open, Class::Slow)[..] else { panic!("one is granted") };
        open = grant.host;
        granted.push(open);
        assert!(!shares.begin(open, 0, Class::Slow, 0), "it wants more");
    }
    assert_eq!(granted, [a, b, a, b, a, b]);
}

#[test]
fn a_host_that_has_nothing_open_finds_something_whatever_the_others_want() {
    let mut shares = Shares::new(8);
    let [a, b, c] = [shares.add_host(8), shares.add_host(8), shares.add_host(8)];
    [a, b, c].into_iter().for_each(|host| shares.join(host, Class::Slow));
    assert!(shares.set_further(5).is_empty());
    let mut open = [0; 2];
    for turn in 0..20 {
        let (which, host) = (turn % 2, [a, b][turn % 2]);
        open[which] += u32::from(shares.begin(host, 0, Class::Slow, open[which]));
    }
    assert_eq!(open, [4, 3], "the eighth connection is for a host that has none");
    assert!(shares.begin(c, 0, Class::Slow, 0));
    assert!(!shares.begin(c, 0, Class::Slow, 1), "but not for its second");
    // What ends at one of the others goes to those who want more, in turn.
    assert_eq!(shares.end(a, Class::Slow), [Grant { host: b, thread: 0, class: Class::Slow }]);
    let none = shares.set_further(6);
    assert!(none.is_empty(), "all connections are in use: {none:?}");
}

/// A client by itself.
struct Client {
    host: HostNumber,
    thread: usize,
    class: Class,
    open: Vec<Class>,
    waits: bool,
    waited: u32,
}

struct World {
    shares: Shares,
    clients: Vec<Client>,
    slots: u32,
}

impl World {
    fn new(dice: &mut impl FnMut(u64) -> u64) -> World {
        let slots = 1 + dice(30) as u32;
        let in_all = 1 + dice(30) as u32;
        let mut shares = Shares::new(in_all);
        // Less the hosts, up to half, as the connections in all have it.
        assert!(shares.set_further(in_all - (dice(4) as u32).min(in_all / 2)).is_empty());
        let hosts: Vec<_> = (0..1 + dice(3)).map(|_| shares.add_host(slots)).collect();
        let clients = (0..2 + dice(12)).map(|_| {
            let host = hosts[dice(hosts.len() as u64) as usize];
            let class = Class::ALL[dice(4) as usize];
            shares.join(host, class);
            Client { host, thread: dice(3) as usize, class, open: Vec::new(), waits: false, waited: 0 }
        });
        let clients = clients.collect();
        World { shares, clients, slots }
    }

    fn wants(&mut self, index: usize) {
        let Client { host, thread, class, ref open, waits, .. } = self.clients[index];
        if class == Class::Quick || waits {
            return;
        }
        let begun = self.shares.begin(host, thread, class, open.len() as u32);
        let client = &mut self.clients[index];
        match begun {
            true => client.open.push(class),
            false => client.waits = true,
        }
    }

    /// The next client of the thread has what was granted; the others stand again.
    fn hear(&mut self, grants: Vec<Grant>) {
        for Grant { host, thread, class } in grants {
            let here = |client: &Client| {
                client.waits && (client.host, client.thread, client.class) == (host, thread, class)
            };
            let mut next: Vec<_> =
                (0..self.clients.len()).filter(|index| here(&self.clients[*index])).collect();
            next.sort_by_key(|index| {
                (self.clients[*index].open.len(), u32::MAX - self.clients[*index].waited)
            });
            let first = next.first().expect("only who waits is granted something");
            let client = &mut self.clients[*first];
            (client.waits, client.waited) = (false, 0);
            client.open.push(class);
            if let Some(second) = next.get(1) {
                self.clients[*second].waits = false;
                self.wants(*second);
            }
        }
        for client in self.clients.iter_mut().filter(|client| client.waits && client.open.is_empty()) {
            client.waited += 1;
        }
    }

    fn ends(&mut self, index: usize) {
        let client = &mut self.clients[index];
        if let Some(class) = client.open.pop() {
            let grants = self.shares.end(client.host, class);
            self.hear(grants);
        }
    }

    fn is_sound(&self, seed: u64) {
        let further: u32 = self.shares.hosts.values().map(|host| host.open().saturating_sub(1)).sum();
        assert_eq!(self.shares.further_open, further, "seed {seed}");
        for (number, host) in &self.shares.hosts {
            let open = |class| {
                let here = self.clients.iter().filter(|client| client.host == *number);
                here.flat_map(|client| &client.open).filter(|open| **open == class).count() as u32
            };
            for class in Class::COUNTED {
                assert_eq!(host.pool.open[class as usize - 1], open(class), "seed {seed}");
            }
            let free = self.shares.may_have_one_more(host.open() > 0);
            let next = host.next(&self.shares.all).filter(|_| free);
            assert!(next.is_none(), "seed {seed}: somebody waits for what is free");
            for client in self.clients.iter().filter(|client| client.waits && client.host == *number) {
                let stands =
                    |waiting: &Waiting| (waiting.thread, waiting.class) == (client.thread, client.class);
                assert!(host.line.iter().any(stands), "seed {seed}: it waits, and nobody knows");
            }
        }
    }
}

#[test]
fn no_room_is_left_nothing_is_lost_and_everybody_who_waits_has_its_turn() {
    for seed in 1..2_000u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut dice = |sides: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % sides
        };
        let mut world = World::new(&mut dice);
        let slots = world.slots;
        for _ in 0..300 {
            let index = dice(world.clients.len() as u64) as usize;
            match dice(8) {
                0..=4 => world.wants(index),
                5 | 6 => world.ends(index),
                _ => {
                    let client = &mut world.clients[index];
                    let young = client.open.iter_mut().find(|class| **class == Class::New);
                    if let Some(class) = young {
                        *class = Class::Middling;
                        world.shares.ages(client.host, Class::New, Class::Middling);
                    }
                }
            }
            world.is_sound(seed);
        }
        // Everything that is open ends, again and again: everybody who waits has its turn.
        // Whoever is alone at its host may have all that all hosts have together.
        let most = slots.max(world.shares.all.slots) as usize;
        for _ in 0..4 * world.clients.len() * most {
            (0..world.clients.len()).for_each(|index| world.ends(index));
        }
        assert!(world.clients.iter().all(|client| !client.waits), "seed {seed}: somebody waits for nothing");
        let open: usize = world.clients.iter().map(|client| client.open.len()).sum();
        assert_eq!(
            (world.shares.all.open, open),
            ([0; 3], 0),
            "seed {seed}, {slots} connections, {} clients",
            world.clients.len()
        );
    }
}

#[test]
fn a_client_that_holds_nothing_is_served_within_one_round_of_those_who_wait() {
    // Twenty slow clients that always want more, on two threads, and one that comes late.
    let (mut shares, host) = one_host(8, &[(Class::Quick, 1), (Class::Slow, 21)]);
    let mut lines: [Line<usize>; 2] = Default::default();
    let mut held = [0u32; 21];
    let mut open = std::collections::VecDeque::new();
    let want = |shares: &mut Shares, lines: &mut [Line<usize>; 2], held: &mut [u32; 21], who: usize| {
        let thread = who % 2;
        if !lines[thread].is_empty() || !shares.begin(host, thread, Class::Slow, held[who]) {
            let _ticket = lines[thread].stand(who, held[who]);
            return None;
        }
        held[who] += 1;
        Some(who)
    };
    for who in 0..20 {
        open.extend(want(&mut shares, &mut lines, &mut held, who));
    }
    assert_eq!(open.len(), 7);
    assert!(want(&mut shares, &mut lines, &mut held, 20).is_none());
    let mut ends = 0;
    while held[20] == 0 {
        ends += 1;
        assert!(ends <= 2 * 21, "it waits for too long");
        let who = open.pop_front().expect("some are open");
        held[who] -= 1;
        let grants = shares.end(host, Class::Slow);
        let _ticket = lines[who % 2].stand(who, held[who]);
        for Grant { thread, .. } in grants {
            let next = lines[thread].take_next().expect("somebody waits");
            held[next] += 1;
            open.push_back(next);
            if let Some(least) = lines[thread].least() {
                assert!(!shares.begin(host, thread, Class::Slow, least));
            }
        }
    }
}
