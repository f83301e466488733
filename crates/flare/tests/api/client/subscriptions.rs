//! `/resources/:rid/subscriptions`: who is told, and how; created, read, changed, stopped, deleted.

use serde_json::{Value, json};

use crate::support::{Story, until};

const CLIENT: &str = "http://127.0.0.1:9/told";

fn simple() -> Value {
    json!({"endpoint": {"url": CLIENT}})
}

/// `simple()` with one more field, by a dotted path.
fn with(path: &str, value: Value) -> Value {
    let mut body = simple();
    let pointer = path.split('.').fold(&mut body, |at, name| &mut at[name]);
    *pointer = value;
    body
}

#[tokio::test]
async fn a_subscription_is_created_shown_listed_and_deleted() {
    let story = Story::begin().await;
    let api = story.api();
    let created = api.post(&story.subscriptions(), &simple()).await.expect(201);
    let mut subscription = created.json();
    assert!(subscription.as_object_mut().unwrap().remove("secret").is_some(), "it is shown here alone");
    let path = format!("{}/{}", story.subscriptions(), subscription["id"].as_str().unwrap());
    assert_eq!(created.header("location"), path);
    assert_eq!(subscription["resource"], story.resource.as_str());
    assert_eq!(subscription["status"], "active");
    for name in ["since", "createdAt", "updatedAt"] {
        assert!(subscription[name].as_str().unwrap().ends_with('Z'), "{name}");
    }
    assert_eq!(api.get(&path).await.expect(200).json(), subscription);
    let list = api.get(&story.subscriptions()).await.expect(200).json();
    assert_eq!(list["subscriptions"], json!([subscription]));
    assert_eq!(list["pagination"]["total"], 1);
    assert!(api.delete(&path).await.expect(204).body.is_empty());
    api.get(&path).await.refused(404, &[subscription["id"].as_str().unwrap()]);
    api.delete(&path).await.refused(404, &[]);
    assert_eq!(api.get(&story.subscriptions()).await.json()["pagination"]["total"], 0);
}

#[tokio::test]
async fn defaults_are_filled_in() {
    let story = Story::begin().await;
    let shown = story.api().post(&story.subscriptions(), &simple()).await.expect(201).json();
    assert_eq!(shown["endpoint"]["method"], "POST");
    assert_eq!(shown["content"], json!({"envelope": true, "document": true}));
    assert_eq!(
        (&shown["mode"], &shown["start"], &shown["shards"]),
        (&"active".into(), &"now".into(), &1.into())
    );
    let delivery = &shown["delivery"];
    assert_eq!((&delivery["timeout"], &delivery["concurrency"]), (&"15s".into(), &10.into()));
    assert_eq!(delivery["revision"], "last");
    let retry = &delivery["retry"];
    assert_eq!(
        (&retry["quantity"], &retry["ttl"], &retry["interval"]),
        (&50.into(), &"72h".into(), &"5s".into())
    );
}

#[tokio::test]
async fn the_example_of_the_contract_is_taken_but_for_what_comes_later() {
    let story = Story::begin().await;
    let body = json!({"endpoint": {"url": "http://api.company.com/wishlist/{id}", "method": "post",
            "headers": {"Authorization": ["Basic YWxhZGRpbjpvcGVuc2VzYW1l"]},
            "actions": {"delete": {"method": "delete"}}},
        "delivery": {"success": [200], "discard": [500], "timeout": "15s", "concurrency": 10,
            "rateLimit": {"quantity": 100, "interval": "1s"},
            "retry": {"quantity": 50, "ttl": "72h", "interval": "5s", "progression": "geometric", "ratio": 2, "maxInterval": "1h"},
            "revision": "last"},
        "content": {"envelope": true, "document": true},
        "data": {"service": "user", "id": "{id}"},
        "mode": "active", "start": "now", "shards": 1});
    let shown = story.api().post(&story.subscriptions(), &body).await.expect(201).json();
    for name in ["data", "content", "mode", "start", "shards"] {
        assert_eq!(shown[name], body[name], "{name}");
    }
    assert_eq!(shown["delivery"]["rateLimit"], body["delivery"]["rateLimit"]);
    assert_eq!(shown["endpoint"]["url"], body["endpoint"]["url"]);
}

