//! What is known of some documents and one client: what its thread knows, what the ledger has beside that, what its
//! expressions say, and what it was told lately. Documents come in; a [`Seen`] for each goes out.

use std::time::Duration;

use flare_model::document::Document;
use flare_model::duration::HumanDuration;
use flare_model::explain::{Condition, Considered, Gist, Known, Lately, Settings, Tried, why};
use flare_model::feed::{Action, ClientHas, Glimpse, Interest, Kept, decide};
use flare_model::filter::{EvaluationError, Filter, Inputs, Json};
use flare_model::ids::{FeedId, Seq};
use flare_model::subscription::Mode;

use crate::journey::{Command, KnownOfDocuments};
use crate::observe;
use crate::operations::App;
use crate::operations::Done;
use crate::registry::Subscription;

/// So long the ledger is waited for. When it is over: what it has is told, which may be a little older.
const PATIENCE: Duration = Duration::from_secs(1);

/// Revisions before the newest that are looked at, of one document. When there are more: the client is taken to be owed one.
const BEFORE: usize = 32;

/// What is known of one document and one client.
pub(in crate::operations) struct Seen {
    pub known: Known,
    pub glimpse: Glimpse,
    /// What the filter says of it as it is now.
    pub filter: Option<Considered>,
    /// What `when` says of telling it now, if there is something to tell.
    pub when: Option<Considered>,
    pub lately: Lately,
    /// A replay would send something of it.
    pub to_replay: bool,
}

impl Seen {
    /// What the client has.
    pub fn client_has(&self) -> ClientHas {
        self.glimpse.client_has(&self.known.row)
    }

    /// Whether all is said of it that its client is told: nothing is owed, unread or given up.
    pub fn is_settled(&self) -> bool {
        !self.glimpse.is_owed() && !self.glimpse.unread && !self.glimpse.dead
    }

    /// Why, in one line.
    pub fn why(&self, settings: &Settings, condition: &Condition) -> String {
        why(&Gist {
            known: &self.known,
            glimpse: &self.glimpse,
            settings,
            filter: self.filter.as_ref(),
            when: self.when.as_ref(),
            has: self.lately.has.as_deref(),
            condition,
        })
    }
}

impl App {
    /// What is known of some documents of a subscription's resource, in order; nothing for one whose lane is served by
    /// nobody just now.
    pub(in crate::operations) async fn look_at(
        &self,
        subscription: &Subscription,
        documents: &[Document],
    ) -> Done<(Vec<Option<Seen>>, Condition)> {
        let rows = documents.iter().map(|document| (document.lane.index, document.row)).collect();
        let KnownOfDocuments { mut glimpses, condition } = self.known_of(subscription, rows).await?;
        let mentions_state =
            subscription.compiled.spec.when.as_ref().is_some_and(|when| when.mentions_state());
        if mentions_state || glimpses.iter().flatten().any(|glimpse| glimpse.dead || glimpse.noted) {
            // None of it is kept in memory: the ledger is to know what the thread knows, if it can be written.
            let _ = tokio::time::timeout(PATIENCE, self.record(subscription)).await;
            for (document, glimpse) in documents.iter().zip(&mut glimpses) {
                if let Some(glimpse) = glimpse {
                    self.look_up(subscription, document, glimpse).await?;
                }
            }
        }
        let urls: Vec<&str> = documents.iter().map(|document| &*document.url).collect();
        let mut lately = self.journey.observe().lately(subscription.number(), &urls);
        let mut seen = Vec::with_capacity(documents.len());
        for (document, glimpse) in documents.iter().zip(glimpses) {
            let Some(glimpse) = glimpse else {
                seen.push(None);
                continue;
            };
            let state = match mentions_state {
                true => {
                    let feed = FeedId { subscription: subscription.number(), lane: document.lane.index };
                    self.store.ledger.state(feed, glimpse.life, document.row.ordinal).await?
                }
                false => None,
            };
            let lately = lately.remove(&*document.url).unwrap_or_default();
            let mut gathered = self.gather(subscription, document, glimpse, state.as_ref(), lately);
            let glimpse = &mut gathered.glimpse;
            if let Some(since) = glimpse.since.filter(|_| glimpse.unread && !glimpse.to_tell) {
                glimpse.to_tell =
                    self.tells_before(subscription, document, glimpse, state.as_ref(), since).await?;
            }
            seen.push(Some(gathered));
        }
        Ok((seen, condition))
    }

