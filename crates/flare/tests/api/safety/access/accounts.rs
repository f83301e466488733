//! Accounts do not meet: every operation is tried on what another account has, and the same url in two of them is two
//! documents.

use serde_json::{Value, json};

use super::{ask, id, operations, tenant};
use crate::support::{
    Api, Flare, Receiver, Reply, Setup, document_url, minimal_resource, store_is_durable, until,
};

/// Flare with two accounts, and a token for everything in each.
async fn two_accounts() -> (Flare, Api, Api) {
    let flare = Setup::default().guarded().start().await;
    let operator = flare.operator();
    for name in ["acme", "other"] {
        let created = operator.post("/accounts", &json!({"name": name})).await.expect(201);
        assert_eq!(created.header("location"), format!("/accounts/{name}"));
    }
    let acme = flare.api().with(&tenant(operator.acting_for("acme")).await);
    let other = flare.api().with(&tenant(operator.acting_for("other")).await);
    (flare, acme, other)
}

/// What an account has, by the names that paths have for it.
struct Estate {
    names: Vec<(&'static str, String)>,
    list: String,
    /// What paths of consumers mean by `{id}`.
    producer: String,
}

impl Estate {
    /// A resource with a document that its client refuses: an attempt, a dead letter, a replay, and a token.
    async fn of(api: Api, receiver: &Receiver) -> Estate {
        let resource = id(api, "/resources", &minimal_resource()).await;
        let list = format!("/resources/{resource}/subscriptions");
        let url = receiver.url("/{id}");
        let draft = json!({"endpoint": {"url": url}, "delivery": {"retry": {"quantity": 1}}});
        let subscription = id(api, &list, &draft).await;
        api.put(&document_url(1), &json!({"rev": 1, "secret": "of acme"})).await;
        let path = format!("{list}/{subscription}");
        let attempts = format!("{path}/attempts");
        let attempt = until("an attempt was made", || async {
            let found = api.get(&attempts).await.expect(200).json();
            found["attempts"][0]["id"].as_str().map(ToOwned::to_owned)
        });
        let attempt = attempt.await;
        let replay = api.post(&format!("{path}/replay"), &json!({"scope": "all"})).await.expect(202).json();
        let token = id(api, "/tokens", &json!({"name": "theirs", "scopes": ["read"]})).await;
        let polled = json!({
            "source": {"type": "http.poll", "url": receiver.url("/polled")}, "payload": {"id": "id"},
        });
        let consumer = id(api, "/consumers", &polled).await;
        let target = json!({"target": {"type": "http", "url": receiver.url("/passed-on/{id}")}});
        let producer = id(api, &format!("/consumers/{consumer}/producers"), &target).await;
        let names = vec![
            ("{cid}", consumer),
            ("{rid}", resource),
            ("{id}", subscription),
            ("{attempt}", attempt),
            ("{replay}", replay["id"].as_str().expect("an id").to_owned()),
            ("{token}", token),
            ("{url}", document_url(1)),
            ("{account}", "acme".to_owned()),
        ];
        Estate { names, list, producer }
    }

    fn real(&self, path: &str) -> String {
        let path = match path.starts_with("/consumers/") {
            true => path.replace("{id}", &self.producer),
            false => path.to_owned(),
        };
        self.names.iter().fold(path, |path, (name, real)| path.replace(name, real))
    }

