//! A watch: woken when the number of all changes has moved, it compares the state of its own keys with the one it told of last.

use std::sync::Arc;

use flare_provider::{Result, Seen};
use tokio::sync::watch::Receiver;

use super::Place;
use super::keys::{self, State};
use crate::engine::Runner;
use crate::error;
use crate::pool::Borrowed;

const OPERATION: &str = "cluster.watch";

/// What is watched, and what of it was told.
pub(super) struct Watching {
    runner: Runner,
    cluster: Arc<str>,
    prefix: Arc<str>,
    numbers: Receiver<u64>,
    /// The number at which it was last looked.
    looked: Option<u64>,
    told: State,
}

impl Watching {
    /// From now on.
    pub async fn begin(
        runner: Runner,
        place: &Place,
        prefix: &str,
        numbers: Receiver<u64>,
    ) -> Result<Watching> {
        let (cluster, prefix) = (place.cluster.clone(), Arc::from(prefix));
        let told = state(&runner, &cluster, &prefix).await?;
        Ok(Watching { runner, cluster, prefix, numbers, looked: None, told })
    }

    /// Waits for a change. What it knows changes only when it says so, so that a call that is dropped loses nothing.
    pub async fn next(&mut self) -> Result<Seen> {
        loop {
            let number = *self.numbers.borrow_and_update();
            if self.looked != Some(number) {
                let now = state(&self.runner, &self.cluster, &self.prefix).await?;
                self.looked = Some(number);
                if now != self.told {
                    self.told = now;
                    return Ok(Seen::Changed);
                }
            }
            // Whatever came since then is another number.
            if self.numbers.changed().await.is_err() {
                return Err(error::closed(OPERATION));
            }
        }
    }
}

async fn state(runner: &Runner, cluster: &Arc<str>, prefix: &Arc<str>) -> Result<State> {
    let (cluster, prefix) = (cluster.clone(), prefix.clone());
    let read = move |session: Arc<Borrowed>| async move { keys::state(&session, &cluster, &prefix).await };
    runner.read(OPERATION, read).await
}
