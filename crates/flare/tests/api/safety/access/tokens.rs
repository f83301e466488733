//! Tokens: made, kept as a hash, limited, revoked, expired, and not to be guessed.

use std::time::{Duration, Instant};

use serde_json::json;

use super::{id, tenant, token};
use crate::bridge::{page, poll_orders};
use crate::support::{Flare, OPERATOR, Receiver, Setup, document_url, minimal_resource, store_is_durable};

#[tokio::test]
async fn a_token_is_shown_once_and_refused_from_the_moment_it_is_revoked() {
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let mut flare = Setup::default().guarded().data(&data).start().await;
    let operator = flare.operator();
    let draft = json!({"name": "shop", "scopes": ["origin", "read"], "ttl": "2160h"});
    let answer = operator.post("/tokens", &draft).await.expect(201);
    let created = answer.json();
    let (id, text) = (created["id"].as_str().unwrap(), created["token"].as_str().unwrap());
    assert_eq!(answer.header("location"), format!("/tokens/{id}"));
    assert_eq!((&created["name"], &created["account"]), (&json!("shop"), &json!("default")));
    assert_eq!(created["scopes"], json!(["read", "origin"]));
    assert!(created["createdAt"].is_string() && created["expiresAt"].is_string());
    assert_eq!(created["lastUsedAt"], json!(null));
    assert!(text.starts_with("flare_") && text.len() == 44, "{text}");

    let shop = flare.api().with(text);
    shop.get("/resources").await.expect(200);
    let shown = operator.get(&format!("/tokens/{id}")).await.expect(200);
    assert!(!String::from_utf8_lossy(&shown.body).contains(text) && shown.json().get("token").is_none());
    assert!(shown.json()["lastUsedAt"].is_string());
    let list = operator.get("/tokens").await.expect(200);
    assert!(!String::from_utf8_lossy(&list.body).contains(text));
    assert_eq!(list.json()["pagination"]["total"], 1);
    assert_eq!(list.json()["tokens"][0]["id"], id);

    if store_is_durable() {
        flare.restart().await;
        flare.api().with(text).get("/resources").await.expect(200);
        for entry in std::fs::read_dir(&data).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            let holds = |text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
            assert!(!holds(text) && !holds(OPERATOR), "{} has it", path.display());
        }
    }
    let operator = flare.operator();
    operator.delete(&format!("/tokens/{id}")).await.expect(204);
    flare.api().with(text).get("/resources").await.refused(401, &["revoked"]);
    operator.delete(&format!("/tokens/{id}")).await.refused(404, &[]);
    operator.get(&format!("/tokens/{id}")).await.refused(404, &[]);
    if store_is_durable() {
        flare.restart().await;
        flare.api().with(text).get("/resources").await.refused(401, &[]);
    }
    assert_eq!(flare.count_logged(text), 0);
}

#[tokio::test]
async fn a_token_ends_with_its_time_and_its_streams_with_it() {
    let flare = Setup::default().guarded().start().await;
    let operator = flare.operator();
    let short = token(operator, json!({"name": "short", "scopes": ["read"], "ttl": "1500ms"})).await;
    let reader = flare.api().with(&short);
    let tail = reader.send("GET", "/tail", &[], "");
    let began = Instant::now();
    let told = tokio::time::timeout(Duration::from_secs(20), tail).await.expect("it is ended").expect(200);
    assert!(String::from_utf8_lossy(&told.body).starts_with("{\"watching\":true}"));
    assert!(began.elapsed() >= Duration::from_secs(1));
    flare.api().with(&short).get("/").await.refused(401, &["expired"]);

    let created =
        operator.post("/tokens", &json!({"name": "long", "scopes": ["read"]})).await.expect(201).json();
    assert_eq!(created["expiresAt"], json!(null));
    let long = flare.api().with(created["token"].as_str().unwrap());
    let tail = tokio::spawn(async move { long.send("GET", "/tail", &[], "").await.expect(200) });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!tail.is_finished());
    operator.delete(&format!("/tokens/{}", created["id"].as_str().unwrap())).await.expect(204);
    tokio::time::timeout(Duration::from_secs(20), tail).await.expect("it is ended").unwrap();
}

#[tokio::test]
async fn what_is_wrong_with_a_draft_is_named() {
    let flare = Setup::default().guarded().start().await;
    let operator = flare.operator();
    for (draft, words) in [
        (json!({"scopes": ["read"]}), "name"),
        (json!({"name": "a", "scopes": []}), "scopes"),
        (json!({"name": "a", "scopes": ["operator"]}), "scopes"),
        (json!({"name": "a", "scopes": ["read"], "ttl": "0s"}), "ttl"),
        (json!({"name": "a", "scopes": ["read"], "colour": 1}), "colour"),
        (json!({"name": "a", "scopes": ["read"], "resources": ["res_nothing"]}), "resources"),
        (json!({"name": "a", "scopes": ["read"], "subscriptions": ["sub_nothing"]}), "subscriptions"),
        (json!({"name": "a", "scopes": ["admin"], "resources": ["res_nothing"]}), "admin"),
    ] {
        operator.post("/tokens", &draft).await.refused(400, &[words]);
    }
    let reader = token(operator, json!({"name": "r", "scopes": ["read", "origin", "subscribe"]})).await;
    let draft = json!({"name": "more", "scopes": ["admin"]});
    flare.api().with(&reader).post("/tokens", &draft).await.refused(403, &["`admin`"]);
}

