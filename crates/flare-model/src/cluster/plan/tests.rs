//! The planner by tables and by properties: whatever nodes and units there are, what it promises holds once all that it
//! asked for was done.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;

use super::explain::{DeciderName, Decision, Verdict, explain};
use super::scale::{Scale, may_keep, may_take};
use super::*;
use crate::cluster::UnitKind;
use crate::cluster::keys::{Ailment, Trouble};

fn node_id(number: usize) -> NodeId {
    NodeId::new(format!("node-{}", char::from(b'a' + number as u8)))
}

fn unit_id(number: usize) -> UnitId {
    UnitId::new(UnitKind::Subscription, format!("sub_{number:05}"), "0")
}

fn new_unit(weight: f64) -> Unit {
    Unit { weight, origin: Reason::Created, desired: None, effective: Effective::Nobody }
}

fn view(nodes: usize, units: usize) -> View {
    View {
        leader_epoch: 7,
        protocol: 1,
        nodes: (0..nodes).map(|number| (node_id(number), Node::live(1, 1))).collect(),
        units: (0..units).map(|number| (unit_id(number), new_unit(1.0))).collect(),
        settles_in: None,
        moves: 16,
    }
}

/// Does what a plan says, at once, as far as nodes are there to do it; answers the units that changed their owner.
fn carry_out(view: &mut View, plan: &Plan) -> Vec<UnitId> {
    let mut moved = Vec::new();
    for step in &plan.moves {
        let unit = view.units.get_mut(&step.unit).expect("a plan is about units that are there");
        unit.desired = Some(step.to.clone());
        if unit.effective.owner() != Some(&step.to.node) {
            unit.effective = Effective::Held { node: step.to.node.clone(), epoch: Some(1) };
            moved.push(step.unit.clone());
        }
    }
    moved
}

/// Plans and does until there is nothing to do; answers how often each unit moved.
fn converge(view: &mut View) -> BTreeMap<UnitId, u32> {
    let mut moves = BTreeMap::new();
    for _ in 0..10_000 {
        let plan = plan(view);
        if plan.moves.is_empty() {
            return moves;
        }
        for unit in carry_out(view, &plan) {
            *moves.entry(unit).or_default() += 1;
        }
    }
    panic!("it moves for ever")
}

fn counts(view: &View) -> Vec<usize> {
    let has = |id: &NodeId| view.units.values().filter(|unit| unit.node() == Some(id)).count();
    view.nodes.keys().map(has).collect()
}

fn busiest_share(view: &View) -> f64 {
    let scale = Scale::of(view);
    let counted = view.nodes.iter().filter(|(_, node)| may_keep(view, node));
    counted.map(|(id, _)| scale.share(id, 0.0)).fold(0.0, f64::max)
}

#[test]
fn new_units_are_spread_evenly_and_at_once() {
    let mut view = view(3, 1000);
    view.settles_in = Some(Duration::from_secs(10));
    let plan = plan(&view);
    assert_eq!((plan.leader_epoch, plan.moves.len()), (7, 1000));
    assert!(plan.moves.iter().all(|step| step.to.reason == Reason::Created && step.from.is_none()));
    carry_out(&mut view, &plan);
    assert_eq!(counts(&view), [334, 333, 333]);
}

#[test]
fn a_fourth_node_moves_at_most_a_quarter_and_a_twentieth() {
    for units in [12, 100, 1000, 1001] {
        let mut view = view(3, units);
        converge(&mut view);
        view.nodes.insert(node_id(3), Node::live(1, 1));
        let moved = converge(&mut view);
        assert!(moved.len() as f64 <= units as f64 * 0.30, "{} of {units}", moved.len());
        assert!(moved.values().all(|times| *times == 1));
        assert!(busiest_share(&view) <= 1.1, "{:?}", counts(&view));
    }
}

#[test]
fn a_node_among_many_gets_its_part_although_none_is_much_fuller_than_the_mean() {
    let mut view = view(20, 2000);
    converge(&mut view);
    view.nodes.insert(node_id(20), Node::live(1, 1));
    converge(&mut view);
    assert!(counts(&view)[20] >= 85, "{:?}", counts(&view));
}