#[tokio::test]
async fn wrong_settings_are_refused_by_field() {
    let story = Story::begin().await;
    for (path, value, word) in [
        ("endpoint", json!({}), "endpoint.url"),
        ("endpoint.url", json!("nonsense"), "endpoint.url"),
        ("endpoint.url", json!("http://h/{other}"), "{other}"),
        ("endpoint.url", json!("http://{id}/"), "host"),
        ("endpoint.url", json!("ftp://h/"), "endpoint.url"),
        ("endpoint.url", json!("http://u:p@h/"), "user info"),
        ("endpoint.url", json!("http://0.0.0.0/"), "unspecified"),
        ("endpoint.method", json!("HEAD"), "endpoint.method"),
        ("endpoint.colour", json!(1), "colour"),
        ("endpoint.actions.delete.url", json!("http://h/{x}"), "endpoint.actions.delete.url"),
        ("endpoint.actions.delete.method", json!("x"), "endpoint.actions.delete.method"),
        ("endpoint.actions.remove", json!({}), "remove"),
        ("endpoint.headers", json!({"Host": ["x"]}), "Host"),
        ("endpoint.headers", json!({"Content-Length": ["1"]}), "Content-Length"),
        ("endpoint.headers", json!({"Transfer-Encoding": ["chunked"]}), "Transfer-Encoding"),
        ("endpoint.headers", json!({"Flare-Action": ["x"]}), "Flare-Action"),
        ("endpoint.headers", json!({"webhook-id": ["x"]}), "webhook-id"),
        ("endpoint.headers", json!({"X": ["a\r\nb: c"]}), "X"),
        ("endpoint.headers", json!({"a b": ["x"]}), "a b"),
        ("delivery.success", json!([]), "delivery.success"),
        ("delivery.discard", json!([]), "delivery.discard"),
        ("delivery.success", json!([99]), "99"),
        ("delivery.discard", json!([600]), "600"),
        ("delivery.timeout", json!("0s"), "delivery.timeout"),
        ("delivery.timeout", json!("24h"), "delivery.timeout"),
        ("delivery.timeout", json!("soon"), "delivery.timeout"),
        ("delivery.concurrency", json!(0), "delivery.concurrency"),
        ("delivery.concurrency", json!(-1), "delivery.concurrency"),
        ("delivery.concurrency", json!(1_000_000), "delivery.concurrency"),
        ("delivery.rateLimit", json!({"quantity": 0, "interval": "1s"}), "quantity"),
        ("delivery.rateLimit", json!({"quantity": 1, "interval": "0s"}), "interval"),
        ("delivery.rateLimit", json!({"quantity": 1}), "interval"),
        ("delivery.retry", json!({"quantity": 0}), "quantity"),
        ("delivery.retry", json!({"ttl": "0s"}), "ttl"),
        ("delivery.retry", json!({"interval": "0s"}), "interval"),
        ("delivery.retry", json!({"interval": "2s", "maxInterval": "1s"}), "maxInterval"),
        ("delivery.retry", json!({"ratio": 0.5}), "ratio"),
        ("delivery.retry", json!({"progression": "wild"}), "progression"),
        ("delivery.retry", json!({"times": 3}), "times"),
        ("delivery.revision", json!("some"), "delivery.revision"),
        ("content", json!({"envelope": "yes"}), "content.envelope"),
        ("content", json!({"shape": 1}), "shape"),
        ("data", json!({"a": {"b": 1}}), "data"),
        ("data", json!({"a": [[1]]}), "data"),
        ("data", json!({"a": null}), "data"),
        ("data", json!({"a": "{other}"}), "{other}"),
        ("mode", json!("lazy"), "mode"),
        ("start", json!("yesterday"), "start"),
        ("shards", json!(0), "shards"),
        ("status", json!("active"), "status"),
        ("colour", json!("red"), "colour"),
    ] {
        let answer = story.api().post(&story.subscriptions(), &with(path, value)).await;
        answer.refused(400, &[word]);
    }
    let mut body = with("data", json!({"a": 1}));
    body["content"] = json!({"envelope": false});
    story.api().post(&story.subscriptions(), &body).await.refused(400, &["data", "envelope"]);
    assert_eq!(story.api().get(&story.subscriptions()).await.json()["pagination"]["total"], 0);
}

