//! Reading an answer: its bytes come in as they arrive, its parts go out, until it is whole. Pure and resumable at every
//! byte: what comes of an answer does not depend on the pieces it came in.

use super::chunks::Chunks;
use super::head::{self, Framing};
use super::{Answer, Mistake, ReadLimits};

/// How long the heads of an answer may be, those in between (1xx) and empty lines before it included. Beyond: refused.
pub const HEAD_LIMIT: usize = 64 * 1024;

/// Up to this length a head is parsed with every piece, so that what is no HTTP is told at once. A longer one only when
/// its end is there: whoever dribbles it byte by byte makes us look at each byte once, not once for each that follows.
const EAGER: usize = 256;

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More has to come.
    More,
    /// It is whole, or as much of it was read as the limits allow.
    Whole {
        /// Whether its end was reached, and neither version nor fields say that the connection ends with it.
        reusable: bool,
    },
}

/// An answer that is being read.
#[derive(Debug)]
pub struct Reading {
    stage: Stage,
    limits: ReadLimits,
    /// Bytes of heads and empty lines that are done with.
    heads: usize,
    /// Bytes of the body so far.
    read: usize,
    keep_alive: bool,
    answer: Answer,
}

#[derive(Debug)]
enum Stage {
    /// The head, of which so many bytes were looked at.
    Head {
        seen: usize,
    },
    /// A body with so many bytes to come.
    Length(u64),
    Chunks(Chunks),
    UntilClose,
}

impl Reading {
    /// Begins to read an answer, in the room of one that is done with.
    pub fn new(mut room: Answer, limits: ReadLimits) -> Reading {
        room.clear();
        Reading { stage: Stage::Head { seen: 0 }, limits, heads: 0, read: 0, keep_alive: true, answer: room }
    }

    /// Whether the head is there.
    pub fn has_head(&self) -> bool {
        !matches!(self.stage, Stage::Head { .. })
    }

    /// The status, when the head is there.
    pub fn status(&self) -> Option<u16> {
        self.has_head().then_some(self.answer.status)
    }

    /// The answer, as far as it was read.
    pub fn into_answer(self) -> Answer {
        self.answer
    }

    /// Takes what has arrived and was not taken yet. Returns how much of it it has done with; the rest is to be given
    /// again, with more behind it. At most [`HEAD_LIMIT`] bytes are left at any time. After the end nothing is taken.
    pub fn take(&mut self, bytes: &[u8]) -> Result<(usize, Progress), Mistake> {
        let mut at = 0;
        while let Stage::Head { seen } = self.stage {
            let blank = empty_lines(&bytes[at..]);
            at += blank;
            self.heads += blank;
            match self.take_head(&bytes[at..], seen.saturating_sub(blank))? {
                Some(length) => at += length,
                None => return Ok((at, Progress::More)),
            }
        }
        let (taken, progress) = self.take_body(&bytes[at..])?;
        Ok((at + taken, progress))
    }

    /// Nothing more will come: the answer ends here, if it may, and the connection with it. `rest` is what was not taken.
    pub fn end(&mut self, rest: &[u8]) -> Result<(), Mistake> {
        match self.stage {
            Stage::UntilClose => Ok(()),
            Stage::Length(_) | Stage::Chunks(_) => Err(Mistake::EndedInBody),
            Stage::Head { .. } => match head::parse(rest, &mut self.answer.fields) {
                Err(mistake) => Err(mistake),
                Ok(_) => Err(Mistake::EndedInHead),
            },
        }
    }

    /// The length of a head that is done with, if it is there.
    fn take_head(&mut self, bytes: &[u8], seen: usize) -> Result<Option<usize>, Mistake> {
        let room = HEAD_LIMIT.saturating_sub(self.heads);
        let worth_it = seen == 0 || bytes.len() <= EAGER || bytes.len() >= room || has_end(bytes, seen);
        let head = match worth_it && !bytes.is_empty() {
            true => head::parse(bytes, &mut self.answer.fields)?,
            false => None,
        };
        let Some(head) = head else {
            self.stage = Stage::Head { seen: bytes.len() };
            return if bytes.len() < room { Ok(None) } else { Err(Mistake::HeadTooLarge) };
        };
        if head.length > room {
            return Err(Mistake::HeadTooLarge);
        }
        self.heads += head.length;
        self.stage = match head.framing {
            _ if head.is_interim() => Stage::Head { seen: 0 },
            Framing::Length(length) => Stage::Length(length),
            Framing::Chunked => Stage::Chunks(Chunks::default()),
            Framing::UntilClose => Stage::UntilClose,
        };
        self.answer.status = head.status;
        self.keep_alive = head.keep_alive;
        Ok(Some(head.length))
    }

    fn take_body(&mut self, bytes: &[u8]) -> Result<(usize, Progress), Mistake> {
        let mut at = 0;
        loop {
            let rest = &bytes[at..];
            let (taken, data, ended) = match &mut self.stage {
                Stage::Head { .. } => unreachable!("the body begins after the head"),
                Stage::UntilClose => (rest.len(), Some(rest), false),
                Stage::Length(left) => {
                    let length = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= length as u64;
                    (length, Some(&rest[..length]), *left == 0)
                }
                Stage::Chunks(chunks) => {
                    let (taken, data) = chunks.next(rest)?;
                    (taken, data, chunks.is_done())
                }
            };
            at += taken;
            if self.keep(data.unwrap_or_default()) {
                return Ok((at, Progress::Whole { reusable: false }));
            }
            if ended {
                return Ok((at, Progress::Whole { reusable: self.keep_alive }));
            }
            if at == bytes.len() {
                return Ok((at, Progress::More));
            }
        }
    }

    /// Keeps what is worth keeping. Returns whether it is too much.
    fn keep(&mut self, data: &[u8]) -> bool {
        let wanted = self.limits.keep.min(self.limits.read).saturating_sub(self.answer.excerpt.len());
        self.answer.excerpt.extend_from_slice(&data[..data.len().min(wanted)]);
        self.read = self.read.saturating_add(data.len());
        self.read > self.limits.read
    }
}

/// How many bytes of whole empty lines it begins with.
fn empty_lines(bytes: &[u8]) -> usize {
    let mut rest = bytes;
    while let Some(behind) = rest.strip_prefix(b"\n").or_else(|| rest.strip_prefix(b"\r\n")) {
        rest = behind;
    }
    bytes.len() - rest.len()
}

/// Whether an empty line ends in what was not looked at yet.
fn has_end(bytes: &[u8], seen: usize) -> bool {
    let fresh = &bytes[seen.saturating_sub(2)..];
    fresh.windows(2).any(|end| end == b"\n\n") || fresh.windows(3).any(|end| end == b"\n\r\n")
}
