//! What is written down about one operation, in the order in which its file says it; an OpenAPI operation object goes
//! out. What every operation of a kind has (ids in the path, errors) is added here, so that no file repeats it.

use flare_core::config::{AuthMode, Config};
use flare_model::access::Need;
use flare_model::producer::ProducerView;
use flare_model::subscription::View;
use http::Method;
use schemars::JsonSchema;
use serde_json::{Map, Value, json};

use super::errors;
use super::schemas::Schemas;

/// What is known of an operation so far.
pub struct Notes<'a> {
    /// The configuration of the node, for bounds and defaults.
    pub config: &'a Config,
    schemas: &'a mut Schemas,
    operation: Map<String, Value>,
    parameters: Vec<Value>,
    responses: Map<String, Value>,
    need: Need,
    /// What is said of subscriptions is said of producers.
    producers: bool,
}

/// Groups of operations, in the order in which they are shown.
pub const TAGS: [(&str, &str); 10] = [
    ("Resources", "What is tracked."),
    ("Consumers", "Sources of messages that are fed as documents."),
    ("Subscriptions", "Who is told, and how."),
    ("Producers", "Who is told of a consumer's documents, and how: what subscriptions are to a resource."),
    ("Pull mode", "Passive subscriptions: clients that ask instead of being told."),
    ("Documents", "What changed. `url` is the document's real url, raw or percent-encoded as a whole."),
    ("Insight", "Why a client was or was not told, and what would happen if. None of them changes anything."),
    (
        "Access",
        "Tokens, accounts, and what was done, where there is authentication (`auth.mode = \"token\"`).",
    ),
    ("Cluster", "The nodes, and which of them has what. A node by itself is a cluster of one."),
    ("Node", "What Flare says of itself."),
];

