//! A delivery on request, under way: what was asked for, what is open, and how it went so far.

use std::time::Duration;

use flare_model::feed::Verdict;
use tokio::sync::oneshot;

use crate::journey::subscriber::passive::refused::AskRefused;

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
    left: u32,
    /// How many may be open at once.
    concurrency: u32,
    /// How many are.
    open: u32,
    /// When it begins nothing more, monotonic.
    until: Duration,
    driven: Driven,
    reply: oneshot::Sender<Result<Driven, AskRefused>>,
}

impl Drive {
    /// One that begins now, and nothing more after `until`.
    pub fn new(
        order: DriveOrder,
        until: Duration,
        reply: oneshot::Sender<Result<Driven, AskRefused>>,
    ) -> Drive {
        let DriveOrder { quantity: left, concurrency } = order;
        let driven = Driven { delivered: 0, discarded: 0, failed: 0, remaining: 0 };
        Drive { left, concurrency, open: 0, until, driven, reply }
    }

    /// How many attempts may be open, where so many are.
    pub fn room(&self, in_flight: u32) -> u32 {
        self.concurrency.min(in_flight.saturating_add(self.left))
    }

    /// Whether its time is over, or nobody hears the answer any more.
    pub fn is_over(&self, now: Duration) -> bool {
        now >= self.until || self.caller_left()
    }

    /// It begins nothing more.
    pub fn halt(&mut self) {
        self.left = 0;
    }

    /// Whether nothing that it began is open.
    pub fn is_quiet(&self) -> bool {
        self.open == 0
    }

    /// Whether it begins nothing more.
    pub fn is_halted(&self) -> bool {
        self.left == 0
    }

    /// It has ended: its caller is told how it went, and what the client still lacks.
    pub fn end(self, remaining: u64) {
        let _ = self.reply.send(Ok(Driven { remaining, ..self.driven }));
    }

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
            Verdict::Discarded { .. } => self.driven.discarded += 1,
            Verdict::Retry { .. } | Verdict::GiveUp { .. } => self.driven.failed += 1,
        }
    }
}
