//! `cargo xtask differential`: in come random patterns and layouts, out comes where Flare reads one otherwise than Go
//! does. CEL prescribes RE2 for `matches`, and a resource's `format` is a layout of Go: Go has both.

mod questions;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use flare_model::filter::{Filter, Inputs, Json, Purpose};
use flare_model::layout::Layout;
use flare_model::revision::Revision;
use serde_json::{Value, json};

use flare_promises::dice::Dice;

#[derive(clap::Args)]
pub struct Args {
    /// How many patterns, and how many layouts.
    #[arg(long, default_value_t = 20_000)]
    cases: u64,
    /// What they follow from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// How Go reads them.
const GO: &str = include_str!("like.go");

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/differential");

/// So many differences are shown.
const SHOWN: usize = 20;

/// Asks Go and Flare the same, and fails where their answers differ.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut dice = Dice::new(args.seed);
    let patterns = (0..args.cases).map(|_| questions::pattern(&mut dice)).collect::<Vec<_>>();
    let layouts = (0..args.cases).map(|_| questions::layout(&mut dice)).collect::<Vec<_>>();
    let questions = [patterns, layouts].concat();
    let answers = ask_go(&questions)?;
    ensure!(answers.len() == questions.len(), "Go answered {} of {}", answers.len(), questions.len());
    let mut differences = Vec::new();
    for (question, answer) in questions.iter().zip(&answers) {
        match question["pattern"].as_str() {
            Some(pattern) => compare_pattern(pattern, question, answer, &mut differences),
            None => compare_dates(question, answer, &mut differences),
        }
    }
    for difference in differences.iter().take(SHOWN) {
        eprintln!("{difference}");
    }
    if !differences.is_empty() {
        bail!("{} differences in {} cases", differences.len(), questions.len());
    }
    println!("{} patterns and {} layouts are read as Go reads them", args.cases, args.cases);
    Ok(())
}

fn ask_go(questions: &[Value]) -> anyhow::Result<Vec<Value>> {
    std::fs::create_dir_all(FOLDER).context("making a folder")?;
    let program = Path::new(FOLDER).join("like.go");
    std::fs::write(&program, GO).context("writing the Go program")?;
    let mut go = Command::new("go");
    go.arg("run").arg(&program).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut go = go.spawn().context("running go: install it from https://go.dev/dl to compare with it")?;
    let mut input = go.stdin.take().context("go has an input")?;
    let text: String = questions.iter().map(|question| format!("{question}\n")).collect();
    let writer = std::thread::spawn(move || input.write_all(text.as_bytes()));
    let output = go.wait_with_output().context("waiting for go")?;
    ensure!(output.status.success(), "go failed");
    writer.join().map_err(|_| anyhow::anyhow!("writing to go failed"))?.context("writing to go")?;
    let lines = String::from_utf8(output.stdout).context("go answers in UTF-8")?;
    lines.lines().map(|line| serde_json::from_str(line).context("go answers in JSON")).collect()
}

fn compare_pattern(pattern: &str, question: &Value, answer: &Value, differences: &mut Vec<String>) {
    let source = format!("document.text.matches({})", json!(pattern));
    let compiled = Filter::compile(&source, Purpose::Membership, None);
    let refused = answer["refused"].as_str().unwrap_or_default();
    let filter = match compiled {
        // What Flare bounds for its own sake.
        Err(mistake) if mistake.problem.contains("too large") || mistake.problem.contains("nest") => return,
        Err(mistake) => {
            if refused.is_empty() {
                differences.push(format!("{pattern:?}: refused here: {mistake}"));
            }
            return;
        }
        Ok(_) if refused.contains("expression nests too deeply") || refused.contains("too large") => return,
        Ok(_) if !refused.is_empty() => {
            return differences.push(format!("{pattern:?}: refused by Go: {refused}"));
        }
        Ok(filter) => filter,
    };
    let (Some(texts), Some(matches)) = (question["texts"].as_array(), answer["matches"].as_array()) else {
        return differences.push(format!("{pattern:?}: no answer"));
    };
    for (text, there) in texts.iter().zip(matches) {
        let document = Json::new(Bytes::from(json!({"text": text}).to_string()));
        let here = document.map_err(|error| error.to_string()).and_then(|document| {
            let revision = &Revision::Integer(1);
            let inputs = Inputs { document: &document, revision, wildcards: &[], action: None, state: None };
            filter.decide(&inputs).map_err(|error| error.to_string())
        });
        if here.as_ref().ok() != there.as_bool().as_ref() {
            differences.push(format!("{pattern:?} on {text}: {here:?} here, {there} in Go"));
        }
    }
}

fn compare_dates(question: &Value, answer: &Value, differences: &mut Vec<String>) {
    let text = question["layout"].as_str().unwrap_or_default();
    // A layout without a single verb is refused on purpose.
    let Ok(layout) = Layout::compile(text) else { return };
    for date in answer["dates"].as_array().into_iter().flatten() {
        let value = date["value"].as_str().unwrap_or_default();
        let there = date["ok"].as_bool().filter(|ok| *ok);
        let there = there.map(|_| (date["seconds"].as_i64(), date["nanos"].as_i64()));
        let here = layout.parse(value).ok();
        let here = here.map(|instant| (Some(instant.seconds), Some(i64::from(instant.nanos))));
        if here != there {
            differences.push(format!("{value:?} in {text:?}: {here:?} here, {there:?} in Go"));
        }
    }
}
