//! The ways to documents: each document is found by its url, its ordinal and its seq, by the tables or by what is
//! recent; and each entry of the tables leads to a document, or is known to be stale and on its way out.

use std::collections::{BTreeMap, BTreeSet};

use roaring::RoaringTreemap;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Row};

use super::Findings;
use super::facts::{Facts, lane_of};
use crate::error::{Work, WorkError};
use crate::place::{place, url_key};
use crate::recent::{Generation, Recent};

/// A document, as far as it is found by something.
pub(super) struct Document {
    pub id: i64,
    pub lane: i64,
    pub ordinal: u64,
    pub seq: u64,
    pub born: u64,
    pub before: u64,
    pub deleted: bool,
    pub url: String,
}

impl Document {
    /// From the columns `id, lane, ordinal, seq, born, before, deleted, url`.
    fn read(row: &Row) -> rusqlite::Result<Document> {
        let number = |index| row.get::<_, i64>(index).map(|number| number as u64);
        Ok(Document {
            id: row.get(0)?,
            lane: row.get(1)?,
            ordinal: number(2)?,
            seq: number(3)?,
            born: number(4)?,
            before: number(5)?,
            deleted: row.get::<_, i64>(6)? != 0,
            url: row.get(7)?,
        })
    }
}

/// What the documents of a lane are, all together.
#[derive(Default)]
pub(super) struct Met {
    pub documents: u64,
    pub tombstones: u64,
    pub ordinals: RoaringTreemap,
    pub seqs: RoaringTreemap,
}

/// By lane.
pub(super) type AllMet = BTreeMap<i64, Met>;

/// Checks the ways to all documents and back, and answers what was met. `None` when what is recent cannot be read:
/// then nothing can be said about the rest.
pub(super) fn check(connection: &Connection, facts: &Facts, findings: &mut Findings) -> Work<Option<AllMet>> {
    check_journal(connection, findings)?;
    let recent = match Recent::load(connection) {
        Ok((recent, _)) => recent,
        Err(WorkError::Refused(error)) => {
            findings.add("the journal", error.detail);
            return Ok(None);
        }
        Err(failed) => return Err(failed),
    };
    let shelf = recent.shelf();
    let recent = shelf.generations().next().expect("there is always a young one");
    let met = check_documents(connection, recent, facts, findings)?;
    check_tables(connection, recent, facts, findings)?;
    Ok(Some(met))
}

/// Commits number the rows of the journal one by one, and folding takes them away from the first on.
fn check_journal(connection: &Connection, findings: &mut Findings) -> Work<()> {
    let mut numbers = connection.prepare("SELECT number FROM journal ORDER BY number")?;
    let mut before: Option<i64> = None;
    for number in numbers.query_map([], |row| row.get::<_, i64>(0))? {
        let number = number?;
        if let Some(before) = before.filter(|before| before + 1 != number) {
            findings.add(
                "the journal",
                format!("row {number} follows row {before}: what is between them is missing"),
            );
        }
        before = Some(number);
    }
    Ok(())
}

fn check_documents(
    connection: &Connection,
    recent: &Generation,
    facts: &Facts,
    findings: &mut Findings,
) -> Work<AllMet> {
    let mut ways = Ways::new(connection, recent)?;
    let mut met = AllMet::new();
    let mut all = connection
        .prepare("SELECT id, lane, ordinal, seq, born, before, deleted, url FROM documents ORDER BY id")?;
    for document in all.query_map([], Document::read)? {
        let document = document?;
        let about = || format!("document {} in {}", document.url, facts.lane(document.lane));
        let candidates = ways.candidates(&document)?;
        if !candidates.contains(&document.id) {
            findings.add(about(), "is not found by its url");
        }
        if ways.has_twin(&document, &candidates)? {
            findings.add(about(), "is there more than once");
        }
        if ways.by_ordinal(&document)? != Some(document.id) {
            findings.add(about(), format!("is not found by its ordinal {}", document.ordinal));
        }
        if ways.by_seq(&document)? != Some(document.id) {
            findings.add(about(), format!("is not found by its seq {}", document.seq));
        }
        let met = met.entry(document.lane).or_default();
        if document.deleted {
            met.tombstones += 1
        } else {
            met.documents += 1
        }
        if !met.ordinals.insert(document.ordinal) {
            findings.add(about(), format!("has the ordinal {} of another document", document.ordinal));
        }
        if !met.seqs.insert(document.seq) {
            findings.add(about(), format!("has the seq {} of another document", document.seq));
        }
        super::documents::check_numbers(&document, facts, findings);
    }
    Ok(met)
}

