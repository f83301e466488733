//! The head of an answer: bytes come in; its status, its fields, how its body ends, and whether the connection may be
//! used again go out. The rules are those of RFC 9112, 6.3 and 9.3.

use std::mem::MaybeUninit;

use super::{Fields, Mistake};

/// How many fields a head may have, and trailers too.
pub const MAX_FIELDS: usize = 100;

/// A whole head.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// How many bytes it is long.
    pub length: usize,
    pub status: u16,
    /// How its body ends.
    pub framing: Framing,
    /// Whether the connection may be used again once the body has ended, as far as the head tells.
    pub keep_alive: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    /// After so many bytes.
    Length(u64),
    /// With a chunk of no length.
    Chunked,
    /// With the connection.
    UntilClose,
}

impl Head {
    /// Whether it is only a word in between, after which the answer is still to come.
    pub fn is_interim(&self) -> bool {
        self.status < 200
    }
}

/// Parses a head, when all of it is there, and puts its fields into an empty `fields` if it is the answer's own.
pub(crate) fn parse(bytes: &[u8], fields: &mut Fields) -> Result<Option<Head>, Mistake> {
    let mut room = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    let length = match parser.parse_response_with_uninit_headers(&mut response, bytes, &mut room) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Mistake::HeadTooLarge),
        Err(error) => return Err(Mistake::Head(error)),
    };
    let status = response.code.filter(|status| *status >= 100).ok_or(Mistake::Status)?;
    let newest = response.version == Some(1);
    match status {
        101 => return Err(Mistake::Upgrade),
        100..200 => {
            return Ok(Some(Head { length, status, framing: Framing::Length(0), keep_alive: true }));
        }
        _ => {}
    }
    let mut seen = Seen::default();
    for header in &*response.headers {
        seen.note(header.name, header.value);
        fields.push(header.name, header.value);
    }
    let framing = match status {
        // They have none, whatever their fields say.
        204 | 304 => Framing::Length(0),
        _ => seen.framing(newest)?,
    };
    let keep_alive = !seen.close && (newest || seen.keep_alive);
    Ok(Some(Head { length, status, framing, keep_alive }))
}

