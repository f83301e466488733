//! In: the directory for temporary files. Out: a directory of the demo's own that is gone when the demo ends, however it
//! ends.
//!
//! The demo removes it itself, also on a signal and after a panic. A demo that was killed (-9) cannot, so the next one
//! removes what dead demos left. Who is dead is said by a lock on a file inside, which the system lets go with the
//! process; process numbers would come back.

use std::fs::{DirBuilder, File, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use flare_core::door::fresh_id;

/// How the names of these directories begin.
const PREFIX: &str = "flare-demo";

/// The file that is locked for as long as the demo lives.
const ALIVE: &str = "alive";

/// The part that belongs to the node.
const DATA: &str = "data";

/// A directory that goes with its owner.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    _alive: File,
}

impl Scratch {
    /// Removes what dead demos left in `parent` and makes a new directory there.
    pub fn create(parent: &Path) -> anyhow::Result<Scratch> {
        let scratch = Self::try_create(parent)
            .with_context(|| format!("making a directory in {} (TMPDIR says where)", parent.display()))?;
        if let Err(error) = scratch.remove_the_dead(parent) {
            // What others left is no reason not to begin.
            tracing::debug!(%error, "directories of former demos could not be looked at");
        }
        Ok(scratch)
    }

    fn try_create(parent: &Path) -> io::Result<Scratch> {
        loop {
            let path = parent.join(fresh_id(PREFIX).replace('_', "-"));
            DirBuilder::new().mode(0o700).create(&path)?;
            // Another demo that is looking for dead ones may come between any two of these steps, and then takes this
            // for one: it removes the directory while it is empty, or the file while nobody has locked it.
            let alive = match File::options().create_new(true).write(true).open(path.join(ALIVE)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                alive => alive?,
            };
            alive.lock()?;
            let here = alive.metadata()?.ino();
            if std::fs::metadata(path.join(ALIVE)).is_ok_and(|found| found.ino() == here) {
                return Ok(Scratch { path, _alive: alive });
            }
        }
    }

    /// Where the node keeps its data.
    pub fn data(&self) -> PathBuf {
        self.path.join(DATA)
    }

    /// Removes the directory, for whoever ends the process without letting its owner go.
    pub fn remover(&self) -> impl Fn() + Send + Sync + 'static {
        let path = self.path.clone();
        move || remove(&path)
    }

    fn remove_the_dead(&self, parent: &Path) -> io::Result<()> {
        let mine = std::fs::metadata(&self.path)?.uid();
        for entry in std::fs::read_dir(parent)?.flatten() {
            let candidate = entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.strip_prefix(PREFIX).is_some_and(|rest| rest.starts_with('-')));
            // Not through links, and nothing of other users: a place for temporary files is everybody's.
            let is_mine = entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == mine);
            if candidate && is_mine && entry.path() != self.path {
                remove_if_dead(&entry.path());
            }
        }
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        remove(&self.path);
    }
}

fn remove_if_dead(path: &Path) {
    match File::open(path.join(ALIVE)) {
        Ok(alive) => match alive.try_lock() {
            Ok(()) => remove(path),
            // Its demo lives, or nobody can tell.
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        },
        // It goes only if it is empty: a demo that begins right now may be about to put its file there.
        Err(_) => drop(std::fs::remove_dir(path)),
    }
}

/// The lock's file goes last, so that a removal that is interrupted is found and finished by the next demo.
fn remove(path: &Path) {
    // A thread that still writes may put a file there meanwhile.
    for _ in 0..3 {
        let _ = std::fs::remove_dir_all(path.join(DATA));
        if path.join(DATA).exists() {
            continue;
        }
        let _ = std::fs::remove_file(path.join(ALIVE));
        if std::fs::remove_dir(path).is_ok() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(parent: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(parent).unwrap().flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn it_goes_with_its_owner_and_with_all_that_is_in_it() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = Scratch::create(parent.path()).unwrap();
        std::fs::create_dir_all(scratch.data().join("deep")).unwrap();
        std::fs::write(scratch.data().join("deep/file"), "x").unwrap();
        assert_eq!(std::fs::metadata(&scratch.path).unwrap().mode() & 0o777, 0o700);
        drop(scratch);
        assert!(names(parent.path()).is_empty());
        let scratch = Scratch::create(parent.path()).unwrap();
        let remover = scratch.remover();
        std::fs::create_dir_all(scratch.data()).unwrap();
        remover();
        assert!(names(parent.path()).is_empty());
    }

    #[test]
    fn the_next_one_removes_what_the_dead_left_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let alive = Scratch::create(parent.path()).unwrap();
        let dead = parent.path().join("flare-demo-0dead");
        std::fs::create_dir_all(dead.join(DATA)).unwrap();
        std::fs::write(dead.join(ALIVE), "").unwrap();
        let half = parent.path().join("flare-demo-0half");
        std::fs::create_dir_all(&half).unwrap();
        // Neither is a demo's.
        std::fs::create_dir_all(parent.path().join("flare-demonstration")).unwrap();
        let unlocked = parent.path().join("flare-demo-0other");
        std::fs::create_dir_all(unlocked.join("somebody's")).unwrap();
        let target = parent.path().join("target");
        std::fs::create_dir_all(target.join(DATA)).unwrap();
        std::fs::write(target.join(ALIVE), "").unwrap();
        std::os::unix::fs::symlink(&target, parent.path().join("flare-demo-0link")).unwrap();

        let next = Scratch::create(parent.path()).unwrap();
        assert!(alive.path.exists() && next.path.exists());
        assert!(!dead.exists() && !half.exists());
        assert!(unlocked.exists() && target.join(DATA).exists());
        drop((alive, next));
        assert_eq!(
            names(parent.path()),
            ["flare-demo-0link", "flare-demo-0other", "flare-demonstration", "target"]
        );
    }
}
