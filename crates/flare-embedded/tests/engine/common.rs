//! What the tests of this engine share: a store in a folder of its own, and something to put into it.

use std::sync::Arc;

use flare_embedded::{Embedded, Options};
use flare_model::document::Write;
use flare_model::ids::LaneId;
use flare_provider::conformance::fixture::{lane, put, resource};
use flare_provider::{Entity, ErrorKind, Result, Store};
use rusqlite::Connection;
use tempfile::TempDir;

/// An open store, and the folder that goes with it.
pub struct Opened {
    pub embedded: Embedded,
    pub folder: TempDir,
}

impl Opened {
    pub fn fresh() -> Opened {
        Opened::over(TempDir::new().expect("a temporary folder"), |_| {})
    }

    pub fn over(folder: TempDir, set: impl FnOnce(&mut Options)) -> Opened {
        let mut options = Options::new(folder.path());
        set(&mut options);
        let embedded = Embedded::open(options).expect("the folder is ours");
        Opened { embedded, folder }
    }

    pub fn store(&self) -> Store {
        self.embedded.store()
    }

    /// Closes the store and keeps the folder.
    pub fn close(self) -> TempDir {
        tokio::task::block_in_place(|| self.embedded.close());
        self.folder
    }

    /// The database, as a user's own tool would open it.
    pub fn database(&self) -> Connection {
        database(&self.folder)
    }

    pub async fn resource(&self, id: &str, lanes: u16) -> Entity {
        self.store().catalog.create(resource(id, lanes)).await.expect("nothing stands against it")
    }

    pub async fn commit(&self, batch: Vec<Write>) -> Result<()> {
        let answers = self.store().documents.commit(batch).await?;
        answers.into_iter().try_for_each(|answer| answer.map(drop))
    }
}

/// The database in a folder.
pub fn database(folder: &TempDir) -> Connection {
    Connection::open(folder.path().join("flare.db")).expect("it is there")
}

/// A number from the database.
pub fn number(database: &Connection, sql: &str) -> i64 {
    database.query_row(sql, [], |row| row.get(0)).expect("a number")
}

/// Lets the writer take turns until the database says so: it tidies up a little with each.
pub async fn until(opened: &Opened, sql: &str, expected: i64) {
    let database = opened.database();
    for _ in 0..20_000 {
        if number(&database, sql) == expected {
            return;
        }
        opened.embedded.limit_pages(None).await.expect("a turn of the writer");
    }
    panic!("{sql} never became {expected}");
}

/// Puts of so many documents, over the lanes of a resource.
pub fn puts(resource: &Entity, numbers: std::ops::Range<u64>, revision: i64) -> Vec<Write> {
    let lane_of = |number: u64| lane(resource, (number % u64::from(resource.lanes)) as u8);
    numbers.map(|number| put(lane_of(number), &url(number), revision)).collect()
}

pub fn url(number: u64) -> String {
    format!("http://api.company.com/users/{number}")
}

/// The kind of an error that has to be one.
pub fn kind<T>(result: Result<T>) -> ErrorKind {
    result.err().expect("it is refused").kind
}

/// How many documents a lane has, as it is scanned.
pub async fn scanned(store: &Store, lane: LaneId) -> usize {
    let mut after = flare_model::ids::Seq(0);
    let mut met = 0;
    loop {
        let upto = flare_model::ids::Seq(u64::MAX);
        let scan = flare_provider::ScanLane { lane, after, upto, rows: 1000, bytes: 1 << 20 };
        let page = store.documents.scan(scan).await.expect("the log is read");
        met += page.documents.len();
        if page.upto >= page.head {
            return met;
        }
        after = page.upto;
    }
}

/// Calls `fatal` is told of.
#[derive(Clone, Default)]
pub struct Fatal(Arc<std::sync::Mutex<Vec<ErrorKind>>>);

impl Fatal {
    pub fn set(&self, options: &mut Options) {
        let heard = self.0.clone();
        options.fatal = Arc::new(move |error| heard.lock().expect("nobody panics").push(error.kind));
    }

    pub fn heard(&self) -> Vec<ErrorKind> {
        self.0.lock().expect("nobody panics").clone()
    }
}
