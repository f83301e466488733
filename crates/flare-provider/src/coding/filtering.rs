//! What a feed keeps for filters, as bytes in its row.

use flare_model::feed::{Example, Filtering};
use flare_model::time::Timestamp;

use super::varint::{put, take};

/// Counters and the last error.
pub fn encode(filtering: &Filtering) -> Vec<u8> {
    let Filtering { swept, selective, excluded, not_told, errors, last_error } = filtering;
    let mut bytes = Vec::with_capacity(16);
    for number in [*swept, u64::from(*selective), *excluded, *not_told, *errors] {
        put(&mut bytes, number);
    }
    if let Some(Example { at, document, error }) = last_error {
        bytes.extend(at.millis().to_le_bytes());
        put(&mut bytes, document.len() as u64);
        bytes.extend(document.as_bytes());
        bytes.extend(error.as_bytes());
    }
    bytes
}

/// The reverse of [`encode`]; `None` when the bytes are not what it wrote.
pub fn decode(mut bytes: &[u8]) -> Option<Filtering> {
    let mut filtering = Filtering {
        swept: take(&mut bytes)?,
        selective: take(&mut bytes)? != 0,
        excluded: take(&mut bytes)?,
        not_told: take(&mut bytes)?,
        errors: take(&mut bytes)?,
        last_error: None,
    };
    if !bytes.is_empty() {
        let (millis, mut rest) = bytes.split_first_chunk()?;
        let length = usize::try_from(take(&mut rest)?).ok()?;
        let (document, error) = rest.split_at_checked(length)?;
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).ok();
        let at = Timestamp::from_millis(i64::from_le_bytes(*millis));
        filtering.last_error = Some(Example { at, document: text(document)?, error: text(error)? });
    }
    Some(filtering)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_comes_back_as_it_was() {
        let plain = Filtering { swept: 3, selective: true, excluded: 1 << 40, ..Filtering::default() };
        let example =
            Example { at: Timestamp::from_millis(-5), document: "http://a/ß".into(), error: "é".into() };
        let whole = Filtering { not_told: 7, errors: 9, last_error: Some(example), ..plain.clone() };
        for filtering in [Filtering::default(), plain, whole] {
            assert_eq!(decode(&encode(&filtering)), Some(filtering));
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        for bytes in
            [&[][..], &[0, 0, 0, 0], &[0, 0, 0, 0, 0, 1], &[0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 1]]
        {
            assert_eq!(decode(bytes), None, "{bytes:?}");
        }
    }
}
