//! Consumers that sources need, and consumers of ours that no source reads by. They are named `<stream>/<durable>` in plans.

use flare_model::bridge;
use flare_provider::bridge::{BridgeError, BridgeErrorKind, BridgeResult};
use flare_provider::upkeep::{Action, Change};
use serde_json::Value;

use crate::Nats;
use crate::api::{ApiError, Lacks, ask, list, result};
use crate::consumer::{Begin, Wanted, mark};

fn wanted(nats: &Nats, sources: &[(String, bridge::Source)]) -> Vec<(String, Wanted)> {
    let ours = sources.iter().filter_map(|(consumer, source)| match source {
        bridge::Source::Nats(settings) => Some((consumer.clone(), nats.consumer(consumer, settings))),
        _ => None,
    });
    ours.collect()
}

fn name(wanted: &Wanted) -> String {
    format!("{}/{}", wanted.stream, wanted.durable)
}

/// Consumers that are not there; their streams are others' and are not made.
pub async fn missing(nats: &Nats, sources: &[(String, bridge::Source)]) -> BridgeResult<Vec<Change>> {
    let wanted = wanted(nats, sources);
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let client = nats.link.client().await?;
    let mut changes = Vec::new();
    for (consumer, wanted) in wanted {
        match wanted.info(&client).await {
            Ok(_) | Err(ApiError::Lacks(Lacks::Stream, _)) => {}
            Err(ApiError::Lacks(Lacks::Consumer, _)) => changes.push(Change {
                action: Action::Create,
                kind: "consumer",
                name: name(&wanted),
                detail: format!("a durable consumer, by which consumer {consumer} reads"),
            }),
            Err(error) => return Err(error.into()),
        }
    }
    Ok(changes)
}

/// Consumers with our mark by which no source reads.
pub async fn left_over(nats: &Nats, sources: &[(String, bridge::Source)]) -> BridgeResult<Vec<Change>> {
    let used: Vec<String> = wanted(nats, sources).iter().map(|(_, wanted)| name(wanted)).collect();
    let client = nats.link.client().await?;
    let mark = mark(&nats.owner);
    let mut changes = Vec::new();
    for stream in result(list(&client, "STREAM.NAMES", "streams").await)? {
        let Some(stream) = stream.as_str() else { continue };
        for consumer in result(list(&client, &format!("CONSUMER.LIST.{stream}"), "consumers").await)? {
            let name = format!("{stream}/{}", consumer["name"].as_str().unwrap_or_default());
            if consumer["config"]["description"] == mark.as_str() && !used.contains(&name) {
                let detail = format!("made for \"{}\", and no consumer reads by it", nats.owner);
                changes.push(Change { action: Action::Delete, kind: "consumer", name, detail });
            }
        }
    }
    Ok(changes)
}

/// Does one change of a plan.
pub async fn apply(nats: &Nats, sources: &[(String, bridge::Source)], change: &Change) -> BridgeResult<()> {
    let refused = |words: String| Err(BridgeError::new(BridgeErrorKind::Refused, words));
    let Some((stream, durable)) = change.name.split_once('/').filter(|_| change.kind == "consumer") else {
        return refused(format!("NATS has no {} \"{}\" to change", change.kind, change.name));
    };
    let client = nats.link.client().await?;
    match change.action {
        Action::Create => {
            let wanted = wanted(nats, sources).into_iter().find(|(_, wanted)| name(wanted) == change.name);
            match wanted {
                Some((_, wanted)) => wanted.provide(&client, Begin::AsSet).await,
                None => refused(format!("no consumer reads by \"{}\"", change.name)),
            }
        }
        Action::Update => refused(format!("\"{}\" is nothing that is changed", change.name)),
        Action::Delete => {
            let info = ask(&client, &format!("CONSUMER.INFO.{stream}.{durable}"), &Value::Null).await;
            match info {
                Err(ApiError::Lacks(..)) => return Ok(()),
                Ok(info) if info["config"]["description"] != mark(&nats.owner).as_str() => {
                    return refused(format!(
                        "\"{}\" does not carry the mark of \"{}\"",
                        change.name, nats.owner
                    ));
                }
                other => result(other)?,
            };
            let gone = ask(&client, &format!("CONSUMER.DELETE.{stream}.{durable}"), &Value::Null).await;
            match gone {
                Err(ApiError::Lacks(..)) => Ok(()),
                other => result(other).map(drop),
            }
        }
    }
}
