//! Rows of `notes`: why clients lack what nobody owes them comes in with a record, and goes out one by one.

use flare_model::feed::{Left, Note};
use flare_model::ids::{FeedId, Ordinal, Seq};

use crate::connect::Session;
use crate::documents::row::number;
use crate::error::{Work, corrupt};

const ALL: [Left; 7] = [
    Left::Discarded,
    Left::Dropped,
    Left::HeldBack,
    Left::Unclear,
    Left::Asked,
    Left::LeaveDiscarded,
    Left::LeaveDropped,
];

/// How it is stored.
fn kind(left: Left) -> i16 {
    match left {
        Left::Discarded => 0,
        Left::Dropped => 1,
        Left::HeldBack => 2,
        Left::Unclear => 3,
        Left::Asked => 4,
        Left::LeaveDiscarded => 5,
        Left::LeaveDropped => 6,
    }
}

/// The reverse of it.
pub(crate) fn left(stored: i16) -> Option<Left> {
    ALL.into_iter().find(|left| kind(*left) == stored)
}

/// Notes by column.
#[derive(Default)]
pub(crate) struct Columns {
    feed: Vec<i64>,
    ordinal: Vec<i64>,
    seq: Vec<i64>,
    kind: Vec<i16>,
    story: Vec<Option<String>>,
}

impl Columns {
    pub fn push(&mut self, feed: i64, note: &Note) {
        let story = note.story.as_deref().map(|story| {
            serde_json::to_string(story).expect("numbers, texts and dates can always be written")
        });
        self.feed.push(feed);
        self.ordinal.push(note.ordinal.0 as i64);
        self.seq.push(note.seq.0 as i64);
        self.kind.push(kind(note.left));
        self.story.push(story);
    }

    /// Writes them, within a transaction.
    pub async fn write(&self, session: &Session) -> Work<()> {
        if self.feed.is_empty() {
            return Ok(());
        }
        let put = session
            .prepare(
                "INSERT INTO notes (feed, ordinal, seq, kind, story)
                 SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::smallint[], $5::text[])
                 ON CONFLICT (feed, ordinal) DO UPDATE SET seq = excluded.seq, kind = excluded.kind,
                 story = excluded.story",
            )
            .await?;
        let values: [&(dyn tokio_postgres::types::ToSql + Sync); 5] =
            [&self.feed, &self.ordinal, &self.seq, &self.kind, &self.story];
        session.client.execute(&put, &values).await?;
        Ok(())
    }
}

/// One note of a feed that exists.
pub(crate) async fn read(session: &Session, feed: FeedId, ordinal: Ordinal) -> Work<Option<Note>> {
    let one = session
        .prepare(
            "SELECT seq, kind, story FROM notes
             WHERE feed = $1 AND ordinal = $2 AND EXISTS (SELECT 1 FROM feeds WHERE id = $1)",
        )
        .await?;
    let row = session.client.query_opt(&one, &[&(feed.packed() as i64), &(ordinal.0 as i64)]).await?;
    let Some(row) = row else { return Ok(None) };
    let senseless = || corrupt("ledger.note", format!("the note of document {ordinal}"));
    let story = match row.try_get::<_, Option<&str>>(2)? {
        Some(text) => Some(serde_json::from_str(text).map_err(|_| senseless())?),
        None => None,
    };
    let left = left(row.try_get(1)?).ok_or_else(senseless)?;
    Ok(Some(Note { ordinal, seq: Seq(number(&row, 0)?), left, story }))
}
