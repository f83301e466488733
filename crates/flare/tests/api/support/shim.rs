//! Failures that no machine has on demand: a small library, preloaded into the process, fails a sync or a clock from the
//! moment a test says so.

use std::path::PathBuf;
use std::process::Command;

use tempfile::TempDir;

use super::Setup;

/// The library, and the files by which it is told.
pub struct Shim {
    directory: TempDir,
}

impl Shim {
    /// Compiles it. `None` where there is no compiler, or no Linux to load it.
    pub fn build() -> Option<Shim> {
        let directory = tempfile::tempdir().expect("a directory for the test");
        let shim = Shim { directory };
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/api/support/shim.c");
        let mut command = Command::new("cc");
        command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(shim.path("shim.so")).arg(source);
        let built = cfg!(target_os = "linux") && command.output().is_ok_and(|output| output.status.success());
        built.then_some(shim)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A process that can be made to fail.
    pub fn setup(&self) -> Setup {
        let path = |name| self.path(name).display().to_string();
        Setup::default()
            .with("LD_PRELOAD", &path("shim.so"))
            .with("SHIM_FAIL_SYNC", &path("sync"))
            .with("SHIM_FAIL_CLOCK", &path("clock"))
    }

    /// From now on every sync fails.
    pub fn fail_syncs(&self) {
        std::fs::write(self.path("sync"), "").expect("a file for the test");
    }

    /// From now on a delivery thread that asks for the time panics.
    pub fn fail_clock(&self) {
        std::fs::write(self.path("clock"), "").expect("a file for the test");
    }

    /// Nothing fails any more.
    pub fn heal(&self) {
        for name in ["sync", "clock"] {
            let _ = std::fs::remove_file(self.path(name));
        }
    }
}
