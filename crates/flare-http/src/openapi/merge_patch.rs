//! The schema of an object comes in; that of a JSON Merge Patch (RFC 7396) of it goes out: nothing is required, and
//! `null` is legal everywhere, because it takes away.

use serde_json::{Map, Value, json};

use super::schemas::PLACE;

/// The reference to the patch of what `whole` refers to.
pub fn named(whole: &Value) -> Value {
    json!({"$ref": format!("{PLACE}{}", patch_name(name_of(whole).expect("a type with a name")))})
}

/// Adds the patch of `whole`, without the members `but`, and of all objects below it.
pub fn add(all: &mut Map<String, Value>, whole: &Value, but: &[&str]) {
    let name = name_of(whole).expect("a type with a name").to_owned();
    add_object(all, &name);
    let patch = &mut all[&patch_name(&name)];
    let properties = patch["properties"].as_object_mut().expect("an object has properties");
    properties.retain(|name, _| !but.contains(&name.as_str()));
}

fn add_object(all: &mut Map<String, Value>, name: &str) {
    if all.contains_key(&patch_name(name)) {
        return;
    }
    let mut patch = all[name].clone();
    patch.as_object_mut().map(|patch| patch.remove("required"));
    let properties = patch["properties"].as_object_mut().expect("an object has properties");
    for property in properties.values_mut() {
        property.as_object_mut().map(|property| property.remove("default"));
        change(all, property);
    }
    all.insert(patch_name(name), patch);
}

/// Makes a member's schema that of its patch.
fn change(all: &mut Map<String, Value>, schema: &mut Value) {
    for alternatives in ["anyOf", "allOf"] {
        for part in schema.get_mut(alternatives).and_then(Value::as_array_mut).into_iter().flatten() {
            point_to_patch(all, part);
        }
    }
    point_to_patch(all, schema);
    if let Some(values) = schema.get_mut("additionalProperties").filter(|values| values.is_object()) {
        change(all, values);
    }
    if !allows_null(schema) {
        let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
        *schema = json!({"anyOf": [schema.take(), {"type": "null"}]});
        if let Some(description) = description {
            schema["description"] = description;
        }
    }
}

/// Turns a reference to an object with members into one to its patch.
fn point_to_patch(all: &mut Map<String, Value>, schema: &mut Value) {
    let Some(name) = name_of(schema).map(str::to_owned) else { return };
    if all[&name].get("properties").is_some() {
        add_object(all, &name);
        schema["$ref"] = named(schema)["$ref"].take();
    }
}

fn allows_null(schema: &Value) -> bool {
    let is_null = |kind: &Value| kind == "null";
    let kinds = schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(is_null));
    let parts = schema["anyOf"].as_array();
    kinds || parts.is_some_and(|parts| parts.iter().any(|part| is_null(&part["type"])))
}

fn name_of(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix(PLACE)
}

fn patch_name(name: &str) -> String {
    format!("{}Patch", name.strip_suffix("Draft").unwrap_or(name))
}
