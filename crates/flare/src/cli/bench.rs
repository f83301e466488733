//! In: the words after `flare bench`. Out: [`BenchArgs`].

use clap::Args;

/// What `flare bench` may be told. No configuration file and no `FLARE_` variable is read: it measures this machine, not a
/// configuration.
#[derive(Debug, Clone, Args)]
pub struct BenchArgs {
    /// How many documents the origin puts.
    #[arg(long, value_name = "NUMBER", default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub documents: u32,
    /// How many clients are told of each.
    #[arg(long, value_name = "NUMBER", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub clients: u32,
    /// How many connections the origin has; each puts one document after the other.
    #[arg(long, value_name = "NUMBER", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub connections: u32,
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::{Cli, Command};

    #[test]
    fn a_bench_takes_bounded_numbers() {
        let Command::Bench(args) = Cli::try_parse_from(["flare", "bench"]).unwrap().command else {
            panic!("a bench")
        };
        assert_eq!((args.documents, args.clients, args.connections), (20_000, 1, 16));
        for words in [["--documents", "0"], ["--clients", "101"], ["--connections", "many"]] {
            let error = Cli::try_parse_from(["flare", "bench"].into_iter().chain(words)).unwrap_err();
            assert_eq!(error.exit_code(), 2, "{words:?}");
        }
    }
}
