//! In: the places a configuration may come from. Out: the effective configuration with the origin of each value, or
//! everything that is wrong with it.
//!
//! Later places win: the defaults, the standard variables of OpenTelemetry, the file, Flare's own variables, the command
//! line. A wrong value is a problem even where a later place overrides it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::problem::{Origin, Problem, Problems};
use super::schema::Config;
use super::secret::REDACTED;
use super::section::Section as _;
use super::setting::Raw;
use super::{environment, file, telemetry, validate};

/// The file that is read when none is named, if it is there.
const FILE: &str = "flare.toml";

/// A value for a key, from somewhere.
#[derive(Debug)]
pub struct Given {
    /// The dotted name of the key.
    pub key: String,
    /// The value as it was written.
    pub raw: Raw,
    /// Where.
    pub origin: Origin,
}

/// A value from the command line.
#[derive(Debug, Clone)]
pub struct Flag {
    /// The key that it sets.
    pub key: &'static str,
    /// The flag with its dashes.
    pub flag: &'static str,
    /// The value as it was written.
    pub value: String,
}

/// Where a configuration is looked for.
#[derive(Debug, Default)]
pub struct Sources {
    /// The file that was asked for by name; it must exist.
    pub file: Option<PathBuf>,
    /// Where `flare.toml` is looked for when no file was named; empty for the working directory.
    pub directory: PathBuf,
    /// The environment's variables; of those that do not begin with `FLARE_` only OpenTelemetry's matter.
    pub environment: Vec<(OsString, OsString)>,
    /// What the command line says.
    pub flags: Vec<Flag>,
}

impl Sources {
    /// The sources of this process. A file named on the command line goes before one named by `FLARE_CONFIG`.
    pub fn of_process(file: Option<PathBuf>, flags: Vec<Flag>) -> Self {
        let named =
            || std::env::var_os(environment::CONFIG).filter(|path| !path.is_empty()).map(PathBuf::from);
        let environment = std::env::vars_os().collect();
        Self { file: file.or_else(named), directory: PathBuf::new(), environment, flags }
    }
}

/// A configuration and where it came from.
#[derive(Debug)]
pub struct Loaded {
    /// The effective values, checked.
    pub config: Config,
    /// The file that was read, if any.
    pub file: Option<PathBuf>,
    origins: BTreeMap<String, Origin>,
}

/// One key as it is shown.
#[derive(Debug, serde::Serialize)]
pub struct Entry {
    /// The dotted name.
    pub key: String,
    /// The effective value; secrets redacted.
    pub value: toml::Value,
    /// Where it came from.
    pub origin: Origin,
}

impl Loaded {
    /// Every key with its value and origin, in the order of the default file.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = Vec::new();
        self.config.clone().walk("", &mut |key, slot| {
            let origin = origin_of(&self.origins, key);
            entries.push(Entry { key: key.to_owned(), value: slot.shown(), origin });
        });
        entries
    }
}

/// Loads the configuration.
pub fn load(sources: &Sources) -> Result<Loaded, Problems> {
    let keys = keys();
    let mut problems = Vec::new();
    let mut config = Config::default();
    let mut origins = BTreeMap::new();
    let file = match &sources.file {
        Some(path) => Some(path.clone()),
        None => Some(sources.directory.join(FILE)).filter(|path| path.exists()),
    };
    let mut given = telemetry::read(&sources.environment);
    given.extend(file.as_ref().map_or_else(Vec::new, |path| from_file(path, &keys, &mut problems)));
    given.extend(environment::read(&sources.environment, &keys, &mut problems));
    given.extend(sources.flags.iter().map(|Flag { key, flag, value }| Given {
        key: (*key).to_owned(),
        raw: Raw::Text(value.clone()),
        origin: Origin::Flag { flag },
    }));
    for given in given {
        apply(&mut config, given, &mut origins, &mut problems);
    }
    // Rules about several keys would only repeat what is wrong with one of them.
    if problems.is_empty() {
        problems.extend(validate::check(&config).into_iter().map(|(key, message)| {
            let origin = origin_of(&origins, key);
            Problem::Rule { key, origin, message }
        }));
    }
    // The file from top to bottom, then the rest; stable, so that each place keeps its own order.
    problems.sort_by_key(|problem| match problem.origin() {
        Some(Origin::File { line, .. }) => *line,
        _ => usize::MAX,
    });
    if problems.is_empty() { Ok(Loaded { config, file, origins }) } else { Err(Problems(problems)) }
}

/// The dotted name of every key, in the order of the declaration.
pub fn keys() -> Vec<String> {
    let mut keys = Vec::new();
    Config::default().walk("", &mut |key, _| keys.push(key.to_owned()));
    keys
}

fn from_file(path: &Path, keys: &[String], problems: &mut Vec<Problem>) -> Vec<Given> {
    match std::fs::read_to_string(path) {
        Ok(text) => file::read(path, &text, keys, problems),
        Err(source) => {
            problems.push(Problem::Unreadable { path: path.to_owned(), source });
            Vec::new()
        }
    }
}

fn apply(
    config: &mut Config,
    given: Given,
    origins: &mut BTreeMap<String, Origin>,
    problems: &mut Vec<Problem>,
) {
    let Given { key: wanted, raw, origin } = given;
    config.walk("", &mut |key, slot| {
        if key != wanted {
            return;
        }
        match slot.read(&raw) {
            Ok(()) => {
                origins.insert(key.to_owned(), origin.clone());
            }
            Err(expected) => {
                let value = match &raw {
                    _ if slot.is_secret() => REDACTED.to_owned(),
                    Raw::Text(text) => toml::Value::from(text.as_str()).to_string(),
                    Raw::Toml(value) => value.to_string(),
                };
                problems.push(Problem::Value {
                    key: key.to_owned(),
                    value,
                    origin: origin.clone(),
                    expected,
                });
            }
        }
    });
}

fn origin_of(origins: &BTreeMap<String, Origin>, key: &str) -> Origin {
    origins.get(key).cloned().unwrap_or(Origin::Default)
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
