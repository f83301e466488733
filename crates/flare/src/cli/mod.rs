//! In: the words of the command line. Out: a [`Cli`], the answers of the commands that need no running node, and the
//! exit codes of all.

mod bench;
mod completions;
mod config;
mod demo;
mod exit;
pub mod keeping;
pub mod progress;
pub mod remote;
mod version;

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use flare_core::config::{Flag, Sources};

pub use bench::BenchArgs;
pub use demo::DemoArgs;
pub use exit::Exit;

/// Tracks documents behind HTTP endpoints and brings every subscribed client to the newest state.
#[derive(Debug, Parser)]
#[command(name = "flare", version = crate::version::LONG, arg_required_else_help = true, after_help = exit::HELP)]
pub struct Cli {
    /// How answers are printed.
    #[arg(long, global = true, value_enum, default_value_t = Format::Human, value_name = "FORMAT")]
    pub output: Format,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// How answers are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Human,
    /// One JSON value, for machines.
    Json,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start Flare; with no configuration at all it keeps its data in ./flare-data and listens on 127.0.0.1:8080.
    Start(StartArgs),
    /// Show Flare at work: a shop whose documents change, and six clients, one slow and one that keeps failing among
    /// them. All in this process, on a temporary store; ctrl-C stops it, and nothing of it is left.
    Demo(DemoArgs),
    /// Measure how many changes this machine takes and delivers in a second, and how long each takes: an origin, clients and Flare in
    /// this process, on a temporary store; nothing of it is left.
    Bench(BenchArgs),
    /// Create what the store needs: shows a plan, asks, and does it; safe to repeat, also from several places at once.
    Setup(UpkeepArgs),
    /// Create what should be in the store and is missing, such as an index; shows a plan and asks.
    Fixup(UpkeepArgs),
    /// Delete what is in the store and belongs to nothing; shows a plan and asks.
    Cleanup(UpkeepArgs),
    /// Bring the store to this version's schema, say what that would take, or move everything to another engine.
    Migrate {
        /// Which of them.
        #[command(subcommand)]
        action: Migrate,
    },
    /// A command about what is stored and the key that seals it.
    #[command(flatten)]
    Keeping(keeping::Keeping),
    /// A command that talks to a running node.
    #[command(flatten)]
    Remote(remote::Remote),
    /// A command that needs neither node nor store.
    #[command(flatten)]
    Plain(Plain),
}

/// A command that needs neither node nor store; see [`answer`].
#[derive(Debug, Subcommand)]
pub enum Plain {
    /// Check the configuration, or print it.
    Config {
        /// Which of them.
        #[command(subcommand)]
        action: Config,
    },
    /// Print the version, the git commit it was built from, and that commit's time.
    Version,
    /// Print a script that completes commands in a shell.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: Shell,
    },
}

/// `flare config ...`.
#[derive(Debug, Subcommand)]
pub enum Config {
    /// Say whether the configuration is right, and if not, everything that is wrong with it.
    Check(ConfigArgs),
    /// Print the effective configuration and where each value came from.
    Show(ConfigArgs),
    /// Print the default configuration with an explanation of every key.
    Default,
}

/// `flare migrate ...`.
#[derive(Debug, Subcommand)]
pub enum Migrate {
    /// List the migrations, applied and not; exit code 1 when some are not applied yet.
    Status(StoreArgs),
    /// Apply those that are not applied yet: shows a plan, asks, and does it; safe to repeat.
    Up(UpkeepArgs),
    /// Copy everything from one engine into another that is empty: the numbers stay the same, and clients notice nothing. No node
    /// may run meanwhile.
    Copy(CopyArgs),
}

/// What a command that changes the store may be told.
#[derive(Debug, Clone, Default, Args)]
pub struct UpkeepArgs {
    /// Where the configuration and the data are.
    #[command(flatten)]
    pub store: StoreArgs,
    /// Show the plan and change nothing; exit code 1 when there is something to do.
    #[arg(long)]
    pub plan_only: bool,
    /// Do it without asking.
    #[arg(long)]
    pub yes: bool,
}

