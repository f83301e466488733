//! The file of the key that seals secrets: a path comes in, what is in it goes out, and back. One line has the key; while
//! keys are rotated a second one has the former, and a last one says that something was sealed with it.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::NoKey;
use crate::config::{Config, KEY_BYTES, parse_key};
use crate::door::Entropy;

/// Stands below a key that has sealed something.
const MARK: &str = "# has sealed secrets of the database beside it";

/// Stands before the former key.
const FORMER: &str = "former ";

/// What is in the file.
#[derive(Clone)]
pub struct KeyFile {
    /// What seals.
    pub key: [u8; KEY_BYTES],
    /// What sealed before, until everything is sealed anew.
    pub former: Option<[u8; KEY_BYTES]>,
    /// Whether something was sealed.
    pub is_marked: bool,
}

/// Where the configuration has it.
pub fn path(config: &Config) -> PathBuf {
    config.provider.embedded.path.join(&config.auth.secret_key_file)
}

impl KeyFile {
    /// What is there; nothing where there is no file.
    pub fn read(path: &Path) -> Result<Option<KeyFile>, NoKey> {
        match std::fs::read_to_string(path) {
            Ok(text) => KeyFile::parse(path, &text).map(Some),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(NoKey::File { path: path.to_owned(), source }),
        }
    }

    /// The same, with a key that is drawn where there is none.
    pub fn read_or_draw(path: &Path, entropy: &Entropy) -> Result<KeyFile, NoKey> {
        if let Some(file) = KeyFile::read(path)? {
            return Ok(file);
        }
        let file = KeyFile { key: entropy.bytes(), former: None, is_marked: false };
        file.write(path)?;
        tracing::info!(path = %path.display(), "a key that seals secrets was drawn; backups need it");
        Ok(file)
    }

    /// What a text says, which is or was at the path.
    pub fn parse(path: &Path, text: &str) -> Result<KeyFile, NoKey> {
        let unfit = || NoKey::Form { path: path.to_owned() };
        let mut lines = text.lines().map(str::trim);
        let key = lines.next().and_then(parse_key).ok_or_else(unfit)?;
        let mut file = KeyFile { key, former: None, is_marked: false };
        for line in lines {
            match line.strip_prefix(FORMER) {
                Some(former) => file.former = Some(parse_key(former.trim()).ok_or_else(unfit)?),
                None => file.is_marked |= line == MARK,
            }
        }
        Ok(file)
    }

    /// As it stands in the file.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", STANDARD.encode(self.key));
        if let Some(former) = &self.former {
            text.push_str(&format!("{FORMER}{}\n", STANDARD.encode(former)));
        }
        if self.is_marked {
            text.push_str(&format!("{MARK}\n"));
        }
        text
    }

    /// Puts it in place of what is there, for its owner alone. It is on stable storage before anything is sealed with it: a
    /// crash must not leave secrets that nothing opens.
    pub fn write(&self, path: &Path) -> Result<(), NoKey> {
        self.replace(path).map_err(|source| NoKey::File { path: path.to_owned(), source })
    }

    fn replace(&self, path: &Path) -> std::io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let unfinished = path.with_extension("unfinished");
        let _ = std::fs::remove_file(&unfinished);
        let mut file =
            std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished)?;
        file.write_all(self.text().as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&unfinished, path)?;
        std::fs::File::open(folder)?.sync_all()
    }
}

/// Notes below a key that it has sealed something.
pub fn mark(path: &Path) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().append(true).open(path)?;
    file.write_all(format!("{MARK}\n").as_bytes())?;
    file.sync_all()
}
