//! Changes: what a commit did to the three ways to its documents, and the bytes that the journal keeps of it.

use flare_provider::coding::varint::{put, take};

/// What happened to one document, as far as it can be found by url, ordinal or seq.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// It is new.
    Born {
        /// Its row.
        document: i64,
        /// Its lane.
        lane: i64,
        /// Its place among the documents of the lane.
        ordinal: u64,
        /// Its place in the log.
        seq: u64,
        /// By [`crate::place::url_key`].
        hash: i64,
    },
    /// It has a newer change.
    Moved {
        /// Its row.
        document: i64,
        /// Its lane.
        lane: i64,
        /// Its place in the log now.
        seq: u64,
        /// Its place in the log before.
        from: u64,
    },
    /// It is a tombstone no more: nothing is known of it.
    Removed {
        /// Its former row.
        document: i64,
        /// Its lane.
        lane: i64,
        /// Its place among the documents of the lane.
        ordinal: u64,
        /// Its last place in the log.
        seq: u64,
        /// By [`crate::place::url_key`].
        hash: i64,
    },
}

impl Change {
    /// The row it speaks of.
    pub fn document(&self) -> i64 {
        match self {
            Change::Born { document, .. }
            | Change::Moved { document, .. }
            | Change::Removed { document, .. } => *document,
        }
    }
}

const BORN: u64 = 0;
const MOVED: u64 = 1;
const REMOVED: u64 = 2;

/// The changes of a commit as the journal keeps them.
pub(crate) fn encode(changes: &[Change]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(changes.len() * 20);
    for change in changes {
        let (kind, numbers, hash) = match *change {
            Change::Born { document, lane, ordinal, seq, hash } => {
                (BORN, [document as u64, lane as u64, seq, ordinal], Some(hash))
            }
            Change::Moved { document, lane, seq, from } => {
                (MOVED, [document as u64, lane as u64, seq, from], None)
            }
            Change::Removed { document, lane, ordinal, seq, hash } => {
                (REMOVED, [document as u64, lane as u64, seq, ordinal], Some(hash))
            }
        };
        put(&mut bytes, kind);
        numbers.into_iter().for_each(|number| put(&mut bytes, number));
        // A hash has all its bits in use, so a varint would only be longer.
        bytes.extend(hash.into_iter().flat_map(i64::to_le_bytes));
    }
    bytes
}

/// The reverse of [`encode`]; `None` when the bytes are not what it wrote.
pub(crate) fn decode(mut bytes: &[u8]) -> Option<Vec<Change>> {
    let mut changes = Vec::new();
    while !bytes.is_empty() {
        let kind = take(&mut bytes)?;
        let (document, lane) = (take(&mut bytes)? as i64, take(&mut bytes)? as i64);
        let (seq, other) = (take(&mut bytes)?, take(&mut bytes)?);
        changes.push(match kind {
            BORN => Change::Born { document, lane, ordinal: other, seq, hash: hash(&mut bytes)? },
            MOVED => Change::Moved { document, lane, seq, from: other },
            REMOVED => Change::Removed { document, lane, ordinal: other, seq, hash: hash(&mut bytes)? },
            _ => return None,
        });
    }
    Some(changes)
}

fn hash(bytes: &mut &[u8]) -> Option<i64> {
    let (hash, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(i64::from_le_bytes(*hash))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_back_as_they_were() {
        let changes = [
            Change::Born { document: 1, lane: 2, ordinal: 0, seq: 1, hash: i64::MIN },
            Change::Moved { document: 1, lane: 2, seq: 300, from: 1 },
            Change::Removed { document: i64::MAX, lane: 2, ordinal: 1 << 39, seq: 300, hash: -1 },
        ];
        let bytes = encode(&changes);
        assert_eq!(decode(&bytes).as_deref(), Some(&changes[..]));
        assert_eq!(decode(&[]), Some(vec![]));
        for end in 1..bytes.len() {
            assert_ne!(decode(&bytes[..end]).as_deref(), Some(&changes[..]), "cut at {end}");
        }
        assert_eq!(decode(&[9, 0, 0, 0, 0]), None);
    }
}
