//! The steps of an explanation: each takes the evidence and adds the facts of its part, or none.

use super::words::{self, considered};
use super::{Evidence, Fact, Gist, Kind, Known, Lately, Tried};
use crate::feed::{ClientHas, Glimpse, State, TRANSITION, Trouble};
use crate::pace::Throttle;
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
    let Some(filter) = &evidence.filter else { return };
    let said = considered(filter);
    let detail = match &filter.result {
        Ok(true) => format!("the filter includes it as it is now: {said}"),
        Ok(false) => format!("the filter excludes it as it is now, so the client is not to have it: {said}"),
        Err(_) => format!("the filter cannot say, so the client is left as it is: {said}"),
    };
    add(facts, None, Kind::Filter, detail);
}

/// What its `when` says.
pub(super) fn when(evidence: &Evidence, facts: &mut Vec<Fact>) {
    let Some(when) = &evidence.when else { return };
    let said = considered(when);
    let detail = match &when.result {
        Ok(true) => format!("`when` says to tell it as it is now: {said}"),
        Ok(false) => format!("`when` holds it back, so nothing is told: {said}"),
        Err(_) => format!("`when` cannot say, so the client is left as it is: {said}"),
    };
    add(facts, None, Kind::When, detail);
}

/// What the client has, and where the feed is.
pub(super) fn standing(evidence: &Evidence, facts: &mut Vec<Fact>) {
    let (Some(known), Some(glimpse)) = (&evidence.document, &evidence.glimpse) else { return };
    let has = match glimpse.client_has(&known.row) {
        ClientHas::Newest if known.row.deleted => "the client does not have it, which is right".to_owned(),
        ClientHas::Newest => "the client has the newest state".to_owned(),
        ClientHas::Older if known.row.deleted => {
            "the client has it, and has not taken that it is deleted".to_owned()
        }
        ClientHas::Older => match &evidence.lately.has {
            Some(has) => format!("the client has an older state: revision {has} of {}", known.revision),
            None => "the client has an older state; which one is not kept".to_owned(),
        },
        ClientHas::Nothing => "the client does not have it".to_owned(),
        ClientHas::Unknown if glimpse.doubt => {
            format!("whether the client has it is unknown: {}", words::doubt(glimpse))
        }
        ClientHas::Unknown if glimpse.open.is_some() => {
            "what the client has is unknown until it answers the request that is open".to_owned()
        }
        ClientHas::Unknown => {
            "whether the client has the newest state or an older one is unknown: a request was not answered"
                .to_owned()
        }
    };
    add(facts, None, Kind::Standing, has);
    let (seq, position, cursor) = (known.row.seq, glimpse.position, glimpse.cursor);
    let place = if glimpse.unread {
        format!("the feed has read up to change {position} of the lane and has yet to come to {seq}")
    } else if glimpse.to_sweep {
        format!("change {seq} is older than the feed; {}", words::why(&gist(evidence, known, glimpse)))
    } else if seq <= cursor {
        format!("the feed's cursor is at {cursor}, so change {seq} is settled, or has a standing")
    } else {
        format!("the feed has read change {seq}; its cursor rests at {cursor}, behind something still open")
    };
    add(facts, None, Kind::Standing, place);
    let told = !glimpse.is_owed() && !glimpse.dead && !known.row.deleted && !glimpse.held;
    if told || glimpse.noted && !glimpse.is_owed() && !glimpse.dead {
        let at =
            glimpse.note.as_ref().and_then(|note| note.story.as_ref()).map(|story| story.last_attempt_at);
        add(facts, at, Kind::Standing, words::why(&gist(evidence, known, glimpse)));
    }
}

fn gist<'a>(evidence: &'a Evidence, known: &'a Known, glimpse: &'a Glimpse) -> Gist<'a> {
    Gist {
        known,
        glimpse,
        settings: &evidence.subscription,
        filter: evidence.filter.as_ref(),
        when: evidence.when.as_ref(),
        has: evidence.lately.has.as_deref(),
        condition: &evidence.condition,
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
            words::when(until, evidence.now)
        );
        return add(facts, Some(until), Kind::Attempt, detail);
    }
    let standing = waiting.or(glimpse.letter.as_deref());
    match standing.and_then(|standing| standing.trouble.as_deref()) {
        Some(trouble) => add(facts, Some(trouble.last_attempt_at), Kind::Attempt, failed(trouble)),
        None => last(evidence, glimpse, facts),
    }
    if let Some(flight) = glimpse.open {
        let mut detail = format!("a request is in flight: {}, change {}", flight.action.as_str(), flight.seq);
        if !matches!(flight.replay, 0 | TRANSITION) {
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
            (TRANSITION, None) => "a changed filter asks for it; it is due".to_owned(),
            (0 | TRANSITION, Some(_)) => "the next attempt is due".to_owned(),
            (replay, _) => format!("replay rpl_{replay} asks for it; it is due"),
        };
        add(facts, Some(due), Kind::Attempt, format!("{what} {}", words::when(due, evidence.now)));
    }
    if glimpse.dead {
        let detail =
            "the retry policy gave it up: it is a dead letter until it changes, is replayed or dropped";
        add(facts, None, Kind::Attempt, detail);
    }
}

