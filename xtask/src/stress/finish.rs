//! The end of a run: clients become healthy, everything that stands still goes on, what was given up is replayed; then
//! everything has to come to rest within a bounded time.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::api::Ask;
use super::mood::Mood;
use super::operate;
use super::stage::Stage;

/// A client that failed is asked again after gaps that grow with the time for which it failed: a few seconds here.
const PATIENCE: Duration = Duration::from_secs(20);

/// Subscriptions that are there, with their paths.
pub fn there(stage: &Stage) -> Vec<(usize, String)> {
    let subscriptions = stage.subscriptions();
    let all = subscriptions.iter().enumerate().filter(|(_, one)| one.id.is_some());
    all.map(|(number, one)| (number, one.path.clone())).collect()
}

pub async fn status(stage: &Stage, path: &str) -> anyhow::Result<Value> {
    let (answer, _) = stage.api.send(&Ask::get(format!("{path}/status"))).await?;
    anyhow::ensure!(answer.status == 200, "GET {path}/status: {} {}", answer.status, answer.text());
    Ok(answer.json())
}

/// Everybody is well again.
pub async fn heal(stage: &Stage) -> anyhow::Result<()> {
    for client in &mut stage.shared.clients().list {
        client.mood = Mood::Healthy;
    }
    for (number, path) in there(stage) {
        let passive = stage.subscriptions()[number].wish.passive;
        if passive {
            let patch = json!({"mode": "active"});
            let (answer, _) = stage.api.send(&Ask::new("PATCH", &path, &patch)).await?;
            if answer.status != 200 {
                stage.wrong(
                    number,
                    "",
                    format!("turning active was answered {}: {}", answer.status, answer.text()),
                );
            }
            stage.subscriptions()[number].wish.passive = false;
        }
        operate::resume(stage, number, None).await?;
    }
    Ok(())
}

/// Waits until nothing is owed to anybody. What still is when the time is over is wrong.
pub async fn settle(stage: &Stage) -> anyhow::Result<()> {
    let began = Instant::now();
    for (number, path) in there(stage) {
        loop {
            let status = status(stage, &path).await?;
            let feed = &status["feed"];
            let count = |name: &str| feed[name].as_u64().unwrap_or(u64::MAX);
            let quiet = count("lagging") == 0 && count("waiting") == 0 && count("inFlight") == 0;
            let at_rest = quiet && feed["sweep"].is_null();
            if at_rest && count("deadLetters") == 0 && status["status"] == "active" {
                break;
            }
            if began.elapsed() > PATIENCE {
                stage.wrong(number, "", format!("it does not come to rest: {status}"));
                break;
            }
            if status["status"] == "disabled" {
                operate::resume(stage, number, None).await?;
            }
            if at_rest && count("deadLetters") > 0 {
                operate::replay(stage, number, "deadLetters", None, None).await?;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    Ok(())
}