#[tokio::test]
async fn a_token_of_one_subscription_sees_its_own_and_not_its_neighbours() {
    let flare = Setup::default().guarded().start().await;
    let (operator, receiver) = (flare.operator(), Receiver::start().await);
    let resource = id(operator, "/resources", &minimal_resource()).await;
    let other = json!({"endpoint": "http://origin.test/things/{id}", "change": {"field": "rev"}});
    let other = id(operator, "/resources", &other).await;
    let list = format!("/resources/{resource}/subscriptions");
    let to = |name: &str| json!({"endpoint": {"url": receiver.url(&format!("/{name}/{{id}}"))}});
    let (mine, theirs) = (id(operator, &list, &to("mine")).await, id(operator, &list, &to("theirs")).await);
    operator.put(&document_url(1), &json!({"rev": 1})).await;
    receiver.wait_for(2).await;

    let draft = json!({"name": "client", "scopes": ["read", "subscribe", "origin"], "subscriptions": [mine]});
    let client = flare.api().with(&token(operator, draft).await);
    let listed = client.get("/subscriptions").await.expect(200).json();
    assert_eq!(
        (listed["pagination"]["total"].as_u64(), listed["subscriptions"][0]["id"].as_str()),
        (Some(1), Some(mine.as_str()))
    );
    assert_eq!(client.get(&list).await.expect(200).json()["pagination"]["total"], 1);
    let resources = client.get("/resources").await.expect(200).json();
    assert_eq!(
        (resources["pagination"]["total"].as_u64(), resources["resources"][0]["id"].as_str()),
        (Some(1), Some(resource.as_str()))
    );
    client.get(&format!("{list}/{mine}/status")).await.expect(200);
    client.post(&format!("{list}/{mine}/replay"), &json!({"scope": "all"})).await.expect(202);
    for path in
        [format!("{list}/{theirs}"), format!("{list}/{theirs}/attempts"), format!("/subscriptions/{theirs}")]
    {
        client.get(&path).await.refused(404, &[&theirs]);
    }
    client.post(&format!("{list}/{theirs}/pause"), &json!({})).await.refused(404, &[]);
    client.get(&format!("/resources/{other}")).await.refused(404, &[]);
    client.post(&list, &to("more")).await.refused(403, &["limited"]);
    client.get(&format!("/documents/{}", document_url(1))).await.refused(404, &[]);
    let put = client.send("PUT", &format!("/documents/{}", document_url(1)), &[], "{\"rev\":2}").await;
    put.refused(404, &[]);
    let explain = |id: &str| format!("/explain?document={}&subscription={id}", document_url(1));
    client.get(&explain(&mine)).await.expect(200);
    client.get(&explain(&theirs)).await.refused(404, &[]);
    client.get("/metrics").await.refused(403, &["default"]);
    client.get("/audit").await.refused(403, &["limited"]);
    assert_eq!(client.get("/tokens").await.expect(200).json()["pagination"]["total"], 1);
    let status = client.get("/status").await.expect(200).json();
    assert_eq!((&status["subscriptions"], &status["documents"]), (&json!(1), &json!(0)));

    let draft = json!({"name": "one", "scopes": ["read", "origin", "subscribe"], "resources": [resource]});
    let one = flare.api().with(&token(operator, draft).await);
    assert_eq!(one.get("/subscriptions").await.expect(200).json()["pagination"]["total"], 2);
    assert_eq!(one.put(&document_url(1), &json!({"rev": 3})).await, "updated");
    one.get(&format!("/resources/{other}")).await.refused(404, &[]);
    let put = one.send("PUT", "/documents/http://origin.test/things/1", &[], "{\"rev\":1}").await;
    put.refused(404, &[]);
}

