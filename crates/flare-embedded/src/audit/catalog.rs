//! The catalog: entities have their keys, lanes and parents, and no number was given out twice.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::Connection;

use super::Findings;
use super::facts::{Entity, Facts};
use crate::catalog::scope;
use crate::error::Work;
use crate::meta;

/// Checks what there are few of.
pub(super) fn check(connection: &Connection, facts: &Facts, findings: &mut Findings) -> Work<()> {
    check_numbers(connection, findings)?;
    check_keys(connection, facts, findings)?;
    check_lanes(facts, findings);
    check_accounts(connection, findings)?;
    check_intake(connection, facts, findings)?;
    for subscription in facts.subscriptions.values() {
        let about = format!("{} {}", subscription.kind, subscription.id);
        match facts.resource_of(subscription) {
            None => findings.add(about, "what it follows does not exist"),
            Some(number) if facts.resources[&number].lanes != subscription.lanes => {
                findings.add(about, "it does not have as many lanes as its resource");
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// What belongs to an account has one that is there.
fn check_accounts(connection: &Connection, findings: &mut Findings) -> Work<()> {
    let mut lost = connection.prepare(
        "SELECT kind, id FROM entities e WHERE kind IN ('resource', 'consumer', 'token') AND parent IS NOT NULL AND NOT EXISTS
         (SELECT 1 FROM entities a WHERE a.kind = 'account' AND a.id = e.parent)",
    )?;
    let lost =
        lost.query_map([], |row| Ok(format!("{} {}", row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
    for about in lost {
        findings.add(about?, "its account does not exist");
    }
    Ok(())
}

/// What was read of sources, and could not be, is of consumers that are there: it goes with them.
fn check_intake(connection: &Connection, facts: &Facts, findings: &mut Findings) -> Work<()> {
    for (table, what) in [("readings", "how far it was read"), ("letters", "dead letters")] {
        let mut consumers = connection.prepare(&format!("SELECT DISTINCT consumer FROM {table}"))?;
        for number in consumers.query_map([], |row| row.get::<_, i64>(0))? {
            let number = number?;
            if facts.resources.get(&number).is_none_or(|found| found.kind != "consumer") {
                let about = format!("the deleted consumer with the number {number}");
                findings.add(about, format!("has left {what} behind"));
            }
        }
    }
    Ok(())
}

/// What counts on from a number must not be behind what was given out.
fn check_numbers(connection: &Connection, findings: &mut Findings) -> Work<()> {
    for (name, highest) in [
        ("incarnation", "SELECT NULL"),
        ("last_resource", "SELECT max(number) FROM entities WHERE kind IN ('resource', 'consumer')"),
        ("last_subscription", "SELECT max(number) FROM entities WHERE kind IN ('subscription', 'producer')"),
        ("last_account", "SELECT max(number) FROM entities WHERE kind = 'account'"),
        ("last_token", "SELECT max(number) FROM entities WHERE kind = 'token'"),
        ("last_lane", "SELECT max(id) FROM lanes"),
        ("last_epoch", "SELECT max(epoch) FROM feeds"),
        ("last_epoch", "SELECT max(epoch) FROM readings"),
        ("last_letter", "SELECT max(number) FROM letters"),
        ("catalog_version", "SELECT max(version) FROM entities"),
        ("catalog_version", "SELECT max(version) FROM deletions"),
    ] {
        let used: Option<i64> = connection.query_row(highest, [], |row| row.get(0))?;
        match (meta::find(connection, name)?, used) {
            (None, _) => findings.add(format!("the count {name}"), "is not there"),
            (Some(last), Some(used)) if used > last => {
                findings.add(format!("the count {name}"), format!("is {last}, and {used} is in use"));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Each entity has the keys it says, and nobody else has any.
fn check_keys(connection: &Connection, facts: &Facts, findings: &mut Findings) -> Work<()> {
    let mut all = connection.prepare("SELECT kind, scope, key, number FROM entity_keys")?;
    let owners =
        all.query_map([], |row| Ok(((row.get(0)?, row.get(1)?, row.get(2)?), row.get::<_, i64>(3)?)))?;
    let mut owners = owners.collect::<rusqlite::Result<BTreeMap<(String, String, String), i64>>>()?;
    for entities in [&facts.resources, &facts.subscriptions] {
        for (number, Entity { kind, id, parent, keys, .. }) in entities {
            let about = format!("{kind} {id}");
            let Ok(keys) = serde_json::from_str::<BTreeSet<String>>(keys) else {
                findings.add(about, "its keys cannot be read");
                continue;
            };
            for key in keys {
                let owner = owners.remove(&(kind.clone(), scope(parent.as_deref()), key.clone()));
                if owner != Some(*number) {
                    findings.add(about.clone(), format!("its key {key:?} is not kept for it"));
                }
            }
        }
    }
    for ((kind, _, key), number) in owners {
        findings.add(format!("key {key:?}"), format!("is kept for {kind} {number}, which does not have it"));
    }
    Ok(())
}

/// Each resource has all its lanes, and each other lane is on its way out.
fn check_lanes(facts: &Facts, findings: &mut Findings) {
    let mut present: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (id, lane) in &facts.lanes {
        let known = facts.resources.contains_key(&lane.resource);
        match (known, lane.gone) {
            (true, false) => present.entry(lane.resource).or_default().push(lane.index),
            (true, true) => findings.add(facts.lane(*id), "is marked as gone, and its resource is not"),
            (false, false) => findings.add(facts.lane(*id), "was left behind by its resource"),
            (false, true) if !facts.leaving_lanes.contains(id) => {
                findings.add(facts.lane(*id), "is gone, and nothing will remove it");
            }
            (false, true) => {}
        }
    }
    for id in facts.leaving_lanes.iter().filter(|id| !facts.lanes.contains_key(id)) {
        findings.add(facts.lane(*id), "is still to be removed, and is not there");
    }
    for (number, resource) in &facts.resources {
        let mut lanes = present.remove(number).unwrap_or_default();
        lanes.sort_unstable();
        if !lanes.iter().copied().eq(0..i64::from(resource.lanes)) {
            findings.add(
                format!("{} {}", resource.kind, resource.id),
                format!("has {} lanes by its own word, and these are there: {lanes:?}", resource.lanes),
            );
        }
    }
}
