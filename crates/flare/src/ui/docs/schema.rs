//! A JSON Schema comes in; what a reader needs of it goes out: what kind of value it is, in a few words, and the fields
//! of an object.

use serde_json::Value;

/// What kind of value: words, some of which lead to a schema.
pub struct Kind(pub Vec<Piece>);

/// A few words.
pub struct Piece {
    pub text: String,
    /// The name of the schema that they lead to.
    pub schema: Option<String>,
}

/// A field of an object, or one of several values.
pub struct Field {
    pub name: String,
    pub required: bool,
    pub kind: Kind,
    pub text: String,
}

/// The text of a JSON string; nothing for anything else.
pub fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The fields of an object.
pub fn fields(schema: &Value) -> Vec<Field> {
    let required =
        |name: &str| schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
    let properties = schema["properties"].as_object().into_iter().flatten();
    let field = |(name, property): (&String, &Value)| Field {
        name: name.clone(),
        required: required(name),
        kind: kind(property),
        text: text_of(&property["description"]),
    };
    properties.map(field).collect()
}

/// What kind of value a schema describes.
pub fn kind(schema: &Value) -> Kind {
    let mut pieces = Vec::new();
    describe(schema, &mut pieces);
    bounds(schema, &mut pieces);
    Kind(pieces)
}

fn say(pieces: &mut Vec<Piece>, text: impl Into<String>) {
    pieces.push(Piece { text: text.into(), schema: None });
}

fn describe(schema: &Value, pieces: &mut Vec<Piece>) {
    if let Some(name) = schema["$ref"].as_str().and_then(|place| place.rsplit('/').next()) {
        return pieces.push(Piece { text: name.to_owned(), schema: Some(name.to_owned()) });
    }
    for word in ["anyOf", "oneOf", "allOf"] {
        if let Some(parts) = schema[word].as_array() {
            for (at, part) in parts.iter().enumerate() {
                if at > 0 {
                    say(pieces, " or ");
                }
                describe(part, pieces);
            }
            return;
        }
    }
    if let Some(values) = schema["enum"].as_array() {
        return say(pieces, values.iter().map(Value::to_string).collect::<Vec<_>>().join(", "));
    }
    if let Some(value) = schema.get("const") {
        return say(pieces, value.to_string());
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => vec!["any value"],
    };
    for (at, name) in types.into_iter().enumerate() {
        if at > 0 {
            say(pieces, " or ");
        }
        match name {
            "array" => {
                say(pieces, "list of ");
                describe(&schema["items"], pieces);
            }
            "object" if schema["additionalProperties"].is_object() => {
                say(pieces, "object with values of ");
                describe(&schema["additionalProperties"], pieces);
            }
            "object" if schema["properties"].is_object() => {
                say(pieces, "object with ");
                for (at, (name, property)) in
                    schema["properties"].as_object().into_iter().flatten().enumerate()
                {
                    say(pieces, if at > 0 { format!(", {name}: ") } else { format!("{name}: ") });
                    describe(property, pieces);
                }
            }
            other => say(pieces, other),
        }
    }
}

fn bounds(schema: &Value, pieces: &mut Vec<Piece>) {
    let named = [
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("minItems", "entries at least"),
        ("maxItems", "entries at most"),
        ("minLength", "characters at least"),
        ("maxLength", "characters at most"),
        ("maxProperties", "members at most"),
        ("format", "format"),
        ("default", "default"),
    ];
    for (keyword, words) in named {
        let value = match &schema[keyword] {
            Value::Null => continue,
            Value::String(text) => text.clone(),
            Value::Object(members) if members.is_empty() => continue,
            other => other.to_string(),
        };
        say(pieces, format!(" · {words} {value}"));
    }
}
