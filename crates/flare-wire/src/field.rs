//! Names and values of header fields: text comes in, and what is wrong with it or a type that says it is harmless goes
//! out. Whatever is written into a head is of these types, or is made harmless while it is written.

/// What belongs to the connection, or says where a message ends: the wire writes these itself, or not at all.
const OURS: [&str; 10] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "upgrade",
    "expect",
];

/// Why something cannot stand in a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadField {
    /// A name has other characters than those of a token, or none.
    #[error("the name of a header is not a token")]
    Name,
    /// It belongs to the protocol.
    #[error("the header belongs to the protocol")]
    Ours,
    /// A value has a control character other than a tab.
    #[error("the value of a header has a control character")]
    Value,
    /// A host has something other than visible ASCII.
    #[error("the host is not visible ASCII")]
    Authority,
}

/// The name of a field that a request may have: a token, and none of those that say how long a message is or what
/// becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name<'a> {
    text: &'a str,
    /// Whether it is in lower case already: then it is copied as it is.
    lower: bool,
}

impl<'a> Name<'a> {
    /// Checks a name, in any case; it is written in lower case.
    pub const fn new(name: &'a str) -> Result<Name<'a>, BadField> {
        let bytes = name.as_bytes();
        if bytes.is_empty() {
            return Err(BadField::Name);
        }
        let (mut at, mut lower) = (0, true);
        while at < bytes.len() {
            if !is_token(bytes[at]) {
                return Err(BadField::Name);
            }
            lower &= !bytes[at].is_ascii_uppercase();
            at += 1;
        }
        let mut at = 0;
        while at < OURS.len() {
            if name.eq_ignore_ascii_case(OURS[at]) {
                return Err(BadField::Ours);
            }
            at += 1;
        }
        Ok(Name { text: name, lower })
    }

    /// As it was given.
    pub const fn as_str(&self) -> &'a str {
        self.text
    }

    /// Writes it, in lower case.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        match self.lower {
            true => out.extend_from_slice(self.text.as_bytes()),
            false => out.extend(self.text.bytes().map(|byte| byte.to_ascii_lowercase())),
        }
    }
}

impl Name<'static> {
    /// A name that is known when the program is built: in a `const`, a bad one does not compile.
    pub const fn fixed(name: &'static str) -> Name<'static> {
        match Name::new(name) {
            Ok(name) => name,
            Err(_) => panic!("not a name that a request may have"),
        }
    }
}

const fn is_token(byte: u8) -> bool {
    matches!(byte,
        b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z')
}

/// The value of a field: no control character but the tab, so that it ends no line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Value<'a>(&'a [u8]);

impl<'a> Value<'a> {
    /// Checks a value.
    pub fn new(value: &'a [u8]) -> Result<Value<'a>, BadField> {
        if is_harmless(value) { Ok(Value(value)) } else { Err(BadField::Value) }
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &'a [u8] {
        self.0
    }
}

/// Whether nothing in it is a control character other than a tab.
pub(crate) fn is_harmless(value: &[u8]) -> bool {
    value.iter().all(|&byte| (byte >= b' ' && byte != 0x7f) || byte == b'\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_tokens_and_none_of_the_wires_own() {
        for good in ["webhook-id", "X-Own", "a", "!#$%&'*+-.^_`|~09azAZ", "hosts", "content-type"] {
            assert_eq!(Name::new(good).map(|name| name.as_str()), Ok(good));
        }
        for bad in ["", " ", "a b", "a:", "a\r\nb", "a\n", "é", "a\0", "(x)", "a\u{7f}", "\"q\""] {
            assert_eq!(Name::new(bad), Err(BadField::Name), "{bad:?}");
        }
        for ours in OURS.iter().flat_map(|name| [name.to_string(), name.to_uppercase()]) {
            assert_eq!(Name::new(&ours), Err(BadField::Ours), "{ours}");
        }
    }

    #[test]
    fn a_value_has_no_byte_that_ends_a_line() {
        for byte in 0..=u8::MAX {
            let value = [b'a', byte, b'b'];
            let legal = byte == b'\t' || (byte >= 0x20 && byte != 0x7f);
            assert_eq!(Value::new(&value).is_ok(), legal, "{byte}");
        }
        assert!(Value::new(b"").is_ok());
    }
}
