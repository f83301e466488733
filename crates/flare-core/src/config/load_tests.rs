//! In: files, variables and flags. Out: what is loaded from them, and how what is wrong is told.

use std::time::Duration;

use flare_model::duration::HumanDuration;

use super::*;
use crate::config::ByteSize;
use crate::config::setting::Setting as _;

/// A directory of this test's own, with a `flare.toml` of this text.
struct Scene {
    directory: PathBuf,
}

impl Scene {
    fn new(name: &str, text: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("flare-config-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(FILE), text).unwrap();
        Self { directory }
    }

    fn sources(&self, environment: &[(&str, &str)]) -> Sources {
        let environment = environment.iter().map(|(name, value)| (name.into(), value.into())).collect();
        Sources { directory: self.directory.clone(), environment, ..Sources::default() }
    }

    fn problems(&self, environment: &[(&str, &str)]) -> Vec<String> {
        let Problems(problems) = load(&self.sources(environment)).unwrap_err();
        let path = format!("{}/", self.directory.display());
        problems.iter().map(|problem| problem.to_string().replace(&path, "")).collect()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.directory).expect("the scene made this directory");
    }
}

#[test]
fn with_nothing_configured_everything_is_the_default() {
    let nowhere = Sources { directory: "/nonexistent".into(), ..Sources::default() };
    let loaded = load(&nowhere).unwrap();
    assert_eq!(loaded.config, Config::default());
    assert_eq!(loaded.file, None);
    assert!(loaded.entries().iter().all(|entry| entry.origin == Origin::Default));
}

#[test]
fn later_places_win_and_each_value_knows_its_own() {
    let scene = Scene::new(
        "layers",
        "[http.server]\ntimeout = \"1s\"\nheader-timeout = \"1s\"\naddr = \"127.0.0.1:1\"\n",
    );
    let mut sources =
        scene.sources(&[("FLARE_HTTP_SERVER_TIMEOUT", "2s"), ("FLARE_HTTP_SERVER_ADDR", "127.0.0.1:2")]);
    sources.flags.push(Flag { key: "http.server.addr", flag: "--addr", value: "127.0.0.1:3".into() });
    let loaded = load(&sources).unwrap();
    let server = &loaded.config.http.server;
    assert_eq!((server.timeout, server.header_timeout), (Duration::from_secs(2), Duration::from_secs(1)));
    assert_eq!(server.addr.port(), 3);
    let origin = |key: &str| loaded.entries().into_iter().find(|entry| entry.key == key).unwrap().origin;
    assert_eq!(origin("http.server.addr"), Origin::Flag { flag: "--addr" });
    let variable = "FLARE_HTTP_SERVER_TIMEOUT".to_owned();
    assert_eq!(origin("http.server.timeout"), Origin::Environment { variable });
    let path = scene.directory.join(FILE);
    assert_eq!(origin("http.server.header-timeout"), Origin::File { path, line: 3 });
    assert_eq!(origin("http.server.body-limit"), Origin::Default);
}

#[test]
fn every_key_can_be_set_by_its_variable() {
    let mut environment = Vec::new();
    Config::default().walk("", &mut |key, slot| {
        let value = slot.shown();
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        environment.push((environment::variable(key).into(), text.into()));
    });
    let loaded =
        load(&Sources { directory: "/nonexistent".into(), environment, ..Sources::default() }).unwrap();
    assert_eq!(loaded.config, Config::default());
    assert!(loaded.entries().iter().all(|entry| matches!(entry.origin, Origin::Environment { .. })));
}

#[test]
fn no_two_keys_share_a_variable() {
    let mut variables: Vec<_> = keys().iter().map(|key| environment::variable(key)).collect();
    let count = variables.len();
    variables.sort();
    variables.dedup();
    assert_eq!(variables.len(), count);
}

