//! Checks a subscription's draft against its resource: every mistake is named with its field and the remedy.

use std::collections::BTreeMap;
use std::time::Duration;

use super::expressions::expressions;
use super::{DataTemplate, DataValue, Draft, RateLimit, Revisions, Scalar, ScalarTemplate, Spec};
use super::{content, endpoint};
use crate::duration::HumanDuration;
use crate::invalid::Invalid;
use crate::resource::Resource;
use crate::retry::RetryPolicy;
use crate::template::TextTemplate;

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
    /// The longest time to live of a producer's notifications.
    pub maximum_ttl: Duration,
}

impl Limits {
    /// As if everything were allowed: for what was checked before.
    pub fn none() -> Limits {
        Limits {
            default_timeout: Duration::from_secs(1),
            maximum_timeout: Duration::MAX,
            default_concurrency: 1,
            maximum_concurrency: u32::MAX,
            maximum_ttl: Duration::MAX,
        }
    }
}

const MAX_DATA: usize = 64;

/// Checks a draft and compiles it; [`completed`] shows what came of it.
pub fn check(draft: &Draft, resource: &Resource, limits: &Limits) -> Result<Spec, Invalid> {
    let way = endpoint::way(draft, resource)?;
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
    let content = content::check(draft, resource, &way)?;
    let data = data(&draft.data, resource)?;
    let (filter, when) = expressions(draft, resource)?;
    let spec = Spec {
        way,
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
        revisions: revisions(delivery.revision.as_deref(), resource)?,
        ttl: ttl(draft.ttl, limits)?,
    };
    check_shards(spec.shards, &spec, resource)?;
    Ok(spec)
}

fn revisions(asked: Option<&str>, resource: &Resource) -> Result<Revisions, Invalid> {
    match asked {
        None if resource.is_raw() => Ok(Revisions::All),
        Some("last") if resource.is_raw() => {
            let problem =
                "must be `all`: every message of a consumer with payload.format `raw` is passed on, in order";
            Err(Invalid::new("delivery.revision", problem))
        }
        None | Some("last") => Ok(Revisions::Last),
        Some("all") => Ok(Revisions::All),
        Some(other) => {
            Err(Invalid::new("delivery.revision", format!("must be `last` or `all`, got `{other}`")))
        }
    }
}

fn ttl(given: Option<HumanDuration>, limits: &Limits) -> Result<Option<Duration>, Invalid> {
    let Some(HumanDuration(ttl)) = given else { return Ok(None) };
    if ttl.is_zero() || ttl > limits.maximum_ttl {
        let most = HumanDuration(limits.maximum_ttl);
        let got = HumanDuration(ttl);
        let problem = format!("must be above 0 and at most {most} (domain.maximum-ttl), got {got}");
        return Err(Invalid::new("ttl", problem));
    }
    Ok(Some(ttl))
}

/// What was said, with every default filled in that the spec made of it: what users are shown.
pub fn completed(draft: &Draft, spec: &Spec) -> Draft {
    let mut draft = draft.clone();
    if let Some(sink) = &mut draft.sink {
        sink.fill();
        return completed_rest(draft, spec);
    }
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
    completed_rest(draft, spec)
}

/// The same of what does not depend on where notifications go.
fn completed_rest(mut draft: Draft, spec: &Spec) -> Draft {
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
                    TextTemplate::parse(text, resource.wildcards())
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
