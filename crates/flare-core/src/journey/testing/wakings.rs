//! Tests: whoever stands still on a delivery thread has something that wakes him, and what was read from the store in
//! another time is not used. With every limit at 1.

use flare_model::feed::{Action, SweepKind};
use flare_model::ids::SubscriptionNumber;
use flare_model::time::Timestamp;
use flare_provider::{EntityKind, Start};
use serde_json::json;
use tokio::sync::oneshot;

use crate::journey::passive::{Ask, EndLeases, LeaseEnd, Reservation};
use crate::journey::subscriber::Standstill;
use crate::journey::testing::world::{Small, World, taken, timed_out, until};
use crate::journey::thread::command::{AskedFor, Command, Requested};

const TINY: Small = Small { limit: 1, lanes: 1, bytes: 1 };
const REPLAY: SweepKind = SweepKind::Replay { since: Timestamp::from_millis(i64::MIN) };

async fn sweep(world: &World, number: SubscriptionNumber, replay: u64) {
    assert!(world.ask(|reply| Command::Sweep(number, REPLAY, replay, reply)).await, "none is under way");
}

fn stand(world: &World, number: SubscriptionNumber, standstill: Standstill) {
    world.obey(Command::Stand { number, standstill, paused_since: None });
}

#[test]
fn a_sweep_gives_a_client_that_struggles_something_to_be_tried_with() {
    World::run(TINY, async |world| {
        let number = world.subscribe(json!({}), Start::Now).await;
        for document in 0..3 {
            world.say(document, Some(1)).await;
            world.settle(world.next().await, &timed_out());
        }
        assert_eq!(world.progress(number).await.dead_letters, 3);
        sweep(&world, number, 1).await;
        world.settle(world.next().await, &timed_out());
        for _ in 0..2 {
            world.settle(world.next().await, &taken());
        }
        let seen = world.progress(number).await;
        assert_eq!((seen.dead_letters, seen.held, seen.sweep), (1, 2, None));
    });
}

#[test]
fn a_replay_in_turn_of_a_row_that_may_have_been_replaced_is_looked_up_again() {
    // The tail forgets at once what it has heard.
    World::run(Small { limit: 10, lanes: 1, bytes: 1 }, async |world| {
        let all = json!({"delivery": {"revision": "all"}});
        let number = world.subscribe(all, Start::Now).await;
        world.say(1, Some(1)).await;
        let first = world.next().await;
        let row = *first.notification.change.row();
        world.settle(first, &taken());
        world.say(1, Some(2)).await;
        let second = world.next().await;
        let newest = *second.notification.change.row();
        world.settle(second, &taken());
        // Its reader was slow: the client has got the newer one meanwhile, and must not be told the older one after it.
        let asked = vec![AskedFor { lane: 0, row, head: row.seq }];
        let unsure = Requested { taken: 0, unsure: vec![(0, row.ordinal)] };
        assert_eq!(world.ask(|reply| Command::Request(number, asked.clone(), 7, reply)).await, unsure);
        let asked = vec![AskedFor { lane: 0, row: newest, head: newest.seq }];
        assert_eq!(world.ask(|reply| Command::Request(number, asked.clone(), 7, reply)).await.taken, 1);
        let again = world.next().await.notification.attempt;
        assert_eq!((again.replay, again.seq), (7, newest.seq));
    });
}

#[test]
fn a_replay_of_a_row_that_was_replaced_since_it_was_read_tells_the_newest_as_a_replay() {
    World::run(Small { limit: 10, lanes: 1, bytes: 1 << 20 }, async |world| {
        let number = world.subscribe(json!({}), Start::Now).await;
        world.say(1, Some(1)).await;
        let first = world.next().await;
        let row = *first.notification.change.row();
        world.settle(first, &taken());
        world.say(1, Some(2)).await;
        world.settle(world.next().await, &taken());
        // Its reader was slow: the client has got the newer one meanwhile.
        let asked = vec![AskedFor { lane: 0, row, head: row.seq }];
        assert_eq!(world.ask(|reply| Command::Request(number, asked.clone(), 7, reply)).await.taken, 1);
        let again = world.next().await.notification.attempt;
        assert_eq!((again.replay, again.seq > row.seq), (7, true));
    });
}

