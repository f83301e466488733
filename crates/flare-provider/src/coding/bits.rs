//! What a client has, as bytes: sets and clears come in as a short list behind the feed's row, and are folded into
//! Roaring bitmaps of 65,536 ordinals each once the list is long.

use std::collections::BTreeMap;

use flare_model::ids::Ordinal;
use roaring::{RoaringBitmap, RoaringTreemap};

use super::varint::{put, take};

/// How long the list of a feed may grow, in bytes: about a hundred changes. A longer one makes the rows wide, and
/// then fewer feeds share a page; a shorter one folds too often.
pub const DELTA_BYTES: usize = 256;

/// The list of what was set and cleared. Later entries win over earlier ones.
pub fn encode(held: &[Ordinal], dropped: &[Ordinal]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity((held.len() + dropped.len()) * 4);
    for (ordinals, has) in [(held, 1), (dropped, 0)] {
        for ordinal in ordinals {
            // The highest bit is lost, and no lane ever counts so far.
            put(&mut bytes, ordinal.0 << 1 | has);
        }
    }
    bytes
}

/// The entries of a list: the ordinal, and whether the client has it. `None` when the bytes are no list.
pub fn decode(mut bytes: &[u8]) -> Option<Vec<(u64, bool)>> {
    let mut entries = Vec::with_capacity(bytes.len() / 2);
    while !bytes.is_empty() {
        let entry = take(&mut bytes)?;
        entries.push((entry >> 1, entry & 1 == 1));
    }
    Some(entries)
}

/// Which bitmap has an ordinal.
pub fn chunk_of(ordinal: u64) -> i64 {
    (ordinal >> 16) as i64
}

/// The bitmap of a chunk. It has the low 32 bits of its ordinals, so that bitmaps of neighbours can be joined.
/// `None` when the bytes are no bitmap of this chunk.
pub fn read_chunk(chunk: i64, bytes: &[u8]) -> Option<RoaringBitmap> {
    let mut rest = bytes;
    let bits = RoaringBitmap::deserialize_from(&mut rest).ok()?;
    let belongs = |bit: u32| i64::from(bit >> 16) == chunk & 0xffff;
    let whole = rest.is_empty() && bits.min().is_none_or(belongs) && bits.max().is_none_or(belongs);
    whole.then_some(bits)
}

/// The bytes of a chunk: 15 for a full one, since runs are kept as runs.
pub fn write_chunk(mut bits: RoaringBitmap) -> Vec<u8> {
    bits.optimize();
    let mut bytes = Vec::with_capacity(bits.serialized_size());
    bits.serialize_into(&mut bytes).expect("a vector takes what is written to it");
    bytes
}

/// A set of ordinals as bytes.
pub fn write_set(ordinals: &RoaringTreemap) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(ordinals.serialized_size());
    ordinals.serialize_into(&mut bytes).expect("a vector takes what is written to it");
    bytes
}

/// The reverse of [`write_set`]; `None` when the bytes are no set.
pub fn read_set(mut bytes: &[u8]) -> Option<RoaringTreemap> {
    let ordinals = RoaringTreemap::deserialize_from(&mut bytes).ok()?;
    bytes.is_empty().then_some(ordinals)
}

/// Sets and clears in a chunk.
pub fn change_chunk(bits: &mut RoaringBitmap, entries: &[(u64, bool)]) {
    for (ordinal, has) in entries {
        let low = *ordinal as u32;
        if *has {
            bits.insert(low)
        } else {
            bits.remove(low)
        };
    }
}

/// The entries of a list by chunk, in order within each.
pub fn by_chunk(entries: Vec<(u64, bool)>) -> BTreeMap<i64, Vec<(u64, bool)>> {
    let mut chunks: BTreeMap<i64, Vec<(u64, bool)>> = BTreeMap::new();
    for entry in entries {
        chunks.entry(chunk_of(entry.0)).or_default().push(entry);
    }
    chunks
}

/// All that a client has, from its chunks and the list.
pub fn join(chunks: Vec<(i64, RoaringBitmap)>, entries: Vec<(u64, bool)>) -> RoaringTreemap {
    let mut parts: BTreeMap<u32, RoaringBitmap> = BTreeMap::new();
    for (chunk, bits) in chunks {
        *parts.entry((chunk >> 16) as u32).or_default() |= bits;
    }
    let mut held = RoaringTreemap::from_bitmaps(parts);
    for (ordinal, has) in entries {
        if has {
            held.insert(ordinal)
        } else {
            held.remove(ordinal)
        };
    }
    held
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordinals(numbers: &[u64]) -> Vec<Ordinal> {
        numbers.iter().copied().map(Ordinal).collect()
    }

    #[test]
    fn the_last_word_about_an_ordinal_counts() {
        let mut bytes = encode(&ordinals(&[1, 2, 70_000]), &ordinals(&[3]));
        bytes.extend(encode(&ordinals(&[3]), &ordinals(&[2])));
        let held = join(Vec::new(), decode(&bytes).expect("a list"));
        assert_eq!(held.iter().collect::<Vec<_>>(), [1, 3, 70_000]);
    }

    #[test]
    fn chunks_and_list_make_the_whole() {
        let all: Vec<u64> = vec![0, 65_535, 65_536, 1 << 31, (1 << 33) + 5, (1 << 40) + 1];
        let mut chunks = Vec::new();
        for (chunk, entries) in by_chunk(all.iter().map(|ordinal| (*ordinal, true)).collect()) {
            let mut bits = RoaringBitmap::new();
            change_chunk(&mut bits, &entries);
            let bytes = write_chunk(bits);
            chunks.push((chunk, read_chunk(chunk, &bytes).expect("a bitmap of this chunk")));
            assert_eq!(read_chunk(chunk + 1, &bytes), None, "not of its neighbour");
            assert_eq!(read_chunk(chunk, &bytes[..bytes.len() - 1]), None, "not when it is cut");
        }
        assert_eq!(join(chunks, vec![(7, true)]).iter().collect::<Vec<_>>(), {
            let mut with = all.clone();
            with.insert(1, 7);
            with
        });
    }

    #[test]
    fn a_full_chunk_takes_a_few_bytes() {
        let mut bits = RoaringBitmap::new();
        bits.insert_range(0..65_536);
        assert_eq!(write_chunk(bits).len(), 15);
    }
}
