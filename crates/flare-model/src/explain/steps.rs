//! The steps of an explanation: each takes the evidence and adds the facts of its part, or none.

use std::time::Duration;

use super::{Evidence, Fact, InLine, Kind, Known, Membership, Settings};
use crate::duration::HumanDuration;
use crate::feed::{ClientHas, Glimpse, State, Trouble};
use crate::subscription::Start;
use crate::time::Timestamp;

fn add(facts: &mut Vec<Fact>, at: Option<Timestamp>, fact: Kind, detail: impl Into<String>) {
    facts.push(Fact { at, fact, detail: detail.into() });
}

/// Which resource the url belongs to.
pub(super) fn pattern(evidence: &Evidence, facts: &mut Vec<Fact>) {
    let url = &evidence.url;
    let Some(owner) = &evidence.owner else {
        let detail = format!("no resource's endpoint fits {url}: scheme, host, port and every segment count");
        return add(facts, None, Kind::Pattern, detail);
    };
    let mut detail = format!("{url} belongs to resource {} ({})", owner.id, owner.endpoint);
    let less: Vec<String> =
        evidence.fitting.iter().map(|other| format!("{} ({})", other.id, other.endpoint)).collect();
    if !less.is_empty() {
        let less = less.join(", ");
        detail = format!("{detail}, the most specific of those it fits; less specific: {less}");
    }
    if owner.id != evidence.resource {
        let own = &evidence.resource;
        detail = format!("{detail}; the subscription is to {own}, so it hears nothing of this document");
    }
    add(facts, None, Kind::Pattern, detail);
}

/// What Flare has.
pub(super) fn revision(evidence: &Evidence, facts: &mut Vec<Fact>) {
    if evidence.owner.is_none() {
        return;
    }
    let Some(Known { revision, row, lane, updated_at }) = &evidence.document else {
        let detail =
            "Flare does not know this document: no PUT was accepted, or it was deleted and forgotten";
        return add(facts, None, Kind::Revision, detail);
    };
    let what = if row.deleted { "deleted at revision" } else { "at revision" };
    let detail = format!("it is {what} {revision}, change {} of lane {lane}", row.seq);
    add(facts, Some(*updated_at), Kind::Revision, detail);
}

/// What the subscription's filter says.
pub(super) fn filter(evidence: &Evidence, facts: &mut Vec<Fact>) {
    let detail = match &evidence.membership {
        None => return,
        Some(Membership::Included) => "the filter includes it as it is now".to_owned(),
        Some(Membership::Excluded) => {
            "the filter excludes it as it is now: the client is not to have it".to_owned()
        }
        Some(Membership::Unclear(error)) => {
            format!("the filter cannot say, so the client is left as it is: {error}")
        }
    };
    add(facts, None, Kind::Filter, detail);
}

/// What the client has, and where the feed is.
pub(super) fn standing(evidence: &Evidence, facts: &mut Vec<Fact>) {
    let (Some(known), Some(glimpse)) = (&evidence.document, &evidence.glimpse) else { return };
    let has = match glimpse.client_has(&known.row) {
        ClientHas::Newest if known.row.deleted => "the client does not have it, which is right",
        ClientHas::Newest => "the client has the newest state",
        ClientHas::Older if known.row.deleted => "the client has it, and has not heard that it is deleted",
        ClientHas::Older => "the client has an older state",
        ClientHas::Nothing => "the client does not have it",
        ClientHas::Unknown if glimpse.doubt => {
            "whether the client has it is unknown: the outcome of an earlier create or delete was lost"
        }
        ClientHas::Unknown => "the client has it, perhaps in the newest state",
    };
    add(facts, None, Kind::Standing, has);
    let (seq, position, cursor) = (known.row.seq, glimpse.position, glimpse.cursor);
    let place = if glimpse.unread {
        format!("the feed has read up to change {position} of the lane and has yet to come to {seq}")
    } else if seq <= cursor {
        format!("the feed's cursor is at {cursor}, so change {seq} is settled, or has a standing")
    } else {
        format!("the feed has read change {seq}; its cursor rests at {cursor}, behind something still open")
    };
    add(facts, None, Kind::Standing, place);
    if !glimpse.lags() && !glimpse.held && !known.row.deleted {
        add(facts, None, Kind::Standing, why(known, glimpse, &evidence.subscription));
    }
}

