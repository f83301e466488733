//! In: commands that talk to a running node. Out: their answers, in words or JSON, and how they ended.

mod access;
pub mod client;
mod replay;
mod status;
mod tail;

use std::io::{self, IsTerminal as _, Write};
use std::path::PathBuf;

use anyhow::Context as _;
use clap::{Args, Subcommand};
use flare_core::config::CertificateFile;
use flare_model::duration::HumanDuration;
use flare_model::time::Timestamp;

use super::{ConfigArgs, Exit, Format};
use access::{Accounts, Tokens};
use client::Client;

/// A command that talks to a running node.
#[derive(Debug, Subcommand)]
pub enum Remote {
    /// Say how a running node and its cluster are, and which subscriptions need attention; exit code 1 unless the cluster is
    /// green.
    Status {
        /// Where the node is.
        #[command(flatten)]
        node: NodeArgs,
    },
    /// Print notifications as they are sent, until interrupted.
    Tail {
        /// Where the node is.
        #[command(flatten)]
        node: NodeArgs,
        /// Which notifications.
        #[command(flatten)]
        which: TailArgs,
    },
    /// Send a client everything again, or a part of it.
    Replay {
        /// Where the node is.
        #[command(flatten)]
        node: NodeArgs,
        /// What to send.
        #[command(flatten)]
        what: ReplayArgs,
    },
    /// Create, list or revoke tokens of a node with authentication.
    Token {
        /// Where the node is.
        #[command(flatten)]
        node: NodeArgs,
        /// Which of them.
        #[command(subcommand)]
        action: Tokens,
    },
    /// Create, list or delete accounts of a node with authentication, as its operator.
    Account {
        /// Where the node is.
        #[command(flatten)]
        node: NodeArgs,
        /// Which of them.
        #[command(subcommand)]
        action: Accounts,
    },
}

/// Names the token that commands show to a node.
const TOKEN: &str = "FLARE_TOKEN";

/// Where the node is.
#[derive(Debug, Clone, Args)]
pub struct NodeArgs {
    /// The url of the node's API; without it http.server.addr of the configuration.
    #[arg(long, global = true, value_name = "URL", value_parser = client::parse_url)]
    pub url: Option<http::Uri>,
    /// A PEM file with the authorities that vouch for an https node, in place of the public ones.
    #[arg(long, global = true, value_name = "PATH")]
    pub ca: Option<PathBuf>,
    /// How long an answer of the node may take.
    #[arg(long, global = true, value_name = "DURATION", default_value = "10s")]
    pub timeout: HumanDuration,
    /// With the operator's token: the account to act for. The token itself is taken from FLARE_TOKEN.
    #[arg(long, global = true, value_name = "NAME")]
    pub account: Option<String>,
    /// Where the configuration is.
    #[command(flatten)]
    pub config: ConfigArgs,
}

/// Which notifications.
#[derive(Debug, Clone, Default, Args)]
pub struct TailArgs {
    /// Only of this resource.
    #[arg(long, value_name = "ID")]
    pub resource: Option<String>,
    /// Only of this subscription.
    #[arg(long, value_name = "ID")]
    pub subscription: Option<String>,
    /// Only about this document.
    #[arg(long, value_name = "URL")]
    pub document: Option<String>,
}

/// What to send again.
#[derive(Debug, Clone, Default, Args)]
pub struct ReplayArgs {
    /// The subscription.
    #[arg(value_name = "SUBSCRIPTION")]
    pub subscription: String,
    /// Only documents accepted since then, such as 2026-11-15T08:00:00Z.
    #[arg(long, value_name = "TIME", group = "scope")]
    pub since: Option<Timestamp>,
    /// Only this document.
    #[arg(long, value_name = "URL", group = "scope")]
    pub document: Option<String>,
    /// Only what waits for a retry, is in doubt or was given up.
    #[arg(long, group = "scope")]
    pub lagging: bool,
    /// Only what was given up.
    #[arg(long, group = "scope")]
    pub dead_letters: bool,
    /// Wait until it is through.
    #[arg(long)]
    pub wait: bool,
}

impl NodeArgs {
    fn client(&self) -> anyhow::Result<Client> {
        let url = match &self.url {
            Some(url) => url.clone(),
            None => {
                let server = flare_core::config::load(&self.config.sources())?.config.http.server;
                let mut addr = server.addr;
                // A node that listens everywhere is here, too.
                if addr.ip().is_unspecified() {
                    addr.set_ip(match addr.is_ipv4() {
                        true => std::net::Ipv4Addr::LOCALHOST.into(),
                        false => std::net::Ipv6Addr::LOCALHOST.into(),
                    });
                }
                let scheme = if server.tls.certificate.path().is_some() { "https" } else { "http" };
                client::parse_url(&format!("{scheme}://{addr}")).map_err(anyhow::Error::msg)?
            }
        };
        let authorities = CertificateFile::from(self.ca.clone());
        let token =
            std::env::var(TOKEN).ok().map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
        let client = Client::new(url).trusting(authorities).giving_up_after(self.timeout.0);
        Ok(client.known_as(token, self.account.clone()))
    }
}

/// Runs a command against a node. A reader that had enough (`| head`) is no failure.
pub fn run(command: &Remote, format: Format) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let terminal = io::stdout().is_terminal();
    let mut out = Output { out: Box::new(io::stdout()), format, colour: terminal && colours_are_welcome() };
    let ended = runtime.block_on(async {
        match command {
            Remote::Status { node } => status::run(&mut node.client()?, &mut out).await,
            Remote::Tail { node, which } => tail::run(&mut node.client()?, which, &mut out).await,
            Remote::Token { node, action } => access::tokens(&mut node.client()?, action, &mut out).await,
            Remote::Account { node, action } => access::accounts(&mut node.client()?, action, &mut out).await,
            Remote::Replay { node, what } => replay::run(&mut node.client()?, what, &mut out).await,
        }
    });
    match ended {
        Err(error) if is_broken_pipe(&error) => Ok(Exit::Done),
        ended => ended,
    }
}

/// Whether the reader of the output had enough.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Whether the user has not said that colours are unwanted.
pub fn colours_are_welcome() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Where answers go, and how they are written.
struct Output {
    out: Box<dyn Write>,
    format: Format,
    colour: bool,
}

/// Colours of words, on a terminal.
#[derive(Clone, Copy)]
enum Colour {
    Good = 32,
    Bad = 31,
    Odd = 33,
}

impl Output {
    fn line(&mut self, text: &str) -> anyhow::Result<()> {
        writeln!(self.out, "{text}")?;
        self.out.flush()?;
        Ok(())
    }

    fn json(&mut self, value: &serde_json::Value) -> anyhow::Result<()> {
        self.line(&format!("{value:#}"))
    }

    fn painted(&self, text: &str, colour: Colour) -> String {
        match self.colour {
            true => format!("\x1b[{}m{text}\x1b[0m", colour as u8),
            false => text.to_owned(),
        }
    }
}

/// A text of an answer; empty where there is none.
fn text<'v>(value: &'v serde_json::Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// Percent-encodes a value for a query or a path.
fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// The path of a subscription, whose resource the node knows.
async fn path_of(client: &mut Client, subscription: &str) -> anyhow::Result<String> {
    let found = client.get(&format!("/subscriptions/{}", encoded(subscription))).await?;
    let resource = found["resource"].as_str().context("the answer names no resource: is this a Flare?")?;
    Ok(format!("/resources/{resource}/subscriptions/{subscription}"))
}
