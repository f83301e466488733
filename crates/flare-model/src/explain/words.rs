//! Words that several facts share, and the one line of a list. What is known comes in; what is so goes out, and where it
//! cannot be known, that and why.

use std::time::Duration;

use super::{Considered, Gist};
use crate::duration::HumanDuration;
use crate::feed::{ClientHas, Glimpse, Left, Note, State, SweepKind, TRANSITION, Trouble};
use crate::subscription::Start;
use crate::time::Timestamp;

/// One line for a list.
pub(super) fn why(gist: &Gist<'_>) -> String {
    let Gist { known, glimpse, settings, condition, .. } = gist;
    let leased = glimpse.waiting.as_ref().is_some_and(|waits| matches!(waits.state, State::Leased { .. }));
    let still = match (&settings.disabled, settings.paused_since) {
        (Some(disabled), _) => format!("; the subscription is disabled: {}", disabled.reason),
        (None, Some(_)) => "; the subscription is paused".to_owned(),
        (None, None) if settings.passive && glimpse.is_owed() => {
            "; the subscription is passive: its client has to ask".to_owned()
        }
        (None, None) if leased => String::new(),
        (None, None) => condition.hindrance().map(|what| format!("; {what}")).unwrap_or_default(),
    };
    let owed = owed(gist);
    if let Some(owed) = owed {
        let open = glimpse.open.is_some();
        let still = if open { String::new() } else { still };
        let has = has_of(gist).map(|has| format!("; {has}")).unwrap_or_default();
        return format!("{owed}{has}{still}");
    }
    match () {
        () if glimpse.dead => given_up(gist),
        () if glimpse.doubt => in_doubt(gist),
        () if glimpse.noted => lacks(gist),
        () if glimpse.unread && glimpse.held => {
            format!("{}, and is left with it: {}", has_it(gist), undecided(gist))
        }
        () if known.row.deleted && glimpse.held => format!("{}, and nothing is owed", has_it(gist)),
        () if known.row.deleted => "deleted, and the client does not have it".to_owned(),
        () if glimpse.held => "delivered".to_owned(),
        () => not_held(gist),
    }
}

/// What is to be sent, and when.
fn owed(gist: &Gist<'_>) -> Option<String> {
    let Gist { known, glimpse, .. } = gist;
    if let Some(standing) = &glimpse.waiting
        && let State::Leased { until } = standing.state
    {
        return Some(format!("with the client, on a lease until {until}"));
    }
    if let Some(flight) = glimpse.open {
        return Some(format!("in flight ({}): the client has yet to answer", flight.action.as_str()));
    }
    if glimpse.again {
        return Some("changed while it was being sent, decided again next".to_owned());
    }
    if let Some(standing) = &glimpse.waiting {
        let State::Waiting { due } = standing.state else {
            return Some("the revision after the last one is looked for".to_owned());
        };
        return Some(match (standing.replay, &standing.trouble) {
            (0, None) => format!("set aside while its request was open, due at {due}"),
            (TRANSITION, None) => format!("a changed filter asks for it, due at {due}"),
            (0 | TRANSITION, Some(trouble)) => {
                let failed = if trouble.attempts == 1 { "attempt" } else { "attempts" };
                let (attempts, how) = (trouble.attempts, answered(trouble));
                format!("waiting for retry at {due} after {attempts} failed {failed}, the last {how}")
            }
            (replay, _) => format!("waiting for replay rpl_{replay}, due at {due}"),
        });
    }
    if glimpse.to_sweep {
        return Some(match glimpse.sweep {
            Some(SweepKind::Beginning) => "the beginning has yet to come to it".to_owned(),
            Some(SweepKind::Replay { .. }) => "a replay has yet to come to it".to_owned(),
            _ => "a changed filter has yet to come to it".to_owned(),
        });
    }
    if glimpse.unread && glimpse.to_tell {
        let behind = known.row.seq.0.saturating_sub(glimpse.position.0);
        let sent =
            if glimpse.unheard { ", and may have sent it before it was stopped without a word" } else { "" };
        return Some(format!("not read yet: the feed is {behind} changes of the lane behind it{sent}"));
    }
    None
}