    /// Whether a client that wants every revision is going to be told of one before the newest, of which it is not.
    async fn tells_before(
        &self,
        subscription: &Subscription,
        document: &Document,
        glimpse: &Glimpse,
        state: Option<&Kept>,
        since: Seq,
    ) -> Done<bool> {
        let mut from = Seq(glimpse.position.0 + 1);
        for _ in 0..BEFORE {
            let wanted = [(document.row.ordinal, from)];
            let (found, _) = self.store.documents.next_revisions(document.lane, since, &wanted).await?;
            let older = found.into_iter().flatten().next().filter(|older| older.row.seq < document.row.seq);
            let Some(older) = older else { return Ok(false) };
            let mut asked =
                Asked { subscription, document: &older, state, json: None, filter: None, when: None };
            if glimpse.tells_of(&older.row, &mut asked) {
                return Ok(true);
            }
            from = Seq(older.row.seq.0 + 1);
        }
        Ok(true)
    }

    /// What the ledger has of a document beside what is in memory.
    async fn look_up(
        &self,
        subscription: &Subscription,
        document: &Document,
        glimpse: &mut Glimpse,
    ) -> Done<()> {
        let feed = FeedId { subscription: subscription.number(), lane: document.lane.index };
        if glimpse.dead {
            let letter = self.store.ledger.standing(feed, document.row.ordinal).await?;
            glimpse.letter = letter.map(Box::new);
        }
        if glimpse.noted {
            glimpse.note = self.store.ledger.note(feed, document.row.ordinal).await?.map(Box::new);
        }
        Ok(())
    }

    fn gather(
        &self,
        subscription: &Subscription,
        document: &Document,
        glimpse: Glimpse,
        state: Option<&Kept>,
        lately: observe::Lately,
    ) -> Seen {
        let mut asked = Asked { subscription, document, state, json: None, filter: None, when: None };
        let glimpse = glimpse.under(&document.row, document.updated_at, &mut asked);
        let wants = if document.row.deleted { Some(false) } else { asked.included() };
        let untaught = !glimpse.held || glimpse.untold;
        if asked.when.is_none() && untaught && !glimpse.is_owed() {
            let action = wants.and_then(|wants| decide(wants, glimpse.held, glimpse.doubt));
            action.map(|action| asked.tells(action));
        }
        let story = glimpse.note.as_ref().and_then(|note| note.story.as_ref());
        let letter = glimpse.letter.as_ref().and_then(|letter| letter.trouble.as_ref());
        let noted = story.or(letter).and_then(|story| story.has.clone());
        let told = lately.delivered.as_ref().filter(|entry| entry.seq < document.row.seq).and(lately.has());
        let has = noted.or_else(|| state.map(|state| state.revision.to_string())).or(told);
        let limits = self.journey.observe().limits();
        let lately = Lately {
            last: lately.last.as_ref().map(|entry| tried(entry, document)),
            has: has.filter(|_| glimpse.held),
            kept: format!(
                "the last {} attempts of a subscription are kept, for {}, and none from before Flare was started",
                limits.quantity,
                HumanDuration(limits.age)
            ),
        };
        let (filter, when) = (asked.filter.take(), asked.when.take());
        // What the reader has yet to come to is sent anyway, and by no replay.
        let action = wants.and_then(|wants| decide(wants, glimpse.held, glimpse.doubt));
        let to_replay = !glimpse.unread && action.is_some_and(|action| asked.tells(action) == Some(true));
        Seen { known: known(document), glimpse, filter, when, lately, to_replay }
    }
}

fn tried(entry: &observe::Entry, document: &Document) -> Tried {
    let error = entry.exchange.as_ref().and_then(|exchange| exchange.error.clone());
    let took = HumanDuration(entry.spans.total());
    Tried {
        at: entry.began.saturating_add(entry.spans.total()),
        action: entry.action,
        revision: entry.revision.to_string(),
        newest: entry.seq == document.row.seq,
        outcome: match entry.outcome {
            observe::Outcome::Delivered => "delivered",
            observe::Outcome::Discarded => "discarded",
            observe::Outcome::Failed => "not taken",
        },
        answer: match (entry.status, error) {
            (Some(status), Some(error)) => format!("answered {status}, but {error}"),
            (Some(status), None) => format!("answered {status} after {took}"),
            (None, Some(error)) => format!("{error}, after {took}"),
            (None, None) => format!("no answer after {took}"),
        },
    }
}

