//! What streams were given, in order: the id that a client comes back with comes in; which leases it has by that, and
//! which it lacks, goes out.
//!
//! The id of an event is that of its notification, which is the same on every attempt. So where a notification was sent
//! more than once, nobody knows which of these the client means, and only what it has in any case is taken for had.

use std::collections::{BTreeMap, HashSet, VecDeque};

use flare_model::feed::Sent;
use flare_model::ids::Ordinal;

/// What streams were given in this life of the process.
#[derive(Default)]
pub struct GivenToStreams {
    /// Bound: `waiting-limit`, which bounds the leases too. When full: the oldest is forgotten.
    given: VecDeque<Given>,
}

struct Given {
    sent: Sent,
    attempt: u32,
}

/// A lease that is out, and that a stream was given.
pub struct OnStream<'a> {
    /// Whose.
    pub document: (u8, Ordinal),
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Where it was sent.
    pub sent: &'a Sent,
}

/// What the id of an event says of leases.
#[derive(Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// The client has these.
    pub has: Vec<(u8, Ordinal)>,
    /// Its stream was given these after that event.
    pub lacks: Vec<(u8, Ordinal)>,
    /// The stream that it has left, where that is certain.
    pub stream: Option<u64>,
}

impl GivenToStreams {
    /// Remembers one, and so many at most.
    pub fn remember(&mut self, sent: Sent, attempt: u32, limit: usize) {
        while self.given.len() >= limit.max(1) {
            self.given.pop_front();
        }
        self.given.push_back(Given { sent, attempt });
    }

    /// What a client has that comes back with `id`, of the leases that are out; `None` when no stream that is known was
    /// given it. What was given in an earlier life is known as far as its lease is out.
    pub fn acknowledged(&self, id: &str, out: &[OnStream<'_>]) -> Option<Acknowledged> {
        let leased = out.iter().map(|lease| (lease.sent, lease.attempt));
        let all = self.given.iter().map(|given| (&given.sent, given.attempt)).chain(leased);
        let meant = all.clone().filter(|(sent, _)| sent.id == id);
        let attempts = meant.clone().map(|(_, attempt)| attempt).max()?;
        let places: HashSet<(u64, u64)> = meant.map(|(sent, _)| (sent.stream, sent.position)).collect();
        // Of one stream the client has what came before the event for the first time.
        let mut first = BTreeMap::new();
        for (stream, position) in &places {
            let earliest = first.entry(*stream).or_insert(*position);
            *earliest = (*earliest).min(*position);
        }
        // Where an attempt is not known, it may be the one that the client means.
        let known = places.len() >= attempts as usize;
        let mut had: BTreeMap<u64, HashSet<&str>> = BTreeMap::new();
        for (sent, _) in all.filter(|_| known) {
            if first.get(&sent.stream).is_some_and(|last| sent.position <= *last) {
                had.entry(sent.stream).or_default().insert(&sent.id);
            }
        }
        // Of several streams it has what all of them had sent by then.
        let has = |lease: &OnStream<'_>| {
            let by_all = || !had.is_empty() && had.values().all(|ids| ids.contains(lease.sent.id.as_str()));
            lease.sent.id == id || by_all()
        };
        let stream = match first.iter().next() {
            Some((stream, _)) if known && first.len() == 1 => Some(*stream),
            _ => None,
        };
        let lacks = |lease: &OnStream<'_>| Some(lease.sent.stream) == stream && !has(lease);
        let documents = |which: &dyn Fn(&OnStream<'_>) -> bool| {
            out.iter().filter(|lease| which(lease)).map(|lease| lease.document).collect()
        };
        Some(Acknowledged { has: documents(&has), lacks: documents(&lacks), stream })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(stream: u64, position: u64, id: &str) -> Sent {
        Sent { stream, position, id: id.to_owned() }
    }

    /// What `id` says, as ordinals, where this was given, and these of it are out by their places.
    fn said(
        given: &[(u64, u64, &str, u32)],
        out: &[usize],
        id: &str,
        limit: usize,
    ) -> Option<(Vec<u64>, Vec<u64>)> {
        let mut memory = GivenToStreams::default();
        for (stream, position, id, attempt) in given {
            memory.remember(sent(*stream, *position, id), *attempt, limit);
        }
        let all: Vec<Sent> =
            given.iter().map(|(stream, position, id, _)| sent(*stream, *position, id)).collect();
        let lease = |place: &usize| OnStream {
            document: (0, Ordinal(*place as u64)),
            attempt: given[*place].3,
            sent: &all[*place],
        };
        let out: Vec<OnStream<'_>> = out.iter().map(lease).collect();
        let numbers =
            |documents: Vec<(u8, Ordinal)>| documents.iter().map(|(_, ordinal)| ordinal.0).collect();
        let Acknowledged { has, lacks, .. } = memory.acknowledged(id, &out)?;
        Some((numbers(has), numbers(lacks)))
    }

    #[test]
    fn an_id_stands_for_all_that_its_stream_was_given_before_it() {
        let given = [(1, 0, "a", 1), (2, 0, "b", 1), (1, 1, "c", 1), (1, 2, "d", 1)];
        assert_eq!(said(&given, &[0, 1, 2, 3], "c", 10), Some((vec![0, 2], vec![3])));
        assert_eq!(said(&given, &[1, 3], "c", 10), Some((vec![], vec![3])), "some were settled before");
        assert_eq!(said(&given, &[0, 1], "b", 10), Some((vec![1], vec![])));
        assert_eq!(said(&given, &[0, 1], "x", 10), None);
    }

    #[test]
    fn an_event_that_two_streams_were_given_says_nothing_of_what_only_one_of_them_was() {
        // The lease of x ended on the first stream, and it was sent on the second after others.
        let given = [(1, 0, "x", 1), (2, 0, "y", 1), (2, 1, "x", 2), (2, 2, "z", 1)];
        assert_eq!(said(&given, &[1, 2, 3], "x", 10), Some((vec![2], vec![])));
        let both = [(1, 0, "y", 1), (1, 1, "x", 1), (2, 0, "y", 2), (2, 1, "x", 2)];
        assert_eq!(said(&both, &[2, 3], "x", 10), Some((vec![2, 3], vec![])), "both had sent y before");
    }

    #[test]
    fn an_event_that_a_stream_was_given_twice_says_what_came_before_the_first() {
        let given = [(1, 0, "a", 1), (1, 1, "x", 1), (1, 2, "b", 1), (1, 3, "x", 2)];
        assert_eq!(said(&given, &[0, 2, 3], "x", 10), Some((vec![0, 3], vec![2])));
    }

    #[test]
    fn where_an_attempt_is_not_known_only_the_document_itself_is_had() {
        // The first was taken by a reservation, or in another life, or is forgotten.
        let given = [(2, 0, "y", 1), (2, 1, "x", 2)];
        assert_eq!(said(&given, &[0, 1], "x", 10), Some((vec![1], vec![])));
        let forgotten = [(1, 0, "x", 1), (2, 0, "y", 1), (2, 1, "x", 2)];
        assert_eq!(said(&forgotten, &[1, 2], "x", 2), Some((vec![2], vec![])));
    }

    #[test]
    fn what_is_out_is_known_though_nothing_is_remembered() {
        let given = [(1, 0, "a", 1), (1, 1, "b", 1), (1, 2, "c", 1)];
        assert_eq!(said(&given, &[0, 1, 2], "b", 1), Some((vec![0, 1], vec![2])));
    }
}
