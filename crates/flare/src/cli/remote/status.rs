//! In: `flare status`. Out: how a node is, and the subscriptions that fail, stand still or lag.

use serde_json::{Value, json};

use super::client::Client;
use super::{Colour, Exit, Format, Output, text};

/// Subscriptions asked for at once.
const PAGE: usize = 100;

/// Subscriptions in the table, at most; the rest is counted.
const SHOWN: usize = 50;

/// Prints how a node is.
pub async fn run(client: &mut Client, out: &mut Output) -> anyhow::Result<Exit> {
    let node = client.get("/status").await?;
    let mut wanting = Vec::new();
    let (mut offset, mut bad) = (0, false);
    loop {
        let page = client.get(&format!("/subscriptions?limit={PAGE}&offset={offset}")).await?;
        let entries = page["subscriptions"].as_array().cloned().unwrap_or_default();
        let total = page["pagination"]["total"].as_u64().unwrap_or(0) as usize;
        offset += page["pagination"]["limit"].as_u64().unwrap_or(PAGE as u64).max(1) as usize;
        bad |= entries.iter().any(|entry| matches!(text(entry, "status"), "failing" | "disabled"));
        wanting.extend(entries.into_iter().filter(needs_attention));
        if offset >= total {
            break;
        }
    }
    match out.format {
        Format::Json => out.json(&json!({"node": node, "attention": wanting}))?,
        Format::Human => print(&node, &wanting, out)?,
    }
    Ok(if bad { Exit::Found } else { Exit::Done })
}

/// Whether a subscription is one to look at.
fn needs_attention(entry: &Value) -> bool {
    let feed = &entry["feed"];
    text(entry, "status") != "active" || feed["lagging"] != 0 || feed["deadLetters"] != 0
}

fn print(node: &Value, wanting: &[Value], out: &mut Output) -> anyhow::Result<()> {
    let (version, sha, uptime) = (text(node, "version"), text(node, "sha"), text(node, "uptime"));
    out.line(&format!("Flare {version} ({sha}), up {uptime}, store {}", text(node, "store")))?;
    let counts = ["resources", "subscriptions", "documents", "tombstones"];
    let counts = counts.map(|name| format!("{} {name}", node[name]));
    out.line(&counts.join(", "))?;
    if wanting.is_empty() {
        return out.line("every subscription is active, and no client lags");
    }
    out.line("")?;
    let mut rows: Vec<[String; 6]> =
        vec![["SUBSCRIPTION", "STATUS", "LAGGING", "WAITING", "DEAD", "WHY"].map(str::to_owned)];
    rows.extend(wanting.iter().take(SHOWN).map(row));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3, 4].map(width);
    for row in &rows {
        let mut line = String::new();
        for (column, width) in widths.iter().enumerate() {
            let padded = format!("{:<width$}  ", row[column]);
            let colour = match (column, row[1].as_str()) {
                (1, "failing" | "disabled") => Some(Colour::Bad),
                (1, "paused" | "preparing") => Some(Colour::Odd),
                (1, "active") => Some(Colour::Good),
                _ => None,
            };
            line += &colour.map_or(padded.clone(), |colour| out.painted(&padded, colour));
        }
        out.line((line + &row[5]).trim_end())?;
    }
    if wanting.len() > SHOWN {
        out.line(&format!("and {} more", wanting.len() - SHOWN))?;
    }
    Ok(())
}

fn row(entry: &Value) -> [String; 6] {
    let feed = &entry["feed"];
    let reason = match (entry["reason"].as_str(), entry["lastFailure"]["error"].as_str()) {
        (Some(reason), _) => reason.to_owned(),
        (None, Some(error)) => format!("last failure: {error}"),
        (None, None) => String::new(),
    };
    [
        text(entry, "id").to_owned(),
        text(entry, "status").to_owned(),
        feed["lagging"].to_string(),
        feed["waiting"].to_string(),
        feed["deadLetters"].to_string(),
        reason,
    ]
}
