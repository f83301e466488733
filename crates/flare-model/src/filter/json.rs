//! A document as expressions see it: the bytes it came in, and a flat list of the values in them.
//!
//! Built once per change and shared by every filter. It costs one allocation and no copy of the text, unless a
//! string has escapes: those are kept unescaped beside it.

use std::collections::BTreeSet;

use bytes::Bytes;

use super::read;

/// Values a document may have for expressions to look at it; the bound of what this keeps in memory.
pub const MAX_VALUES: usize = 100_000;

/// A JSON object, ready to be looked at.
#[derive(Clone, Debug)]
pub struct Json {
    text: Bytes,
    /// Strings that had escapes, without them.
    unescaped: String,
    /// In the order of the text: a list before its elements, a map before its keys and values in turn.
    /// Bound: [`MAX_VALUES`].
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Entry {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text {
        at: u32,
        len: u32,
    },
    Unescaped {
        at: u32,
        len: u32,
    },
    /// What JSON allows and no expression can look at, where it stands.
    Odd {
        at: u32,
        len: u32,
        odd: Odd,
    },
    /// `end` is the entry after its last.
    List {
        end: u32,
        len: u32,
    },
    Map {
        end: u32,
        len: u32,
    },
}

/// A value that no expression can look at, though it is JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Odd {
    /// A number beyond every double.
    Number,
    /// A string with half a surrogate pair, which is no Unicode.
    Text,
}

impl std::fmt::Display for Odd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Odd::Number => "a number is too large to be looked at",
            Odd::Text => "a string has half a surrogate pair and cannot be looked at",
        })
    }
}

/// A document that expressions cannot look at.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the document cannot be looked at: {0}")]
pub struct Unreadable(String);

impl Json {
    /// Takes a document apart. Its bytes were checked to be JSON when it was accepted.
    pub fn new(text: Bytes) -> Result<Json, Unreadable> {
        let unreadable = |words: &dyn std::fmt::Display| Unreadable(words.to_string());
        if u32::try_from(text.len()).is_err() {
            return Err(unreadable(&"it is too large"));
        }
        let source = std::str::from_utf8(&text).map_err(|error| unreadable(&error))?;
        let (entries, unescaped) = read::read(source).map_err(|words| unreadable(&words))?;
        Ok(Json { text, unescaped, entries })
    }

    /// An object without fields: what there is to see of a document that is gone.
    pub fn nothing() -> Json {
        let entries = vec![Entry::Map { end: 1, len: 0 }];
        Json { text: Bytes::new(), unescaped: String::new(), entries }
    }

    pub(super) fn root(&self) -> Node<'_> {
        Node { json: self, at: 0 }
    }
}

/// What tells a field of a map from the others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Key<'j> {
    Readable(&'j [u8]),
    /// As it is written, escapes and all: no expression can ask for it.
    Odd(&'j [u8]),
}

/// A value within a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'j> {
    json: &'j Json,
    at: usize,
}

/// What a value is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Content<'j> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    Text(&'j str),
    /// With this many elements.
    List(u32),
    /// With this many fields; one that occurs twice counts twice.
    Map(u32),
    Odd(Odd),
}

impl<'j> Node<'j> {
    pub(super) fn content(self) -> Content<'j> {
        match self.json.entries[self.at] {
            Entry::Null => Content::Null,
            Entry::Bool(value) => Content::Bool(value),
            Entry::Int(value) => Content::Int(value),
            Entry::Uint(value) => Content::Uint(value),
            Entry::Double(value) => Content::Double(value),
            Entry::Text { .. } | Entry::Unescaped { .. } => Content::Text(self.text(self.at)),
            Entry::List { len, .. } => Content::List(len),
            Entry::Map { len, .. } => Content::Map(len),
            Entry::Odd { odd, .. } => Content::Odd(odd),
        }
    }

    fn text(self, at: usize) -> &'j str {
        let place = |at: u32, len: u32| at as usize..(at + len) as usize;
        match self.json.entries[at] {
            // The bytes are UTF-8 and the place is that of a whole string.
            Entry::Text { at, len } => {
                std::str::from_utf8(&self.json.text[place(at, len)]).unwrap_or_default()
            }
            Entry::Unescaped { at, len } => &self.json.unescaped[place(at, len)],
            _ => "",
        }
    }

    fn key(self, at: usize) -> Key<'j> {
        match self.json.entries[at] {
            Entry::Text { at, len } => Key::Readable(&self.json.text[at as usize..(at + len) as usize]),
            Entry::Odd { at, len, .. } => Key::Odd(&self.json.text[at as usize..(at + len) as usize]),
            _ => Key::Readable(self.text(at).as_bytes()),
        }
    }

    fn after(self, at: usize) -> usize {
        match self.json.entries[at] {
            Entry::List { end, .. } | Entry::Map { end, .. } => end as usize,
            _ => at + 1,
        }
    }

    /// How many values it and all within it are.
    pub(super) fn weight(self) -> usize {
        self.after(self.at) - self.at
    }

    /// The value of a field; of a field that occurs twice the last one. `None` too for what is no map.
    pub(super) fn field(self, name: &str) -> Option<Node<'j>> {
        let Entry::Map { end, .. } = self.json.entries[self.at] else { return None };
        let mut found = None;
        let mut at = self.at + 1;
        while at < end as usize {
            if self.key(at) == Key::Readable(name.as_bytes()) {
                found = Some(Node { json: self.json, at: at + 1 });
            }
            at = self.after(at + 1);
        }
        found
    }

    /// How many fields a map has; one that occurs twice counts once.
    pub(super) fn fields(self) -> usize {
        self.elements().map(|key| self.key(key.at)).collect::<BTreeSet<_>>().len()
    }

    /// The elements of a list, the keys of a map.
    pub(super) fn elements(self) -> impl Iterator<Item = Node<'j>> {
        let (end, is_map) = match self.json.entries[self.at] {
            Entry::List { end, .. } => (end as usize, false),
            Entry::Map { end, .. } => (end as usize, true),
            _ => (self.at + 1, false),
        };
        let mut at = self.at + 1;
        std::iter::from_fn(move || {
            if at >= end {
                return None;
            }
            let node = Node { json: self.json, at };
            at = if is_map { self.after(at + 1) } else { self.after(at) };
            Some(node)
        })
    }
}
