//! A body in chunks: bytes come in, the body's own go out, until the chunk of no length and the trailers after it.
//! Resumable at every byte. Lines end with CR LF and nothing else: what one reader takes for an end, another may not.

use super::Mistake;
use super::head::MAX_FIELDS;

/// How many bytes the extensions of all chunks may have together. They are skipped. Beyond: the answer is refused.
pub const EXTENSIONS_LIMIT: usize = 16 * 1024;

/// How many bytes trailers may have. They are checked and dropped. Beyond: the answer is refused.
pub const TRAILERS_LIMIT: usize = 16 * 1024;

/// Where in the chunks we are.
#[derive(Debug, Default)]
pub(crate) struct Chunks {
    state: State,
    /// What the present chunk still has.
    left: u64,
    /// Bound: [`EXTENSIONS_LIMIT`].
    extensions: usize,
    /// Bound: [`TRAILERS_LIMIT`].
    trailers: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum State {
    /// Before the first digit.
    #[default]
    Start,
    Size,
    /// Blanks after the digits.
    Blank,
    Extension,
    SizeLf,
    Data,
    DataCr,
    DataLf,
    /// At the beginning of a line after the last chunk.
    TrailerStart,
    Trailer,
    TrailerLf,
    EndLf,
    Done,
}

impl Chunks {
    /// Whether the body has ended.
    pub fn is_done(&self) -> bool {
        self.state == State::Done
    }

    /// Goes on to the next piece of the body, or as far as the bytes go. Returns how many it took, and that piece.
    pub fn next<'b>(&mut self, bytes: &'b [u8]) -> Result<(usize, Option<&'b [u8]>), Mistake> {
        let mut at = 0;
        while at < bytes.len() && self.state != State::Done {
            if self.state == State::Data {
                let rest = &bytes[at..];
                let length = rest.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
                self.left -= length as u64;
                if self.left == 0 {
                    self.state = State::DataCr;
                }
                return Ok((at + length, Some(&rest[..length])));
            }
            self.state = self.step(bytes[at])?;
            at += 1;
        }
        Ok((at, None))
    }

    fn step(&mut self, byte: u8) -> Result<State, Mistake> {
        Ok(match (self.state, byte) {
            (State::Start | State::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                let digit = u64::from((byte as char).to_digit(16).expect("it is one of these"));
                let size = self.left.checked_mul(16).and_then(|size| size.checked_add(digit));
                self.left = size.ok_or(Mistake::Chunk("a size is too large"))?;
                State::Size
            }
            (State::Start, _) => return Err(Mistake::Chunk("a size is missing")),
            (State::Size | State::Blank, b' ' | b'\t') => State::Blank,
            (State::Size | State::Blank, b';') => State::Extension,
            (State::Size | State::Blank | State::Extension, b'\r') => State::SizeLf,
            (State::Size | State::Blank, _) => return Err(Mistake::Chunk("a size is not a number")),
            (State::Extension, b'\n') => return Err(Mistake::Chunk("an extension has a line feed")),
            (State::Extension, _) => {
                self.extensions += 1;
                if self.extensions >= EXTENSIONS_LIMIT {
                    return Err(Mistake::Chunk("the extensions are too long"));
                }
                State::Extension
            }
            (State::SizeLf, b'\n') if self.left == 0 => State::TrailerStart,
            (State::SizeLf, b'\n') => State::Data,
            (State::DataCr, b'\r') => State::DataLf,
            (State::DataLf, b'\n') => State::Start,
            (State::TrailerStart, b'\r') => State::EndLf,
            (State::TrailerStart | State::Trailer, b'\n') => {
                return Err(Mistake::Chunk("a line does not end with CR LF"));
            }
            (State::TrailerStart | State::Trailer, _) => {
                self.trailer(byte)?;
                if byte == b'\r' { State::TrailerLf } else { State::Trailer }
            }
            (State::TrailerLf, b'\n') => {
                self.trailer(byte)?;
                State::TrailerStart
            }
            (State::EndLf, b'\n') => {
                self.check_trailers()?;
                State::Done
            }
            (State::SizeLf | State::TrailerLf | State::EndLf, _) => {
                return Err(Mistake::Chunk("a line does not end with CR LF"));
            }
            (State::DataCr | State::DataLf, _) => {
                return Err(Mistake::Chunk("a chunk is longer than its size"));
            }
            (State::Data | State::Done, _) => {
                unreachable!("bytes of the body, and beyond its end, take no step")
            }
        })
    }

