//! A document as expressions see it: the bytes it came in, and a flat list of the values in them.
//!
//! Built once per change and shared by every filter. It costs one allocation and no copy of the text, unless a
//! string has escapes: those are kept unescaped beside it.

use bytes::Bytes;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

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
enum Entry {
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
        let begin = source.as_ptr() as usize;
        let mut unescaped = String::new();
        // About one value for so many bytes; a guess that is too low costs a reallocation.
        let mut entries = Vec::with_capacity(text.len() / 16 + 4);
        let mut parser = serde_json::Deserializer::from_str(source);
        let part = Part { begin, unescaped: &mut unescaped, entries: &mut entries };
        part.deserialize(&mut parser).and_then(|()| parser.end()).map_err(|error| unreadable(&error))?;
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
    /// With this many fields.
    Map(u32),
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

    fn bytes(self, at: usize) -> &'j [u8] {
        match self.json.entries[at] {
            Entry::Text { at, len } => &self.json.text[at as usize..(at + len) as usize],
            _ => self.text(at).as_bytes(),
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
            if self.bytes(at) == name.as_bytes() {
                found = Some(Node { json: self.json, at: at + 1 });
            }
            at = self.after(at + 1);
        }
        found
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

/// Turns a value into entries.
struct Part<'a> {
    begin: usize,
    unescaped: &'a mut String,
    entries: &'a mut Vec<Entry>,
}

impl Part<'_> {
    fn part(&mut self) -> Part<'_> {
        Part { begin: self.begin, unescaped: self.unescaped, entries: self.entries }
    }

    fn push<E: Error>(&mut self, entry: Entry) -> Result<(), E> {
        if self.entries.len() >= MAX_VALUES {
            return Err(E::custom(format!("it has more than {MAX_VALUES} values")));
        }
        self.entries.push(entry);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Part<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = ();

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(mut self) -> Result<(), E> {
        self.push(Entry::Null)
    }

    fn visit_bool<E: Error>(mut self, value: bool) -> Result<(), E> {
        self.push(Entry::Bool(value))
    }

    fn visit_i64<E: Error>(mut self, value: i64) -> Result<(), E> {
        self.push(Entry::Int(value))
    }

    fn visit_u64<E: Error>(mut self, value: u64) -> Result<(), E> {
        self.push(i64::try_from(value).map_or(Entry::Uint(value), Entry::Int))
    }

    fn visit_f64<E: Error>(mut self, value: f64) -> Result<(), E> {
        self.push(Entry::Double(value))
    }

    fn visit_borrowed_str<E: Error>(mut self, value: &'de str) -> Result<(), E> {
        let at = (value.as_ptr() as usize - self.begin) as u32;
        self.push(Entry::Text { at, len: value.len() as u32 })
    }

    fn visit_str<E: Error>(mut self, value: &str) -> Result<(), E> {
        let at = self.unescaped.len() as u32;
        self.unescaped.push_str(value);
        self.push(Entry::Unescaped { at, len: value.len() as u32 })
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut seq: A) -> Result<(), A::Error> {
        let at = self.entries.len();
        self.push(Entry::Null)?;
        let mut len = 0;
        while seq.next_element_seed(self.part())?.is_some() {
            len += 1;
        }
        self.entries[at] = Entry::List { end: self.entries.len() as u32, len };
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        let at = self.entries.len();
        self.push(Entry::Null)?;
        let mut len = 0;
        while map.next_key_seed(self.part())?.is_some() {
            map.next_value_seed(self.part())?;
            len += 1;
        }
        self.entries[at] = Entry::Map { end: self.entries.len() as u32, len };
        Ok(())
    }
}
