//! The whole description: operations and the configuration come in; an OpenAPI 3.1 document goes out.

use flare_core::config::Config;
use flare_core::version::VERSION;
use serde_json::{Map, Value, json};

use super::errors;
use super::notes::{Notes, TAGS};
use super::operation::Operation;
use super::schemas::Schemas;
use crate::error::ErrorAnswer;

const INTRODUCTION: &str = "\
Flare tracks documents behind HTTP endpoints and tells every subscribed client when one of them changes.

JSON over HTTP/1.1. Fields are in camelCase, times in RFC 3339, durations strings with a unit (`\"15s\"`), ids opaque \
strings. Bodies are parsed as JSON whatever the `Content-Type` says. Unknown fields and unknown query parameters are 400. \
The order of fields in an answer means nothing, and answers may gain fields.

Beside the answers listed with each operation, any path answers 405 (with `Allow`) to a method that it does not take, \
and 431 to a head that is too large.";

/// How the description calls what is shown to be let in.
pub const TOKEN: &str = "token";

/// Describes all operations.
pub fn describe(operations: &[Operation], config: &Config) -> Value {
    let mut schemas = Schemas::new();
    let mut paths: Map<String, Value> = Map::new();
    for operation in operations {
        let template = operation.template();
        let mut notes = Notes::new(config, &mut schemas, &template, operation.need);
        if operation.is_of_producers() {
            notes.speaks_of_producers();
        }
        (operation.describe)(&mut notes);
        let described = notes.finish(&operation.method);
        let path = paths.entry(template).or_insert_with(|| json!({}));
        path[operation.method.as_str().to_ascii_lowercase()] = described;
    }
    schemas.answer::<ErrorAnswer<'_>>();
    let tags: Vec<Value> =
        TAGS.iter().map(|(name, text)| json!({"name": name, "description": text})).collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Flare",
            "version": VERSION,
            "summary": "Brings every subscribed client to the newest state of each document",
            "description": INTRODUCTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/", "description": "This node"}],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas.finish(),
            "parameters": parameters(config),
            "responses": errors::shared(),
            "securitySchemes": {TOKEN: {
                "type": "http", "scheme": "bearer",
                "description": "A token of `POST /tokens`, or `auth.operator-token`. With `auth.mode = \"token\"` every \
                    operation but those of health needs one that is good for it (`x-scopes`: any one of them).",
            }},
        },
    })
}

/// The parameters that many operations share: the ids in paths, and the pages of lists.
fn parameters(config: &Config) -> Value {
    let pagination = &config.domain.pagination;
    let id = |name: &str, text: &str, example: &str| {
        json!({"name": name, "in": "path", "required": true, "description": text,
            "schema": {"type": "string", "minLength": 1}, "example": example})
    };
    let page = |name: &str, text: &str, schema: Value, example: u32| {
        json!({"name": name, "in": "query", "required": false, "description": text, "schema": schema,
            "example": example})
    };
    json!({
        "rid": id("rid", "The id of a resource.", super::examples::RESOURCE),
        "id": id("id", "The id of a subscription.", super::examples::SUBSCRIPTION),
        "cid": id("cid", "The id of a consumer.", super::examples::CONSUMER),
        "producer": id("id", "The id of a producer.", super::examples::PRODUCER),
        "token": id("token", "The id of a token.", super::examples::TOKEN),
        "account": id("account", "The name of an account.", "acme"),
        "node": id("node", "The name of a node.", "node-a"),
        "replay": id("replay", "The id of a replay.", "rpl_1"),
        "attempt": id("attempt", "The id of an attempt.", "att_000500000000001f"),
        "url": {
            "name": "url", "in": "path", "required": true, "example": super::examples::DOCUMENT,
            "description": "The url of the document: scheme, host and path, as a resource's endpoint describes it; no \
                query string.",
            "schema": {"type": "string", "format": "document-url", "pattern": "^[Hh][Tt][Tt][Pp][Ss]?:/"},
        },
        "limit": page(
            "limit",
            &format!("At most so many entries. A limit above {} is lowered to it.", pagination.maximum_limit),
            json!({"type": "integer", "minimum": 0, "default": pagination.default_limit}),
            10,
        ),
        "offset": page(
            "offset",
            "After so many entries.",
            json!({"type": "integer", "minimum": 0, "default": 0}),
            0,
        ),
    })
}
