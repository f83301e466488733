//! A node on which the examples of the description make sense: the resource, the documents and the subscriptions that
//! they speak of. Ids are drawn by the node, so those of the examples are replaced by the real ones.

use serde_json::{Value, json};

use super::Operation;
use crate::cluster::nodes::over_postgresql;
use crate::support::{Api, Flare, Receiver, Reply, Setup, until};

/// The ids that the examples use, as `examples.rs` of the description has them.
const RESOURCE: &str = "res_e13ezvc2975ntr7j40xm";
const SUBSCRIPTION: &str = "sub_bshh5ta4fs6w8je0ny7b";
const REPLAY: &str = "rpl_1";
const ATTEMPT: &str = "att_000500000000001f";
const CONSUMER: &str = "con_3kq0v7d1m5c2xj4f8t9w";
const PRODUCER: &str = "prd_6h0z2v9c4k8d1q5w3m7x";
const TOKEN: &str = "tok_7m2c0v9x4k8d1q5w3z6h";
const DOCUMENT: &str = "http://api.company.com/users/1";
const CLIENT: &str = "http://127.0.0.1:9000";

/// Producers of the document that the examples speak of, like the subscriptions.
pub struct Producers {
    /// Active; its target refuses, and it has given up.
    told: String,
    /// Passive, for requests.
    asking: String,
    /// Passive, for a stream.
    streaming: String,
    /// To be deleted.
    doomed: String,
    /// Of the first.
    attempt: String,
}

/// The node, and what is on it.
pub struct World {
    pub flare: Flare,
    /// Other nodes of its cluster.
    pub others: Vec<Flare>,
    pub description: Value,
    /// It refuses everything, so that there are failures to look at.
    receiver: Receiver,
    pub resource: String,
    /// What the example of `createResource` was answered.
    pub created: Value,
    /// Active; its client refuses.
    pub told: String,
    /// Passive, for requests.
    pub asking: String,
    /// Passive, for a stream.
    pub streaming: String,
    /// To be deleted.
    pub doomed: String,
    pub doomed_resource: String,
    pub attempt: String,
    pub replay: String,
    /// With a dead letter, and producers.
    pub consumer: String,
    pub producers: Producers,
    /// To be deleted.
    pub doomed_consumer: String,
    /// There is authentication, and whoever asks is the operator; these are a token to look at, and one to revoke.
    pub tokens: Option<[String; 2]>,
}

impl World {
    pub async fn begin() -> World {
        World::of(Setup::default(), false, &[]).await
    }

    /// The same on three nodes, of which each serves a part; nothing where there is no server for them.
    pub async fn of_three() -> Option<World> {
        Some(World::of(over_postgresql(Setup::default())?, false, &["node-b", "node-c"]).await)
    }

    /// The same with authentication.
    pub async fn guarded() -> World {
        World::of(Setup::default().guarded(), true, &[]).await
    }

