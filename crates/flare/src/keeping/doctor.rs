//! `flare doctor`: a store comes in, what is wrong with it goes out, in words.

use std::io::Write;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use flare_core::config::Config;
use flare_core::door::Entropy;
use flare_core::sealing::{self, Unknowable};
use flare_core::vault::{self, Closed, KeyFile, Vault};
use flare_embedded::Finding;
use flare_model::access::{StoredAccount, StoredToken};
use flare_model::consumer::StoredConsumer;
use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::resource::ResourceView;
use flare_model::subscription::Stored;
use flare_provider::EntityKind;
use serde::de::DeserializeOwned;
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
        findings.extend(unreadable(&path)?);
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

/// Entities that a node could not read, which keeps it from starting. Of those that have something sealed it is said below.
fn unreadable(path: &Path) -> anyhow::Result<Vec<Finding>> {
    fn wrong<T: DeserializeOwned>(body: &str) -> Option<String> {
        serde_json::from_str::<T>(body).err().map(|error| error.to_string())
    }
    let mut findings = Vec::new();
    for (kind, wrong) in [
        (EntityKind::Resource, wrong::<ResourceView> as fn(&str) -> Option<String>),
        (EntityKind::Account, wrong::<StoredAccount>),
        (EntityKind::Token, wrong::<StoredToken>),
    ] {
        for (id, body) in flare_embedded::stored(path, kind)? {
            let about = format!("{} {id}", kind.as_str());
            findings.extend(
                wrong(&body).map(|error| Finding { about, what: format!("cannot be read: {error}") }),
            );
        }
    }
    Ok(findings)
}

/// What the present key does not open, and what nobody has sealed.
fn sealed_by_others(config: &Config, path: &Path) -> anyhow::Result<Vec<Finding>> {
    let vault = match KeyFile::read(&vault::key_path(config))? {
        None if config.auth.secret_key.reveal().is_none() => None,
        _ => Some(Vault::open(config, &Entropy::of_machine())?),
    };
    let mut findings = Vec::new();
    for kind in [EntityKind::Subscription, EntityKind::Producer, EntityKind::Consumer] {
        for (id, body) in flare_embedded::stored(path, kind)? {
            let wrong = match kind {
                EntityKind::Consumer => closed_consumer(vault.as_ref(), &id, &body),
                _ => closed_subscription(vault.as_ref(), &id, &body),
            };
            let about = format!("{} {id}", kind.as_str());
            findings.extend(wrong.into_iter().map(|what| Finding { about: about.clone(), what }));
        }
    }
    Ok(findings)
}

fn closed(closed: &Closed) -> String {
    format!("cannot be opened: {closed}")
}

const NO_KEY: &str = "has a sealed secret, and there is no key";

/// What is wrong with what is sealed of a subscription or a producer.
fn closed_subscription(vault: Option<&Vault>, id: &str, body: &str) -> Vec<String> {
    let stored: Stored = match serde_json::from_str(body) {
        Ok(stored) => stored,
        Err(error) => return vec![format!("cannot be read: {error}")],
    };
    let mut wrong = Vec::new();
    if sealing::is_open(body) {
        wrong.push("has credentials that are not sealed; the next start seals them".to_owned());
    }
    let id = SubscriptionId::new(id);
    for secret in &stored.secrets {
        match vault.map(|vault| vault.unseal(&id, &secret.sealed)) {
            None => wrong.push(NO_KEY.to_owned()),
            Some(Err(why)) => wrong.push(format!("its secret {}", closed(&why))),
            Some(Ok(_)) => {}
        }
    }
    if let (Some(sealed), Some(vault)) = (&stored.sealed_endpoint, vault)
        && let Err(why) = vault.unseal_endpoint(&id, sealed)
    {
        wrong.push(format!("its endpoint {}", closed(&why)));
    }
    wrong
}

/// The same of a consumer, which has what it polls with.
fn closed_consumer(vault: Option<&Vault>, id: &str, body: &str) -> Vec<String> {
    let Some(vault) = vault else {
        let is_sealed =
            serde_json::from_str::<StoredConsumer>(body).is_ok_and(|stored| stored.sealed.is_some());
        return if is_sealed { vec![NO_KEY.to_owned()] } else { Vec::new() };
    };
    match sealing::consumer_from_rest(vault, &ResourceId::new(id), body) {
        Ok(_) => Vec::new(),
        Err(Unknowable::Closed(_, why)) => vec![format!("its source {}", closed(&why))],
        Err(why) => vec![format!("cannot be read: {why}")],
    }
}
