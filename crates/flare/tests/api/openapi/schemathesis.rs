//! schemathesis makes requests up from the description, good and bad ones, and compares the answers with it. What it is
//! told to leave alone, and why, is in `schemathesis.toml`.

use super::world::World;
use crate::support::schemathesis;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_nothing() {
    let world = World::begin().await;
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/openapi");
    let variables = [
        ("FLARE_RESOURCE", world.resource.as_str()),
        ("FLARE_DOOMED_RESOURCE", &world.doomed_resource),
        ("FLARE_TOLD", &world.told),
        ("FLARE_ASKING", &world.asking),
        ("FLARE_STREAMING", &world.streaming),
        ("FLARE_DOOMED", &world.doomed),
        ("FLARE_ATTEMPT", &world.attempt),
        ("FLARE_REPLAY", &world.replay),
    ];
    let url = format!("http://{}/openapi.json", world.flare.addr());
    let Some((success, output)) = schemathesis(folder, &url, &variables) else { return };
    assert!(success, "{output}");
}
