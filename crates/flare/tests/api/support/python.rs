//! Published libraries in Python: notifications and descriptions go in, what the libraries say of them comes out.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{Request, left_out};

/// Where `cargo xtask test` installs them.
const PYTHON: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/test-python/bin/python3");

/// The Python that has the libraries. `None` where they are not installed, see [`left_out`].
pub fn installed() -> Option<&'static str> {
    if !Path::new(PYTHON).exists() {
        left_out("what published libraries verify: `cargo xtask test` installs them");
        return None;
    }
    Some(PYTHON)
}

/// Runs a script with these requests, and answers what it prints for each, where the libraries are installed.
fn run(script: &str, requests: Vec<Value>) -> Option<Vec<Value>> {
    let mut child = Command::new(installed()?)
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("Python runs");
    let mut input = child.stdin.take().expect("it was piped");
    input.write_all(json!(requests).to_string().as_bytes()).expect("Python reads");
    drop(input);
    let output = child.wait_with_output().expect("Python ends");
    assert!(output.status.success(), "the script failed");
    let answers: Vec<Value> = serde_json::from_slice(&output.stdout).expect("Python answers JSON");
    Some(answers)
}

fn value(request: &Request) -> Value {
    json!({"headers": request.headers, "body": STANDARD.encode(&request.body)})
}

const VERIFY: &str = r#"
import base64, json, sys
from standardwebhooks.webhooks import Webhook, WebhookVerificationError
def verify(request):
    try:
        body = base64.b64decode(request["body"])
        Webhook(request["secret"]).verify(body, request["headers"], json_parse=False)
        return "verified"
    except WebhookVerificationError as error:
        return str(error)
print(json.dumps([verify(request) for request in json.load(sys.stdin)]))
"#;

/// What the reference library of Standard Webhooks says of each request with its secret: `verified`, or why not.
pub fn verify(requests: &[(&Request, &str)]) -> Option<Vec<String>> {
    let requests = requests.iter().map(|(request, secret)| {
        let mut value = value(request);
        value["secret"] = (*secret).into();
        value
    });
    let answers = run(VERIFY, requests.collect())?;
    Some(answers.iter().map(|answer| answer.as_str().expect("a text").to_owned()).collect())
}

const EVENTS: &str = r#"
import base64, json, sys
from cloudevents.core.bindings.http import HTTPMessage, from_http_event
def read(request):
    event = from_http_event(HTTPMessage(headers=request["headers"], body=base64.b64decode(request["body"])))
    attributes = {name: str(value) for name, value in event.get_attributes().items()}
    return {"attributes": attributes, "data": event.get_data() or None}
print(json.dumps([read(request) for request in json.load(sys.stdin)]))
"#;

/// What the library of CloudEvents reads out of each request: `attributes`, all as texts, and `data`.
pub fn read_events(requests: &[Request]) -> Option<Vec<Value>> {
    run(EVENTS, requests.iter().map(value).collect())
}

const VALIDATE: &str = r#"
import json, sys
from jsonschema_rs import Draft202012Validator
def mistakes(claim):
    schema = {"allOf": [claim["schema"]], "components": claim["components"]}
    found = Draft202012Validator(schema, validate_formats=True).iter_errors(claim["instance"])
    return [f"{claim['of']}: /{'/'.join(map(str, e.instance_path))}: {e.message}" for e in found]
print(json.dumps([mistakes(claim) for claim in json.load(sys.stdin)]))
"#;

/// What is wrong with claims (`of`, `schema`, `instance`) whose schemas refer to these components.
pub fn validate(components: &Value, mut claims: Vec<Value>) -> Option<Vec<String>> {
    for claim in &mut claims {
        claim["components"] = components.clone();
    }
    let answers = run(VALIDATE, claims)?;
    let mistakes = answers.iter().flat_map(|answer| answer.as_array().expect("a list of mistakes"));
    Some(mistakes.map(|mistake| mistake.as_str().expect("a text").to_owned()).collect())
}

/// Runs schemathesis against the description at `url`, by the configuration in `folder` and these words beyond it: whether it
/// found nothing, and what it printed.
pub fn schemathesis(
    folder: &str,
    url: &str,
    words: &[&str],
    variables: &[(&str, &str)],
) -> Option<(bool, String)> {
    let python = installed()?;
    // It writes files where it runs.
    let directory = tempfile::tempdir().expect("a directory for the test");
    let output = Command::new(Path::new(python).with_file_name("schemathesis"))
        .args(["--config-file", &format!("{folder}/schemathesis.toml"), "run", url])
        .args(words)
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("PYTHONPATH", folder)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .envs(variables.iter().copied())
        .current_dir(directory.path())
        .stdin(Stdio::null())
        .output()
        .expect("schemathesis runs");
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&text).into_owned()))
}

const OPEN_METRICS: &str = r#"
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
pages = json.load(sys.stdin)
print(json.dumps([[family.name for family in text_string_to_metric_families(page)] for page in pages]))
"#;

/// The names of the metrics that the strict parser of OpenMetrics finds in a page; it fails on any mistake.
pub fn open_metrics(page: &str) -> Option<BTreeSet<String>> {
    let answers = run(OPEN_METRICS, vec![page.into()])?;
    let names = answers[0].as_array().expect("a list").iter();
    Some(names.map(|name| name.as_str().expect("a name").to_owned()).collect())
}
