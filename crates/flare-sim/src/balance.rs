//! What has to hold of a cluster that has come to rest: all nodes are members, each unit runs at one of them, and no unit
//! should be elsewhere.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use flare_core::cluster::Seen;
use flare_model::cluster::life::Tenure;
use flare_model::cluster::{NodeId, UnitId};

use crate::house::House;

/// A node that was lost gets nothing for balance before it has held its lease for three times its length, and units move a few
/// at a time.
const PATIENCE: Duration = Duration::from_secs(60);

const LOOK: Duration = Duration::from_millis(500);

/// Waits until the cluster is at rest. What is not as it should be by then is wrong.
pub async fn check(house: &Rc<House>) {
    if house.together.is_none() {
        return;
    }
    let deadline = house.stage.time.passed() + PATIENCE;
    loop {
        match wrong(house) {
            None => return,
            Some(what) if house.stage.time.passed() > deadline => {
                return house.stage.wrong(format!("the cluster does not come to rest: {what}"));
            }
            Some(_) => tokio::time::sleep(LOOK).await,
        }
    }
}

/// What is not as it should be.
fn wrong(house: &House) -> Option<String> {
    let mut running: BTreeMap<UnitId, Vec<NodeId>> = BTreeMap::new();
    let mut catalog: Option<(Arc<Seen>, NodeId)> = None;
    for place in &house.places[..house.nodes()] {
        let name = place.name();
        let Some(app) = place.app() else { return Some(format!("{name} is not there")) };
        let Some(member) = &app.member else { return Some(format!("{name} is no member")) };
        let seen = member.seen();
        for (unit, tenure) in seen.tenures.iter() {
            match tenure {
                Tenure::Running { .. } => running.entry(unit.clone()).or_default().push(name.clone()),
                other => return Some(format!("{unit} is {other:?} at {name}")),
            }
        }
        if seen.leads.is_some() {
            catalog = Some((seen, name));
        }
    }
    let Some((seen, leader)) = catalog else { return Some("nobody leads".to_owned()) };
    let Some(units) = &seen.catalog else { return Some(format!("{leader} leads and knows no units")) };
    if let Some((unit, nodes)) = running.iter().find(|(_, nodes)| nodes.len() > 1) {
        return Some(format!("{unit} runs at {nodes:?}"));
    }
    if let Some(unit) = units.keys().find(|unit| !running.contains_key(*unit)) {
        return Some(format!("{unit} runs nowhere"));
    }
    if let Some(unit) = running.keys().find(|unit| !units.contains_key(*unit)) {
        return Some(format!("{unit} runs, and there is no such unit"));
    }
    let mut loads: BTreeMap<NodeId, f64> =
        house.places[..house.nodes()].iter().map(|place| (place.name(), 0.0)).collect();
    for (unit, nodes) in &running {
        *loads.entry(nodes[0].clone()).or_default() += units[unit].weight;
    }
    let least = loads.values().copied().fold(f64::MAX, f64::min);
    let (most, busiest) =
        loads.iter().fold((0.0, None), |(most, busiest), (node, load)| match *load > most {
            true => (*load, Some(node)),
            false => (most, busiest),
        });
    // Moving any of the busiest node's to the idlest would gain little.
    let gains = running.iter().find(|(unit, nodes)| {
        let weight = units[*unit].weight;
        Some(&nodes[0]) == busiest && weight > 0.0 && (most - weight).max(least + weight) < most * 0.9
    });
    gains.map(|(unit, _)| format!("{unit} would be better elsewhere: {loads:?}"))
}
