//! One transaction of documents: batches come in; what became of each write goes out, and what changed. Two round trips:
//! the first locks the lanes and reads what is there, the second writes and commits.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use flare_model::document::{Document, Effect, Write, apply};
use flare_model::ids::{LaneId, Ordinal, Seq, url_hash};
use flare_provider::{Changed, Committed, Conflict, ErrorKind, ProviderError, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};

use super::columns::{Columns, INSERT, KEEP, KEEP_MADE, Replaced, UPDATE};
use super::lanes::{self, Lane, LaneColumns};
use super::row::{Known, key, known_columns, number, read_known};
use crate::connect::{Lost, Session};
use crate::error::{Work, WorkError, ends_the_session};

const OPERATION: &str = "documents.commit";

const FIND: &str = concat!(
    "SELECT ",
    known_columns!(),
    " FROM unnest($1::bigint[], $2::bigint[]) k (lane, hash)
      JOIN documents d ON d.lane = k.lane AND d.hash = k.hash"
);

/// Read after the lanes are locked, by a statement of its own: whoever raised one of them and then waited for the lanes is
/// seen here.
const NUMBERS: &str = "SELECT (SELECT value FROM numbers WHERE name = 'routing'),
    (SELECT value FROM numbers WHERE name = 'writer'), pg_current_xact_id()::text";

/// What a batch is answered.
pub(crate) type Answers = Result<Vec<Result<Committed>>>;

/// What a transaction did.
pub(crate) struct Done {
    /// For each batch.
    pub answers: Vec<Answers>,
    /// In order.
    pub changes: Vec<Changed>,
}

/// Why a transaction is not known to be done.
pub(crate) enum Trouble {
    /// Nothing was written.
    Undone(WorkError),
    /// Another process has taken the log over: nothing was written, and never will be.
    TakenOver,
    /// It was asked to commit, and the answer did not come.
    Lost(Lost, Done),
}

impl From<WorkError> for Trouble {
    fn from(error: WorkError) -> Trouble {
        Trouble::Undone(error)
    }
}

impl From<tokio_postgres::Error> for Trouble {
    fn from(error: tokio_postgres::Error) -> Trouble {
        Trouble::Undone(error.into())
    }
}

/// Runs all batches in one transaction. `writer`: who alone may write, if it is one alone.
pub(crate) async fn commit(
    session: &Session,
    batches: &[&[Write]],
    writer: Option<u64>,
) -> std::result::Result<Done, Trouble> {
    let (mut work, numbers) = begin(session, batches).await?;
    if writer.is_some_and(|writer| writer != numbers.writer) {
        return Err(Trouble::TakenOver);
    }
    let mut answers = Vec::with_capacity(batches.len());
    for batch in batches {
        if batch.iter().any(|write| write.routed_by < numbers.routing) {
            answers.push(Err(ProviderError::conflict(OPERATION, Conflict::Routing)));
            continue;
        }
        answers.push(Ok(batch.iter().map(|write| work.write(write)).collect()));
    }
    work.finish(session, answers, numbers.xid).await
}

struct Numbers {
    routing: u64,
    writer: u64,
    xid: String,
}