impl<'a> Notes<'a> {
    /// About the operation at this path, as the description writes it.
    pub fn new(config: &'a Config, schemas: &'a mut Schemas, template: &str, need: Need) -> Notes<'a> {
        let parameters: Vec<Value> = path_names(template)
            .map(|name| json!({"$ref": format!("#/components/parameters/{name}")}))
            .collect();
        let mut notes = Notes {
            config,
            schemas,
            operation: Map::new(),
            parameters,
            responses: Map::new(),
            need,
            producers: false,
        };
        if !notes.parameters.is_empty() {
            notes.refuses_as("404");
        }
        for status in ["500", "503"] {
            notes.refuses_as(status);
        }
        notes
    }

    /// The operation of a subscription is described as that of a producer, which it is as well.
    pub fn speaks_of_producers(&mut self) {
        self.producers = true;
        for parameter in &mut self.parameters {
            if parameter["$ref"] == "#/components/parameters/id" {
                parameter["$ref"] = "#/components/parameters/producer".into();
            }
        }
    }

    /// A text about subscriptions, as it is about producers.
    fn worded(&self, text: &str) -> String {
        if !self.producers {
            return text.to_owned();
        }
        let text = text.replace("Subscription", "Producer").replace("subscription", "producer");
        text.replace("a resource", "a consumer").replace("its endpoint", "its target")
    }

    /// Its name for programs, its group, and what it does in a few words.
    pub fn is(&mut self, id: &str, tag: &str, summary: &str) -> &mut Self {
        let (id, tag, summary) = match self.producers {
            false => (id.to_owned(), tag, summary.to_owned()),
            true if id.contains("Subscription") || id.contains("Producer") => {
                (self.worded(id), "Producers", self.worded(summary))
            }
            true => (format!("{id}OfProducer"), "Producers", self.worded(summary)),
        };
        assert!(TAGS.iter().any(|(known, _)| *known == tag), "{tag} is not a group");
        self.operation.insert("operationId".into(), id.into());
        self.operation.insert("tags".into(), json!([tag]));
        self.operation.insert("summary".into(), summary.into());
        self
    }

    /// What it does, in Markdown.
    pub fn text(&mut self, text: impl Into<String>) -> &mut Self {
        let text = self.worded(&text.into());
        self.operation.insert("description".into(), text.into());
        self
    }

    /// It touches no store, so there is nothing to go wrong.
    pub fn never_fails(&mut self) -> &mut Self {
        self.responses.retain(|status, _| status != "500" && status != "503");
        self
    }

    /// It answers with these and with nothing else.
    pub fn answers_only(&mut self, statuses: &[u16]) -> &mut Self {
        self.responses.retain(|status, _| statuses.iter().any(|known| known.to_string() == *status));
        self
    }

    /// It wants the administrator's token where there is one.
    pub fn needs_token(&mut self) -> &mut Self {
        self.operation.insert("security".into(), json!([{}, {super::document::TOKEN: []}]));
        self
    }

    /// A query parameter that may be left out.
    pub fn query(&mut self, name: &str, schema: Value, text: &str, example: Value) -> &mut Self {
        self.parameter("query", name, schema, text, example, false)
    }

    /// A query parameter that has to be there.
    pub fn needs_query(&mut self, name: &str, schema: Value, text: &str, example: Value) -> &mut Self {
        self.parameter("query", name, schema, text, example, true)
    }

    /// A header that may be left out.
    pub fn header(&mut self, name: &str, schema: Value, text: &str, example: Value) -> &mut Self {
        self.parameter("header", name, schema, text, example, false)
    }

    fn parameter(
        &mut self,
        place: &str,
        name: &str,
        schema: Value,
        text: &str,
        example: Value,
        required: bool,
    ) -> &mut Self {
        self.parameters.push(json!({
            "name": name, "in": place, "required": required, "description": text, "schema": schema,
            "example": example,
        }));
        self.refuses_as("400")
    }

    /// `limit` and `offset`.
    pub fn pages(&mut self) -> &mut Self {
        for name in ["limit", "offset"] {
            self.parameters.push(json!({"$ref": format!("#/components/parameters/{name}")}));
        }
        self.refuses_as("400")
    }

    /// What a type looks like in a query.
    pub fn schema<T: JsonSchema>(&mut self) -> Value {
        self.schemas.request::<T>()
    }

    /// What a type looks like in an answer.
    pub fn answer_schema<T: JsonSchema>(&mut self) -> Value {
        self.schemas.answer::<T>()
    }

    /// Adds to a property of a request what only the configuration knows.
    pub fn bound(&mut self, schema: &'static str, property: &'static str, says: Value) -> &mut Self {
        self.schemas.bound(schema, property, says);
        self
    }

    /// A body of JSON that has to be there.
    pub fn body<T: JsonSchema>(&mut self, example: Value) -> &mut Self {
        let schema = self.schemas.request::<T>();
        self.body_as("application/json", schema, true, example)
    }

    /// A body of JSON that may be empty.
    pub fn optional_body<T: JsonSchema>(&mut self, example: Value) -> &mut Self {
        let schema = self.schemas.request::<T>();
        self.body_as("application/json", schema, false, example)
    }

    /// A JSON Merge Patch of what a type looks like in requests, without the members `but`.
    pub fn patch_body<T: JsonSchema>(&mut self, but: &'static [&'static str], example: Value) -> &mut Self {
        let schema = self.schemas.patch::<T>(but);
        self.body_as("application/json", schema, true, example)
    }

    /// Any body.
    pub fn body_as(&mut self, media: &str, schema: Value, required: bool, example: Value) -> &mut Self {
        let content = json!({media: {"schema": schema, "example": example}});
        self.operation.insert("requestBody".into(), json!({"required": required, "content": content}));
        for status in ["400", "408", "413"] {
            self.refuses_as(status);
        }
        self
    }

    /// A JSON answer.
    pub fn answers<T: JsonSchema>(&mut self, status: u16, text: &str, mut example: Value) -> &mut Self {
        let mut schema = self.schemas.answer::<T>();
        if self.producers && T::schema_name() == View::schema_name() {
            (schema, example) = (self.schemas.answer::<ProducerView>(), super::examples::producer());
        }
        let text = &self.worded(text);
        self.answers_as(status, text, "application/json", schema, example)
    }

    /// A list with its pagination.
    pub fn answers_list<T: JsonSchema>(&mut self, plural: &str, text: &str, entry: Value) -> &mut Self {
        let (entries, pagination) =
            (self.schemas.answer::<T>(), self.schemas.answer::<crate::page::Pagination>());
        let schema = json!({
            "type": "object",
            "required": ["pagination", plural],
            "properties": {"pagination": pagination, plural: {"type": "array", "items": entries}},
        });
        let example = json!({"pagination": {"limit": 30, "offset": 0, "total": 1}, plural: [entry]});
        self.answers_as(200, text, "application/json", schema, example)
    }

    /// Any answer.
    pub fn answers_as(
        &mut self,
        status: u16,
        text: &str,
        media: &str,
        schema: Value,
        example: Value,
    ) -> &mut Self {
        let content = json!({media: {"schema": schema, "example": example}});
        self.responses.insert(status.to_string(), json!({"description": text, "content": content}));
        self
    }

    /// Another form of an answer that was described already.
    pub fn or_as(&mut self, status: u16, media: &str, schema: Value, example: Value) -> &mut Self {
        let response = self.responses.get_mut(&status.to_string()).expect("the answer is described first");
        response["content"][media] = json!({"schema": schema, "example": example});
        self
    }

    /// An answer without a body.
    pub fn answers_nothing(&mut self, status: u16, text: &str) -> &mut Self {
        self.responses.insert(status.to_string(), json!({"description": text}));
        self
    }

    /// A header of an answer that was described already.
    pub fn with_header(&mut self, status: u16, name: &str, schema: Value, text: &str) -> &mut Self {
        let response = self.responses.get_mut(&status.to_string()).expect("the answer is described first");
        response["headers"][name] = json!({"required": true, "description": text, "schema": schema});
        self
    }

    /// `Location` of what was made.
    pub fn with_location(&mut self, status: u16) -> &mut Self {
        let schema = json!({"type": "string", "format": "uri-reference"});
        self.with_header(status, "Location", schema, "Where it is.")
    }

    /// An error, and when it comes.
    pub fn refuses(&mut self, status: u16, when: &str) -> &mut Self {
        let error = errors::response(status, when);
        self.responses.insert(status.to_string(), error);
        self
    }

    fn refuses_as(&mut self, status: &str) -> &mut Self {
        let place = format!("#/components/responses/{}", errors::name(status));
        self.responses.entry(status).or_insert_with(|| json!({"$ref": place}));
        self
    }

    /// What it needs of whoever asks, and how those are refused that do not have it.
    fn guard(&mut self) {
        let scopes = match self.need {
            Need::Nothing => return,
            Need::Scope(scopes) | Need::Node(scopes) => {
                scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>()
            }
            Need::Operator => vec!["operator"],
        };
        self.operation.insert("x-scopes".into(), json!(scopes));
        if self.config.auth.mode == AuthMode::Token {
            self.operation.insert("security".into(), json!([{super::document::TOKEN: []}]));
            self.refuses_as("401").refuses_as("403");
        }
    }

    /// The operation object.
    pub fn finish(mut self, method: &Method) -> Value {
        for required in ["operationId", "tags", "summary"] {
            assert!(self.operation.contains_key(required), "a {method} has no {required}");
        }
        self.guard();
        self.operation.insert("parameters".into(), self.parameters.into());
        self.operation.insert("responses".into(), self.responses.into());
        self.operation.into()
    }
}

/// The names of the parameters in a path.
pub fn path_names(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(name, _)| name)
}
