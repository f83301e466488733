//! Retry policies: a draft comes in, what it plans goes out, before anyone saves it.

use flare_model::invalid::Invalid;
use flare_model::retry::{Plan, RetryDraft, RetryPolicy};

use crate::operations::App;
use crate::operations::Done;

impl App {
    /// The first `shown` attempts that a policy plans, and how it ends. Mistakes are named as in a subscription.
    pub fn plan_retries(&self, draft: RetryDraft, shown: usize) -> Done<Plan> {
        let policy = RetryPolicy::from(draft);
        policy.validate().map_err(|error| Invalid::new("delivery.retry", error))?;
        Ok(policy.plan(shown))
    }
}