/// The first round trip.
async fn begin(session: &Session, batches: &[&[Write]]) -> Work<(Committing, Numbers)> {
    let writes = || batches.iter().flat_map(|batch| batch.iter());
    let ids: Vec<i64> = writes().map(|write| key(write.lane)).collect::<BTreeSet<_>>().into_iter().collect();
    let keys: BTreeSet<(i64, i64)> =
        writes().map(|write| (key(write.lane), url_hash(&write.url) as i64)).collect();
    let (lanes, hashes): (Vec<i64>, Vec<i64>) = keys.into_iter().unzip();
    let lock = session.prepare(lanes::LOCK).await?;
    let numbers = session.prepare(NUMBERS).await?;
    let find = session.prepare(FIND).await?;
    let client = &session.client;
    let (locking, finding): ([&(dyn ToSql + Sync); 1], [&(dyn ToSql + Sync); 2]) =
        ([&ids], [&lanes, &hashes]);
    // They go out one after the other without waiting, and are answered in that order.
    let (begun, locked, numbers, found) = tokio::join!(
        biased;
        client.batch_execute("BEGIN"),
        client.query(&lock, &locking),
        client.query_one(&numbers, &[]),
        client.query(&find, &finding),
    );
    begun?;
    let (locked, numbers, found) = (locked?, numbers?, found?);
    let mut work = Committing::default();
    for row in &locked {
        let lane = Lane::read(row)?;
        work.lanes.insert(lane.id, lane);
    }
    for row in &found {
        let url: Arc<str> = Arc::from(row.try_get::<_, &str>(9)?);
        work.known.insert((row.try_get(0)?, url), Current { known: read_known(row)?, made: None });
    }
    let numbers =
        Numbers { routing: number(&numbers, 0)?, writer: number(&numbers, 1)?, xid: numbers.try_get(2)? };
    Ok((work, numbers))
}

/// A document as the transaction sees it.
struct Current {
    known: Known,
    /// What this transaction made of it, if anything: the whole document, and whether it is a new one.
    made: Option<(Document, bool)>,
}

#[derive(Default)]
struct Committing {
    lanes: BTreeMap<i64, Lane>,
    known: HashMap<(i64, Arc<str>), Current>,
    touched: BTreeSet<i64>,
    replaced: Replaced,
    changes: Vec<Changed>,
}

impl Committing {
    fn write(&mut self, write: &Write) -> Result<Committed> {
        let id = key(write.lane);
        let Some(lane) = self.lanes.get_mut(&id) else {
            return Err(ProviderError::conflict(OPERATION, Conflict::Lane));
        };
        let place = (id, write.url.clone());
        let current = self.known.get_mut(&place);
        let compared = current.as_ref().map(|current| (&current.known.row, &current.known.revision));
        let effect = apply(compared, &write.intent, Seq(lane.head + 1), Ordinal(lane.next_ordinal));
        let (outcome, row, revision, content) = match effect {
            Effect::Nothing(outcome) => {
                let head = Seq(lane.head);
                return Ok(Committed { outcome, before: head, after: head });
            }
            Effect::OtherKind => return Err(ProviderError::conflict(OPERATION, Conflict::RevisionKind)),
            Effect::Change { outcome, row, revision, content } => (outcome, row, revision, content),
        };
        let known = Known { row, revision: revision.clone() };
        let (url, updated_at) = (write.url.clone(), write.at);
        let document = Document { lane: write.lane, row, url, revision, updated_at, content };
        let before = Seq(lane.head);
        lane.count(current.as_ref().map(|current| &current.known), &document);
        self.touched.insert(id);
        let mut replaced = Seq(0);
        let is_new = match current {
            None => true,
            Some(current) => {
                replaced = current.known.row.seq;
                let made = current.made.take();
                let is_new = made.as_ref().is_some_and(|(_, is_new)| *is_new);
                if lane.keeps {
                    match made {
                        Some((made, _)) => self.replaced.made(made, row.seq.0, updated_at),
                        None => self.replaced.stored(id, row.ordinal.0, row.seq.0, updated_at),
                    }
                }
                is_new
            }
        };
        self.known.insert(place, Current { known, made: Some((document.clone(), is_new)) });
        self.changes.push(Changed { document, replaced });
        Ok(Committed { outcome, before, after: row.seq })
    }

