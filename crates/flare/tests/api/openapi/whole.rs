//! The description is whole: nothing in it is left unsaid, and it knows the same query parameters as the handlers.

use std::collections::BTreeSet;

use serde_json::Value;

use super::world::World;
use super::{follow, operations};
use crate::support::Flare;

#[tokio::test]
async fn every_operation_says_what_it_is() {
    let flare = Flare::start().await;
    let description = flare.api().get("/openapi.json").await.expect(200).json();
    assert_eq!(description["openapi"], "3.1.0");
    let all = operations(&description);
    let ids: BTreeSet<&str> = all.iter().map(super::Operation::id).collect();
    assert_eq!(ids.len(), all.len(), "operation ids are unique");
    for operation in &all {
        let name = operation.id();
        let tags = description["tags"].as_array().expect("tags");
        assert!(tags.iter().any(|tag| tag["name"] == operation.says["tags"][0]), "{name}");
        assert!(!operation.says["summary"].as_str().unwrap_or_default().is_empty(), "{name}");
        for parameter in operation.parameters(&description) {
            let said = parameter["description"].as_str().unwrap_or_default();
            assert!(!said.is_empty() && parameter["schema"].is_object(), "{name}: {parameter}");
        }
        for response in operation.says["responses"].as_object().expect("answers").values() {
            let said = follow(&description, response)["description"].as_str().unwrap_or_default();
            assert!(!said.is_empty(), "{name}");
        }
    }
}

#[tokio::test]
async fn every_schema_and_every_property_is_explained() {
    let flare = Flare::start().await;
    let description = flare.api().get("/openapi.json").await.expect(200).json();
    let schemas = description["components"]["schemas"].as_object().expect("schemas");
    let mut silent = Vec::new();
    for (name, schema) in schemas {
        if schema["description"].as_str().unwrap_or_default().is_empty() {
            silent.push(name.clone());
        }
        for (property, says) in schema["properties"].as_object().into_iter().flatten() {
            if says["description"].as_str().unwrap_or_default().is_empty() {
                silent.push(format!("{name}.{property}"));
            }
        }
    }
    assert!(silent.is_empty(), "without a word: {silent:?}");
}

#[tokio::test]
async fn the_same_query_parameters_are_described_and_known() {
    let world = World::begin().await;
    for operation in operations(&world.description) {
        if operation.path == "/documents/{url}" {
            // A document's url has no query string at all.
            continue;
        }
        let described: BTreeSet<&str> = operation
            .parameters(&world.description)
            .into_iter()
            .filter(|parameter| parameter["in"] == "query")
            .filter_map(|parameter| parameter["name"].as_str())
            .collect();
        let mut path = operation.path.clone();
        for parameter in operation.parameters(&world.description) {
            let (Some(name), Some(example)) = (parameter["name"].as_str(), parameter["example"].as_str())
            else {
                continue;
            };
            path = path.replace(&format!("{{{name}}}"), &world.real(&operation, example));
        }
        let answer = world.api().send(&operation.method, &format!("{path}?nonsense=1"), &[], "").await;
        let said = answer.refused(400, &["nonsense"]).json();
        assert_eq!(known(&said), described, "{}", operation.id());
    }
}

/// The names in `unknown query parameter ...; known are a, b`.
fn known(error: &Value) -> BTreeSet<&str> {
    let detail = error["error"]["detail"].as_str().expect("a detail");
    let known = detail.split_once("known are ").map_or("", |(_, known)| known);
    known.split(", ").filter(|name| !name.is_empty()).collect()
}

#[tokio::test]
async fn the_page_asks_no_other_host_and_needs_nothing_inline() {
    let flare = Flare::start().await;
    let answer = flare.api().get("/docs").await.expect(200);
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    let policy = answer.header("content-security-policy").to_owned();
    assert!(policy.contains("default-src 'self'") && !policy.contains("unsafe"), "{policy}");
    let html = String::from_utf8(answer.body.to_vec()).expect("a page is text");
    for attribute in ["src=\"", "href=\""] {
        for target in html.split(attribute).skip(1).filter_map(|rest| rest.split('"').next()) {
            let own = ["/", "#"].iter().any(|own| target.starts_with(own)) && !target.starts_with("//");
            assert!(own || target == "data:,", "{target} is not of this node");
        }
    }
    assert!(!html.contains(" style=") && !html.contains("<style"), "the policy lets no style in");
    assert!(html.contains("id=\"createResource\"") && html.contains("$FLARE/resources"));
}
