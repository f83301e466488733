//! What a delivery thread lets others see of its recorder, without being asked: whether it is at something, and how often that was durable.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Of one thread.
#[derive(Default)]
pub struct Pulse {
    recording: AtomicBool,
    recorded: AtomicU64,
}

impl Pulse {
    /// There is something to record.
    pub fn begins(&self) {
        self.recording.store(true, Ordering::Release);
    }

    /// It is durable.
    pub fn ends(&self) {
        self.recorded.fetch_add(1, Ordering::Release);
        self.recording.store(false, Ordering::Release);
    }

    /// Whether there is something that is not durable yet.
    pub fn is_recording(&self) -> bool {
        self.recording.load(Ordering::Acquire)
    }

    /// How often something became durable.
    pub fn recorded(&self) -> u64 {
        self.recorded.load(Ordering::Acquire)
    }
}
