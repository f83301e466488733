//! In: `flare.toml`, `FLARE_` variables and flags. Out: one checked [`Config`] that knows where each value came from.
//!
//! A key is declared once, in [`schema`]. To add one: declare it there, explain it in `default.toml`, and the tests
//! tell what is missing. Reading, bounds, environment variables, suggestions and `config show` follow by themselves.

mod choice;
mod cidr;
mod cluster;
mod environment;
mod file;
mod load;
mod postgresql;
mod problem;
mod proxy;
mod schema;
mod secret;
mod section;
mod setting;
pub mod show;
mod site;
mod size;
mod telemetry;
mod validate;

pub use cidr::Cidr;
pub use cluster::among_others::{Bell, Coordination};
pub use load::{Flag, Sources, load};
pub use problem::Problems;
pub use schema::*;

#[allow(
    unused_imports,
    reason = "the types of public fields and results, so that whoever holds one can name it"
)]
pub use {
    choice::{
        AuthMode, Coordinator, DatabaseTls, DoorbellEngine, Failover, LogFormat, LogLevel, LogOutput, Place,
        Store, UserAgent, WebhookUrl,
    },
    cluster::{Advertised, AutoDuration, ClusterName, Credential, EtcdEndpoint, KeyPrefix, NodeName},
    load::{Entry, Loaded},
    postgresql::{DatabaseUrl, SchemaName},
    problem::{Origin, Problem},
    proxy::{Proxy, ProxyUrl},
    secret::{KEY_BYTES, SecretKey, Token, parse_key},
    setting::Port,
    site::{HostName, WebOrigin},
    size::ByteSize,
    telemetry::{Attributes, CertificateFile, ExportHeaders, Protocol, Ratio, ServiceName},
};

/// The default configuration with an explanation of every key.
pub const DEFAULT_FILE: &str = include_str!("default.toml");

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::section::Section as _;
    use super::*;

    #[test]
    fn the_default_file_says_what_the_code_does() {
        let path = std::env::temp_dir().join(format!("flare-default-{}.toml", std::process::id()));
        std::fs::write(&path, DEFAULT_FILE).unwrap();
        let loaded = load(&Sources { file: Some(path.clone()), ..Sources::default() });
        std::fs::remove_file(&path).unwrap();
        assert_eq!(loaded.unwrap().config, Config::default());
    }

    #[test]
    fn the_default_file_has_every_key_in_order_and_no_other() {
        let keys = load::keys();
        let mut problems = Vec::new();
        let given = file::read(Path::new("default.toml"), DEFAULT_FILE, &keys, &mut problems);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(given.into_iter().map(|given| given.key).collect::<Vec<_>>(), keys);
    }

    #[test]
    fn the_default_file_explains_every_key_and_its_bounds() {
        let lines: Vec<&str> = DEFAULT_FILE.lines().collect();
        let mut section = "";
        let mut at = 0;
        Config::default().walk("", &mut |key, slot| {
            let (wanted, name) = key.rsplit_once('.').unwrap();
            while section != wanted || !lines[at].starts_with(&format!("{name} = ")) {
                section = lines[at].strip_prefix('[').map_or(section, |line| line.trim_end_matches(']'));
                at += 1;
            }
            let above = lines[..at].iter().rev().take_while(|line| line.starts_with('#'));
            let mut comment: Vec<&str> = above.map(|line| line.trim_start_matches('#').trim()).collect();
            comment.reverse();
            let comment = comment.join(" ");
            assert!(!comment.is_empty(), "{key} is not explained");
            let bounds = slot.bounds().map(|bounds| bounds.replacen("from", "From", 1)).unwrap_or_default();
            assert!(comment.contains(&bounds), "{key}: the comment should say {bounds:?}");
        });
    }
}
