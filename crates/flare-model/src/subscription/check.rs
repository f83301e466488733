//! Checks a subscription's draft against its resource: every mistake is named with its field and the remedy.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::content;
use super::expressions::expressions;
use super::{
    ActionDraft, DataTemplate, DataValue, Draft, RateLimit, Revisions, Scalar, ScalarTemplate, Spec, Target,
};
use crate::duration::HumanDuration;
use crate::feed::Action;
use crate::invalid::Invalid;
use crate::resource::Resource;
use crate::retry::RetryPolicy;
use crate::template::{TextTemplate, UrlTemplate};

/// What the configuration allows and fills in.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Where none is given.
    pub default_timeout: Duration,
    /// The longest.
    pub maximum_timeout: Duration,
    /// Where none is given.
    pub default_concurrency: u32,
    /// The most.
    pub maximum_concurrency: u32,
}

const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
const MAX_DATA: usize = 64;
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

/// Checks a draft and compiles it; [`completed`] shows what came of it.
pub fn check(draft: &Draft, resource: &Resource, limits: &Limits) -> Result<Spec, Invalid> {
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
    let targets = [create, update, delete];
    let delivery = &draft.delivery;
    let success = statuses("delivery.success", &delivery.success)?;
    let discard = statuses("delivery.discard", &delivery.discard)?;
    if let Some(both) = discard.iter().find(|status| success.contains(status)) {
        let problem = format!("{both} is in delivery.success too; a status can mean only one of them");
        return Err(Invalid::new("delivery.discard", problem));
    }
    let timeout = delivery.timeout.map_or(limits.default_timeout, |t| t.0);
    if timeout.is_zero() || timeout > limits.maximum_timeout {
        let most = HumanDuration(limits.maximum_timeout);
        let problem = format!("must be above 0 and at most {most}, got {}", HumanDuration(timeout));
        return Err(Invalid::new("delivery.timeout", problem));
    }
    let concurrency = delivery.concurrency.unwrap_or(limits.default_concurrency);
    if concurrency == 0 || concurrency > limits.maximum_concurrency {
        let most = limits.maximum_concurrency;
        let problem = format!("must be between 1 and {most}, got {concurrency}");
        return Err(Invalid::new("delivery.concurrency", problem));
    }
    check_rate(delivery.rate_limit)?;
    let retry = RetryPolicy::from(delivery.retry.as_deref().cloned().unwrap_or_default());
    retry.validate().map_err(|e| Invalid::new("delivery.retry", e))?;
    let content = content::check(draft, resource, &targets)?;
    let data = data(&draft.data, resource)?;
    let (filter, when) = expressions(draft, resource)?;
    let spec = Spec {
        targets,
        success,
        discard,
        timeout,
        concurrency,
        rate_limit: delivery.rate_limit,
        retry,
        content,
        data,
        mode: draft.mode.unwrap_or_default(),
        filter,
        when,
        start: draft.start.unwrap_or_default(),
        shards: draft.shards.unwrap_or(1),
        revisions: revisions(delivery.revision.as_deref())?,
    };
    check_shards(spec.shards, &spec, resource)?;
    Ok(spec)
}

fn revisions(asked: Option<&str>) -> Result<Revisions, Invalid> {
    match asked {
        None | Some("last") => Ok(Revisions::Last),
        Some("all") => Ok(Revisions::All),
        Some(other) => {
            Err(Invalid::new("delivery.revision", format!("must be `last` or `all`, got `{other}`")))
        }
    }
}

/// What was said, with every default filled in that the spec made of it: what users are shown.
pub fn completed(draft: &Draft, spec: &Spec) -> Draft {
    let mut draft = draft.clone();
    draft.endpoint.method.get_or_insert_with(|| "POST".into()).make_ascii_uppercase();
    let actions = &mut draft.endpoint.actions;
    for action in [&mut actions.create, &mut actions.update, &mut actions.delete] {
        if let Some(method) = action.as_mut().and_then(|action| action.method.as_mut()) {
            method.make_ascii_uppercase();
        }
    }
    if spec.success.is_empty() {
        draft.delivery.success = Some((100..600).filter(|status| spec.is_success(*status)).collect());
    }
    draft.delivery.timeout = Some(HumanDuration(spec.timeout));
    draft.delivery.concurrency = Some(spec.concurrency);
    draft.delivery.retry = Some(Box::new(spec.retry.clone().into()));
    draft.delivery.revision = Some(spec.revisions.as_str().into());
    content::fill(&mut draft.content, &spec.content);
    draft.mode = Some(spec.mode);
    draft.start = Some(spec.start);
    draft.shards = Some(spec.shards);
    draft
}

