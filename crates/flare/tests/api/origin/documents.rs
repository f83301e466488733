//! `/documents`: what origins say, in every spelling, and what becomes of it.

use serde_json::json;

use crate::support::{Answer, Api, Flare, Story, document_url};

async fn put(api: Api, path: &str, body: &str) -> Answer {
    api.send("PUT", &format!("/documents/{path}"), &[], body.to_owned()).await
}

async fn delete_at(api: Api, id: &str, revision: &str) -> Answer {
    let path = format!("/documents/{}", document_url(id));
    api.send("DELETE", &path, &[("Flare-Revision", revision)], "").await
}

#[tokio::test]
async fn every_outcome_is_said() {
    let story = Story::begin().await;
    for (revision, outcome) in [(5, "created"), (5, "unchanged"), (4, "stale"), (6, "updated")] {
        assert_eq!(story.put(1, revision).await, outcome, "{revision}");
    }
    assert_eq!(story.remove(1).await, "deleted");
    assert_eq!(story.remove(1).await, "absent");
    assert_eq!(story.remove("never").await, "absent");
    assert_eq!(story.put("never", -5).await, "created", "a delete without a revision leaves nothing behind");
}

#[tokio::test]
async fn an_equal_revision_is_unchanged_whatever_its_content() {
    let story = Story::begin().await;
    let path = document_url(1);
    put(story.api(), &path, r#"{"rev":1,"name":"first"}"#).await.expect(202);
    let answer = put(story.api(), &path, r#"{"rev":1,"name":"second"}"#).await.expect(202);
    assert_eq!(answer.header("flare-outcome"), "unchanged");
    let shown = story.api().get(&format!("/documents/{path}")).await.expect(200).json();
    assert_eq!(shown["content"]["name"], "first");
}

#[tokio::test]
async fn a_tombstone_remembers_its_revision() {
    let story = Story::begin().await;
    story.put(1, 10).await;
    story.remove(1).await;
    assert_eq!(story.put(1, 9).await, "stale");
    assert_eq!(story.put(1, 10).await, "unchanged");
    assert_eq!(story.put(1, 11).await, "created");
}

#[tokio::test]
async fn a_delete_may_carry_its_revision() {
    let story = Story::begin().await;
    let api = story.api();
    let outcome = |answer: Answer| answer.expect(202).header("flare-outcome").to_owned();
    story.put("a", 5).await;
    assert_eq!(outcome(delete_at(api, "a", "4").await), "stale");
    assert_eq!(outcome(delete_at(api, "a", "5").await), "deleted");
    story.put("b", 5).await;
    assert_eq!(outcome(delete_at(api, "b", "9").await), "deleted");
    assert_eq!(story.put("b", 9).await, "unchanged");
    assert_eq!(outcome(delete_at(api, "b", "8").await), "stale");
    assert_eq!(outcome(delete_at(api, "c", "7").await), "absent");
    assert_eq!(story.put("c", 7).await, "unchanged", "it left a tombstone all the same");
    assert_eq!(story.put("c", 8).await, "created");
    delete_at(api, "c", "soon").await.refused(400, &["soon"]);
    delete_at(api, "c", "1.5").await.refused(400, &["1.5"]);
}

#[tokio::test]
async fn a_document_is_shown_as_the_origin_wrote_it() {
    let story = Story::begin().await;
    let odd = "{ \"rev\" : 3 ,\"n\":1.00, \"big\": 123456789012345678901234567890 }";
    put(story.api(), &document_url(1), odd).await.expect(202);
    let answer = story.api().get(&format!("/documents/{}", document_url(1))).await.expect(200);
    assert!(std::str::from_utf8(&answer.body).unwrap().contains(odd));
    let shown = answer.json();
    assert_eq!((&shown["id"], &shown["revision"]), (&document_url(1).into(), &3.into()));
    assert!(shown["updatedAt"].as_str().unwrap().ends_with('Z'));
    assert_eq!(shown.as_object().unwrap().len(), 4, "id, revision, updatedAt, content");
    story.remove(1).await;
    for path in [document_url(1), document_url("never"), "http://elsewhere.test/x".into()] {
        story.api().get(&format!("/documents/{path}")).await.refused(404, &[path.as_str()]);
    }
}

#[tokio::test]
async fn all_spellings_of_a_url_are_one_document() {
    let story = Story::begin().await;
    let spellings = [
        "http://origin.test/users/a%20b",
        "http:/origin.test/users/a%20b",
        "HTTP://ORIGIN.test:80/users/a%20b/",
        "http%3A%2F%2Forigin.test%2Fusers%2Fa%2520b",
        "http%3a%2f%2forigin.test%2fusers%2fa%2520b",
        "http:%2F%2Forigin.test%2Fusers%2Fa%2520b",
        "http://origin.test/users/%61%20b",
    ];
    for (revision, spelling) in spellings.iter().enumerate() {
        let answer = put(story.api(), spelling, &json!({"rev": revision}).to_string()).await.expect(202);
        let outcome = if revision == 0 { "created" } else { "updated" };
        assert_eq!(answer.header("flare-outcome"), outcome, "{spelling}");
        let shown = story.api().get(&format!("/documents/{spelling}")).await.expect(200).json();
        assert_eq!(
            (&shown["id"], &shown["revision"]),
            (&spellings[0].into(), &revision.into()),
            "{spelling}"
        );
    }
}

#[tokio::test]
async fn an_encoded_slash_inside_a_segment_stays_what_it_is() {
    let story = Story::begin().await;
    put(story.api(), "http://origin.test/users/a%2Fb", r#"{"rev":1}"#).await.expect(202);
    put(story.api(), "http://origin.test/users/a/b", r#"{"rev":1}"#).await.refused(404, &["no resource"]);
    let shown = story.api().get("/documents/http://origin.test/users/a%2fb").await.expect(200).json();
    assert_eq!(shown["id"], "http://origin.test/users/a%2Fb");
}

#[tokio::test]
async fn a_port_that_is_not_the_default_is_part_of_the_url() {
    let flare = Flare::start().await;
    let api = flare.api();
    let resource = json!({"endpoint": "https://origin.test:8443/{id}", "change": {"field": "rev"}});
    api.post("/resources", &resource).await.expect(201);
    put(api, "https://origin.test:8443/1", r#"{"rev":1}"#).await.expect(202);
    put(api, "https://origin.test/1", r#"{"rev":1}"#).await.refused(404, &[]);
    put(api, "http://origin.test:8443/1", r#"{"rev":1}"#).await.refused(404, &[]);
}

#[tokio::test]
async fn urls_that_are_no_documents_are_refused() {
    let story = Story::begin().await;
    for (url, status, word) in [
        ("http://origin.test/users/1?x=1", 400, "query"),
        ("http://origin.test/users/1?", 400, "query"),
        ("http%3A%2F%2Forigin.test%2Fusers%2F1%3Fx", 400, "query"),
        ("http://origin.test/users/../1", 400, ".."),
        ("http://origin.test/users/%2e%2E", 400, "dot segment"),
        ("http://origin.test/users/./1", 400, "dot segment"),
        ("http://u:p@origin.test/users/1", 400, "user info"),
        ("ftp://origin.test/users/1", 400, "http://"),
        ("origin.test/users/1", 400, "http://"),
        ("http://origin.test/users//1", 400, "empty segment"),
        ("http://origin.test/users/%zz", 400, "%zz"),
        ("http://origin.test/users", 404, "no resource"),
        ("http://origin.test/users/1/2", 404, "no resource"),
        ("http://other.test/users/1", 404, "no resource"),
    ] {
        for method in ["PUT", "DELETE"] {
            let answer = story.api().send(method, &format!("/documents/{url}"), &[], r#"{"rev":1}"#).await;
            answer.refused(status, &[word]);
        }
    }
}

#[tokio::test]
async fn a_document_without_a_readable_revision_is_refused_by_name() {
    let flare = Flare::start().await;
    let api = flare.api();
    let change = json!({"field": "meta.at", "format": "2006-01-02"});
    api.post("/resources", &json!({"endpoint": "http://o.test/{id}", "change": change})).await.expect(201);
    for (body, words) in [
        (r#"{"meta":{"at":"yesterday"}}"#, ["meta.at", "yesterday", "2006-01-02"]),
        (r#"{"meta":{"at":"2026-13-01"}}"#, ["meta.at", "2026-13-01", "2006-01-02"]),
        (r#"{"meta":{"at":1.5}}"#, ["meta.at", "1.5", "2006-01-02"]),
        (r#"{"meta":{"at":9223372036854775808}}"#, ["meta.at", "9223372036854775808", "2006-01-02"]),
        (r#"{"meta":{"at":null}}"#, ["meta.at", "null", "2006-01-02"]),
        (r#"{"meta":{"at":true}}"#, ["meta.at", "true", "2006-01-02"]),
        (r#"{"meta":{}}"#, ["meta.at", "no field", ""]),
        (r#"{"meta.at":"2026-01-01"}"#, ["meta.at", "no field", ""]),
    ] {
        put(api, "http://o.test/1", body).await.refused(400, &words);
    }
    assert_eq!(put(api, "http://o.test/1", r#"{"meta":{"at":"2026-01-01"}}"#).await.status, 202);
}

#[tokio::test]
async fn only_json_objects_are_documents_whatever_the_content_type_says() {
    let story = Story::begin().await;
    let deep = format!(r#"{{"rev":1,"x":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
    for body in
        ["", "[]", "7", "\"x\"", "null", "{", r#"{"rev":1} x"#, r#"{"rev":1}{"rev":2}"#, "\u{feff}{}", &deep]
    {
        put(story.api(), &document_url(1), body).await.refused(400, &["document"]);
    }
    let path = format!("/documents/{}", document_url(1));
    let bad_utf8 = b"{\"rev\":1,\"x\":\"\xff\"}".to_vec();
    story.api().send("PUT", &path, &[], bad_utf8).await.refused(400, &["UTF-8"]);
    for (revision, kind) in
        ["text/plain", "application/xml", "multipart/form-data", "nonsense"].iter().enumerate()
    {
        let body = json!({"rev": revision}).to_string();
        story.api().send("PUT", &path, &[("Content-Type", kind)], body).await.expect(202);
    }
}

#[tokio::test]
async fn an_accepted_document_answers_with_its_outcome_and_no_body() {
    let story = Story::begin().await;
    let answer = put(story.api(), &document_url(1), r#"{"rev":1}"#).await.expect(202);
    assert!(answer.body.is_empty());
    assert_eq!(answer.header("flare-outcome"), "created");
}
