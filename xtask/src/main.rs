//! What contributors run: `cargo xtask test`, `browser`, `bench`, `fair`, `stress`, `cluster`, `bridges`, `differential` and `assets`.

#![allow(clippy::disallowed_methods, reason = "this measures and waits; nothing of it is in the product")]

mod assets;
mod bench;
mod bridges;
mod browser;
mod cluster;
mod differential;
mod fair;
mod needs;
mod stress;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "What contributors run")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Install what the tests need (as root or by `sudo -n`; elsewhere say what is left out) and run every test.
    Test(test::Args),
    /// Run the tests of the web interface alone, in Chromium; make the pictures of the user guide.
    Browser(browser::Args),
    /// Fetch what the web interface embeds of others' work, and prepare it.
    Assets(assets::Args),
    /// Run the project's own workloads against the real binary and print a table.
    Bench(bench::Args),
    /// Run clients that hang or are slow beside a quick one, and print how late that one is told.
    Fair(fair::Args),
    /// Run the real binary with tiny limits under random operations, faults and kills, and hold it to its promises.
    Stress(stress::Args),
    /// Run several nodes in network namespaces, kill, suspend, stop and cut them, and hold them to their promises; needs root.
    Cluster(cluster::Args),
    /// Send many messages by every broker, kill the node and start brokers again meanwhile, and account for all of them.
    Bridges(bridges::Args),
    /// Read random patterns and layouts beside Go itself, and say where Flare reads one otherwise.
    Differential(differential::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Test(args) => test::run(&args),
        Command::Browser(args) => browser::run(&args),
        Command::Assets(args) => assets::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Fair(args) => fair::run(&args),
        Command::Stress(args) => stress::run(&args),
        Command::Cluster(args) => cluster::run(&args),
        Command::Bridges(args) => bridges::run(&args),
        Command::Differential(args) => differential::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // In words alone: a backtrace of this program helps nobody who lacks a package.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
