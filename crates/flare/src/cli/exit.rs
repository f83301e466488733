//! In: how a command ended. Out: the exit code, the same for every command.

use std::process::{ExitCode, Termination};

use flare_core::config::Problems;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// It did what it was asked to.
    Done = 0,
    /// It looked, and found something to do: migrations that are not applied.
    Found = 1,
    /// The command line is wrong.
    Usage = 2,
    /// The configuration is wrong.
    Configuration = 3,
    /// It failed while running.
    Failed = 4,
}

/// The codes as the help lists them.
pub const HELP: &str = "\
Exit codes:
  0  done
  1  looked, and found something to do
  2  the command line is wrong
  3  the configuration is wrong
  4  failed while running";

impl Exit {
    /// The number that the shell sees.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// What it means, in a few words.
    pub fn title(self) -> &'static str {
        match self {
            Self::Done => "Done",
            Self::Found => "There is something to do",
            Self::Usage => "The command line is wrong",
            Self::Configuration => "The configuration is wrong",
            Self::Failed => "It failed while running",
        }
    }

    /// How a command ended that failed with this error.
    pub fn of(error: &anyhow::Error) -> Self {
        if error.is::<Problems>() { Self::Configuration } else { Self::Failed }
    }
}

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_lists_every_code() {
        let listed: Vec<u8> = HELP
            .lines()
            .skip(1)
            .map(|line| line.split_whitespace().next().unwrap().parse().unwrap())
            .collect();
        let codes = [Exit::Done, Exit::Found, Exit::Usage, Exit::Configuration, Exit::Failed].map(Exit::code);
        assert_eq!(listed, codes);
    }

    #[test]
    fn a_wrong_configuration_is_told_from_other_failures_even_under_context() {
        let wrong = anyhow::Error::new(Problems(Vec::new())).context("starting");
        assert_eq!(Exit::of(&wrong), Exit::Configuration);
        assert_eq!(Exit::of(&anyhow::anyhow!("disk full")), Exit::Failed);
    }
}
