//! Forms: the fields of a request come in as text, named as the API names them; a draft for the operation goes out, or
//! the form again with the API's own message beside the field that it names.

use axum::body::Body;
use flare_core::operations::{App, Done, Failure};
use flare_http::body;
use flare_http::error::ApiError;
use flare_http::page::pairs_of;
use flare_model::invalid::Invalid;
use http::{HeaderMap, StatusCode, Uri};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::page::PageError;

/// A form that is shown: its fields, what is in them, and what is wrong.
///
/// A field's name is its path in the JSON of the API (`change.field`), so a message finds its place by itself.
pub struct Form {
    names: &'static [&'static str],
    values: Vec<(String, String)>,
    problem: Option<Problem>,
}

/// What is wrong with a form.
struct Problem {
    /// The field that it is shown beside, if there is one.
    field: Option<&'static str>,
    text: String,
    /// What the page that shows it answers.
    status: StatusCode,
}

/// What is wrong with a form, in a line.
pub struct Summary<'a> {
    /// The field, if the form has it.
    pub field: Option<&'static str>,
    /// The message.
    pub text: &'a str,
}

impl Form {
    /// A form with what stands in its fields at first.
    pub fn new(names: &'static [&'static str], values: &[(&str, &str)]) -> Form {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Form { names, values, problem: None }
    }

    /// A form filled from the address of the page.
    pub fn of_query(names: &'static [&'static str], uri: &Uri) -> Form {
        Form { names, values: pairs_of(uri.query().unwrap_or_default()), problem: None }
    }

    /// A form that was sent.
    pub async fn read(
        names: &'static [&'static str],
        app: &App,
        headers: &HeaderMap,
        body: Body,
    ) -> Result<Form, PageError> {
        let bytes = body::read(app, headers, body).await?;
        Ok(Form { names, values: pairs_of(&String::from_utf8_lossy(&bytes)), problem: None })
    }

    /// What stands in a field.
    pub fn value(&self, name: &str) -> &str {
        self.values.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    /// What stands in a field, without blanks around it; `None` where nothing does.
    pub fn given(&self, name: &str) -> Option<&str> {
        Some(self.value(name).trim()).filter(|value| !value.is_empty())
    }

    /// Whether a field has this value: for choices.
    pub fn is(&self, name: &str, value: &str) -> bool {
        self.value(name) == value
    }

    /// Puts something else into a field.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.values.retain(|(known, _)| known != name);
        self.values.push((name.to_owned(), value.into()));
    }

    /// What is wrong with a field.
    pub fn error(&self, name: &str) -> Option<&str> {
        self.problem
            .as_ref()
            .filter(|problem| problem.field == Some(name))
            .map(|problem| problem.text.as_str())
    }

    /// What is wrong with the form as a whole, or with a field that it does not show.
    pub fn general_error(&self) -> Option<&str> {
        self.problem.as_ref().filter(|problem| problem.field.is_none()).map(|problem| problem.text.as_str())
    }

    /// What is wrong with it, for whoever just pressed its button: the field, if the form has it, and the message.
    pub fn summary(&self) -> Option<Summary<'_>> {
        self.problem.as_ref().map(|problem| Summary { field: problem.field, text: &problem.text })
    }

    /// The status of a page that shows it: a mistake is 400.
    pub fn status(&self) -> StatusCode {
        self.problem.as_ref().map_or(StatusCode::OK, |problem| problem.status)
    }

    /// Does what a draft asks for. `None` where it is wrong or refused: then the form says why, and is to be shown again.
    pub async fn submit<D, T, Working: Future<Output = Done<T>>>(
        &mut self,
        draft: Result<D, impl Into<Failure>>,
        operation: impl FnOnce(D) -> Working,
    ) -> Result<Option<T>, PageError> {
        let done = match draft {
            Ok(draft) => operation(draft).await,
            Err(wrong) => Err(wrong.into()),
        };
        match done {
            Ok(done) => Ok(Some(done)),
            Err(failure) => {
                self.refuse(failure)?;
                Ok(None)
            }
        }
    }

    /// The form again with what an operation said against it. What is not for the user to mend is a page of its own.
    pub fn refuse(&mut self, failure: Failure) -> Result<(), PageError> {
        let status = StatusCode::BAD_REQUEST;
        self.problem = Some(match failure {
            Failure::Invalid(invalid) => {
                Problem { field: self.place(&invalid.field), text: invalid.to_string(), status }
            }
            Failure::Conflict(text) | Failure::TooMany(text) => Problem { field: None, text, status },
            // The store may take it in a moment, and what was typed is not to be typed again.
            failure @ Failure::Store(_) => {
                let error = ApiError::from(failure);
                let (status, _, detail) = error.parts();
                Problem { field: None, text: format!("nothing was saved: {detail}"), status }
            }
            other => return Err(other.into()),
        });
        Ok(())
    }

    /// The field of this form that a message is about: the very one, the one it is inside of, or the first inside it.
    fn place(&self, field: &str) -> Option<&'static str> {
        let within = |outer: &str, inner: &str| {
            inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let around = self.names.iter().filter(|name| within(name, field)).max_by_key(|name| name.len());
        around.or_else(|| self.names.iter().find(|name| within(field, name))).copied()
    }
}

