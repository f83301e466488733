//! In: `flare config check | show | default`. Out: what is wrong, what is in effect, or the default file.

use std::io::{self, Write};

use flare_core::config::{DEFAULT_FILE, Problems, Sources, load, show};
use serde_json::json;

use super::{Exit, Format};

/// What a check cannot know, because it opens nothing.
const UNCHECKED: &str = "not checked: whether its addresses, files and folders can be used, and what is stored there asks for more";

/// Says whether the configuration is right by itself.
pub fn check(sources: &Sources, format: Format, out: &mut dyn Write) -> io::Result<Exit> {
    match (load(sources), format) {
        (Ok(loaded), Format::Human) => {
            match loaded.file {
                Some(path) => writeln!(out, "{} is ok", path.display())?,
                None => writeln!(out, "ok, without a file")?,
            }
            writeln!(out, "{UNCHECKED}")?;
            Ok(Exit::Done)
        }
        (Ok(loaded), Format::Json) => {
            print_json(&json!({ "ok": true, "file": loaded.file, "problems": [], "note": UNCHECKED }), out)?;
            Ok(Exit::Done)
        }
        (Err(problems), format) => tell(&problems, format, out),
    }
}

/// Prints the effective configuration.
pub fn show(sources: &Sources, format: Format, out: &mut dyn Write) -> io::Result<Exit> {
    let loaded = match load(sources) {
        Ok(loaded) => loaded,
        Err(problems) => return tell(&problems, format, out),
    };
    match format {
        Format::Human => out.write_all(show::text(&loaded).as_bytes())?,
        Format::Json => print_json(&show::json(&loaded), out)?,
    }
    Ok(Exit::Done)
}

/// Prints the default file.
pub fn default(out: &mut dyn Write) -> io::Result<Exit> {
    out.write_all(DEFAULT_FILE.as_bytes())?;
    Ok(Exit::Done)
}

/// Problems go to standard error for people, so that `config show > flare.toml` never writes them into a file, and into
/// the answer for machines.
fn tell(problems: &Problems, format: Format, out: &mut dyn Write) -> io::Result<Exit> {
    match format {
        Format::Human => writeln!(io::stderr(), "{problems}")?,
        Format::Json => {
            let problems: Vec<_> = problems.0.iter().map(|problem| {
                json!({ "key": problem.key(), "origin": problem.origin(), "message": problem.to_string() })
            }).collect();
            print_json(&json!({ "ok": false, "problems": problems }), out)?;
        }
    }
    Ok(Exit::Configuration)
}

fn print_json(value: &serde_json::Value, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{value:#}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(name: &str, value: &str) -> Sources {
        let environment = vec![(name.into(), value.into())];
        Sources { directory: "/nonexistent".into(), environment, ..Sources::default() }
    }

    fn as_json(run: impl FnOnce(&mut dyn Write) -> io::Result<Exit>) -> (Exit, serde_json::Value) {
        let mut out = Vec::new();
        let exit = run(&mut out).unwrap();
        (exit, serde_json::from_slice(&out).unwrap())
    }

    #[test]
    fn a_right_configuration_is_ok() {
        let sources = sources("FLARE_LOG_LEVEL", "debug");
        let (exit, answer) = as_json(|out| check(&sources, Format::Json, out));
        assert_eq!((exit, &answer["ok"]), (Exit::Done, &true.into()));
        let mut out = Vec::new();
        assert_eq!(check(&sources, Format::Human, &mut out).unwrap(), Exit::Done);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, format!("ok, without a file\n{UNCHECKED}\n"), "it claims no more than it knows");
    }

    #[test]
    fn a_wrong_one_exits_with_its_own_code_and_lists_its_problems() {
        let sources = sources("FLARE_LOG_FORMAT", "xml");
        for (exit, answer) in [
            as_json(|out| check(&sources, Format::Json, out)),
            as_json(|out| show(&sources, Format::Json, out)),
        ] {
            assert_eq!((exit, &answer["ok"]), (Exit::Configuration, &false.into()));
            assert_eq!(answer["problems"][0]["key"], "log.format");
            assert_eq!(answer["problems"][0]["origin"]["variable"], "FLARE_LOG_FORMAT");
        }
    }

    #[test]
    fn show_prints_the_effective_value() {
        let mut out = Vec::new();
        show(&sources("FLARE_LOG_LEVEL", "debug"), Format::Human, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("[log]\nlevel = \"debug\""), "{text}");
    }
}