/// Drained, away, and back, one after the other; balance comes to rest in between.
#[test]
fn a_rolling_restart_moves_each_unit_at_most_twice() {
    for units in [30, 300, 1001] {
        let mut view = view(3, units);
        converge(&mut view);
        let mut moved: BTreeMap<UnitId, u32> = BTreeMap::new();
        let mut count = |more: BTreeMap<UnitId, u32>| {
            more.into_iter().for_each(|(unit, times)| *moved.entry(unit).or_default() += times);
        };
        for number in 0..3 {
            view.nodes.get_mut(&node_id(number)).unwrap().state = NodeState::Draining;
            count(converge(&mut view));
            assert_eq!(counts(&view)[number], 0, "all were handed over");
            let away = view.nodes.remove(&node_id(number)).unwrap();
            count(converge(&mut view));
            view.nodes.insert(node_id(number), Node { state: NodeState::Live, ..away });
            count(converge(&mut view));
        }
        assert!(moved.values().all(|times| *times <= 2), "{moved:?}");
        assert!(busiest_share(&view) <= 1.1);
    }
}

/// The next is drained before balance has begun.
#[test]
fn a_hurried_rolling_restart_moves_each_unit_at_most_twice_too() {
    let mut view = view(3, 300);
    converge(&mut view);
    view.settles_in = Some(Duration::from_secs(1));
    let mut moved: BTreeMap<UnitId, u32> = BTreeMap::new();
    for number in 0..3 {
        view.nodes.get_mut(&node_id(number)).unwrap().state = NodeState::Draining;
        for (unit, times) in converge(&mut view) {
            *moved.entry(unit).or_default() += times;
        }
        view.nodes.get_mut(&node_id(number)).unwrap().state = NodeState::Live;
    }
    view.settles_in = None;
    for (unit, times) in converge(&mut view) {
        *moved.entry(unit).or_default() += times;
    }
    assert!(moved.values().all(|times| *times <= 2), "{moved:?}");
    assert!(busiest_share(&view) <= 1.1);
}

#[test]
fn orphans_go_at_once_and_balance_waits() {
    let mut view = view(3, 90);
    converge(&mut view);
    view.nodes.remove(&node_id(2));
    view.nodes.insert(node_id(3), Node::live(1, 1));
    view.settles_in = Some(Duration::from_secs(10));
    let plan = plan(&view);
    assert_eq!(plan.moves.len(), 30, "what the third had, and nothing else");
    assert!(plan.moves.iter().all(|step| step.to.reason == Reason::NodeGone && step.to.node == node_id(3)));
}

#[test]
fn few_are_under_way_at_once_for_balance() {
    let mut view = view(1, 100);
    converge(&mut view);
    view.nodes.insert(node_id(1), Node::live(1, 1));
    view.moves = 5;
    let first = plan(&view);
    assert_eq!(first.moves.len(), 5);
    for step in &first.moves[..3] {
        view.units.get_mut(&step.unit).unwrap().desired = Some(step.to.clone());
    }
    assert_eq!(plan(&view).moves.len(), 2, "three have not arrived yet");
    view.moves = 0;
    assert_eq!(plan(&view).moves.len(), 0);
}

#[test]
fn a_node_that_was_lost_lately_gets_only_what_has_no_other_place() {
    let mut view = view(2, 100);
    converge(&mut view);
    let cool = Node { cooldown: Some(Duration::from_secs(20)), ..Node::live(1, 1) };
    view.nodes.insert(node_id(2), cool);
    assert_eq!(plan(&view).moves, []);
    view.nodes.remove(&node_id(0));
    let orphaned = plan(&view);
    assert!(orphaned.moves.iter().all(|step| step.to.node == node_id(1)), "there is a steadier one");
    view.nodes.remove(&node_id(1));
    assert_eq!(plan(&view).moves.len(), 100, "there is no other");
}

