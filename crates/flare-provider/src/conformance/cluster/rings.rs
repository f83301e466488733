//! Behaviours of doorbells: a ring may be lost, and whoever goes on listening hears later ones.

use std::time::Duration;

use flare_model::ids::{LaneId, ResourceNumber, Seq};

use super::Gathering;
use super::fixture::*;
use crate::doorbell::{Doorbell, Heard, Listener, Ring};

fn lane(resource: u64, index: u8, head: u64) -> Ring {
    Ring::Lane { lane: LaneId { resource: ResourceNumber(resource), index }, head: Seq(head) }
}

/// Rings until it is heard: each ring may be lost, all of them may not.
async fn until_heard(doorbell: &dyn Doorbell, listener: &mut Box<dyn Listener>, ring: Ring) {
    let rings = async {
        loop {
            doorbell.ring(&[ring]).await.expect("it is rung");
            let heard = async {
                loop {
                    match listener.next().await.expect("it can be heard") {
                        Heard::Rings(rings) if rings.contains(&ring) => break,
                        _ => {}
                    }
                }
            };
            if tokio::time::timeout(Duration::from_secs(2), heard).await.is_ok() {
                break;
            }
        }
    };
    within(rings, "a ring is heard").await
}

/// As long as it listens.
pub async fn a_listener_hears_later_rings(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let mut listener = one.doorbell.listen().await.expect("it can be listened");
    for head in 1..20 {
        until_heard(&*other.doorbell, &mut listener, lane(7, 3, head)).await;
    }
}

/// Each for itself.
pub async fn all_who_listen_hear(gathering: &dyn Gathering) {
    let (one, two, three) = (gathering.join().await, gathering.join().await, gathering.join().await);
    let mut first = one.doorbell.listen().await.expect("it can be listened");
    let mut second = two.doorbell.listen().await.expect("it can be listened");
    until_heard(&*three.doorbell, &mut first, Ring::Catalog { version: 4 }).await;
    until_heard(&*three.doorbell, &mut second, Ring::Catalog { version: 4 }).await;
}

/// It knows already, and it does no harm.
pub async fn whoever_rings_hears_itself(gathering: &dyn Gathering) {
    let one = gathering.join().await;
    let mut listener = one.doorbell.listen().await.expect("it can be listened");
    until_heard(&*one.doorbell, &mut listener, lane(1, 0, 1)).await;
}

/// Up to the largest.
pub async fn numbers_of_rings_come_in_full(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let mut listener = one.doorbell.listen().await.expect("it can be listened");
    until_heard(&*other.doorbell, &mut listener, lane(u64::MAX >> 8, 255, u64::MAX)).await;
    until_heard(&*other.doorbell, &mut listener, Ring::Catalog { version: u64::MAX }).await;
}

/// Nobody has to.
pub async fn ringing_where_nobody_listens_is_fine(gathering: &dyn Gathering) {
    let one = gathering.join().await;
    one.doorbell.ring(&[lane(1, 0, 1)]).await.expect("it is rung");
    drop(one.doorbell.listen().await.expect("it can be listened"));
    one.doorbell.ring(&[]).await.expect("it is rung");
    one.doorbell.ring(&[lane(1, 0, 2)]).await.expect("it is rung");
}

/// It may have missed most of them; the newest is what counts, or the word that some are missing.
pub async fn a_listener_that_was_slow_hears_or_is_told(gathering: &dyn Gathering) {
    let (one, other) = (gathering.join().await, gathering.join().await);
    let mut listener = one.doorbell.listen().await.expect("it can be listened");
    for head in 1..=1100 {
        // A slow server is not asked a thousand times: by then it is shown.
        if tokio::time::timeout(PATIENCE / 10, other.doorbell.ring(&[lane(1, 0, head)])).await.is_err() {
            break;
        }
    }
    let heard = within(listener.next(), "it hears").await.expect("it can be heard");
    assert!(heard == Heard::Missed || matches!(heard, Heard::Rings(rings) if !rings.is_empty()));
    until_heard(&*other.doorbell, &mut listener, lane(1, 0, 5000)).await;
}