/// Each shard serves at least a lane, with at least one request at once and one token of the rate limit.
fn check_shards(shards: u32, spec: &Spec, resource: &Resource) -> Result<(), Invalid> {
    let lanes = u32::from(resource.view.lanes);
    let bounds = [
        (lanes, "the resource's lanes"),
        (spec.concurrency, "delivery.concurrency"),
        (spec.rate_limit.map_or(u32::MAX, |rate| rate.quantity), "delivery.rateLimit.quantity"),
    ];
    if shards == 0 {
        return Err(Invalid::new("shards", "must be at least 1, got 0"));
    }
    match bounds.iter().find(|(most, _)| shards > *most) {
        None => Ok(()),
        Some((most, what)) => {
            Err(Invalid::new("shards", format!("must be at most {what}, {most}, got {shards}")))
        }
    }
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
    let url = UrlTemplate::parse(url, resource.pattern.wildcards()).map_err(|e| Invalid::new(field, e))?;
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

fn statuses(field: &str, given: &Option<Vec<u16>>) -> Result<Vec<u16>, Invalid> {
    let Some(list) = given else { return Ok(Vec::new()) };
    if list.is_empty() {
        return Err(Invalid::new(field, "must not be empty; leave it out for the default"));
    }
    if let Some(wrong) = list.iter().find(|status| !(100..=599).contains(*status)) {
        return Err(Invalid::new(field, format!("{wrong} is not a status: they go from 100 to 599")));
    }
    Ok(list.clone())
}

fn check_rate(rate: Option<RateLimit>) -> Result<(), Invalid> {
    let Some(rate) = rate else { return Ok(()) };
    if rate.quantity == 0 {
        return Err(Invalid::new("delivery.rateLimit.quantity", "must be at least 1; pause to send nothing"));
    }
    let day = Duration::from_secs(24 * 3600);
    if rate.interval.0 < Duration::from_millis(1) || rate.interval.0 > day {
        let problem = format!("must be between 1ms and 24h, got {}", rate.interval);
        return Err(Invalid::new("delivery.rateLimit.interval", problem));
    }
    if let Some(burst) = rate.burst
        && !(1..=rate.quantity).contains(&burst)
    {
        let problem = format!("must be from 1 to the quantity, {}, got {burst}", rate.quantity);
        return Err(Invalid::new("delivery.rateLimit.burst", problem));
    }
    Ok(())
}

fn data(
    given: &BTreeMap<String, DataValue>,
    resource: &Resource,
) -> Result<BTreeMap<String, DataTemplate>, Invalid> {
    if given.len() > MAX_DATA {
        return Err(Invalid::new("data", format!("has more than {MAX_DATA} values")));
    }
    let mut compiled = BTreeMap::new();
    for (name, value) in given {
        let scalar = |value: &Scalar| {
            Ok(match value {
                Scalar::Text(text) => ScalarTemplate::Text(
                    TextTemplate::parse(text, resource.pattern.wildcards())
                        .map_err(|e| Invalid::new(format!("data.{name}"), e))?,
                ),
                Scalar::Boolean(value) => ScalarTemplate::Boolean(*value),
                Scalar::Number(value) => ScalarTemplate::Number(value.clone()),
            })
        };
        let template = match value {
            DataValue::One(value) => DataTemplate::One(scalar(value)?),
            DataValue::Many(values) => {
                DataTemplate::Many(values.iter().map(scalar).collect::<Result<_, _>>()?)
            }
        };
        compiled.insert(name.clone(), template);
    }
    Ok(compiled)
}