#[tokio::test]
async fn every_action_needs_a_url_of_its_own_or_inherited() {
    let story = Story::begin().await;
    let action = |name: &str| json!({"url": format!("http://h/{name}")});
    let mut body = json!({"endpoint": {"actions": {"create": action("c"), "update": action("u")}}});
    story.api().post(&story.subscriptions(), &body).await.refused(400, &["delete"]);
    body["endpoint"]["actions"]["delete"] = action("d");
    story.api().post(&story.subscriptions(), &body).await.expect(201);
}

#[tokio::test]
async fn the_same_url_for_the_same_action_is_a_conflict() {
    let story = Story::begin().await;
    let api = story.api();
    let first = api.post(&story.subscriptions(), &simple()).await.expect(201).json();
    let id = first["id"].as_str().unwrap();
    for url in [CLIENT, "HTTP://127.0.0.1:9/told/"] {
        api.post(&story.subscriptions(), &json!({"endpoint": {"url": url}})).await.refused(409, &[id]);
    }
    let mut partly = json!({"endpoint": {"url": "http://127.0.0.1:9/other"}});
    partly["endpoint"]["actions"] = json!({"delete": {"url": CLIENT}});
    api.post(&story.subscriptions(), &partly).await.refused(409, &[id]);
    // Two actions of one subscription may share a url, and another resource's are its own.
    let other = json!({"endpoint": "http://origin.test/things/{id}", "change": {"field": "rev"}});
    let other = api.post("/resources", &other).await.expect(201).json()["id"].as_str().unwrap().to_owned();
    api.post(&format!("/resources/{other}/subscriptions"), &simple()).await.expect(201);
    // A patch is no way around it.
    let second = story.subscribe(json!({"endpoint": {"url": "http://127.0.0.1:9/second"}})).await;
    api.patch(&second, &simple()).await.refused(409, &[id]);
    api.delete(&format!("{}/{id}", story.subscriptions())).await.expect(204);
    api.patch(&second, &simple()).await.expect(200);
}

#[tokio::test]
async fn a_patch_merges_and_null_goes_back_to_the_default() {
    let story = Story::begin().await;
    let api = story.api();
    let mut body = with(
        "delivery",
        json!({"timeout": "3s", "concurrency": 4, "retry": {"quantity": 7, "interval": "1s"}}),
    );
    body["data"] = json!({"a": 1, "b": 2});
    body["endpoint"]["headers"] = json!({"X-A": ["1"]});
    let path = story.subscribe(body).await;
    let before = api.get(&path).await.json();
    let patch = json!({
        "delivery": {"timeout": "5s", "concurrency": null, "retry": {"quantity": 9}},
        "data": {"b": null, "c": "{id}"},
        "endpoint": {"headers": {"X-B": ["2"]}},
    });
    let patched = api.patch(&path, &patch).await.expect(200).json();
    assert_eq!(patched["delivery"]["timeout"], "5s");
    assert_eq!(patched["delivery"]["concurrency"], 10, "null is the default again");
    assert_eq!(
        (&patched["delivery"]["retry"]["quantity"], &patched["delivery"]["retry"]["interval"]),
        (&9.into(), &"1s".into())
    );
    assert_eq!(patched["data"], json!({"a": 1, "c": "{id}"}));
    assert_eq!(patched["endpoint"]["headers"], json!({"X-A": ["1"], "X-B": ["2"]}));
    assert_eq!((&patched["id"], &patched["createdAt"]), (&before["id"], &before["createdAt"]));
    assert_eq!(api.get(&path).await.json(), patched);
    let emptied = api.patch(&path, &json!({})).await.expect(200).json();
    assert_eq!(emptied["data"], patched["data"], "an empty patch changes nothing");
}

#[tokio::test]
async fn a_default_that_depends_on_another_value_follows_it() {
    let story = Story::begin().await;
    let path = story.subscribe(with("delivery", json!({"retry": {"quantity": 3}}))).await;
    let patched = story
        .api()
        .patch(&path, &json!({"delivery": {"retry": {"interval": "2h"}}}))
        .await
        .expect(200)
        .json();
    assert_eq!(patched["delivery"]["retry"]["interval"], "2h");
    assert_eq!(patched["delivery"]["retry"]["quantity"], 3);
}

