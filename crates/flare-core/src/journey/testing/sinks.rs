//! Tests: notifications that go to a sink, on a real delivery thread with its couriers. What a sink answers decides what
//! follows, as an answer over HTTP does; and each notification has one id, whatever became of it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use async_trait::async_trait;
use flare_model::bridge;
use flare_model::feed::Standing;
use flare_model::ids::SubscriptionNumber;
use flare_provider::bridge::{
    Bridge, BridgeError, BridgeErrorKind, BridgeResult, Outgoing, Sent, Sink, Source,
};
use flare_provider::upkeep::Change;
use flare_provider::{ListStandings, Start};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::bridges::Bridges;
use crate::journey::testing::world::{Small, World, until};
use crate::journey::thread::command::Command;

/// A sink that answers as it was told to, one after the other, and then takes everything.
struct Scripted {
    answers: Mutex<VecDeque<Sent>>,
    /// What came, in order.
    came: Mutex<Vec<Outgoing>>,
    /// Documents that are being sent.
    open: Mutex<HashSet<Arc<str>>>,
    most: usize,
    /// One for each call that may be answered.
    let_go: Semaphore,
}

impl Scripted {
    fn new(most: usize, answers: impl IntoIterator<Item = Sent>) -> Arc<Scripted> {
        Arc::new(Scripted {
            answers: Mutex::new(answers.into_iter().collect()),
            came: Mutex::default(),
            open: Mutex::default(),
            most,
            let_go: Semaphore::new(Semaphore::MAX_PERMITS),
        })
    }

    fn count(&self) -> usize {
        self.came.lock().len()
    }

    /// What came, in a word each: the document, the action and the revision.
    fn words(&self) -> Vec<String> {
        let header = |one: &Outgoing, name: &str| {
            let found = one.headers.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let word =
            |one: &Outgoing| format!("{} {} {}", one.document, header(one, "Flare-Action"), one.revision);
        self.came.lock().iter().map(word).collect()
    }

    fn ids(&self) -> Vec<String> {
        self.came.lock().iter().map(|one| one.id.clone()).collect()
    }
}

#[async_trait]
impl Sink for Scripted {
    fn most(&self) -> usize {
        self.most
    }

    async fn send(&self, batch: Vec<Outgoing>) -> Vec<Sent> {
        assert!((1..=self.most).contains(&batch.len()));
        for one in &batch {
            assert!(self.open.lock().insert(one.document.clone()), "{} is being sent", one.document);
        }
        self.came.lock().extend(batch.iter().cloned());
        let permit = self.let_go.acquire().await.expect("nobody closes it");
        permit.forget();
        tokio::task::yield_now().await;
        for one in &batch {
            self.open.lock().remove(&one.document);
        }
        batch.iter().map(|_| self.answers.lock().pop_front().unwrap_or(Sent::Delivered)).collect()
    }
}

/// An engine with one sink.
struct Engine(Arc<Scripted>);

#[async_trait]
impl Bridge for Engine {
    fn source(&self, _: &str, _: &bridge::Source) -> BridgeResult<Arc<dyn Source>> {
        Err(BridgeError::new(BridgeErrorKind::Refused, "it has none"))
    }

    fn sink(&self, _: &bridge::Target) -> BridgeResult<Arc<dyn Sink>> {
        Ok(self.0.clone())
    }

    async fn missing(&self, _: &[(String, bridge::Source)]) -> BridgeResult<Vec<Change>> {
        Ok(Vec::new())
    }

    async fn left_over(&self, _: &[(String, bridge::Source)]) -> BridgeResult<Vec<Change>> {
        Ok(Vec::new())
    }

