//! In: a text that nobody may see. Out: the same text to the code that asks for it by name, and `[redacted]` to
//! everybody else: logs, `config show`, messages about wrong values.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::setting::{Setting, Unfit};

/// What is shown in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Says that there is no token.
const NONE: &str = "none";

/// The shortest token; what is shorter can be guessed.
const SHORTEST: usize = 32;

/// A text that opens a door, or the word that nothing does. Its value is never shown.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Token(Option<String>);

impl Token {
    /// Nothing opens the door.
    pub const fn none() -> Self {
        Self(None)
    }

    /// This does.
    pub fn given(text: &str) -> Self {
        Self(Some(text.to_owned()))
    }

    /// The token itself, for the one place that needs it.
    pub fn reveal(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { REDACTED } else { NONE })
    }
}

impl Setting for Token {
    const FORM: &'static str = r#""none", or a text of at least 32 visible characters without blanks"#;
    const EXAMPLE: Option<&'static str> = Some("what `openssl rand -hex 32` prints");
    const SECRET: bool = true;

    fn from_text(text: &str) -> Result<Self, Unfit> {
        match text.trim() {
            NONE => Ok(Self(None)),
            // What is shown in its place is not a token, though long enough.
            text if text.len() >= SHORTEST
                && text != REDACTED
                && text.bytes().all(|byte| byte.is_ascii_graphic()) =>
            {
                Ok(Self(Some(text.to_owned())))
            }
            _ => Err(Unfit::Form),
        }
    }

    fn to_toml(&self) -> toml::Value {
        if self.0.is_some() { REDACTED.into() } else { NONE.into() }
    }
}

/// Says that a key is not given here.
const FILE: &str = "file";

/// Bytes of a sealing key.
pub const KEY_BYTES: usize = 32;

/// A key of 32 bytes, or the word that it is in its file. Its value is never shown.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretKey(Option<[u8; KEY_BYTES]>);

impl SecretKey {
    /// The key itself, for the one place that needs it.
    pub fn reveal(&self) -> Option<&[u8; KEY_BYTES]> {
        self.0.as_ref()
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { REDACTED } else { FILE })
    }
}

impl Setting for SecretKey {
    const FORM: &'static str = r#""file", or the base64 of 32 bytes"#;
    const EXAMPLE: Option<&'static str> = Some("what `openssl rand -base64 32` prints");
    const SECRET: bool = true;

    fn from_text(text: &str) -> Result<Self, Unfit> {
        if text.trim() == FILE {
            return Ok(Self(None));
        }
        parse_key(text.trim()).map(|key| Self(Some(key))).ok_or(Unfit::Form)
    }

    fn to_toml(&self) -> toml::Value {
        if self.0.is_some() { REDACTED.into() } else { FILE.into() }
    }
}

/// Reads the base64 of a key.
pub fn parse_key(text: &str) -> Option<[u8; KEY_BYTES]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_to_the_code_and_shown_to_nobody() {
        let token = Token::from_text("0123456789abcdef0123456789abcdef").unwrap();
        assert_eq!(token.reveal(), Some("0123456789abcdef0123456789abcdef"));
        assert_eq!(format!("{token:?} {}", token.to_toml()), "[redacted] \"[redacted]\"");
        assert_eq!(Token::from_text("none").unwrap(), Token::none());
        let blanks = "correct horse battery staple and more of it";
        for wrong in ["", "0123456789abcdef0123456789abcde", blanks, "0123456789abcdef0123456789abcdef\u{e9}"]
        {
            assert!(Token::from_text(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_key_has_32_bytes_or_is_in_its_file() {
        assert!(SecretKey::from_text("file").unwrap().reveal().is_none());
        let key = SecretKey::from_text(" AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE= ").unwrap();
        assert_eq!(key.reveal(), Some(&[1; 32]));
        assert_eq!(format!("{key:?} {}", key.to_toml()), "[redacted] \"[redacted]\"");
        for wrong in ["", "AQEB", "correct horse battery staple"] {
            assert!(SecretKey::from_text(wrong).is_err(), "{wrong}");
        }
    }
}
