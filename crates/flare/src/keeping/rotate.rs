//! `flare key rotate`: a store comes in, and everything in it is sealed under another key.
//!
//! The new key is on the disk, with the former one beside it, before anything is sealed with it, and the former one goes when
//! nothing needs it any more: whenever this ends, a node opens everything, and the next rotation goes on where it was.

use std::io::Write;

use anyhow::{Context as _, bail};
use flare_core::config::{Config, Store};
use flare_core::door::Entropy;
use flare_core::journey::Report;
use flare_core::sealing::{Resealed, reseal};
use flare_core::vault::{self, KeyFile, Vault};
use serde_json::json;

use super::{key_of, tell};
use crate::cli::keeping::RotateArgs;
use crate::cli::{Exit, Format};
use crate::node::cluster::replace_key;
use crate::node::engine::Engine;

/// Seals everything anew.
pub fn run(args: &RotateArgs, output: Format, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let config = flare_core::config::load(&args.store.sources())?.config;
    if config.provider.store == Store::Memory {
        bail!("provider.store = \"memory\": nothing of it outlives its process");
    }
    let (report, _fatal, _events) = Report::new();
    // Nobody else may use it meanwhile.
    let engine = Engine::open(&config, &report).context("opening the store")?;
    let rotated = rotate(&config, args, &engine);
    engine.close();
    let Resealed { subscriptions, consumers } = rotated?;
    let of_consumers = if consumers > 0 { format!(" and {consumers} consumers") } else { String::new() };
    let words =
        format!("the secrets and credentials of {subscriptions} subscriptions{of_consumers} are sealed anew");
    tell(output, out, &words, &json!({ "resealed": subscriptions + consumers }))?;
    Ok(Exit::Done)
}

fn rotate(config: &Config, args: &RotateArgs, engine: &Engine) -> anyhow::Result<Resealed> {
    let entropy = Entropy::of_machine();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if let Some(key) = config.auth.secret_key.reveal() {
        let Some(former) = &args.former_file else {
            bail!(
                "auth.secret-key has the key: put the new one there, and give the former with --former-file"
            )
        };
        let former = key_of(former)?;
        let vault = Vault::new(key, entropy.clone()).with_former(&former);
        return runtime.block_on(async {
            let count = reseal(&engine.store(), &vault).await?;
            // Last: if this is interrupted before, no node starts with either key until it is done again.
            replace_key(config, engine, &Vault::new(&former, entropy), &vault).await?;
            Ok(count)
        });
    }
    let path = vault::key_path(config);
    let mut file = match KeyFile::read(&path)? {
        // One that was interrupted goes on.
        Some(file) if file.former.is_some() => file,
        Some(KeyFile { key, is_marked, .. }) => {
            KeyFile { key: entropy.bytes(), former: Some(key), is_marked }
        }
        None => bail!("there is no key in {}: nothing was ever sealed", path.display()),
    };
    file.write(&path)?;
    let former = file.former.expect("it was put there, or was there");
    let vault = Vault::new(&file.key, entropy).with_former(&former);
    let count = runtime.block_on(reseal(&engine.store(), &vault))?;
    file.former = None;
    file.write(&path)?;
    Ok(count)
}
