//! `flare backup` and `flare restore`: a store comes in and a file goes out, and back.

use std::fs::{File, OpenOptions};
use std::io::{BufReader, BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use flare_core::config::Config;
use flare_core::door::{Clock as _, SystemClock, random_bytes};
use flare_core::vault::{self, KeyFile};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{container, embedded, key_of, tell};
use crate::cli::keeping::{BackupArgs, RestoreArgs};
use crate::cli::{Exit, Format};
use crate::version;

/// What stands before the database.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Description {
    /// The Flare that wrote it.
    flare: String,
    /// When.
    created_at: String,
    /// The file of the key that seals secrets, where it is not in the configuration.
    #[serde(skip_serializing_if = "Option::is_none")]
    secret_key: Option<String>,
}

/// A file that is gone when this is, whatever happens.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Scratch {
    /// Beside a file, where there should be room for another of its size.
    fn beside(path: &Path) -> Scratch {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.unfinished", u32::from_le_bytes(random_bytes())));
        Scratch(path.with_file_name(name))
    }

    fn create(&self) -> anyhow::Result<File> {
        let made = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&self.0);
        made.with_context(|| format!("making {}", self.0.display()))
    }
}

/// Copies a store into a file.
pub fn backup(args: &BackupArgs, output: Format, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let (config, path) = embedded(&args.store)?;
    if args.to.exists() {
        bail!("{} is there already: a backup never takes the place of another", args.to.display());
    }
    let key = args.key_file.as_deref().map(key_of).transpose()?;
    let secret_key = if args.without_key { None } else { sealing_key(&config)? };
    let copy = Scratch::beside(&args.to);
    // After the key: one that was rotated in between has not sealed anything in the copy.
    flare_embedded::copy(&path, &copy.0).with_context(|| format!("copying {}", path.display()))?;
    let description = Description {
        flare: version::VERSION.to_owned(),
        created_at: SystemClock::of_process().now().to_string(),
        secret_key: secret_key.as_ref().map(KeyFile::text),
    };
    let description = serde_json::to_vec(&description)?;
    let unfinished = Scratch::beside(&args.to);
    let mut file = BufWriter::new(unfinished.create()?);
    container::write(&mut file, key.as_ref(), random_bytes(), &description, File::open(&copy.0)?)?;
    file.into_inner().context("writing the backup")?.sync_all()?;
    // Nothing that came meanwhile is written over.
    std::fs::hard_link(&unfinished.0, &args.to).with_context(|| format!("making {}", args.to.display()))?;
    sync_folder(&args.to)?;
    let bytes = std::fs::metadata(&args.to)?.len();
    let mut words = format!("{} is a backup of {}, {bytes} bytes", args.to.display(), path.display());
    match (&secret_key, &key) {
        (Some(_), None) => words.push_str(
            "\nit has the key that seals secrets and credentials: keep it like one, or encrypt it with --key-file",
        ),
        (None, _) => words.push_str("\nit does not have the key that seals secrets and credentials: keep that too"),
        (Some(_), Some(_)) => {}
    }
    let value = json!({
        "backup": args.to, "bytes": bytes, "encrypted": key.is_some(), "hasSecretKey": secret_key.is_some(),
    });
    tell(output, out, &words, &value)?;
    Ok(Exit::Done)
}

/// The key that seals secrets, where it lies in a file.
fn sealing_key(config: &Config) -> anyhow::Result<Option<KeyFile>> {
    match config.auth.secret_key.reveal() {
        Some(_) => Ok(None),
        None => Ok(KeyFile::read(&vault::key_path(config))?),
    }
}

/// Puts a backup in place as a store.
pub fn restore(args: &RestoreArgs, output: Format, out: &mut dyn Write) -> anyhow::Result<Exit> {
    let (config, path) = embedded(&args.store())?;
    let key = args.key_file.as_deref().map(key_of).transpose()?;
    let from = || format!("the backup {}", args.from.display());
    let file = BufReader::new(File::open(&args.from).with_context(from)?);
    let copy = Scratch::beside(&path);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))?;
    }
    let description = container::read(file, key.as_ref(), copy.create()?).with_context(from)?;
    let description: Description = serde_json::from_slice(&description).with_context(from)?;
    let place = KeyPlace::of(&config, description.secret_key.as_deref())?;
    let moment = u64::try_from(SystemClock::of_process().now().millis()).unwrap_or(0).saturating_mul(1000);
    let findings = flare_embedded::place(&copy.0, &path, moment)
        .with_context(|| format!("restoring into {}", path.display()))?;
    if !findings.is_empty() {
        let list: Vec<String> = findings.iter().map(ToString::to_string).collect();
        bail!("{} is damaged, and nothing was restored:\n{}", args.from.display(), list.join("\n"));
    }
    place.write()?;
    let words = format!(
        "{} is restored from {}, written by Flare {} at {}; when a node starts on it, every client is told anew what is in it",
        path.display(),
        args.from.display(),
        description.flare,
        description.created_at
    );
    let value = json!({"data": path, "flare": description.flare, "createdAt": description.created_at});
    tell(output, out, &words, &value)?;
    Ok(Exit::Done)
}

/// Where the key of a backup goes.
struct KeyPlace(Option<(PathBuf, KeyFile)>);

impl KeyPlace {
    /// Refused where another key is: it is the key of something else.
    fn of(config: &Config, text: Option<&str>) -> anyhow::Result<KeyPlace> {
        let (Some(text), None) = (text, config.auth.secret_key.reveal()) else { return Ok(KeyPlace(None)) };
        let path = vault::key_path(config);
        let file = KeyFile::parse(&path, text)?;
        match KeyFile::read(&path)? {
            Some(other) if other.key != file.key => {
                bail!("{} has another key than the backup: move it away first", path.display())
            }
            _ => Ok(KeyPlace(Some((path, file)))),
        }
    }

    fn write(&self) -> anyhow::Result<()> {
        let Some((path, file)) = &self.0 else { return Ok(()) };
        Ok(file.write(path)?)
    }
}

fn sync_folder(path: &Path) -> anyhow::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    Ok(File::open(folder)?.sync_all()?)
}
