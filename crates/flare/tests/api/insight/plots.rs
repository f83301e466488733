//! What happened lately, as the plots show it: rates, percentiles, and how everything stands.

use serde_json::{Value, json};

use crate::support::{Flare, Receiver, Reply, Request, Setup, Story, document_url, until};

async fn points(story: &Story) -> Vec<Value> {
    let history = story.api().get("/metrics/history?last=5m").await.expect(200).json();
    assert_eq!(history["step"], "1s", "{history}");
    history["points"].as_array().unwrap().clone()
}

/// What a plot of a rate has below it: how many there were.
fn area(points: &[Value], rate: &str) -> f64 {
    let of = |point: &Value| point[rate].as_f64().unwrap() * point["seconds"].as_f64().unwrap();
    points.iter().map(of).sum()
}

#[tokio::test]
async fn the_plots_move_with_the_traffic() {
    let answer =
        |request: &Request| Reply::Status(if request.document().ends_with("/bad") { 500 } else { 200 });
    let story = Story::told(Receiver::answering(answer).await).await;
    let subscription = story.subscribe_simply(json!({"retry": {"interval": "1h"}})).await;
    // The first sample has none before it to compare with: what happens before that is in no point.
    until("sampling has begun", async || (!points(&story).await.is_empty()).then_some(())).await;
    for revision in 1..=20 {
        story.put("good", revision).await;
        story.put("same", 1).await;
    }
    let elsewhere = story.api().send("PUT", "/documents/http://elsewhere.test/1", &[], r#"{"rev":1}"#).await;
    elsewhere.expect(404);
    story.settled(&subscription).await;
    story.put("bad", 1).await;
    story.until_status(&subscription, "it failed", |status| status["failed"] == 1).await;

    let told = story.status(&subscription).await["delivered"].as_f64().unwrap();
    let seen = until("all of it is in the plots", async || {
        let seen = points(&story).await;
        // How everything stands was looked at a moment before the rest was counted.
        let stands = seen.last().is_some_and(|point| point["gauges"]["backlog"] == 1);
        (stands && area(&seen, "failed") > 0.5).then_some(seen)
    })
    .await;
    for (rate, expected) in [
        ("accepted", 22.0),
        ("unchanged", 19.0),
        ("refused", 1.0),
        ("delivered", told),
        ("failed", 1.0),
        ("givenUp", 0.0),
    ] {
        assert!((area(&seen, rate) - expected).abs() < 0.01, "{rate} is not {expected}: {seen:?}");
    }
    for times in ["latency", "attempt", "commit"] {
        // A change may be committed in one second and delivered in the next.
        let busy = seen.iter().rfind(|point| point[times].is_object()).expect("a point with some of them");
        let of = |percentile: &str| busy[times][percentile].as_f64().unwrap();
        assert!(0.0 < of("p50") && of("p50") <= of("p95") && of("p95") <= of("p99"), "{times}: {busy}");
        assert!(of("p99") < 30.0, "{times}: {busy}");
    }
    let last = &seen.last().unwrap()["gauges"];
    assert_eq!((&last["subscriptions"]["active"], &last["hosts"]), (&1.into(), &1.into()), "{last}");
    assert_eq!(
        (&last["backlog"], &last["waiting"], &last["lagging"]),
        (&1.into(), &1.into(), &1.into()),
        "{last}"
    );
    assert_eq!(story.put("good", 20).await, "unchanged", "{}", document_url("good"));
}

#[tokio::test]
async fn a_span_that_cannot_be_read_is_named() {
    let flare = Flare::start().await;
    flare.api().get("/metrics/history?last=soon").await.refused(400, &["last", "soon"]);
    flare.api().get("/metrics/history?first=1h").await.refused(400, &["first", "known are last"]);
    let day = flare.api().get("/metrics/history?last=240h").await.expect(200).json();
    assert_eq!(day["step"], "2m", "a longer time than is kept has the coarsest points");
}

#[tokio::test]
async fn how_fine_the_history_is_and_how_far_back_it_goes_is_configured() {
    let setup = Setup::default()
        .with("FLARE_HISTORY_FINE_STEP", "200ms")
        .with("FLARE_HISTORY_FINE", "10s")
        .with("FLARE_HISTORY_MEDIUM_STEP", "3s")
        .with("FLARE_HISTORY_MEDIUM", "1m")
        .with("FLARE_HISTORY_COARSE_STEP", "10m")
        .with("FLARE_HISTORY_COARSE", "720h");
    let flare = setup.start().await;
    for (last, step) in [("10s", "200ms"), ("11s", "3s"), ("1m", "3s"), ("61s", "10m"), ("9000h", "10m")] {
        let history = flare.api().get(&format!("/metrics/history?last={last}")).await.expect(200).json();
        assert_eq!(history["step"], step, "{last}");
    }
    until("points come in their steps", async || {
        let history = flare.api().get("/metrics/history?last=10s").await.expect(200).json();
        (history["points"].as_array().unwrap().len() >= 3).then_some(())
    })
    .await;
    // The dashboard offers what there is.
    let offers = async |flare: &Flare, range: &str| {
        let page = flare.api().get("/ui").await.expect(200);
        String::from_utf8(page.body.to_vec()).unwrap().contains(&format!("range={range}\""))
    };
    assert!(offers(&flare, "24h").await && offers(&flare, "30d").await);
    let usual = Flare::start().await;
    assert!(offers(&usual, "24h").await && !offers(&usual, "7d").await);
}