#[test]
fn nodes_that_cannot_take_units_get_none_and_lose_theirs() {
    let stuck = |stuck| Some(Trouble { ailment: Ailment::Records, stuck });
    let cases: [(&str, Node); 5] = [
        ("draining", Node { state: NodeState::Draining, ..Node::live(1, 1) }),
        ("drained", Node { state: NodeState::Drained, ..Node::live(1, 1) }),
        ("no weight", Node::live(0, 1)),
        ("an older protocol", Node::live(1, 0)),
        ("stuck", Node { trouble: stuck(true), ..Node::live(1, 1) }),
    ];
    for (case, node) in cases {
        let mut view = view(3, 30);
        converge(&mut view);
        view.nodes.insert(node_id(1), node);
        let plan = plan(&view);
        assert_eq!(plan.moves.len(), 10, "{case}");
        assert!(plan.moves.iter().all(|step| step.to.reason == Reason::Drain), "{case}");
        converge(&mut view);
        assert_eq!(counts(&view), [15, 0, 15], "{case}");
    }
}

#[test]
fn a_suspect_node_keeps_its_units_and_gets_none() {
    let mut view = view(2, 20);
    converge(&mut view);
    view.nodes.get_mut(&node_id(1)).unwrap().state = NodeState::Suspect;
    assert_eq!(plan(&view).moves, []);
    view.units.insert(unit_id(99), new_unit(1.0));
    assert_eq!(plan(&view).moves[0].to.node, node_id(0));
}

#[test]
fn a_node_that_may_not_work_keeps_its_units_and_gets_none() {
    let mut view = view(2, 20);
    converge(&mut view);
    let trouble = Some(Trouble { ailment: Ailment::Store, stuck: false });
    view.nodes.get_mut(&node_id(1)).unwrap().trouble = trouble;
    assert_eq!(plan(&view).moves, []);
    view.units.insert(unit_id(99), new_unit(1.0));
    assert_eq!(plan(&view).moves[0].to.node, node_id(0));
}

/// A store that is away for all is noticed by all of them before one is certain of it.
#[test]
fn what_is_stuck_goes_only_to_nodes_without_any_trouble() {
    let mut view = view(3, 30);
    converge(&mut view);
    let trouble = |stuck| Some(Trouble { ailment: Ailment::Store, stuck });
    for number in 0..3 {
        view.nodes.get_mut(&node_id(number)).unwrap().trouble = trouble(number == 1);
    }
    assert_eq!(plan(&view).moves, [], "nobody is known to work");
    assert_eq!(plan(&view).homeless.len(), 10);
    let unit = plan(&view).homeless[0].clone();
    let why = explain(&view, &unit, None, Vec::new()).unwrap();
    assert_eq!(why.verdict, Verdict::Cannot);
    assert!(why.explanation.starts_with("its node lives and does not work, and no"), "{}", why.explanation);
    view.nodes.get_mut(&node_id(2)).unwrap().trouble = None;
    let plan = plan(&view);
    assert_eq!(plan.moves.len(), 10);
    assert!(plan.moves.iter().all(|step| step.to.node == node_id(2) && step.to.home == Some(node_id(1))));
    let why = explain(&view, &unit, None, Vec::new()).unwrap();
    assert_eq!(why.explanation, "node-b lives and does not work, and it fits on node-c");
    let left = why.candidates.iter().find(|candidate| candidate.node == node_id(1)).unwrap();
    assert_eq!(left.decision, Decision::No);
    let alive = left.deciders.iter().find(|decider| decider.decider == DeciderName::Alive).unwrap();
    assert_eq!(alive.decision, Decision::No);
    assert_eq!(alive.detail, "it renews its lease, and does not work: the store does not answer it");
}

#[test]
fn where_nobody_takes_units_they_stay_where_they_are_and_it_is_said() {
    let mut view = view(1, 3);
    converge(&mut view);
    view.nodes.get_mut(&node_id(0)).unwrap().state = NodeState::Draining;
    view.units.insert(unit_id(9), new_unit(1.0));
    let plan = plan(&view);
    assert_eq!((plan.moves.len(), plan.homeless.len()), (0, 4));
    let why = explain(&view, &unit_id(0), None, Vec::new()).unwrap();
    assert_eq!(why.verdict, Verdict::Cannot);
    assert!(why.explanation.contains("no node takes units"), "{}", why.explanation);
}

#[test]
fn large_units_are_not_pushed_to_and_fro() {
    let mut view = view(3, 4);
    converge(&mut view);
    assert_eq!(plan(&view).moves, []);
    let mut counted = counts(&view);
    counted.sort_unstable();
    assert_eq!(counted, [1, 1, 2]);
}