/// Finds documents as readers do.
struct Ways<'c> {
    recent: &'c Generation,
    url: CachedStatement<'c>,
    ordinal: CachedStatement<'c>,
    seq: CachedStatement<'c>,
    same: CachedStatement<'c>,
}

impl<'c> Ways<'c> {
    fn new(connection: &'c Connection, recent: &'c Generation) -> rusqlite::Result<Self> {
        let sql = |sql| connection.prepare_cached(sql);
        Ok(Ways {
            recent,
            url: sql("SELECT document FROM by_url WHERE hash = ?1")?,
            ordinal: sql("SELECT document FROM by_ordinal WHERE place = ?1")?,
            seq: sql("SELECT document FROM by_seq WHERE place = ?1")?,
            same: sql("SELECT 1 FROM documents WHERE id = ?1 AND lane = ?2 AND url = ?3")?,
        })
    }

    /// What its url may lead to.
    fn candidates(&mut self, document: &Document) -> rusqlite::Result<BTreeSet<i64>> {
        let hash = url_key(&document.url);
        let mut found: BTreeSet<i64> = self.recent.with_hash(hash).collect();
        for id in self.url.query_map([hash], |row| row.get(0))? {
            found.insert(id?);
        }
        Ok(found)
    }

    /// Whether another row has the same url.
    fn has_twin(&mut self, document: &Document, candidates: &BTreeSet<i64>) -> rusqlite::Result<bool> {
        for id in candidates {
            if *id != document.id && self.same.exists((id, document.lane, &document.url))? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn by_ordinal(&mut self, document: &Document) -> rusqlite::Result<Option<i64>> {
        let place = place(document.lane, document.ordinal);
        match self.recent.by_ordinal.get(&place) {
            Some(id) => Ok(Some(*id)),
            None => self.ordinal.query_row([place], |row| row.get(0)).optional(),
        }
    }

    fn by_seq(&mut self, document: &Document) -> rusqlite::Result<Option<i64>> {
        let place = place(document.lane, document.seq);
        match self.recent.by_seq.get(&place) {
            Some(id) => Ok(Some(*id)),
            None => self.seq.query_row([place], |row| row.get(0)).optional(),
        }
    }
}

/// What leads nowhere must be listed among what is stale, or belong to a lane that is being removed.
fn check_tables(
    connection: &Connection,
    recent: &Generation,
    facts: &Facts,
    findings: &mut Findings,
) -> Work<()> {
    let removed = &recent.removed;
    let urls: BTreeSet<(i64, i64)> = removed.iter().map(|removed| removed.url).collect();
    let ordinals: BTreeSet<i64> = removed.iter().map(|removed| removed.ordinal).collect();
    let mut seqs: BTreeSet<i64> = removed.iter().map(|removed| removed.seq).collect();
    seqs.extend(&recent.stale);

    let mut by_url = connection.prepare(
        "SELECT t.hash, t.document, d.url FROM by_url t LEFT JOIN documents d ON d.id = t.document",
    )?;
    let mut rows = by_url.query([])?;
    while let Some(row) = rows.next()? {
        let entry: (i64, i64) = (row.get(0)?, row.get(1)?);
        let url = row.get_ref(2)?.as_str_or_null().map_err(rusqlite::Error::from)?;
        if url.is_none_or(|url| url_key(url) != entry.0) && !urls.contains(&entry) {
            let what = format!("leads to row {}, which has no document with it", entry.1);
            findings.add(format!("the hash {} in by_url", entry.0), what);
        }
    }
    for (table, column, stale) in [("by_ordinal", "ordinal", ordinals), ("by_seq", "seq", seqs)] {
        let sql = format!(
            "SELECT t.place, t.document FROM {table} t LEFT JOIN documents d ON d.id = t.document
             WHERE d.id IS NULL OR d.lane << 40 | d.{column} <> t.place"
        );
        let mut odd = connection.prepare(&sql)?;
        let mut rows = odd.query([])?;
        while let Some(row) = rows.next()? {
            let (place, document): (i64, i64) = (row.get(0)?, row.get(1)?);
            if !stale.contains(&place) && !facts.leaving_lanes.contains(&lane_of(place)) {
                let about = format!(
                    "the {column} {} of {} in {table}",
                    crate::place::number(place),
                    facts.lane(lane_of(place))
                );
                findings.add(about, format!("leads to row {document}, which has no document with it"));
            }
        }
    }
    Ok(())
}
