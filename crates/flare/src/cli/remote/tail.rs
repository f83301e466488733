//! In: `flare tail`. Out: a line for each notification, as it ends.

use serde_json::Value;

use super::client::Client;
use super::{Colour, Exit, Format, Output, TailArgs, encoded, text};

/// Prints notifications until the node stops or the reader has enough.
pub async fn run(client: &mut Client, which: &TailArgs, out: &mut Output) -> anyhow::Result<Exit> {
    let given =
        [("resource", &which.resource), ("subscription", &which.subscription), ("document", &which.document)];
    let query: Vec<String> = given
        .iter()
        .filter_map(|(name, value)| value.as_ref().map(|value| format!("{name}={}", encoded(value))))
        .collect();
    let mut lines = client.lines(&format!("/tail?{}", query.join("&"))).await?;
    while let Some(line) = lines.next().await? {
        if line["watching"] == true {
            // To the other stream: what comes out of this one is notifications.
            eprintln!("watching; interrupt to stop");
        } else if out.format == Format::Json {
            out.line(&line.to_string())?;
        } else {
            let words = words(&line, out);
            out.line(&words)?;
        }
    }
    eprintln!("the node has stopped");
    Ok(Exit::Done)
}

fn words(line: &Value, out: &Output) -> String {
    if let Some(skipped) = line["skipped"].as_u64() {
        return out.painted(&format!("{skipped} notifications came too fast to be shown"), Colour::Odd);
    }
    let outcome = text(line, "outcome");
    let colour = match outcome {
        "delivered" => Colour::Good,
        "discarded" => Colour::Odd,
        _ => Colour::Bad,
    };
    let answer = match (line["status"].as_u64(), line["error"].as_str()) {
        (Some(status), _) => status.to_string(),
        (None, Some(error)) => error.to_owned(),
        (None, None) => "no answer".to_owned(),
    };
    // The time of day is enough for someone who watches.
    let time = text(line, "beganAt").split('T').nth(1).unwrap_or_default();
    let revision = line["revision"].as_str().map_or_else(|| line["revision"].to_string(), str::to_owned);
    format!(
        "{time} {} {} {} revision {revision} to {}: {answer} in {} (attempt {})",
        out.painted(&format!("{outcome:<9}"), colour),
        text(line, "action"),
        text(line, "document"),
        text(line, "subscription"),
        text(&line["timing"], "total"),
        line["attempt"],
    )
}
