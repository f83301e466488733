//! What was done, in memory: the oldest first.

use async_trait::async_trait;
use flare_model::time::Timestamp;

use super::Engine;
use crate::acts::{Act, Acts, ActsPage, ListActs};
use crate::error::Result;

#[async_trait]
impl Acts for Engine {
    async fn append(&self, act: Act) -> Result<()> {
        self.durable("acts.append")?.acts.push_back(act);
        Ok(())
    }

    async fn list(&self, wanted: ListActs) -> Result<ActsPage> {
        let durable = self.durable("acts.list")?;
        let fits = |act: &&Act| {
            wanted.account.as_ref().is_none_or(|account| *account == act.account)
                && wanted.since.is_none_or(|since| act.at >= since)
        };
        let all = || durable.acts.iter().rev().filter(fits);
        let acts = all().skip(wanted.offset).take(wanted.limit).cloned().collect();
        Ok(ActsPage { total: all().count() as u64, acts })
    }

    async fn trim(&self, before: Timestamp, limit: usize) -> Result<u64> {
        let acts = &mut self.durable("acts.trim")?.acts;
        let old = acts.iter().take(limit).take_while(|act| act.at < before).count();
        acts.drain(..old);
        Ok(old as u64)
    }
}