/// The last attempt, as far as it is kept.
fn last(evidence: &Evidence, glimpse: &Glimpse, facts: &mut Vec<Fact>) {
    let Lately { last, kept, .. } = &evidence.lately;
    if let Some(Tried { at, action, revision, newest, outcome, answer }) = last {
        let action = action.as_str();
        let which = if *newest { "" } else { ", which is not the newest change" };
        let detail =
            format!("the last attempt ({action}, revision {revision}{which}) was {outcome}: {answer}");
        add(facts, Some(*at), Kind::Attempt, detail);
    } else if glimpse.held && !glimpse.is_owed() {
        let detail = format!("when it was delivered is not known any more: {kept}");
        add(facts, None, Kind::Attempt, detail);
    }
}

fn failed(trouble: &Trouble) -> String {
    let how = match (trouble.status, &trouble.error) {
        (Some(status), Some(error)) => format!("answered {status}, but {error}"),
        (Some(status), None) => format!("answered {status}"),
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

/// Whether the subscription stands still.
pub(super) fn pause(evidence: &Evidence, facts: &mut Vec<Fact>) {
    let settings = &evidence.subscription;
    if let Some(disabled) = &settings.disabled {
        let detail =
            format!("the subscription is disabled: {}; POST .../resume lets it go on", disabled.reason);
        add(facts, Some(disabled.since), Kind::Pause, detail);
    } else if let Some(since) = settings.paused_since {
        let who = settings.pause.as_deref().map_or("paused".to_owned(), ToString::to_string);
        let detail = format!("the subscription is {who}; POST .../resume lets it go on");
        add(facts, Some(since), Kind::Pause, detail);
    }
}

/// Whether the client or its host has failed lately.
pub(super) fn breaker(evidence: &Evidence, facts: &mut Vec<Fact>) {
    let condition = &evidence.condition;
    if let Some((host, wait)) = &condition.silent_host {
        let again = words::soon(*wait);
        let detail = format!("the host {host} does not answer: nothing is sent there, but a probe {again}");
        add(facts, None, Kind::Breaker, detail);
    }
    let Some(since) = condition.fares.failing_since else { return };
    let failures = condition.failures;
    let attempts = if failures == 1 { "attempt" } else { "attempts" };
    let mut detail = if failures == 0 {
        "nothing has succeeded since then, and nothing has been tried since Flare was started".to_owned()
    } else {
        format!(
            "{failures} {attempts} of the subscription failed in a row (those open at the same time count once)"
        )
    };
    if let Some(Throttle { since, next }) = condition.throttle {
        let next = match next {
            Some(next) if next <= evidence.now => "the next now".to_owned(),
            Some(next) => format!("the next at {next}"),
            None if condition.in_flight > 0 => "one is open".to_owned(),
            None => "none is due".to_owned(),
        };
        detail = format!(
            "{detail}: one request at a time since {since}, until one succeeds; {next}; retries are sent \
             when they are due"
        );
    }
    let ever = if condition.fares.well_at.is_none() { "; none has ever succeeded" } else { "" };
    add(facts, Some(since), Kind::Breaker, format!("{detail}{ever}"));
}

/// Connections that are waited for.
pub(super) fn host(evidence: &Evidence, facts: &mut Vec<Fact>) {
    let Some(in_line) = &evidence.condition.in_line else { return };
    let key = match in_line.host {
        Some(_) => "http.client.connections-per-host",
        None => "http.client.connections",
    };
    add(facts, None, Kind::Host, format!("{} ({key})", in_line.words()));
}

/// The rate limit, and what the client asked for.
pub(super) fn rate(evidence: &Evidence, facts: &mut Vec<Fact>) {
    let rest = evidence.condition.rests_for;
    if !rest.is_zero() {
        let detail =
            format!("the client said that it is too much; it is asked again in {}", words::round(rest));
        add(facts, None, Kind::Rate, detail);
    }
    let Some(limit) = evidence.subscription.rate_limit else { return };
    let wait = evidence.condition.rate_wait;
    let now = match wait.is_zero() {
        true => "an attempt may begin now".to_owned(),
        false => format!("the next attempt may begin in {}", words::round(wait)),
    };
    let detail = format!("the rate limit is {} in {}; {now}", limit.quantity, limit.interval);
    add(facts, None, Kind::Rate, detail);
}

/// Concurrency, and what else takes its slots.
pub(super) fn concurrency(evidence: &Evidence, facts: &mut Vec<Fact>) {
    let condition = &evidence.condition;
    let (open, room) = (condition.in_flight, condition.room);
    let detail = match () {
        () if evidence.subscription.passive => {
            format!(
                "the subscription is passive: nothing is sent until its client asks for it, and {open} requests \
                 are open"
            )
        }
        () if room == 0 => "no request may be open now".to_owned(),
        () if open >= room && evidence.glimpse.as_ref().is_some_and(Glimpse::is_owed) => {
            format!("{open} of at most {room} requests are open: it waits for one of them to end")
        }
        () => format!("{open} of at most {room} requests are open"),
    };
    add(facts, None, Kind::Rate, detail);
    if condition.sweeping {
        add(facts, None, Kind::Rate, "a replay, the beginning or a changed filter is under way beside it");
    }
}
