//! The token of a lease: everything that tells this lease from any other one comes in, a text goes out, and back.
//!
//! It is opaque to clients, and complete: a token from before a restart is as good as any, if the ledger has the
//! lease that it names.

use std::fmt;

use flare_model::feed::{Standing, State};
use flare_model::ids::{Ordinal, Seq, SubscriptionNumber};
use flare_model::time::Timestamp;

const PREFIX: &str = "lease_";

/// Which lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Of which subscription.
    pub number: SubscriptionNumber,
    /// Of which lane.
    pub lane: u8,
    /// The document.
    pub ordinal: Ordinal,
    /// The change that was handed out.
    pub seq: Seq,
    /// The replay that asked for it, 0 for none.
    pub replay: u64,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// When the lease ends, as it was handed out: one that was extended ends later, and is known by this all the same.
    pub until: Timestamp,
}

impl Token {
    /// The token of the lease that a standing stands for, if it does for one.
    pub fn of(number: SubscriptionNumber, lane: u8, standing: &Standing) -> Option<Token> {
        let State::Leased { until } = standing.state else { return None };
        let trouble = standing.trouble.as_ref()?;
        let attempt = trouble.attempts;
        let until = trouble.lent.as_ref().map_or(until, |lent| lent.until);
        let Standing { ordinal, seq, replay, .. } = *standing;
        Some(Token { number, lane, ordinal, seq, replay, attempt, until })
    }

    /// Reads a token; `None` when it is not one.
    pub fn parse(text: &str) -> Option<Token> {
        let mut parts = text.strip_prefix(PREFIX)?.split('-');
        let mut next = || {
            let part = parts.next()?;
            // Only what is written here is read: no sign, no upper case, no leading zero.
            let number = u64::from_str_radix(part, 16).ok()?;
            (format!("{number:x}") == part).then_some(number)
        };
        let token = Token {
            number: SubscriptionNumber(next()?),
            lane: u8::try_from(next()?).ok()?,
            ordinal: Ordinal(next()?),
            seq: Seq(next()?),
            replay: next()?,
            attempt: u32::try_from(next()?).ok()?,
            until: Timestamp::from_millis(i64::try_from(next()?).ok()?),
        };
        parts.next().is_none().then_some(token)
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Token { number, lane, ordinal, seq, replay, attempt, until } = self;
        let until = until.millis();
        write!(
            f,
            "{PREFIX}{:x}-{lane:x}-{:x}-{:x}-{replay:x}-{attempt:x}-{until:x}",
            number.0, ordinal.0, seq.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_comes_back_as_it_was_and_nothing_else_does() {
        let token = Token {
            number: SubscriptionNumber(7),
            lane: 255,
            ordinal: Ordinal(u64::MAX),
            seq: Seq(0x1234),
            replay: 0,
            attempt: u32::MAX,
            until: Timestamp::from_millis(1_700_000_000_000),
        };
        let text = token.to_string();
        assert_eq!(Token::parse(&text), Some(token), "{text}");
        for other in [
            "",
            "lease_",
            "lease_1-2-3-4-5-6",
            &format!("{text}-1"),
            &text.replace("-ff-", "-100-"),
            &text.replace("-1234-", "-01234-"),
            &text.replace("-1234-", "-+1234-"),
            &text[1..],
        ] {
            assert_eq!(Token::parse(other), None, "{other}");
        }
    }
}
