//! The file of a backup: a description and a database come in, one file goes out, encrypted where a key is given; and back,
//! with every byte vouched for.
//!
//! ```text
//! FLAREBK1 | 0 plain, 1 encrypted | salt, 16 bytes | pieces
//! piece: length in 4 bytes, the highest bit set in the last one | bytes | where plain: SHA-256 of all up to here
//! ```
//! The first piece is the description, as JSON. An encrypted one is sealed by ChaCha20-Poly1305 under a key that is made of
//! the given one and the salt, with the piece's number and whether it is the last as the nonce: no piece can be changed,
//! left out, moved, or taken from another backup.

use std::io::{Read, Write};

use anyhow::{Context as _, bail, ensure};
use flare_core::config::KEY_BYTES;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;
use sha2::{Digest, Sha256};

const MAGIC: &[u8; 8] = b"FLAREBK1";
const SALT_BYTES: usize = 16;
/// How much of the database a piece has.
const PIECE: usize = 1 << 20;
/// More than any piece has.
const MOST: usize = PIECE + 1024;
const LAST: u32 = 1 << 31;

/// What becomes of the bytes of a piece.
enum Guard {
    Sealed(Box<LessSafeKey>),
    Summed(Sha256),
}

impl Guard {
    fn new(key: Option<&[u8; KEY_BYTES]>, head: &[u8]) -> Guard {
        let Some(key) = key else { return Guard::Summed(Sha256::new_with_prefix(head)) };
        let own = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), head);
        let key =
            UnboundKey::new(&CHACHA20_POLY1305, own.as_ref()).expect("a digest has the length of a key");
        Guard::Sealed(Box::new(LessSafeKey::new(key)))
    }
}

fn nonce(number: u64, is_last: bool) -> Nonce {
    let mut bytes = [0; NONCE_LEN];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    bytes[NONCE_LEN - 1] = u8::from(is_last);
    Nonce::assume_unique_for_key(bytes)
}

/// Writes a backup.
pub fn write(
    mut out: impl Write,
    key: Option<&[u8; KEY_BYTES]>,
    salt: [u8; SALT_BYTES],
    description: &[u8],
    mut database: impl Read,
) -> anyhow::Result<()> {
    let head = [&MAGIC[..], &[u8::from(key.is_some())], &salt].concat();
    out.write_all(&head)?;
    let mut guard = Guard::new(key, &head);
    let mut number = 0;
    let mut put = |piece: &mut Vec<u8>, is_last: bool| -> anyhow::Result<()> {
        if let Guard::Sealed(key) = &guard {
            let sealed = key.seal_in_place_append_tag(nonce(number, is_last), Aad::empty(), piece);
            sealed.ok().context("a piece could not be sealed")?;
        }
        number += 1;
        let length = u32::try_from(piece.len())? | if is_last { LAST } else { 0 };
        out.write_all(&length.to_be_bytes())?;
        out.write_all(piece)?;
        if let Guard::Summed(sum) = &mut guard {
            sum.update(length.to_be_bytes());
            sum.update(&*piece);
            out.write_all(&sum.clone().finalize())?;
        }
        Ok(())
    };
    ensure!(description.len() <= PIECE, "the description is too long");
    put(&mut description.to_vec(), false)?;
    let mut piece = full(&mut database)?;
    loop {
        let next = full(&mut database)?;
        put(&mut piece, next.is_empty())?;
        if next.is_empty() {
            return Ok(());
        }
        piece = next;
    }
}

/// The next bytes of the database, as many as a piece has, or all that are left.
fn full(database: &mut impl Read) -> std::io::Result<Vec<u8>> {
    let mut piece = Vec::with_capacity(MOST);
    database.by_ref().take(PIECE as u64).read_to_end(&mut piece)?;
    Ok(piece)
}

