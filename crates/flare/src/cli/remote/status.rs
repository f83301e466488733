//! In: `flare status`. Out: how the cluster is, by the node that is asked, and the subscriptions that fail, stand still or lag.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::client::Client;
use super::{Colour, Exit, Format, Output, text};

/// Entries of a list asked for at once.
const PAGE: usize = 100;

/// Subscriptions in the table, at most; the rest is counted.
const SHOWN: usize = 50;

/// Prints how all is; whether that is green is what the command answers.
pub async fn run(client: &mut Client, out: &mut Output) -> anyhow::Result<Exit> {
    let status = client.get("/status").await?;
    // A token of an account sees neither; what `/status` says of the cluster is enough then.
    let health = match sees(client, "/cluster/health").await? {
        true => client.get("/cluster/health").await?,
        false => Value::Null,
    };
    let nodes = match sees(client, "/cluster/nodes").await? {
        true => all(client, "/cluster/nodes", "nodes").await?,
        false => Vec::new(),
    };
    let colour = if health.is_null() { &status["cluster"] } else { &health };
    let exit = if text(colour, "status") == "green" { Exit::Done } else { Exit::Found };
    let wanting = match all(client, "/subscriptions", "subscriptions").await {
        Ok(mut wanting) => {
            wanting.retain(needs_attention);
            Ok(wanting)
        }
        // A node that does not reach its store says how the cluster is all the same.
        Err(error) if exit == Exit::Found => Err(error),
        Err(error) => return Err(error),
    };
    match out.format {
        Format::Json => {
            let wanting = wanting.ok();
            out.json(&json!({"status": status, "health": health, "nodes": nodes, "attention": wanting}))?;
        }
        Format::Human => {
            print_node(&status, out)?;
            print_cluster(&health, &nodes, out)?;
            match wanting {
                Ok(wanting) => print_wanting(&wanting, out)?,
                Err(error) => {
                    out.line(&format!("which subscriptions need attention is not known: {error:#}"))?
                }
            }
        }
    }
    Ok(exit)
}

/// Whether the token is one that may ask for this.
async fn sees(client: &mut Client, path: &str) -> anyhow::Result<bool> {
    Ok(client.ask(&Method::GET, path, None).await?.status != StatusCode::FORBIDDEN)
}

/// A whole list.
async fn all(client: &mut Client, path: &str, name: &str) -> anyhow::Result<Vec<Value>> {
    let (mut entries, mut offset) = (Vec::new(), 0);
    loop {
        let page = client.get(&format!("{path}?limit={PAGE}&offset={offset}")).await?;
        entries.extend(page[name].as_array().cloned().unwrap_or_default());
        let total = page["pagination"]["total"].as_u64().unwrap_or(0) as usize;
        offset += page["pagination"]["limit"].as_u64().unwrap_or(PAGE as u64).max(1) as usize;
        if offset >= total {
            return Ok(entries);
        }
    }
}

/// Whether a subscription is one to look at.
fn needs_attention(entry: &Value) -> bool {
    let feed = &entry["feed"];
    let owes = feed["lagging"] != 0 || feed["deadLetters"] != 0;
    text(entry, "status") != "active" || owes || entry["filter"]["erring"] == true
}

fn print_node(node: &Value, out: &mut Output) -> anyhow::Result<()> {
    let (version, sha, uptime) = (text(node, "version"), text(node, "sha"), text(node, "uptime"));
    out.line(&format!("Flare {version} ({sha}), up {uptime}, store {}", text(node, "store")))?;
    let counts = ["resources", "subscriptions", "documents", "tombstones"];
    let known = counts.into_iter().filter(|name| !node[name].is_null());
    let counts: Vec<String> = known.map(|name| format!("{} {name}", node[name])).collect();
    out.line(&counts.join(", "))
}

/// A node by itself that is well is not worth a line.
fn print_cluster(health: &Value, nodes: &[Value], out: &mut Output) -> anyhow::Result<()> {
    let colour = match text(health, "status") {
        "" => return Ok(()),
        "green" if nodes.len() < 2 => return Ok(()),
        "green" => Colour::Good,
        "yellow" => Colour::Odd,
        _ => Colour::Bad,
    };
    let status = out.painted(text(health, "status"), colour);
    let leader = health["leader"].as_str().unwrap_or("nobody");
    let units = &health["units"];
    let running = format!("{} of {} units run", units["running"], units["total"]);
    out.line(&format!("cluster {} is {status}: {leader} leads, {running}", text(health, "name")))?;
    for reason in health["reasons"].as_array().into_iter().flatten() {
        out.line(&format!("  {}: {}", text(reason, "code"), text(reason, "detail")))?;
    }
    for node in nodes {
        let (id, state, address) = (text(node, "id"), text(node, "state"), text(node, "address"));
        out.line(&format!("  {id}  {state}  {address}  {} units", node["units"]))?;
    }
    Ok(())
}

fn print_wanting(wanting: &[Value], out: &mut Output) -> anyhow::Result<()> {
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
        (None, _) if entry["filter"]["erring"] == true => {
            format!("an expression has no result: {}", text(&entry["filter"]["lastError"], "error"))
        }
        (None, Some(error)) => format!("last failure: {error}"),
        (None, None) => String::new(),
    };
    let bound = if feed["laggingIsBound"] == true { "<=" } else { "" };
    [
        text(entry, "id").to_owned(),
        text(entry, "status").to_owned(),
        format!("{bound}{}", feed["lagging"]),
        feed["waiting"].to_string(),
        feed["deadLetters"].to_string(),
        reason,
    ]
}
