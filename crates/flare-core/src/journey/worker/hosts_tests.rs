//! In: hosts with work, on threads that share few connections. Out: who opens one, and that nobody waits for nothing.

use super::*;

#[test]
fn hosts_that_are_left_alone_do_not_take_a_connection_from_each_other_without_end() {
    let caps = Arc::new(Caps::new(1, 1, vec![Arc::default()]));
    let mut hosts = Hosts::new(0, caps);
    let [one, other] = ["one.test", "other.test"].map(|name| {
        let index = hosts.find_or_make(&HostKey { https: false, host: name.into(), port: 80 });
        hosts[index].users = 1;
        hosts[index].ready.push_back(Place::for_test(0));
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
