//! The program: reads the command line, and does what it says.
//!
//! It is a library with one function, so that the compiler can check it while the crates below it are translated; it
//! waits with a binary until they are.

mod bench;
mod cli;
mod demo;
mod keeping;
mod logging;
mod migrate;
mod node;
mod supervisor;
mod ui;
mod upkeep;
mod version;

pub use cli::Exit;
use cli::{Cli, Command};

/// A delivery takes some twenty small pieces of memory and gives them back: with this allocator it costs a tenth less
/// than with the system's (docs/performance.md).
#[cfg(not(feature = "heap-profile"))]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The one that can say who holds memory.
#[cfg(feature = "heap-profile")]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The whole program, from the command line of the process to its exit code.
pub fn run() -> Exit {
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
        Command::Demo(args) => demo(args, cli.output),
        Command::Bench(args) => bench(args, cli.output),
        Command::Keeping(command) => keeping::run(command, cli.output, &mut std::io::stdout()),
        Command::Setup(args) => upkeep::run(upkeep::Task::Setup, args, cli.output, &mut std::io::stdout()),
        Command::Fixup(args) => upkeep::run(upkeep::Task::Fixup, args, cli.output, &mut std::io::stdout()),
        Command::Cleanup(args) => {
            upkeep::run(upkeep::Task::Cleanup, args, cli.output, &mut std::io::stdout())
        }
        Command::Migrate { action } => migrate::run(action, cli.output, &mut std::io::stdout()),
    };
    outcome.unwrap_or_else(|error| {
        let exit = Exit::of(&error);
        cli::tell_failure(cli.output, exit, &format!("{error:#}"));
        exit
    })
}

fn start(args: &cli::StartArgs) -> anyhow::Result<Exit> {
    let loaded = flare_core::config::load(&args.sources())?;
    let _guard = logging::init(&loaded.config.log)?;
    stop_the_process_on_a_panic_in_delivery(|| {});
    node::run(loaded, supervisor::company())?;
    Ok(Exit::Done)
}

fn demo(args: &cli::DemoArgs, format: cli::Format) -> anyhow::Result<Exit> {
    let scratch = demo::Scratch::create(&std::env::temp_dir())?;
    stop_the_process_on_a_panic_in_delivery(scratch.remover());
    demo::run(args, format, &scratch)
}

fn bench(args: &cli::BenchArgs, format: cli::Format) -> anyhow::Result<Exit> {
    let scratch = demo::Scratch::create(&std::env::temp_dir())?;
    stop_the_process_on_a_panic_in_delivery(scratch.remover());
    bench::run(args, format, &scratch)
}

/// A panic on a thread that owns feeds or commits leaves state nobody can vouch for. What is durable is right,
/// so the process ends at once, after `before`, and the next one opens it.
fn stop_the_process_on_a_panic_in_delivery(before: impl Fn() + Send + Sync + 'static) {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        usual(panic);
        let name = std::thread::current().name().unwrap_or_default().to_owned();
        tracing::error!(thread = name, panic = %panic, "a thread panicked");
        if name.starts_with("flare-deliver") || name.starts_with("flare-writer") {
            before();
            std::process::abort();
        }
    }));
}
