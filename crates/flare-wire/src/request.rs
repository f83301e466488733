//! A request: what every request of a subscription begins with, a target, fields and a body come in; the bytes that are
//! written go out. None of them can end a line or the message early, whatever came in.

use bytes::Bytes;

use crate::field::{BadField, Name, Value, is_harmless};

/// Up to this size a body is copied behind the head, so that both are one piece for the socket; a larger one stays where
/// it is and is written from there.
pub(crate) const COPIED_BODY: usize = 16 * 1024;

/// More than most heads have.
const USUAL_HEAD: usize = 16 * 1024;

/// What a request may do. An answer to `HEAD` would have no body and one to `CONNECT` no end: they are not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `GET`
    Get,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `PATCH`
    Patch,
    /// `DELETE`
    Delete,
}

impl Method {
    /// The method of this name, in upper case.
    pub fn named(name: &str) -> Option<Method> {
        [Method::Get, Method::Post, Method::Put, Method::Patch, Method::Delete]
            .into_iter()
            .find(|method| method.as_str() == name)
    }

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Method::Get => "GET",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Patch => "PATCH",
            Method::Delete => "DELETE",
        }
    }

    /// Whether it says how long its body is even where there is none: servers may insist (RFC 9110, 8.6).
    fn expects_a_body(self) -> bool {
        matches!(self, Method::Post | Method::Put | Method::Patch)
    }
}

/// What does not change from one request to the next: made once, copied as it is into each.
pub struct Beginning {
    method: Method,
    /// `POST `, and from `after_target` on ` HTTP/1.1`, the host and the fields, each with its end of line.
    bytes: Box<[u8]>,
    after_target: usize,
}

impl Beginning {
    /// The beginning of requests to a host, with fields that all of them have.
    pub fn new<'a>(
        method: Method,
        authority: &str,
        fields: impl IntoIterator<Item = (Name<'a>, Value<'a>)>,
    ) -> Result<Beginning, BadField> {
        if authority.is_empty() || !authority.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(BadField::Authority);
        }
        let mut bytes = Vec::with_capacity(256);
        bytes.extend_from_slice(method.as_str().as_bytes());
        bytes.push(b' ');
        let after_target = bytes.len();
        bytes.extend_from_slice(b" HTTP/1.1\r\nhost: ");
        bytes.extend_from_slice(authority.as_bytes());
        bytes.extend_from_slice(b"\r\n");
        for (name, value) in fields {
            line(&mut bytes, name, |bytes| bytes.extend_from_slice(value.as_bytes()));
        }
        Ok(Beginning { method, bytes: bytes.into(), after_target })
    }

    /// The beginning of what is written like a request and goes another way than over HTTP: it names no host.
    pub fn unaddressed(method: Method) -> Beginning {
        let bytes = format!("{}  HTTP/1.1\r\n", method.as_str()).into_bytes();
        Beginning { method, bytes: bytes.into(), after_target: method.as_str().len() + 1 }
    }

    /// The method.
    pub fn method(&self) -> Method {
        self.method
    }
}

/// Writes one field; its end is written here, so that no value is without one.
fn line(head: &mut Vec<u8>, name: Name<'_>, value: impl FnOnce(&mut Vec<u8>)) {
    name.write(head);
    head.extend_from_slice(b": ");
    value(head);
    head.extend_from_slice(b"\r\n");
}

/// Some fields, written once for requests that have them in common beyond one beginning: what all say of one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines(Box<[u8]>);

impl Lines {
    /// Fields whose values are texts of any kind, see [`Text::push`].
    pub fn of_texts<'a>(fields: impl IntoIterator<Item = (Name<'a>, &'a str)>) -> Lines {
        let mut bytes = Vec::new();
        for (name, text) in fields {
            line(&mut bytes, name, |bytes| Text(bytes).push(text));
        }
        Lines(bytes.into())
    }
}

/// What requests are written into, one after the other.
#[derive(Default)]
pub struct Room {
    /// Bound: a head of the usual size and a body that is copied; what is larger is given back after the request.
    head: Vec<u8>,
    /// Bound: as above.
    target: String,
}

impl Room {
    /// What stands in it.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.head
    }

    /// Gives back what the last request took beyond the usual.
    pub(crate) fn shrink(&mut self) {
        if self.head.capacity() > COPIED_BODY + USUAL_HEAD {
            self.head = Vec::new();
        }
        if self.target.capacity() > USUAL_HEAD {
            self.target = String::new();
        }
    }
}

/// A request that is being written.
#[derive(Clone)]
pub struct Request {
    method: Method,
    /// The request line and the fields, each with its end of line; the empty line that ends a head comes when it is sent.
    head: Vec<u8>,
    /// Where the target ends.
    target: usize,
    body: Bytes,
    /// Room that is not needed meanwhile.
    spare: String,
}

