//! The configuration of a schedule, drawn from its seed: limits so small that every one of them is met.

use std::time::Duration;

use flare_core::config::{ByteSize, Config, Sources, load};
use flare_promises::dice::Dice;

/// What a node is started with.
#[derive(Clone)]
pub struct Limits {
    pub config: Config,
    /// Delivery threads.
    pub threads: usize,
}

impl Limits {
    pub fn draw(dice: &mut Dice) -> Limits {
        let mut config = defaults();
        let delivery = &mut config.delivery;
        delivery.record_interval = millis(*dice.pick(&[0, 0, 1, 20, 100]));
        delivery.window = *dice.pick(&[1, 2, 4, 16, 4096]);
        delivery.waiting_limit = *dice.pick(&[1, 2, 4, 16, 1024]);
        delivery.issue_block = *dice.pick(&[1, 2, 8, 64, 4096]);
        delivery.page_rows = *dice.pick(&[1, 2, 7, 256]);
        // So little that feeds which are behind read the store.
        delivery.tail_bytes = ByteSize::bytes(*dice.pick(&[1, 600, 2_000, 1 << 20]));
        delivery.page_bytes = ByteSize::bytes(*dice.pick(&[1, 2_000, 1 << 20]));
        delivery.state_bytes = ByteSize::bytes(*dice.pick(&[1, 2_000, 1 << 20]));
        delivery.state_limit = ByteSize::bytes(*dice.pick(&[300, 1 << 18, 1 << 18]));
        delivery.breaker.failures = *dice.pick(&[0, 2, 10]);
        delivery.breaker.pause = millis(500);
        delivery.breaker.longest_pause = millis(*dice.pick(&[1_000, 5_000]));
        delivery.passive.maximum_lease = millis(5_000);
        delivery.passive.default_lease = millis(5_000);
        delivery.passive.waiters = *dice.pick(&[1, 64]);
        // So little that what is deleted is soon forgotten, or so much that it never is.
        let retention = &mut config.domain.retention;
        retention.tombstones =
            *dice.pick(&[millis(500), millis(5_000), retention.tombstones, retention.tombstones]);
        let client = &mut config.http.client;
        client.connections = *dice.pick(&[1, 2, 8, 1024]);
        client.connections_per_host = *dice.pick(&[1, 2, 64]);
        let threads = *dice.pick(&[1, 2, 3]);
        Limits { config, threads }
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What is so where nobody says otherwise, over a store in memory.
fn defaults() -> Config {
    // The key is given: what one node has sealed the next one opens.
    let environment = vec![
        ("FLARE_AUTH_SECRET_KEY".into(), "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=".into()),
        ("FLARE_PROVIDER_STORE".into(), "memory".into()),
    ];
    let sources = Sources { directory: "/nonexistent".into(), environment, ..Sources::default() };
    load(&sources).expect("the defaults are right").config
}
