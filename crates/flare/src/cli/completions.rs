//! In: the name of a shell. Out: a script for it that completes Flare's commands.

use std::io::{self, Write};

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::{Cli, Exit};

/// Prints the script.
pub fn print(shell: Shell, out: &mut dyn Write) -> io::Result<Exit> {
    // By way of memory, because the generator panics where a reader that had enough closes the pipe.
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "flare", &mut script);
    out.write_all(&script)?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shell_gets_a_script_that_knows_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish, Shell::PowerShell, Shell::Elvish] {
            let mut out = Vec::new();
            print(shell, &mut out).unwrap();
            assert!(String::from_utf8(out).unwrap().contains("migrate"), "{shell}");
        }
    }
}