#[test]
fn a_wrong_value_names_the_key_the_value_and_what_would_fit() {
    let scene =
        Scene::new("values", "[http.server]\ntimeout = 30\nmax-connections = 0\nbody-limit = \"big\"\n");
    let problems = scene.problems(&[("FLARE_LOG_FORMAT", "xml"), ("FLARE_NETWORK_DENY", "10.0.0.1/8")]);
    assert_eq!(
        problems,
        [
            r#"flare.toml:2: http.server.timeout = 30: expected a duration from "100ms" to "1h", for example "30s""#,
            "flare.toml:3: http.server.max-connections = 0: expected a whole number from 1 to 1000000, for example 4096",
            r#"flare.toml:4: http.server.body-limit = "big": expected a size in bytes from "1KB" to "256MB", for example "1MB""#,
            r#"FLARE_LOG_FORMAT: log.format = "xml": expected "human" or "json", for example "human""#,
            r#"FLARE_NETWORK_DENY: network.deny = "10.0.0.1/8": expected a list of address ranges, for example ["10.0.0.0/8", "fd00::/8"] ("10.0.0.1/8" has bits beyond its length: write "10.0.0.0/8")"#,
        ]
    );
}

#[test]
fn problems_are_told_in_the_order_of_the_file_and_then_those_of_the_environment() {
    let scene = Scene::new("order", "[delivery]\nwindow = 0\nthreds = 1\n\n[log]\nformat = \"xml\"\n");
    let problems = scene.problems(&[("FLARE_LOG_LEVLE", "info")]);
    let starts: Vec<&str> = problems.iter().filter_map(|problem| problem.split(' ').next()).collect();
    assert_eq!(starts, ["flare.toml:2:", "flare.toml:3:", "flare.toml:6:", "unknown"]);
}

#[test]
fn a_broken_rule_names_the_place_of_its_key() {
    let scene = Scene::new(
        "rules",
        "[http.server]\naddr = \"0.0.0.0:80\"\n\n[domain.pagination]\nmaximum-limit = 10\n",
    );
    let problems = scene.problems(&[]);
    assert_eq!(problems.len(), 2);
    assert!(
        problems[0].starts_with("flare.toml:2: http.server.addr: 0.0.0.0:80 can be reached"),
        "{problems:?}"
    );
    assert_eq!(
        problems[1],
        "domain.pagination.default-limit: 30 is more than domain.pagination.maximum-limit = 10: lower the one or raise the other"
    );
}

#[test]
fn a_named_file_must_exist() {
    let Problems(problems) =
        load(&Sources { file: Some("/nonexistent.toml".into()), ..Sources::default() }).unwrap_err();
    assert!(matches!(problems.as_slice(), [Problem::Unreadable { .. }]), "{problems:?}");
}

/// A value one step beyond a bound, where there is such a step.
fn beyond(bound: &toml::Value, up: bool) -> Option<String> {
    let step = |number: i128| if up { number + 1 } else { number - 1 };
    match bound {
        toml::Value::Integer(number) => Some(step(i128::from(*number)).to_string()),
        toml::Value::Float(number) => Some((if up { number + 0.001 } else { number - 0.001 }).to_string()),
        toml::Value::String(text) => {
            if let Ok(HumanDuration(duration)) = text.parse::<HumanDuration>() {
                let nanos = i128::try_from(duration.as_nanos()).unwrap();
                return (up || nanos > 0).then(|| format!("{}ns", step(nanos)));
            }
            let bytes = i128::try_from(ByteSize::from_text(text).unwrap().as_usize()).unwrap();
            (up || bytes > 0).then(|| step(bytes).to_string())
        }
        other => panic!("a bound of another kind: {other}"),
    }
}

#[test]
fn every_limit_is_kept_at_below_and_above_its_bounds() {
    let mut tried = 0;
    let mut config = Config::default();
    config.walk("", &mut |key, slot| {
        let Some(bounds) = slot.bounds() else { return };
        let (low, high) = bounds.strip_prefix("from ").unwrap().split_once(" to ").unwrap();
        let value = |text: &str| text.parse::<toml::Value>().unwrap();
        for (bound, up) in [(value(low), false), (value(high), true)] {
            let at = Raw::Toml(bound.clone());
            assert_eq!(slot.read(&at), Ok(()), "{key} at {bound}");
            if let Some(beyond) = beyond(&bound, up) {
                let refused = slot.read(&Raw::Text(beyond.clone())).expect_err(key);
                assert!(refused.contains(&bounds), "{key} = {beyond}: {refused}");
            }
            assert_eq!(slot.shown(), bound, "{key}: what is refused changes nothing");
            tried += 1;
        }
    });
    assert!(tried > 100, "{tried}");
}