#[tokio::test]
async fn a_token_may_be_for_a_consumer_or_for_one_of_its_producers() {
    let flare = Setup::default().guarded().start().await;
    let (operator, origin) = (flare.operator(), Receiver::start().await);
    origin.answer(|_| page(None, &json!({"orders": []})));
    let consumer = poll_orders(operator, &origin, json!({}), json!({})).await;
    let list = format!("{consumer}/producers");
    let to = |name: &str| json!({"target": {"type": "http", "url": origin.url(&format!("/{name}/{{id}}"))}});
    let (mine, theirs) = (id(operator, &list, &to("mine")).await, id(operator, &list, &to("theirs")).await);

    let draft = json!({"name": "client", "scopes": ["read"], "subscriptions": [mine]});
    let client = flare.api().with(&token(operator, draft).await);
    client.get(&format!("{list}/{mine}/status")).await.expect(200);
    client.get(&format!("{list}/{theirs}")).await.refused(404, &[&theirs]);
    assert_eq!(client.get(&list).await.expect(200).json()["pagination"]["total"], 1);
    for what in ["dead-letters", "status"] {
        // Of the consumer: they tell of what its other producers pass on.
        client.get(&format!("{consumer}/{what}")).await.refused(403, &["limited", "producers"]);
    }

    let form = format!("token={}", client.token().expect("it has one"));
    let own = [("sec-fetch-site", "same-origin")];
    let cookie = flare.api().send("POST", "/ui/sign-in", &own, form).await.expect(303);
    let cookie = cookie.header("set-cookie").split(';').next().unwrap_or_default().to_owned();
    for (page, status) in [("", 403), ("/producers", 200)] {
        let path = format!("/ui{consumer}{page}");
        flare.api().send("GET", &path, &[("cookie", &cookie)], "").await.expect(status);
    }

    let whole = consumer.rsplit('/').next().expect("its id");
    let draft = json!({"name": "team", "scopes": ["read"], "resources": [whole]});
    let team = flare.api().with(&token(operator, draft).await);
    assert_eq!(team.get(&list).await.expect(200).json()["pagination"]["total"], 2);
    team.get(&format!("{consumer}/dead-letters")).await.expect(200);
    team.get("/audit").await.refused(403, &["limited"]);
    let unknown = json!({"name": "none", "scopes": ["read"], "resources": ["con_none"]});
    operator.post("/tokens", &unknown).await.refused(400, &["resources", "no consumer con_none"]);
}

#[tokio::test]
async fn guessing_is_slowed_and_a_right_token_is_not() {
    let setup = Setup::default().guarded().with("FLARE_AUTH_GUESSES_PER_PEER", "5");
    let flare = setup.start().await;
    let good = flare.api().with(&tenant(flare.operator()).await);
    let guess = flare.api().with("flare_0123456789abcdefghjkmnpqrstvwxyz000000");
    let began = Instant::now();
    let guesses: Vec<_> = (0..20)
        .map(|_| tokio::spawn(async move { guess.get("/resources").await.refused(401, &[]) }))
        .collect();
    for _ in 0..20 {
        let asked = Instant::now();
        good.get("/resources").await.expect(200);
        assert!(asked.elapsed() < Duration::from_millis(900), "nobody is locked out");
    }
    for guess in guesses {
        guess.await.unwrap();
    }
    // Ten are free, and the last of the others is answered after ten turns of a fifth of a second.
    assert!(began.elapsed() >= Duration::from_millis(1900), "{:?}", began.elapsed());
    let began = Instant::now();
    flare.api().get("/resources").await.refused(401, &["Bearer"]);
    assert!(began.elapsed() < Duration::from_millis(900), "who shows none guesses nothing");
}

#[tokio::test]
async fn a_node_that_nobody_could_enter_does_not_start_and_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let start = |pairs: &[(&str, &str)], addr: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_flare"));
        command.args(["start", "--addr", addr, "--data", "data"]).current_dir(directory.path()).env_clear();
        command.envs(pairs.iter().copied()).stdin(std::process::Stdio::null());
        let output = command.output().expect("the binary runs");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (code, said) = start(&[("FLARE_AUTH_MODE", "token")], "127.0.0.1:0");
    assert!(code != Some(0) && said.contains("FLARE_AUTH_OPERATOR_TOKEN"), "{code:?} {said}");
    let short = [("FLARE_AUTH_MODE", "token"), ("FLARE_AUTH_OPERATOR_TOKEN", "too-short-to-be-one")];
    let (code, said) = start(&short, "127.0.0.1:0");
    assert!(code == Some(3) && said.contains("auth.operator-token") && !said.contains("too-short"), "{said}");
    let (code, said) = start(&[], "0.0.0.0:0");
    assert!(code == Some(3) && said.contains("auth.mode") && said.contains("insecure"), "{said}");
}

#[tokio::test]
async fn a_store_from_before_there_were_accounts_is_that_of_default() {
    if !store_is_durable() {
        return;
    }
    let parent = tempfile::tempdir().unwrap();
    let data = parent.path().join("data");
    let mut flare: Flare = Setup::default().data(&data).start().await;
    let resource = id(flare.api(), "/resources", &minimal_resource()).await;
    flare.api().put(&document_url(1), &json!({"rev": 1})).await;
    flare.stop().await;
    let flare = Setup::default().guarded().data(&data).start().await;
    let own = flare.api().with(&tenant(flare.operator()).await);
    assert_eq!(own.get("/resources").await.expect(200).json()["resources"][0]["id"], resource.as_str());
    assert_eq!(own.put(&document_url(1), &json!({"rev": 1})).await, "unchanged");
    assert_eq!(own.get("/status").await.expect(200).json()["documents"], 1);
}
