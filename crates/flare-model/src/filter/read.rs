//! In: the text of a document. Out: its values in a flat list, which expressions look at.
//!
//! A parser of our own, for three reasons. What one expression cannot look at (a number beyond every double, a string
//! with half a surrogate pair, both of which are JSON) must be that value's own failure and not the document's. An
//! integer stays one however it is written, `-0` too. And nothing recurses.

use super::json::{Entry, MAX_VALUES, Odd};
use crate::change::MAX_NESTING;

/// Takes a text apart, or says why it is no JSON. Besides the list it answers with the strings that had escapes, in
/// one text without them.
pub(super) fn read(text: &str) -> Result<(Vec<Entry>, String), &'static str> {
    // About one value for so many bytes; a guess that is too low costs a reallocation.
    let entries = Vec::with_capacity(text.len() / 16 + 4);
    let mut reader = Reader { text, at: 0, entries, unescaped: String::new(), open: Vec::new() };
    reader.whole()?;
    Ok((reader.entries, reader.unescaped))
}

/// A list or map whose end is not reached.
struct Open {
    /// Its entry.
    at: usize,
    is_map: bool,
    /// Elements or fields so far.
    len: u32,
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    entries: Vec<Entry>,
    unescaped: String,
    /// Bound: [`MAX_NESTING`]. When full: the document is refused.
    open: Vec<Open>,
}

const NOT_JSON: &str = "it is not valid JSON";

