//! How a shard is read: what the last read brought comes in; where the next begins and how long it waits goes out. Pure.

use std::time::Duration;

use flare_model::bridge::StartAt;
use flare_model::time::Timestamp;
use serde_json::{Value, json};

/// The service takes five reads a second of a shard, from all who read it together.
const BETWEEN_READS: Duration = Duration::from_millis(200);

/// Where nothing came and nothing waits. Others read the shard, too.
const WHEN_IDLE: Duration = Duration::from_secs(1);

/// A deleted stream has to be noticed within ten seconds.
const LONGEST: Duration = Duration::from_secs(4);

/// A clock that is ahead of the service's by less than this misses nothing where what came since a time is read, in milliseconds.
pub const AHEAD: i64 = 60_000;

/// How positions begin that are no number of a record but a time, in milliseconds.
const BEGAN: &str = "at:";

/// Where a shard is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum From {
    /// What comes from now on.
    Latest,
    /// The oldest that it has.
    Oldest,
    /// What came at this time or later.
    At(Timestamp),
    /// This one, and what follows.
    Including(String),
    /// What follows this one.
    After(String),
}

impl From {
    /// As the settings say for a shard without a position.
    pub fn start(start: StartAt) -> From {
        match start {
            StartAt::Latest => From::Latest,
            StartAt::Beginning => From::Oldest,
            StartAt::At(time) => From::At(time),
        }
    }

    /// After a position that was written down: the number of a record, or the time at which it was begun to read what comes from then on.
    pub fn position(position: &str, number: fn(String) -> From) -> From {
        let time = position.strip_prefix(BEGAN).and_then(|millis| millis.parse().ok());
        time.map_or_else(|| number(position.to_owned()), |millis| From::At(Timestamp::from_millis(millis)))
    }

    /// A position that begins here, of what comes from now on: so it can be read also after a restart before which nothing came.
    pub fn began(&self, opened: Timestamp) -> Option<String> {
        (*self == From::Latest).then(|| format!("{BEGAN}{}", opened.moved(-AHEAD).millis()))
    }

    /// What is asked of the service for an iterator that begins there.
    pub fn asked(&self, stream: &str, shard: &str) -> Value {
        let mut asked = json!({"StreamName": stream, "ShardId": shard});
        let kind = match self {
            From::Latest => "LATEST",
            From::Oldest => "TRIM_HORIZON",
            From::At(time) => {
                // Seconds; a double has room for the milliseconds.
                asked["Timestamp"] = json!(time.millis() as f64 / 1000.0);
                "AT_TIMESTAMP"
            }
            From::Including(position) => {
                asked["StartingSequenceNumber"] = position.as_str().into();
                "AT_SEQUENCE_NUMBER"
            }
            From::After(position) => {
                asked["StartingSequenceNumber"] = position.as_str().into();
                "AFTER_SEQUENCE_NUMBER"
            }
        };
        asked["ShardIteratorType"] = kind.into();
        asked
    }
}

/// How a read went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Went {
    /// It brought something, or there is more.
    On,
    /// There is nothing that was not read.
    CaughtUp,
    /// The service asks for fewer reads, for so many times in a row.
    TooMuch(u32),
}

/// How long to wait before the next read.
pub fn pause(went: Went) -> Duration {
    match went {
        Went::On => BETWEEN_READS,
        Went::CaughtUp => WHEN_IDLE,
        Went::TooMuch(times) => {
            let doubled = BETWEEN_READS.saturating_mul(1 << times.min(16));
            doubled.min(LONGEST)
        }
    }
}

/// What the first record says of a position that reading was to begin at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It is that one: what follows is all there.
    It,
    /// It is another one: the position, and perhaps what followed it, was forgotten.
    Another,
    /// Nothing came, and nothing waits: nothing that could be missed is there.
    NothingSince,
    /// Nothing came, and something waits: read on.
    NotYet,
}

/// Looks at what a read that was to begin at a position brought, and at how far behind the service says it is.
pub fn find(position: &str, first: Option<&str>, behind: u64) -> Found {
    match first {
        Some(first) if first == position => Found::It,
        Some(_) => Found::Another,
        None if behind == 0 => Found::NothingSince,
        None => Found::NotYet,
    }
}

/// Where a shard without a position begins that follows others. What came to it while its parents were read must not be missed, so
/// it begins at its oldest, unless all of its parents were over before anybody read them.
pub fn child(start: StartAt, parents_that_were_read: bool) -> From {
    match (start, parents_that_were_read) {
        (StartAt::Latest, true) => From::Oldest,
        (start, _) => From::start(start),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_iterator_is_asked_for_as_the_service_names_it() {
        let time = Timestamp::from_millis(1_500_000_000_250);
        for (from, expected) in [
            (From::Latest, json!({"ShardIteratorType": "LATEST"})),
            (From::Oldest, json!({"ShardIteratorType": "TRIM_HORIZON"})),
            (From::At(time), json!({"ShardIteratorType": "AT_TIMESTAMP", "Timestamp": 1_500_000_000.25})),
            (
                From::Including("7".into()),
                json!({"ShardIteratorType": "AT_SEQUENCE_NUMBER", "StartingSequenceNumber": "7"}),
            ),
            (
                From::After("7".into()),
                json!({"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "StartingSequenceNumber": "7"}),
            ),
        ] {
            let mut expected = expected;
            expected["StreamName"] = "s".into();
            expected["ShardId"] = "shard-0".into();
            assert_eq!(from.asked("s", "shard-0"), expected);
        }
    }

    #[test]
    fn what_comes_from_now_on_has_a_position_before_anything_came() {
        let opened = Timestamp::from_millis(1_500_000_060_250);
        let began = From::Latest.began(opened).expect("it begins now");
        let time = Timestamp::from_millis(1_500_000_000_250);
        assert_eq!(
            (began.as_str(), From::position(&began, From::After)),
            ("at:1500000000250", From::At(time))
        );
        assert_eq!(From::position("7", From::Including), From::Including("7".into()));
        assert_eq!((From::Oldest.began(opened), From::After("7".into()).began(opened)), (None, None));
    }

    #[test]
    fn reads_stay_within_what_the_service_takes_and_a_deleted_stream_is_noticed_in_time() {
        assert!(pause(Went::On) >= Duration::from_millis(200));
        assert!(pause(Went::CaughtUp) > pause(Went::On));
        let pauses: Vec<Duration> = (1..40).map(|times| pause(Went::TooMuch(times))).collect();
        assert!(pauses.is_sorted() && pauses[0] > pause(Went::On));
        assert!(pauses.iter().all(|pause| *pause < Duration::from_secs(5)));
    }

    #[test]
    fn a_position_is_forgotten_when_another_record_stands_in_its_place() {
        assert_eq!(find("7", Some("7"), 0), Found::It);
        assert_eq!(find("7", Some("9"), 0), Found::Another);
        assert_eq!(find("7", None, 0), Found::NothingSince);
        assert_eq!(find("7", None, 5), Found::NotYet);
    }

    #[test]
    fn a_child_begins_at_its_oldest_if_somebody_read_its_parents() {
        assert_eq!(child(StartAt::Latest, true), From::Oldest);
        assert_eq!(child(StartAt::Latest, false), From::Latest);
        assert_eq!(child(StartAt::Beginning, false), From::Oldest);
        let time = Timestamp::from_millis(5);
        assert_eq!(child(StartAt::At(time), true), From::At(time));
    }
}
