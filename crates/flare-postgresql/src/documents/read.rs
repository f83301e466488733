//! Reading documents: lanes, urls, ordinals and seqs come in; documents go out, each answer from one statement and so from
//! one snapshot.

use std::collections::HashMap;

use flare_model::document::Document;
use flare_model::ids::{LaneId, Ordinal, ResourceNumber, Seq, url_hash};
use flare_provider::{LaneState, Newest, Page, ScanLane};
use tokio_postgres::types::ToSql;

use super::row::{document_columns, key, number, read_document, read_optional, signed};
use crate::connect::Session;
use crate::error::Work;

/// One document by its url.
pub(crate) async fn get(session: &Session, lane: LaneId, url: &str) -> Work<Option<Document>> {
    let find = session
        .prepare(concat!(
            "SELECT ",
            document_columns!(),
            " FROM documents d WHERE d.lane = $1 AND d.hash = $2 AND d.url = $3
              AND EXISTS (SELECT 1 FROM lanes WHERE id = $1)"
        ))
        .await?;
    let hash = url_hash(url) as i64;
    let row = session.client.query_opt(&find, &[&key(lane), &hash, &url]).await?;
    row.map(|row| read_document(&row, lane)).transpose()
}

/// Documents by their ordinals, and the head.
pub(crate) async fn fetch(
    session: &Session,
    lane: LaneId,
    ordinals: &[Ordinal],
) -> Work<(Vec<Option<Document>>, Seq)> {
    let find = session
        .prepare(concat!(
            "SELECT ",
            document_columns!(),
            ", l.head FROM lanes l LEFT JOIN documents d ON d.lane = l.id AND d.ordinal = ANY($2) WHERE l.id = $1"
        ))
        .await?;
    let wanted: Vec<i64> = ordinals.iter().map(|ordinal| ordinal.0 as i64).collect();
    let (mut found, mut head) = (HashMap::new(), Seq(0));
    for row in session.client.query(&find, &[&key(lane), &wanted]).await? {
        head = Seq(number(&row, 12)?);
        if let Some(document) = read_optional(&row, lane)? {
            found.insert(document.row.ordinal, document);
        }
    }
    Ok((ordinals.iter().map(|ordinal| found.get(ordinal).cloned()).collect(), head))
}

/// A page of a lane: one row more than asked for, up to the one with which the contents reach their size, and how many
/// there would have been.
macro_rules! page_sql {
    ($rows:expr) => {
        concat!(
            "SELECT ",
            document_columns!(),
            ", l.head, d.quantity FROM lanes l LEFT JOIN LATERAL (
                 SELECT * FROM (
                     SELECT d.*, count(*) OVER () AS quantity, sum(octet_length(d.content)) OVER
                         (ORDER BY d.seq ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS bytes_before
                     FROM (",
            $rows,
            ") d) d WHERE d.bytes_before IS NULL OR d.bytes_before < $5
             ) d ON true WHERE l.id = $1 ORDER BY d.seq"
        )
    };
}

const SCAN: &str = page_sql!(
    "SELECT d.lane, d.ordinal, d.seq, d.born, d.before, d.deleted, d.revision, d.nanos, d.revision_text, d.url,
     d.updated_at, d.content FROM documents d WHERE d.lane = $1 AND d.seq > $2 AND d.seq <= $3
     ORDER BY d.seq LIMIT $4"
);

const SCAN_REVISIONS: &str = page_sql!(
    "SELECT * FROM (
         (SELECT d.lane, d.ordinal, d.seq, d.born, d.before, d.deleted, d.revision, d.nanos, d.revision_text, d.url,
          d.updated_at, d.content FROM documents d WHERE d.lane = $1 AND d.seq > $2 AND d.seq <= $3
          ORDER BY d.seq LIMIT $4)
         UNION ALL
         (SELECT d.lane, d.ordinal, d.seq, d.born, d.before, d.deleted, d.revision, d.nanos, d.revision_text, d.url,
          d.updated_at, d.content FROM history d WHERE d.lane = $1 AND d.seq > $2 AND d.seq <= $3 AND d.until > $6
          ORDER BY d.seq LIMIT $4)
     ) d ORDER BY d.seq LIMIT $4"
);

/// A page of the newest, or, with `since`, of all revisions that were replaced beyond it.
pub(crate) async fn scan(session: &Session, scan: ScanLane, since: Option<Seq>) -> Work<Page> {
    let statement = session.prepare(if since.is_some() { SCAN_REVISIONS } else { SCAN }).await?;
    let (lane, after, upto) = (key(scan.lane), signed(scan.after.0), signed(scan.upto.0));
    let limit = i64::try_from(scan.rows).unwrap_or(i64::MAX).saturating_add(1);
    let bytes = i64::try_from(scan.bytes).unwrap_or(i64::MAX);
    let since = since.map(|since| signed(since.0));
    let mut values: Vec<&(dyn ToSql + Sync)> = vec![&lane, &after, &upto, &limit, &bytes];
    values.extend(since.as_ref().map(|since| since as &(dyn ToSql + Sync)));
    let rows = session.client.query(&statement, &values).await?;
    let Some(first) = rows.first() else { return Ok(Page::default()) };
    let head = Seq(number(first, 12)?);
    let quantity = first.try_get::<_, Option<i64>>(13)?.unwrap_or(0) as usize;
    let mut page = Page { documents: Vec::new(), upto: scan.upto.min(head), head };
    for row in rows.iter().take(scan.rows) {
        page.documents.extend(read_optional(row, scan.lane)?);
    }
    if quantity > page.documents.len() {
        page.upto = page.documents.last().map_or(scan.after, |last| last.row.seq);
    }
    Ok(page)
}

/// Which changes are the newest of their documents.
pub(crate) async fn newest(session: &Session, lane: LaneId) -> Work<Newest> {
    let all = session
        .prepare(
            "SELECT seq, deleted FROM documents WHERE lane = $1 AND EXISTS (SELECT 1 FROM lanes WHERE id = $1)",
        )
        .await?;
    let mut newest = Newest::default();
    for row in session.client.query(&all, &[&key(lane)]).await? {
        let seq = number(&row, 0)?;
        newest.seqs.insert(seq);
        if row.try_get(1)? {
            newest.tombstones.insert(seq);
        }
    }
    Ok(newest)
}

/// All lanes, or those of one resource.
pub(crate) async fn lanes(session: &Session, resource: Option<ResourceNumber>) -> Work<Vec<LaneState>> {
    let all = session
        .prepare(
            "SELECT id, head, documents, tombstones, revisions FROM lanes WHERE id BETWEEN $1 AND $2 ORDER BY id",
        )
        .await?;
    let end = |resource, index| key(LaneId { resource, index });
    let (first, last) =
        resource.map_or((i64::MIN, i64::MAX), |resource| (end(resource, 0), end(resource, u8::MAX)));
    let mut states = Vec::new();
    for row in session.client.query(&all, &[&first, &last]).await? {
        states.push(LaneState {
            lane: LaneId::unpacked(number(&row, 0)?),
            head: Seq(number(&row, 1)?),
            documents: number(&row, 2)?,
            tombstones: number(&row, 3)?,
            revisions: number(&row, 4)?,
        });
    }
    Ok(states)
}
