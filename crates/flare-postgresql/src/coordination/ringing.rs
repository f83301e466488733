//! Ringing: rings come in from whoever commits, and are gathered; at most once in a while they go out in one statement, on a
//! connection that commits no documents. NOTIFY takes a lock of the whole server until it is committed, and a commit of documents that
//! waited for it would make all others wait: so it is never part of one, and needs no sync of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use flare_model::ids::{LaneId, Seq};
use flare_provider::Ring;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::engine::Runner;
use crate::pool::Borrowed;

/// Between two notifications at least.
const GAP: Duration = Duration::from_millis(10);

/// A payload is shorter than 8000 bytes, whatever the server's encoding.
const LONGEST: usize = 7000;

/// What is to be rung. Bound: the lanes that there are, each once with its newest head, and the catalog.
#[derive(Default)]
struct Gathered {
    lanes: BTreeMap<LaneId, Seq>,
    catalog: Option<u64>,
}

/// Gathers rings.
pub(super) struct Ringer {
    gathered: Arc<Mutex<Gathered>>,
    wake: Arc<Notify>,
}

impl Ringer {
    /// One, and what sends for it.
    pub fn new(runner: Runner, channel: Arc<str>) -> (Ringer, impl Future<Output = ()> + Send + 'static) {
        let (gathered, wake) = (Arc::<Mutex<Gathered>>::default(), Arc::new(Notify::new()));
        let sending = send(runner, channel, gathered.clone(), wake.clone());
        (Ringer { gathered, wake }, sending)
    }

    /// These are rung soon.
    pub fn ring(&self, rings: &[Ring]) {
        let mut gathered = self.gathered.lock();
        for ring in rings {
            match *ring {
                Ring::Lane { lane, head } => {
                    let known = gathered.lanes.entry(lane).or_default();
                    *known = head.max(*known);
                }
                Ring::Catalog { version } => gathered.catalog = gathered.catalog.max(Some(version)),
            }
        }
        drop(gathered);
        if !rings.is_empty() {
            self.wake.notify_one();
        }
    }
}

async fn send(runner: Runner, channel: Arc<str>, gathered: Arc<Mutex<Gathered>>, wake: Arc<Notify>) {
    loop {
        wake.notified().await;
        let payloads = write(&std::mem::take(&mut *gathered.lock()));
        let channel = channel.clone();
        let notify = move |session: Arc<Borrowed>| async move {
            let notify = session
                .prepare(
                    "SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, u.payload)
                     FROM unnest($2::text[]) u (payload)",
                )
                .await?;
            session.client.query(&notify, &[&&*channel, &payloads]).await?;
            Ok(())
        };
        // Who listens looks from time to time all the same, and the next ring says as much.
        if let Err(error) = runner.write("doorbell.ring", notify).await {
            tracing::debug!(error = %error, "a ring was lost");
        }
        tokio::time::sleep(GAP).await;
    }
}

/// Rings as payloads, each short enough: `l<lane>:<head>` and `c<version>`, in hexadecimal, with commas between.
fn write(gathered: &Gathered) -> Vec<String> {
    let lanes = gathered.lanes.iter().map(|(lane, head)| format!("l{:x}:{:x}", lane.packed(), head.0));
    let mut payloads: Vec<String> = Vec::new();
    for word in lanes.chain(gathered.catalog.map(|version| format!("c{version:x}"))) {
        match payloads.last_mut() {
            Some(payload) if payload.len() + word.len() < LONGEST => {
                payload.push(',');
                payload.push_str(&word);
            }
            _ => payloads.push(word),
        }
    }
    payloads
}

/// The reverse of it. `None`: a newer version of Flare wrote it, and it is as good as lost.
pub(super) fn read(payload: &str) -> Option<Vec<Ring>> {
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let ring = |word: &str| match word.split_at_checked(1)? {
        ("l", rest) => {
            let (lane, head) = rest.split_once(':')?;
            Some(Ring::Lane { lane: LaneId::unpacked(number(lane)?), head: Seq(number(head)?) })
        }
        ("c", version) => Some(Ring::Catalog { version: number(version)? }),
        _ => None,
    };
    payload.split(',').map(ring).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flare_model::ids::ResourceNumber;

    #[test]
    fn rings_are_gathered_and_come_back_in_payloads_that_fit() {
        let mut gathered = Gathered { catalog: Some(u64::MAX), ..Gathered::default() };
        for number in 0..1000 {
            let lane = LaneId { resource: ResourceNumber(number), index: 255 };
            gathered.lanes.insert(lane, Seq(u64::MAX - number));
        }
        let payloads = write(&gathered);
        assert!(payloads.len() > 1 && payloads.iter().all(|payload| payload.len() < 8000));
        let mut back = Gathered::default();
        for ring in payloads.iter().flat_map(|payload| read(payload).expect("it is our own")) {
            match ring {
                Ring::Lane { lane, head } => drop(back.lanes.insert(lane, head)),
                Ring::Catalog { version } => back.catalog = Some(version),
            }
        }
        assert_eq!((back.lanes, back.catalog), (gathered.lanes, gathered.catalog));
        for other in ["", "x1", "l1", "l1:x", "c", "c1,"] {
            assert_eq!(read(other), None, "{other}");
        }
    }
}
