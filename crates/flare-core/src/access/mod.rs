//! Who is let in. In: what a request shows. Out: the [`Caller`] it comes from, or that nobody knows it.
//!
//! Every token and account is in memory, as the catalog has them: a request costs one hash and no I/O. Tokens are found by
//! their hash; how long that takes tells nothing of any of them, since nobody can choose the hash of a guess.

mod guesses;
mod tenant;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use flare_model::access::{Account, Caller, Limits, Scopes, StoredAccount, StoredToken, TokenName, hash_of};
use flare_model::time::Timestamp;
use parking_lot::RwLock;

use crate::config::AuthConfig;
pub use guesses::Guesses;
pub use tenant::{Begun, Tenant};

/// Says that a token was never used.
const NEVER: i64 = i64::MIN;

/// Why somebody is not let in.
#[derive(Debug, PartialEq, Eq)]
pub enum Denied {
    /// Nobody knows the token: it never was, is revoked, or has expired.
    Unknown,
    /// The operator acts for an account that does not exist.
    NoAccount(String),
    /// Another account is the operator's alone to act for.
    NotTheOperator,
}

/// Who is known.
pub struct Access {
    /// The hash of the operator's token.
    operator: Option<[u8; 32]>,
    /// By the hash of the token.
    tokens: RwLock<HashMap<[u8; 32], Arc<Known>>>,
    /// Those that are stored; `default` is there in any case.
    accounts: RwLock<HashMap<Account, Arc<Tenant>>>,
    /// What slows guessing.
    pub guesses: Guesses,
}

/// A token that is known.
pub struct Known {
    /// Its id.
    pub id: String,
    /// Its number in the catalog, for the order of lists.
    pub number: u64,
    /// Whose it is.
    pub account: Account,
    /// As stored.
    pub stored: StoredToken,
    name: Arc<TokenName>,
    scopes: Scopes,
    limits: Option<Arc<Limits>>,
    last_used: AtomicI64,
}

impl Known {
    /// A token as the catalog has it; `None` where its hash cannot be read.
    pub fn new(id: &str, number: u64, account: Account, stored: StoredToken) -> Option<([u8; 32], Known)> {
        let hash = unhex(&stored.hash)?;
        let limited = stored.resources.is_some() || stored.subscriptions.is_some();
        let limits = limited.then(|| {
            Arc::new(Limits {
                resources: stored.resources.iter().flatten().cloned().collect(),
                subscriptions: stored.subscriptions.iter().flatten().cloned().collect(),
                through: stored.through.iter().cloned().collect(),
            })
        });
        let known = Known {
            id: id.to_owned(),
            number,
            account,
            name: Arc::new(TokenName { id: id.to_owned(), name: stored.name.clone() }),
            scopes: stored.scopes.iter().copied().collect(),
            limits,
            last_used: AtomicI64::new(stored.last_used_at.map_or(NEVER, Timestamp::millis)),
            stored,
        };
        Some((hash, known))
    }

    /// When it was last used, as far as this node knows.
    pub fn last_used_at(&self) -> Option<Timestamp> {
        let millis = self.last_used.load(Ordering::Relaxed);
        (millis != NEVER).then_some(Timestamp::from_millis(millis))
    }

    fn is_good_at(&self, now: Timestamp) -> bool {
        self.stored.expires_at.is_none_or(|end| now < end)
    }
}

impl Access {
    /// Nobody but the operator is known yet.
    pub fn new(config: &AuthConfig) -> Access {
        Access {
            operator: config.operator_token.reveal().map(|token| hash_of(token.as_bytes())),
            tokens: RwLock::default(),
            accounts: RwLock::default(),
            guesses: Guesses::new(config.guesses_per_peer, config.guesses),
        }
    }

    /// Whether nobody can ever be let in.
    pub fn is_shut(&self) -> bool {
        self.operator.is_none() && self.tokens.read().is_empty()
    }

    /// Whose token it is, and for which account they ask.
    pub fn caller(&self, token: &[u8], account: Option<&str>, now: Timestamp) -> Result<Caller, Denied> {
        let hash = hash_of(token);
        if self.operator.is_some_and(|operator| same(&operator, &hash)) {
            let named = account.map(Account::named);
            if let Some(named) = named.as_ref().filter(|named| !self.has_account(named)) {
                return Err(Denied::NoAccount(named.to_string()));
            }
            let token = Some(Arc::new(TokenName { id: "operator".to_owned(), name: "operator".to_owned() }));
            let (is_named, account) = (named.is_some(), named.unwrap_or_default());
            return Ok(Caller { account, named: is_named, token, ..Caller::anybody() });
        }
        let known = self.tokens.read().get(&hash).cloned();
        let known = known.filter(|known| known.is_good_at(now)).ok_or(Denied::Unknown)?;
        if account.is_some_and(|named| named != known.account.as_str()) {
            return Err(Denied::NotTheOperator);
        }
        known.last_used.store(now.millis(), Ordering::Relaxed);
        Ok(Caller {
            account: known.account.clone(),
            scopes: known.scopes,
            operator: false,
            named: true,
            limits: known.limits.clone(),
            token: Some(known.name.clone()),
        })
    }

