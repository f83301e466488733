//! A collector that takes one signal and not the other: each goes its own way.

use serde_json::{Value, json};

use crate::support::{Collector, Receiver, Setup, Story, until};

#[tokio::test]
async fn metrics_go_on_while_traces_are_put_off_and_traces_soon_after() {
    for protocol in ["grpc", "http/protobuf"] {
        let Some(mut collector) = Collector::start(protocol).await else { return };
        collector.mode("no-traces").await;
        let setup = Setup::default()
            .with("FLARE_TELEMETRY_ENDPOINT", &collector.endpoint())
            .with("FLARE_TELEMETRY_PROTOCOL", collector.protocol())
            .with("FLARE_TELEMETRY_TRACES_INTERVAL", "20ms")
            .with("FLARE_TELEMETRY_METRICS_INTERVAL", "50ms");
        let story = Story::with(setup, Receiver::start().await).await;
        story.put(1, 1).await;
        let telemetry = || async { story.api().get("/status").await.expect(200).json()["telemetry"].clone() };
        let until_telemetry = async |what: &str, holds: &dyn Fn(&Value) -> bool| {
            until(what, || async { Some(telemetry().await).filter(|seen| holds(seen)) }).await
        };
        let seen = until_telemetry("traces are put off", &|seen| seen["failing"].is_string()).await;
        let before = seen["metricsExported"].as_u64().expect("a number");
        // More than one export that may have been under way; between two attempts of the traces there are seconds.
        let more = |seen: &Value| seen["metricsExported"].as_u64() >= Some(before + 20);
        let seen = until_telemetry("metrics go on", &more).await;
        assert_eq!((&seen["spansExported"], &seen["metricsFailing"]), (&json!(0), &Value::Null), "{seen}");
        collector.mode("take").await;
        collector.spans(2).await;
        until_telemetry("that is over, too", &|seen| seen["failing"].is_null()).await;
    }
}
