//! In: hosts with work, on threads that share few connections. Out: who opens one, and that nobody waits for nothing.

use futures_util::FutureExt;

use super::*;
use crate::journey::bell::Bell;
use crate::journey::worker::queue::Part;
use crate::notification::host::HostKey;

fn key(host: &str, port: u16) -> Destination {
    HostKey { https: false, host: host.into(), port, identity: None }.into()
}

#[test]
fn hosts_that_are_left_alone_do_not_take_a_connection_from_each_other_without_end() {
    let caps = Arc::new(Caps::new(1, 1, vec![Arc::default()]));
    let mut hosts = Hosts::new(0, caps);
    let [one, other] = ["one.test", "other.test"].map(|name| {
        let index = hosts.find_or_make(&key(name, 80));
        hosts[index].users = 1;
        hosts[index].queue.push(Place::for_test(0), Part::Quick);
        index
    });
    assert!(hosts.summon(one) && !hosts.summon(other), "there is one connection");
    // Its courier finds that the host is left alone, and makes way for the other.
    hosts[one].rests = true;
    assert!(!hosts.courier_left(one, false));
    assert_eq!(hosts.called_for_connection(false), [other]);
    hosts[other].rests = true;
    assert!(!hosts.courier_left(other, false));
    let called = hosts.called_for_connection(false);
    assert!(called.is_empty(), "both wait for their alarms, and not for each other");
    hosts[one].rests = false;
    assert!(hosts.summon_if_needed(one), "its alarm rang");
}

/// Delivery threads that share few connections. Their couriers are only counted.
struct Node {
    bells: Vec<Arc<Bell>>,
    threads: Vec<Hosts>,
    /// The thread and the host of each courier.
    couriers: Vec<(usize, usize)>,
}

impl Node {
    /// Every thread has every host.
    fn new(threads: usize, hosts: usize, connections: u32, per_host: u32) -> Node {
        let bells: Vec<Arc<Bell>> = (0..threads).map(|_| Arc::default()).collect();
        let caps = Arc::new(Caps::new(connections, per_host, bells.clone()));
        let threads = (0..threads).map(|thread| {
            let mut all = Hosts::new(thread, caps.clone());
            for port in 0..hosts {
                let index = all.find_or_make(&key("client.test", port as u16));
                assert_eq!(index, port);
                all[index].users = 1;
            }
            all
        });
        Node { threads: threads.collect(), bells, couriers: Vec::new() }
    }

    /// There is something to send. Whether a courier is made for it.
    fn is_ready(&mut self, thread: usize, host: usize) -> bool {
        self.threads[thread][host].queue.push(Place::for_test(0), Part::Quick);
        let made = self.threads[thread].summon(host);
        self.couriers.extend(made.then_some((thread, host)));
        made
    }

    /// Everything that the threads are called for just now.
    fn calls(&self) -> Vec<(usize, Call)> {
        let heard = |bell: &Arc<Bell>| bell.heard().now_or_never().map_or_else(Vec::new, |rung| rung.calls);
        let each = self.bells.iter().enumerate();
        each.flat_map(|(thread, bell)| heard(bell).into_iter().map(move |call| (thread, call))).collect()
    }

    /// A thread answers a call.
    fn answer(&mut self, thread: usize, call: &Call) {
        let hosts = &mut self.threads[thread];
        let made = match call {
            Call::Host(key) => hosts.called_for_host(key, false).into_iter().collect(),
            Call::Connection => hosts.called_for_connection(false),
            Call::Idle(key) => {
                hosts.called_for_idle(key.as_ref());
                Vec::new()
            }
            Call::Share(..) | Call::Concurrency(_) => unreachable!("nobody stands in line for it"),
        };
        self.couriers.extend(made.into_iter().map(|host| (thread, host)));
    }

    /// A courier sends one thing, if there is any, and leaves, or goes on while there is something.
    fn sends(&mut self, courier: usize, leaves: bool) {
        let (thread, host) = self.couriers[courier];
        let hosts = &mut self.threads[thread];
        hosts[host].queue.pop();
        if (leaves || hosts[host].queue.is_empty()) && !hosts.courier_left(host, false) {
            self.couriers.swap_remove(courier);
        }
    }
}

#[test]
fn threads_that_wait_for_a_host_and_for_a_connection_do_not_hand_them_to_each_other_without_end() {
    let (x, y) = (0, 1);
    let mut node = Node::new(4, 2, 1, 1);
    assert!(node.is_ready(0, y));
    assert!(![1, 2, 0].map(|thread| node.is_ready(thread, x)).contains(&true), "there is one connection");
    node.sends(0, true);
    assert_eq!(node.calls(), [(1, Call::Connection)]);
    node.answer(1, &Call::Connection);
    assert_eq!(node.couriers, [(1, x)]);
    assert!(!node.is_ready(3, x), "there is one connection to the host");
    node.threads[1][x].queue.push(Place::for_test(0), Part::Quick);
    node.sends(0, true);
    // Each of the two permits is free now, and kept for a thread that cannot have the other one.
    let mut calls = node.calls();
    assert_eq!(calls, [(2, Call::Connection), (3, Call::Host(node.threads[3][x].key.clone()))]);
    for _ in 0..8 {
        for (thread, call) in calls.drain(..) {
            node.answer(thread, &call);
            (0..node.couriers.len()).for_each(|courier| node.sends(courier, true));
        }
        calls = node.calls();
        calls.sort_by_key(|(_, call)| *call != Call::Connection);
    }
    let waiting = node.threads.iter().filter(|hosts| hosts[x].has_work()).count();
    assert_eq!((waiting, calls.len()), (0, 0), "threads that still wait, and calls");
}

#[test]
fn in_whatever_order_calls_are_answered_they_end_and_everybody_gets_a_connection() {
    for seed in 1..3_000u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut dice = |sides: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % sides
        };
        let (threads, hosts) = (2 + dice(3), 1 + dice(3));
        let mut node = Node::new(threads, hosts, 1 + dice(4) as u32, 1 + dice(2) as u32);
        let (mut to_come, mut answers) = (40, 0);
        loop {
            let mut calls = node.calls();
            match seed % 4 {
                0 => calls.sort_by_key(|(_, call)| *call != Call::Connection),
                1 => calls.sort_by_key(|(_, call)| *call == Call::Connection),
                2 => calls.reverse(),
                _ => calls.sort_by_cached_key(|_| dice(100)),
            }
            answers += calls.len();
            assert!(answers < 200, "seed {seed}: threads call each other without end");
            if !calls.is_empty() {
                calls.into_iter().for_each(|(thread, call)| node.answer(thread, &call));
                continue;
            }
            // Time passes only when nobody is called.
            answers = 0;
            if to_come > 0 && dice(2) == 0 {
                to_come -= 1;
                node.is_ready(dice(threads), dice(hosts));
            } else if !node.couriers.is_empty() {
                let courier = dice(node.couriers.len());
                node.sends(courier, dice(2) == 0);
            } else if to_come == 0 {
                break;
            }
        }
        let waits = node.threads.iter().any(|thread| thread.iter().any(|(_, host)| host.has_work()));
        assert!(!waits, "seed {seed}: somebody waits for nothing");
    }
}
