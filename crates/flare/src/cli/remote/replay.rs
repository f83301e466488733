//! In: `flare replay`. Out: a replay that has begun, or, with `--wait`, one that is through.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use serde_json::{Value, json};

use super::super::progress::bar;
use super::client::Client;
use super::{Exit, Format, Output, ReplayArgs, path_of, text};

/// How often progress is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Begins a replay, and waits for it where that is wanted.
pub async fn run(client: &mut Client, what: &ReplayArgs, out: &mut Output) -> anyhow::Result<Exit> {
    let path = path_of(client, &what.subscription).await?;
    let begun = client.post(&format!("{path}/replay"), &draft(what)).await?;
    let progress = format!("{path}/replays/{}", text(&begun, "id"));
    if !what.wait {
        match out.format {
            Format::Json => out.json(&begun)?,
            Format::Human => {
                let (id, total) = (text(&begun, "id"), &begun["total"]);
                out.line(&format!("{id} has begun: {total} documents; GET {progress} says how far it is"))?;
            }
        }
        return Ok(Exit::Done);
    }
    let terminal = std::io::stderr().is_terminal();
    loop {
        let now = client.get(&progress).await?;
        if terminal && out.format == Format::Human {
            let mut error = std::io::stderr();
            let (done, total) = (counted(&now, "done"), counted(&now, "total"));
            write!(error, "\r{} {}\x1b[K", bar(done, total), line(&now))?;
            error.flush()?;
        }
        if now["state"] == "done" {
            if terminal && out.format == Format::Human {
                eprintln!();
            }
            match out.format {
                Format::Json => out.json(&now)?,
                Format::Human => out.line(&format!("{} is through: {}", text(&now, "id"), line(&now)))?,
            }
            return Ok(Exit::Done);
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn draft(what: &ReplayArgs) -> Value {
    if let Some(document) = &what.document {
        return json!({"document": document});
    }
    if let Some(since) = &what.since {
        return json!({"since": since});
    }
    match (what.lagging, what.dead_letters) {
        (true, _) => json!({"scope": "lagging"}),
        (_, true) => json!({"scope": "deadLetters"}),
        _ => json!({"scope": "all"}),
    }
}

fn counted(progress: &Value, what: &str) -> u64 {
    progress[what].as_u64().unwrap_or(0)
}

/// How far it is, in words.
fn line(progress: &Value) -> String {
    let (done, total) = (counted(progress, "done"), counted(progress, "total"));
    let percent = (done * 100).checked_div(total).unwrap_or(100);
    format!("{done} of {total} documents ({percent}%)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_are_what_the_api_takes() {
        let usual = ReplayArgs { subscription: "sub_1".into(), ..ReplayArgs::default() };
        assert_eq!(draft(&usual), json!({"scope": "all"}));
        assert_eq!(draft(&ReplayArgs { lagging: true, ..usual.clone() }), json!({"scope": "lagging"}));
        assert_eq!(
            draft(&ReplayArgs { dead_letters: true, ..usual.clone() }),
            json!({"scope": "deadLetters"})
        );
        let document = Some("http://h/1".to_owned());
        assert_eq!(draft(&ReplayArgs { document, ..usual.clone() }), json!({"document": "http://h/1"}));
        let since = "2026-11-15T00:00:00Z".parse().ok();
        assert_eq!(draft(&ReplayArgs { since, ..usual }), json!({"since": "2026-11-15T00:00:00.000Z"}));
    }

    #[test]
    fn progress_is_told_in_documents_and_percent() {
        assert_eq!(line(&json!({"done": 1, "total": 3})), "1 of 3 documents (33%)");
        assert_eq!(line(&json!({"done": 0, "total": 0})), "0 of 0 documents (100%)");
    }
}
