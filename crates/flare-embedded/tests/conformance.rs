//! The behaviours that every engine has to show, over databases in folders of their own, each audited in the end.

use async_trait::async_trait;
use flare_embedded::{Embedded, Finding, Options};
use flare_provider::Store;
use flare_provider::conformance::{Factory, Instance};
use tempfile::TempDir;

flare_provider::conformance!(embedded, super::Folders { fold_after: None });

// The same with recent changes going into the tables after every few of them, and so mostly being on the way.
flare_provider::conformance!(folding, super::Folders { fold_after: Some(3) });

struct Folders {
    fold_after: Option<usize>,
}

/// An open store, and the folder that goes with it, once the store is closed.
struct Open {
    embedded: Embedded,
    folder: Audited,
    fold_after: Option<usize>,
}

/// A folder whose store is audited in the end, whatever the behaviour did to it.
struct Audited(TempDir);

impl Drop for Audited {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let findings = flare_embedded::audit(self.0.path()).expect("the store can be read");
        // Behaviours of the ledger write numbers that belong to no document, some of them very many.
        let made_up = |finding: &Finding| {
            let of_a_feed = finding.about.starts_with("feed of") && !finding.what.contains("is gone");
            of_a_feed || finding.about == "the store"
        };
        let wrong: Vec<String> =
            findings.iter().filter(|finding| !made_up(finding)).map(ToString::to_string).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

impl Open {
    fn over(folder: Audited, fold_after: Option<usize>) -> Open {
        let mut options = Options::new(folder.0.path());
        options.fold_after = fold_after.unwrap_or(options.fold_after);
        let embedded = Embedded::open(options).expect("the folder is ours");
        Open { embedded, folder, fold_after }
    }
}

#[async_trait]
impl Factory for Folders {
    async fn fresh(&self) -> Box<dyn Instance> {
        let folder = Audited(TempDir::new().expect("a temporary folder"));
        Box::new(Open::over(folder, self.fold_after))
    }
}

#[async_trait]
impl Instance for Open {
    fn store(&self) -> Store {
        self.embedded.store()
    }

    /// The log is left as it is, and the next life recovers from it.
    async fn crash_and_reopen(self: Box<Self>) -> Box<dyn Instance> {
        let Open { embedded, folder, fold_after } = *self;
        tokio::task::block_in_place(|| {
            embedded.abandon();
            drop(embedded);
        });
        assert!(folder.0.path().join("flare.db-wal").exists(), "nothing was tidied up");
        Box::new(Open::over(folder, fold_after))
    }

    /// A folder belongs to one process at a time.
    async fn join(&self) -> Option<Box<dyn Instance>> {
        None
    }
}
