//! Couriers are called: a host with work comes in; an idle courier of it is woken, or a new one made where there is room.

use crate::journey::bell::Call;
use crate::journey::sending::courier;
use crate::journey::worker::Worker;

impl Worker {
    /// Gets a courier for a host: an idle one, or a new one where there is room.
    pub fn summon(&mut self, host: usize) {
        if self.hosts.summon(host) {
            self.make_courier(host);
        }
    }

    /// The same, if there is work for one.
    pub fn summon_if_needed(&mut self, host: usize) {
        if !self.stopping && self.hosts.summon_if_needed(host) {
            self.make_courier(host);
        }
    }

    fn make_courier(&mut self, host: usize) {
        let worker = self.handle();
        self.tasks.spawn_local(courier::courier(worker, host));
    }

    /// A courier has left, its connection closed.
    pub fn courier_left(&mut self, host: usize) {
        if self.hosts.courier_left(host, self.stopping) {
            self.make_courier(host);
        }
    }

    /// This thread was called for something that it stood in line for, or that others do.
    pub fn called(&mut self, call: Call) {
        match call {
            Call::Host(key) => {
                if let Some(host) = self.hosts.called_for_host(&key, self.stopping) {
                    self.make_courier(host);
                }
            }
            Call::Connection => {
                for host in self.hosts.called_for_connection(self.stopping) {
                    self.make_courier(host);
                }
            }
            Call::Share(host, class) => self.granted(host, class),
            Call::Concurrency(number) => self.called_for_concurrency(number),
            Call::Idle(key) => self.hosts.called_for_idle(key.as_ref()),
        }
    }
}