/// Attempts: made, under way, planned.
pub(super) fn attempt(evidence: &Evidence, facts: &mut Vec<Fact>) {
    let Some(glimpse) = &evidence.glimpse else { return };
    let waiting = glimpse.waiting.as_ref();
    if let Some(standing) = waiting
        && let State::Leased { until } = standing.state
    {
        let attempt = standing.trouble.as_ref().map_or(1, |trouble| trouble.attempts);
        let detail = format!(
            "the client has it on a lease that ends {}, attempt {attempt}",
            when(until, evidence.now)
        );
        return add(facts, Some(until), Kind::Attempt, detail);
    }
    let trouble = waiting.and_then(|standing| standing.trouble.as_deref()).or(evidence.dead.as_ref());
    if let Some(trouble) = trouble {
        add(facts, Some(trouble.last_attempt_at), Kind::Attempt, failed(trouble));
    }
    if let Some(flight) = glimpse.open {
        let mut detail = format!("a request is in flight: {}, change {}", flight.action.as_str(), flight.seq);
        if flight.replay != 0 {
            detail = format!("{detail}, for replay rpl_{}", flight.replay);
        }
        return add(facts, None, Kind::Attempt, detail);
    }
    if glimpse.again {
        add(facts, None, Kind::Attempt, "it changed while it was being sent, and is decided again next");
    }
    if let Some(standing) = waiting
        && let State::Waiting { due } = standing.state
    {
        let what = match (standing.replay, &standing.trouble) {
            (0, None) => "it was set aside, and is sent".to_owned(),
            (0, Some(_)) => "the next attempt is due".to_owned(),
            (replay, _) => format!("replay rpl_{replay} asks for it; it is due"),
        };
        add(facts, Some(due), Kind::Attempt, format!("{what} {}", when(due, evidence.now)));
    }
    if glimpse.dead {
        let detail =
            "the retry policy gave it up: it is a dead letter until it changes, is replayed or dropped";
        add(facts, None, Kind::Attempt, detail);
    }
}

fn failed(trouble: &Trouble) -> String {
    let how = match (trouble.status, &trouble.error) {
        (Some(status), _) => format!("answered {status}"),
        (None, Some(error)) => error.clone(),
        (None, None) => "had no answer".to_owned(),
    };
    let since = trouble.first_attempt_at;
    let (attempts, action) = (trouble.attempts, trouble.action.as_str());
    match attempts {
        1 => format!("one attempt ({action}) failed: {how}"),
        _ => format!("{attempts} attempts failed since {since}, the last one ({action}): {how}"),
    }
}

fn when(due: Timestamp, now: Timestamp) -> String {
    soon(due.since(now))
}

fn soon(wait: Duration) -> String {
    if wait.is_zero() { "now".to_owned() } else { format!("in {}", round(wait)) }
}

/// Nobody wants to read nanoseconds.
fn round(time: Duration) -> HumanDuration {
    let unit = if time < Duration::from_secs(1) { 1 } else { 100 };
    HumanDuration(Duration::from_millis((time.as_millis() as u64).div_ceil(unit) * unit))
}

/// Whether the subscription stands still.
pub(super) fn pause(evidence: &Evidence, facts: &mut Vec<Fact>) {
    let settings = &evidence.subscription;
    if let Some(disabled) = &settings.disabled {
        let detail =
            format!("the subscription is disabled: {}; POST .../resume lets it go on", disabled.reason);
        add(facts, Some(disabled.since), Kind::Pause, detail);
    } else if let Some(since) = settings.paused_since {
        let detail = "the subscription is paused; POST .../resume lets it go on";
        add(facts, Some(since), Kind::Pause, detail);
    }
}

/// Whether the client or its host has failed lately.
pub(super) fn breaker(evidence: &Evidence, facts: &mut Vec<Fact>) {
    let condition = &evidence.condition;
    if let Some((host, wait)) = &condition.silent_host {
        let again = soon(*wait);
        let detail = format!("the host {host} does not answer: nothing is sent there, but a probe {again}");
        add(facts, None, Kind::Breaker, detail);
    }
    let Some(since) = condition.failing_since else { return };
    let failures = condition.failures;
    let detail = match condition.probe_in {
        None => format!("{failures} attempts of the subscription failed in a row"),
        Some(wait) => format!(
            "{failures} attempts of the subscription failed in a row: one request at a time is sent until one \
             succeeds, the next {}",
            soon(wait)
        ),
    };
    add(facts, Some(since), Kind::Breaker, detail);
}

