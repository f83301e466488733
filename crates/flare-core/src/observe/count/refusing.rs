//! Whether the store takes writes: refusals and acceptances come in; how it stands, and what to log of it, goes out.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// Refusals are logged so often, with their number.
const LOGGED: Duration = Duration::from_secs(60);

/// Whether the store takes writes.
#[derive(Debug, Default)]
pub struct Refusing {
    /// Looked at with every commit; what is behind the lock only while it is set.
    refuses: AtomicBool,
    refused: Mutex<Refused>,
}

#[derive(Debug, Default)]
struct Refused {
    /// When they were last logged.
    logged: Option<Duration>,
    /// Since they were last logged.
    number: u64,
}

impl Refusing {
    /// So many documents were refused. Answers how many to log, if it is time to.
    pub fn refused(&self, number: u64, now: Duration) -> Option<u64> {
        let mut refused = self.refused.lock();
        self.refuses.store(true, Ordering::Relaxed);
        refused.number += number;
        if refused.logged.is_some_and(|logged| now.saturating_sub(logged) < LOGGED) {
            return None;
        }
        refused.logged = Some(now);
        Some(std::mem::take(&mut refused.number))
    }

    /// Something else was not written.
    pub fn failed(&self) {
        self.refuses.store(true, Ordering::Relaxed);
    }

    /// Something was written. Answers how many were refused since that was logged, if some were refused just before.
    pub fn accepted(&self) -> Option<u64> {
        if !self.refuses.load(Ordering::Relaxed) {
            return None;
        }
        let mut refused = self.refused.lock();
        self.refuses.store(false, Ordering::Relaxed);
        Some(std::mem::take(&mut refused.number))
    }

    /// Whether the store takes none, as far as is known: until something was written.
    pub fn refuses(&self) -> bool {
        self.refuses.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_logged_once_a_minute_with_their_number() {
        let (refusing, second) = (Refusing::default(), Duration::from_secs(1));
        assert_eq!(refusing.accepted(), None);
        assert_eq!(refusing.refused(3, second), Some(3), "the first at once");
        assert_eq!(refusing.refused(2, 2 * second), None);
        assert_eq!(refusing.refused(5, 60 * second), None);
        assert_eq!(refusing.refused(1, 61 * second), Some(8));
        assert_eq!(refusing.refused(4, 62 * second), None);
        assert_eq!(refusing.accepted(), Some(4));
        assert_eq!(refusing.accepted(), None);
        assert_eq!(refusing.refused(1, 63 * second), None, "coming and going is no reason to log more");
    }

    #[test]
    fn it_refuses_until_something_is_taken() {
        let refusing = Refusing::default();
        assert!(!refusing.refuses());
        refusing.refused(1, Duration::from_secs(1));
        assert!(refusing.refuses());
        assert_eq!((refusing.accepted(), refusing.refuses()), (Some(0), false));
        refusing.failed();
        assert!(refusing.refuses());
        assert_eq!((refusing.accepted(), refusing.refuses()), (Some(0), false));
    }
}
