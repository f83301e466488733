//! What a client is interested in, asked at the moment of sending: a change and a subscription's expressions come
//! in, the feed's decision goes out, and what was left out is counted.
//!
//! A subscription without expressions pays one branch.

use std::time::Duration;

use flare_model::feed::{Action, Attempt, Everything, Example, Feed, Filled, Interest, Met, Next};
use flare_model::filter::{EvaluationError, Filter, Inputs, Json};
use flare_model::ids::Ordinal;
use flare_model::time::Timestamp;

use crate::door::Clock;
use crate::journey::worker::states::Known;
use crate::notification::change::Change;
use crate::notification::compiled::Compiled;

/// How long the expressions of one subscription may keep its thread at a time. An evaluation is bounded, but a
/// log full of large documents that are none of the client's is many of them.
const SHARE: Duration = Duration::from_millis(5);

/// The time since a subscription began to look at documents in this turn.
pub struct Turn {
    began: Option<Duration>,
}

impl Turn {
    /// Begins now; a subscription without expressions has no need of it.
    pub fn begin(compiled: &Compiled, clock: &dyn Clock) -> Turn {
        Turn::of(compiled.spec.has_expressions(), clock)
    }

    fn of(has_expressions: bool, clock: &dyn Clock) -> Turn {
        Turn { began: has_expressions.then(|| clock.monotonic()) }
    }

    /// When it is over: when the next one may begin. As long as this one took, others have the thread.
    pub fn is_over(&self, clock: &dyn Clock) -> Option<Duration> {
        let began = self.began?;
        let now = clock.monotonic();
        let took = now.saturating_sub(began);
        (took >= SHARE).then(|| now + took)
    }
}

/// The reader meets a change. `state` is the document as the client last got it, where that is kept and certain.
pub fn read(compiled: &Compiled, feed: &mut Feed, change: &Change, state: Known, clock: &dyn Clock) -> Met {
    if !compiled.spec.has_expressions() {
        return feed.read(change.row(), &mut Everything);
    }
    let mut asked = Asked::new(compiled, change, state);
    let met = feed.read(change.row(), &mut asked);
    asked.count(feed, clock);
    met
}

/// A document that waits is tried again, or decided again.
pub fn retry(
    compiled: &Compiled,
    feed: &mut Feed,
    change: &Change,
    state: Known,
    clock: &dyn Clock,
) -> Option<Attempt> {
    if !compiled.spec.has_expressions() {
        return feed.retry(change.row(), &mut Everything);
    }
    let mut asked = Asked::new(compiled, change, state);
    let attempt = feed.retry(change.row(), &mut asked);
    asked.count(feed, clock);
    attempt
}

/// The next revision that a document is owed is looked at: the expressions are asked about that very one.
pub fn next_revision(
    compiled: &Compiled,
    feed: &mut Feed,
    ordinal: Ordinal,
    change: Option<&Change>,
    state: Known,
    clock: &dyn Clock,
) -> Next {
    let row = change.map(Change::row);
    let Some(change) = change.filter(|_| compiled.spec.has_expressions()) else {
        return feed.next_revision(ordinal, row, &mut Everything);
    };
    let mut asked = Asked::new(compiled, change, state);
    let next = feed.next_revision(ordinal, row, &mut asked);
    asked.count(feed, clock);
    next
}

/// A sweep meets a document. Only errors are counted here: what is handed over is decided again when it is sent.
pub fn sweep(
    compiled: &Compiled,
    feed: &mut Feed,
    change: &Change,
    now: Timestamp,
    clock: &dyn Clock,
) -> Filled {
    let updated_at = change.document.updated_at;
    if !compiled.spec.has_expressions() {
        return feed.sweep(change.row(), updated_at, now, &mut Everything);
    }
    let mut asked = Asked::new(compiled, change, None);
    let filled = feed.sweep(change.row(), updated_at, now, &mut asked);
    (asked.excluded, asked.untold) = (false, false);
    asked.count(feed, clock);
    filled
}

