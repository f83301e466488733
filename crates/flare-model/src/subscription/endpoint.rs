//! Where notifications go: the draft of an endpoint comes in, urls, methods and headers by action go out, checked; or the
//! settings of a sink, for a producer that has one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ActionDraft, Draft, Target, Way};
use crate::feed::Action;
use crate::invalid::Invalid;
use crate::resource::Resource;
use crate::template::UrlTemplate;

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const MAX_HEADERS: usize = 64;

/// Headers that belong to the protocol or to Flare itself.
const RESERVED: [&str; 12] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authenticate",
    "te",
    "trailer",
    "upgrade",
    "expect",
    "http2-settings",
];

/// Where the notifications of a draft go.
pub(super) fn way(draft: &Draft, resource: &Resource) -> Result<Way, Invalid> {
    if let Some(sink) = &draft.sink {
        return Ok(Way::Sink(Arc::new(sink.check()?)));
    }
    let actions = &draft.endpoint.actions;
    let create = Arc::new(target(draft, Action::Create, &actions.create, resource)?);
    let update = match (&actions.create, &actions.update) {
        (None, None) => create.clone(),
        (_, own) => Arc::new(target(draft, Action::Update, own, resource)?),
    };
    let delete = match (&actions.update, &actions.delete) {
        (None, None) => update.clone(),
        (_, own) => Arc::new(target(draft, Action::Delete, own, resource)?),
    };
    Ok(Way::Http([create, update, delete]))
}

fn target(
    draft: &Draft,
    action: Action,
    own: &Option<Box<ActionDraft>>,
    resource: &Resource,
) -> Result<Target, Invalid> {
    let name = action.as_str();
    let (field, url) = match own.as_ref().and_then(|own| own.url.as_ref()) {
        Some(url) => (format!("endpoint.actions.{name}.url"), url),
        None => match &draft.endpoint.url {
            Some(url) => ("endpoint.url".to_owned(), url),
            None => {
                let problem = format!("is required, or endpoint.actions.{name}.url: {name} has none");
                return Err(Invalid::new("endpoint.url", problem));
            }
        },
    };
    let url = UrlTemplate::parse(url, resource.wildcards()).map_err(|e| Invalid::new(field, e))?;
    let (field, method) = match own.as_ref().and_then(|own| own.method.as_ref()) {
        Some(method) => (format!("endpoint.actions.{name}.method"), method.as_str()),
        None => ("endpoint.method".to_owned(), draft.endpoint.method.as_deref().unwrap_or("POST")),
    };
    let Some(method) = METHODS.iter().find(|known| known.eq_ignore_ascii_case(method)) else {
        let problem = format!("must be one of {}, got `{method}`", METHODS.join(", "));
        return Err(Invalid::new(field, problem));
    };
    let mut headers: BTreeMap<String, Vec<String>> = BTreeMap::new();
    add_headers(&mut headers, "endpoint.headers", &draft.endpoint.headers)?;
    if let Some(own) = own {
        let mut more = BTreeMap::new();
        add_headers(&mut more, &format!("endpoint.actions.{name}.headers"), &own.headers)?;
        headers.extend(more);
    }
    let headers =
        headers.into_iter().flat_map(|(name, values)| values.into_iter().map(move |v| (name.clone(), v)));
    Ok(Target { url, method, headers: headers.collect() })
}

/// Checks headers that Flare is to send; the field stands for all of them.
pub fn check_header_names(field: &str, given: &BTreeMap<String, Vec<String>>) -> Result<(), Invalid> {
    add_headers(&mut BTreeMap::new(), field, given)
}

fn add_headers(
    into: &mut BTreeMap<String, Vec<String>>,
    field: &str,
    given: &BTreeMap<String, Vec<String>>,
) -> Result<(), Invalid> {
    if given.len() > MAX_HEADERS {
        return Err(Invalid::new(field, format!("has more than {MAX_HEADERS} headers")));
    }
    for (name, values) in given {
        let field = format!("{field}.{name}");
        let lower = name.to_ascii_lowercase();
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(token) {
            return Err(Invalid::new(field, "is not a legal header name"));
        }
        if RESERVED.contains(&lower.as_str()) {
            return Err(Invalid::new(field, "belongs to the protocol and is set by Flare"));
        }
        if lower.starts_with("flare-") || lower.starts_with("webhook-") {
            return Err(Invalid::new(field, "begins like a header of Flare's own; choose another name"));
        }
        for value in values {
            let legal = |c: char| c == '\t' || (' '..='~').contains(&c);
            if !value.chars().all(legal) || value.len() > 8192 {
                let problem = "has a value that is not printable ASCII, or is longer than 8 KB";
                return Err(Invalid::new(field, problem));
            }
        }
        into.entry(lower).or_default().extend(values.iter().cloned());
    }
    Ok(())
}
