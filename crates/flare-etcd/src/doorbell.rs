//! The doorbell: one key that is put again and again, and whose revisions all who listen are shown. It costs etcd a write each, so whoever rings
//! gathers first; and etcd should compact its history, as it does where `--auto-compaction-retention` is set.

use async_trait::async_trait;
use flare_provider::coding::rings::{read, write};
use flare_provider::{Doorbell, Heard, Listener, Result, Ring};
use serde_json::{Value, json};

use crate::Etcd;
use crate::answer::encoded;
use crate::follow::{Followed, Follower};
use crate::gateway::Effect;

impl Etcd {
    fn bell(&self) -> String {
        format!("{}bell", self.gateway.config().prefix)
    }
}

#[async_trait]
impl Doorbell for Etcd {
    async fn ring(&self, rings: &[Ring]) -> Result<()> {
        let operation = "doorbell.ring";
        let put = json!({"key": encoded(self.bell()), "value": encoded(write(rings))});
        let answer = self.gateway.call::<Value>(operation, "/v3/kv/put", &put, Effect::Writes).await;
        answer.map(drop).map_err(|failure| failure.into_error(operation))
    }

    async fn listen(&self) -> Result<Box<dyn Listener>> {
        let key = self.bell().into_bytes();
        let mut end = key.clone();
        end.push(0);
        Ok(Box::new(EtcdListener(Follower::begin(self.gateway.clone(), "doorbell.listen", key, end).await?)))
    }
}

struct EtcdListener(Follower);

#[async_trait]
impl Listener for EtcdListener {
    async fn next(&mut self) -> Result<Heard> {
        match self.0.next().await? {
            Followed::Compacted => Ok(Heard::Missed),
            Followed::Values(values) => {
                let read: Option<Vec<Vec<Ring>>> = values.iter().map(|value| read(value)).collect();
                Ok(read.map_or(Heard::Missed, |rings| Heard::Rings(rings.concat())))
            }
        }
    }
}
