//! Whether a store is as the engine promises: the folder of a closed store comes in; what is wrong in it goes out, a line
//! for each finding, and an exit code that says whether there was any.
//!
//! ```text
//! cargo run -p flare-embedded --example audit -- FOLDER
//! ```

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(folder) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("which folder? audit FOLDER");
        return ExitCode::from(2);
    };
    match flare_embedded::audit(&folder) {
        Ok(findings) => {
            findings.iter().for_each(|finding| println!("{finding}"));
            if findings.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