    async fn of(setup: Setup, guarded: bool, names: &[&str]) -> World {
        // Profiles are part of the description, and off by default.
        let setup = setup.with("FLARE_DOMAIN_CONSUMER_TRIES", "1");
        let setup = setup.with("FLARE_DEBUG_PROFILING", "true").with("FLARE_DEBUG_MAXIMUM_PROFILE", "1s");
        let flare = setup.clone().with("FLARE_CLUSTER_NODE", "node-a").start().await;
        let mut others = Vec::new();
        for name in names {
            others.push(setup.clone().with("FLARE_CLUSTER_NODE", name).start().await);
        }
        let api = if guarded { flare.operator() } else { flare.api() };
        until("all nodes know each other", || async {
            let health = api.get("/cluster/health").await.expect(200).json();
            (health["status"] == "green" && health["nodes"]["live"] == 1 + names.len()).then_some(())
        })
        .await;
        let setup_of_receiver = |request: &crate::support::Request| match request.path.as_str() {
            "/orders" => {
                let orders = json!({"orders": [{"total": 3}, {"id": DOCUMENT, "total": 5}]});
                Reply::Full { status: 200, headers: Vec::new(), body: orders.to_string() }
            }
            _ => Reply::Status(500),
        };
        let receiver = Receiver::answering(setup_of_receiver).await;
        let description = api.get("/openapi.json").await.expect(200).json();
        let created =
            api.post("/resources", &example(&description, "createResource")).await.expect(201).json();
        let resource = created["id"].as_str().expect("an id").to_owned();
        let doomed = json!({"endpoint": "http://doomed.test/{x}", "change": {"field": "version"}});
        let doomed_resource = id(&api, "/resources", &doomed).await;
        let list = format!("/resources/{resource}/subscriptions");
        let subscription = |name: &str, mode: &str| {
            let url = receiver.url(&format!("/{name}/{{id}}"));
            json!({"endpoint": {"url": url}, "mode": mode, "delivery": {"retry": {"quantity": 1}}})
        };
        let told = id(&api, &list, &subscription("told", "active")).await;
        let asking = id(&api, &list, &subscription("asking", "passive")).await;
        let streaming = id(&api, &list, &subscription("streaming", "passive")).await;
        let doomed = id(&api, &list, &subscription("doomed", "active")).await;
        for user in 1..=3 {
            let document = json!({"version": 1, "quantity": 1, "name": "Ada"});
            api.put(&format!("http://api.company.com/users/{user}"), &document).await;
        }
        let told_path = format!("{list}/{told}");
        let attempts = format!("{told_path}/attempts");
        let attempt = until("an attempt was made", || async {
            let found = api.get(&attempts).await.expect(200).json();
            found["attempts"][0]["id"].as_str().map(ToOwned::to_owned)
        });
        let attempt = attempt.await;
        let letters = format!("{told_path}/dead-letters");
        until("all three were given up", || async {
            let found = api.get(&letters).await.expect(200).json();
            (found["pagination"]["total"] == 3).then_some(())
        })
        .await;
        let replay = json!({"document": "http://api.company.com/users/3"});
        let replay = api.post(&format!("{told_path}/replay"), &replay).await.expect(202).json();
        let replay = replay["id"].as_str().expect("an id").to_owned();
        let [consumer, doomed_consumer] = consumers(&api, &receiver).await;
        let again = json!({"scope": "deadLetters"});
        let again = api.post(&format!("/consumers/{consumer}/replay"), &again).await.expect(202).json();
        assert_eq!(again["id"], REPLAY, "it is called as in the examples");
        let producers = producers(&api, &receiver, &format!("/consumers/{consumer}/producers")).await;
        let tokens = if guarded { Some(tokens(&api).await) } else { None };
        World {
            tokens,
            flare,
            others,
            description,
            receiver,
            resource,
            created,
            told,
            asking,
            streaming,
            doomed,
            doomed_resource,
            attempt,
            replay,
            consumer,
            producers,
            doomed_consumer,
        }
    }

    pub fn api(&self) -> Api {
        if self.tokens.is_some() { self.flare.operator() } else { self.flare.api() }
    }