#[test]
fn a_sweep_that_meets_a_document_in_flight_goes_on_when_that_has_ended() {
    World::run(Small { limit: 10, ..TINY }, async |world| {
        let number = world.subscribe(json!({}), Start::Now).await;
        world.say(1, Some(1)).await;
        let open = world.next().await;
        sweep(&world, number, 1).await;
        // What it waits for is the end of the attempt, and no time: nothing is read meanwhile.
        let stands = || {
            let worker = world.worker.borrow();
            let slot = &worker.subscribers.of(number).expect("it is served here").lanes[0];
            (slot.aside.sweeping
                == crate::journey::subscriber::lane::Sweeping::Before(open.notification.attempt.ordinal))
            .then_some(())
        };
        until("the sweep stands before it", stands).await;
        world.settle(open, &taken());
        let again = world.next().await;
        assert_eq!(
            (again.notification.attempt.replay, again.notification.attempt.action),
            (1, Action::Update)
        );
        world.settle(again, &taken());
        assert!(world.progress(number).await.sweep.is_none());
    });
}

#[test]
fn a_page_read_before_a_feed_began_again_is_not_used() {
    World::run(TINY, async |world| {
        let number = world.subscribe(json!({}), Start::Now).await;
        for document in 0..4 {
            world.say(document, Some(1)).await;
            world.settle(world.next().await, &taken());
        }
        // It is behind the tail, and its page is on its way.
        stand(&world, number, Standstill::Paused);
        for document in 4..8 {
            world.say(document, Some(1)).await;
        }
        world.hold_reads();
        stand(&world, number, Standstill::None);
        assert!(world.take().is_none(), "what comes next has to be read");
        stand(&world, number, Standstill::Disabled);
        assert!(world.ask(|reply| Command::BeginAgain(number, reply)).await);
        stand(&world, number, Standstill::None);
        world.reads_have_ended().await;
        let mut told = Vec::new();
        for _ in 0..8 {
            let job = world.next().await;
            told.push(job.notification.change.document.url.to_string());
            world.settle(job, &taken());
        }
        told.sort();
        let all: Vec<_> = (0..8).map(|document| format!("http://h/{document}")).collect();
        assert_eq!(told, all, "everything is sent again");
    });
}

#[test]
fn a_page_read_before_a_subscription_left_and_came_back_is_not_used() {
    World::run(Small { limit: 2, ..TINY }, async |world| {
        let number = world.subscribe(json!({}), Start::Now).await;
        for document in 0..6 {
            world.say(document, Some(1)).await;
        }
        let open = world.next().await;
        // The first is in flight; what lies beyond the second is read.
        let second = world.next().await;
        world.settle(second, &taken());
        world.hold_reads();
        assert!(world.take().is_none());
        world.settle(open, &taken());
        // It goes without a word and comes back to the same place, where only what was recorded is known.
        world.ask(|reply| Command::Remove(number, reply)).await;
        world.open(world.compiled(number, json!({}), 0), &[0]).await;
        world.reads_have_ended().await;
        let mut held = 0;
        while held < 6 {
            world.settle(world.next().await, &taken());
            held = world.progress(number).await.held;
        }
    });
}

