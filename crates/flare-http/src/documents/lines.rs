//! Parts of a body in, as they come; lines out. Each byte is looked at once, however small the parts are: what has been
//! searched for an end of line has left the part it came in.

use bytes::{Buf as _, Bytes, BytesMut};

/// What the next line is.
#[derive(Debug, PartialEq)]
pub enum Next {
    /// A line, without its end.
    Line(Bytes),
    /// A line that is longer than one may be. Said as soon as that is known; the rest of it is passed over.
    TooLong,
    /// Nothing before another part comes, or, after the last one, nothing more.
    Nothing,
}

/// A body that is being taken apart.
pub struct Lines {
    limit: usize,
    /// What came last and has not been searched. Bound: what one read brought; nothing is read before it is used up.
    part: Bytes,
    /// The beginning of a line whose end has not come. Bound: `limit`. When full: it is let go, and the line is too long.
    begun: BytesMut,
    /// Whether the rest of a line that is too long is being passed over.
    passing_over: bool,
    ended: bool,
    /// How many bytes were searched, for the tests to compare with how many came.
    #[cfg(test)]
    searched: usize,
}

impl Lines {
    /// Lines of `limit` bytes at most.
    pub fn new(limit: usize) -> Lines {
        Lines {
            limit,
            part: Bytes::new(),
            begun: BytesMut::new(),
            passing_over: false,
            ended: false,
            #[cfg(test)]
            searched: 0,
        }
    }

    /// The next part of the body, once there is nothing left of the one before.
    pub fn push(&mut self, part: Bytes) {
        debug_assert!(self.part.is_empty(), "the part before is used up");
        self.part = part;
    }

    /// There are no more parts: what has begun is a line.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Whether the body has ended; what is left of it may still have to be taken.
    pub fn has_ended(&self) -> bool {
        self.ended
    }

    /// The next line of what came.
    pub fn next(&mut self) -> Next {
        loop {
            let found = self.part.iter().position(|byte| *byte == b'\n');
            #[cfg(test)]
            {
                self.searched += found.map_or(self.part.len(), |at| at + 1);
            }
            let more = self.part.split_to(found.unwrap_or(self.part.len()));
            if found.is_some() {
                self.part.advance(1);
            }
            if self.passing_over {
                self.passing_over = found.is_none();
            } else if self.begun.len() + more.len() > self.limit {
                self.begun = BytesMut::new();
                self.passing_over = found.is_none();
                return Next::TooLong;
            } else if found.is_some() {
                return Next::Line(self.whole(more));
            } else {
                self.begun.extend_from_slice(&more);
            }
            if found.is_none() {
                return match self.ended && !self.begun.is_empty() {
                    true => Next::Line(self.begun.split().freeze()),
                    false => Next::Nothing,
                };
            }
        }
    }

    /// A line that came in one part stays where it is.
    fn whole(&mut self, rest: Bytes) -> Bytes {
        if self.begun.is_empty() {
            return rest;
        }
        self.begun.extend_from_slice(&rest);
        self.begun.split().freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a body that comes in parts of this size; `None` for one that is too long.
    fn cut(body: &str, size: usize, limit: usize) -> (Vec<Option<String>>, Lines) {
        let mut lines = Lines::new(limit);
        let mut found = Vec::new();
        let mut take = |lines: &mut Lines| {
            loop {
                match lines.next() {
                    Next::Line(line) => found.push(Some(String::from_utf8(line.to_vec()).unwrap())),
                    Next::TooLong => found.push(None),
                    Next::Nothing => break,
                }
                assert!(lines.begun.len() <= limit, "no more is kept than a line may have");
            }
        };
        for part in body.as_bytes().chunks(size) {
            lines.push(Bytes::copy_from_slice(part));
            take(&mut lines);
        }
        lines.end();
        take(&mut lines);
        (found, lines)
    }

    #[test]
    fn lines_are_the_same_whatever_parts_they_come_in() {
        let body = "one\n\nthree\r\nfour";
        for size in 1..=body.len() {
            let (found, _) = cut(body, size, 100);
            let found: Vec<_> = found.iter().map(|line| line.as_deref().unwrap()).collect();
            assert_eq!(found, ["one", "", "three\r", "four"], "in parts of {size}");
        }
        assert_eq!(cut("", 1, 100).0, []);
        assert_eq!(cut("one\n", 2, 100).0, [Some("one".into())], "nothing follows the last end");
    }

    #[test]
    fn each_byte_is_looked_at_once_whatever_parts_it_comes_in() {
        let body = format!("{}\nshort\n{}", "x".repeat(20_000), "y".repeat(500));
        for size in [1, 7, 4096, body.len()] {
            for limit in [100, 100_000] {
                let (_, lines) = cut(&body, size, limit);
                assert_eq!(lines.searched, body.len(), "in parts of {size}, lines of up to {limit}");
            }
        }
    }

    #[test]
    fn a_line_over_the_limit_is_passed_over_and_the_next_one_read() {
        let body = format!("one\n{}\nthree\n{}", "x".repeat(11), "y".repeat(1000));
        for size in 1..=body.len() {
            let (found, _) = cut(&body, size, 10);
            assert_eq!(found, [Some("one".into()), None, Some("three".into()), None], "in parts of {size}");
        }
        assert_eq!(cut("0123456789\n", 3, 10).0, [Some("0123456789".into())], "as long as one may be");
    }

    #[test]
    fn a_line_that_is_too_long_is_known_before_its_end_comes() {
        let mut lines = Lines::new(3);
        lines.push(Bytes::from_static(b"abc"));
        assert_eq!(lines.next(), Next::Nothing);
        lines.push(Bytes::from_static(b"d"));
        assert_eq!(lines.next(), Next::TooLong);
        lines.push(Bytes::from_static(b"efgh"));
        assert_eq!((lines.next(), lines.begun.capacity()), (Next::Nothing, 0), "nothing of it is kept");
    }
}
