//! The same for a coordinator: calls meet what the plan has for them. What a watch says is the engine's own.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use super::{Plan, meet};
use crate::cluster::{Cluster, Entry, Granted, SessionId, Version, Watch};
use crate::error::Result;

/// A coordinator whose calls go by a plan.
pub struct FaultyCluster {
    inner: Arc<dyn Cluster>,
    plan: Plan,
}

impl FaultyCluster {
    /// Wraps a coordinator. The plan stays in the caller's hands too.
    pub fn new(inner: Arc<dyn Cluster>, plan: Plan) -> FaultyCluster {
        FaultyCluster { inner, plan }
    }
}

#[async_trait]
impl Cluster for FaultyCluster {
    async fn grant(&self, owner: &str, ttl: Duration) -> Result<Granted> {
        meet(&self.plan, "cluster.grant", self.inner.grant(owner, ttl)).await
    }

    async fn renew(&self, session: &SessionId, owner: &str) -> Result<Duration> {
        meet(&self.plan, "cluster.renew", self.inner.renew(session, owner)).await
    }

    async fn end(&self, session: &SessionId, owner: &str) -> Result<()> {
        meet(&self.plan, "cluster.end", self.inner.end(session, owner)).await
    }

    async fn left(&self, session: &SessionId) -> Result<Option<Duration>> {
        meet(&self.plan, "cluster.left", self.inner.left(session)).await
    }

    async fn put_if_absent(&self, key: &str, value: Bytes, session: Option<&SessionId>) -> Result<Version> {
        meet(&self.plan, "cluster.put_if_absent", self.inner.put_if_absent(key, value, session)).await
    }

    async fn put_if(&self, key: &str, version: Version, value: Bytes) -> Result<Version> {
        meet(&self.plan, "cluster.put_if", self.inner.put_if(key, version, value)).await
    }

    async fn delete_if(&self, key: &str, version: Version) -> Result<()> {
        meet(&self.plan, "cluster.delete_if", self.inner.delete_if(key, version)).await
    }

    async fn list(&self, prefix: &str) -> Result<Vec<Entry>> {
        meet(&self.plan, "cluster.list", self.inner.list(prefix)).await
    }

    async fn watch(&self, prefix: &str) -> Result<Box<dyn Watch>> {
        meet(&self.plan, "cluster.watch", self.inner.watch(prefix)).await
    }
}
