//! `cargo xtask cluster --measure`: how units spread when a node joins and when all are restarted in turn, how late a change is told that
//! was put on another node than the one that serves its client, and whether what one node created another knows.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use flare_promises::dice::Dice;
use serde_json::json;

use super::clients::Manners;
use super::network::Network;
use super::node::{Node, Said, send};
use super::origin::prefix;
use super::stage::{LEASE, Stage};
use super::{Args, wanted};
use crate::bench::now;

/// So many changes are timed, this far apart.
const TIMED: u64 = 300;
const APART: Duration = Duration::from_millis(20);

/// Without a doorbell fewer are: each takes about as long as it takes until somebody looks.
const TIMED_WITHOUT: u64 = 30;

/// So many resources are created on one node and used on another at once.
const TWICE: usize = 1_000;

/// How often nodes look where nothing is heard.
const POLL: Duration = Duration::from_secs(1);

/// How long units may take to come to rest.
const SETTLES: Duration = Duration::from_secs(120);

/// What was measured: what it is, how it came out, what is allowed, and whether that was kept.
struct Line {
    what: String,
    came: String,
    allowed: String,
    kept: bool,
}

/// Measures, and prints a table; fails where something is out of bounds.
pub async fn run(args: &Args, network: &Network, folder: &Path) -> anyhow::Result<()> {
    let dice = Dice::new(args.seed);
    let mut stage = Stage::set(network, folder, &wanted(args)?, &dice).await?;
    stage.clients.shared.behave(Manners { fails: 0, dawdles: Duration::ZERO });
    let mut lines = Vec::new();
    settled(&stage).await?;
    lines.push(spread(&stage, "spread over the first nodes").await?);
    lines.push(how_late(&stage).await?);
    lines.push(known_at_once(&stage).await?);
    lines.extend(restart_in_turn(&mut stage).await?);
    lines.extend(one_more(&mut stage).await?);
    drop(stage);
    lines.push(without_doorbell(args, network, folder, &dice).await?);
    println!("{:<52} {:>22} {:>22}", "measured", "came out", "allowed");
    for Line { what, came, allowed, kept } in &lines {
        println!("{what:<52} {came:>22} {allowed:>22} {}", if *kept { "" } else { "BROKEN" });
    }
    let broken = lines.iter().filter(|line| !line.kept).count();
    if broken > 0 { bail!("{broken} are out of bounds") } else { Ok(()) }
}

/// Who has each unit.
async fn owners(node: &Node) -> anyhow::Result<BTreeMap<String, String>> {
    let all = node.list("/cluster/assignments", "assignments").await?;
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    Ok(all.iter().map(|unit| (text(&unit["unit"]), text(&unit["owner"]))).collect())
}

