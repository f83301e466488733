//! Feeds: each subscription has one for each of its lanes, with a position that its lane has reached; and what a client
//! has, is owed and was given are documents of that lane.

use std::collections::BTreeSet;

use flare_model::ids::{FeedId, Seq, SubscriptionNumber};
use flare_provider::coding::{bits, position};
use rusqlite::{Connection, Row};

use super::Findings;
use super::facts::{Facts, LaneFacts, lane_of};
use super::ways::AllMet;
use crate::error::{Work, WorkError};
use crate::ledger::{held, read_standing, standing_columns};
use crate::place::{feed_key, number};

/// A feed's row, and whose it is.
struct Feed<'f> {
    key: i64,
    name: String,
    lane: &'f LaneFacts,
    /// Its numbers are of this log and will be believed.
    believed: bool,
}

/// Checks all feeds, and what belongs to them.
pub(super) fn check(
    connection: &Connection,
    facts: &Facts,
    met: &AllMet,
    findings: &mut Findings,
) -> Work<()> {
    let mut there = BTreeSet::new();
    let mut all = connection.prepare(
        "SELECT id, lane, incarnation, cursor, ahead, sweep, held_delta, life, unjudged, judged, health FROM feeds ORDER BY id",
    )?;
    let mut rows = all.query([])?;
    while let Some(row) = rows.next()? {
        let key: i64 = row.get(0)?;
        there.insert(key);
        if facts.leaving_feeds.contains(&key) {
            findings.add(facts.feed(key), "is still to be removed, and in use");
        }
        let Some(feed) = owner(row, facts, findings)? else { continue };
        check_position(row, &feed, findings)?;
        check_held(connection, row, &feed, met, findings)?;
        check_standings(connection, &feed, met, findings)?;
        check_kept(connection, row.get(7)?, &feed, met, findings)?;
    }
    for (subscription, entity) in &facts.subscriptions {
        for lane in 0..entity.lanes {
            let feed = FeedId { subscription: SubscriptionNumber(*subscription as u64), lane: lane as u8 };
            if feed_key(feed).is_none_or(|key| !there.contains(&key)) {
                findings
                    .add(format!("{} {}", entity.kind, entity.id), format!("has no feed for lane {lane}"));
            }
        }
    }
    check_left_behind(connection, facts, &there, findings)
}

/// Whose feed it is; `None` when it is nobody's.
fn owner<'f>(row: &Row, facts: &'f Facts, findings: &mut Findings) -> Work<Option<Feed<'f>>> {
    let (key, lane, incarnation): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
    let name = facts.feed(key);
    let Some(subscription) = facts.subscriptions.get(&(number(key) as i64)) else {
        findings.add(name, "was left behind by its subscription");
        return Ok(None);
    };
    let resource = facts.resource_of(subscription);
    let own =
        facts.lanes.get(&lane).filter(|lane| Some(lane.resource) == resource && lane.index == lane_of(key));
    let Some(own) = own else {
        findings.add(name, format!("follows {}, which is not its own", facts.lane(lane)));
        return Ok(None);
    };
    let believed = incarnation == facts.incarnation && !subscription.starts_over;
    Ok(Some(Feed { key, name, lane: own, believed }))
}

/// No part of a position may be beyond the lane's head.
fn check_position(row: &Row, feed: &Feed, findings: &mut Findings) -> Work<()> {
    let bytes = |index| row.get_ref(index)?.as_blob_or_null().map_err(rusqlite::Error::from);
    let cursor = Seq(row.get::<_, i64>(3)? as u64);
    let mut reached = vec![("cursor", cursor)];
    match position::decode_ahead(cursor, bytes(4)?) {
        Some(ahead) => {
            reached.push(("horizon", ahead.horizon));
            reached.extend(ahead.extras.last().map(|seq| ("last settled change", *seq)));
        }
        None => findings.add(feed.name.clone(), "what is ahead of its cursor makes no sense"),
    }
    match bytes(5)?.map(position::decode_sweep) {
        Some(Some(sweep)) => {
            reached.extend([("position of its sweep", sweep.position), ("end of its sweep", sweep.end)]);
        }
        Some(None) => findings.add(feed.name.clone(), "its sweep makes no sense"),
        None => {}
    }
    for (column, what) in [(8, "what is to be judged"), (9, "what was judged")] {
        if bytes(column)?.is_some_and(|set| bits::read_set(set).is_none()) {
            findings.add(feed.name.clone(), format!("{what} makes no sense"));
        }
    }
    if bytes(10)?.is_some_and(|health| position::decode_health(health).is_none()) {
        findings.add(feed.name.clone(), "its health makes no sense");
    }
    let head = feed.lane.row.head;
    for (what, seq) in reached {
        if feed.believed && seq.0 > head {
            findings.add(feed.name.clone(), format!("the {what} is {seq}, beyond the lane's head {head}"));
        }
    }
    Ok(())
}