/// Which revision the client has, where something newer is owed.
fn has_of(gist: &Gist<'_>) -> Option<String> {
    match gist.glimpse.client_has(&gist.known.row) {
        ClientHas::Older => gist.has.map(|_| has_it(gist)),
        _ => None,
    }
}

/// What the client has, of a document that it has.
fn has_it(gist: &Gist<'_>) -> String {
    let newest = &gist.known.revision;
    match (gist.known.row.deleted, gist.has) {
        (true, Some(has)) => format!("has revision {has} of a deleted document"),
        (true, None) => "has it still, though it is deleted".to_owned(),
        (false, Some(has)) => format!("has revision {has} of {newest}"),
        (false, None) => format!("has an older revision than {newest}, which one is not kept"),
    }
}

/// The same of any document of which nothing is owed.
fn has_what(gist: &Gist<'_>) -> String {
    match gist.glimpse.client_has(&gist.known.row) {
        ClientHas::Unknown if gist.glimpse.held => {
            "whether it has the newest state is not known: a request was not answered".to_owned()
        }
        ClientHas::Newest if gist.glimpse.held => "has the newest state".to_owned(),
        _ if gist.glimpse.held => has_it(gist),
        _ => "has nothing of it".to_owned(),
    }
}

fn given_up(gist: &Gist<'_>) -> String {
    let story = gist.glimpse.letter.as_ref().and_then(|letter| letter.trouble.as_deref());
    let has = if gist.glimpse.doubt { in_doubt(gist) } else { has_what(gist) };
    format!("{has}, {} was given up{}: a dead letter", what(gist, None), story.map(how).unwrap_or_default())
}

fn lacks(gist: &Gist<'_>) -> String {
    let has = has_what(gist);
    let Some(note) = &gist.glimpse.note else { return format!("{has}, and nothing is owed") };
    let what = what(gist, Some(note));
    match note.left {
        Left::Discarded | Left::LeaveDiscarded => {
            format!("{has}, {what} was discarded{}", note.story.as_deref().map(with).unwrap_or_default())
        }
        Left::Dropped | Left::LeaveDropped => {
            let how = note.story.as_deref().map(how).unwrap_or_default();
            format!("{has}, {what} was given up{how}, and its dead letter was dropped")
        }
        Left::HeldBack | Left::Unclear => format!("{has}, and is left with it: {}", undecided(gist)),
        Left::Asked => format!("{has}, {what} was owed when it was asked for again"),
    }
}

/// What it is that the client lacks.
fn what(gist: &Gist<'_>, note: Option<&Note>) -> String {
    let action = note.map_or_else(
        || {
            gist.glimpse
                .letter
                .as_ref()
                .and_then(|letter| letter.trouble.as_ref())
                .map(|trouble| trouble.action)
        },
        |note| note.story.as_ref().map(|story| story.action),
    );
    let older = note.is_some_and(|note| note.seq < gist.known.row.seq);
    match action {
        _ if older => "a revision before the newest".to_owned(),
        Some(crate::feed::Action::Delete) => "the delete".to_owned(),
        _ if gist.known.row.deleted => "the delete".to_owned(),
        _ => format!("revision {}", gist.known.revision),
    }
}

/// After how many attempts, and how the last one ended.
fn how(story: &Trouble) -> String {
    let (attempts, at) = (story.attempts, story.last_attempt_at);
    let words = if attempts == 1 { "attempt" } else { "attempts" };
    format!(" after {attempts} {words}, the last {} at {at}", answered(story))
}

/// With what, and when.
fn with(story: &Trouble) -> String {
    match story.status {
        Some(status) => format!(" with {status} at {}", story.last_attempt_at),
        None => format!(" by its client at {}", story.last_attempt_at),
    }
}

/// How an attempt ended, in words.
pub(super) fn answered(trouble: &Trouble) -> String {
    match (trouble.status, &trouble.error) {
        (Some(status), Some(error)) => format!("answered {status}, but {error}"),
        (Some(status), None) => format!("answered {status}"),
        (None, Some(error)) => format!("without an answer ({error})"),
        (None, None) => "without an answer".to_owned(),
    }
}