/// The expressions of one subscription about one change.
struct Asked<'a> {
    compiled: &'a Compiled,
    change: &'a Change,
    state: Known,
    excluded: bool,
    untold: bool,
    error: Option<EvaluationError>,
}

impl<'a> Asked<'a> {
    fn new(compiled: &'a Compiled, change: &'a Change, state: Known) -> Asked<'a> {
        Asked { compiled, change, state, excluded: false, untold: false, error: None }
    }

    fn decide(&mut self, filter: &'a Filter, action: Option<Action>) -> Option<bool> {
        match self.evaluate(filter, action) {
            Ok(result) => Some(result),
            Err(error) => {
                self.error = Some(error);
                None
            }
        }
    }

    fn evaluate(&self, filter: &Filter, action: Option<Action>) -> Result<bool, EvaluationError> {
        let document = &self.change.document;
        let resource = &self.compiled.resource;
        let values;
        let pairs;
        let wildcards: &[(&str, &str)] = if filter.mentions_wildcards() {
            values = resource.values(resource.name(&document.url, &document.revision));
            let names = resource.wildcards().iter().map(String::as_str);
            pairs = names.zip(values.iter().map(|value| &**value)).collect::<Vec<_>>();
            &pairs
        } else {
            &[]
        };
        let state = match &self.state {
            Some(kept) if filter.mentions_state() => Some(Json::new(kept.content.clone())?),
            _ => None,
        };
        filter.decide(&Inputs {
            document: self.change.json()?,
            revision: &document.revision,
            wildcards,
            action,
            state: state.as_ref(),
        })
    }

    /// Writes down what came of it; most often there is nothing.
    fn count(self, feed: &mut Feed, clock: &dyn Clock) {
        if !self.excluded && !self.untold && self.error.is_none() {
            return;
        }
        let filtering = feed.filtering_mut();
        filtering.excluded += u64::from(self.excluded);
        filtering.not_told += u64::from(self.untold);
        if let Some(EvaluationError(error)) = self.error {
            filtering.errors += 1;
            let document = self.change.document.url.to_string();
            filtering.last_error = Some(Example { at: clock.now(), document, error });
        }
    }
}

impl Interest for Asked<'_> {
    fn includes(&mut self) -> Option<bool> {
        let Some(filter) = &self.compiled.spec.filter else { return Some(true) };
        let included = self.decide(filter, None);
        self.excluded = included == Some(false);
        included
    }

    fn tells(&mut self, action: Action) -> Option<bool> {
        let Some(when) = &self.compiled.spec.when else { return Some(true) };
        // Nobody can say that an update is not worth telling to a client whose state is not certain.
        if action == Action::Update && self.state.is_none() && when.mentions_state() {
            return Some(true);
        }
        let told = self.decide(when, Some(action));
        self.untold = told == Some(false);
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::ManualClock;

    #[test]
    fn expressions_have_the_thread_for_five_milliseconds_and_then_others_for_as_long() {
        let clock = ManualClock::default();
        clock.advance(Duration::from_secs(1));
        let turn = Turn::of(true, &clock);
        clock.advance(SHARE - Duration::from_micros(1));
        assert_eq!(turn.is_over(&clock), None);
        clock.advance(Duration::from_micros(1));
        assert_eq!(turn.is_over(&clock), Some(Duration::from_secs(1) + SHARE * 2));
        // One evaluation took longer than the whole share.
        clock.advance(SHARE * 3);
        assert_eq!(turn.is_over(&clock), Some(Duration::from_secs(1) + SHARE * 8));
        assert_eq!(Turn::of(true, &clock).is_over(&clock), None, "the next one begins anew");
    }

    #[test]
    fn without_expressions_no_turn_ends() {
        let clock = ManualClock::default();
        let turn = Turn::of(false, &clock);
        clock.advance(Duration::from_secs(60));
        assert_eq!(turn.is_over(&clock), None);
    }
}
