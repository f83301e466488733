//! schemathesis makes requests up from the description, good and bad ones, and compares the answers with it. What it is
//! told to leave alone, and why, is in `schemathesis.toml`.

use super::world::World;
use crate::support::schemathesis;

/// Drives a world, and insists that nothing is found.
fn drive(world: &World, words: &[&str], nodes: &str) {
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
        ("FLARE_NODES", nodes),
    ];
    let url = format!("http://{}/openapi.json", world.flare.addr());
    let Some((success, output)) = schemathesis(folder, &url, words, &variables) else { return };
    assert!(success, "{output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_nothing() {
    drive(&World::begin().await, &[], "");
}

/// Each request goes to the next node, and so most to one that has to ask another. Fewer examples than on one node: what is new is
/// who answers, not what is asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis_finds_nothing_on_a_cluster_of_three() {
    let Some(world) = World::of_three().await else { return };
    let nodes = [&world.flare].into_iter().chain(&world.others);
    let nodes: Vec<String> = nodes.map(|node| node.addr().to_string()).collect();
    // What one node has deleted another hears of a moment later.
    let words = ["--max-examples", "5", "--exclude-checks", "use_after_free"];
    drive(&world, &words, &nodes.join(" "));
}
