//! Delivery on request: "send up to so many now" comes in; while it lasts the subscription is served like an active
//! one; how it went goes out.

use std::time::Duration;

use flare_model::feed::Verdict;
use tokio::sync::oneshot;

use super::Refused;
use crate::journey::subscriber::Standstill;
use crate::journey::worker::breaker::Permit;
use crate::journey::worker::{Alarm, Worker};

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub struct DriveOrder {
    /// At most so many attempts.
    pub quantity: u32,
    /// At most so many of them open at once.
    pub concurrency: u32,
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Driven {
    /// Attempts that succeeded.
    pub delivered: u32,
    /// Notifications that the client said to drop.
    pub discarded: u32,
    /// Attempts that failed.
    pub failed: u32,
    /// What the client still lacks, as `lagging` in its status.
    pub remaining: u64,
}

/// A delivery on request, under way. It ends when it has begun what was asked for, when there is nothing more to take,
/// when its time is over, or when its caller has left; and when what it began has ended.
pub struct Drive {
    /// How many attempts may still begin.
    pub left: u32,
    /// How many may be open at once.
    pub concurrency: u32,
    /// How many are.
    open: u32,
    /// When it begins nothing more, monotonic.
    until: Duration,
    driven: Driven,
    reply: oneshot::Sender<Result<Driven, Refused>>,
}

impl Drive {
    /// Nobody hears the answer any more: nothing more is begun.
    pub fn caller_left(&self) -> bool {
        self.reply.is_closed()
    }

    /// An attempt begins.
    pub fn begins(&mut self) {
        self.left = self.left.saturating_sub(1);
        self.open += 1;
    }

    /// An attempt was not begun after all: its host does not answer.
    pub fn withheld(&mut self) {
        self.open = self.open.saturating_sub(1);
        self.left += 1;
    }

    /// An attempt has ended.
    pub fn ends(&mut self, verdict: &Verdict) {
        self.open = self.open.saturating_sub(1);
        match verdict {
            Verdict::Delivered => self.driven.delivered += 1,
            Verdict::Discarded => self.driven.discarded += 1,
            Verdict::Retry { .. } | Verdict::GiveUp { .. } => self.driven.failed += 1,
        }
    }
}

impl Worker {
    pub(super) fn begin_drive(
        &mut self,
        key: Option<usize>,
        order: DriveOrder,
        reply: oneshot::Sender<Result<Driven, Refused>>,
    ) {
        let until = self.tools.clock.monotonic() + self.tools.limits.passive.maximum_wait;
        let Some(key) = key else {
            let _ = reply.send(Err(Refused::Gone));
            return;
        };
        let subscriber = &mut self.subscribers[key];
        let number = subscriber.compiled.number;
        let stands = subscriber.standstill != Standstill::None;
        let refused = match &subscriber.passive {
            None => Some(Refused::Active),
            Some(_) if stands => Some(Refused::Standing),
            Some(passive) if passive.drive.is_some() => Some(Refused::Driving),
            Some(_) => None,
        };
        let (Some(passive), None) = (&mut subscriber.passive, refused) else {
            let _ = reply.send(Err(refused.unwrap_or(Refused::Active)));
            return;
        };
        let driven = Driven { delivered: 0, discarded: 0, failed: 0, remaining: 0 };
        let DriveOrder { quantity: left, concurrency } = order;
        passive.drive = Some(Drive { left, concurrency, open: 0, until, driven, reply });
        self.set_alarm(until, Alarm::Wake(key, number));
        self.look_at_the_ends(key);
        self.ready(key);
    }

    pub(super) fn halt_drive(&mut self, key: usize) {
        if let Some(drive) = self.passive(key).and_then(|passive| passive.drive.as_mut()) {
            drive.left = 0;
        }
        self.drive_may_end(key);
    }

    /// Ends the delivery on request if there is nothing left to do for it.
    pub fn drive_may_end(&mut self, key: usize) {
        let now = self.tools.clock.monotonic();
        let stopping = self.stopping;
        let Some(subscriber) = self.subscribers.get_mut(key) else { return };
        let (stands, host) = (subscriber.stands(), subscriber.host);
        let Some(drive) = subscriber.passive.as_mut().and_then(|passive| passive.drive.as_mut()) else {
            return;
        };
        if now >= drive.until || stands || stopping || drive.caller_left() {
            drive.left = 0;
        }
        let (open, left) = (drive.open, drive.left);
        // A host that is left alone for now is not waited for either.
        let alone = matches!(self.hosts[host].breaker.permit(now), Permit::Wait(_));
        if open == 0 && (left == 0 || alone || self.is_idle(key)) {
            self.end_drive(key);
        }
    }

    pub(super) fn end_drive(&mut self, key: usize) {
        let Some(drive) = self.passive(key).and_then(|passive| passive.drive.take()) else { return };
        let remaining = self.lagging(key);
        let _ = drive.reply.send(Ok(Driven { remaining, ..drive.driven }));
    }
}
