//! In: the environment's variables. Out: a value for each known `FLARE_` variable, and a problem for every other.

use std::ffi::OsString;

use super::load::Given;
use super::problem::{Origin, Problem, nearest};
use super::setting::Raw;

/// Names the configuration file, as `--config` does.
pub const CONFIG: &str = "FLARE_CONFIG";

const PREFIX: &str = "FLARE_";

/// Variables that are no keys: the file's name, the build's, and the tests' hand on the clock.
const OTHERS: [&str; 4] = [CONFIG, "FLARE_TOKEN", "FLARE_GIT_SHA", crate::door::OFFSET_FILE];

/// The variable of a key: `FLARE_` and its name in capitals, with `_` for dots and dashes.
pub fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace(['.', '-'], "_").to_uppercase())
}

/// Reads the environment. An empty variable counts as one that is not set.
pub fn read(
    environment: &[(OsString, OsString)],
    keys: &[String],
    problems: &mut Vec<Problem>,
) -> Vec<Given> {
    let names: Vec<String> = keys.iter().map(|key| variable(key)).collect();
    let mut given = Vec::new();
    for (name, value) in environment {
        let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
        if OTHERS.contains(&name) || value.is_empty() {
            continue;
        }
        let origin = Origin::Environment { variable: name.to_owned() };
        let text = value.to_string_lossy().into_owned();
        match names.iter().position(|known| known == name) {
            Some(at) => given.push(Given { key: keys[at].clone(), raw: Raw::Text(text), origin }),
            None if is_service_link(name, &text) => {}
            None => {
                let nearest = nearest(name, names.iter().map(String::as_str).chain([CONFIG]));
                problems.push(Problem::Unknown { name: name.to_owned(), origin, nearest });
            }
        }
    }
    given
}

/// Whether a variable is one of those that Kubernetes puts into every container of a namespace with a service called
/// `flare` or `flare-something`. Refusing them would keep Flare from starting next to its own service.
fn is_service_link(name: &str, value: &str) -> bool {
    let ports = |rest: &str| {
        let mut parts = rest.split('_');
        parts.next().is_some_and(|port| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
            && parts.next().is_some_and(|protocol| ["TCP", "UDP", "SCTP"].contains(&protocol))
    };
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || (name.ends_with("_PORT") && value.contains("://"))
        || name.split_once("_PORT_").is_some_and(|(_, rest)| ports(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_pairs(pairs: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let environment: Vec<_> = pairs.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let keys = ["log.level", "http.server.body-limit"].map(str::to_owned);
        let mut problems = Vec::new();
        let given = read(&environment, &keys, &mut problems);
        (
            given.into_iter().map(|given| given.key).collect(),
            problems.iter().map(ToString::to_string).collect(),
        )
    }

    #[test]
    fn a_key_is_found_by_the_name_of_its_variable() {
        let (given, problems) =
            read_pairs(&[("FLARE_HTTP_SERVER_BODY_LIMIT", "1MB"), ("PATH", "x"), ("FLARE", "x")]);
        assert_eq!(given, ["http.server.body-limit"]);
        assert!(problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn an_unknown_variable_is_a_problem_that_suggests_the_nearest() {
        let (_, problems) =
            read_pairs(&[("FLARE_LOG_LEVLE", "info"), ("FLARE_CONFG", "x"), ("FLARE_WEATHER", "x")]);
        assert_eq!(
            problems,
            [
                "unknown environment variable FLARE_LOG_LEVLE; did you mean FLARE_LOG_LEVEL?",
                "unknown environment variable FLARE_CONFG; did you mean FLARE_CONFIG?",
                "unknown environment variable FLARE_WEATHER",
            ]
        );
    }

    #[test]
    fn variables_that_are_no_keys_and_empty_ones_are_passed_over() {
        let (given, problems) = read_pairs(&[
            ("FLARE_CONFIG", "x"),
            ("FLARE_GIT_SHA", "x"),
            ("FLARE_TOKEN", "x"),
            ("FLARE_TEST_CLOCK_OFFSET_FILE", "x"),
            ("FLARE_LOG_LEVEL", ""),
        ]);
        assert!(given.is_empty() && problems.is_empty(), "{problems:?}");
    }

    #[test]
    fn the_links_of_a_service_called_flare_are_passed_over() {
        let links = [
            ("FLARE_SERVICE_HOST", "10.0.0.1"),
            ("FLARE_SERVICE_PORT", "8080"),
            ("FLARE_SERVICE_PORT_HTTP", "8080"),
            ("FLARE_PORT", "tcp://10.0.0.1:8080"),
            ("FLARE_API_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
            ("FLARE_API_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ];
        let (_, problems) = read_pairs(&links);
        assert!(problems.is_empty(), "{problems:?}");
        let (_, problems) = read_pairs(&[("FLARE_PORT", "8080"), ("FLARE_HTTP_PORT_NUMBER", "8080")]);
        assert_eq!(problems.len(), 2, "{problems:?}");
    }
}
