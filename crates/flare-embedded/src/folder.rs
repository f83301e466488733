//! The folder of a database: a path comes in, the only right to use it goes out.

use std::fs::{DirBuilder, File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use flare_provider::{ErrorKind, ProviderError, Result};

const OPERATION: &str = "embedded.open";

/// Who may look into the folder, and into its files: their owner.
const FOLDER: u32 = 0o700;
const FILE: u32 = 0o600;

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
        let mut folders = DirBuilder::new();
        let made = folders.recursive(true).mode(FOLDER).create(path);
        made.map_err(|error| failed("cannot make the folder", error))?;
        let lock = its_owners_alone(&path.join("lock"));
        let lock = lock.map_err(|error| failed("cannot write in the folder", error))?;
        match lock.try_lock() {
            Ok(()) => {
                tighten(path).map_err(|error| failed("cannot keep others out of the folder", error))?;
                Ok(Some(Folder { path: path.to_owned(), _lock: lock }))
            }
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(failed("cannot lock the folder", error)),
        }
    }

    /// The database in it.
    pub fn database(&self) -> PathBuf {
        database(&self.path)
    }
}

/// Opens a file to write, made where it is missing.
fn its_owners_alone(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).mode(FILE).open(path)
}

/// Takes from everybody but the owner what an earlier version, or a copy, has left to them. The database is made here, so
/// that it never was anybody else's; SQLite gives the files beside it the same mode.
fn tighten(folder: &Path) -> std::io::Result<()> {
    drop(its_owners_alone(&database(folder))?);
    let mut tightened = narrow(folder, FOLDER)?;
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            tightened |= narrow(&entry.path(), FILE)?;
        }
    }
    if tightened {
        tracing::warn!(path = %folder.display(), "others could read the data; now only its owner can");
    }
    Ok(())
}

/// Whether a mode gave others more than it should; then it does no longer.
fn narrow(path: &Path, most: u32) -> std::io::Result<bool> {
    let mode = std::fs::metadata(path)?.permissions().mode() & 0o7777;
    if mode & 0o077 == 0 {
        return Ok(false);
    }
    std::fs::set_permissions(path, Permissions::from_mode(mode & most))?;
    Ok(true)
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
