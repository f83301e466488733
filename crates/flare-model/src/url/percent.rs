//! In: pieces of urls. Out: the same pieces normalised, decoded, or encoded for insertion. All of it works byte by
//! byte into a string that is handed in, because rendering urls is on the path of every delivery.

use std::borrow::Cow;

use super::UrlError;

const HEX: &[u8; 16] = b"0123456789ABCDEF";

/// Letters, digits and `-._~`: the characters that mean the same encoded or not.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// Printable ASCII that browsers and servers take as it is. Brackets are outside of the letter of RFC 3986, but
/// `?filter[id]=1` is everyday. A table, because every byte of every PUT's url is looked at.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        plain[byte] = (byte as u8).is_ascii_graphic()
            && !matches!(byte as u8, b'%' | b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'{' | b'|' | b'}');
        byte += 1;
    }
    plain
};

fn is_plain(byte: u8) -> bool {
    PLAIN[usize::from(byte)]
}

fn push_encoded(byte: u8, out: &mut String) {
    out.push('%');
    out.push(char::from(HEX[usize::from(byte >> 4)]));
    out.push(char::from(HEX[usize::from(byte & 15)]));
}

/// The byte that `%XX` at the start stands for.
fn read_escape(bytes: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = bytes else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    // Two hex digits always fit a byte.
    Some((digit(*high)? * 16 + digit(*low)?) as u8)
}

fn bad_escape(text: &str, at: usize) -> UrlError {
    UrlError::Escape { escape: text[at..].chars().take(3).collect() }
}

/// Appends a literal piece of a url (path or query, slashes pass) in the one spelling described in [`crate::url`].
pub(crate) fn normalise(piece: &str, out: &mut String) -> Result<(), UrlError> {
    let bytes = piece.as_bytes();
    if bytes.iter().copied().all(is_plain) {
        out.push_str(piece);
        return Ok(());
    }
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        at += 1;
        match byte {
            b' ' => return Err(UrlError::Blank),
            b'{' | b'}' => return Err(UrlError::Brace),
            byte if byte.is_ascii_control() => return Err(UrlError::Control),
            b'%' => {
                let byte = read_escape(&bytes[at - 1..]).ok_or_else(|| bad_escape(piece, at - 1))?;
                at += 2;
                push_value_byte(byte, out);
            }
            byte if is_plain(byte) => out.push(char::from(byte)),
            byte => push_encoded(byte, out),
        }
    }
    Ok(())
}

/// Decodes every percent-encoding of a text, once.
pub(crate) fn decode(text: &str) -> Result<String, UrlError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut at = 0;
    while at < text.len() {
        let byte = text.as_bytes()[at];
        if byte == b'%' {
            bytes.push(read_escape(&text.as_bytes()[at..]).ok_or_else(|| bad_escape(text, at))?);
            at += 3;
        } else {
            bytes.push(byte);
            at += 1;
        }
    }
    String::from_utf8(bytes).map_err(|_| UrlError::NotUtf8)
}

/// A segment of a url as plain text, as `data`, filters and people want it. A segment whose bytes are no UTF-8 stays
/// percent-encoded as it is: replacing them would make different documents look the same.
pub fn decode_segment(segment: &str) -> Cow<'_, str> {
    if !segment.contains('%') {
        return Cow::Borrowed(segment);
    }
    decode(segment).map_or(Cow::Borrowed(segment), Cow::Owned)
}

/// The bytes of a raw segment, percent-encodings decoded; a stray percent sign stands for itself.
struct Decoded<'a>(&'a [u8]);

impl Iterator for Decoded<'_> {
    type Item = u8;
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        let escape = read_escape(self.0);
        self.0 = if escape.is_some() { &self.0[3..] } else { rest };
        Some(escape.unwrap_or(first))
    }
}

/// Appends a raw segment of a document's url where a template has its wildcard: decoded, then encoded so that nothing
/// in it can end a segment, a parameter or the request line.
pub(crate) fn insert_segment(segment: &str, out: &mut String) {
    insert(Decoded(segment.as_bytes()), out);
}

/// Appends plain text (a revision) the same way.
pub(crate) fn insert_text(text: &str, out: &mut String) {
    insert(text.bytes(), out);
}

fn insert(bytes: impl Iterator<Item = u8>, out: &mut String) {
    let start = out.len();
    bytes.for_each(|byte| push_value_byte(byte, out));
    // A value may not become a dot segment; any other combination of dots is an ordinary name.
    let dots = match &out[start..] {
        "." => 1,
        ".." => 2,
        _ => return,
    };
    out.truncate(start);
    (0..dots).for_each(|_| push_encoded(b'.', out));
}

fn push_value_byte(byte: u8, out: &mut String) {
    if is_unreserved(byte) { out.push(char::from(byte)) } else { push_encoded(byte, out) }
}
