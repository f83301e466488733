//! The description comes in; what the page shows of it goes out: groups of operations, and schemas.

use serde_json::Value;

use super::curl;
use super::schema::{Field, Kind, fields, kind, text_of};

/// The whole page.
pub struct Outline {
    /// Paragraphs above everything.
    pub introduction: Vec<String>,
    /// The operations by their tag, in the order of the tags.
    pub groups: Vec<Group>,
    /// The schemas by name.
    pub schemas: Vec<SchemaEntry>,
}

/// Operations of one tag.
pub struct Group {
    pub name: String,
    pub anchor: String,
    pub text: String,
    pub operations: Vec<OperationEntry>,
}

/// One operation.
pub struct OperationEntry {
    pub id: String,
    pub method: String,
    pub path: String,
    pub summary: String,
    pub text: String,
    pub parameters: Vec<Parameter>,
    pub body: Option<Body>,
    pub answers: Vec<AnswerEntry>,
    pub curl: String,
}

/// A parameter in path, query or headers.
pub struct Parameter {
    pub name: String,
    pub place: String,
    pub required: bool,
    pub kind: Kind,
    pub text: String,
}

/// What is sent.
pub struct Body {
    pub media: String,
    pub required: bool,
    pub kind: Kind,
}

/// One answer.
pub struct AnswerEntry {
    pub status: String,
    pub text: String,
    pub kind: Option<Kind>,
    pub headers: Vec<(String, String)>,
    pub example: Option<String>,
}

impl AnswerEntry {
    /// Whether this is what one hopes for.
    pub fn is_good(&self) -> bool {
        self.status.starts_with('2')
    }
}

/// One schema.
pub struct SchemaEntry {
    pub name: String,
    pub text: String,
    pub kind: Kind,
    pub fields: Vec<Field>,
    pub choices: Vec<Field>,
}

/// The order of methods within a path.
const METHODS: [&str; 5] = ["post", "get", "put", "patch", "delete"];

impl Outline {
    /// What is shown of a description.
    pub fn of(description: &Value) -> Outline {
        let introduction = text_of(&description["info"]["description"]);
        let groups = description["tags"].as_array().into_iter().flatten().map(|tag| group(description, tag));
        let schemas = description["components"]["schemas"].as_object().into_iter().flatten();
        Outline {
            introduction: introduction.split("\n\n").map(ToOwned::to_owned).collect(),
            groups: groups.collect(),
            schemas: schemas.map(|(name, schema)| schema_entry(name, schema)).collect(),
        }
    }
}

fn group(description: &Value, tag: &Value) -> Group {
    let name = text_of(&tag["name"]);
    let mut operations = Vec::new();
    for (path, item) in description["paths"].as_object().into_iter().flatten() {
        for method in METHODS {
            let operation = &item[method];
            if operation["tags"][0] == tag["name"] {
                operations.push(operation_entry(description, method, path, operation));
            }
        }
    }
    let anchor = format!("tag-{}", name.to_lowercase().replace(' ', "-"));
    Group { anchor, text: text_of(&tag["description"]), name, operations }
}

fn operation_entry(description: &Value, method: &str, path: &str, operation: &Value) -> OperationEntry {
    let parameters: Vec<&Value> = operation["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| follow(description, one))
        .collect();
    let content = |part: &Value| {
        let mut media = part["content"].as_object()?.iter();
        media.next().map(|(media, content)| (media.clone(), content.clone()))
    };
    let body = content(&operation["requestBody"]).map(|(media, content)| Body {
        media,
        required: operation["requestBody"]["required"] == true,
        kind: kind(&content["schema"]),
    });
    let answer = |(status, answer): (&String, &Value)| {
        let answer = follow(description, answer);
        let content = content(answer);
        let headers = answer["headers"].as_object().into_iter().flatten();
        AnswerEntry {
            status: status.clone(),
            text: text_of(&answer["description"]),
            kind: content.as_ref().map(|(_, content)| kind(&content["schema"])),
            headers: headers.map(|(name, header)| (name.clone(), text_of(&header["description"]))).collect(),
            example: content.map(|(media, content)| curl::shown(&media, &content["example"])),
        }
    };
    OperationEntry {
        id: text_of(&operation["operationId"]),
        method: method.to_uppercase(),
        path: path.to_owned(),
        summary: text_of(&operation["summary"]),
        text: text_of(&operation["description"]),
        curl: curl::command(method, path, &parameters, &operation["requestBody"]),
        parameters: parameters.iter().map(|parameter| parameter_entry(parameter)).collect(),
        body,
        answers: operation["responses"].as_object().into_iter().flatten().map(answer).collect(),
    }
}

fn parameter_entry(parameter: &Value) -> Parameter {
    Parameter {
        name: text_of(&parameter["name"]),
        place: text_of(&parameter["in"]),
        required: parameter["required"] == true,
        kind: kind(&parameter["schema"]),
        text: text_of(&parameter["description"]),
    }
}

fn schema_entry(name: &str, schema: &Value) -> SchemaEntry {
    let alternatives = ["oneOf", "anyOf"].iter().find_map(|word| schema[word].as_array());
    let choice = |choice: &Value| Field {
        name: choice["const"].as_str().map(ToOwned::to_owned).unwrap_or_default(),
        required: false,
        kind: kind(choice),
        text: text_of(&choice["description"]),
    };
    SchemaEntry {
        name: name.to_owned(),
        text: text_of(&schema["description"]),
        kind: kind(schema),
        fields: fields(schema),
        choices: alternatives.into_iter().flatten().map(choice).collect(),
    }
}

/// What a reference points to.
fn follow<'a>(description: &'a Value, part: &'a Value) -> &'a Value {
    let target = part["$ref"].as_str().and_then(|place| description.pointer(place.strip_prefix('#')?));
    target.unwrap_or(part)
}
