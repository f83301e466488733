//! Tokens: what somebody shows to be let in. A draft or random bytes come in; what is stored, and the text that is shown
//! once, go out.
//!
//! `flare_`, 32 characters of chance (160 bits), and 6 that check those before them, so that a scanner knows a leaked token
//! from a text that only looks like one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::scope::Scope;
use crate::duration::HumanDuration;
use crate::ids::{ResourceId, SubscriptionId};
use crate::invalid::Invalid;
use crate::time::Timestamp;

/// How every token begins.
const PREFIX: &str = "flare_";
/// Digits and small letters without i, l, o and u, which are easily misread.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Characters of chance, and those that check them.
const CHANCE: usize = 32;
const CHECK: usize = 6;

/// The longest name, and the longest list of what a token is limited to.
const LONGEST_NAME: usize = 100;
const MOST_LIMITS: usize = 1000;

/// What a user says to create a token.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TokenDraft {
    /// What it is called, for people.
    #[schemars(length(min = 1, max = 100))]
    pub name: String,
    /// What it is good for.
    #[schemars(length(min = 1))]
    pub scopes: Vec<Scope>,
    /// How long it is good; without it, until it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<HumanDuration>,
    /// Only for these resources and consumers, and what is below them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000))]
    pub resources: Option<Vec<ResourceId>>,
    /// Only for these subscriptions and producers, and what is below them, beside the resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1000))]
    pub subscriptions: Option<Vec<SubscriptionId>>,
}

impl TokenDraft {
    /// Checks what a user can get wrong, except whether what it is limited to exists.
    pub fn check(&self) -> Result<(), Invalid> {
        let length = self.name.chars().count();
        if self.name.trim().is_empty() || length > LONGEST_NAME || self.name.chars().any(char::is_control) {
            return Err(Invalid::new("name", "must have 1 to 100 characters, and no line breaks"));
        }
        if self.scopes.is_empty() {
            let problem = "must name what the token is good for: read, origin, subscribe or admin";
            return Err(Invalid::new("scopes", problem));
        }
        if self.ttl.is_some_and(|ttl| ttl.0.is_zero()) {
            return Err(Invalid::new(
                "ttl",
                "must be longer than nothing; without it the token is good until revoked",
            ));
        }
        let lists = [
            ("resources", self.resources.as_ref().map(Vec::len)),
            ("subscriptions", self.subscriptions.as_ref().map(Vec::len)),
        ];
        for (field, length) in lists {
            match length {
                Some(0) => {
                    return Err(Invalid::new(field, "must name one at least; leave it out for all of them"));
                }
                Some(length) if length > MOST_LIMITS => {
                    return Err(Invalid::new(field, format!("may name {MOST_LIMITS} at most, got {length}")));
                }
                // Whoever makes tokens could make one that is not limited.
                Some(_) if self.scopes.contains(&Scope::Admin) => {
                    return Err(Invalid::new(
                        field,
                        "a token with the scope `admin` cannot be limited; leave one of them out",
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A token as it is stored: everything but the token.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredToken {
    /// What it is called.
    pub name: String,
    /// What it is good for, in order.
    pub scopes: Vec<Scope>,
    /// When it was created.
    pub created_at: Timestamp,
    /// Until when it is good; `None`: until it is revoked.
    #[serde(default)]
    pub expires_at: Option<Timestamp>,
    /// When it was last used, give or take a minute.
    #[serde(default)]
    pub last_used_at: Option<Timestamp>,
    /// The SHA-256 of the token, as hex.
    pub hash: String,
    /// Only for these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Vec<ResourceId>>,
    /// And these.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscriptions: Option<Vec<SubscriptionId>>,
    /// The resources of `subscriptions`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub through: Vec<ResourceId>,
}

/// The text of a token, which is shown once. It is no `Debug`, so that nothing logs it.
pub struct TokenText(String);

impl TokenText {
    /// A token of random bytes.
    pub fn of(bytes: [u8; 20]) -> TokenText {
        let mut text = String::with_capacity(PREFIX.len() + CHANCE + CHECK);
        text.push_str(PREFIX);
        push_digits(&mut text, &bytes, CHANCE);
        let check = Sha256::digest(text.as_bytes());
        push_digits(&mut text, &check, CHECK);
        TokenText(text)
    }

    /// The text itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether a text can be a token at all: its form and its check are right.
    pub fn is_one(text: &[u8]) -> bool {
        if text.len() != PREFIX.len() + CHANCE + CHECK || !text.starts_with(PREFIX.as_bytes()) {
            return false;
        }
        let (checked, check) = text.split_at(PREFIX.len() + CHANCE);
        let mut right = String::with_capacity(CHECK);
        push_digits(&mut right, &Sha256::digest(checked), CHECK);
        right.as_bytes() == check
    }
}

/// What is kept of a token, and what it is found by.
pub fn hash_of(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// The first bits of some bytes, five to a character.
fn push_digits(text: &mut String, bytes: &[u8], quantity: usize) {
    for digit in 0..quantity {
        let bit = |at: usize| u8::from(bytes[at / 8] & (0x80 >> (at % 8)) != 0);
        let value = (0..5).fold(0, |value, place| value << 1 | bit(digit * 5 + place));
        text.push(char::from(ALPHABET[usize::from(value)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_checks_itself() {
        let text = TokenText::of(std::array::from_fn(|at| at as u8 * 13));
        let text = text.reveal();
        assert!(text.starts_with("flare_") && text.len() == 44, "{text}");
        assert!(TokenText::is_one(text.as_bytes()));
        for at in 0..text.len() {
            let mut wrong = text.as_bytes().to_vec();
            wrong[at] = if wrong[at] == b'7' { b'8' } else { b'7' };
            assert!(!TokenText::is_one(&wrong), "{at}");
        }
        for wrong in ["", "flare_", &text[1..], &format!("{text}0"), &text.to_uppercase()] {
            assert!(!TokenText::is_one(wrong.as_bytes()), "{wrong}");
        }
    }

    #[test]
    fn a_draft_names_what_is_wrong() {
        let check = |json: &str| {
            let draft: TokenDraft = serde_json::from_str(json).expect("a draft");
            draft.check().map_err(|invalid| invalid.field)
        };
        assert_eq!(check(r#"{"name":"shop","scopes":["read","origin"],"ttl":"2160h"}"#), Ok(()));
        for (json, field) in [
            (r#"{"name":" ","scopes":["read"]}"#, "name"),
            (r#"{"name":"a\nb","scopes":["read"]}"#, "name"),
            (r#"{"name":"a","scopes":[]}"#, "scopes"),
            (r#"{"name":"a","scopes":["read"],"ttl":"0s"}"#, "ttl"),
            (r#"{"name":"a","scopes":["read"],"resources":[]}"#, "resources"),
            (r#"{"name":"a","scopes":["admin"],"subscriptions":["s"]}"#, "subscriptions"),
        ] {
            assert_eq!(check(json), Err(field.to_owned()), "{json}");
        }
    }
}
