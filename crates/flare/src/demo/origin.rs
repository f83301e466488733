//! In: what happens in the shop. Out: PUTs and DELETEs to Flare's API, so many a second, one after another.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::{Method, StatusCode};
use tokio_util::sync::CancellationToken;

use super::shop::{Change, Shop};
use super::world::World;
use crate::cli::remote::client::Client;

/// How often a change is sent twice, as a job of the shop that is run again would. Flare tells nobody of the second.
const SENT_TWICE: f64 = 0.03;

/// How long to wait after Flare did not answer, or said that it cannot now.
const PATIENCE: Duration = Duration::from_millis(200);

/// An origin that falls behind by more than this does not catch up in one burst.
const MOST_BEHIND: Duration = Duration::from_secs(1);

/// Tells Flare what happens in the shop, until `stop`.
pub async fn run(world: Arc<World>, mut api: Client, mut shop: Shop, rate: u32, stop: CancellationToken) {
    let step = Duration::from_secs(1) / rate;
    let mut due = world.elapsed();
    while !stop.is_cancelled() {
        let change = shop.next_change();
        world.say(&change);
        send(&world, &mut api, &change, &stop).await;
        if world.chance() < SENT_TWICE {
            send(&world, &mut api, &change, &stop).await;
        }
        due = (due + step).max(world.elapsed().saturating_sub(MOST_BEHIND));
        let pause = due.saturating_sub(world.elapsed());
        stop.run_until_cancelled(tokio::time::sleep(pause)).await;
    }
}

/// Sends a change until Flare has taken it, or does not want it.
async fn send(world: &World, api: &mut Client, change: &Change, stop: &CancellationToken) {
    let method = if change.document.is_some() { Method::PUT } else { Method::DELETE };
    let path = format!("/documents/{}", change.thing.url());
    loop {
        // Once begun it is finished: Flare takes what it has begun also while it stops.
        let answer = api.ask(&method, &path, change.document.as_ref()).await;
        match answer.as_ref().map(|answer| (answer.status, answer.headers.get("flare-outcome"))) {
            Ok((StatusCode::ACCEPTED, outcome)) => {
                let outcome = outcome.and_then(|outcome| outcome.to_str().ok());
                let counter = match outcome {
                    Some("created" | "updated" | "deleted") => &world.origin.changes,
                    _ => &world.origin.repeats,
                };
                counter.fetch_add(1, Ordering::Relaxed);
                return;
            }
            Ok((StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS, _)) | Err(_) => {
                if stop.run_until_cancelled(tokio::time::sleep(PATIENCE)).await.is_none() {
                    return;
                }
            }
            Ok(_) => {
                world.origin.refused.fetch_add(1, Ordering::Relaxed);
                return;
            }
        }
    }
}
