//! `cargo xtask bridges`: the story of the tests in which processes and brokers end, with more of everything: messages from every source
//! while the node is killed again and again and brokers are started again, with an account of all of them. In: how much. Out: whether
//! something was lost.

use std::process::Command;

use anyhow::{Context, bail};

#[derive(clap::Args)]
pub struct Args {
    /// So many messages of each source; every hundredth cannot be read.
    #[arg(long, default_value_t = 100_000)]
    messages: usize,
    /// How often the node is killed while they come.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    kills: u32,
    /// How often RabbitMQ and NATS are started again.
    #[arg(long, default_value_t = 5)]
    restarts: u32,
    /// With a release build of Flare.
    #[arg(long)]
    release: bool,
}

/// Runs it, and fails if something was lost.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let mut test = Command::new(env!("CARGO"));
    test.args(["test", "--workspace", "--features", "flare/full", "--test", "bridges"]);
    test.args(args.release.then_some("--release"));
    test.args(["--", "--nocapture", "nothing_is_lost"]);
    test.env("FLARE_BRIDGE_MESSAGES", args.messages.to_string());
    test.env("FLARE_BRIDGE_KILLS", args.kills.to_string());
    test.env("FLARE_BRIDGE_RESTARTS", args.restarts.to_string());
    match test.status().context("running cargo test")?.success() {
        true => Ok(()),
        false => bail!("something was lost, or came too late"),
    }
}