    fn named(&self, wanted: &str) -> &str {
        self.names.iter().find(|(name, _)| *name == wanted).map_or("", |(_, real)| real)
    }
}

/// What an operation takes, so that nothing but who asks is wrong with the request.
fn body_of(description: &Value, method: &str, path: &str) -> String {
    let operation = &description["paths"][path][method.to_lowercase()];
    let content = operation["requestBody"]["content"].as_object().and_then(|all| all.values().next());
    content.map_or_else(String::new, |content| content["example"].to_string())
}

#[tokio::test]
async fn whatever_another_account_has_is_not_there() {
    let (flare, acme, other) = two_accounts().await;
    let receiver = Receiver::answering(|_| Reply::Status(500)).await;
    let estate = Estate::of(acme, &receiver).await;
    let description = acme.get("/openapi.json").await.expect(200).json();
    let before = acme.get(&format!("{}/{}", estate.list, estate.named("{id}"))).await.expect(200).json();
    let default = flare.api().with(&tenant(flare.operator()).await);
    let mut tried = 0;
    for (method, path) in operations(&description) {
        let operators = path.starts_with("/accounts") || path.starts_with("/cluster/");
        if !path.contains('{') || operators {
            continue;
        }
        let (real, body) = (estate.real(&path), body_of(&description, &method, &path));
        for stranger in [other, default, flare.operator(), flare.operator().acting_for("other")] {
            let answer = ask(stranger, &method, &real, &body).await;
            let answer = answer.unwrap_or_else(|| panic!("{method} {path} goes on"));
            answer.refused(404, &[]);
        }
        tried += 1;
    }
    assert!(tried > 50, "{tried}");
    let explain = format!("/explain?document={}&subscription={}", document_url(1), estate.named("{id}"));
    other.get(&explain).await.refused(404, &[]);
    acme.get(&explain).await.expect(200);
    other.get("/accounts/acme").await.refused(403, &["operator"]);

    for (path, plural) in
        [("/resources", "resources"), ("/subscriptions", "subscriptions"), ("/consumers", "consumers")]
    {
        let listed = other.get(path).await.expect(200).json();
        assert_eq!((&listed["pagination"]["total"], &listed[plural]), (&json!(0), &json!([])), "{path}");
        assert_eq!(acme.get(path).await.expect(200).json()["pagination"]["total"], 1, "{path}");
    }
    let status = other.get("/status").await.expect(200).json();
    for count in ["resources", "subscriptions", "consumers", "documents", "tombstones"] {
        assert_eq!(status[count], 0, "{count}");
    }
    assert!(status.get("units").is_none() && status.get("rates").is_none(), "they are of all accounts");
    assert!(default.get("/status").await.expect(200).json()["units"]["total"].is_number());
    for path in ["/metrics", "/metrics/history"] {
        other.get(path).await.refused(403, &["default"]);
        default.get(path).await.expect(200);
    }
    let lines = format!("{{\"id\":\"{}\",\"delete\":true}}\n", document_url(1));
    let bulk = other.send("POST", "/documents", &[], lines).await.expect(200);
    assert!(String::from_utf8_lossy(&bulk.body).contains("no resource matches"), "{bulk:?}");

    let after = acme.get(&format!("{}/{}", estate.list, estate.named("{id}"))).await.expect(200).json();
    assert_eq!(before["updatedAt"], after["updatedAt"], "nothing was done to it");
    acme.get(&format!("/documents/{}", document_url(1))).await.expect(200);
    assert_eq!(acme.get("/tokens").await.expect(200).json()["pagination"]["total"], 2);
}

#[tokio::test]
async fn the_same_url_in_two_accounts_is_two_documents() {
    let (mut flare, acme, other) = two_accounts().await;
    let (one, two) = (Receiver::start().await, Receiver::start().await);
    for (api, receiver) in [(acme, &one), (other, &two)] {
        let resource = id(api, "/resources", &minimal_resource()).await;
        let draft = json!({"endpoint": {"url": receiver.url("/{id}")}});
        api.post(&format!("/resources/{resource}/subscriptions"), &draft).await.expect(201);
        api.post("/resources", &minimal_resource()).await.refused(409, &[&resource]);
    }
    assert_eq!(acme.put(&document_url(1), &json!({"rev": 7, "of": "acme"})).await, "created");
    assert_eq!(other.put(&document_url(1), &json!({"rev": 3, "of": "other"})).await, "created");
    let path = format!("/documents/{}", document_url(1));
    assert_eq!(acme.get(&path).await.expect(200).json()["content"]["of"], "acme");
    assert_eq!(other.get(&path).await.expect(200).json()["content"]["of"], "other");
    assert_eq!(one.wait_for(1).await[0].json()["document"]["of"], "acme");
    assert_eq!(two.wait_for(1).await[0].json()["document"]["of"], "other");
    let operator = flare.operator();
    operator.get(&path).await.refused(404, &[]);
    assert_eq!(operator.acting_for("other").get(&path).await.expect(200).json()["revision"], 3);
    assert_eq!(acme.remove(&document_url(1)).await, "deleted");
    other.get(&path).await.expect(200);
    assert_eq!(one.wait_for(2).await[1].action(), "delete");
    assert_eq!(two.count(), 1, "the other is told nothing");
    if store_is_durable() {
        flare.restart().await;
        let operator = flare.operator();
        assert_eq!(
            operator.acting_for("other").get(&path).await.expect(200).json()["content"]["of"],
            "other"
        );
        operator.acting_for("acme").get(&path).await.refused(404, &[]);
    }
}

#[tokio::test]
async fn an_account_is_made_changed_and_deleted_by_the_operator_alone() {
    let (flare, acme, _) = two_accounts().await;
    let operator = flare.operator();
    operator.post("/accounts", &json!({"name": "acme"})).await.refused(409, &["acme"]);
    operator.post("/accounts", &json!({"name": "default"})).await.refused(409, &["default"]);
    for (draft, words) in [
        (json!({"name": "Not A Name"}), "name"),
        (json!({"name": "x", "quotas": {"resources": -1}}), "resources"),
        (json!({"name": "x", "quotas": {"changesPerSecond": 0}}), "changesPerSecond"),
        (json!({"name": "x", "quotas": {"wishes": 3}}), "wishes"),
    ] {
        operator.post("/accounts", &draft).await.refused(400, &[words]);
    }
    let listed = operator.get("/accounts").await.expect(200).json();
    let names: Vec<&str> =
        listed["accounts"].as_array().unwrap().iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["default", "acme", "other"]);
    operator.get("/accounts/nobody").await.refused(404, &["nobody"]);
    operator.acting_for("nobody").get("/resources").await.refused(404, &["nobody"]);
    acme.acting_for("other").get("/resources").await.refused(403, &["Flare-Account"]);
    acme.acting_for("nobody").get("/resources").await.refused(403, &["Flare-Account"]);

