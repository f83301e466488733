//! The names that users see of notifications and of replays.

use flare_model::feed::Attempt;
use sha2::Digest;

use crate::notification::compiled::Compiled;

/// The id of a replay, as users see it.
pub fn replay_id(number: u64) -> String {
    format!("rpl_{number}")
}

/// The same on every attempt of the same notification, and on no other.
pub fn notification_id(compiled: &Compiled, url: &str, attempt: &Attempt) -> String {
    let mut hash = compiled.identity.clone();
    hash.update(url.as_bytes());
    hash.update([0, attempt.action as u8]);
    hash.update(attempt.seq.0.to_be_bytes());
    hash.update(attempt.replay.to_be_bytes());
    let digest = hash.finalize();
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut id = String::with_capacity(36);
    id.push_str("msg_");
    for byte in &digest[..16] {
        id.push(HEX[usize::from(byte >> 4)] as char);
        id.push(HEX[usize::from(byte & 15)] as char);
    }
    id
}
