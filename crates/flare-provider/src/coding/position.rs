//! The parts of a feed's row that are bytes: what is ahead of the cursor, the sweep, and when things turned for the client.

use flare_model::feed::{Ahead, Health, Sweep, SweepKind};
use flare_model::ids::Seq;
use flare_model::time::Timestamp;

use super::varint::{put, take};

/// What is ahead of the cursor. `None` for what is most common: nothing, up to the cursor itself.
pub fn encode_ahead(cursor: Seq, ahead: &Ahead) -> Option<Vec<u8>> {
    if ahead.horizon == cursor && ahead.holes.is_empty() && ahead.extras.is_empty() {
        return None;
    }
    let mut bytes = Vec::with_capacity(8 + 2 * (ahead.holes.len() + ahead.extras.len()));
    put(&mut bytes, ahead.horizon.0);
    put(&mut bytes, ahead.holes.len() as u64);
    let mut before = 0;
    for seq in ahead.holes.iter().chain(&ahead.extras) {
        // They are in order, and close to each other.
        put(&mut bytes, seq.0.wrapping_sub(before));
        before = seq.0;
    }
    Some(bytes)
}

/// The reverse of [`encode_ahead`]; `None` when the bytes are not what it wrote.
pub fn decode_ahead(cursor: Seq, bytes: Option<&[u8]>) -> Option<Ahead> {
    let Some(mut bytes) = bytes else { return Some(Ahead { horizon: cursor, ..Ahead::default() }) };
    let horizon = Seq(take(&mut bytes)?);
    let holes = usize::try_from(take(&mut bytes)?).ok()?;
    let mut seqs = Vec::new();
    let mut before: u64 = 0;
    while !bytes.is_empty() {
        before = before.wrapping_add(take(&mut bytes)?);
        seqs.push(Seq(before));
    }
    if holes > seqs.len() {
        return None;
    }
    let extras = seqs.split_off(holes);
    Some(Ahead { horizon, holes: seqs, extras })
}

/// A sweep.
pub fn encode_sweep(sweep: &Sweep) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16);
    let (kind, since) = match sweep.kind {
        SweepKind::Beginning => (0, None),
        SweepKind::Replay { since } => (1, Some(since.millis())),
        SweepKind::Filter => (2, None),
    };
    put(&mut bytes, kind);
    for number in [sweep.replay, sweep.position.0, sweep.end.0, sweep.met] {
        put(&mut bytes, number);
    }
    bytes.extend(since.into_iter().flat_map(i64::to_le_bytes));
    bytes
}

/// The reverse of [`encode_sweep`]; `None` when the bytes are not what it wrote.
pub fn decode_sweep(mut bytes: &[u8]) -> Option<Sweep> {
    let kind = take(&mut bytes)?;
    let (replay, position, end) = (take(&mut bytes)?, take(&mut bytes)?, take(&mut bytes)?);
    // Sweeps that the first databases have did not count what they met.
    let counts = bytes.len() != if kind == 1 { 8 } else { 0 };
    let met = if counts { take(&mut bytes)? } else { 0 };
    let kind = match kind {
        0 if bytes.is_empty() => SweepKind::Beginning,
        1 => SweepKind::Replay { since: Timestamp::from_millis(i64::from_le_bytes(bytes.try_into().ok()?)) },
        2 if bytes.is_empty() => SweepKind::Filter,
        _ => return None,
    };
    Some(Sweep { replay, kind, position: Seq(position), end: Seq(end), met })
}

/// When things turned for a client.
pub fn encode_health(health: &Health) -> Vec<u8> {
    let Health { failing_since, last_discard_at, recovered_at, prepared_at } = health;
    let mut bytes = vec![0];
    for (bit, moment) in [failing_since, last_discard_at, recovered_at, prepared_at].into_iter().enumerate() {
        if let Some(moment) = moment {
            bytes[0] |= 1 << bit;
            bytes.extend(moment.millis().to_le_bytes());
        }
    }
    bytes
}

