//! An account as the node knows it: its quotas, and what it takes of them that is not counted elsewhere.

use std::time::Duration;

use flare_model::access::{Account, StoredAccount};
use parking_lot::Mutex;

/// For so long the number of documents is what was counted, give or take what this node wrote since.
const FRESH: Duration = Duration::from_secs(1);

/// An account that is stored.
pub struct Tenant {
    /// Which.
    pub account: Account,
    /// Its version in the catalog.
    pub version: u64,
    /// As stored.
    pub stored: StoredAccount,
    changes: Mutex<Changes>,
    documents: Mutex<Documents>,
}

/// Documents that origins may still send.
#[derive(Clone, Copy, Default)]
struct Changes {
    left: f64,
    at: Duration,
    begun: bool,
}

/// How many live documents there are.
#[derive(Clone, Copy, Default)]
struct Documents {
    counted: Option<(Duration, i64)>,
    /// Documents that are being written and may be new.
    pending: i64,
}

impl Tenant {
    /// An account of which nothing was seen yet.
    pub fn new(account: Account, version: u64, stored: StoredAccount) -> Tenant {
        Tenant { account, version, stored, changes: Mutex::default(), documents: Mutex::default() }
    }

    /// The same with other quotas; what it has taken stays taken.
    pub fn changed(&self, version: u64, stored: StoredAccount) -> Tenant {
        let changes = Mutex::new(*self.changes.lock());
        // Those that are being written end at the one before; who asks next counts anew.
        Tenant { account: self.account.clone(), version, stored, changes, documents: Mutex::default() }
    }

    /// Takes one of the changes of this second. False: there are no more.
    pub fn take_change(&self, now: Duration) -> bool {
        self.take_changes(now, 1).is_ok()
    }

    /// Takes as many as there are, of so many, and answers how many those are. None: after so long there is one.
    pub fn take_changes(&self, now: Duration, wanted: usize) -> Result<usize, Duration> {
        let Some(rate) = self.stored.quotas.changes_per_second else { return Ok(wanted) };
        let rate = f64::from(rate);
        let changes = &mut *self.changes.lock();
        let earned = now.saturating_sub(changes.at).as_secs_f64() * rate;
        changes.left = if changes.begun { (changes.left + earned).min(rate) } else { rate };
        (changes.at, changes.begun) = (now, true);
        if changes.left < 1.0 {
            return Err(Duration::from_secs_f64((1.0 - changes.left) / rate));
        }
        let taken = (changes.left as usize).min(wanted);
        changes.left -= taken as f64;
        Ok(taken)
    }

    /// Whether its documents have to be counted before anybody can say whether there may be more.
    pub fn must_count(&self, now: Duration) -> bool {
        let documents = self.documents.lock();
        self.stored.quotas.documents.is_some()
            && documents.counted.is_none_or(|(at, _)| now.saturating_sub(at) >= FRESH)
    }

    /// They were counted.
    pub fn counted(&self, quantity: u64, now: Duration) {
        self.documents.lock().counted = Some((now, i64::try_from(quantity).unwrap_or(i64::MAX)));
    }

    fn begin_document(&self) -> bool {
        let Some(most) = self.stored.quotas.documents else { return false };
        let documents = &mut *self.documents.lock();
        let there = documents.counted.map_or(0, |(_, counted)| counted) + documents.pending;
        if there >= i64::from(most) {
            return false;
        }
        documents.pending += 1;
        true
    }

    /// There are so many more than before.
    pub fn add_documents(&self, more: i64) {
        if let Some((_, counted)) = &mut self.documents.lock().counted {
            *counted = counted.saturating_add(more).max(0);
        }
    }
}

/// Documents that were [begun](Tenant::begin_document). They have ended when this is dropped, however that comes.
pub struct Begun<'t> {
    tenant: &'t Tenant,
    quantity: i64,
}

impl<'t> Begun<'t> {
    /// None so far.
    pub fn new(tenant: &'t Tenant) -> Begun<'t> {
        Begun { tenant, quantity: 0 }
    }

    /// One more is about to be written. False: if it is new, it is one too many.
    pub fn one(&mut self) -> bool {
        let begun = self.tenant.begin_document();
        self.quantity += i64::from(begun);
        begun
    }

    /// It was found out that none of them has to be one more.
    pub fn none(&mut self) {
        let documents = &mut *self.tenant.documents.lock();
        documents.pending = (documents.pending - self.quantity).max(0);
        self.quantity = 0;
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.none();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flare_model::access::Quotas;

    fn tenant(quotas: Quotas) -> Tenant {
        Tenant::new(Account::named("acme"), 1, StoredAccount { created_at: None, quotas })
    }

    #[test]
    fn changes_come_at_their_rate_and_a_second_of_them_at_once() {
        let tenant = tenant(Quotas { changes_per_second: Some(5), ..Quotas::default() });
        let took = |at: u64| (0..20).filter(|_| tenant.take_change(Duration::from_millis(at))).count();
        assert_eq!(took(0), 5);
        assert_eq!(took(200), 1);
        assert_eq!(took(60_000), 5);
        assert!(
            self::tenant(Quotas::default()).take_change(Duration::ZERO),
            "without a quota there is no bound"
        );
    }

    #[test]
    fn documents_that_are_being_written_count() {
        let tenant = tenant(Quotas { documents: Some(2), ..Quotas::default() });
        assert!(tenant.must_count(Duration::ZERO));
        tenant.counted(1, Duration::ZERO);
        assert!(!tenant.must_count(Duration::from_millis(999)) && tenant.must_count(Duration::from_secs(1)));
        let mut begun = Begun::new(&tenant);
        assert!(begun.one() && !begun.one() && !Begun::new(&tenant).one());
        drop(begun);
        assert!(Begun::new(&tenant).one(), "it was there already");
        tenant.add_documents(1);
        assert!(!Begun::new(&tenant).one());
        tenant.add_documents(-1);
        assert!(Begun::new(&tenant).one(), "one was deleted");
    }
}