#[test]
fn heavier_nodes_get_more() {
    let mut view = view(2, 300);
    view.nodes.insert(node_id(1), Node::live(2, 1));
    converge(&mut view);
    assert_eq!(counts(&view), [100, 200]);
}

#[test]
fn a_node_with_too_much_to_do_gives_one_unit_to_who_has_least() {
    let mut view = view(3, 30);
    converge(&mut view);
    for (number, load) in [0.97, 0.50, 0.20].into_iter().enumerate() {
        let node = view.nodes.get_mut(&node_id(number)).unwrap();
        (node.load, node.gives_back) = (Some(load), load > 0.95);
    }
    let given = plan(&view);
    assert_eq!(given.moves.len(), 1);
    assert_eq!((&given.moves[0].to.node, given.moves[0].to.reason), (&node_id(2), Reason::GiveBack));
    view.units.get_mut(&given.moves[0].unit).unwrap().desired = Some(given.moves[0].to.clone());
    assert_eq!(plan(&view).moves, [], "the next when that has arrived and was measured");
    converge(&mut view);
    assert!(view.units.values().filter(|unit| unit.node() == Some(&node_id(0))).count() < 30);
}

#[test]
fn what_a_user_moves_stays_until_its_node_goes() {
    let mut view = view(3, 30);
    converge(&mut view);
    let target = node_id(2);
    let unit = view.units.iter().find(|(_, unit)| unit.node() == Some(&node_id(0))).unwrap().0.clone();
    let command = Command::Move { unit: unit.clone(), node: target.clone() };
    let asked = reroute(&view, std::slice::from_ref(&command)).unwrap();
    assert_eq!(
        asked.moves[0].to,
        Desired { node: target.clone(), reason: Reason::Reroute, pinned: true, home: None }
    );
    carry_out(&mut view, &asked);
    converge(&mut view);
    assert_eq!(view.units[&unit].node(), Some(&target));
    let why = explain(&view, &unit, None, Vec::new()).unwrap();
    assert_eq!((why.verdict, why.explanation.as_str()), (Verdict::Stays, "a user put it on node-c"));

    view.nodes.get_mut(&target).unwrap().state = NodeState::Draining;
    converge(&mut view);
    let left = view.units[&unit].desired.clone().unwrap();
    assert!(left.node != target && !left.pinned, "{left:?}");
    assert!(matches!(reroute(&view, &[command]), Err(Refusal::TakesNone { why: "it is drained", .. })));
    let unpin = Command::Unpin { unit: unit_id(12345) };
    assert_eq!(reroute(&view, &[unpin]), Err(Refusal::UnknownUnit(unit_id(12345))));
    let nowhere = Command::Move { unit, node: NodeId::new("x") };
    assert_eq!(reroute(&view, &[nowhere]).unwrap_err().to_string(), "there is no node `x`");
}

#[test]
fn without_commands_a_reroute_plans_now() {
    let mut view = view(1, 100);
    converge(&mut view);
    view.nodes.insert(node_id(1), Node::live(1, 1));
    view.settles_in = Some(Duration::from_secs(10));
    assert_eq!(plan(&view).moves.len(), 0);
    assert_eq!(reroute(&view, &[]).unwrap().moves.len(), 16);
}

#[test]
fn an_explanation_names_what_decides() {
    let mut view = view(3, 30);
    converge(&mut view);
    view.nodes.insert(node_id(1), Node::live(0, 1));
    converge(&mut view);
    let why = explain(&view, &unit_id(0), None, Vec::new()).unwrap();
    assert_eq!((why.state, why.verdict), (UnitState::Running, Verdict::Stays));
    let of = |number: usize| &why.candidates[number];
    assert_eq!(of(0).decision, Decision::Current);
    assert_eq!(of(1).decision, Decision::No);
    let weight = of(1).deciders.iter().find(|decider| decider.decider == DeciderName::Weight).unwrap();
    assert_eq!(
        (weight.decision, weight.detail.as_str()),
        (Decision::No, "its weight is 0: it takes no units")
    );
    assert_eq!(of(2).decision, Decision::Worse);
    let names: Vec<DeciderName> = of(2).deciders.iter().map(|decider| decider.decider).collect();
    use DeciderName::*;
    assert_eq!(names, [Alive, Draining, Weight, Protocol, Balance, Cooldown, Moves, Pinned]);
    assert_eq!(why.explanation, "node-c would be 7 % fuller than node-a after the move");
    assert_eq!(explain(&view, &unit_id(77), None, Vec::new()), None);
    let json = serde_json::to_value(&why).unwrap();
    assert_eq!(json["candidates"][2]["deciders"][4]["decider"], "balance");
    assert!(json["candidates"][2].get("loadAfter").is_some() && json["history"] == serde_json::json!([]));
}