/// The reverse of [`encode_health`]; `None` when the bytes are not what it wrote.
pub fn decode_health(bytes: &[u8]) -> Option<Health> {
    let (bits, mut rest) = bytes.split_first()?;
    let mut moments = [None; 4];
    for (bit, moment) in moments.iter_mut().enumerate() {
        if bits & 1 << bit != 0 {
            let (millis, more) = rest.split_first_chunk()?;
            (*moment, rest) = (Some(Timestamp::from_millis(i64::from_le_bytes(*millis))), more);
        }
    }
    let [failing_since, last_discard_at, recovered_at, prepared_at] = moments;
    let whole = rest.is_empty() && bits >> moments.len() == 0;
    whole.then_some(Health { failing_since, last_discard_at, recovered_at, prepared_at })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seqs(numbers: &[u64]) -> Vec<Seq> {
        numbers.iter().copied().map(Seq).collect()
    }

    #[test]
    fn what_is_ahead_comes_back_as_it_was() {
        let cursor = Seq(100);
        for ahead in [
            Ahead { horizon: cursor, ..Ahead::default() },
            Ahead::default(),
            Ahead { horizon: Seq(200), holes: seqs(&[101, 150]), extras: seqs(&[201, u64::MAX]) },
            Ahead { horizon: cursor, holes: vec![], extras: seqs(&[300]) },
        ] {
            let bytes = encode_ahead(cursor, &ahead);
            assert_eq!(decode_ahead(cursor, bytes.as_deref()), Some(ahead));
        }
        assert_eq!(encode_ahead(cursor, &Ahead { horizon: cursor, ..Ahead::default() }), None, "nothing");
    }

    #[test]
    fn a_sweep_comes_back_as_it_was() {
        let replay = SweepKind::Replay { since: Timestamp::from_millis(-5) };
        for kind in [SweepKind::Beginning, replay, SweepKind::Filter] {
            let sweep = Sweep { replay: 7, kind, position: Seq(12), end: Seq(1 << 62), met: 300 };
            assert_eq!(decode_sweep(&encode_sweep(&sweep)), Some(sweep));
        }
    }

    #[test]
    fn a_sweep_of_the_first_databases_is_understood() {
        let kind = SweepKind::Replay { since: Timestamp::from_millis(-5) };
        let sweep = Sweep { replay: 7, kind, position: Seq(12), end: Seq(99), met: 0 };
        let mut bytes = encode_sweep(&sweep);
        bytes.remove(4);
        assert_eq!(decode_sweep(&bytes), Some(sweep));
        assert_eq!(decode_sweep(&[0, 0, 1, 2]).map(|sweep| sweep.end), Some(Seq(2)));
    }

    #[test]
    fn when_things_turned_comes_back_as_it_was() {
        let moment = |millis| Some(Timestamp::from_millis(millis));
        for health in [
            Health::default(),
            Health { failing_since: moment(i64::MIN), prepared_at: moment(-1), ..Health::default() },
            Health { last_discard_at: moment(i64::MAX), recovered_at: moment(0), ..Health::default() },
        ] {
            assert_eq!(decode_health(&encode_health(&health)), Some(health));
        }
        for bytes in [&[][..], &[1], &[16], &[0, 0], &[1, 0, 0, 0, 0, 0, 0, 0], &[1; 10]] {
            assert_eq!(decode_health(bytes), None, "{bytes:?}");
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        assert_eq!(decode_ahead(Seq(0), Some(&[])), None);
        assert_eq!(decode_ahead(Seq(0), Some(&[5, 3, 1])), None, "fewer than it says");
        assert_eq!(decode_ahead(Seq(0), Some(&[0x80])), None);
        for bytes in [&[][..], &[3, 0, 0, 0, 0], &[0, 0, 0], &[0, 0, 0, 0, 0, 0], &[1, 0, 0, 0, 0, 1, 2]] {
            assert_eq!(decode_sweep(bytes), None, "{bytes:?}");
        }
    }
}
