//! A notification as a client gets it, in a request, a reservation or a stream: headers and a body come in, what they
//! say goes out.

use serde_json::Value;

use crate::beliefs::Action;

#[derive(Clone, Debug)]
pub struct Told {
    pub document: String,
    pub action: Action,
    pub revision: i64,
    pub sequence: u64,
    pub id: String,
    pub replay: Option<String>,
    pub payload: Payload,
}

/// What it tells of the document.
#[derive(Clone, Debug)]
pub enum Payload {
    Nothing,
    Whole(Value),
    /// A difference to the document at a revision: a merge patch is an object, a JSON patch a list.
    Patch {
        from: i64,
        patch: Value,
    },
}

impl Told {
    /// Reads it, by the headers as a look-up gives them. The error says what is missing.
    pub fn read(header: impl Fn(&str) -> Option<String>, body: &[u8]) -> Result<Told, String> {
        let need = |name: &str| header(name).ok_or_else(|| format!("there is no header {name}"));
        let number =
            |name: &str| need(name)?.parse::<i64>().map_err(|_| format!("the header {name} is not a number"));
        let action = need("flare-action")?;
        let action = Action::named(&action).ok_or_else(|| format!("{action} is no action"))?;
        let patch_from = header("flare-patch-from").map(|_| number("flare-patch-from")).transpose()?;
        Ok(Told {
            document: need("flare-document")?,
            action,
            revision: number("flare-revision")?,
            sequence: number("flare-sequence")? as u64,
            id: need("webhook-id")?,
            replay: header("flare-replay"),
            payload: payload(body, patch_from)?,
        })
    }

    /// The same notification is attempted again.
    pub fn repeats(&self, other: &Told) -> bool {
        self.sequence == other.sequence && self.action == other.action && self.replay == other.replay
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Told { action, revision, sequence, id, replay, payload, .. } = self;
        write!(f, "{action:?} revision {revision} sequence {sequence} id {id}")?;
        if let Some(replay) = replay {
            write!(f, " replay {replay}")?;
        }
        if let Payload::Patch { from, .. } = payload {
            write!(f, " patch from {from}")?;
        }
        Ok(())
    }
}

fn payload(body: &[u8], patch_from: Option<i64>) -> Result<Payload, String> {
    if body.is_empty() {
        return Ok(Payload::Nothing);
    }
    let mut json: Value = serde_json::from_slice(body).map_err(|e| format!("the body is no JSON: {e}"))?;
    // Documents of these origins have no field `action`; envelopes have.
    let enveloped = json.get("action").is_some();
    Ok(match patch_from {
        Some(from) if enveloped => Payload::Patch { from, patch: json["patch"].take() },
        Some(from) => Payload::Patch { from, patch: json },
        None if !enveloped => Payload::Whole(json),
        None => match json.get_mut("document") {
            Some(document) => Payload::Whole(document.take()),
            None => Payload::Nothing,
        },
    })
}

/// The document after a patch, as RFC 7396 and RFC 6902 have it; nothing if it does not fit.
pub fn patched(document: &Value, patch: &Value) -> Option<Value> {
    let mut document = document.clone();
    match patch {
        Value::Array(operations) => {
            for operation in operations {
                apply(&mut document, operation)?;
            }
        }
        _ => merge(&mut document, patch),
    }
    Some(document)
}

fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Default::default());
    }
    let Value::Object(into) = target else { return };
    for (name, value) in fields {
        if value.is_null() {
            into.remove(name);
        } else {
            merge(into.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

/// One operation of a JSON Patch; `move` and `copy` are none that Flare uses.
fn apply(document: &mut Value, operation: &Value) -> Option<()> {
    let path = operation["path"].as_str()?;
    let name = operation["op"].as_str()?;
    if path.is_empty() {
        *document = operation.get("value").filter(|_| name != "remove")?.clone();
        return Some(());
    }
    let (parent, key) = path.rsplit_once('/')?;
    let key = key.replace("~1", "/").replace("~0", "~");
    let value = operation.get("value");
    match document.pointer_mut(parent)? {
        Value::Object(fields) => match name {
            "add" => drop(fields.insert(key, value?.clone())),
            "replace" => *fields.get_mut(&key)? = value?.clone(),
            "remove" => drop(fields.remove(&key)?),
            _ => return None,
        },
        Value::Array(items) => {
            let at = if key == "-" { items.len() } else { key.parse().ok()? };
            match name {
                "add" if at <= items.len() => items.insert(at, value?.clone()),
                "replace" => *items.get_mut(at)? = value?.clone(),
                "remove" if at < items.len() => drop(items.remove(at)),
                _ => return None,
            }
        }
        _ => return None,
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn patches_of_both_kinds_are_applied_as_their_standards_have_it() {
        let document = json!({"a": {"b": 1, "c": 2}, "list": [1, 2]});
        let merged = patched(&document, &json!({"a": {"b": null, "d": 3}, "list": [3]}));
        assert_eq!(merged, Some(json!({"a": {"c": 2, "d": 3}, "list": [3]})));
        let operations =
            json!([{"op": "remove", "path": "/list/0"}, {"op": "add", "path": "/a/e", "value": 5}]);
        assert_eq!(
            patched(&document, &operations),
            Some(json!({"a": {"b": 1, "c": 2, "e": 5}, "list": [2]}))
        );
        assert_eq!(patched(&document, &json!([{"op": "remove", "path": "/none"}])), None);
    }
}
