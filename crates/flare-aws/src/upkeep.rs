//! What consumers need and lack, and what was made for consumers that are gone: sources come in, plans go out, and what a plan
//! says is done. Only what carries the mark is ever removed, and that is looked at once more right before.

use std::collections::BTreeSet;

use flare_model::bridge;
use flare_provider::bridge::{BridgeError, BridgeErrorKind, BridgeResult};
use flare_provider::upkeep::{Action, Change};

use crate::transport::Service;
use crate::{Aws, kinesis, sqs};

const QUEUE: &str = "queue";

const STREAM: &str = "stream";

/// What `create: true` asks for and is not there.
pub async fn missing(aws: &Aws, sources: &[(String, bridge::Source)]) -> BridgeResult<Vec<Change>> {
    let mut changes = Vec::new();
    for (consumer, source) in sources {
        let (kind, name, exists) = match source {
            bridge::Source::Sqs(settings) if settings.create => {
                let queue = aws.queue(&settings.queue)?;
                (QUEUE, queue.name().to_owned(), queue.exists().await?)
            }
            bridge::Source::Kinesis(settings) if settings.create => {
                (STREAM, settings.stream.clone(), aws.stream(&settings.stream)?.status().await?.is_some())
            }
            _ => continue,
        };
        let change =
            Change { action: Action::Create, kind, name, detail: format!("consumer {consumer} reads it") };
        // Two consumers may read one queue.
        if !exists && !changes.iter().any(|known: &Change| (known.kind, &known.name) == (kind, &change.name))
        {
            changes.push(change);
        }
    }
    Ok(changes)
}

/// What carries the mark and is read by none of these.
pub async fn left_over(aws: &Aws, sources: &[(String, bridge::Source)]) -> BridgeResult<Vec<Change>> {
    if !aws.is_placed() {
        return Ok(Vec::new());
    }
    // Whoever has no credentials may not look, and need not be asked again.
    aws.shared.keys.get().await.map_err(|why| crate::refused(&why))?;
    let read: BTreeSet<(&str, &str)> = sources.iter().filter_map(|(_, source)| named(source)).collect();
    let mark = &aws.shared.mark;
    let (queues, streams) = (aws.client(Service::Sqs, None)?, aws.client(Service::Kinesis, None)?);
    let queues = sqs::marked(&queues, mark).await?;
    let streams = kinesis::marked(&streams, mark).await?;
    let found = queues.into_iter().map(|name| (QUEUE, name));
    let found = found.chain(streams.into_iter().map(|name| (STREAM, name)));
    let left = found.filter(|(kind, name)| !read.contains(&(*kind, name.as_str())));
    let detail = format!("made by {}, and no consumer reads it", aws.shared.config.owner);
    Ok(left
        .map(|(kind, name)| Change { action: Action::Delete, kind, name, detail: detail.clone() })
        .collect())
}

/// Does one change.
pub async fn apply(aws: &Aws, sources: &[(String, bridge::Source)], change: &Change) -> BridgeResult<()> {
    let mark = &aws.shared.mark;
    let for_whom = sources.iter().find(|(_, source)| named(source) == Some((change.kind, &change.name)));
    match (change.action, change.kind, for_whom) {
        (Action::Create, QUEUE, Some((consumer, bridge::Source::Sqs(settings)))) => {
            aws.queue(&settings.queue)?.create(settings.visibility, &mark.tags(consumer)).await
        }
        (Action::Create, STREAM, Some((consumer, bridge::Source::Kinesis(settings)))) => {
            aws.stream(&settings.stream)?.create(&mark.tags(consumer)).await
        }
        (Action::Delete, QUEUE, None) => aws.queue(&change.name)?.delete(mark).await,
        (Action::Delete, STREAM, None) => aws.stream(&change.name)?.delete(mark).await,
        _ => Err(BridgeError::new(
            BridgeErrorKind::Refused,
            format!(
                "the {} {} is not what it was when the plan was made; plan again",
                change.kind, change.name
            ),
        )),
    }
}

/// What a source reads: the kind of thing and its name.
fn named(source: &bridge::Source) -> Option<(&'static str, &str)> {
    match source {
        bridge::Source::Sqs(settings) => Some((QUEUE, sqs::name_of(&settings.queue))),
        bridge::Source::Kinesis(settings) => Some((STREAM, &settings.stream)),
        _ => None,
    }
}