/// From where to where.
#[derive(Debug, Clone, Args)]
pub struct CopyArgs {
    /// The engine that has everything.
    #[arg(long, value_enum)]
    pub from: CopyFrom,
    /// The engine that gets it.
    #[arg(long, value_enum)]
    pub to: CopyTo,
    /// What else it may be told.
    #[command(flatten)]
    pub upkeep: UpkeepArgs,
}

/// What can be copied from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CopyFrom {
    /// The data directory (provider.embedded.path, or --data).
    Embedded,
}

/// What can be copied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CopyTo {
    /// The schema of a server (provider.postgresql).
    Postgresql,
}

/// Where the configuration is.
#[derive(Debug, Clone, Default, Args)]
pub struct ConfigArgs {
    /// The configuration file; without it FLARE_CONFIG, or flare.toml in the working directory if there is one.
    #[arg(long, global = true, value_name = "PATH")]
    pub config: Option<PathBuf>,
}

/// Where the configuration and the data are.
#[derive(Debug, Clone, Default, Args)]
pub struct StoreArgs {
    /// Where the configuration is.
    #[command(flatten)]
    pub config: ConfigArgs,
    /// The directory of the data; instead of provider.embedded.path.
    #[arg(long, value_name = "PATH")]
    pub data: Option<String>,
}

/// What `flare start` may be told.
#[derive(Debug, Clone, Default, Args)]
pub struct StartArgs {
    /// Where the configuration and the data are.
    #[command(flatten)]
    pub store: StoreArgs,
    /// The address and port of the API; instead of http.server.addr.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub addr: Option<SocketAddr>,
}

impl Cli {
    /// Reads the command line of this process. Where that ends the matter, because it is wrong or asks for help, what
    /// there is to say has been printed and the exit is given.
    pub fn of_process() -> Result<Self, Exit> {
        Self::try_parse().map_err(|error| {
            if !error.use_stderr() {
                // A closed output leaves nobody to tell.
                let _ = error.print();
                return Exit::Done;
            }
            match asks_for_json(std::env::args()) {
                true => tell_failure(Format::Json, Exit::Usage, error.to_string().trim()),
                false => _ = error.print(),
            }
            Exit::Usage
        })
    }
}

impl ConfigArgs {
    /// Where to load the configuration from.
    pub fn sources(&self) -> Sources {
        Sources::of_process(self.config.clone(), Vec::new())
    }
}

impl StoreArgs {
    /// Where to load the configuration from.
    pub fn sources(&self) -> Sources {
        let data =
            |value: &String| Flag { key: "provider.embedded.path", flag: "--data", value: value.clone() };
        Sources::of_process(self.config.config.clone(), self.data.iter().map(data).collect())
    }
}

impl StartArgs {
    /// Where to load the configuration from.
    pub fn sources(&self) -> Sources {
        let mut sources = self.store.sources();
        let addr =
            |addr: &SocketAddr| Flag { key: "http.server.addr", flag: "--addr", value: addr.to_string() };
        sources.flags.extend(self.addr.iter().map(addr));
        sources
    }
}

/// Says why a command failed: to people on standard error, to machines as JSON where its answer would be.
pub fn tell_failure(format: Format, exit: Exit, detail: &str) {
    // A closed output leaves nobody to tell.
    let _ = match format {
        Format::Human => writeln!(io::stderr(), "flare: {detail}"),
        Format::Json => {
            let error = serde_json::json!({"title": exit.title(), "detail": detail});
            writeln!(io::stdout(), "{}", serde_json::json!({"error": error, "exit": exit.code()}))
        }
    };
}

/// Whether words that cannot be understood as a whole ask for JSON.
fn asks_for_json(words: impl Iterator<Item = String>) -> bool {
    let words: Vec<String> = words.collect();
    let apart = words.windows(2).any(|pair| pair[0] == "--output" && pair[1] == "json");
    apart || words.iter().any(|word| word == "--output=json")
}

