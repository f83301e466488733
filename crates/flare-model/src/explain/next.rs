//! What a person can do next: a verdict and the evidence come in, one sentence goes out.

use super::{Evidence, Verdict};

pub(super) fn step(evidence: &Evidence, verdict: Verdict) -> String {
    let deleted = evidence.document.as_ref().is_some_and(|document| document.row.deleted);
    let replay = "POST .../replay with {\"document\": …} sends its newest state again";
    match verdict {
        Verdict::NoMatch => {
            "compare the url with the endpoint of the resource, segment by segment, or ask about a \
             subscription of the resource that it belongs to"
                .into()
        }
        Verdict::Unknown => "have the origin PUT it, or look for a mistake in the url".into(),
        Verdict::InFlight => "wait for the client to answer, for its timeout at the longest".into(),
        Verdict::Disabled => "mend the client, and then POST .../resume".into(),
        Verdict::Paused => "POST .../resume".into(),
        Verdict::Waiting => waiting(evidence),
        Verdict::GaveUp => {
            format!("mend the client, and then {replay}; DELETE .../dead-letters?document=… drops it")
        }
        Verdict::Filtered => "nothing, if the filter is as it was meant; PATCH the filter otherwise".into(),
        Verdict::InDoubt => format!("{replay}, and its answer says what the client has"),
        Verdict::Discarded if deleted => {
            "POST .../replay with {\"document\": …} sends the delete again, if the client should take it"
                .into()
        }
        Verdict::Discarded => {
            format!("nothing, if the client meant to drop it; {replay}, and the next revision is sent anyway")
        }
        Verdict::Dropped => format!("{replay}, and the next revision is sent anyway"),
        Verdict::HeldBack => {
            "nothing, if `when` is as it was meant; PATCH it otherwise, and the next revision is told by it"
                .into()
        }
        Verdict::Delivered => "nothing".into(),
        Verdict::NotHeld if deleted => "nothing".into(),
        Verdict::NotHeld => format!("{replay}, if the client is to have it"),
    }
}

/// What it waits for, the rarest thing first.
fn waiting(evidence: &Evidence) -> String {
    let condition = &evidence.condition;
    match () {
        () if evidence.subscription.passive => {
            "have the client ask: POST .../reserve, GET .../stream, or POST .../deliver".into()
        }
        () if condition.silent_host.is_some() => {
            "see to it that the host answers; it is tried again by itself".into()
        }
        () if condition.in_line.is_some() => {
            "wait for a connection, or look at who has them; http.client.connections-per-host says how many \
             there may be"
                .into()
        }
        () if condition.fares.failing_since.is_some() => {
            "look at why the client fails (.../attempts); it is tried again by itself".into()
        }
        () if !condition.rests_for.is_zero() => "wait for as long as the client asked for".into(),
        () if !condition.rate_wait.is_zero() => "wait; delivery.rateLimit says how fast it goes".into(),
        () => "wait: it is sent by itself".into(),
    }
}