/// A draft in the making: JSON as the API takes it, put together from fields.
#[derive(Default)]
pub struct Assembly(Map<String, Value>);

impl Assembly {
    /// Nothing yet.
    pub fn new() -> Assembly {
        Assembly::default()
    }

    /// Sets the value at a dotted path.
    pub fn set(&mut self, path: &str, value: impl Into<Value>) -> &mut Assembly {
        let mut at = &mut self.0;
        let mut steps = path.split('.').peekable();
        while let Some(step) = steps.next() {
            if steps.peek().is_none() {
                at.insert(step.to_owned(), value.into());
                return self;
            }
            let inner = at.entry(step).or_insert_with(|| Value::Object(Map::new()));
            if !inner.is_object() {
                *inner = Value::Object(Map::new());
            }
            at = inner.as_object_mut().expect("it was made one just now");
        }
        self
    }

    /// Takes fields over as text; empty ones are left out.
    pub fn texts(&mut self, form: &Form, names: &[&str]) -> &mut Assembly {
        for name in names {
            if let Some(value) = form.given(name) {
                self.set(name, value);
            }
        }
        self
    }

    /// Takes fields over as text, empty ones too: what the API says to an empty one is to be seen.
    pub fn required(&mut self, form: &Form, names: &[&str]) -> &mut Assembly {
        for name in names {
            self.set(name, form.value(name).trim());
        }
        self
    }

    /// Takes fields over as numbers; empty ones are left out, and what is no number goes on as text, so that the API's
    /// own message names it.
    pub fn numbers(&mut self, form: &Form, names: &[&str]) -> &mut Assembly {
        for name in names {
            if let Some(text) = form.given(name) {
                let number = serde_json::from_str::<serde_json::Number>(text).map(Value::Number);
                self.set(name, number.unwrap_or_else(|_| text.into()));
            }
        }
        self
    }

    /// The JSON as it is by now.
    pub fn json(self) -> Value {
        Value::Object(self.0)
    }

    /// The draft; a mistake names its field as it does in the API.
    pub fn draft<T: DeserializeOwned>(self) -> Result<T, Invalid> {
        draft(self.json())
    }
}

/// JSON read as a draft; a mistake names its field as it does in the API.
pub fn draft<T: DeserializeOwned>(json: Value) -> Result<T, Invalid> {
    serde_path_to_error::deserialize(json).map_err(|error| match error.path().to_string().as_str() {
        "." | "?" => Invalid::new(missing_field(&error.inner().to_string()).unwrap_or("body"), error.inner()),
        path => match missing_field(&error.inner().to_string()) {
            Some(name) => Invalid::new(format!("{path}.{name}"), error.inner()),
            None => Invalid::new(path, error.inner()),
        },
    })
}

/// A field that is missing is named by the message alone, not by the path.
fn missing_field(message: &str) -> Option<&str> {
    message.strip_prefix("missing field `")?.split('`').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flare_model::resource::ResourceDraft;
    use serde_json::json;

    const NAMES: &[&str] = &["endpoint", "change.field", "change.format", "lanes"];

    fn refused(invalid: Invalid) -> Form {
        let mut form = Form::new(NAMES, &[]);
        form.refuse(invalid.into()).unwrap();
        form
    }

    #[test]
    fn a_message_stands_beside_the_field_that_it_names() {
        let form = refused(Invalid::new("change.format", "is no layout"));
        assert_eq!(form.error("change.format"), Some("change.format: is no layout"));
        assert_eq!((form.error("change.field"), form.general_error()), (None, None));
        let inside = refused(Invalid::new("lanes[0].x", "odd"));
        assert!(inside.error("lanes").is_some());
        let around = refused(Invalid::new("change", "odd"));
        assert!(around.error("change.field").is_some());
        let nowhere = refused(Invalid::new("end", "odd"));
        assert_eq!(nowhere.general_error(), Some("end: odd"));
    }

    #[test]
    fn fields_become_the_json_of_the_api() {
        let form =
            Form::new(NAMES, &[("endpoint", " http://a/{id} "), ("change.field", "v"), ("lanes", "8")]);
        let mut draft = Assembly::new();
        draft.texts(&form, &["endpoint", "change.field", "change.format"]).numbers(&form, &["lanes"]);
        assert_eq!(draft.json(), json!({"endpoint": "http://a/{id}", "change": {"field": "v"}, "lanes": 8}));
    }

    #[test]
    fn what_does_not_fit_is_named_as_in_the_api() {
        let wrong = |json| draft::<ResourceDraft>(json).unwrap_err().field;
        assert_eq!(wrong(json!({"change": {"field": "v"}})), "endpoint");
        assert_eq!(wrong(json!({"endpoint": "x", "change": {}})), "change.field");
        assert_eq!(wrong(json!({"endpoint": "x", "change": {"field": "v"}, "lanes": "many"})), "lanes");
    }
}