    /// A text of an example, with the ids of this world.
    pub fn real(&self, operation: &Operation, text: &str) -> String {
        let subscription = match operation.id() {
            "stream" => &self.streaming,
            "deleteSubscription" => &self.doomed,
            _ if operation.says["tags"][0] == "Pull mode" => &self.asking,
            _ => &self.told,
        };
        let resource =
            if operation.id() == "deleteResource" { &self.doomed_resource } else { &self.resource };
        let consumer =
            if operation.id() == "deleteConsumer" { &self.doomed_consumer } else { &self.consumer };
        let producer = match operation.id() {
            "deleteProducer" => &self.producers.doomed,
            "streamOfProducer" => &self.producers.streaming,
            "deliverOfProducer" | "reserveOfProducer" | "settleOfProducer" => &self.producers.asking,
            _ => &self.producers.told,
        };
        let attempt =
            if operation.id() == "getAttemptOfProducer" { &self.producers.attempt } else { &self.attempt };
        let client = self.receiver.url("");
        let unknown = [TOKEN.to_owned(), TOKEN.to_owned()];
        let [shown, doomed] = self.tokens.as_ref().unwrap_or(&unknown);
        let token = if operation.id() == "revokeToken" { doomed } else { shown };
        let account = match operation.id() {
            "createAccount" => "fresh",
            "deleteAccount" => "doomed",
            _ => "acme",
        };
        [(RESOURCE, resource), (SUBSCRIPTION, subscription), (REPLAY, &self.replay), (ATTEMPT, attempt)]
            .into_iter()
            .chain([(TOKEN, token), ("acme", &account.to_owned())])
            .chain([(CONSUMER, consumer), (PRODUCER, producer)])
            .fold(text.replace(CLIENT, client.trim_end_matches('/')), |text, (example, real)| {
                text.replace(example, real)
            })
    }
}

/// The body that an operation's example sends.
fn example(description: &Value, operation: &str) -> Value {
    let found = super::operations(description).into_iter().find(|found| found.id() == operation);
    let found = found.unwrap_or_else(|| panic!("{operation} is not described"));
    found.says["requestBody"]["content"]["application/json"]["example"].clone()
}

/// Two consumers, of which the first has a document, and a message that it cannot read.
async fn consumers(api: &Api, receiver: &Receiver) -> [String; 2] {
    let draft = |path: &str| {
        let source = json!({"type": "http.poll", "url": receiver.url(path), "interval": "1h"});
        json!({"source": source, "payload": {"id": "id"}})
    };
    let mut orders = draft("/orders");
    orders["source"]["items"] = "orders".into();
    let both = [id(api, "/consumers", &orders).await, id(api, "/consumers", &draft("/nothing")).await];
    let letters = format!("/consumers/{}/dead-letters", both[0]);
    until("a message could not be read", || async {
        let found = api.get(&letters).await.expect(200).json();
        (found["pagination"]["total"] == 1).then_some(())
    })
    .await;
    both
}

async fn producers(api: &Api, receiver: &Receiver, list: &str) -> Producers {
    let make = async |name: &str, mode: &str| {
        let target = json!({"type": "http", "url": receiver.url(&format!("/{name}/{{id}}"))});
        let delivery = json!({"retry": {"quantity": 1}});
        let draft = json!({"target": target, "mode": mode, "start": "beginning", "delivery": delivery});
        id(api, list, &draft).await
    };
    let told = make("producer", "active").await;
    let attempts = format!("{list}/{told}/attempts");
    let attempt = until("an attempt was made", || async {
        let found = api.get(&attempts).await.expect(200).json();
        found["attempts"][0]["id"].as_str().map(ToOwned::to_owned)
    });
    let attempt = attempt.await;
    let letters = format!("{list}/{told}/dead-letters");
    until("it was given up", || async {
        let found = api.get(&letters).await.expect(200).json();
        (found["pagination"]["total"] == 1).then_some(())
    })
    .await;
    let (asking, streaming) = (make("asking", "passive").await, make("streaming", "passive").await);
    Producers { told, asking, streaming, doomed: make("doomed", "active").await, attempt }
}

/// Two tokens, and two accounts.
async fn tokens(api: &Api) -> [String; 2] {
    for name in ["acme", "doomed"] {
        api.post("/accounts", &json!({"name": name})).await.expect(201);
    }
    let draft = json!({"name": "one", "scopes": ["read"]});
    [id(api, "/tokens", &draft).await, id(api, "/tokens", &draft).await]
}

async fn id(api: &Api, path: &str, body: &Value) -> String {
    let created = api.post(path, body).await.expect(201).json();
    created["id"].as_str().expect("an id").to_owned()
}
