//! The caller: who a request comes from, and what of Flare's entities is there for them. Whatever is not, does not exist.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::account::Account;
use super::scope::{Need, Scopes};
use crate::ids::{ResourceId, SubscriptionId};
use crate::resource::Resource;

/// Who asks.
#[derive(Clone, Debug)]
pub struct Caller {
    /// For which account.
    pub account: Account,
    /// What they may do in it.
    pub scopes: Scopes,
    /// Whether it is the operator, or whoever connects where there is no authentication.
    pub operator: bool,
    /// Whether the operator named an account, or it is a token's own.
    pub named: bool,
    /// Only this of the account.
    pub limits: Option<Arc<Limits>>,
    /// The token they showed.
    pub token: Option<Arc<TokenName>>,
}

/// A token, as people know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenName {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
}

/// What a token is limited to.
#[derive(Debug, Default)]
pub struct Limits {
    /// These resources, and what is below them.
    pub resources: BTreeSet<ResourceId>,
    /// These subscriptions, and what is below them.
    pub subscriptions: BTreeSet<SubscriptionId>,
    /// The resources of these subscriptions, of which the rest is not there.
    pub through: BTreeSet<ResourceId>,
}

impl Caller {
    /// Whoever connects, where there is no authentication: everything, in the one account there is.
    pub fn anybody() -> Caller {
        Caller {
            account: Account::default(),
            scopes: Scopes::ALL,
            operator: true,
            named: false,
            limits: None,
            token: None,
        }
    }

    /// Whether they have what an operation needs.
    pub fn has(&self, need: Need) -> bool {
        match need {
            Need::Nothing => true,
            _ if self.operator => true,
            Need::Scope(scopes) => scopes.iter().any(|scope| self.scopes.has(*scope)),
            Need::Node(scopes) => {
                self.account.is_default()
                    && self.limits.is_none()
                    && scopes.iter().any(|scope| self.scopes.has(*scope))
            }
            Need::Operator => false,
        }
    }

    /// Whether everything of the account is there for them.
    pub fn sees_whole_account(&self) -> bool {
        self.limits.is_none()
    }

    /// Whether a resource is there for them, with all that is below it.
    pub fn sees_whole(&self, resource: &Resource) -> bool {
        let limits = self.limits.as_deref();
        resource.account == self.account
            && limits.is_none_or(|limits| limits.resources.contains(resource.id()))
    }

    /// Whether a resource is there for them, be it for the sake of one of its subscriptions.
    pub fn sees(&self, resource: &Resource) -> bool {
        let through = || self.limits.as_deref().is_some_and(|limits| limits.through.contains(resource.id()));
        self.sees_whole(resource) || resource.account == self.account && through()
    }

    /// Whether a subscription of a resource is there for them.
    pub fn sees_subscription(&self, resource: &Resource, id: &SubscriptionId) -> bool {
        let named = || self.limits.as_deref().is_some_and(|limits| limits.subscriptions.contains(id));
        self.sees_whole(resource) || resource.account == self.account && named()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Scope;
    use crate::ids::ResourceNumber;
    use crate::resource::ResourceDraft;
    use crate::time::Timestamp;

    fn resource(id: &str, account: &str) -> Resource {
        let draft: ResourceDraft =
            serde_json::from_str(r#"{"endpoint":"http://h/{x}","change":{"field":"rev"}}"#).expect("a draft");
        let view = draft.check(ResourceId::new(id), 1, Timestamp::from_millis(0)).expect("checked");
        Resource::compile(view, ResourceNumber(1)).expect("a resource").of(Account::named(account))
    }

    #[test]
    fn another_account_is_not_there_and_neither_is_what_a_token_is_not_for() {
        let (mine, theirs) = (resource("r1", "acme"), resource("r2", "default"));
        let other = resource("r3", "acme");
        let sub = SubscriptionId::new("s1");
        let whole = Caller { account: Account::named("acme"), operator: false, ..Caller::anybody() };
        assert!(whole.sees(&mine) && whole.sees_whole(&mine) && whole.sees_subscription(&mine, &sub));
        assert!(!whole.sees(&theirs) && !whole.sees_subscription(&theirs, &sub));
        let limits = Limits {
            resources: [ResourceId::new("r3")].into(),
            subscriptions: [sub.clone()].into(),
            through: [ResourceId::new("r1"), ResourceId::new("r2")].into(),
        };
        let limited = Caller { limits: Some(Arc::new(limits)), ..whole };
        assert!(limited.sees(&mine) && !limited.sees_whole(&mine) && limited.sees_subscription(&mine, &sub));
        assert!(!limited.sees_subscription(&mine, &SubscriptionId::new("s2")));
        assert!(limited.sees_whole(&other) && !limited.sees(&theirs));
        assert!(!limited.sees_subscription(&theirs, &sub), "the account comes first");
    }

    #[test]
    fn the_operator_has_everything_and_a_token_what_it_says() {
        let reader =
            Caller { scopes: [Scope::Read].into_iter().collect(), operator: false, ..Caller::anybody() };
        assert!(
            reader.has(Need::Scope(&[Scope::Origin, Scope::Read]))
                && !reader.has(Need::Scope(&[Scope::Origin]))
        );
        assert!(reader.has(Need::Node(&[Scope::Read])) && !reader.has(Need::Operator));
        let elsewhere = Caller { account: Account::named("acme"), ..reader };
        assert!(!elsewhere.has(Need::Node(&[Scope::Read])) && elsewhere.has(Need::Scope(&[Scope::Read])));
        assert!(Caller::anybody().has(Need::Operator));
    }
}
