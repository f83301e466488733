//! How far consumers have read: calls of the contract come in; changes go through the writer, readers answer the rest.

use async_trait::async_trait;
use flare_model::ids::ResourceNumber;
use flare_model::time::Timestamp;
use flare_provider::intake::{Intake, Letter, ListLetters, NewLetter, Reading};
use flare_provider::{Conflict, ErrorKind, ProviderError, Result};
use rusqlite::{Connection, OptionalExtension as _};

use crate::desk::Desk;
use crate::engine::Engine;
use crate::error::Work;
use crate::meta;
use crate::snapshot::snapshot;

/// What a partition or a letter takes of a commit beside its texts, about.
const ROW_BYTES: usize = 256;

#[async_trait]
impl Intake for Engine {
    async fn take(&self, consumer: ResourceNumber, partition: &str, epoch: u64) -> Result<Option<String>> {
        let partition = partition.to_owned();
        let take = move |desk: &mut Desk<'_>| take(desk.connection, consumer, &partition, epoch);
        self.queue.work("intake.take", ROW_BYTES, take).await
    }

    async fn advance(
        &self,
        consumer: ResourceNumber,
        partition: &str,
        epoch: u64,
        progress: String,
        letters: Vec<NewLetter>,
    ) -> Result<()> {
        let size = |letter: &NewLetter| ROW_BYTES + letter.story.len() + letter.payload.len();
        let bytes = ROW_BYTES + progress.len() + letters.iter().map(size).sum::<usize>();
        let partition = partition.to_owned();
        let advance = move |desk: &mut Desk<'_>| -> Work<()> {
            let connection = desk.connection;
            let mut update = connection.prepare_cached(
                "UPDATE readings SET progress = ?4 WHERE consumer = ?1 AND partition = ?2 AND epoch = ?3",
            )?;
            if update.execute((consumer.0 as i64, &partition, epoch as i64, &progress))? == 0 {
                return Err(fenced("intake.advance").into());
            }
            for letter in &letters {
                let number = meta::next(connection, "last_letter")?;
                let mut insert = connection.prepare_cached(
                    "INSERT INTO letters (number, consumer, partition, received_at, story, payload)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                )?;
                let at = letter.received_at.millis();
                insert.execute((
                    number,
                    consumer.0 as i64,
                    &partition,
                    at,
                    &letter.story,
                    &letter.payload[..],
                ))?;
            }
            Ok(())
        };
        self.queue.work("intake.advance", bytes, advance).await
    }

    async fn readings(&self, consumer: ResourceNumber) -> Result<Vec<Reading>> {
        self.read("intake.readings", move |reader| readings(&reader.connection, consumer)).await
    }

    async fn letters(&self, list: ListLetters) -> Result<(u64, Vec<Letter>)> {
        self.read("intake.letters", move |reader| letters(&reader.connection, list)).await
    }

    async fn remove_letters(&self, consumer: ResourceNumber, numbers: Option<Vec<u64>>) -> Result<u64> {
        let remove = move |desk: &mut Desk<'_>| -> Work<u64> {
            let connection = desk.connection;
            let Some(numbers) = &numbers else {
                let mut all = connection.prepare_cached("DELETE FROM letters WHERE consumer = ?1")?;
                return Ok(all.execute([consumer.0 as i64])? as u64);
            };
            let mut one =
                connection.prepare_cached("DELETE FROM letters WHERE consumer = ?1 AND number = ?2")?;
            let mut removed = 0;
            for number in numbers {
                let number = i64::try_from(*number).unwrap_or(-1);
                removed += one.execute((consumer.0 as i64, number))? as u64;
            }
            Ok(removed)
        };
        self.queue.work("intake.remove_letters", ROW_BYTES, remove).await
    }
}

fn fenced(operation: &'static str) -> ProviderError {
    ProviderError::new(ErrorKind::Fenced, operation, "it was taken over since, or its consumer is gone")
}

fn take(
    connection: &Connection,
    consumer: ResourceNumber,
    partition: &str,
    epoch: u64,
) -> Work<Option<String>> {
    const OPERATION: &str = "intake.take";
    let mut there =
        connection.prepare_cached("SELECT 1 FROM entities WHERE kind = 'consumer' AND number = ?1")?;
    if !there.exists([consumer.0 as i64])? {
        return Err(ProviderError::conflict(OPERATION, Conflict::Parent).into());
    }
    let mut take = connection.prepare_cached(
        "INSERT INTO readings (consumer, partition, epoch) VALUES (?1, ?2, ?3)
         ON CONFLICT (consumer, partition) DO UPDATE SET epoch = excluded.epoch WHERE epoch <= excluded.epoch
         RETURNING progress",
    )?;
    let taken = take.query_row((consumer.0 as i64, partition, epoch as i64), |row| row.get(0)).optional()?;
    Ok(taken.ok_or_else(|| fenced(OPERATION))?)
}

fn readings(connection: &Connection, consumer: ResourceNumber) -> Work<Vec<Reading>> {
    let mut all = connection.prepare_cached(
        "SELECT partition, epoch, progress FROM readings WHERE consumer = ?1 ORDER BY partition",
    )?;
    let readings = all.query_map([consumer.0 as i64], |row| {
        let epoch = row.get::<_, i64>(1)? as u64;
        Ok(Reading { partition: row.get(0)?, epoch, progress: row.get(2)? })
    })?;
    Ok(readings.collect::<rusqlite::Result<_>>()?)
}

fn letters(connection: &Connection, list: ListLetters) -> Work<(u64, Vec<Letter>)> {
    snapshot(connection, |connection| {
        let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let mut count = connection.prepare_cached("SELECT count(*) FROM letters WHERE consumer = ?1")?;
        let total = count.query_row([list.consumer.0 as i64], |row| row.get::<_, i64>(0))?;
        let mut page = connection.prepare_cached(
            "SELECT number, partition, received_at, story, payload FROM letters
             WHERE consumer = ?1 AND number > ?2 ORDER BY number LIMIT ?3 OFFSET ?4",
        )?;
        let wanted = (list.consumer.0 as i64, signed(list.after), signed(list.limit), signed(list.offset));
        let letters = page.query_map(wanted, |row| {
            Ok(Letter {
                number: row.get::<_, i64>(0)? as u64,
                partition: row.get(1)?,
                kept: NewLetter {
                    received_at: Timestamp::from_millis(row.get(2)?),
                    story: row.get(3)?,
                    payload: row.get::<_, Vec<u8>>(4)?.into(),
                },
            })
        })?;
        Ok((total as u64, letters.collect::<rusqlite::Result<_>>()?))
    })
}