impl Request {
    /// Begins a request in `room`, which may have been used before; `target` appends path and query to an empty text.
    /// What cannot stand there is percent-encoded: controls, blanks, `#`, and whatever is not ASCII. An empty one is `/`.
    pub fn new(room: Room, beginning: &Beginning, target: impl FnOnce(&mut String)) -> Request {
        let Room { mut head, target: mut text } = room;
        text.clear();
        target(&mut text);
        head.clear();
        let (before, after) = beginning.bytes.split_at(beginning.after_target);
        head.extend_from_slice(before);
        if !text.starts_with('/') {
            head.push(b'/');
        }
        encode(&mut head, text.as_bytes(), |byte| byte.is_ascii_graphic() && byte != b'#');
        let end = head.len();
        head.extend_from_slice(after);
        Request { method: beginning.method, head, target: end, body: Bytes::new(), spare: text }
    }

    /// Adds some fields that were written before.
    pub fn lines(&mut self, lines: &Lines) {
        self.head.extend_from_slice(&lines.0);
    }

    /// Adds a field.
    pub fn value(&mut self, name: Name<'_>, value: Value<'_>) {
        line(&mut self.head, name, |head| head.extend_from_slice(value.as_bytes()));
    }

    /// Adds a field whose value is a text of any kind, see [`Text::push`].
    pub fn text(&mut self, name: Name<'_>, text: &str) {
        self.compose(name, |value| value.push(text));
    }

    /// Adds a field whose value is a number.
    pub fn number(&mut self, name: Name<'_>, number: impl itoa::Integer) {
        self.compose(name, |value| value.number(number));
    }

    /// Adds a field whose value is put together in place.
    pub fn compose(&mut self, name: Name<'_>, value: impl FnOnce(&mut Text<'_>)) {
        line(&mut self.head, name, |head| value(&mut Text(head)));
    }

    /// Takes every field of this name out.
    pub fn remove(&mut self, name: Name<'_>) {
        let mut at = self.line_end(self.target);
        while at < self.head.len() {
            let end = self.line_end(at);
            let line = &self.head[at..end];
            let long = name.as_str().len();
            if line[long.min(line.len() - 1)] == b':'
                && line[..long].eq_ignore_ascii_case(name.as_str().as_bytes())
            {
                self.head.drain(at..end);
            } else {
                at = end;
            }
        }
    }

    /// Gives it a body. Its length is written with it.
    pub fn set_body(&mut self, body: Bytes) {
        self.body = body;
    }

    /// Its method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// Its target.
    pub fn target(&self) -> &str {
        let target = &self.head[self.method.as_str().len() + 1..self.target];
        std::str::from_utf8(target).expect("a target is visible ASCII")
    }

    /// Its body.
    pub fn body(&self) -> &Bytes {
        &self.body
    }

    /// Its fields in order, without the length of the body, which is written at the end. Names are in lower case.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &[u8])> {
        let mut at = self.line_end(self.target);
        std::iter::from_fn(move || {
            let end = (at < self.head.len()).then(|| self.line_end(at))?;
            let line = &self.head[at..end - 2];
            at = end;
            let colon =
                line.iter().position(|byte| *byte == b':').expect("a line is a name, a colon and a value");
            let name = std::str::from_utf8(&line[..colon]).expect("a name is ASCII");
            Some((name, &line[colon + 2..]))
        })
    }

    /// The value of the first field of this name, in lower case.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.fields().find(|(field, _)| *field == name).map(|(_, value)| value)
    }

    /// Where the line that goes on at `from` ends, its end included. No line has a line feed elsewhere.
    fn line_end(&self, from: usize) -> usize {
        let feed = self.head[from..].iter().position(|byte| *byte == b'\n').expect("every line has its end");
        from + feed + 1
    }

    /// The bytes to write: the first part, in the room that it was written into, and a body that is written from where
    /// it is.
    pub(crate) fn finish(self) -> (Room, Bytes) {
        let Request { method, mut head, mut body, spare, .. } = self;
        if !body.is_empty() || method.expects_a_body() {
            head.extend_from_slice(b"content-length: ");
            head.extend_from_slice(itoa::Buffer::new().format(body.len()).as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head.extend_from_slice(b"\r\n");
        if body.len() <= COPIED_BODY {
            head.extend_from_slice(&std::mem::take(&mut body));
        }
        (Room { head, target: spare }, body)
    }
}

impl std::fmt::Debug for Request {
    /// Without values: some of them are secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}, {} bytes", self.method.as_str(), self.target(), self.body.len())
    }
}

/// A value that is being put together. Whatever is put in, it ends no line.
pub struct Text<'a>(&'a mut Vec<u8>);

impl Text<'_> {
    /// Appends a text. One with a control character in it is percent-encoded, as far as it is not printable ASCII; any
    /// other stays as it is.
    pub fn push(&mut self, text: &str) {
        let text = text.as_bytes();
        match is_harmless(text) {
            true => self.0.extend_from_slice(text),
            false => encode(self.0, text, |byte| (b' '..=b'~').contains(&byte)),
        }
    }

    /// Appends a number.
    pub fn number(&mut self, number: impl itoa::Integer) {
        self.0.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
    }
}

impl std::fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.push(text);
        Ok(())
    }
}

/// Appends bytes; those that may not stay are percent-encoded.
fn encode(out: &mut Vec<u8>, bytes: &[u8], stays: impl Fn(u8) -> bool) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    if bytes.iter().all(|byte| stays(*byte)) {
        return out.extend_from_slice(bytes);
    }
    for &byte in bytes {
        match stays(byte) {
            true => out.push(byte),
            false => out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]),
        }
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