#[test]
fn a_standing_for_a_document_that_is_gone_is_cleared_and_makes_room_for_others() {
    World::run(TINY, async |world| {
        let number = world.subscribe(json!({"delivery": {"retry": {"interval": "1ms"}}}), Start::Now).await;
        world.say(1, Some(1)).await;
        world.settle(world.next().await, &taken());
        world.say(1, None).await;
        world.settle(world.next().await, &taken());
        let lane = world.resource.lane_of("http://h/1");
        let row = world.store.documents.get(lane, "http://h/1").await.unwrap().unwrap().row;
        let before = Timestamp::from_millis(i64::MAX);
        let keep = Default::default();
        // Nobody needs it, so it goes, and just then somebody asks for it.
        let went = world.store.documents.remove_tombstones(0, lane, row.seq, before, &keep, 10).await;
        assert_eq!(went.unwrap(), 1);
        world.say(2, Some(1)).await;
        world.settle(world.next().await, &taken());
        let asked = vec![AskedFor { lane: lane.index, row, head: row.seq }];
        assert_eq!(world.ask(|reply| Command::Request(number, asked.clone(), 1, reply)).await.taken, 1);
        // There is room for one that waits: it is not taken for ever.
        world.say(3, Some(1)).await;
        let job = world.next().await;
        assert_eq!(&*job.notification.change.document.url, "http://h/3");
        world.settle(job, &taken());
        until("nothing waits", || {
            let worker = world.worker.borrow();
            let subscriber = worker.subscribers.of(number).expect("it is served here");
            (subscriber.lanes[0].feed.waiting().is_empty()).then_some(())
        })
        .await;
        assert_eq!(world.progress(number).await.lagging.documents, 0);
    });
}

#[test]
fn what_is_deleted_sleeps_at_no_lane() {
    World::run(Small { lanes: 3, ..TINY }, async |world| {
        for _ in 0..3 {
            let number = world.subscribe(json!({}), Start::Now).await;
            assert!(world.take().is_none(), "all of it sleeps");
            world.ask(|reply| Command::Remove(number, reply)).await;
            assert!(
                world.store.catalog.delete(flare_provider::EntityKind::Subscription, "sub").await.unwrap()
            );
        }
        for lane in world.resource.lanes() {
            assert_eq!(world.worker.borrow_mut().parked.wake(lane), []);
        }
    });
}

#[test]
fn a_subscription_that_moves_to_another_host_does_not_wait_for_the_one_it_had() {
    World::run(TINY, async |world| {
        let number = world.subscribe(json!({}), Start::Now).await;
        world.say(1, Some(1)).await;
        until("it stands in the queue of its host", || {
            (!world.worker.borrow().hosts[0].queue.is_empty()).then_some(())
        })
        .await;
        // It still tells that host of deletes.
        let actions = json!({"delete": {"url": "http://127.0.0.1:9/"}});
        let endpoint = json!({"url": "http://127.0.0.1:8/", "actions": actions});
        world.obey(Command::Replace(world.compiled(number, json!({"endpoint": endpoint}), 0)));
        let host = world.worker.borrow().subscribers.of(number).expect("it is served here").host;
        assert!(world.worker.borrow().hosts.len() == 2 && host != 0);
        let job = until("its new host has it", || world.worker.borrow_mut().next_job(host)).await;
        world.settle(job, &taken());
        assert_eq!(world.progress(number).await.held, 1);
    });
}

#[test]
fn whoever_ends_leases_of_a_subscription_that_is_being_deleted_does_not_wait_for_its_record() {
    World::run(TINY, async |world| {
        let number = world.subscribe(json!({"mode": "passive"}), Start::Now).await;
        world.say(1, Some(1)).await;
        let (reply, handout) = oneshot::channel();
        let lease = std::time::Duration::from_secs(3_600);
        let reservation = Reservation { quantity: 1, lease, patient: true, reply };
        world.obey(Command::Passive(number, Ask::Reserve(reservation)));
        let handout = handout.await.expect("it is answered").unwrap_or_default();
        handout.receipt.expect("it gets one").handed_over();
        let deleted = world.store.catalog.delete(EntityKind::Subscription, "sub").await;
        assert!(deleted.expect("the store works"));
        // Whoever deletes it waits until those have their answers who asked before.
        let (reply, ended) = oneshot::channel();
        let which = EndLeases { document: None, word: LeaseEnd::Revoked };
        world.obey(Command::Passive(number, Ask::EndLeases(which, reply)));
        assert!(ended.await.is_err(), "it was not recorded");
        assert!(world.ask(|reply| Command::Progress(number, reply)).await.is_none(), "it is gone");
    });
}
