//! Types come in; JSON Schemas under `#/components/schemas` go out. What a type looks like when it is read and when it
//! is written differs (a default makes a field optional in a request and certain in an answer), so there are two
//! generators, and names tell them apart: `RetryDraft` is what a user writes, `Retry` what Flare answers.

use schemars::JsonSchema;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value};

use super::merge_patch;

pub(super) const PLACE: &str = "#/components/schemas/";

/// The schemas that were asked for.
pub struct Schemas {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
    bounds: Vec<Bound>,
    patches: Vec<(Value, &'static [&'static str])>,
}

/// What the configuration says about a property.
struct Bound {
    schema: &'static str,
    property: &'static str,
    says: Value,
}

impl Schemas {
    /// None yet.
    pub fn new() -> Schemas {
        let settings = || {
            let mut settings = SchemaSettings::draft2020_12();
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
            settings
        };
        Schemas {
            requests: settings().into_generator(),
            answers: settings().for_serialize().into_generator(),
            bounds: Vec::new(),
            patches: Vec::new(),
        }
    }

    /// What a type looks like in a request.
    pub fn request<T: JsonSchema>(&mut self) -> Value {
        self.requests.subschema_for::<T>().into()
    }

    /// What a type looks like in an answer.
    pub fn answer<T: JsonSchema>(&mut self) -> Value {
        let mut schema: Value = self.answers.subschema_for::<T>().into();
        point_to_answers(&mut schema);
        schema
    }

    /// What a JSON Merge Patch of a type looks like, without the members `but`.
    pub fn patch<T: JsonSchema>(&mut self, but: &'static [&'static str]) -> Value {
        let whole = self.request::<T>();
        self.patches.push((whole.clone(), but));
        merge_patch::named(&whole)
    }

    /// Adds to a property of a request what only the configuration knows: bounds and defaults.
    pub fn bound(&mut self, schema: &'static str, property: &'static str, says: Value) {
        self.bounds.push(Bound { schema, property, says });
    }

    /// All of them by name.
    pub fn finish(mut self) -> Map<String, Value> {
        let mut all = self.requests.take_definitions(true);
        all.values_mut().for_each(tidy);
        all.values_mut().for_each(list_words);
        for Bound { schema, property, says } in self.bounds {
            let known = all.get_mut(schema).and_then(|schema| schema["properties"].get_mut(property));
            let known = known.and_then(Value::as_object_mut);
            let known = known.unwrap_or_else(|| panic!("{schema} has no {property} to say something about"));
            for (keyword, value) in says.as_object().expect("bounds are an object") {
                known.insert(keyword.clone(), value.clone());
            }
        }
        for (whole, but) in self.patches {
            merge_patch::add(&mut all, &whole, but);
        }
        for (name, mut schema) in self.answers.take_definitions(true) {
            point_to_answers(&mut schema);
            list_words(&mut schema);
            let name = answer_name(&name);
            if let Some(other) = all.get(name) {
                assert_eq!(*other, schema, "{name} is one thing in requests and another in answers");
            }
            all.insert(name.to_owned(), schema);
        }
        all
    }
}

fn answer_name(name: &str) -> &str {
    name.strip_suffix("Draft").or_else(|| name.strip_suffix("View")).unwrap_or(name)
}

/// Answers refer to answers, may gain fields, and leave out what has no value where that is said to be left out.
fn point_to_answers(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.retain(|name, member| name != "additionalProperties" || *member != false);
            let required = members.get("required").cloned().unwrap_or_default();
            if let Some(Value::Object(properties)) = members.get_mut("properties") {
                let certain =
                    |name: &str| required.as_array().is_some_and(|all| all.iter().any(|one| one == name));
                for (_, property) in properties.iter_mut().filter(|(name, _)| !certain(name)) {
                    never_null(property);
                }
            }
            for (name, member) in members {
                match member {
                    Value::String(place) if name == "$ref" => {
                        let target = place.strip_prefix(PLACE).expect("all schemas are in one place");
                        *member = format!("{PLACE}{}", answer_name(target)).into();
                    }
                    other => point_to_answers(other),
                }
            }
        }
        Value::Array(members) => members.iter_mut().for_each(point_to_answers),
        _ => {}
    }
}

fn never_null(property: &mut Value) {
    let Some(property) = property.as_object_mut() else { return };
    for (name, is_null) in
        [("type", is_null_type as fn(&Value) -> bool), ("anyOf", is_null_schema), ("enum", Value::is_null)]
    {
        if let Some(Value::Array(kinds)) = property.get_mut(name) {
            kinds.retain(|kind| !is_null(kind));
        }
    }
    property.retain(|name, value| name != "default" || !value.is_null());
    if let Some([only]) = property.get("anyOf").and_then(Value::as_array).map(Vec::as_slice) {
        let only = only.as_object().cloned().unwrap_or_default();
        property.remove("anyOf");
        for (name, value) in only {
            property.entry(name).or_insert(value);
        }
    }
}

fn is_null_type(kind: &Value) -> bool {
    kind == "null"
}

fn is_null_schema(schema: &Value) -> bool {
    schema["type"] == "null"
}

/// That a default is as if nothing were there says nothing new; that a number has 32 bits is to be said in a word that
/// everybody understands.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.retain(|name, member| name != "default" || !member.is_null());
            if members.get("format").is_some_and(|format| format == "uint32") {
                members.entry("maximum").or_insert(u32::MAX.into());
            }
            members.values_mut().for_each(tidy);
        }
        Value::Array(members) => members.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// A choice of words with a description each comes as `oneOf` of `const`, which generators of clients make a class for
/// each word of, or nothing. So it is said as an `enum`, and what the words mean in the description.
fn list_words(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some((words, meanings)) = members.get("oneOf").and_then(words) {
                members.remove("oneOf");
                members.insert("type".to_owned(), "string".into());
                members.insert("enum".to_owned(), words);
                let description = members.entry("description").or_insert_with(|| "".into());
                let whole = format!("{}\n\n{meanings}", description.as_str().unwrap_or_default());
                *description = whole.trim().into();
            }
            // Words or null: each for itself, because the name of an alternative is made of what is in it.
            if let Some(Value::Array(words)) = members.get_mut("enum")
                && words.iter().any(Value::is_null)
            {
                words.retain(|word| !word.is_null());
                let words = words.clone();
                members.remove("enum");
                members.remove("type");
                let words = serde_json::json!([{"type": "string", "enum": words}, {"type": "null"}]);
                members.insert("anyOf".to_owned(), words);
            }
            members.values_mut().for_each(list_words);
        }
        Value::Array(members) => members.iter_mut().for_each(list_words),
        _ => {}
    }
}

/// The words of a choice, and a list of what they mean; nothing for other alternatives.
fn words(alternatives: &Value) -> Option<(Value, String)> {
    let alternatives = alternatives.as_array()?;
    let words = alternatives.iter().map(|one| one["const"].as_str()).collect::<Option<Vec<_>>>()?;
    let meanings = alternatives.iter().zip(&words).filter_map(|(one, word)| {
        let meaning = one["description"].as_str()?.replace('\n', " ");
        Some(format!("- `{word}`: {meaning}"))
    });
    let meanings = meanings.collect::<Vec<_>>().join("\n");
    Some((words.into(), meanings))
}