/// What the fields say of the body's end and of the connection.
#[derive(Default)]
struct Seen {
    length: Length,
    /// Whether the last encoding is `chunked`, where there are any.
    chunked: Option<bool>,
    close: bool,
    keep_alive: bool,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Length {
    #[default]
    Absent,
    Given(u64),
    Nonsense,
}

impl Seen {
    #[inline]
    fn note(&mut self, name: &str, value: &[u8]) {
        // Most names have another length, which is quicker to compare.
        match name.len() {
            10 if name.eq_ignore_ascii_case("connection") => {
                for option in items(value) {
                    self.close |= option.eq_ignore_ascii_case(b"close");
                    self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            14 if name.eq_ignore_ascii_case("content-length") => {
                for item in items(value) {
                    self.length = match (self.length, number(item)) {
                        (Length::Absent, Some(length)) => Length::Given(length),
                        (Length::Given(before), Some(length)) if before == length => self.length,
                        _ => Length::Nonsense,
                    };
                }
            }
            17 if name.eq_ignore_ascii_case("transfer-encoding") => {
                // Beyond ASCII there is no encoding, and so none that could be undone up to `chunked`.
                let last = items(value).last().filter(|_| value.is_ascii()).unwrap_or_default();
                self.chunked = Some(last.eq_ignore_ascii_case(b"chunked"));
            }
            _ => {}
        }
    }

    /// An encoding counts more than a length: who sends both may mean to smuggle, but we forward to nobody, and the
    /// chunks are what the next reader would go by.
    fn framing(&self, newest: bool) -> Result<Framing, Mistake> {
        match (self.chunked, self.length) {
            (Some(_), _) if !newest => Err(Mistake::Encoding),
            (Some(true), _) => Ok(Framing::Chunked),
            (Some(false), _) => Ok(Framing::UntilClose),
            (None, Length::Given(length)) => Ok(Framing::Length(length)),
            (None, Length::Nonsense) => Err(Mistake::Length),
            (None, Length::Absent) => Ok(Framing::UntilClose),
        }
    }
}

/// The items of a list, without the blanks around them.
fn items(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

/// Digits and nothing else, at least one.
fn number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Option<Head>, Mistake> {
        parse(text.as_bytes(), &mut Fields::default())
    }

    fn framing(fields: &str) -> Result<Framing, Mistake> {
        parsed(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n")).map(|head| head.expect("it is whole").framing)
    }

    #[test]
    fn how_a_body_ends() {
        for (fields, expected) in [
            ("", Ok(Framing::UntilClose)),
            ("Content-Length: 5\r\n", Ok(Framing::Length(5))),
            ("content-length: 5, 5\r\nCONTENT-LENGTH:5\r\n", Ok(Framing::Length(5))),
            ("content-length: 5\r\ncontent-length: 6\r\n", Err(Mistake::Length)),
            ("content-length: 5, 6\r\n", Err(Mistake::Length)),
            ("content-length: 6, x, 6\r\n", Err(Mistake::Length)),
            ("content-length:\r\n", Err(Mistake::Length)),
            ("content-length: +5\r\n", Err(Mistake::Length)),
            ("content-length: -1\r\n", Err(Mistake::Length)),
            ("content-length: 0x5\r\n", Err(Mistake::Length)),
            ("content-length: 18446744073709551616\r\n", Err(Mistake::Length)),
            ("content-length: 18446744073709551615\r\n", Ok(Framing::Length(u64::MAX))),
            ("transfer-encoding: chunked\r\n", Ok(Framing::Chunked)),
            ("transfer-encoding: gzip, Chunked\r\ncontent-length: x\r\n", Ok(Framing::Chunked)),
            ("transfer-encoding: chunked, gzip\r\n", Ok(Framing::UntilClose)),
            ("transfer-encoding: chunked\r\ntransfer-encoding: gzip\r\n", Ok(Framing::UntilClose)),
            ("transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n", Ok(Framing::Chunked)),
            ("transfer-encoding:\r\ncontent-length: 5\r\n", Ok(Framing::UntilClose)),
        ] {
            assert_eq!(framing(fields), expected, "{fields}");
        }
    }

    #[test]
    fn some_statuses_have_no_body_and_101_no_meaning() {
        for status in [204, 304] {
            let head = parsed(&format!("HTTP/1.1 {status} x\r\ncontent-length: 1, 2\r\n\r\n"));
            assert_eq!(head.map(|head| head.map(|head| head.framing)), Ok(Some(Framing::Length(0))));
        }
        assert_eq!(parsed("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n"), Err(Mistake::Upgrade));
        assert!(parsed("HTTP/1.1 103\r\nlink: x\r\n\r\n").unwrap().unwrap().is_interim());
        assert_eq!(parsed("HTTP/1.1 099 x\r\n\r\n"), Err(Mistake::Status));
        assert_eq!(parsed("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"), Err(Mistake::Encoding));
    }

    #[test]
    fn whether_the_connection_may_be_used_again() {
        for (version, fields, expected) in [
            ("1.1", "", true),
            ("1.1", "Connection: Close\r\n", false),
            ("1.1", "connection: x\r\nconnection: a, close ,b\r\nconnection: keep-alive\r\n", false),
            ("1.1", "connection: closed\r\n", true),
            ("1.0", "", false),
            ("1.0", "connection: Keep-Alive\r\n", true),
            ("1.0", "connection: keep-alive, close\r\n", false),
        ] {
            let head = parsed(&format!("HTTP/{version} 204 x\r\n{fields}\r\n"));
            assert_eq!(head.unwrap().unwrap().keep_alive, expected, "{version} {fields}");
        }
    }
}
