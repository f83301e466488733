//! In: what is wrong with a configuration. Out: a message that names the key, where it was given, and the remedy.

use std::fmt;
use std::io;
use std::path::PathBuf;

use serde::Serialize;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Origin {
    /// Nobody said anything.
    Default,
    /// A line of the configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// An environment variable.
    Environment {
        /// Its name.
        variable: String,
    },
    /// The command line.
    Flag {
        /// The flag with its dashes.
        flag: &'static str,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Environment { variable } => f.write_str(variable),
            Self::Flag { flag } => f.write_str(flag),
        }
    }
}

/// One thing that is wrong.
#[derive(Debug)]
pub enum Problem {
    /// The file cannot be read.
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file is not TOML.
    Syntax {
        /// Where the reader stopped.
        origin: Origin,
        /// What it said.
        message: String,
    },
    /// There is no such key, or no such environment variable.
    Unknown {
        /// The name that was given.
        name: String,
        /// Where.
        origin: Origin,
        /// The known name that looks most like it.
        nearest: Option<String>,
    },
    /// A value of the wrong form or out of bounds.
    Value {
        /// The key.
        key: String,
        /// What was given, redacted where the key is a secret.
        value: String,
        /// Where.
        origin: Origin,
        /// What would have fitted.
        expected: String,
    },
    /// A value that does not go with another.
    Rule {
        /// The key.
        key: &'static str,
        /// Where its value comes from.
        origin: Origin,
        /// What does not fit, and the remedy.
        message: String,
    },
}

impl Problem {
    /// The key that is to be corrected, where there is one.
    pub fn key(&self) -> Option<&str> {
        match self {
            Self::Unreadable { .. } | Self::Syntax { .. } => None,
            Self::Unknown { name, .. } => Some(name),
            Self::Value { key, .. } => Some(key),
            Self::Rule { key, .. } => Some(key),
        }
    }

    /// Where it was given, where that is known.
    pub fn origin(&self) -> Option<&Origin> {
        match self {
            Self::Unreadable { .. } => None,
            Self::Syntax { origin, .. }
            | Self::Unknown { origin, .. }
            | Self::Value { origin, .. }
            | Self::Rule { origin, .. } => Some(origin),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { path, source } => write!(f, "cannot read {}: {source}", path.display()),
            Self::Syntax { origin, message } => write!(f, "{origin}: {message}"),
            Self::Unknown { name, origin, nearest } => {
                match origin {
                    Origin::Environment { .. } => write!(f, "unknown environment variable {name}")?,
                    _ => write!(f, "{origin}: unknown key {name}")?,
                }
                nearest.as_ref().map_or(Ok(()), |nearest| write!(f, "; did you mean {nearest}?"))
            }
            Self::Value { key, value, origin, expected } => {
                write!(f, "{origin}: {key} = {value}: {expected}")
            }
            Self::Rule { key, origin: Origin::Default, message } => write!(f, "{key}: {message}"),
            Self::Rule { key, origin, message } => write!(f, "{origin}: {key}: {message}"),
        }
    }
}

/// Everything that is wrong with a configuration: all of it, so that it is put right in one go.
#[derive(Debug)]
pub struct Problems(pub Vec<Problem>);

impl Problems {
    /// One that shows only when it is tried: the key to correct, and what to say.
    pub fn of(key: &'static str, message: String) -> Problems {
        Problems(vec![Problem::Rule { key, origin: Origin::Default, message }])
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.0.iter().enumerate() {
            write!(f, "{}{problem}", if index == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl std::error::Error for Problems {}

/// The known name that looks most like a given one, if any looks like it at all.
pub fn nearest<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let far = (given.len() / 3).max(2);
    let last = |name: &str| name.rsplit('.').next().map(str::to_owned);
    let mut same_end = Vec::new();
    let mut best: Option<(usize, &str)> = None;
    for name in known {
        let distance = strsim::damerau_levenshtein(given, name);
        if distance <= far && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, name));
        }
        if last(name) == last(given) {
            same_end.push(name);
        }
    }
    // A key under the wrong section is the commonest slip, and far away by letters.
    match (best, same_end.as_slice()) {
        (Some((_, name)), _) | (None, &[name]) => Some(name.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_by_letters_or_by_its_last_part() {
        let known = ["http.server.addr", "http.server.body-limit", "http.client.connections", "log.level"];
        let cases = [
            ("http.server.adr", Some("http.server.addr")),
            ("http.server.body_limit", Some("http.server.body-limit")),
            ("http.server.bodyLimit", Some("http.server.body-limit")),
            ("addr", Some("http.server.addr")),
            ("server.addr", Some("http.server.addr")),
            ("log.levle", Some("log.level")),
            ("weather", None),
        ];
        for (given, expected) in cases {
            assert_eq!(nearest(given, known).as_deref(), expected, "{given}");
        }
    }

    #[test]
    fn a_last_part_that_several_keys_share_is_not_guessed() {
        assert_eq!(nearest("threads", ["http.server.threads", "delivery.threads"]), None);
    }
}
