//! The folder of a database: a path comes in, the only right to use it goes out.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt as _;
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
        Folder::try_take(path)?.ok_or_else(|| {
            let detail = format!("another Flare uses the folder {}", path.display());
            ProviderError::new(ErrorKind::Unavailable, OPERATION, detail)
        })
    }

    /// The same, and nothing while another process has it.
    pub fn try_take(path: &Path) -> Result<Option<Folder>> {
        let failed = |what: &str, error: std::io::Error| {
            let detail = format!("{what} {}", path.display());
            ProviderError::new(ErrorKind::Unavailable, OPERATION, detail).because(error)
        };
        std::fs::create_dir_all(path).map_err(|error| failed("cannot make the folder", error))?;
        let mut options = OpenOptions::new();
        let lock = options.create(true).truncate(false).write(true).open(path.join("lock"));
        let lock = lock.map_err(|error| failed("cannot write in the folder", error))?;
        match lock.try_lock() {
            Ok(()) => Ok(Some(Folder { path: path.to_owned(), _lock: lock })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed("cannot lock the folder", error)),
        }
    }

    /// The database in it.
    pub fn database(&self) -> PathBuf {
        database(&self.path)
    }
}

/// A file by its path and by what it is: whether the path still leads to it can be asked.
#[derive(Debug)]
pub(crate) struct Whereabouts {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Whereabouts {
    /// Of a file that is there.
    pub fn of(path: &Path) -> std::io::Result<Whereabouts> {
        let found = std::fs::metadata(path)?;
        Ok(Whereabouts { path: path.to_owned(), device: found.dev(), inode: found.ino() })
    }

    /// Whether it was removed, moved, or replaced: what is written then reaches a file that nobody will open again.
    pub fn is_lost(&self) -> bool {
        let found = std::fs::metadata(&self.path);
        !found.is_ok_and(|found| (found.dev(), found.ino()) == (self.device, self.inode))
    }
}

/// The database in a folder, taken or not.
pub(crate) fn database(folder: &Path) -> PathBuf {
    folder.join("flare.db")
}
