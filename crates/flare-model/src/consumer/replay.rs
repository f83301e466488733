//! A replay of a consumer's dead letters, as it is stored: what was read of them comes in, how far it is goes out.

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// A replay that was asked for. It goes over the dead letters that there were then, in the order of their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LetterReplay {
    /// Its number; numbers of a consumer are never reused.
    pub number: u64,
    /// How many dead letters there were.
    pub total: u64,
    /// The number of the last of them.
    pub upto: u64,
    /// When it was asked for.
    pub created_at: Timestamp,
    /// The number of the last letter that it has come to.
    #[serde(default)]
    pub after: u64,
    /// How many of them it has come to.
    #[serde(default)]
    pub done: u64,
    /// How many of those could be read, and are documents now.
    #[serde(default)]
    pub stored: u64,
    /// It has come to the last of them.
    #[serde(default)]
    pub ended: bool,
}

impl LetterReplay {
    /// One that begins.
    pub fn begin(number: u64, total: u64, upto: u64, created_at: Timestamp) -> LetterReplay {
        LetterReplay { number, total, upto, created_at, after: 0, done: 0, stored: 0, ended: total == 0 }
    }

    /// It has come to so many letters more, the last of which has this number; `None`: there are no more. Whatever was dropped
    /// meanwhile, or replayed and not noted because the node was killed, is through as well.
    pub fn came_to(&mut self, last: Option<u64>, met: u64, stored: u64) {
        self.after = last.unwrap_or(self.upto).max(self.after);
        self.ended = self.after >= self.upto;
        self.done = if self.ended { self.total } else { self.total.min(self.done + met) };
        self.stored = self.total.min(self.stored + stored);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_with_the_last_letter_that_there_was_when_it_began() {
        let at = Timestamp::from_millis(1);
        let mut replay = LetterReplay::begin(1, 5, 9, at);
        replay.came_to(Some(4), 2, 1);
        assert_eq!((replay.after, replay.done, replay.stored, replay.ended), (4, 2, 1, false));
        replay.came_to(Some(9), 2, 2);
        assert_eq!((replay.done, replay.stored, replay.ended), (5, 3, true), "one was dropped meanwhile");
        let mut replay = LetterReplay::begin(2, 5, 9, at);
        replay.came_to(None, 0, 0);
        assert_eq!((replay.done, replay.stored, replay.ended), (5, 0, true), "all were dropped");
        assert!(LetterReplay::begin(3, 0, 0, at).ended, "of nothing it is over at once");
    }
}
