//! How everything stands at one moment: numbers that go up and down, each delivery thread's and their sum.

use flare_model::subscription::Status;
use schemars::JsonSchema;
use serde::Serialize;

/// How all subscriptions stand.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Gauges {
    /// Notifications that clients still lack at most: changes they have not been asked about, or have not settled, and
    /// documents that wait for a retry.
    pub backlog: u64,
    /// Of these, documents that wait for a retry.
    pub waiting: u64,
    /// Attempts open now.
    pub in_flight: u64,
    /// Notifications on a lease.
    pub leased: u64,
    /// Documents given up.
    pub dead_letters: u64,
    /// Subscriptions that lack something.
    pub lagging: u64,
    /// The backlog of the one that lacks most.
    pub largest_backlog: u64,
    /// Subscriptions by status.
    pub subscriptions: ByStatus,
    /// Connections to clients.
    pub connections: u64,
    /// Hosts that have or had a subscription.
    pub hosts: u64,
    /// Hosts that are left alone because they do not answer.
    pub open_breakers: u64,
    /// Requests to clients that have been open for a while, or whose clients are slow to answer.
    pub slow_requests: u64,
    /// Subscriptions that wait for a connection to their host.
    pub waiting_for_connection: u64,
}

/// How many subscriptions there are of each status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ByStatus {
    /// At work.
    pub active: u64,
    /// Being given what was there before them.
    pub preparing: u64,
    /// Nothing has succeeded for long.
    pub failing: u64,
    /// Stopped by a user.
    pub paused: u64,
    /// Stopped by Flare.
    pub disabled: u64,
}

impl ByStatus {
    /// One more of this status.
    pub fn add(&mut self, status: Status) {
        let number = match status {
            Status::Active => &mut self.active,
            Status::Preparing => &mut self.preparing,
            Status::Failing => &mut self.failing,
            Status::Paused => &mut self.paused,
            Status::Disabled => &mut self.disabled,
        };
        *number += 1;
    }

    /// Each with its name, as users write it.
    pub fn each(&self) -> [(&'static str, u64); 5] {
        [
            ("active", self.active),
            ("preparing", self.preparing),
            ("failing", self.failing),
            ("paused", self.paused),
            ("disabled", self.disabled),
        ]
    }
}

impl Gauges {
    /// What another thread says is put to it. A subscription that several threads serve is counted once by its status,
    /// and once for each of them that lacks something.
    pub fn add(&mut self, other: &Gauges) {
        self.join(other, |mine, other| mine + other);
        self.largest_backlog = self.largest_backlog.max(other.largest_backlog);
    }

    /// The higher number of each.
    pub fn worst(&mut self, other: &Gauges) {
        self.join(other, u64::max);
    }

    fn join(&mut self, other: &Gauges, join: impl Fn(u64, u64) -> u64) {
        let largest = self.largest_backlog.max(other.largest_backlog);
        let by = (&self.subscriptions, &other.subscriptions);
        *self = Gauges {
            backlog: join(self.backlog, other.backlog),
            waiting: join(self.waiting, other.waiting),
            in_flight: join(self.in_flight, other.in_flight),
            leased: join(self.leased, other.leased),
            dead_letters: join(self.dead_letters, other.dead_letters),
            lagging: join(self.lagging, other.lagging),
            largest_backlog: largest,
            subscriptions: ByStatus {
                active: join(by.0.active, by.1.active),
                preparing: join(by.0.preparing, by.1.preparing),
                failing: join(by.0.failing, by.1.failing),
                paused: join(by.0.paused, by.1.paused),
                disabled: join(by.0.disabled, by.1.disabled),
            },
            connections: join(self.connections, other.connections),
            hosts: join(self.hosts, other.hosts),
            open_breakers: join(self.open_breakers, other.open_breakers),
            slow_requests: join(self.slow_requests, other.slow_requests),
            waiting_for_connection: join(self.waiting_for_connection, other.waiting_for_connection),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_summed_up_and_moments_compared() {
        let one = Gauges { backlog: 3, largest_backlog: 3, connections: 1, ..Gauges::default() };
        let mut other = Gauges { backlog: 2, largest_backlog: 2, hosts: 4, ..Gauges::default() };
        other.subscriptions.add(Status::Failing);
        let mut sum = one.clone();
        sum.add(&other);
        assert_eq!((sum.backlog, sum.largest_backlog, sum.connections, sum.hosts), (5, 3, 1, 4));
        assert_eq!(sum.subscriptions.each()[2], ("failing", 1));
        let mut worst = one;
        worst.worst(&other);
        assert_eq!((worst.backlog, worst.connections, worst.hosts), (3, 1, 4));
    }
}
