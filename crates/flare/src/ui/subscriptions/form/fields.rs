//! A draft in its two views: the JSON of the API goes in and the fields of a form come out, and back. Nothing is checked
//! here and nothing is lost: what no field can show is carried along, so that the API can say what it thinks of it.

use serde_json::{Map, Value};

use crate::ui::form::Form;

/// How a field's text stands for JSON.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Number,
    Boolean,
    /// Numbers with commas between them.
    Statuses,
    /// A line for each value: `Name: value`.
    Headers,
    /// JSON as it is.
    Json,
}

/// The fields, by their path in the API's JSON.
const FIELDS: &[(&str, Kind)] = &[
    ("endpoint.url", Kind::Text),
    ("endpoint.method", Kind::Text),
    ("endpoint.headers", Kind::Headers),
    ("endpoint.actions.create.url", Kind::Text),
    ("endpoint.actions.create.method", Kind::Text),
    ("endpoint.actions.update.url", Kind::Text),
    ("endpoint.actions.update.method", Kind::Text),
    ("endpoint.actions.delete.url", Kind::Text),
    ("endpoint.actions.delete.method", Kind::Text),
    ("content.format", Kind::Text),
    ("content.mode", Kind::Text),
    ("content.envelope", Kind::Boolean),
    ("content.document", Kind::Boolean),
    ("data", Kind::Json),
    ("filter", Kind::Text),
    ("when", Kind::Text),
    ("delivery.success", Kind::Statuses),
    ("delivery.discard", Kind::Statuses),
    ("delivery.timeout", Kind::Text),
    ("delivery.concurrency", Kind::Number),
    ("delivery.rateLimit.quantity", Kind::Number),
    ("delivery.rateLimit.interval", Kind::Text),
    ("delivery.revision", Kind::Text),
    ("delivery.retry.quantity", Kind::Number),
    ("delivery.retry.ttl", Kind::Text),
    ("delivery.retry.progression", Kind::Text),
    ("delivery.retry.interval", Kind::Text),
    ("delivery.retry.maxInterval", Kind::Text),
    ("delivery.retry.ratio", Kind::Number),
    ("delivery.retry.immediate", Kind::Number),
    ("delivery.retry.preBackoff", Kind::Number),
    ("delivery.retry.postBackoff", Kind::Number),
    ("mode", Kind::Text),
    ("start", Kind::Text),
    ("shards", Kind::Number),
    ("secret", Kind::Text),
];

/// What no field shows, as JSON.
const REST: &str = "rest";

/// The names of the fields, and of what a message may be about beside them.
pub const NAMES: &[&str] = &{
    let mut names = [""; FIELDS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = FIELDS[at].0;
        at += 1;
    }
    names
};

/// The JSON that a filled form stands for.
pub fn to_json(form: &Form) -> Value {
    let mut json = match serde_json::from_str(form.value(REST)) {
        Ok(Value::Object(rest)) => rest,
        _ => Map::new(),
    };
    for (name, kind) in FIELDS {
        if let Some(text) = form.given(name) {
            put(&mut json, name, read(*kind, text));
        }
    }
    Value::Object(json)
}

fn put(fields: &mut Map<String, Value>, path: &str, value: Value) {
    let Some((first, deeper)) = path.split_once('.') else {
        fields.insert(path.to_owned(), value);
        return;
    };
    let inner = fields.entry(first).or_insert(Value::Null);
    if !inner.is_object() {
        *inner = Value::Object(Map::new());
    }
    if let Value::Object(inner) = inner {
        put(inner, deeper, value);
    }
}

/// A text that does not fit goes on as it is: the API says what it should be.
fn read(kind: Kind, text: &str) -> Value {
    let number = |text: &str| serde_json::from_str(text).map_or_else(|_| text.into(), Value::Number);
    match kind {
        Kind::Text => text.into(),
        Kind::Number => number(text),
        Kind::Boolean => serde_json::from_str::<bool>(text).map_or_else(|_| text.into(), Value::Bool),
        Kind::Json => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
        Kind::Statuses => {
            let parts = text.split(|c: char| c == ',' || c.is_whitespace());
            Value::Array(parts.filter(|part| !part.is_empty()).map(number).collect())
        }
        Kind::Headers => {
            let mut headers = Map::new();
            for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
                let (name, value) = line.split_once(':').unwrap_or((line, ""));
                let values = headers.entry(name.trim()).or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(values) = values {
                    values.push(value.trim().into());
                }
            }
            Value::Object(headers)
        }
    }
}

