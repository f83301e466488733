//! The connections that clients share by how long theirs take, as all delivery threads have them: whoever wants one comes in,
//! and threads that are granted one are called.

use flare_model::sharing::{Class, Grant, HostNumber};

use crate::journey::bell::Call;
use crate::journey::permits::caps::Caps;

/// A request that a thread would like to begin.
#[derive(Clone, Copy, Debug)]
pub struct WantedShare {
    /// Which thread.
    pub thread: usize,
    /// Where to.
    pub host: HostNumber,
    /// For a client of which class.
    pub class: Class,
    /// How many that client has open.
    pub held: u32,
}

impl Caps {
    pub(super) fn grant(&self, grants: Vec<Grant>) {
        for Grant { host, thread, class } in grants {
            self.call_one(thread, Call::Share(host, class));
        }
    }

    /// A client sends to a host from now on.
    pub fn client_joins(&self, host: HostNumber, class: Class) {
        self.shares.lock().join(host, class);
    }

    /// A client sends there no more.
    pub fn client_quits(&self, host: HostNumber, class: Class) {
        let grants = self.shares.lock().quit(host, class);
        self.grant(grants);
    }

    /// How many requests a client may have open of which none has ended yet.
    pub fn first_requests(&self, host: HostNumber, class: Class) -> u32 {
        self.shares.lock().first_requests(host, class)
    }

    /// Begins a request. False: the thread is called when it may.
    pub fn begin_share(&self, wanted: WantedShare) -> bool {
        let WantedShare { thread, host, class, held } = wanted;
        self.shares.lock().begin(host, thread, class, held)
    }

    /// On a thread that waits, the next client is another one, or has another number of requests open.
    pub fn next_in_line(&self, wanted: WantedShare) {
        let WantedShare { thread, host, class, held } = wanted;
        self.shares.lock().is_next(host, thread, class, held);
    }

    /// A thread has no client of this class any more that waits.
    pub fn leave_line(&self, host: HostNumber, thread: usize, class: Class) {
        self.shares.lock().leave_line(host, thread, class);
    }

    /// A request counts as one of a slower class from now on; if it was of the quick, it was not counted before.
    pub fn share_ages(&self, host: HostNumber, from: Class, to: Class) {
        self.shares.lock().ages(host, from, to);
    }

    /// A request that was counted has ended.
    pub fn end_share(&self, host: HostNumber, class: Class) {
        let grants = self.shares.lock().end(host, class);
        self.grant(grants);
    }

    /// How many requests are open at a host that are slow to end, unless it is all hosts together that have no room: then
    /// at all of them.
    pub fn slow(&self, host: HostNumber) -> SlowRequests {
        let shares = self.shares.lock();
        match shares.is_starved(host) {
            true => SlowRequests::ToAll(shares.slow_in_all()),
            false => SlowRequests::ToHost(shares.slow(host)),
        }
    }

    /// How many requests are open at a host that are slow to end.
    pub fn slow_of(&self, host: HostNumber) -> u32 {
        self.shares.lock().slow(host)
    }

    /// How many requests are open that are slow to end.
    pub fn slow_in_all(&self) -> u32 {
        self.shares.lock().slow_in_all()
    }
}

/// Requests that are slow to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowRequests {
    /// Of one host.
    ToHost(u32),
    /// Of all hosts.
    ToAll(u32),
}
