//! Secrets that sign: texts like `whsec_…` come in, keys come out, and nothing here prints one.
//!
//! A secret is given by the user or drawn by the program, shown once, and kept sealed; which of a subscription's
//! secrets sign at a moment is decided here.

use std::fmt;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::time::Timestamp;

const PREFIX: &str = "whsec_";

/// How many bytes a secret may have, by Standard Webhooks.
const LENGTHS: std::ops::RangeInclusive<usize> = 24..=64;

/// The form that Standard Webhooks gives a secret. It is said in every mistake, in place of the value.
const FORM: &str = "must be `whsec_` followed by the base64, padded, of 24 to 64 bytes";

/// A key that signs notifications, by Standard Webhooks 1.0. Its `Debug` shows nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Vec<u8>);

impl Secret {
    /// How many bytes a secret that is drawn has.
    pub const DRAWN: usize = 32;

    /// A secret of bytes that nobody can guess.
    pub fn drawn(bytes: [u8; Secret::DRAWN]) -> Secret {
        Secret(bytes.to_vec())
    }

    /// A secret as it was kept; `None` if it has not the length of one.
    pub fn from_bytes(bytes: &[u8]) -> Option<Secret> {
        LENGTHS.contains(&bytes.len()).then(|| Secret(bytes.to_vec()))
    }

    /// Reads `whsec_…`. The error never repeats what was given.
    pub fn parse(text: &str) -> Result<Secret, &'static str> {
        let encoded = text.strip_prefix(PREFIX).ok_or(FORM)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| FORM)?;
        Secret::from_bytes(&bytes).ok_or(FORM)
    }

    /// The text for whoever verifies. It goes into one answer, and to nobody else.
    pub fn reveal(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(&self.0))
    }

    /// The key itself, to sign with.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Secret, D::Error> {
        // Through a value: serde's own complaint about a wrong type would repeat what was given.
        let value = serde_json::Value::deserialize(deserializer)?;
        let text = value.as_str().ok_or_else(|| serde::de::Error::custom(FORM))?;
        Secret::parse(text).map_err(serde::de::Error::custom)
    }
}

/// Writes a secret into the one answer that shows it.
pub(crate) fn reveal<S: Serializer>(secret: &Option<Secret>, serializer: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Secret::reveal).serialize(serializer)
}

/// A secret as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredSecret {
    /// The secret, encrypted by the program; nothing in the store opens it.
    pub sealed: String,
    /// Since when it signs.
    pub created_at: Timestamp,
    /// When it stops: it has a successor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
}

/// A secret as users see it: everything but the value.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "SigningSecret")]
pub struct SecretView {
    /// Since when it signs.
    pub created_at: Timestamp,
    /// When it stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<Timestamp>,
}

impl StoredSecret {
    /// Whether it signs at this time.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.ends_at.is_none_or(|end| now < end)
    }
}

impl From<&StoredSecret> for SecretView {
    fn from(secret: &StoredSecret) -> SecretView {
        SecretView { created_at: secret.created_at, ends_at: secret.ends_at }
    }
}

/// Those that sign at this time.
pub fn live(secrets: &[StoredSecret], now: Timestamp) -> impl Iterator<Item = &StoredSecret> + Clone {
    secrets.iter().filter(move |secret| secret.is_live(now))
}

/// The secrets after a rotation: the one that signed alone until now ends after `overlap`, the new one stays.
/// There are never more than two: a secret that was already ending, from a rotation before, ends at once.
pub fn rotated(
    secrets: &[StoredSecret],
    sealed: String,
    overlap: Duration,
    now: Timestamp,
) -> Vec<StoredSecret> {
    let ends_at = Some(now.saturating_add(overlap));
    let current = secrets.iter().find(|secret| secret.ends_at.is_none());
    let ending = current.map(|secret| StoredSecret { ends_at, ..secret.clone() });
    let mut kept: Vec<StoredSecret> = ending.into_iter().filter(|secret| secret.is_live(now)).collect();
    kept.push(StoredSecret { sealed, created_at: now, ends_at: None });
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

    #[test]
    fn a_secret_is_read_and_shown_in_the_published_form() {
        let secret = Secret::parse(TEXT).unwrap();
        assert_eq!((secret.bytes().len(), secret.reveal().as_str()), (24, TEXT));
        assert_eq!(Secret::parse(&Secret::drawn([7; 32]).reveal()).unwrap().bytes(), [7; 32]);
    }

    #[test]
    fn a_wrong_secret_is_refused_without_repeating_it() {
        let encode = |length| format!("whsec_{}", STANDARD.encode(vec![1; length]));
        assert!(Secret::parse(&encode(24)).is_ok() && Secret::parse(&encode(64)).is_ok());
        let (short, long) = (encode(23), encode(65));
        for wrong in
            ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_???", &short, &long, &TEXT[..37]]
        {
            assert_eq!(Secret::parse(wrong), Err(FORM), "{wrong}");
        }
        for wrong in [r#""hunter2""#, "12345678", r#"["hunter2"]"#] {
            let error = serde_json::from_str::<Secret>(wrong).unwrap_err().to_string();
            assert!(error.contains("whsec_") && !error.contains("hunter2") && !error.contains("12345678"));
        }
    }

    #[test]
    fn nothing_prints_a_secret() {
        let draft = super::super::Draft { secret: Some(Secret::parse(TEXT).unwrap()), ..Default::default() };
        assert!(!format!("{draft:?}").contains("MfKQ"));
        assert!(!serde_json::to_string(&draft).unwrap().contains("secret"), "it is not stored with the rest");
    }

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_millis(secs * 1000)
    }

    fn names(secrets: &[StoredSecret], secs: i64) -> Vec<&str> {
        live(secrets, at(secs)).map(|secret| secret.sealed.as_str()).collect()
    }

    #[test]
    fn two_secrets_sign_while_rotating_and_never_three() {
        let hour = Duration::from_secs(3600);
        let first = rotated(&[], "a".into(), hour, at(0));
        assert_eq!(names(&first, 0), ["a"]);
        let second = rotated(&first, "b".into(), hour, at(10));
        assert_eq!((names(&second, 10), names(&second, 3609)), (vec!["a", "b"], vec!["a", "b"]));
        assert_eq!(names(&second, 3610), ["b"], "the end is excluded");
        let third = rotated(&second, "c".into(), hour, at(20));
        assert_eq!(names(&third, 20), ["b", "c"], "the one that was ending ends at once");
        let at_once = rotated(&second, "c".into(), Duration::ZERO, at(20));
        assert_eq!((names(&at_once, 20), at_once.len()), (vec!["c"], 1));
    }
}