/// Why it is not known whether the client has a document.
pub(super) fn in_doubt(gist: &Gist<'_>) -> String {
    let why = doubt(gist.glimpse);
    match &gist.glimpse.note {
        Some(note) if note.left == Left::Discarded && !gist.glimpse.is_owed() => {
            let with = note.story.as_deref().map(with).unwrap_or_default();
            format!(
                "whether the client has it is unknown: {why}, and {} was discarded{with}",
                what(gist, Some(note))
            )
        }
        Some(note) if matches!(note.left, Left::Dropped | Left::LeaveDropped) && !gist.glimpse.is_owed() => {
            let (what, how) = (what(gist, Some(note)), note.story.as_deref().map(how).unwrap_or_default());
            format!(
                "whether the client has it is unknown: {why}, {what} was given up{how}, and its dead letter was dropped"
            )
        }
        _ => format!("whether the client has it is unknown: {why}"),
    }
}

/// What the doubt comes from, as far as that is kept.
pub(super) fn doubt(glimpse: &Glimpse) -> String {
    let standing = glimpse.waiting.as_ref().or(glimpse.letter.as_deref());
    let story = standing.and_then(|standing| standing.trouble.as_deref());
    match story {
        Some(story) if story.action.leaves_doubt() && !story.unheard && story.status.is_some() => {
            let (action, status) = (story.action.as_str(), story.status.unwrap_or_default());
            format!("it answered {status} to the {action}, which does not say that it took nothing of it")
        }
        Some(story) if story.action.leaves_doubt() && story.unheard => {
            format!("a {} was sent and not answered", story.action.as_str())
        }
        _ if glimpse.unheard || !glimpse.doubted => {
            "a create or delete may have been sent before Flare was stopped without a word".to_owned()
        }
        _ => "a create or delete before was not answered with success, and may have been taken".to_owned(),
    }
}

/// Why a client that could be told is not.
fn undecided(gist: &Gist<'_>) -> String {
    match (gist.filter, gist.when) {
        (Some(filter), _) if filter.result.is_err() => {
            format!("the filter cannot say ({})", considered(filter))
        }
        (_, Some(when)) if when.result == Ok(false) => format!("`when` holds it back ({})", considered(when)),
        (_, Some(when)) if when.result.is_err() => format!("`when` cannot say ({})", considered(when)),
        _ => "`when`, as it was then, held it back, or an expression had no result".to_owned(),
    }
}

fn not_held(gist: &Gist<'_>) -> String {
    let Gist { known, settings, .. } = gist;
    match (gist.filter, gist.when) {
        (Some(filter), _) if filter.result == Ok(false) => {
            format!("the filter excludes it ({})", considered(filter))
        }
        (Some(filter), _) if filter.result.is_err() => format!("the filter cannot say ({})", considered(filter)),
        _ if settings.start == Start::Now && known.updated_at <= settings.created_at => {
            "it has not changed since the subscription was created with start now".to_owned()
        }
        (_, Some(when)) if when.result == Ok(false) => format!("`when` holds it back ({})", considered(when)),
        (_, Some(when)) if when.result.is_err() => format!("`when` cannot say ({})", considered(when)),
        _ => "it was passed by when the feed came to it, and why is not kept: a filter or `when` that was another \
              one then, or what was dropped before Flare kept notes of that"
            .to_owned(),
    }
}

/// An expression, what it saw, and what came of it.
pub(super) fn considered(considered: &Considered) -> String {
    let Considered { expression, seen, result } = considered;
    let seen: String = seen.iter().map(|(path, value)| format!(", {path} is {value}")).collect();
    match result {
        Ok(result) => format!("`{expression}`{seen}: {result}"),
        Err(error) => format!("`{expression}`{seen}: {error}"),
    }
}

pub(super) fn when(due: Timestamp, now: Timestamp) -> String {
    soon(due.since(now))
}

pub(super) fn soon(wait: Duration) -> String {
    if wait.is_zero() { "now".to_owned() } else { format!("in {}", round(wait)) }
}

/// Nobody wants to read nanoseconds.
pub(super) fn round(time: Duration) -> HumanDuration {
    let unit = if time < Duration::from_secs(1) { 1 } else { 100 };
    HumanDuration(Duration::from_millis((time.as_millis() as u64).div_ceil(unit) * unit))
}
