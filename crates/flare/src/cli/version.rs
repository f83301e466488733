//! In: `flare version`. Out: which Flare this is.

use std::io::{self, Write};

use super::{Exit, Format};
use crate::version::{LONG, THIS};

/// Prints the version.
pub fn print(format: Format, out: &mut dyn Write) -> io::Result<Exit> {
    match format {
        Format::Human => writeln!(out, "flare {LONG}")?,
        Format::Json => writeln!(out, "{}", serde_json::to_string(&THIS)?)?,
    }
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_names_version_sha_and_build_time() {
        let mut out = Vec::new();
        print(Format::Json, &mut out).unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&out).unwrap();
        for name in ["version", "sha", "buildTime"] {
            assert!(answer[name].as_str().is_some_and(|text| !text.is_empty()), "{answer}");
        }
    }
}
