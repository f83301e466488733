//! Scopes: what a token is good for, and what an operation needs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A part of what can be done within an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// Whatever only asks.
    Read,
    /// Documents: saying that they change, and looking at them.
    Origin,
    /// Subscriptions and everything below them, passive mode and replays too.
    Subscribe,
    /// Resources and tokens of the account.
    Admin,
}

impl Scope {
    /// All there are.
    pub const ALL: [Scope; 4] = [Scope::Read, Scope::Origin, Scope::Subscribe, Scope::Admin];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Origin => "origin",
            Scope::Subscribe => "subscribe",
            Scope::Admin => "admin",
        }
    }
}

/// A set of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scopes(u8);

impl Scopes {
    /// Every one.
    pub const ALL: Scopes = Scopes(0b1111);

    /// Whether one is among them.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Scopes {
        Scopes(scopes.into_iter().fold(0, |all, scope| all | 1 << scope as u8))
    }
}

/// What whoever asks for an operation has to have, where there is authentication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Nothing: anybody may.
    Nothing,
    /// One of these scopes, within an account.
    Scope(&'static [Scope]),
    /// One of these scopes, and to see the whole node: it tells of all accounts at once. That is the account `default`, by
    /// a token that is not limited.
    Node(&'static [Scope]),
    /// To be the operator.
    Operator,
}

impl Need {
    /// What is needed, in words: ``the scope `read` or `origin` ``.
    pub fn words(self) -> String {
        match self {
            Need::Nothing => "nothing".to_owned(),
            Need::Scope(scopes) | Need::Node(scopes) => {
                let names: Vec<String> = scopes.iter().map(|scope| format!("`{}`", scope.as_str())).collect();
                format!("the scope {}", names.join(" or "))
            }
            Need::Operator => "the operator's token (auth.operator-token)".to_owned(),
        }
    }
}