/// Answers a command that needs neither node nor store. A reader that had enough (`| head`) is no failure.
pub fn answer(command: &Plain, format: Format, out: &mut dyn Write) -> io::Result<Exit> {
    let answered = match command {
        Plain::Config { action: Config::Check(args) } => config::check(&args.sources(), format, out),
        Plain::Config { action: Config::Show(args) } => config::show(&args.sources(), format, out),
        Plain::Config { action: Config::Default } => config::default(out),
        Plain::Version => version::print(format, out),
        Plain::Completions { shell } => completions::print(*shell, out),
    };
    match answered.and_then(|exit| out.flush().map(|()| exit)) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Exit::Done),
        answered => answered,
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_commands_are_put_together_as_the_library_wants() {
        Cli::command().debug_assert();
    }

    #[test]
    fn without_a_command_the_help_is_shown_and_it_is_a_usage_error() {
        let error = Cli::try_parse_from(["flare"]).unwrap_err();
        assert_eq!(error.exit_code(), i32::from(Exit::Usage.code()));
        let help = error.to_string();
        for word in [
            "start",
            "demo",
            "bench",
            "status",
            "tail",
            "replay",
            "token",
            "account",
            "version",
            "config",
            "migrate",
            "setup",
            "fixup",
            "cleanup",
            "completions",
            "Exit codes",
        ] {
            assert!(help.contains(word), "{word}: {help}");
        }
    }

    #[test]
    fn start_takes_its_flags_and_they_reach_the_configuration() {
        let words = ["flare", "start", "--config", "a.toml", "--addr", "127.0.0.1:1", "--data", "d"];
        let cli = Cli::try_parse_from(words).unwrap();
        let Command::Start(args) = cli.command else { panic!("{cli:?}") };
        let sources = args.sources();
        assert_eq!(sources.file, Some("a.toml".into()));
        let flags: Vec<_> = sources.flags.iter().map(|flag| (flag.key, flag.value.as_str())).collect();
        assert_eq!(flags, [("provider.embedded.path", "d"), ("http.server.addr", "127.0.0.1:1")]);
    }

    #[test]
    fn a_replay_takes_one_scope() {
        let words = ["flare", "replay", "sub_1", "--lagging", "--wait", "--url", "http://h:1"];
        let cli = Cli::try_parse_from(words).unwrap();
        let Command::Remote(remote::Remote::Replay { node, what }) = cli.command else { panic!("{cli:?}") };
        assert_eq!(node.url.unwrap(), "http://h:1/");
        assert!(what.lagging && what.wait);
        for words in [
            &["flare", "replay"][..],
            &["flare", "replay", "sub_1", "--lagging", "--dead-letters"],
            &["flare", "replay", "sub_1", "--since", "yesterday"],
            &["flare", "status", "--url", "nowhere"],
            &["flare", "status", "--url", "ftp://h"],
        ] {
            assert_eq!(Cli::try_parse_from(words).unwrap_err().exit_code(), 2, "{words:?}");
        }
    }

    #[test]
    fn output_is_understood_before_and_after_the_command() {
        for words in [["flare", "--output", "json", "version"], ["flare", "version", "--output", "json"]] {
            assert_eq!(Cli::try_parse_from(words).unwrap().output, Format::Json);
        }
    }

    #[test]
    fn a_reader_that_had_enough_is_no_failure() {
        let (reader, mut writer) = io::pipe().unwrap();
        drop(reader);
        assert_eq!(answer(&Plain::Version, Format::Human, &mut writer).unwrap(), Exit::Done);
    }

    #[test]
    fn wrong_words_are_usage_errors() {
        for words in
            [vec!["flare", "strat"], vec!["flare", "start", "--addr", "here"], vec!["flare", "config"]]
        {
            let error = Cli::try_parse_from(&words).unwrap_err();
            assert_eq!(error.exit_code(), i32::from(Exit::Usage.code()), "{words:?}");
        }
    }
}
