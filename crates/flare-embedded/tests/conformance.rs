//! The behaviours that every engine has to show, over databases in folders of their own.

use async_trait::async_trait;
use flare_embedded::{Embedded, Options};
use flare_provider::Store;
use flare_provider::conformance::{Factory, Instance};
use tempfile::TempDir;

flare_provider::conformance!(embedded, super::Folders { fold_after: None });

// The same with recent changes going into the tables after every few of them, and so mostly being on the way.
flare_provider::conformance!(folding, super::Folders { fold_after: Some(3) });

struct Folders {
    fold_after: Option<usize>,
}

/// An open store, and the folder that goes with it.
struct Open {
    embedded: Embedded,
    folder: TempDir,
    fold_after: Option<usize>,
}

impl Open {
    fn over(folder: TempDir, fold_after: Option<usize>) -> Open {
        let mut options = Options::new(folder.path());
        options.fold_after = fold_after.unwrap_or(options.fold_after);
        let embedded = Embedded::open(options).expect("the folder is ours");
        Open { embedded, folder, fold_after }
    }
}

#[async_trait]
impl Factory for Folders {
    async fn fresh(&self) -> Box<dyn Instance> {
        Box::new(Open::over(TempDir::new().expect("a temporary folder"), self.fold_after))
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
        assert!(folder.path().join("flare.db-wal").exists(), "nothing was tidied up");
        Box::new(Open::over(folder, fold_after))
    }
}
