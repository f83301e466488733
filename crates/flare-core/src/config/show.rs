//! In: a loaded configuration. Out: its text, which is itself a configuration file with the origins as comments, or
//! JSON.

use std::fmt::Write as _;

use serde_json::json;

use super::load::{Entry, Loaded};

/// The effective configuration as TOML, each line with its origin.
pub fn text(loaded: &Loaded) -> String {
    let entries = loaded.entries();
    let lines: Vec<_> = entries.iter().map(|entry| (section(entry), line(entry), &entry.origin)).collect();
    let width = lines.iter().map(|(_, line, _)| line.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    let mut present = "";
    for (section, line, origin) in &lines {
        if *section != present {
            let gap = if text.is_empty() { "" } else { "\n" };
            writeln!(text, "{gap}[{section}]").expect("writing to a string cannot fail");
            present = section;
        }
        writeln!(text, "{line:width$}  # {origin}").expect("writing to a string cannot fail");
    }
    text
}

/// The effective configuration for machines.
pub fn json(loaded: &Loaded) -> serde_json::Value {
    json!({ "file": loaded.file, "settings": loaded.entries() })
}

fn section(entry: &Entry) -> &str {
    entry.key.rsplit_once('.').map_or("", |(section, _)| section)
}

fn line(entry: &Entry) -> String {
    let name = entry.key.rsplit('.').next().unwrap_or(&entry.key);
    format!("{name} = {}", entry.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Sources, load};

    fn loaded() -> Loaded {
        let environment = vec![("FLARE_NETWORK_DENY".into(), "10.0.0.0/8,fd00::/8".into())];
        load(&Sources { directory: "/nonexistent".into(), environment, ..Sources::default() }).unwrap()
    }

    #[test]
    fn what_is_shown_is_a_configuration_file_that_says_the_same() {
        let loaded = loaded();
        let shown = text(&loaded);
        assert!(shown.contains("deny = [\"10.0.0.0/8\", \"fd00::/8\"]"), "{shown}");
        assert!(
            shown.lines().any(|line| line.starts_with("deny") && line.ends_with("# FLARE_NETWORK_DENY")),
            "{shown}"
        );
        let path = std::env::temp_dir().join(format!("flare-shown-{}.toml", std::process::id()));
        std::fs::write(&path, &shown).unwrap();
        let again = load(&Sources { file: Some(path.clone()), ..Sources::default() });
        std::fs::remove_file(&path).unwrap();
        assert_eq!(again.unwrap().config, loaded.config);
        assert_ne!(loaded.config, Config::default());
    }

    #[test]
    fn json_gives_each_key_its_value_and_a_tagged_origin() {
        let shown = json(&loaded());
        let entry = |key: &str| {
            shown["settings"].as_array().unwrap().iter().find(|entry| entry["key"] == key).unwrap().clone()
        };
        assert_eq!(
            entry("http.server.threads"),
            json!({
                "key": "http.server.threads", "value": 0, "origin": { "kind": "default" },
            })
        );
        assert_eq!(
            entry("network.deny"),
            json!({
                "key": "network.deny", "value": ["10.0.0.0/8", "fd00::/8"],
                "origin": { "kind": "environment", "variable": "FLARE_NETWORK_DENY" },
            })
        );
    }
}
