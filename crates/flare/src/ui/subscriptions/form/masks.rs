//! Credentials in headers: a draft comes in and goes out with a mask in their place; a draft that was sent comes in, and
//! where the mask still stands, what is kept goes out.

use flare_core::observe::is_secret;
use flare_model::invalid::Invalid;
use flare_model::subscription::Draft;
use serde_json::{Map, Value};

/// What stands in the place of a credential.
pub const MASK: &str = "••••••••";

/// The draft without the credentials in its headers.
pub fn masked(mut draft: Draft) -> Draft {
    let endpoint = &mut draft.endpoint;
    let actions = &mut endpoint.actions;
    let of_actions = [&mut actions.create, &mut actions.update, &mut actions.delete].into_iter().flatten();
    for headers in of_actions.map(|action| &mut action.headers).chain([&mut endpoint.headers]) {
        let credentials = headers.iter_mut().filter(|(name, _)| is_secret(name));
        credentials.flat_map(|(_, values)| values).for_each(|value| *value = MASK.to_owned());
    }
    draft
}

/// The draft with what `current` has wherever the mask was left.
pub fn unmasked(mut draft: Value, current: &Value) -> Result<Value, Invalid> {
    let mut known = current.clone();
    let known = all_headers(&mut known);
    for (path, headers) in all_headers(&mut draft) {
        let known = known.iter().find(|(other, _)| *other == path).map(|(_, headers)| &**headers);
        for (name, values) in headers.iter_mut() {
            let kept = known.and_then(|known| {
                known.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, values)| values)
            });
            let (mut at, mut missing) = (0, false);
            each(values, |value| {
                let kept = kept.and_then(|kept| kept.get(at).or(Some(kept).filter(|_| at == 0)));
                match (value.as_str() == Some(MASK), kept.filter(|kept| kept.is_string())) {
                    (true, Some(kept)) => *value = kept.clone(),
                    (true, None) => missing = true,
                    (false, _) => {}
                }
                at += 1;
            });
            if missing {
                let problem =
                    format!("{name}: {MASK} stands for a value that is kept, and none is; write it");
                return Err(Invalid::new(path, problem));
            }
        }
    }
    Ok(draft)
}

/// The headers of a draft: of all actions, and of each.
fn all_headers(draft: &mut Value) -> Vec<(String, &mut Map<String, Value>)> {
    let mut found = Vec::new();
    let Some(Value::Object(endpoint)) = draft.get_mut("endpoint") else { return found };
    for (name, part) in endpoint.iter_mut() {
        match (name.as_str(), part) {
            ("headers", Value::Object(headers)) => found.push(("endpoint.headers".to_owned(), headers)),
            ("actions", Value::Object(actions)) => {
                for (action, part) in actions.iter_mut() {
                    if let Some(Value::Object(headers)) = part.get_mut("headers") {
                        found.push((format!("endpoint.actions.{action}.headers"), headers));
                    }
                }
            }
            _ => {}
        }
    }
    found
}

/// Each value of a header, in order.
fn each(values: &mut Value, mut act: impl FnMut(&mut Value)) {
    match values {
        Value::Array(values) => values.iter_mut().for_each(act),
        value => act(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn credentials_are_masked_and_come_back_where_the_mask_was_left() {
        let draft = json!({"endpoint": {"url": "http://a/{id}",
            "headers": {"Authorization": ["Bearer x", "Bearer y"], "X-Plain": ["seen"]},
            "actions": {"delete": {"headers": {"X-Api-Key": ["k"]}}}}});
        let shown = masked(serde_json::from_value(draft.clone()).unwrap());
        let shown = serde_json::to_value(shown).unwrap();
        assert!(!shown.to_string().contains("Bearer") && shown.to_string().contains("seen"), "{shown}");
        assert_eq!(shown["endpoint"]["actions"]["delete"]["headers"]["X-Api-Key"], json!([MASK]));
        let back = unmasked(shown.clone(), &draft).unwrap();
        assert_eq!(back["endpoint"], draft["endpoint"]);
        let mut changed = shown;
        changed["endpoint"]["headers"]["Authorization"] = json!([MASK, "Bearer z"]);
        let changed = unmasked(changed, &draft).unwrap();
        assert_eq!(changed["endpoint"]["headers"]["Authorization"], json!(["Bearer x", "Bearer z"]));
    }

    #[test]
    fn a_mask_without_anything_behind_it_is_refused() {
        let draft = json!({"endpoint": {"headers": {"X-Token": [MASK]}}});
        let wrong = unmasked(draft, &json!({"endpoint": {"url": "http://a"}})).unwrap_err();
        assert_eq!(wrong.field, "endpoint.headers");
    }
}