    /// A token is known from now on, as it is. When it was last used is what is newer.
    pub fn add(&self, (hash, known): ([u8; 32], Known)) {
        let mut tokens = self.tokens.write();
        if let Some(before) = tokens.get(&hash) {
            known.last_used.fetch_max(before.last_used.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        tokens.insert(hash, Arc::new(known));
    }

    /// A token is refused from now on.
    pub fn revoke(&self, id: &str) {
        self.tokens.write().retain(|_, known| known.id != id);
    }

    /// These are the tokens from now on. When they were last used is what is newer.
    pub fn replace_tokens(&self, tokens: Vec<([u8; 32], Known)>) {
        let mut known = self.tokens.write();
        let fresh = tokens.into_iter().map(|(hash, token)| {
            if let Some(before) = known.get(&hash) {
                token.last_used.fetch_max(before.last_used.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            (hash, Arc::new(token))
        });
        let fresh: HashMap<_, _> = fresh.collect();
        *known = fresh;
    }

    /// All tokens that fit, in order of creation.
    pub fn tokens(&self, fits: impl Fn(&Known) -> bool) -> Vec<Arc<Known>> {
        let mut found: Vec<Arc<Known>> =
            self.tokens.read().values().filter(|known| fits(known)).cloned().collect();
        found.sort_unstable_by_key(|known| known.number);
        found
    }

    /// Whether there is an account.
    pub fn has_account(&self, account: &Account) -> bool {
        account.is_default() || self.accounts.read().contains_key(account)
    }

    /// What is known of an account that is stored.
    pub fn tenant(&self, account: &Account) -> Option<Arc<Tenant>> {
        self.accounts.read().get(account).cloned()
    }

    /// An account is there, or has changed.
    pub fn put_account(&self, account: Account, version: u64, stored: StoredAccount) {
        let mut accounts = self.accounts.write();
        let tenant = match accounts.get(&account) {
            Some(before) if before.version >= version => return,
            Some(before) => before.changed(version, stored),
            None => Tenant::new(account.clone(), version, stored),
        };
        accounts.insert(account, Arc::new(tenant));
    }

    /// An account is gone, and its tokens with it.
    pub fn remove_account(&self, account: &Account) {
        self.accounts.write().remove(account);
        self.tokens.write().retain(|_, known| known.account != *account);
    }

    /// The stored accounts, by name.
    pub fn accounts(&self) -> Vec<Arc<Tenant>> {
        let mut all: Vec<Arc<Tenant>> = self.accounts.read().values().cloned().collect();
        all.sort_unstable_by(|one, other| one.account.cmp(&other.account));
        all
    }
}

/// In a time that tells nothing of where they differ.
fn same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

/// The text of a hash.
pub fn hex(bytes: &[u8; 32]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; 32];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Token;
    use flare_model::access::{Scope, TokenText};

    const OPERATOR: &str = "0123456789abcdef0123456789abcdef";
    const NOW: Timestamp = Timestamp::from_millis(1000);

    fn access() -> Access {
        Access::new(&AuthConfig { operator_token: Token::given(OPERATOR), ..AuthConfig::default() })
    }

    fn token(seed: u8, id: &str, account: &str, expires: Option<i64>) -> (String, ([u8; 32], Known)) {
        let text = TokenText::of([seed; 20]).reveal().to_owned();
        let stored = StoredToken {
            name: id.to_owned(),
            scopes: vec![Scope::Read],
            created_at: Timestamp::from_millis(0),
            expires_at: expires.map(Timestamp::from_millis),
            last_used_at: None,
            hash: hex(&hash_of(text.as_bytes())),
            resources: None,
            subscriptions: None,
            through: Vec::new(),
        };
        (text, Known::new(id, u64::from(seed), Account::named(account), stored).expect("its hash is one"))
    }

    #[test]
    fn a_token_is_good_until_it_expires_or_is_revoked() {
        let access = access();
        let (text, known) = token(1, "tok_1", "acme", Some(1001));
        assert_eq!(access.caller(text.as_bytes(), None, NOW).unwrap_err(), Denied::Unknown);
        access.add(known);
        let caller = access.caller(text.as_bytes(), None, NOW).unwrap();
        assert_eq!((caller.account.as_str(), caller.operator), ("acme", false));
        assert_eq!(access.tokens(|_| true)[0].last_used_at(), Some(NOW));
        assert_eq!(
            access.caller(text.as_bytes(), None, Timestamp::from_millis(1001)).unwrap_err(),
            Denied::Unknown
        );
        assert!(access.caller(text.as_bytes(), Some("acme"), NOW).is_ok());
        for other in ["default", "nobody"] {
            let denied = access.caller(text.as_bytes(), Some(other), NOW).unwrap_err();
            assert_eq!(denied, Denied::NotTheOperator, "whether it exists is not told");
        }
        access.revoke("tok_1");
        assert_eq!(access.caller(text.as_bytes(), None, NOW).unwrap_err(), Denied::Unknown);
    }

    #[test]
    fn the_operator_acts_for_any_account_there_is() {
        let access = access();
        let caller = |account| access.caller(OPERATOR.as_bytes(), account, NOW);
        assert!(caller(None).unwrap().account.is_default());
        assert!(caller(Some("default")).unwrap().operator);
        assert_eq!(caller(Some("acme")).unwrap_err(), Denied::NoAccount("acme".into()));
        let stored = StoredAccount { created_at: None, quotas: Default::default() };
        access.put_account(Account::named("acme"), 1, stored);
        assert_eq!(caller(Some("acme")).unwrap().account.as_str(), "acme");
        assert_eq!(access.caller(&OPERATOR.as_bytes()[1..], None, NOW).unwrap_err(), Denied::Unknown);
    }

    #[test]
    fn an_account_that_goes_takes_its_tokens() {
        let access = access();
        let (text, known) = token(1, "tok_1", "acme", None);
        let (other, kept) = token(2, "tok_2", "default", None);
        access.add(known);
        access.add(kept);
        access.remove_account(&Account::named("acme"));
        assert!(access.caller(text.as_bytes(), None, NOW).is_err());
        assert!(access.caller(other.as_bytes(), None, NOW).is_ok());
    }
}
