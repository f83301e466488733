//! `/resources`: what is tracked.

use serde_json::{Value, json};

use crate::support::{Answer, Flare, Story, document_url, minimal_resource};

async fn create(flare: &Flare, endpoint: &str) -> Answer {
    flare.api().post("/resources", &json!({"endpoint": endpoint, "change": {"field": "rev"}})).await
}

#[tokio::test]
async fn a_resource_is_created_shown_listed_and_deleted() {
    let flare = Flare::start().await;
    let api = flare.api();
    let change = json!({"field": "updatedAt", "format": "2006-01-02T15:04:05Z07:00"});
    let body = json!({"endpoint": "http://api.company.com/users/{id}", "change": change});
    let created = api.post("/resources", &body).await.expect(201);
    let resource = created.json();
    let path = format!("/resources/{}", resource["id"].as_str().unwrap());
    assert_eq!(created.header("location"), path);
    assert_eq!((&resource["endpoint"], &resource["change"]), (&body["endpoint"], &change));
    assert_eq!(resource["lanes"], 8);
    assert!(resource["createdAt"].as_str().unwrap().ends_with('Z'));
    assert_eq!(api.get(&path).await.expect(200).json(), resource);
    assert_eq!(api.get("/resources").await.expect(200).json()["resources"], json!([resource]));
    let deleted = api.delete(&path).await.expect(204);
    assert!(deleted.body.is_empty());
    api.get(&path).await.refused(404, &["no resource"]);
    api.delete(&path).await.refused(404, &["no resource"]);
    assert_eq!(api.get("/resources").await.json()["pagination"]["total"], 0);
}

#[tokio::test]
async fn an_endpoint_is_normalised() {
    let flare = Flare::start().await;
    for (given, kept) in [
        ("HTTP://API.Company.com:80/users/{ id }/", "http://api.company.com/users/{id}"),
        ("https://api.company.com:443/{*}", "https://api.company.com/{*}"),
        ("https://api.company.com:8443/{a b}/{é}", "https://api.company.com:8443/{a b}/{é}"),
        ("http://[::1]:8080/{id}", "http://[::1]:8080/{id}"),
    ] {
        assert_eq!(create(&flare, given).await.expect(201).json()["endpoint"], kept);
    }
}

#[tokio::test]
async fn a_wrong_endpoint_is_refused_with_the_reason() {
    let flare = Flare::start().await;
    for (endpoint, word) in [
        ("", "http://"),
        ("users/{id}", "http://"),
        ("ftp://h/{id}", "http://"),
        ("http:///{id}", "host"),
        ("http://h/users", "wildcard"),
        ("http://{id}/users", "host"),
        ("http://h/{id}/{id}", "more than once"),
        ("http://h/{ id}/{id }", "more than once"),
        ("http://h/{revision}", "reserved"),
        ("http://h/{}", "without a name"),
        ("http://h/a{id}", "whole segment"),
        ("http://h/{id", "brace"),
        ("http://u@h/{id}", "user info"),
        ("http://h/{id}?a=b", "query"),
        ("http://h/{id}#a", "fragment"),
        ("http://h/../{id}", ".."),
        ("http://h//{id}", "empty segment"),
        ("http://h:99999/{id}", "port"),
    ] {
        create(&flare, endpoint).await.refused(400, &["endpoint", word]);
    }
}

#[tokio::test]
async fn wrong_bodies_are_refused_by_field() {
    let flare = Flare::start().await;
    let good = minimal_resource();
    let with = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body
    };
    for (body, word) in [
        (json!({}), "endpoint"),
        (json!([]), "expected"),
        (json!({"endpoint": "http://h/{id}"}), "change"),
        (with("change", json!({})), "field"),
        (with("change", json!({"field": ""})), "change"),
        (with("change", json!({"field": "a..b"})), "a..b"),
        (with("change", json!({"field": "a", "form": "x"})), "form"),
        (with("change", json!({"field": "a", "format": "no verbs"})), "format"),
        (with("endpoint", json!(7)), "endpoint"),
        (with("lanes", json!(0)), "lanes"),
        (with("lanes", json!(257)), "lanes"),
        (with("lanes", json!("8")), "lanes"),
        (with("colour", json!("red")), "colour"),
    ] {
        flare.api().post("/resources", &body).await.refused(400, &[word]);
    }
    for body in ["", "{", "nonsense", r#"{"endpoint":"http://h/{id}","change":{"field":"rev"}} x"#] {
        flare.api().send("POST", "/resources", &[], body).await.refused(400, &[]);
    }
    assert_eq!(flare.api().get("/resources").await.json()["pagination"]["total"], 0);
}

#[tokio::test]
async fn the_same_shape_is_a_conflict_that_names_the_other() {
    let flare = Flare::start().await;
    let first = create(&flare, "http://h/users/{id}").await.expect(201).json();
    let id = first["id"].as_str().unwrap();
    for same in ["http://h/users/{id}", "http://h/users/{other}", "HTTP://H:80/users/{x}/"] {
        create(&flare, same).await.refused(409, &[id]);
    }
    for other in
        ["https://h/users/{id}", "http://h:81/users/{id}", "http://h/{a}/{b}", "http://h/users/me/{x}"]
    {
        create(&flare, other).await.expect(201);
    }
    flare.api().delete(&format!("/resources/{id}")).await.expect(204);
    create(&flare, "http://h/users/{id}").await.expect(201);
}

