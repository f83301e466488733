//! The names that users see of notifications and of replays.

use flare_model::feed::Attempt;
use sha2::Digest;

use crate::notification::compiled::Compiled;

/// The id of a replay, as users see it.
pub fn replay_id(number: u64) -> String {
    format!("rpl_{number}")
}

/// The id of a notification: `msg_` and 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotificationId([u8; 36]);

impl NotificationId {
    /// As users see it.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).expect("letters and digits")
    }
}

/// The same on every attempt of the same notification, and on no other.
pub fn notification_id(compiled: &Compiled, url: &str, attempt: &Attempt) -> NotificationId {
    let mut hash = compiled.identity();
    hash.update(url.as_bytes());
    hash.update([0, attempt.action as u8]);
    hash.update(attempt.seq.0.to_be_bytes());
    hash.update(attempt.replay.to_be_bytes());
    let digest = hash.finalize();
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut id = *b"msg_00000000000000000000000000000000";
    for (two, byte) in id[4..].chunks_exact_mut(2).zip(digest) {
        two[0] = HEX[usize::from(byte >> 4)];
        two[1] = HEX[usize::from(byte & 15)];
    }
    NotificationId(id)
}
