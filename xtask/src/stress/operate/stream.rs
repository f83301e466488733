//! A client that takes notifications as they come, over Server-Sent Events.

use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::AsyncReadExt;

use super::passive::{self, Message};
use crate::bench::find;
use crate::stress::api::Ask;
use crate::stress::dice::Dice;
use crate::stress::stage::Stage;

/// Listens for a while, uses up what came, and leaves.
pub async fn stream(
    stage: &Stage,
    number: usize,
    quantity: u64,
    lease: u64,
    dice: &mut Dice,
) -> anyhow::Result<()> {
    let listen = Duration::from_millis(dice.between(5, 60));
    if let Some(path) = stage.path(number) {
        let ask = Ask::get(format!("{path}/stream?quantity={quantity}&lease={lease}ms"));
        let until = Instant::now() + Duration::from_millis(lease);
        let messages = listen_to(stage, number, &ask, listen, until).await;
        passive::use_up(stage, number, messages, dice).await;
        // What was sent and not read any more is out, and nobody knows what it is.
        let now = stage.shared.world().now();
        stage.shared.clients().list[number].blur(now);
    }
    stage.subscriptions()[number].pulling = false;
    Ok(())
}

/// What comes in this time. `until`: leases end after this.
async fn listen_to(stage: &Stage, number: usize, ask: &Ask, time: Duration, until: Instant) -> Vec<Message> {
    let (mut text, mut messages) = (Vec::new(), Vec::new());
    let Ok(mut stream) = stage.api.open(ask).await else { return messages };
    let over = Instant::now() + time;
    loop {
        while let Some(end) = find(&text, b"\n\n") {
            let event: Vec<u8> = text.drain(..end + 2).collect();
            messages.extend(message(stage, number, &event, until));
        }
        let left = over.saturating_duration_since(Instant::now());
        match tokio::time::timeout(left, stream.read_buf(&mut text)).await {
            Ok(Ok(read)) if read > 0 => {}
            _ => return messages,
        }
    }
}

/// The message of an event; the head of the answer, chunk sizes and comments have none.
fn message(stage: &Stage, number: usize, event: &[u8], until: Instant) -> Option<Message> {
    let text = String::from_utf8_lossy(event);
    let data = text.lines().find_map(|line| line.strip_prefix("data: "))?;
    let json: Value = serde_json::from_str(data).ok()?;
    passive::begin(stage, number, &json, until)
}
