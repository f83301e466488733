//! In: the words after `flare demo`. Out: [`DemoArgs`].

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use flare_model::duration::HumanDuration;

/// What `flare demo` may be told. No configuration file and no `FLARE_` variable is read: a demo is the same everywhere.
#[derive(Debug, Clone, Args)]
pub struct DemoArgs {
    /// The address and port of the API and the UI, on loopback; without it 127.0.0.1:8080, or the next port that is
    /// free.
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = loopback)]
    pub addr: Option<SocketAddr>,
    /// How many documents the shop changes per second.
    #[arg(long, value_name = "NUMBER", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rate: u32,
    /// What happens in the shop depends on this number alone; without it every demo is another.
    #[arg(long, value_name = "NUMBER")]
    pub seed: Option<u64>,
    /// Shows consumers and producers: the shop has a list of its orders, which Flare polls, and two targets are told.
    #[arg(long)]
    pub bridge: bool,
    /// How long the shop is open, such as 30s. Then the demo waits until every client has what it should, says whether
    /// that is so, and ends; exit code 4 where one has not. Without it, the demo goes on until ctrl-C.
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Where the node's log goes; without it there is none, so that it does not write over what is shown.
    #[arg(long, value_name = "PATH")]
    pub log: Option<PathBuf>,
}

impl DemoArgs {
    /// The addresses to try, in order; one of them, if the user named it.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        const FIRST: u16 = 8080;
        const TRIED: u16 = 20;
        match self.addr {
            Some(addr) => vec![addr],
            None => (FIRST..FIRST + TRIED).map(|port| (Ipv4Addr::LOCALHOST, port).into()).collect(),
        }
    }
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let addr: SocketAddr = text.parse().map_err(|_| "it should look like 127.0.0.1:8080".to_owned())?;
    match addr.ip().to_canonical().is_loopback() {
        true => Ok(addr),
        false => {
            Err("a demo has no authentication and listens on loopback alone, such as 127.0.0.1:8080".into())
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let HumanDuration(duration) =
        text.parse().map_err(|error: flare_model::duration::DurationError| error.to_string())?;
    if duration.is_zero() {
        Err("it should be longer than nothing, such as 30s".into())
    } else {
        Ok(duration)
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::{Cli, Command};

    #[test]
    fn a_demo_takes_an_address_on_loopback_and_bounded_numbers() {
        let words =
            ["flare", "demo", "--addr", "[::1]:0", "--rate", "5", "--seed", "7", "--duration", "1m30s"];
        let Command::Demo(args) = Cli::try_parse_from(words).unwrap().command else { panic!("a demo") };
        assert_eq!((args.rate, args.seed, args.duration.unwrap().as_secs()), (5, Some(7), 90));
        assert_eq!(args.addresses(), ["[::1]:0".parse().unwrap()]);
        for words in [
            &["flare", "demo", "--addr", "0.0.0.0:8080"][..],
            &["flare", "demo", "--addr", "8080"],
            &["flare", "demo", "--rate", "0"],
            &["flare", "demo", "--rate", "1001"],
            &["flare", "demo", "--duration", "30"],
            &["flare", "demo", "--duration", "0s"],
        ] {
            assert_eq!(Cli::try_parse_from(words).unwrap_err().exit_code(), 2, "{words:?}");
        }
        let Command::Demo(args) = Cli::try_parse_from(["flare", "demo"]).unwrap().command else {
            panic!("a demo")
        };
        assert_eq!(args.addresses().len(), 20);
    }
}