/// Waits until units have not moved for as long as the members have to stay the same.
async fn settled(stage: &Stage) -> anyhow::Result<()> {
    let began = Instant::now();
    let (mut before, mut since) = (BTreeMap::new(), Instant::now());
    while since.elapsed() < LEASE * 4 {
        stage.until_green().await?;
        let owners = owners(&stage.nodes[0]).await?;
        if owners != before {
            (before, since) = (owners, Instant::now());
        }
        if began.elapsed() > SETTLES {
            bail!("units do not come to rest");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

/// How much the busiest node has above the mean.
async fn spread(stage: &Stage, what: &str) -> anyhow::Result<Line> {
    let owners = owners(&stage.nodes[0]).await?;
    let mut counts: BTreeMap<&str, f64> = stage.nodes.iter().map(|node| (node.name.as_str(), 0.0)).collect();
    for owner in owners.iter().filter(|(unit, _)| !unit.starts_with("sweeper")).map(|(_, owner)| owner) {
        *counts.entry(owner).or_default() += 1.0;
    }
    let mean = counts.values().sum::<f64>() / counts.len() as f64;
    let most = counts.values().fold(0.0, |most: f64, count| most.max(*count));
    // No unit is cut in two.
    let allowed = (mean * 1.1).max(mean.ceil());
    let came = format!("{most:.0} of mean {mean:.1}");
    Ok(Line { what: what.to_owned(), came, allowed: format!("{allowed:.1}"), kept: most <= allowed })
}

/// A node joins: how many units go to it.
async fn one_more(stage: &mut Stage) -> anyhow::Result<Vec<Line>> {
    let before = owners(&stage.nodes[0]).await?;
    let moves = moves(stage).await?;
    stage.add_node().await?;
    settled(stage).await?;
    let after = owners(&stage.nodes[0]).await?;
    let moved = after.iter().filter(|(unit, owner)| before.get(*unit) != Some(owner)).count();
    let (units, nodes) = (after.len() as f64, stage.nodes.len() as f64);
    let allowed = units / nodes + units * 0.05;
    let all = self::moves(stage).await? - moves;
    let line = Line {
        what: format!("a node joins {}: units elsewhere (moves)", stage.nodes.len() - 1),
        came: format!("{moved} ({all})"),
        allowed: format!("{allowed:.1}"),
        kept: moved as f64 <= allowed && all as f64 <= allowed,
    };
    Ok(vec![line, spread(stage, "spread over all then").await?])
}

/// All moves so far of nodes that run.
async fn moves(stage: &Stage) -> anyhow::Result<u64> {
    let stats = stage.nodes[0].get("/cluster/stats").await?.json;
    stats["moves"]["total"].as_u64().context("stats count moves")
}

/// Each node is stopped and started in turn: how often a unit goes elsewhere meanwhile.
async fn restart_in_turn(stage: &mut Stage) -> anyhow::Result<Vec<Line>> {
    let mut often: BTreeMap<String, u32> = BTreeMap::new();
    let mut known = owners(&stage.nodes[0]).await?;
    for number in 0..stage.nodes.len() {
        stage.nodes[number].signal("-TERM")?;
        let away = stage.until_elsewhere(number, LEASE * 4).await;
        away.context("a node that stops hands over")?;
        stage.nodes[number].stopped().await?;
        let observer = (number + 1) % stage.nodes.len();
        count_moves(&mut often, &mut known, owners(&stage.nodes[observer]).await?);
        stage.nodes[number].start().await?;
        settled(stage).await?;
        count_moves(&mut often, &mut known, owners(&stage.nodes[0]).await?);
    }
    let most = often.values().copied().max().unwrap_or(0);
    let line = Line {
        what: format!("{} restarted in turn: moves of one unit", stage.nodes.len()),
        came: most.to_string(),
        allowed: "2".to_owned(),
        kept: most <= 2,
    };
    Ok(vec![line, spread(stage, "spread over the first nodes then").await?])
}

fn count_moves(
    often: &mut BTreeMap<String, u32>,
    known: &mut BTreeMap<String, String>,
    now: BTreeMap<String, String>,
) {
    for (unit, owner) in &now {
        if known.get(unit) != Some(owner) {
            *often.entry(unit.clone()).or_default() += 1;
        }
    }
    *known = now;
}

/// A client that nobody else is told with, and who serves it.
async fn solo(stage: &Stage, number: usize) -> anyhow::Result<(String, usize)> {
    let name = format!("solo{number}");
    let endpoint = format!("{}-{name}/{{id}}", prefix(0));
    let body = json!({"endpoint": endpoint, "change": {"field": "rev"}}).to_string();
    let created = stage.nodes[0].send("POST", "/resources", &body).await?.json;
    let resource = created["id"].as_str().with_context(|| format!("no resource: {created}"))?.to_owned();
    let path = format!("/resources/{resource}/subscriptions");
    let body = json!({"endpoint": {"url": stage.clients.url(1_000_000 + number)}}).to_string();
    let created = stage.nodes[0].send("POST", &path, &body).await?.json;
    let id = created["id"].as_str().with_context(|| format!("no subscription: {created}"))?.to_owned();
    let began = Instant::now();
    loop {
        let path = format!("/cluster/assignments?unit=subscription/{id}/0");
        let unit = stage.nodes[0].list(&path, "assignments");
        let unit = unit.await?.into_iter().next().filter(|unit| unit["state"] == "running");
        let owner = unit.and_then(|unit| stage.nodes.iter().position(|node| unit["owner"] == node.name));
        if let Some(owner) = owner {
            return Ok((format!("{}-{name}", prefix(0)), owner));
        }
        if began.elapsed() > LEASE * 4 {
            bail!("nobody serves a new subscription");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Puts changes on one node, and answers how late their client was told, the latest last.
async fn timed(
    stage: &Stage,
    node: usize,
    prefix: &str,
    from: u64,
    changes: u64,
) -> anyhow::Result<Vec<Duration>> {
    stage.clients.accounts().latencies.clear();
    let address = stage.nodes[node].address();
    for change in from..from + changes {
        let body = format!(r#"{{"rev":{},"sentAtNs":{}}}"#, change + 1, now().as_nanos());
        let path = format!("/documents/{prefix}/{change}");
        let said = Said { method: "PUT", path: &path, headers: "", body: &body };
        let status = send(&address, said, Duration::from_secs(5)).await?.status;
        if status != 202 {
            bail!("a change is answered {status}");
        }
        tokio::time::sleep(APART).await;
    }
    let began = Instant::now();
    while stage.clients.accounts().latencies.len() < changes as usize {
        if began.elapsed() > Duration::from_secs(20) {
            bail!("{} of {changes} were told", stage.clients.accounts().latencies.len());
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut late = std::mem::take(&mut stage.clients.accounts().latencies);
    late.sort();
    Ok(late)
}

fn p99(late: &[Duration]) -> Duration {
    let at = (late.len() as f64 * 0.99).ceil() as usize;
    late.get(at.saturating_sub(1)).copied().unwrap_or_default()
}

/// On the node that serves the client, and on another.
async fn how_late(stage: &Stage) -> anyhow::Result<Line> {
    let (prefix, owner) = solo(stage, 0).await?;
    let other = (owner + 1) % stage.nodes.len();
    let here = p99(&timed(stage, owner, &prefix, 0, TIMED).await?);
    let there = p99(&timed(stage, other, &prefix, TIMED, TIMED).await?);
    let more = there.saturating_sub(here);
    Ok(Line {
        what: "put elsewhere: p99 above that of the owner's".to_owned(),
        came: format!("{:.0} - {:.0} ms", there.as_secs_f64() * 1e3, here.as_secs_f64() * 1e3),
        allowed: "50 ms".to_owned(),
        kept: more <= Duration::from_millis(50),
    })
}

/// POST on one node and PUT on another at once.
async fn known_at_once(stage: &Stage) -> anyhow::Result<Line> {
    let (a, b) = (&stage.nodes[0], &stage.nodes[1]);
    let mut unknown = 0;
    for number in 0..TWICE {
        let endpoint = format!("http://twice.example/r{number}");
        let body = json!({"endpoint": format!("{endpoint}/{{id}}"), "change": {"field": "rev"}}).to_string();
        let created = a.send("POST", "/resources", &body).await?;
        if created.status != 201 {
            bail!("creating a resource: {} {}", created.status, created.json);
        }
        let put = b.send("PUT", &format!("/documents/{endpoint}/1"), r#"{"rev":1}"#).await?;
        unknown += usize::from(put.status != 202);
    }
    Ok(Line {
        what: format!("created on one, put on another, {TWICE} times: refused"),
        came: unknown.to_string(),
        allowed: "0".to_owned(),
        kept: unknown == 0,
    })
}

/// Nodes that hear nothing look from time to time.
async fn without_doorbell(
    args: &Args,
    network: &Network,
    folder: &Path,
    dice: &Dice,
) -> anyhow::Result<Line> {
    let folder = folder.join("without-doorbell");
    std::fs::create_dir_all(&folder)?;
    let mut wanted = wanted(args)?;
    wanted.subscriptions = 10;
    wanted.more = vec![
        ("FLARE_PROVIDER_DOORBELL", "poll".to_owned()),
        ("FLARE_PROVIDER_POSTGRESQL_POLL_INTERVAL", format!("{}ms", POLL.as_millis())),
    ];
    let stage = Stage::set(network, &folder, &wanted, dice).await?;
    stage.clients.shared.behave(Manners { fails: 0, dawdles: Duration::ZERO });
    let (prefix, owner) = solo(&stage, 1).await?;
    let other = (owner + 1) % stage.nodes.len();
    let late = timed(&stage, other, &prefix, 0, TIMED_WITHOUT).await?;
    let (latest, allowed) = (late.last().copied().unwrap_or_default(), POLL + Duration::from_millis(200));
    Ok(Line {
        what: "put elsewhere without a doorbell: the latest".to_owned(),
        came: format!("{:.0} ms", latest.as_secs_f64() * 1e3),
        allowed: format!("{} ms", allowed.as_millis()),
        kept: latest <= allowed,
    })
}