/// Reads a backup: the database goes to `out`, the description is answered. What `out` has got is right only when this
/// succeeds.
pub fn read(
    mut from: impl Read,
    key: Option<&[u8; KEY_BYTES]>,
    mut out: impl Write,
) -> anyhow::Result<Vec<u8>> {
    let mut head = [0; MAGIC.len() + 1 + SALT_BYTES];
    from.read_exact(&mut head)
        .ok()
        .filter(|()| head.starts_with(MAGIC))
        .context("it is not a backup of Flare")?;
    let key = match (head[MAGIC.len()], key) {
        (0, _) => None,
        (1, Some(key)) => Some(key),
        (1, None) => bail!("it is encrypted: give the key with --key-file"),
        _ => bail!("it was written by a newer Flare"),
    };
    let mut guard = Guard::new(key, &head);
    let (mut number, mut description) = (0, None);
    loop {
        let (piece, is_last) = take(&mut from, &mut guard, number)?;
        match description {
            None => description = Some(piece),
            Some(_) => out.write_all(&piece)?,
        }
        number += 1;
        if is_last {
            ensure!(from.read(&mut [0])? == 0, "something follows its end");
            return description.filter(|_| number > 1).context("there is no database in it");
        }
    }
}

fn take(from: &mut impl Read, guard: &mut Guard, number: u64) -> anyhow::Result<(Vec<u8>, bool)> {
    const CUT: &str = "it is cut off";
    let mut length = [0; 4];
    from.read_exact(&mut length).context(CUT)?;
    let word = u32::from_be_bytes(length);
    let (bytes, is_last) = ((word & !LAST) as usize, word & LAST != 0);
    ensure!(bytes <= MOST, "it is damaged in piece {number}");
    let mut piece = vec![0; bytes];
    from.read_exact(&mut piece).context(CUT)?;
    match guard {
        Guard::Sealed(key) => {
            let opened = key.open_in_place(nonce(number, is_last), Aad::empty(), &mut piece);
            let opened = opened.map(|opened| opened.len()).ok();
            let length =
                opened.with_context(|| format!("piece {number} is damaged, or the key is another"))?;
            piece.truncate(length);
        }
        Guard::Summed(sum) => {
            let mut given = [0; 32];
            from.read_exact(&mut given).context(CUT)?;
            sum.update(length);
            sum.update(&piece);
            ensure!(sum.clone().finalize()[..] == given, "it is damaged in piece {number}");
        }
    }
    Ok((piece, is_last))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: [u8; KEY_BYTES] = [7; KEY_BYTES];

    fn written(key: Option<&[u8; KEY_BYTES]>, database: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        write(&mut file, key, [3; SALT_BYTES], b"{}", database).unwrap();
        file
    }

    fn database(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|number| (number * 31 % 251) as u8).collect()
    }

    #[test]
    fn what_is_written_is_read_whatever_its_length() {
        for bytes in [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 3 * PIECE + 5] {
            for key in [None, Some(&KEY)] {
                let (database, mut read_again) = (database(bytes), Vec::new());
                let file = written(key, &database);
                let description = read(&file[..], key, &mut read_again).unwrap();
                assert!(description == b"{}" && read_again == database, "{bytes} {}", key.is_some());
            }
        }
    }

    #[test]
    fn nothing_of_it_can_be_changed_or_left_out() {
        for key in [None, Some(&KEY)] {
            let file = written(key, &database(40));
            for place in 0..file.len() {
                let mut changed = file.clone();
                changed[place] ^= 1;
                assert!(read(&changed[..], key, &mut Vec::new()).is_err(), "byte {place}, {}", key.is_some());
                assert!(read(&file[..place], key, &mut Vec::new()).is_err(), "cut at {place}");
            }
            let longer = [&file[..], b"x"].concat();
            assert!(read(&longer[..], key, &mut Vec::new()).is_err());
        }
    }

    #[test]
    fn an_encrypted_one_tells_nothing_and_opens_with_its_key_alone() {
        let file = written(Some(&KEY), b"the name of a customer");
        assert!(!file.windows(8).any(|window| window == b"customer"));
        for (key, word) in [(None, "--key-file"), (Some(&[8; KEY_BYTES]), "key is another")] {
            let refused = read(&file[..], key, &mut Vec::new()).unwrap_err().to_string();
            assert!(refused.contains(word), "{refused}");
        }
    }
}
