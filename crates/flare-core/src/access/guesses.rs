//! Guessing is slowed. In: that somebody showed a wrong token. Out: how long the answer waits.
//!
//! Only wrong ones wait: whoever has a right one is served at once, however many guess beside them, from the same address
//! too. Each answer takes a turn of its address and one of all; turns come evenly, after a few that are free.

use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;

use parking_lot::Mutex;

/// So many in a row are answered at once.
const FREE: u32 = 10;

/// No answer waits longer: whoever sends many at once is held up by the connections they take.
const LONGEST: Duration = Duration::from_secs(30);

/// Bound: so many addresses are remembered. When full: those whose turn has come go; if there are none, only the turns of
/// all count for a new one.
const ADDRESSES: usize = 10_000;

/// Turns of wrong answers.
pub struct Guesses {
    /// Between two turns of one address, and of all.
    per_peer: Duration,
    all: Duration,
    turns: Mutex<Turns>,
}

#[derive(Default)]
struct Turns {
    /// When the next turn of each is. Moments of the monotonic clock.
    peers: HashMap<IpAddr, Duration>,
    all: Duration,
}

impl Guesses {
    /// So many answers a second for one address, and for all.
    pub fn new(per_peer: u32, all: u32) -> Guesses {
        let turn = |rate: u32| Duration::from_secs(1) / rate.max(1);
        Guesses { per_peer: turn(per_peer), all: turn(all), turns: Mutex::default() }
    }

    /// Somebody showed a wrong token: how long its answer waits.
    pub fn wrong(&self, peer: Option<IpAddr>, now: Duration) -> Duration {
        let turns = &mut *self.turns.lock();
        let mut wait = take(&mut turns.all, self.all, now);
        if let Some(peer) = peer.map(network_of) {
            if turns.peers.len() >= ADDRESSES && !turns.peers.contains_key(&peer) {
                turns.peers.retain(|_, next| *next > now);
            }
            if turns.peers.len() < ADDRESSES || turns.peers.contains_key(&peer) {
                wait = wait.max(take(turns.peers.entry(peer).or_default(), self.per_peer, now));
            }
        }
        wait
    }
}

/// Takes the next turn: how long until it comes.
fn take(next: &mut Duration, turn: Duration, now: Duration) -> Duration {
    *next = (*next).max(now) + turn;
    let wait = next.saturating_sub(now + turn * FREE);
    if wait > LONGEST {
        *next -= turn;
    }
    wait.min(LONGEST)
}

/// What one guesser can choose from freely: an address, or a network of IPv6.
fn network_of(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let mut parts = address.segments();
            parts[4..].fill(0);
            IpAddr::V6(parts.into())
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    #[test]
    fn a_few_are_free_and_the_rest_come_evenly() {
        let guesses = Guesses::new(10, 1_000_000);
        let at = Duration::from_secs(5);
        let waits: Vec<u128> = (0..15).map(|_| guesses.wrong(peer("10.0.0.1"), at).as_millis()).collect();
        assert_eq!(waits, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 100, 200, 300, 400, 500]);
        let moment = Duration::from_millis(1);
        assert!(guesses.wrong(peer("10.0.0.2"), at) < moment, "another address waits for nobody");
        let later = at + Duration::from_secs(60);
        assert_eq!(guesses.wrong(peer("10.0.0.1"), later), Duration::ZERO, "it is forgotten in time");
        for _ in 0..1000 {
            assert!(guesses.wrong(peer("10.0.0.3"), at) <= LONGEST);
        }
    }

    #[test]
    fn many_addresses_share_the_turns_of_all_and_a_network_is_one() {
        let guesses = Guesses::new(10, 10);
        let waits = (0..20).map(|last| guesses.wrong(peer(&format!("10.0.0.{last}")), Duration::ZERO));
        assert_eq!(waits.max(), Some(Duration::from_secs(1)));
        let guesses = Guesses::new(10, 1_000_000);
        let waits = (0..20).map(|last| guesses.wrong(peer(&format!("2001:db8::{last}")), Duration::ZERO));
        assert_eq!(waits.max(), Some(Duration::from_secs(1)));
    }

    #[test]
    fn no_more_addresses_are_remembered_than_there_is_room_for() {
        let guesses = Guesses::new(1, 1_000_000);
        for number in 0..ADDRESSES as u32 + 100 {
            guesses.wrong(Some(IpAddr::V4(number.into())), Duration::ZERO);
        }
        assert_eq!(guesses.turns.lock().peers.len(), ADDRESSES);
        guesses.wrong(peer("200.0.0.1"), Duration::from_secs(100));
        assert_eq!(guesses.turns.lock().peers.len(), 1);
    }
}