#[tokio::test]
async fn the_most_specific_resource_wins() {
    let story = Story::begin().await;
    let api = story.api();
    let other = json!({"endpoint": "http://origin.test/{kind}/me", "change": {"field": "version"}});
    api.post("/resources", &other).await.expect(201);
    // Literal before wildcard, left to right: /users/{id} wins over /{kind}/me.
    assert_eq!(story.put("me", 1).await, "created");
    assert_eq!(api.put("http://origin.test/things/me", &json!({"version": 1})).await, "created");
    api.send("PUT", "/documents/http://origin.test/things/me", &[], r#"{"rev":2}"#)
        .await
        .refused(400, &["version"]);
}

#[tokio::test]
async fn a_resource_that_would_capture_documents_of_another_is_a_conflict() {
    let story = Story::begin().await;
    let api = story.api();
    let narrow = json!({"endpoint": "http://origin.test/users/{id}/{x}", "change": {"field": "rev"}});
    api.post("/resources", &narrow).await.expect(201);
    api.put("http://origin.test/users/me/1", &json!({"rev": 1})).await;
    let capture = json!({"endpoint": "http://origin.test/users/me/{x}", "change": {"field": "rev"}});
    api.post("/resources", &capture).await.refused(409, &["http://origin.test/users/me/1"]);
    let harmless = json!({"endpoint": "http://origin.test/users/you/{x}", "change": {"field": "rev"}});
    api.post("/resources", &harmless).await.expect(201);
}

#[tokio::test]
async fn documents_that_were_deleted_first_are_in_no_new_resources_way() {
    let flare = Flare::start().await;
    let api = flare.api();
    create(&flare, "http://origin.test/users/{id}/{x}").await.expect(201);
    let mine = "http://origin.test/users/me/1";
    api.put(mine, &json!({"rev": 5})).await;
    create(&flare, "http://origin.test/users/me/{x}").await.refused(409, &[mine, "delete them first"]);
    assert_eq!(api.remove(mine).await, "deleted");
    let created = create(&flare, "http://origin.test/users/me/{x}").await.expect(201).json();
    assert_eq!(api.put(mine, &json!({"rev": 6})).await, "created");
    api.delete(&format!("/resources/{}", created["id"].as_str().unwrap())).await.expect(204);
    // It is its former resource's again, which knows of the delete.
    assert_eq!(api.put(mine, &json!({"rev": 5})).await, "unchanged");
    assert_eq!(api.put(mine, &json!({"rev": 7})).await, "created");
}

#[tokio::test]
async fn documents_accepted_while_a_resource_takes_their_urls_are_found() {
    let flare = Flare::start().await;
    let api = flare.api();
    create(&flare, "http://origin.test/{kind}/{group}/{x}").await.expect(201);
    for round in 0..30 {
        let mut puts = tokio::task::JoinSet::new();
        for number in 0..4 {
            let path = format!("/documents/http://origin.test/users/g{round}/{number}");
            puts.spawn(async move { (api.send("PUT", &path, &[], r#"{"rev":1}"#).await.status, path) });
        }
        create(&flare, &format!("http://origin.test/users/g{round}/{{x}}")).await;
        for (status, path) in puts.join_all().await {
            assert_eq!(status, 202);
            api.get(&path).await.expect(200);
        }
    }
}

#[tokio::test]
async fn a_resource_with_subscriptions_cannot_be_deleted() {
    let story = Story::begin().await;
    let subscription = story.subscribe_simply(json!({})).await;
    let path = format!("/resources/{}", story.resource);
    story.api().delete(&path).await.refused(409, &["subscription"]);
    story.api().delete(&subscription).await.expect(204);
    story.api().delete(&path).await.expect(204);
}

#[tokio::test]
async fn documents_go_with_their_resource() {
    let story = Story::begin().await;
    story.put(1, 5).await;
    story.api().delete(&format!("/resources/{}", story.resource)).await.expect(204);
    story.api().get(&format!("/documents/{}", document_url(1))).await.expect(404);
    story
        .api()
        .send("PUT", &format!("/documents/{}", document_url(1)), &[], r#"{"rev":9}"#)
        .await
        .refused(404, &[]);
    story.api().post("/resources", &minimal_resource()).await.expect(201);
    story.api().get(&format!("/documents/{}", document_url(1))).await.expect(404);
    assert_eq!(story.put(1, 1).await, "created", "nothing is left of the old one");
}

#[tokio::test]
async fn a_resource_cannot_be_updated() {
    let story = Story::begin().await;
    for method in ["PUT", "PATCH", "POST"] {
        let path = format!("/resources/{}", story.resource);
        let answer = story.api().send(method, &path, &[], minimal_resource().to_string()).await;
        let answer = answer.refused(405, &[method]);
        let allow = answer.header("allow");
        assert!(allow.contains("GET") && allow.contains("DELETE"), "{allow}");
    }
}