/// Connections that are waited for.
pub(super) fn host(evidence: &Evidence, facts: &mut Vec<Fact>) {
    let Some(InLine { host, open, most, slow }) = &evidence.condition.in_line else { return };
    let (to, key) = match host {
        Some(host) => (format!("host {host}"), "http.client.connections-per-host"),
        None => ("any host".to_owned(), "http.client.connections"),
    };
    let slow = slow.filter(|slow| *slow > 0);
    let slow = slow.map(|slow| format!(", {slow} by slow clients")).unwrap_or_default();
    let detail = format!("waits for a connection to {to}: {open} of {most} in use{slow} ({key})");
    add(facts, None, Kind::Host, detail);
}

/// The rate limit, and what the client asked for.
pub(super) fn rate(evidence: &Evidence, facts: &mut Vec<Fact>) {
    let rest = evidence.condition.rests_for;
    if !rest.is_zero() {
        let detail = format!("the client said that it is too much; it is asked again in {}", round(rest));
        add(facts, None, Kind::Rate, detail);
    }
    let Some(limit) = evidence.subscription.rate_limit else { return };
    let wait = evidence.condition.rate_wait;
    let now = match wait.is_zero() {
        true => "an attempt may begin now".to_owned(),
        false => format!("the next attempt may begin in {}", round(wait)),
    };
    let detail = format!("the rate limit is {} in {}; {now}", limit.quantity, limit.interval);
    add(facts, None, Kind::Rate, detail);
}

/// Concurrency, and what else takes its slots.
pub(super) fn concurrency(evidence: &Evidence, facts: &mut Vec<Fact>) {
    let condition = &evidence.condition;
    let (open, room) = (condition.in_flight, condition.room);
    let full = if open >= room { ": it waits for one of them to end" } else { "" };
    add(facts, None, Kind::Rate, format!("{open} of at most {room} requests are open{full}"));
    if condition.sweeping {
        add(facts, None, Kind::Rate, "a replay, the beginning or a changed filter is under way beside it");
    }
}

/// One line for a list.
pub(super) fn why(known: &Known, glimpse: &Glimpse, settings: &Settings) -> String {
    let still = match (&settings.disabled, settings.paused_since) {
        (Some(disabled), _) => format!("; the subscription is disabled: {}", disabled.reason),
        (None, Some(_)) => "; the subscription is paused".to_owned(),
        (None, None) => String::new(),
    };
    if let Some(standing) = &glimpse.waiting
        && let State::Leased { until } = standing.state
    {
        return format!("with the client, on a lease until {until}");
    }
    if let Some(flight) = glimpse.open {
        return format!("in flight ({})", flight.action.as_str());
    }
    if glimpse.again {
        return format!("changed while it was being sent, decided again next{still}");
    }
    if let Some(standing) = &glimpse.waiting
        && let State::Waiting { due } = standing.state
    {
        return match (standing.replay, &standing.trouble) {
            (0, None) => format!("set aside while its request was open, due at {due}{still}"),
            (0, Some(trouble)) => {
                let failed = if trouble.attempts == 1 { "attempt" } else { "attempts" };
                format!("waiting for retry at {due} after {} failed {failed}{still}", trouble.attempts)
            }
            (replay, _) => format!("waiting for replay rpl_{replay}, due at {due}{still}"),
        };
    }
    if glimpse.unread && glimpse.to_tell {
        let behind = known.row.seq.0.saturating_sub(glimpse.position.0);
        return format!("not read yet: the feed is {behind} changes of the lane behind it{still}");
    }
    match () {
        () if glimpse.dead => "given up: a dead letter".to_owned(),
        () if glimpse.doubt => {
            "an outcome was lost, and the client asked to drop the notification".to_owned()
        }
        () if known.row.deleted => "deleted, and the client does not have it".to_owned(),
        () if glimpse.held => "delivered".to_owned(),
        () if settings.start == Start::Now && known.updated_at <= settings.created_at => {
            "it has not changed since the subscription was created with start now".to_owned()
        }
        () => "the client asked to drop it, or its dead letter was dropped".to_owned(),
    }
}