/// The expressions of a subscription about a document as it is now, and what came of them.
struct Asked<'a> {
    subscription: &'a Subscription,
    document: &'a Document,
    /// The document as the client last got it, where that is kept.
    state: Option<&'a Kept>,
    json: Option<Result<Json, EvaluationError>>,
    filter: Option<Considered>,
    when: Option<Considered>,
}

impl Asked<'_> {
    fn consider(&mut self, filter: &Filter, action: Option<Action>) -> Considered {
        let expression = filter.source().to_owned();
        let json = self.json.get_or_insert_with(|| match self.document.row.deleted {
            true => Ok(Json::nothing()),
            false => Json::new(self.document.content.clone()).map_err(EvaluationError::from),
        });
        let json = match json {
            Ok(json) => &*json,
            Err(EvaluationError(error)) => {
                return Considered { expression, seen: Vec::new(), result: Err(error.clone()) };
            }
        };
        let resource = &self.subscription.compiled.resource;
        let names = resource.wildcards().iter().map(String::as_str);
        let values = resource.values(resource.name(&self.document.url, &self.document.revision));
        let wildcards: Vec<(&str, &str)> = names.zip(values.iter().map(|value| &**value)).collect();
        let state = self.state.and_then(|kept| Json::new(kept.content.clone()).ok());
        let inputs = Inputs {
            document: json,
            revision: &self.document.revision,
            wildcards: &wildcards,
            action,
            state: state.as_ref(),
        };
        let result = filter.decide(&inputs).map_err(|EvaluationError(error)| error);
        Considered { expression, seen: filter.seen(&inputs), result }
    }

    /// What the filter has said.
    fn included(&self) -> Option<bool> {
        self.filter.as_ref().map_or(Some(true), |filter| filter.result.clone().ok())
    }
}

impl Interest for Asked<'_> {
    fn includes(&mut self) -> Option<bool> {
        let subscription = self.subscription;
        if let (None, Some(filter)) = (&self.filter, &subscription.compiled.spec.filter) {
            self.filter = Some(self.consider(filter, None));
        }
        self.included()
    }

    fn tells(&mut self, action: Action) -> Option<bool> {
        let subscription = self.subscription;
        let Some(when) = &subscription.compiled.spec.when else { return Some(true) };
        // As when it is sent: nobody can say that an update is not worth telling to a client whose state is not certain.
        if action == Action::Update && self.state.is_none() && when.mentions_state() {
            return Some(true);
        }
        let considered = self.consider(when, Some(action));
        let tells = considered.result.clone().ok();
        self.when = Some(considered);
        tells
    }
}

impl App {
    /// What the thread of a subscription knows of some documents, by lane.
    pub(in crate::operations) async fn known_of(
        &self,
        subscription: &Subscription,
        rows: Vec<(u8, flare_model::document::Row)>,
    ) -> Done<KnownOfDocuments> {
        let number = subscription.number();
        let examined = self.journey.ask(number, |reply| Command::KnownOf(number, rows.clone(), reply)).await;
        examined.flatten().ok_or_else(|| self.left(subscription))
    }
}

/// What an explanation needs of a document.
pub(in crate::operations) fn known(document: &Document) -> Known {
    Known {
        revision: document.revision.clone(),
        row: document.row,
        lane: document.lane.index,
        updated_at: document.updated_at,
    }
}

/// What an explanation needs of a subscription.
pub(in crate::operations) fn settings(subscription: &Subscription) -> Settings {
    let stored = &subscription.stored;
    let spec = &subscription.compiled.spec;
    Settings {
        created_at: stored.created_at,
        start: spec.start,
        paused_since: stored.paused_since,
        pause: stored.pause.clone(),
        disabled: stored.disabled.clone(),
        rate_limit: spec.rate_limit,
        passive: spec.mode == Mode::Passive,
    }
}
