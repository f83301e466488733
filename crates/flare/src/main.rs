//! The program: reads the command line, and does what it says.

mod cli;
mod config;
mod door;
mod http;
mod journey;
mod logging;
mod migrate;
mod network;
mod node;
mod observe;
mod operations;
mod registry;
mod ui;
mod vault;
mod version;

use cli::{Cli, Command, Exit};

fn main() -> Exit {
    let cli = match Cli::of_process() {
        Ok(cli) => cli,
        Err(exit) => return exit,
    };
    let outcome = match &cli.command {
        Command::Plain(plain) => {
            cli::answer(plain, cli.output, &mut std::io::stdout()).map_err(anyhow::Error::from)
        }
        Command::Remote(remote) => cli::remote::run(remote, cli.output),
        Command::Start(args) => start(args),
        Command::Migrate { action } => migrate::run(action, cli.output, &mut std::io::stdout()),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("flare: {error:#}");
        Exit::of(&error)
    })
}

fn start(args: &cli::StartArgs) -> anyhow::Result<Exit> {
    let loaded = config::load(&args.sources())?;
    let _guard = logging::init(&loaded.config.log)?;
    stop_the_process_on_a_panic_in_delivery();
    node::run(loaded)?;
    Ok(Exit::Done)
}

/// A panic on a thread that owns feeds or commits leaves state nobody can vouch for. What is durable is right,
/// so the process ends at once and the next one opens it.
fn stop_the_process_on_a_panic_in_delivery() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        tracing::error!(thread = name, panic = %panic, "a thread panicked");
        if name.starts_with("flare-deliver") || name.starts_with("flare-writer") {
            std::process::abort();
        }
    }));
}