impl Reader<'_> {
    fn whole(&mut self) -> Result<(), &'static str> {
        loop {
            // A list or map that begins is followed by what is in it.
            if !self.value()? {
                continue;
            }
            while self.after_value()? {
                if self.open.is_empty() {
                    return match self.peek() {
                        None => Ok(()),
                        Some(_) => Err("text follows the document"),
                    };
                }
            }
        }
    }

    /// The next byte that is no blank.
    fn peek(&mut self) -> Option<u8> {
        let rest = &self.text.as_bytes()[self.at..];
        let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.at += blanks;
        rest.get(blanks).copied()
    }

    fn push(&mut self, entry: Entry) -> Result<(), &'static str> {
        if self.entries.len() >= MAX_VALUES {
            const { assert!(MAX_VALUES == 100_000) };
            return Err("it has more than 100000 values");
        }
        self.entries.push(entry);
        Ok(())
    }

    /// One value, or the beginning of a list or map that is not empty; whether it is whole.
    fn value(&mut self) -> Result<bool, &'static str> {
        let entry = match self.peek().ok_or("it ends too soon")? {
            b'{' => return self.open(true),
            b'[' => return self.open(false),
            b'"' => self.string()?,
            b't' => self.word("true", Entry::Bool(true))?,
            b'f' => self.word("false", Entry::Bool(false))?,
            b'n' => self.word("null", Entry::Null)?,
            _ => self.number()?,
        };
        self.push(entry)?;
        Ok(true)
    }

    /// Begins a list or map; whether that is all there is of it.
    fn open(&mut self, is_map: bool) -> Result<bool, &'static str> {
        if self.open.len() >= MAX_NESTING {
            return Err("it is nested too deep");
        }
        self.at += 1;
        self.open.push(Open { at: self.entries.len(), is_map, len: 0 });
        self.push(Entry::Null)?;
        if self.peek() == Some(if is_map { b'}' } else { b']' }) {
            self.close();
            return Ok(true);
        }
        if is_map {
            self.key()?;
        }
        Ok(false)
    }

    /// Its end, at which the reader stands.
    fn close(&mut self) {
        self.at += 1;
        let end = self.entries.len() as u32;
        if let Some(Open { at, is_map, len }) = self.open.pop() {
            self.entries[at] = if is_map { Entry::Map { end, len } } else { Entry::List { end, len } };
        }
    }

    /// A value ended: whether that ended the list or map it is in, and so another value.
    fn after_value(&mut self) -> Result<bool, &'static str> {
        let next = self.peek();
        // Nothing is open after the document itself.
        let Some(open) = self.open.last_mut() else { return Ok(true) };
        open.len += 1;
        let is_map = open.is_map;
        match next {
            Some(b',') => {
                self.at += 1;
                if is_map {
                    self.key()?;
                }
                Ok(false)
            }
            Some(b'}') if is_map => {
                self.close();
                Ok(true)
            }
            Some(b']') if !is_map => {
                self.close();
                Ok(true)
            }
            _ => Err(NOT_JSON),
        }
    }

    fn key(&mut self) -> Result<(), &'static str> {
        if self.peek() != Some(b'"') {
            return Err(NOT_JSON);
        }
        let key = self.string()?;
        self.push(key)?;
        if self.peek() != Some(b':') {
            return Err(NOT_JSON);
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str, entry: Entry) -> Result<Entry, &'static str> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(NOT_JSON);
        }
        self.at += word.len();
        Ok(entry)
    }

    fn digits(&mut self) -> usize {
        let rest = &self.text.as_bytes()[self.at..];
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    fn take(&mut self, bytes: &[u8]) -> bool {
        let taken = self.text.as_bytes().get(self.at).is_some_and(|byte| bytes.contains(byte));
        self.at += usize::from(taken);
        taken
    }

    fn number(&mut self) -> Result<Entry, &'static str> {
        let begin = self.at;
        self.take(b"-");
        // A number begins with 0 only if that is all of its whole part.
        if !self.take(b"0") && self.digits() == 0 {
            return Err(NOT_JSON);
        }
        let mut is_whole = true;
        if self.take(b".") {
            is_whole = false;
            if self.digits() == 0 {
                return Err(NOT_JSON);
            }
        }
        if self.take(b"eE") {
            is_whole = false;
            self.take(b"+-");
            if self.digits() == 0 {
                return Err(NOT_JSON);
            }
        }
        let number = &self.text[begin..self.at];
        if is_whole {
            if let Ok(value) = number.parse() {
                return Ok(Entry::Int(value));
            }
            if let Ok(value) = number.parse() {
                return Ok(Entry::Uint(value));
            }
        }
        match number.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Entry::Double(value)),
            _ => Ok(Entry::Odd { at: begin as u32, len: number.len() as u32, odd: Odd::Number }),
        }
    }

    /// A string; most have no escapes and stay where they are.
    fn string(&mut self) -> Result<Entry, &'static str> {
        self.at += 1;
        let begin = self.at;
        let special = self.find_special()?;
        if special == b'"' {
            let len = (self.at - begin) as u32;
            self.at += 1;
            return Ok(Entry::Text { at: begin as u32, len });
        }
        self.escaped(begin)
    }

    /// Goes to the next byte that ends a string or begins an escape, and says which.
    fn find_special(&mut self) -> Result<u8, &'static str> {
        let rest = &self.text.as_bytes()[self.at..];
        let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
        let length = rest.iter().position(is_special).ok_or("a string never ends")?;
        self.at += length;
        match rest[length] {
            special @ (b'"' | b'\\') => Ok(special),
            _ => Err("a string has a control character"),
        }
    }

    /// The rest of a string that has an escape, at which the reader stands.
    fn escaped(&mut self, begin: usize) -> Result<Entry, &'static str> {
        let place = self.unescaped.len();
        self.unescaped.push_str(&self.text[begin..self.at]);
        let mut is_odd = false;
        loop {
            let from = self.at;
            let special = self.find_special()?;
            self.unescaped.push_str(&self.text[from..self.at]);
            self.at += 1;
            if special == b'"' {
                break;
            }
            match self.escape()? {
                Some(character) => self.unescaped.push(character),
                None => is_odd = true,
            }
        }
        if is_odd {
            self.unescaped.truncate(place);
            let len = (self.at - 1 - begin) as u32;
            return Ok(Entry::Odd { at: begin as u32, len, odd: Odd::Text });
        }
        Ok(Entry::Unescaped { at: place as u32, len: (self.unescaped.len() - place) as u32 })
    }

    /// What follows a backslash; nothing for half a surrogate pair.
    fn escape(&mut self) -> Result<Option<char>, &'static str> {
        let letter = *self.text.as_bytes().get(self.at).ok_or("a string never ends")?;
        self.at += 1;
        Ok(Some(match letter {
            b'"' | b'\\' | b'/' => char::from(letter),
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let unit = self.unit()?;
                if !(0xd800..0xdc00).contains(&unit) {
                    return Ok(char::from_u32(unit));
                }
                let before = self.at;
                if self.take(b"\\") && self.take(b"u") {
                    let second = self.unit()?;
                    if (0xdc00..0xe000).contains(&second) {
                        return Ok(char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (second - 0xdc00)));
                    }
                }
                // What follows is read for itself.
                self.at = before;
                return Ok(None);
            }
            _ => return Err("a string has an unknown escape"),
        }))
    }

    /// The four digits of `\u`.
    fn unit(&mut self) -> Result<u32, &'static str> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4).ok_or("a string never ends")?;
        self.at += 4;
        digits.iter().try_fold(0, |unit, digit| {
            let value = char::from(*digit).to_digit(16).ok_or("an escape has no four digits")?;
            Ok(unit * 16 + value)
        })
    }
}
