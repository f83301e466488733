//! Answers: bytes come in, in pieces of any size; a status, fields and the beginning of a body go out, or what is wrong
//! with them. Nothing here reads from anywhere.

pub(crate) mod chunks;
pub(crate) mod head;
pub(crate) mod reading;

/// An answer, read up to a limit.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Its status, from 200 to 999.
    pub status: u16,
    /// Its fields.
    pub fields: Fields,
    /// The beginning of its body. Bound: [`ReadLimits::keep`]; what is beyond is not kept.
    pub excerpt: Vec<u8>,
}

impl Answer {
    /// Makes room for another one. What a client filled beyond the usual is given back.
    pub(crate) fn clear(&mut self) {
        const KEPT: usize = 4096;
        self.status = 0;
        for bytes in [&mut self.fields.bytes, &mut self.excerpt] {
            bytes.clear();
            bytes.shrink_to(KEPT);
        }
        self.fields.spans.clear();
    }
}

/// The fields of an answer, in order. Bound: those of a head ([`crate::HEAD_LIMIT`], [`crate::MAX_FIELDS`]).
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Fields {
    /// Name after value after name.
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

#[derive(Debug, PartialEq, Eq)]
struct Span {
    name: usize,
    value: usize,
    end: usize,
}

impl Fields {
    fn push(&mut self, name: &str, value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend(name.bytes().map(|byte| byte.to_ascii_lowercase()));
        let middle = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.spans.push(Span { name: start, value: middle, end: self.bytes.len() });
    }

    /// All of them; names are in lower case.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.spans.iter().map(|span| {
            let name = std::str::from_utf8(&self.bytes[span.name..span.value]).expect("a name is ASCII");
            (name, &self.bytes[span.value..span.end])
        })
    }

    /// The value of the first field of this name, in lower case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.iter().find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }
}

/// How much of an answer's body is read, and how much of it kept.
#[derive(Clone, Copy, Debug)]
pub struct ReadLimits {
    /// Beyond this the rest is left unread, and the connection is not used again.
    pub read: usize,
    /// Kept for people to look at; at most what is read.
    pub keep: usize,
}

/// What is wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// It does not begin as an answer of HTTP/1.1 or HTTP/1.0 does.
    #[error("what came is not an answer of HTTP/1.1 ({0})")]
    Head(httparse::Error),
    /// The status is below 100.
    #[error("what came is not an answer of HTTP/1.1 (invalid status)")]
    Status,
    /// The head does not end within [`crate::HEAD_LIMIT`], or has more than [`crate::MAX_FIELDS`] fields.
    #[error("the head of the answer is too large")]
    HeadTooLarge,
    /// 101: the client goes over to another protocol, which nobody asked for.
    #[error("the answer is a change of protocols that was not asked for")]
    Upgrade,
    /// Lengths that contradict each other, or that are none.
    #[error("the length of the answer is contradictory or not a number")]
    Length,
    /// HTTP/1.0 does not know `transfer-encoding`; whatever it means there, it is not what it seems.
    #[error("an answer of HTTP/1.0 has a transfer encoding")]
    Encoding,
    /// The pieces of the body are not as they should be.
    #[error("the answer's body is not in well formed chunks ({0})")]
    Chunk(&'static str),
    /// What follows the body is no fields.
    #[error("the answer's trailers are malformed ({0})")]
    Trailers(httparse::Error),
    /// It ended before its head was whole.
    #[error("the connection was closed before there was an answer")]
    EndedInHead,
    /// It ended before its body was whole.
    #[error("the connection was closed inside the answer's body")]
    EndedInBody,
}
