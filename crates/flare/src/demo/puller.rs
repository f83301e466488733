//! In: a passive subscription. Out: a client that asks for what there is, works on it, and says how it went.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::receiver::notification;
use super::role::Role;
use super::thing::Thing;
use super::world::World;
use crate::cli::remote::client::Client;

/// How often it gives something back instead of working on it.
const GIVEN_BACK: f64 = 0.05;

/// How long it works on what it got.
const WORK: Duration = Duration::from_millis(100);

/// How long it waits after Flare did not answer, or has no such subscription any more.
const PATIENCE: Duration = Duration::from_millis(500);

/// Reserves and settles until `stop`.
pub async fn run(world: Arc<World>, mut api: Client, subscription: String, stop: CancellationToken) {
    let reserve = format!("{subscription}/reserve?quantity=5&wait=5s&lease=10s");
    let settle = format!("{subscription}/settle");
    while !stop.is_cancelled() {
        // A reservation that waits is answered at once when the node stops.
        let Ok(reserved) = api.post(&reserve, &Value::Null).await else {
            stop.run_until_cancelled(tokio::time::sleep(PATIENCE)).await;
            continue;
        };
        let messages = reserved["messages"].as_array().map_or(&[][..], Vec::as_slice);
        if messages.is_empty() {
            continue;
        }
        tokio::time::sleep(WORK).await;
        let settled: Vec<Value> = messages.iter().map(|message| decide(&world, message)).collect();
        // Where this is lost, the leases end by themselves and everything comes again.
        let _ = api.post(&settle, &json!({ "messages": settled })).await;
    }
}

fn decide(world: &World, message: &Value) -> Value {
    let lease = &message["lease"];
    if world.chance() < GIVEN_BACK {
        let thing = message["document"].as_str().and_then(Thing::of_url);
        world.refuse(Role::Passive, "gave back", thing);
        return json!({"lease": lease, "status": "release", "delay": "500ms"});
    }
    let sequence = message["headers"]["flare-sequence"][0].as_str().unwrap_or_default();
    if let Some(notification) = notification(sequence, &message["body"]) {
        world.tell(Role::Passive, notification);
    }
    json!({"lease": lease, "status": "success"})
}
