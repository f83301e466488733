//! How far consumers have read: calls of the contract come in; each change is one transaction.

use std::sync::Arc;

use async_trait::async_trait;
use flare_model::ids::ResourceNumber;
use flare_model::time::Timestamp;
use flare_provider::intake::{Intake, Letter, ListLetters, NewLetter, Reading};
use flare_provider::{Conflict, ErrorKind, ProviderError, Result};

use crate::connect::Session;
use crate::documents::row::{number, signed};
use crate::engine::Engine;
use crate::error::Work;
use crate::pool::Borrowed;

#[async_trait]
impl Intake for Engine {
    async fn take(&self, consumer: ResourceNumber, partition: &str, epoch: u64) -> Result<Option<String>> {
        let partition = partition.to_owned();
        self.change("intake.take", move |session| {
            Box::pin(async move { take(session, consumer, &partition, epoch).await })
        })
        .await
    }

    async fn advance(
        &self,
        consumer: ResourceNumber,
        partition: &str,
        epoch: u64,
        progress: String,
        letters: Vec<NewLetter>,
    ) -> Result<()> {
        let partition = partition.to_owned();
        self.change("intake.advance", move |session| {
            Box::pin(
                async move { advance(session, (consumer, &partition, epoch), &progress, &letters).await },
            )
        })
        .await
    }

    async fn readings(&self, consumer: ResourceNumber) -> Result<Vec<Reading>> {
        self.read("intake.readings", move |session| readings(session, consumer)).await
    }

    async fn letters(&self, list: ListLetters) -> Result<(u64, Vec<Letter>)> {
        self.read("intake.letters", move |session| letters(session, list)).await
    }

    async fn remove_letters(&self, consumer: ResourceNumber, numbers: Option<Vec<u64>>) -> Result<u64> {
        let numbers: Option<Vec<i64>> = numbers.map(|numbers| numbers.into_iter().map(signed).collect());
        self.change("intake.remove_letters", move |session| {
            Box::pin(async move {
                let remove = session
                    .prepare(
                        "DELETE FROM letters WHERE consumer = $1 AND ($2::bigint[] IS NULL OR number = ANY($2))",
                    )
                    .await?;
                Ok(session.client.execute(&remove, &[&(consumer.0 as i64), &numbers]).await?)
            })
        })
        .await
    }
}

fn fenced(operation: &'static str) -> ProviderError {
    ProviderError::new(ErrorKind::Fenced, operation, "it was taken over since, or its consumer is gone")
}

/// The consumer is held until the end of the transaction: it cannot go meanwhile and leave this behind.
async fn take(
    session: &Session,
    consumer: ResourceNumber,
    partition: &str,
    epoch: u64,
) -> Work<Option<String>> {
    const OPERATION: &str = "intake.take";
    let there =
        session.prepare("SELECT 1 FROM entities WHERE kind = 'consumer' AND number = $1 FOR SHARE").await?;
    if session.client.query_opt(&there, &[&(consumer.0 as i64)]).await?.is_none() {
        return Err(ProviderError::conflict(OPERATION, Conflict::Parent).into());
    }
    let take = session
        .prepare(
            "INSERT INTO readings (consumer, partition, epoch) VALUES ($1, $2, $3)
             ON CONFLICT (consumer, partition) DO UPDATE SET epoch = excluded.epoch
             WHERE readings.epoch <= excluded.epoch RETURNING progress",
        )
        .await?;
    let taken = session.client.query_opt(&take, &[&(consumer.0 as i64), &partition, &(epoch as i64)]).await?;
    match taken {
        Some(row) => Ok(row.try_get(0)?),
        None => Err(fenced(OPERATION).into()),
    }
}

async fn advance(
    session: &Session,
    (consumer, partition, epoch): (ResourceNumber, &str, u64),
    progress: &str,
    letters: &[NewLetter],
) -> Work<()> {
    let update = session
        .prepare("UPDATE readings SET progress = $4 WHERE consumer = $1 AND partition = $2 AND epoch = $3")
        .await?;
    let (consumer, epoch) = (consumer.0 as i64, epoch as i64);
    if session.client.execute(&update, &[&consumer, &partition, &epoch, &progress]).await? == 0 {
        return Err(fenced("intake.advance").into());
    }
    if letters.is_empty() {
        return Ok(());
    }
    let insert = session
        .prepare(
            "INSERT INTO letters (consumer, partition, received_at, story, payload)
             SELECT $1, $2, u.received_at, u.story, u.payload
             FROM unnest($3::bigint[], $4::text[], $5::bytea[]) WITH ORDINALITY u (received_at, story, payload, place)
             ORDER BY u.place",
        )
        .await?;
    let at: Vec<i64> = letters.iter().map(|letter| letter.received_at.millis()).collect();
    let stories: Vec<String> = letters.iter().map(|letter| letter.story.replace('\0', " ")).collect();
    let payloads: Vec<&[u8]> = letters.iter().map(|letter| &letter.payload[..]).collect();
    session.client.execute(&insert, &[&consumer, &partition, &at, &stories, &payloads]).await?;
    Ok(())
}

async fn readings(session: Arc<Borrowed>, consumer: ResourceNumber) -> Work<Vec<Reading>> {
    let all = session
        .prepare("SELECT partition, epoch, progress FROM readings WHERE consumer = $1 ORDER BY partition")
        .await?;
    let rows = session.client.query(&all, &[&(consumer.0 as i64)]).await?;
    let reading = |row: &tokio_postgres::Row| -> Work<Reading> {
        Ok(Reading { partition: row.try_get(0)?, epoch: number(row, 1)?, progress: row.try_get(2)? })
    };
    rows.iter().map(reading).collect()
}

/// One statement is one snapshot: the total stands beside every row, and alone where the page is empty.
async fn letters(session: Arc<Borrowed>, list: ListLetters) -> Work<(u64, Vec<Letter>)> {
    let page = session
        .prepare(
            "SELECT (SELECT count(*) FROM letters WHERE consumer = $1), p.number, p.partition, p.received_at, p.story,
             p.payload FROM (SELECT 1) one LEFT JOIN
             (SELECT * FROM letters WHERE consumer = $1 AND number > $2 ORDER BY number LIMIT $3 OFFSET $4) p ON true
             ORDER BY p.number",
        )
        .await?;
    let values = (list.consumer.0 as i64, signed(list.after), signed(list.limit), signed(list.offset));
    let values: [&(dyn tokio_postgres::types::ToSql + Sync); 4] =
        [&values.0, &values.1, &values.2, &values.3];
    let (mut total, mut letters) = (0, Vec::new());
    for row in session.client.query(&page, &values).await? {
        total = number(&row, 0)?;
        if row.try_get::<_, Option<i64>>(1)?.is_some() {
            let kept = NewLetter {
                received_at: Timestamp::from_millis(row.try_get(3)?),
                story: row.try_get(4)?,
                payload: row.try_get::<_, Vec<u8>>(5)?.into(),
            };
            letters.push(Letter { number: number(&row, 1)?, partition: row.try_get(2)?, kept });
        }
    }
    Ok((total, letters))
}
