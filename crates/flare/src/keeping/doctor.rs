//! `flare doctor`: a store comes in, what is wrong with it goes out, in words.

use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use flare_core::config::Config;
use flare_core::door::Entropy;
use flare_core::sealing;
use flare_core::vault::{self, Closed, KeyFile, Vault};
use flare_embedded::Finding;
use flare_model::ids::SubscriptionId;
use flare_model::subscription::Stored;
use serde_json::json;

use super::embedded;
use crate::cli::{Exit, Format, StoreArgs};

/// Checks a store.
pub fn run(args: &StoreArgs, output: Format, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let (config, path) = embedded(args)?;
    // Before the store is looked at, which closes what was open.
    let mut findings = open_to_others(&path)?;
    let audited =
        flare_embedded::audit(&path).with_context(|| format!("looking through {}", path.display()))?;
    let is_sound = audited.is_empty();
    findings.extend(audited);
    if is_sound {
        findings.extend(sealed_by_others(&config, &path)?);
    }
    match output {
        Format::Json => {
            let list: Vec<_> =
                findings.iter().map(|found| json!({"about": found.about, "what": found.what})).collect();
            writeln!(out, "{}", json!({"ok": findings.is_empty(), "findings": list}))?;
        }
        Format::Human if findings.is_empty() => writeln!(out, "{} is sound", path.display())?,
        Format::Human => {
            for finding in &findings {
                writeln!(out, "{finding}")?;
            }
            writeln!(out, "{} findings in {}", findings.len(), path.display())?;
        }
    }
    Ok(if findings.is_empty() { Exit::Done } else { Exit::Found })
}

/// What others may read.
fn open_to_others(path: &Path) -> anyhow::Result<Vec<Finding>> {
    let mut findings = Vec::new();
    let Ok(entries) = std::fs::read_dir(path) else { return Ok(findings) };
    let files = entries.filter_map(Result::ok).map(|entry| entry.path());
    for path in std::iter::once(path.to_owned()).chain(files) {
        let mode = std::fs::metadata(&path)?.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            let what = format!("others than its owner may use it (mode {mode:o}); the next start closes it");
            findings.push(Finding { about: path.display().to_string(), what });
        }
    }
    Ok(findings)
}

/// What the present key does not open, and what nobody has sealed.
fn sealed_by_others(config: &Config, path: &Path) -> anyhow::Result<Vec<Finding>> {
    let subscriptions = flare_embedded::subscriptions(path)?;
    let mut findings = Vec::new();
    let mut add =
        |id: &str, what: String| findings.push(Finding { about: format!("subscription {id}"), what });
    let vault = match KeyFile::read(&vault::key_path(config))? {
        None if config.auth.secret_key.reveal().is_none() => None,
        _ => Some(Vault::open(config, &Entropy::of_machine())?),
    };
    for (id, body) in subscriptions {
        let stored: Stored = match serde_json::from_str(&body) {
            Ok(stored) => stored,
            Err(error) => {
                add(&id, format!("cannot be read: {error}"));
                continue;
            }
        };
        if sealing::is_open(&body) {
            add(&id, "has credentials that are not sealed; the next start seals them".to_owned());
        }
        let number = SubscriptionId::new(id.as_str());
        let closed = |closed: Closed| format!("cannot be opened: {closed}");
        for secret in &stored.secrets {
            match vault.as_ref().map(|vault| vault.unseal(&number, &secret.sealed)) {
                None => add(&id, "has a sealed secret, and there is no key".to_owned()),
                Some(Err(why)) => add(&id, format!("its secret {}", closed(why))),
                Some(Ok(_)) => {}
            }
        }
        if let (Some(sealed), Some(vault)) = (&stored.sealed_endpoint, &vault)
            && let Err(why) = vault.unseal_endpoint(&number, sealed)
        {
            add(&id, format!("its endpoint {}", closed(why)));
        }
    }
    Ok(findings)
}