/// A form with what stands in this JSON.
pub fn from_json(json: &Value) -> Form {
    let mut form = Form::new(NAMES, &[]);
    let mut rest = json.clone();
    for (name, kind) in FIELDS {
        if let Some(text) = find(json, name).and_then(|value| write(*kind, value)) {
            form.set(name, text);
            take(&mut rest, name);
        }
    }
    if rest.as_object().is_some_and(|rest| !rest.is_empty()) {
        form.set(REST, rest.to_string());
    }
    form
}

/// The text for a value, unless it is not of the field's kind.
fn write(kind: Kind, value: &Value) -> Option<String> {
    match (kind, value) {
        (Kind::Json, Value::Object(_)) => serde_json::to_string_pretty(value).ok(),
        (Kind::Text | Kind::Number | Kind::Boolean | Kind::Json, Value::String(text)) => Some(text.clone()),
        (Kind::Number, Value::Number(number)) => Some(number.to_string()),
        (Kind::Boolean, Value::Bool(yes)) => Some(yes.to_string()),
        (Kind::Statuses, Value::Array(statuses)) if !statuses.is_empty() => {
            let text = |status: &Value| match status {
                Value::Number(number) => Some(number.to_string()),
                Value::String(text) => Some(text.clone()),
                _ => None,
            };
            Some(statuses.iter().map(text).collect::<Option<Vec<_>>>()?.join(", "))
        }
        (Kind::Headers, Value::Object(headers)) => {
            let mut lines = Vec::new();
            for (name, values) in headers {
                for value in values.as_array()? {
                    lines.push(format!("{name}: {}", value.as_str()?));
                }
            }
            Some(lines.join("\n"))
        }
        _ => None,
    }
}

fn find<'a>(json: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(json, |at, step| at.get(step))
}

/// Takes a value out, and the objects around it that are empty then.
fn take(json: &mut Value, path: &str) {
    let Value::Object(fields) = json else { return };
    let Some((first, deeper)) = path.split_once('.') else {
        fields.remove(path);
        return;
    };
    if let Some(inner) = fields.get_mut(first) {
        take(inner, deeper);
        if inner.as_object().is_some_and(Map::is_empty) {
            fields.remove(first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_views_are_of_the_same_draft() {
        for draft in [
            json!({}),
            json!({"endpoint": {"url": "http://a/{id}", "headers": {"A": ["1", "2"], "B": ["x:y"]}}}),
            json!({"delivery": {"success": [200, 201], "timeout": "15s", "concurrency": 4, "retry": {"ratio": 1.5}}}),
            json!({"content": {"envelope": false}, "data": {"a": [1, true, "x"]}, "filter": "document.a > 1"}),
            json!({"endpoint": {"actions": {"delete": {"method": "delete", "headers": {"X": ["1"]}}}}}),
        ] {
            assert_eq!(to_json(&from_json(&draft)), draft);
        }
    }

    #[test]
    fn what_no_field_shows_is_carried_along() {
        for draft in [
            json!({"endpoint": {"ulr": "http://a"}, "delivery": {"rateLimit": {"quantity": 3, "burst": 2}}}),
            json!({"content": {"patch": "merge"}, "nonsense": {"deep": {}}, "shards": [1]}),
            json!({"delivery": {"success": [], "discard": [[5]]}, "endpoint": {"headers": {"A": "no list"}}}),
            json!({"filter": null}),
        ] {
            assert_eq!(to_json(&from_json(&draft)), draft);
        }
    }

    #[test]
    fn what_is_typed_is_kept_even_if_it_is_wrong() {
        let typed = [
            ("delivery.concurrency", "many"),
            ("delivery.success", "2oo, 201"),
            ("data", "{"),
            ("secret", "x"),
        ];
        let json = to_json(&Form::new(NAMES, &typed));
        assert_eq!(json["delivery"], json!({"concurrency": "many", "success": ["2oo", 201]}));
        let again = from_json(&json);
        for (name, text) in typed {
            assert_eq!(again.value(name), text);
        }
    }
}