/// What the client has are documents, be they tombstones: one whose tombstone has gone will never get its delete.
fn check_held(
    connection: &Connection,
    row: &Row,
    feed: &Feed,
    met: &AllMet,
    findings: &mut Findings,
) -> Work<()> {
    let list = row.get_ref(6)?.as_blob().map_err(rusqlite::Error::from)?;
    let Some(entries) = bits::decode(list) else {
        findings.add(feed.name.clone(), "the list of what the client has makes no sense");
        return Ok(());
    };
    let Some(held) = held(connection, feed.key, entries)? else {
        findings.add(feed.name.clone(), "the bitmap of what the client has makes no sense");
        return Ok(());
    };
    for ordinal in held {
        if feed.believed && !feed.has_document(ordinal, met) {
            findings.add(feed.name.clone(), format!("the client has document {ordinal}, which is no more"));
        }
    }
    Ok(())
}

fn check_standings(connection: &Connection, feed: &Feed, met: &AllMet, findings: &mut Findings) -> Work<()> {
    let mut all = connection.prepare_cached(concat!(
        "SELECT ",
        standing_columns!(),
        " FROM standings WHERE feed = ?1 ORDER BY ordinal"
    ))?;
    let mut rows = all.query([feed.key])?;
    while let Some(row) = rows.next()? {
        let standing = match read_standing(row) {
            Ok(standing) => standing,
            Err(WorkError::Refused(error)) => {
                findings.add(feed.name.clone(), format!("cannot be read: {}", error.detail));
                continue;
            }
            Err(failed) => return Err(failed),
        };
        if !feed.believed {
            continue;
        }
        let (ordinal, seq, head) = (standing.ordinal.0, standing.seq.0, feed.lane.row.head);
        if !feed.has_document(ordinal, met) {
            findings
                .add(feed.name.clone(), format!("a standing is for document {ordinal}, which is no more"));
        }
        if seq > head {
            let what =
                format!("the standing of document {ordinal} is for {seq}, beyond the lane's head {head}");
            findings.add(feed.name.clone(), what);
        }
    }
    Ok(())
}

/// States of other lives are believed by nobody, and may outlive their documents.
fn check_kept(
    connection: &Connection,
    life: i64,
    feed: &Feed,
    met: &AllMet,
    findings: &mut Findings,
) -> Work<()> {
    let mut all = connection
        .prepare_cached("SELECT ordinal FROM kept WHERE feed = ?1 AND life = ?2 ORDER BY ordinal")?;
    for ordinal in all.query_map((feed.key, life), |row| row.get::<_, i64>(0))? {
        let ordinal = ordinal? as u64;
        if feed.believed && !feed.has_document(ordinal, met) {
            findings
                .add(feed.name.clone(), format!("a state is kept of document {ordinal}, which is no more"));
        }
    }
    Ok(())
}

/// What has no feed must be on the list of what is still to be removed.
fn check_left_behind(
    connection: &Connection,
    facts: &Facts,
    there: &BTreeSet<i64>,
    findings: &mut Findings,
) -> Work<()> {
    for (table, what) in
        [("held", "a bitmap"), ("standings", "standings"), ("kept", "kept states"), ("notes", "notes")]
    {
        let mut feeds = connection.prepare(&format!("SELECT DISTINCT feed FROM {table}"))?;
        for key in feeds.query_map([], |row| row.get::<_, i64>(0))? {
            let key = key?;
            if !there.contains(&key) && !facts.leaving_feeds.contains(&key) {
                findings.add(facts.feed(key), format!("is gone and has left {what} behind"));
            }
        }
    }
    Ok(())
}

impl Feed<'_> {
    fn has_document(&self, ordinal: u64, met: &AllMet) -> bool {
        met.get(&self.lane.row.id).is_some_and(|met| met.ordinals.contains(ordinal))
    }
}
