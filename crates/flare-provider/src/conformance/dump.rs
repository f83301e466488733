//! A whole store in one value: a store comes in, and all that can be read of it goes out, told without the
//! numbers and versions that engines may choose, so that stores of different engines can be compared.

use flare_model::document::Document;
use flare_model::feed::{Saved, Standing};
use flare_model::ids::{FeedId, LaneId, ResourceNumber, Seq, SubscriptionNumber};

use crate::Store;
use crate::catalog::{Entity, EntityKind};
use crate::documents::{LaneState, ScanLane};
use crate::ledger::{ListStandings, Opened};

/// All that a store has, in lines that can be compared and read.
#[derive(Clone, Debug, PartialEq)]
pub struct Dump {
    /// Resources, each with its lanes and their documents.
    pub resources: Vec<String>,
    /// Subscriptions, each with its feeds and what stands in them.
    pub subscriptions: Vec<String>,
}

/// Reads a store that nobody else uses. It takes all feeds over to read them.
pub async fn dump(store: &Store) -> Dump {
    let mut dump = Dump { resources: Vec::new(), subscriptions: Vec::new() };
    let mut lanes = store.documents.lanes().await.expect("lanes are read");
    for resource in entities(store, EntityKind::Resource).await {
        dump.resources.push(show_entity(&resource));
        for index in 0..resource.lanes {
            let lane = LaneId { resource: ResourceNumber(resource.number), index: index as u8 };
            let state =
                lanes.iter().position(|state| state.lane == lane).map(|found| lanes.swap_remove(found));
            dump.resources.push(show_lane(&state.expect("a resource has its lanes")));
            let scan =
                ScanLane { lane, after: Seq(0), upto: Seq(u64::MAX), rows: usize::MAX, bytes: usize::MAX };
            let page = store.documents.scan(scan).await.expect("a lane is read");
            dump.resources.extend(page.documents.iter().map(show_document));
            let kept = store.documents.revisions(lane, None, usize::MAX).await.expect("a history is read");
            dump.resources.extend(kept.iter().map(|kept| format!("{kept:?}")));
            let page = store.documents.scan_revisions(scan, Seq(0)).await.expect("a history is read");
            dump.resources.extend(page.documents.iter().map(show_document));
        }
    }
    assert_eq!(lanes, [], "every lane belongs to a resource");
    let epoch = store.ledger.next_epoch().await.expect("an epoch is given");
    for entity in entities(store, EntityKind::Subscription).await {
        dump.subscriptions.push(show_entity(&entity));
        let subscription = SubscriptionNumber(entity.number);
        let feeds: Vec<FeedId> =
            (0..entity.lanes).map(|lane| FeedId { subscription, lane: lane as u8 }).collect();
        let mut opened = store.ledger.open(&feeds, epoch).await.expect("feeds are read");
        opened.sort_by_key(|opened| opened.feed);
        assert_eq!(opened.len(), feeds.len(), "a subscription has a feed per lane");
        dump.subscriptions.extend(opened.into_iter().map(show_opened));
        for dead in [false, true] {
            let list = ListStandings { subscription, dead, offset: 0, limit: u64::MAX };
            let standings = store.ledger.standings(list).await.expect("standings are read");
            dump.subscriptions.push(show_standings(&standings));
        }
    }
    dump
}

async fn entities(store: &Store, kind: EntityKind) -> Vec<Entity> {
    store.catalog.list(kind, 0, usize::MAX).await.expect("entities are read")
}

/// An entity without its number and version.
pub fn show_entity(entity: &Entity) -> String {
    let Entity { kind, id, parent, keys, body, lanes, history, .. } = entity;
    format!("{} {id} of {parent:?}, {lanes} lanes, keys {keys:?}, {history}: {body}", kind.as_str())
}

/// A lane without its resource.
pub fn show_lane(state: &LaneState) -> String {
    let LaneState { lane, head, documents, tombstones, revisions } = state;
    let index = lane.index;
    format!("lane {index} up to {head}: {documents} documents, {tombstones} tombstones, {revisions} older")
}

/// A document without its resource; the revision in its parts, since dates are equal in any words.
pub fn show_document(document: &Document) -> String {
    let Document { lane, row, url, revision, updated_at, content } = document;
    format!("{}: {url} {row:?} {:?} at {updated_at} {content:?}", lane.index, revision.to_parts())
}

/// A feed without its subscription.
pub fn show_opened(opened: Opened) -> String {
    let Opened { feed, saved, head } = opened;
    let Saved {
        cursor,
        issued,
        judging,
        unjudged,
        judged,
        ahead,
        held,
        mut standings,
        dead,
        dead_in_doubt,
        since,
        sweep,
        tally,
        life,
        filtering,
        noted,
        untold,
        strange,
    } = saved;
    standings.sort_by_key(|standing| standing.ordinal);
    let (held, dead): (Vec<u64>, Vec<u64>) = (held.iter().collect(), dead.iter().collect());
    let dead_in_doubt: Vec<u64> = dead_in_doubt.iter().collect();
    format!(
        "feed {} of {head}: cursor {cursor} issued {issued} judging {judging} {unjudged:?} {judged:?} {ahead:?} held {held:?} {standings:?} \
         dead {dead:?} in doubt {dead_in_doubt:?} since {since:?} {sweep:?} {tally:?} life {life} {filtering:?} \
         noted {noted:?} {untold:?} strange {strange}",
        feed.lane
    )
}

/// A page of standings with its total.
pub fn show_standings((total, page): &(u64, Vec<(u8, Standing)>)) -> String {
    format!("{total} standings: {page:?}")
}