    /// The second round trip.
    async fn finish(
        self,
        session: &Session,
        answers: Vec<Answers>,
        xid: String,
    ) -> std::result::Result<Done, Trouble> {
        let lost = Lost { xid, backend: session.backend.clone() };
        let Committing { lanes, known, touched, replaced, changes } = self;
        if changes.is_empty() {
            // What they were compared with is durable: it is locked, and so whoever wrote it has committed.
            session.client.batch_execute("ROLLBACK").await?;
            return Ok(Done { answers, changes });
        }
        let made = || known.values().filter_map(|current| current.made.as_ref());
        let born = Columns::of(made().filter(|(_, is_new)| *is_new).map(|(document, _)| document));
        let moved = Columns::of(made().filter(|(_, is_new)| !*is_new).map(|(document, _)| document));
        let lanes = LaneColumns::of(lanes.values().filter(|lane| touched.contains(&lane.id)));
        let written = write_all(session, &born, &moved, &replaced, &lanes).await?;
        match written {
            Ok(()) => Ok(Done { answers, changes }),
            Err(_the_answer_was_lost) => Err(Trouble::Lost(lost, Done { answers, changes })),
        }
    }
}

/// Writes, and commits: the outer error says that nothing was written, the inner one that nobody knows.
async fn write_all(
    session: &Session,
    born: &Columns<'_>,
    moved: &Columns<'_>,
    replaced: &Replaced,
    lanes: &LaneColumns,
) -> Work<std::result::Result<(), tokio_postgres::Error>> {
    let insert = session.prepare(INSERT).await?;
    let update = session.prepare(UPDATE).await?;
    let keep = session.prepare(KEEP).await?;
    let keep_made = session.prepare(KEEP_MADE).await?;
    let set = session.prepare(lanes::UPDATE).await?;
    let [head, next, documents, tombstones, revisions] = &lanes.numbers;
    let set_values: [&(dyn ToSql + Sync); 7] =
        [&lanes.id, head, next, documents, tombstones, revisions, &lanes.keeps];
    let older = Columns::of(replaced.made.iter());
    let mut older_values: Vec<&(dyn ToSql + Sync)> = older.all().to_vec();
    older_values.extend([&replaced.made_until as &(dyn ToSql + Sync), &replaced.made_at]);
    let keep_values: [&(dyn ToSql + Sync); 4] =
        [&replaced.lane, &replaced.ordinal, &replaced.until, &replaced.at];
    let (born_values, moved_values) = (born.all(), moved.changed());
    let client = &session.client;
    // In this order: what is kept is what was there before the update.
    let (kept, made, inserted, updated, counted, committed) = tokio::join!(
        biased;
        execute_unless(client, replaced.lane.is_empty(), &keep, &keep_values),
        execute_unless(client, older.is_empty(), &keep_made, &older_values),
        execute_unless(client, born.is_empty(), &insert, &born_values),
        execute_unless(client, moved.is_empty(), &update, &moved_values),
        client.execute(&set, &set_values),
        client.batch_execute("COMMIT"),
    );
    let mut silent = committed.err();
    for written in [kept, made, inserted, updated, counted] {
        match written {
            Ok(_) => {}
            // The server said no to one of them, and then COMMIT undoes it all.
            Err(error) if error.as_db_error().is_some_and(|said| !ends_the_session(said)) => {
                return Err(error.into());
            }
            Err(error) => silent = Some(error),
        }
    }
    Ok(silent.map_or(Ok(()), Err))
}

async fn execute_unless(
    client: &Client,
    empty: bool,
    statement: &Statement,
    values: &[&(dyn ToSql + Sync)],
) -> std::result::Result<u64, tokio_postgres::Error> {
    if empty { Ok(0) } else { client.execute(statement, values).await }
}

/// Whoever else writes now has to be told so.
pub(crate) fn taken_over() -> ProviderError {
    let detail = "another process writes to this schema now: this one stops";
    ProviderError::new(ErrorKind::Fenced, OPERATION, detail)
}

/// The lanes of a batch.
pub(crate) fn lanes_of(batch: &[Write]) -> BTreeSet<LaneId> {
    batch.iter().map(|write| write.lane).collect()
}
