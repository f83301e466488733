//! Accounts: whom entities belong to, and how many of them there may be.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::invalid::Invalid;
use crate::time::Timestamp;

/// The name of the account that exists from the beginning.
const DEFAULT: &str = "default";

/// The longest name.
const LONGEST: usize = 63;

/// An account, by its name. Whoever needs one only has the one that is there from the beginning, which costs nothing.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Account(Option<Arc<str>>);

impl Account {
    /// The account of this name, whether it exists or not.
    pub fn named(name: &str) -> Account {
        Account((name != DEFAULT).then(|| name.into()))
    }

    /// The account that stored entities with this parent belong to.
    pub fn of_parent(parent: Option<&str>) -> Account {
        Account(parent.map(Into::into))
    }

    /// The parent under which its entities are stored: those of `default` have none, as before there were accounts.
    pub fn parent(&self) -> Option<String> {
        self.0.as_deref().map(str::to_owned)
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or(DEFAULT)
    }

    /// Whether it is the one that is there from the beginning.
    pub fn is_default(&self) -> bool {
        self.0.is_none()
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What the operator says to create an account.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AccountDraft {
    /// Its name: small letters, digits and dashes.
    #[schemars(regex(pattern = "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"), length(min = 1, max = 63))]
    pub name: String,
    /// How much it may have.
    #[serde(default)]
    pub quotas: Quotas,
}

/// How much an account may have; what is left out has no bound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Quotas {
    /// How many resources; consumers count as such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<u32>,
    /// How many subscriptions, of all its resources; producers count as such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subscriptions: Option<u32>,
    /// How many live documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub documents: Option<u32>,
    /// How many documents its origins may send each second, on average; for a moment as many as in a second. What its consumers
    /// read counts as well, and is read no faster.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub changes_per_second: Option<u32>,
}

/// An account as it is stored.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredAccount {
    /// When it was created; `None` for the one that is there from the beginning.
    #[serde(default)]
    pub created_at: Option<Timestamp>,
    /// How much it may have.
    #[serde(default)]
    pub quotas: Quotas,
}

impl AccountDraft {
    /// Checks what a user can get wrong.
    pub fn check(&self) -> Result<(), Invalid> {
        let name = self.name.as_str();
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        let whole = !name.starts_with('-') && !name.ends_with('-');
        if name.is_empty() || name.len() > LONGEST || !whole || !name.bytes().all(fits) {
            let problem = "must have 1 to 63 small letters, digits and dashes, and no dash at either end";
            return Err(Invalid::new("name", problem));
        }
        self.quotas.check()
    }
}

impl Quotas {
    /// Checks what a user can get wrong.
    pub fn check(&self) -> Result<(), Invalid> {
        match self.changes_per_second {
            Some(0) => Err(Invalid::new("quotas.changesPerSecond", "must be 1 or more")),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_label_and_default_is_stored_without_one() {
        let draft = |name: &str| AccountDraft { name: name.into(), quotas: Quotas::default() }.check();
        for name in ["a", "acme", "a-1", &"x".repeat(63)] {
            assert_eq!(draft(name), Ok(()), "{name}");
        }
        for name in ["", "-a", "a-", "Acme", "a_b", "a b", "é", "a/b", &"x".repeat(64)] {
            assert!(draft(name).is_err(), "{name}");
        }
        assert_eq!(Account::named("default"), Account::default());
        assert_eq!(Account::default().parent(), None);
        assert_eq!(Account::of_parent(Some("acme")), Account::named("acme"));
        assert_eq!(Account::default().as_str(), "default");
    }
}
