//! A draft as it is edited: a form or its JSON comes in, the same draft goes out, for the operation, or to be shown in
//! either view.

use askama::Template;
use axum::body::Body;
use axum::response::Response;
use flare_core::operations::{App, Failure};
use flare_model::invalid::Invalid;
use flare_model::resource::Resource;
use http::HeaderMap;
use serde_json::Value;

use super::fields;
use super::preview::Preview;
use crate::ui::form::Form;
use crate::ui::page::{Frame, PageError, html_with};

/// The field that has the whole draft, in the other view.
const JSON: &[&str] = &["json"];

/// A choice that leaves a setting out of the draft.
type Options = &'static [(&'static str, &'static str)];

/// A draft in one of its views.
pub struct DraftForm {
    /// The fields; or one, with all of it.
    pub form: Form,
    /// Whether it is shown as JSON.
    pub as_json: bool,
    /// The document that its expressions are tried on.
    pub trial_document: String,
    /// What the client would be told of it.
    pub trial_action: String,
}

/// The page on which a draft is edited.
#[derive(Template)]
#[template(path = "subscriptions/draft.html")]
pub struct DraftPage<'a> {
    /// The frame.
    pub frame: Frame,
    /// The draft.
    pub draft: DraftForm,
    /// The resource it is about.
    pub resource: &'a Resource,
    /// The head of the subscription, if it is there already.
    pub head: Option<crate::ui::subscriptions::head::Head>,
    /// Where it is saved.
    pub save: String,
    /// Where it goes to be shown in the other view.
    pub switch: String,
    /// Where one gets when one changes one's mind.
    pub back: String,
    /// When it would try.
    pub preview: Result<Preview, String>,
}

/// The fields of an action that differs.
pub struct Own {
    url: &'static str,
    method: &'static str,
    url_label: &'static str,
    method_label: &'static str,
}

const OWN: [Own; 3] = [
    Own {
        url: "endpoint.actions.create.url",
        method: "endpoint.actions.create.method",
        url_label: "Url of creates",
        method_label: "Method of creates",
    },
    Own {
        url: "endpoint.actions.update.url",
        method: "endpoint.actions.update.method",
        url_label: "Url of updates",
        method_label: "Method of updates",
    },
    Own {
        url: "endpoint.actions.delete.url",
        method: "endpoint.actions.delete.method",
        url_label: "Url of deletes",
        method_label: "Method of deletes",
    },
];

impl DraftForm {
    /// A draft that is there already, or an empty one.
    pub fn new(json: &Value, as_json: bool) -> DraftForm {
        let form = match as_json {
            true => Form::new(JSON, &[("json", &pretty(json))]),
            false => fields::from_json(json),
        };
        DraftForm { form, as_json, trial_document: String::new(), trial_action: String::new() }
    }

    /// A draft that was sent.
    pub async fn read(app: &App, headers: &HeaderMap, body: Body) -> Result<DraftForm, PageError> {
        let mut form = Form::read(fields::NAMES, app, headers, body).await?;
        let as_json = form.is("view", "json");
        let [trial_document, trial_action] =
            ["trial.document", "trial.action"].map(|name| form.value(name).to_owned());
        if as_json {
            let text = form.value("json").to_owned();
            form = Form::new(JSON, &[("json", &text)]);
        }
        Ok(DraftForm { form, as_json, trial_document, trial_action })
    }

    /// The JSON of it, as the API takes it.
    pub fn json(&self) -> Result<Value, Failure> {
        if !self.as_json {
            return Ok(fields::to_json(&self.form));
        }
        let text = self.form.value("json");
        let text = if text.trim().is_empty() { "{}" } else { text };
        serde_json::from_str(text)
            .map_err(|error| Invalid::new("json", format!("is not JSON: {error}")).into())
    }

    /// The same draft in the other view; one that is not JSON stays as it is and says why.
    pub fn switched(mut self) -> Result<DraftForm, PageError> {
        match self.json() {
            Ok(json) => {
                let DraftForm { form, as_json, .. } = DraftForm::new(&json, !self.as_json);
                Ok(DraftForm { form, as_json, ..self })
            }
            Err(failure) => {
                self.form.refuse(failure)?;
                Ok(self)
            }
        }
    }
}

impl DraftPage<'_> {
    /// The answer; a mistake is 400.
    pub fn answer(&self) -> Response {
        html_with(self.draft.form.status(), self)
    }

    fn is_new(&self) -> bool {
        self.head.is_none()
    }

    fn methods(&self) -> Options {
        &[
            ("", "as usual: POST"),
            ("post", "POST"),
            ("put", "PUT"),
            ("patch", "PATCH"),
            ("get", "GET"),
            ("delete", "DELETE"),
        ]
    }

    fn own_methods(&self) -> Options {
        &[
            ("", "as above"),
            ("post", "POST"),
            ("put", "PUT"),
            ("patch", "PATCH"),
            ("get", "GET"),
            ("delete", "DELETE"),
        ]
    }

    fn modes(&self) -> Options {
        &[("", "active: Flare sends by itself"), ("passive", "passive: the client asks")]
    }

    fn starts(&self) -> Options {
        &[("", "now: what changes from now on"), ("beginning", "beginning: first all that is there")]
    }

    fn revisions(&self) -> Options {
        &[("", "last: only the newest state"), ("all", "all: every revision, in order")]
    }

    fn progressions(&self) -> Options {
        &[
            ("", "as usual: geometric"),
            ("geometric", "geometric"),
            ("exponential", "exponential"),
            ("linear", "linear"),
            ("arithmetic", "arithmetic"),
        ]
    }

    fn formats(&self) -> Options {
        &[("", "as usual: Flare's own"), ("flare", "Flare's own"), ("cloudevents", "CloudEvents 1.0")]
    }

    fn event_modes(&self) -> Options {
        &[("", "as usual"), ("structured", "structured"), ("binary", "binary")]
    }

    fn choices(&self) -> Options {
        &[("", "as usual: yes"), ("true", "yes"), ("false", "no")]
    }

    fn actions(&self) -> Options {
        &[("create", "create"), ("update", "update"), ("delete", "delete")]
    }

    fn own_targets(&self) -> &'static [Own] {
        &OWN
    }

    /// Whether something is said, or wrong, about some action.
    fn has_own(&self) -> bool {
        let form = &self.draft.form;
        OWN.iter()
            .flat_map(|own| [own.url, own.method])
            .any(|name| form.given(name).is_some() || form.error(name).is_some())
    }

    fn preview_to(&self) -> String {
        format!("/ui/resources/{}/subscriptions/preview", self.resource.id())
    }

    fn trial(&self) -> String {
        format!("/ui/resources/{}/subscriptions/try", self.resource.id())
    }

    fn wildcards_hint(&self) -> String {
        let names = self.resource.wildcards().iter().map(|name| format!("{{{name}}}"));
        let names: Vec<String> = names.chain(["{revision}".to_owned()]).collect();
        format!("What Flare calls. It may use {}.", names.join(", "))
    }
}

/// JSON as a person writes it; an empty draft as one may begin it.
fn pretty(json: &Value) -> String {
    let empty = json.as_object().is_some_and(|fields| fields.is_empty());
    let begun = serde_json::json!({"endpoint": {"url": ""}});
    serde_json::to_string_pretty(if empty { &begun } else { json }).expect("JSON is plain data")
}