#[tokio::test]
async fn a_wrong_patch_changes_nothing() {
    let story = Story::begin().await;
    let path = story.subscribe(simple()).await;
    let before = story.api().get(&path).await.json();
    for (patch, word) in [
        (json!({"start": "beginning"}), "start"),
        (json!({"start": null}), "start"),
        (json!({"resource": "x"}), "resource"),
        (json!({"id": "x"}), "id"),
        (json!({"status": "paused"}), "status"),
        (json!({"endpoint": {"url": null}}), "endpoint.url"),
        (json!({"endpoint": null}), "endpoint.url"),
        (json!({"endpoint": {"url": "http://h/{x}"}}), "{x}"),
        (json!({"delivery": {"success": []}}), "delivery.success"),
        (json!({"delivery": {"timeout": 7}}), "delivery.timeout"),
        (json!({"filter": "true &&"}), "filter: line 1, column 8"),
        (json!([]), "object"),
        (json!("x"), "object"),
        (json!({"colour": 1}), "colour"),
    ] {
        story.api().patch(&path, &patch).await.refused(400, &[word]);
    }
    assert_eq!(story.api().get(&path).await.json(), before);
}

#[tokio::test]
async fn pause_and_resume_are_safe_to_repeat() {
    let story = Story::begin().await;
    let path = story.subscribe(simple()).await;
    let first = story.command(&path, "pause").await.expect(200).json();
    assert_eq!(first["status"], "paused");
    assert_eq!(story.command(&path, "pause").await.expect(200).json(), first);
    assert_eq!(story.api().get(&path).await.json(), first);
    assert_eq!(story.status(&path).await["since"], first["since"]);
    for _ in 0..2 {
        assert_eq!(story.command(&path, "resume").await.expect(200).json()["status"], "active");
    }
}

#[tokio::test]
async fn entities_that_are_not_there_are_not_found() {
    let story = Story::begin().await;
    let api = story.api();
    let path = story.subscribe(simple()).await;
    let id = path.rsplit('/').next().unwrap();
    let other = json!({"endpoint": "http://origin.test/things/{id}", "change": {"field": "rev"}});
    let other = api.post("/resources", &other).await.json()["id"].as_str().unwrap().to_owned();
    let bases = [
        format!("{}/none", story.subscriptions()),
        format!("/resources/none/subscriptions/{id}"),
        format!("/resources/{other}/subscriptions/{id}"),
    ];
    for base in &bases {
        api.get(base).await.refused(404, &[]);
        api.delete(base).await.refused(404, &[]);
        api.patch(base, &json!({})).await.refused(404, &[]);
        for tail in ["status", "dead-letters", "replays/rpl_1"] {
            api.get(&format!("{base}/{tail}")).await.refused(404, &[]);
        }
        for tail in ["pause", "resume", "replay"] {
            story.command(base, tail).await.refused(404, &[]);
        }
    }
    api.get("/resources/none/subscriptions").await.refused(404, &["none"]);
    api.post("/resources/none/subscriptions", &simple()).await.refused(404, &["none"]);
    api.get(&path).await.expect(200);
}

#[tokio::test]
async fn the_status_has_the_documented_shape() {
    let story = Story::begin().await;
    let path = story.subscribe_simply(json!({})).await;
    story.put(1, 1).await;
    let status = until("it was delivered", || async {
        let status = story.status(&path).await;
        (status["delivered"] == 1).then_some(status)
    })
    .await;
    assert_eq!(status["status"], "active");
    assert!(status["since"].is_string() && status["node"].is_string());
    assert!(status["lastSuccessAt"].is_string() && status["lastFailure"].is_null());
    for name in ["cursor", "head", "lagging", "waiting", "inFlight", "deadLetters", "held"] {
        assert!(status["feed"][name].is_u64(), "{name}: {status}");
    }
    for name in ["delivered", "discarded", "failed"] {
        assert!(status[name].is_u64(), "{name}: {status}");
    }
    let settled = story.settled(&path).await;
    assert_eq!(settled["feed"]["cursor"], settled["feed"]["head"]);
}