    fn trailer(&mut self, byte: u8) -> Result<(), Mistake> {
        self.trailers.push(byte);
        if self.trailers.len() >= TRAILERS_LIMIT {
            return Err(Mistake::Chunk("the trailers are too long"));
        }
        Ok(())
    }

    fn check_trailers(&mut self) -> Result<(), Mistake> {
        if self.trailers.is_empty() {
            return Ok(());
        }
        self.trailers.extend_from_slice(b"\r\n");
        let mut room = [httparse::EMPTY_HEADER; MAX_FIELDS];
        match httparse::parse_headers(&self.trailers, &mut room) {
            Ok(httparse::Status::Complete(_)) => Ok(()),
            Ok(httparse::Status::Partial) => Err(Mistake::Chunk("the trailers do not end")),
            Err(error) => Err(Mistake::Trailers(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that comes out, in pieces of every size the same.
    fn decoded(text: &str) -> Result<(String, usize, bool), Mistake> {
        let mut results: Vec<_> = (1..=text.len()).map(|size| in_pieces(text.as_bytes(), size)).collect();
        results.dedup();
        assert_eq!(results.len(), 1, "{results:?}");
        results.remove(0)
    }

    fn in_pieces(bytes: &[u8], size: usize) -> Result<(String, usize, bool), Mistake> {
        let (mut chunks, mut out, mut taken) = (Chunks::default(), Vec::new(), 0);
        for mut piece in bytes.chunks(size) {
            while !piece.is_empty() && !chunks.is_done() {
                let (took, data) = chunks.next(piece)?;
                out.extend_from_slice(data.unwrap_or_default());
                taken += took;
                piece = &piece[took..];
            }
        }
        Ok((String::from_utf8(out).unwrap(), taken, chunks.is_done()))
    }

    #[test]
    fn chunks_become_a_body() {
        for (text, body, done) in [
            ("5\r\nhello\r\n0\r\n\r\n", "hello", true),
            ("5;a=b;c=\"d\"\r\nhello\r\n6 \t\r\n world\r\n000\r\n\r\n", "hello world", true),
            ("A\r\n0123456789\r\na\r\n0123456789\r\n0\r\nx: y\r\nz:\r\n\r\n", "01234567890123456789", true),
            ("5\r\nhel", "hel", false),
            ("0\r\n\r", "", false),
            ("0\r\nx: y\r\n", "", false),
        ] {
            assert_eq!(decoded(text), Ok((body.to_owned(), text.len(), done)), "{text:?}");
        }
    }

    #[test]
    fn what_follows_the_end_is_left() {
        assert_eq!(decoded("1\r\na\r\n0\r\n\r\nHTTP"), Ok(("a".to_owned(), 11, true)));
    }

    #[test]
    fn other_ends_of_lines_and_sizes_are_refused() {
        for text in [
            "5\nhello\n0\n\n",
            "\r\n",
            "x\r\n",
            "-1\r\n",
            "5 5\r\nhello\r\n",
            "5\rhello",
            "5;a\nb\r\nhello\r\n",
            "2\r\nhello\r\n0\r\n\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "5\r\nhello\r0\r\n\r\n",
            "10000000000000000\r\n",
            "fffffffffffffffff\r\n",
            "0\r\n\rx",
            "0\r\nx: y\rz: a\r\n\r\n",
            "0\r\nx: y\nz: a\r\n\r\n",
            "0\r\nx: y\n\nz: a\r\n\r\n",
            "0\r\n\n",
            "0\r\nno colon\r\n\r\n",
            "0\r\n : y\r\n\r\n",
        ] {
            assert!(decoded(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn extensions_and_trailers_have_a_limit() {
        let long = "x".repeat(EXTENSIONS_LIMIT);
        assert!(in_pieces(format!("1;{long}\r\na").as_bytes(), 1000).is_err());
        assert!(in_pieces(format!("0\r\nx: {long}").as_bytes(), 1000).is_err());
        let many = "x: y\r\n".repeat(MAX_FIELDS + 1);
        assert!(in_pieces(format!("0\r\n{many}\r\n").as_bytes(), 1000).is_err());
        let enough = "x: y\r\n".repeat(MAX_FIELDS);
        assert!(in_pieces(format!("0\r\n{enough}\r\n").as_bytes(), 1000).unwrap().2);
    }
}
