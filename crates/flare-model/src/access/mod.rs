//! Who may do what: scopes, tokens, accounts, and the caller that a request comes from.

mod account;
mod caller;
mod scope;
mod token;

pub use account::{Account, AccountDraft, Quotas, StoredAccount};
pub use caller::{Caller, Limits, TokenName};
pub use scope::{Need, Scope, Scopes};
pub use token::{StoredToken, TokenDraft, TokenText, hash_of};