    async fn apply(&self, _: &[(String, bridge::Source)], _: &Change) -> BridgeResult<()> {
        Ok(())
    }
}

const ROOMY: Small = Small { limit: 100, lanes: 2, bytes: 1 << 20 };

fn run<F: Future>(sink: &Arc<Scripted>, test: impl FnOnce(std::rc::Rc<World>) -> F) -> F::Output {
    let engine: Arc<dyn Bridge> = Arc::new(Engine(sink.clone()));
    World::run_with(ROOMY, 8, Bridges::default().with(&["nats"], &engine), test)
}

/// A producer with retries that come soon.
async fn produce(world: &World, more: Value) -> SubscriptionNumber {
    let mut draft = json!({
        "sink": {"type": "nats", "subject": "out.{id}"},
        "delivery": {"concurrency": 8, "retry": {"quantity": 5, "interval": "1ms", "maxInterval": "1ms"}},
    });
    draft.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    world.subscribe(draft, Start::Now).await
}

async fn dead_letters(world: &World, number: SubscriptionNumber) -> Vec<Standing> {
    world.ask(|reply| Command::Record(number, reply)).await;
    let list = ListStandings { subscription: number, dead: true, offset: 0, limit: 100 };
    let (_, standings) = world.store.ledger.standings(list).await.expect("the ledger answers");
    standings.into_iter().map(|(_, standing)| standing).collect()
}

#[test]
fn a_sink_gets_what_a_client_would() {
    let sink = Scripted::new(1, []);
    run(&sink, async |world| {
        let number = produce(&world, json!({"data": {"service": "orders", "id": "{id}"}})).await;
        world.say(7, Some(3)).await;
        until("it came", || (sink.count() == 1).then_some(())).await;
        let came = sink.came.lock()[0].clone();
        assert_eq!((&*came.document, &*came.revision), ("http://h/7", "3"));
        assert_eq!(came.content_type, Some("application/json"));
        let names: Vec<&str> = came.headers.iter().map(|(name, _)| name.as_str()).collect();
        let wanted = ["Flare-Document", "Flare-Revision", "Flare-Action", "Flare-Sequence", "webhook-id"];
        assert!(wanted.iter().all(|name| names.contains(name)), "{names:?}");
        assert!(!names.contains(&"host") && !names.contains(&"content-type"), "{names:?}");
        let body: Value = serde_json::from_slice(&came.body).expect("an envelope");
        assert_eq!(body["data"], json!({"service": "orders", "id": "7"}));
        assert_eq!(body["document"], json!({"rev": 3}));
        until("it is settled", || world.worker.borrow().progress(number).filter(|seen| seen.held == 1)).await;
        assert_eq!(world.progress(number).await.tally.delivered, 1);
    });
}

#[test]
fn what_a_sink_refuses_is_a_dead_letter_at_once_and_its_client_does_not_have_it() {
    let sink = Scripted::new(1, [Sent::Refused("nothing is bound there".to_owned())]);
    run(&sink, async |world| {
        let number = produce(&world, json!({})).await;
        world.say(1, Some(1)).await;
        until("it is given up", || {
            world.worker.borrow().progress(number).filter(|seen| seen.dead_letters == 1)
        })
        .await;
        let letter = dead_letters(&world, number).await.pop().expect("there is one");
        let trouble = letter.trouble.expect("with how it went");
        assert_eq!((trouble.attempts, trouble.error.as_deref()), (1, Some("nothing is bound there")));
        assert!(!trouble.unheard, "the sink said that it does not have it");
        // What nobody has need not be deleted.
        world.say(1, None).await;
        world.say(2, Some(1)).await;
        until("the next one came", || (sink.count() == 2).then_some(())).await;
        assert_eq!(sink.words(), ["http://h/1 create 1", "http://h/2 create 1"]);
    });
}

#[test]
fn what_was_surely_not_sent_is_sent_again_under_its_id_and_leaves_no_doubt() {
    let sink = Scripted::new(1, (0..2).map(|_| Sent::Failed("nobody answers".to_owned())));
    run(&sink, async |world| {
        let number = produce(&world, json!({})).await;
        world.say(1, Some(1)).await;
        until("it came", || world.worker.borrow().progress(number).filter(|seen| seen.held == 1)).await;
        assert_eq!(sink.words(), ["http://h/1 create 1"; 3]);
        assert_eq!(sink.ids().into_iter().collect::<HashSet<_>>().len(), 1, "it is one notification");
    });
    let sink = Scripted::new(1, (0..5).map(|_| Sent::Failed("nobody answers".to_owned())));
    run(&sink, async |world| {
        let number = produce(&world, json!({})).await;
        world.say(1, Some(1)).await;
        until("it is given up", || {
            world.worker.borrow().progress(number).filter(|seen| seen.dead_letters == 1)
        })
        .await;
        world.say(1, None).await;
        world.say(2, Some(1)).await;
        until("the next one came", || sink.words().contains(&"http://h/2 create 1".to_owned()).then_some(()))
            .await;
        assert!(!sink.words().iter().any(|word| word.contains("delete")), "{:?}", sink.words());
    });
}

#[test]
fn what_became_of_unknown_ones_is_in_doubt_as_over_http() {
    let sink = Scripted::new(1, (0..5).map(|_| Sent::Unknown("the connection broke".to_owned())));
    run(&sink, async |world| {
        let number = produce(&world, json!({})).await;
        world.say(1, Some(1)).await;
        until("it is given up", || {
            world.worker.borrow().progress(number).filter(|seen| seen.dead_letters == 1)
        })
        .await;
        assert_eq!(sink.ids().into_iter().collect::<HashSet<_>>().len(), 1, "it is one notification");
        let letter = dead_letters(&world, number).await.pop().expect("there is one");
        assert!(letter.trouble.expect("with how it went").unheard);
        // It may have it, so it is told of the end.
        world.say(1, None).await;
        until("it is deleted", || (sink.count() == 6).then_some(())).await;
        assert_eq!(sink.words().pop().as_deref(), Some("http://h/1 delete 1"));
    });
}

#[test]
fn every_document_comes_in_order_and_once_at_a_time_also_where_many_go_together() {
    for most in [1, 3] {
        let unsure = (0..40).map(|turn| match turn % 4 {
            0 => Sent::Unknown("lost".to_owned()),
            1 => Sent::Failed("not now".to_owned()),
            _ => Sent::Delivered,
        });
        let sink = Scripted::new(most, unsure);
        run(&sink, async |world| {
            let all = json!({"concurrency": 8, "revision": "all",
                "retry": {"quantity": 50, "interval": "1ms", "maxInterval": "1ms"}});
            let number = produce(&world, json!({"delivery": all})).await;
            for revision in 1..=10 {
                for document in 1..=5 {
                    world.say(document, Some(revision)).await;
                }
            }
            until("all came", || {
                world.worker.borrow().progress(number).filter(|seen| seen.tally.delivered == 50)
            })
            .await;
            let mut newest: HashMap<String, i64> = HashMap::new();
            for came in sink.came.lock().iter() {
                let revision: i64 = came.revision.parse().expect("a number");
                let before = newest.insert(came.document.to_string(), revision).unwrap_or(0);
                assert!(
                    revision == before || revision == before + 1,
                    "{} {before} {revision}",
                    came.document
                );
            }
            assert!(newest.len() == 5 && newest.values().all(|revision| *revision == 10));
        });
    }
}

#[test]
fn what_is_too_old_when_its_turn_comes_is_a_dead_letter_and_nothing_is_sent() {
    let sink = Scripted::new(1, []);
    run(&sink, async |world| {
        // Documents of this world are as old as the clock itself.
        let number = produce(&world, json!({"ttl": "1h"})).await;
        world.say(1, Some(1)).await;
        world.say(2, Some(1)).await;
        until("they are given up", || {
            world.worker.borrow().progress(number).filter(|seen| seen.dead_letters == 2)
        })
        .await;
        let trouble = dead_letters(&world, number).await.pop().and_then(|letter| letter.trouble);
        let trouble = trouble.expect("with how it went");
        assert_eq!((trouble.attempts, trouble.error.as_deref()), (0, Some("ttl")));
        assert_eq!((sink.count(), world.progress(number).await.in_flight), (0, 0));
    });
}
