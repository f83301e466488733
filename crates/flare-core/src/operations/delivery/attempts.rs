//! Attempts: the last ones of a subscription, and those that end now.

use flare_model::ids::{ResourceId, SubscriptionId};

use crate::observe::{AttemptDetail, AttemptView, Entry, Wanted, Watcher};
use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;

/// A part of the list.
pub struct AttemptPage {
    /// How many of those wanted are kept.
    pub total: u64,
    /// The part, the newest first.
    pub attempts: Vec<AttemptView>,
}

impl App {
    /// The last attempts of a subscription, the newest first.
    pub fn attempts(
        &self,
        resource: &ResourceId,
        id: &SubscriptionId,
        wanted: &Wanted,
        offset: usize,
        limit: usize,
    ) -> Done<AttemptPage> {
        let found = self.kept_attempts(resource, id, wanted)?;
        let page = found.iter().skip(offset).take(limit);
        let attempts = page.map(|entry| AttemptView::new(entry, &self.about.node)).collect();
        Ok(AttemptPage { total: found.len() as u64, attempts })
    }

    /// One of them, whole.
    pub fn attempt(&self, resource: &ResourceId, id: &SubscriptionId, attempt: &str) -> Done<AttemptDetail> {
        let found = self.kept_attempts(resource, id, &Wanted::default())?;
        let entry = found.iter().find(|entry| entry.id.to_string() == attempt);
        let entry = entry.ok_or_else(|| {
            Failure::NotFound(format!(
                "there is no attempt {attempt}; the last ones are kept, until a restart"
            ))
        })?;
        Ok(AttemptDetail::new(entry, &self.about.node))
    }

    fn kept_attempts(&self, resource: &ResourceId, id: &SubscriptionId, wanted: &Wanted) -> Done<Vec<Entry>> {
        let subscription = self.subscription(resource, id)?;
        Ok(self.journey.observe().attempts(subscription.number(), wanted, self.clock.now()))
    }

    /// Watches attempts as they end.
    pub fn watch_attempts(&self) -> Done<Watcher> {
        let most = self.config.delivery.attempts.watchers;
        let full = || Failure::TooMany(format!("{most} are watching already (delivery.attempts.watchers)"));
        self.journey.observe().watch().ok_or_else(full)
    }
}
