//! The folder of a database: a path comes in, the only right to use it goes out.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use flare_provider::{ErrorKind, ProviderError, Result};

const OPERATION: &str = "embedded.open";

/// A folder that no other process uses, for as long as this lives. The operating system lets go of it when the
/// process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes the folder where it is missing, and takes it.
    pub fn take(path: &Path) -> Result<Folder> {
        let failed = |what: &str, error: std::io::Error| {
            let detail = format!("{what} {}", path.display());
            ProviderError::new(ErrorKind::Unavailable, OPERATION, detail).because(error)
        };
        std::fs::create_dir_all(path).map_err(|error| failed("cannot make the folder", error))?;
        let mut options = OpenOptions::new();
        let lock = options.create(true).truncate(false).write(true).open(path.join("lock"));
        let lock = lock.map_err(|error| failed("cannot write in the folder", error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Folder { path: path.to_owned(), _lock: lock }),
            Err(TryLockError::WouldBlock) => {
                let detail = format!("another Flare uses the folder {}", path.display());
                Err(ProviderError::new(ErrorKind::Unavailable, OPERATION, detail))
            }
            Err(TryLockError::Error(error)) => Err(failed("cannot lock the folder", error)),
        }
    }

    /// The database in it.
    pub fn database(&self) -> PathBuf {
        database(&self.path)
    }
}

/// The database in a folder, taken or not.
pub(crate) fn database(folder: &Path) -> PathBuf {
    folder.join("flare.db")
}