    let resource = id(acme, "/resources", &minimal_resource()).await;
    operator.delete("/accounts/acme").await.refused(409, &["resources (1)"]);
    acme.delete(&format!("/resources/{resource}")).await.expect(204);
    operator.delete("/accounts/acme").await.expect(204);
    acme.get("/resources").await.refused(401, &[]);
    operator.get("/accounts/acme").await.refused(404, &[]);
    operator.delete("/accounts/acme").await.refused(404, &[]);
    operator.delete("/accounts/default").await.refused(409, &["default"]);
}

#[tokio::test]
async fn a_tail_shows_the_attempts_of_its_own_account() {
    let (flare, acme, other) = two_accounts().await;
    let receiver = Receiver::start().await;
    for api in [acme, other] {
        let resource = id(api, "/resources", &minimal_resource()).await;
        let draft = json!({"endpoint": {"url": receiver.url("/{id}")}});
        api.post(&format!("/resources/{resource}/subscriptions"), &draft).await.expect(201);
    }
    let operator = flare.operator().acting_for("other");
    let short = json!({"name": "short", "scopes": ["read"], "ttl": "2s"});
    let short = operator.post("/tokens", &short).await.expect(201).json();
    let short = flare.api().with(short["token"].as_str().expect("it is shown"));
    let tail = tokio::spawn(async move { short.send("GET", "/tail", &[], "").await.expect(200) });
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    acme.put(&document_url("of-acme"), &json!({"rev": 1})).await;
    other.put(&document_url("of-other"), &json!({"rev": 1})).await;
    receiver.wait_for(2).await;
    let told = tail.await.expect("it ends with its token");
    let told = String::from_utf8_lossy(&told.body).into_owned();
    assert!(told.contains("of-other") && !told.contains("of-acme"), "{told}");
}
