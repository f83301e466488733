//! The errors that many operations share, as the description has them.

use serde_json::{Map, Value, json};

/// The shared ones: status, name, when it comes, and an example of title and detail.
const SHARED: [(&str, &str, &str, &str, &str); 8] = [
    (
        "400",
        "BadRequest",
        "Something in the request is not valid; the detail names the field and the remedy.",
        "The request is not valid",
        "lanes: must be between 1 and 256, got 0",
    ),
    (
        "401",
        "Unauthorized",
        "There is no token, or none that is known.",
        "Unauthorized",
        "the token is not known: it is wrong, was revoked, or has expired",
    ),
    (
        "403",
        "Forbidden",
        "The token lacks a scope; the detail names it.",
        "Forbidden",
        "this needs the scope `admin`, and the token does not have it",
    ),
    ("404", "NotFound", "There is no such thing.", "Not found", "there is no resource res_nothing"),
    (
        "408",
        "Timeout",
        "The body did not come in time.",
        "The request took too long",
        "the request was not complete within 30s (http.server.timeout)",
    ),
    (
        "413",
        "TooLarge",
        "The body is too large.",
        "The body is too large",
        "the body may have 1048576 bytes at most (http.server.body-limit)",
    ),
    (
        "500",
        "Broken",
        "Something is wrong with Flare; the log of the node says what.",
        "Something is wrong with Flare",
        "the log of the node says what",
    ),
    (
        "503",
        "Unavailable",
        "Too much is waiting, the disk is full, or the node is stopping: try again later.",
        "Not available now",
        "the node is stopping",
    ),
];

/// The name of a shared error.
pub fn name(status: &str) -> &'static str {
    SHARED.iter().find(|shared| shared.0 == status).map(|shared| shared.1).expect("a shared error")
}

/// All shared errors by name.
pub fn shared() -> Map<String, Value> {
    let of = |&(status, name, when, title, detail): &(&str, &'static str, _, _, _)| {
        (name.to_owned(), error(status, when, title, detail))
    };
    SHARED.iter().map(of).collect()
}

/// An error of one operation.
pub fn response(status: u16, when: &str) -> Value {
    let status = status.to_string();
    let title = match status.as_str() {
        "409" => "Conflict",
        "429" => "Too many requests",
        "501" => "Not in this build",
        known => {
            SHARED.iter().find(|shared| shared.0 == known).map(|shared| shared.3).expect("a known status")
        }
    };
    error(&status, when, title, when)
}

fn error(status: &str, when: &str, title: &str, detail: &str) -> Value {
    let mut response = json!({
        "description": when,
        "content": {"application/json": {
            "schema": {"$ref": "#/components/schemas/Error"},
            "example": {"error": {"title": title, "detail": detail}},
        }},
    });
    if status == "401" {
        response["headers"] = json!({"WWW-Authenticate": {
            "required": true, "description": "What to send it by.", "schema": {"type": "string", "const": "Bearer"},
        }});
    }
    if matches!(status, "429" | "503") {
        response["headers"] = json!({"Retry-After": {
            "required": true,
            "description": "After so many seconds.",
            "schema": {"type": "integer", "minimum": 0},
        }});
    }
    response
}