#[test]
fn an_explanation_says_what_it_waits_for() {
    let mut view = view(1, 100);
    converge(&mut view);
    view.nodes.insert(node_id(1), Node::live(1, 1));
    view.settles_in = Some(Duration::from_secs(8));
    let first = unit_id(0);
    let why = |view: &View| explain(view, &first, None, Vec::new()).unwrap();
    let waits = why(&view);
    assert_eq!(waits.verdict, Verdict::Waits);
    assert_eq!(waits.explanation, "it would go to node-b, once the members have stayed the same for 8s more");
    view.settles_in = None;
    assert_eq!(
        (why(&view).verdict, why(&view).explanation.as_str()),
        (Verdict::Moves, "node-a is fuller than node-b")
    );
    let step = plan(&view).moves.into_iter().find(|step| step.unit == first).unwrap();
    view.units.get_mut(&first).unwrap().desired = Some(step.to);
    assert_eq!(why(&view).state, UnitState::Draining);
    assert_eq!(why(&view).explanation, "node-a finishes what is in flight, and node-b waits for that");
    view.units.get_mut(&first).unwrap().effective = Effective::Nobody;
    assert_eq!(why(&view).explanation, "node-b was told and has not claimed it yet");
}

fn any_node() -> impl Strategy<Value = Node> {
    let state = prop_oneof![
        6 => Just(NodeState::Live),
        1 => Just(NodeState::Draining),
        1 => Just(NodeState::Suspect),
        1 => Just(NodeState::Gone),
    ];
    let load = proptest::option::of(0.0..1.0_f64);
    let cooldown = proptest::option::weighted(0.15, Just(Duration::from_secs(9)));
    let trouble = any::<bool>().prop_map(|stuck| Trouble { ailment: Ailment::Store, stuck });
    let trouble = proptest::option::weighted(0.15, trouble);
    (state, 0..4_u32, 0..3_u32, load, prop::bool::weighted(0.1), cooldown, trouble).prop_map(
        |(state, weight, protocol, load, gives_back, cooldown, trouble)| Node {
            state,
            weight,
            protocol: u32::from(protocol > 0),
            load,
            gives_back,
            cooldown,
            trouble,
        },
    )
}

