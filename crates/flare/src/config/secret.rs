//! In: a text that nobody may see. Out: the same text to the code that asks for it by name, and `[redacted]` to
//! everybody else: logs, `config show`, messages about wrong values.

use std::fmt;

use super::setting::{Setting, Unfit};

/// What is shown in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// A key whose value is never shown.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
#[allow(dead_code, reason = "no key is secret yet; the redaction is in place before the first one is")]
pub struct Secret(String);

#[allow(dead_code, reason = "no key is secret yet; the redaction is in place before the first one is")]
impl Secret {
    /// The secret itself, for the one place that needs it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Setting for Secret {
    const FORM: &'static str = "a text that is not empty";
    const EXAMPLE: Option<&'static str> = Some(r#""correct horse battery staple""#);
    const SECRET: bool = true;

    fn from_text(text: &str) -> Result<Self, Unfit> {
        if text.is_empty() { Err(Unfit::Form) } else { Ok(Self(text.to_owned())) }
    }

    fn to_toml(&self) -> toml::Value {
        REDACTED.into()
    }
}

/// Says that a key is not given here.
const FILE: &str = "file";

/// A key of 32 bytes, or the word that it is in its file. Its value is never shown.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SecretKey(Option<[u8; crate::vault::KEY_BYTES]>);

impl SecretKey {
    /// The key itself, for the one place that needs it.
    pub fn reveal(&self) -> Option<&[u8; crate::vault::KEY_BYTES]> {
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
        crate::vault::parse_key(text.trim()).map(|key| Self(Some(key))).ok_or(Unfit::Form)
    }

    fn to_toml(&self) -> toml::Value {
        if self.0.is_some() { REDACTED.into() } else { FILE.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_known_to_the_code_and_shown_to_nobody() {
        let secret = Secret::from_text("hunter2").unwrap();
        assert_eq!(secret.reveal(), "hunter2");
        assert_eq!(format!("{secret:?} {}", secret.to_toml()), "[redacted] \"[redacted]\"");
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