fn any_view() -> impl Strategy<Value = View> {
    let desired = proptest::option::weighted(
        0.8,
        (0..7_usize, prop::bool::weighted(0.1), proptest::option::of(0..7_usize)),
    );
    let unit = (0.1..3.0_f64, desired, proptest::option::weighted(0.8, 0..7_usize), any::<bool>());
    let nodes = prop::collection::btree_map(0..6_usize, any_node(), 0..6);
    (nodes, prop::collection::vec(unit, 0..60), any::<bool>(), 0..20_u32).prop_map(
        |(nodes, units, settled, moves)| View {
            leader_epoch: 3,
            protocol: 1,
            nodes: nodes.into_iter().map(|(number, node)| (node_id(number), node)).collect(),
            units: units
                .into_iter()
                .enumerate()
                .map(|(number, (weight, desired, owner, arrived))| {
                    let desired = desired.map(|(node, pinned, home)| Desired {
                        node: node_id(node),
                        reason: Reason::Balance,
                        pinned,
                        home: home.map(node_id),
                    });
                    let there = desired.as_ref().map(|desired| desired.node.clone()).filter(|_| arrived);
                    let owner = there.or_else(|| owner.map(node_id));
                    let effective =
                        owner.map_or(Effective::Nobody, |node| Effective::Held { node, epoch: None });
                    (unit_id(number), Unit { desired, effective, ..new_unit(weight) })
                })
                .collect(),
            settles_in: (!settled).then_some(Duration::from_secs(1)),
            moves,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_plan_is_sound_whatever_there_is(mut view in any_view()) {
        let first = plan(&view);
        prop_assert_eq!(&first, &plan(&view.clone()), "the same view, the same plan");
        for step in &first.moves {
            let node = &view.nodes[&step.to.node];
            prop_assert!(may_take(&view, node), "{:?} goes to {:?}", step, node);
            let unit = &view.units[&step.unit];
            let for_balance = matches!(step.to.reason, Reason::Balance | Reason::GiveBack);
            let pinned = unit.desired.as_ref().is_some_and(|desired| desired.pinned);
            prop_assert!(!(for_balance && pinned), "{:?} was put there by a user", step);
            prop_assert!(!for_balance || node.cooldown.is_none());
            prop_assert!(unit.node() != Some(&step.to.node), "a move is a move");
        }
        let for_balance = first.moves.iter().filter(|step| step.to.reason == Reason::Balance).count();
        prop_assert!(for_balance <= view.moves as usize);
        prop_assert!(view.settles_in.is_none() || for_balance == 0);
        let takers = view.nodes.values().any(|node| may_take(&view, node));
        prop_assert!(!takers || first.homeless.is_empty(), "somebody takes units");
        carry_out(&mut view, &first);
        for unit in view.units.values() {
            let sits_well = unit.node().and_then(|node| view.nodes.get(node)).is_some_and(|node| may_keep(&view, node));
            prop_assert!(sits_well || !takers);
        }
    }

    #[test]
    fn explanations_agree_with_plans(view in any_view()) {
        let now = plan(&view);
        for id in view.units.keys() {
            let why = explain(&view, id, None, Vec::new()).expect("it is there");
            let step = now.moves.iter().find(|step| step.unit == *id);
            prop_assert_eq!(why.verdict == Verdict::Moves, step.is_some());
            prop_assert_eq!(why.verdict == Verdict::Cannot, now.homeless.contains(id));
            for candidate in &why.candidates {
                let goes = step.is_some_and(|step| step.to.node == candidate.node);
                prop_assert_eq!(candidate.decision == Decision::Yes, goes, "{:?}", candidate);
                let reason = candidate.deciders.iter().any(|decider| decider.decision == Decision::No);
                prop_assert!(candidate.decision != Decision::No || reason, "a no has a reason: {:?}", candidate);
            }
            prop_assert!(!why.explanation.is_empty());
        }
    }

    #[test]
    fn small_units_come_to_rest_in_balance(
        weights in prop::collection::vec(0.5..1.5_f64, 300..600),
        nodes in prop::collection::vec(1..3_u32, 1..5),
        start in prop::collection::vec(0..5_usize, 600),
    ) {
        let mut view = view(0, 0);
        view.nodes = nodes.iter().enumerate().map(|(number, weight)| (node_id(number), Node::live(*weight, 1))).collect();
        for (number, weight) in weights.into_iter().enumerate() {
            let node = node_id(start[number] % nodes.len());
            let desired = Desired { node: node.clone(), reason: Reason::Created, pinned: false, home: None };
            let effective = Effective::Held { node, epoch: None };
            view.units.insert(unit_id(number), Unit { desired: Some(desired), effective, ..new_unit(weight) });
        }
        let moved = converge(&mut view);
        prop_assert!(busiest_share(&view) <= 1.1);
        prop_assert!(moved.values().all(|times| *times == 1), "nothing moves twice");
        let before = view.units.clone();
        let joined = node_id(nodes.len());
        view.nodes.insert(joined.clone(), Node::live(1, 1));
        let moved = converge(&mut view);
        let total: f64 = view.units.values().map(|unit| unit.weight).sum();
        let carried: f64 = moved.keys().map(|id| view.units[id].weight).sum();
        let part = 1.0 / f64::from(nodes.iter().sum::<u32>() + 1);
        prop_assert!(carried <= total * (part + 0.05), "{carried} of {total}");
        prop_assert!(moved.keys().all(|id| view.units[id].node() == Some(&joined) && before[id].node() != Some(&joined)));
        prop_assert!(busiest_share(&view) <= 1.1);
    }
}
