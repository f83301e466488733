//! A row comes in; what the feed knows of that document goes out, for people to read. It changes nothing.

use super::{Action, Feed, Standing, decide};
use crate::document::Row;
use crate::ids::Seq;

/// What a feed knows of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glimpse {
    /// The client has it, in some revision.
    pub held: bool,
    /// The outcome of the last create or delete is unknown.
    pub doubt: bool,
    /// It was given up.
    pub dead: bool,
    /// It is in flight.
    pub open: Option<Flight>,
    /// It changed while it was in flight, and is decided again next.
    pub again: bool,
    /// It waits for a retry, or a replay asks for it.
    pub waiting: Option<Standing>,
    /// The reader has not come to the newest change yet.
    pub unread: bool,
    /// There is something to tell once the reader comes to it.
    pub to_tell: bool,
    /// Everything up to here is settled.
    pub cursor: Seq,
    /// The reader is here.
    pub position: Seq,
}

/// An attempt in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// The change being sent.
    pub seq: Seq,
    /// What is told.
    pub action: Action,
    /// The replay that asked for it, 0 for none.
    pub replay: u64,
}

/// What a client has of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ClientHas {
    /// The newest state; of a deleted document: nothing, and that is right.
    Newest,
    /// An older state.
    Older,
    /// Nothing.
    Nothing,
    /// It cannot be known: an outcome is unknown, or a replay asks for what it may have already.
    Unknown,
}

impl Glimpse {
    /// Whether the client is owed something about the document, or was until it was given up.
    pub fn lags(&self) -> bool {
        self.pends() || self.unread && self.to_tell
    }

    /// Whether it is among [`Feed::owed`]: it lags, whatever the reader has yet to come to.
    pub fn pends(&self) -> bool {
        self.open.is_some() || self.again || self.waiting.is_some() || self.dead || self.doubt
    }

    /// The same where there is a filter, and it says this about the document as it is now: the reader will find that
    /// it is the client's or that it is not. `None`: nobody can tell, and the client is left as it is.
    pub fn under(self, row: &Row, includes: Option<bool>) -> Glimpse {
        let wanted = if row.deleted { Some(false) } else { includes };
        let action = wanted.and_then(|wanted| decide(wanted, self.held, self.doubt));
        Glimpse { to_tell: action.is_some(), ..self }
    }

    /// What the client has. A notification that it asked to drop counts as had: it wanted no more.
    pub fn client_has(&self, row: &Row) -> ClientHas {
        let replayed = self.waiting.as_ref().is_some_and(|s| s.replay != 0 && s.seq == row.seq)
            || self.open.is_some_and(|open| open.replay != 0 && open.seq == row.seq);
        match (row.deleted, self.held) {
            _ if self.doubt => ClientHas::Unknown,
            (true, true) => ClientHas::Older,
            (true, false) => ClientHas::Newest,
            (false, false) => ClientHas::Nothing,
            (false, true) if !self.lags() => ClientHas::Newest,
            (false, true) if replayed => ClientHas::Unknown,
            (false, true) => ClientHas::Older,
        }
    }
}

impl Feed {
    /// What is known of the document with this newest row.
    pub fn glimpse(&self, row: &Row) -> Glimpse {
        let ordinal = row.ordinal;
        let held = self.held.contains(ordinal.0);
        let doubt = self.few.doubt.contains(ordinal.0);
        Glimpse {
            held,
            doubt,
            dead: self.few.dead.contains(ordinal.0),
            open: self.open.get(&ordinal).map(|open| Flight {
                seq: open.seq,
                action: open.action,
                replay: open.replay,
            }),
            again: self.few.again.contains_key(&ordinal),
            waiting: self.waiting.get(&ordinal).cloned(),
            unread: row.seq > self.read && !self.few.extras.contains(&row.seq) && !self.was_ahead(row.seq),
            to_tell: decide(!row.deleted, held, doubt).is_some(),
            cursor: self.cursor(),
            position: self.read,
        }
    }

    /// The documents that are owed, doubted or given up, of all that the reader has met.
    pub fn owed(&self) -> roaring::RoaringTreemap {
        let mut owed = &self.few.dead | &self.few.doubt;
        let pending = self.waiting.keys().chain(self.open.keys()).chain(self.few.again.keys());
        owed.extend(pending.map(|ordinal| ordinal.0));
        owed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::{Everything, Met, Saved, Trouble, Verdict};
    use crate::ids::Ordinal;
    use crate::time::Timestamp;

    fn row(seq: u64, born: u64, deleted: bool) -> Row {
        Row { ordinal: Ordinal(0), seq: Seq(seq), born: Seq(born), before: Seq(0), deleted }
    }

    fn feed() -> Feed {
        let mut feed = Feed::open(Saved::default(), Seq(0));
        feed.want_issue(Seq(100));
        let taken = feed.take_record().expect("a mark is asked for");
        feed.recorded(taken.receipt);
        feed
    }

    fn trouble() -> Box<Trouble> {
        let at = Timestamp::from_millis(0);
        Box::new(Trouble {
            attempts: 1,
            first_attempt_at: at,
            last_attempt_at: at,
            action: Action::Create,
            status: Some(500),
            error: None,
            response: None,
        })
    }

    #[test]
    fn what_the_client_has_follows_the_life_of_a_document() {
        let mut feed = feed();
        let created = row(1, 1, false);
        let seen = feed.glimpse(&created);
        assert!(seen.unread && seen.lags());
        assert_eq!(seen.client_has(&created), ClientHas::Nothing);

        assert!(matches!(feed.read(&created, &mut Everything), Met::Send(_)));
        let seen = feed.glimpse(&created);
        assert_eq!(seen.open.map(|open| open.action), Some(Action::Create));
        assert!(!seen.unread && seen.lags());

        let due = Timestamp::from_millis(5);
        feed.settle(Ordinal(0), Verdict::Retry { due, doubtful: true, trouble: trouble() });
        let seen = feed.glimpse(&created);
        assert_eq!(seen.client_has(&created), ClientHas::Unknown, "the create may have arrived");
        assert_eq!(seen.waiting.as_ref().and_then(|s| s.trouble.as_ref()).map(|t| t.attempts), Some(1));
        assert_eq!(feed.owed().iter().collect::<Vec<_>>(), [0]);

        assert!(feed.retry(&created, &mut Everything).is_some());
        feed.settle(Ordinal(0), Verdict::Delivered);
        let seen = feed.glimpse(&created);
        assert!(!seen.lags());
        assert_eq!(seen.client_has(&created), ClientHas::Newest);

        let updated = row(2, 1, false);
        assert_eq!(feed.glimpse(&updated).client_has(&updated), ClientHas::Older);
        assert!(matches!(feed.read(&updated, &mut Everything), Met::Send(_)));
        feed.settle(Ordinal(0), Verdict::GiveUp { doubtful: true, trouble: trouble() });
        let seen = feed.glimpse(&updated);
        assert!(seen.dead && seen.lags());
        assert_eq!(seen.client_has(&updated), ClientHas::Older, "an update leaves no doubt");

        let deleted = row(3, 1, true);
        assert_eq!(feed.glimpse(&deleted).client_has(&deleted), ClientHas::Older);
        assert!(matches!(feed.read(&deleted, &mut Everything), Met::Send(_)));
        feed.settle(Ordinal(0), Verdict::Delivered);
        let seen = feed.glimpse(&deleted);
        assert_eq!((seen.client_has(&deleted), seen.lags()), (ClientHas::Newest, false));
        assert!(feed.owed().is_empty());
    }

    #[test]
    fn a_tombstone_that_the_client_never_had_is_not_owed() {
        let seen = feed().glimpse(&row(4, 4, true));
        assert!(seen.unread && !seen.lags());
    }

    #[test]
    fn what_the_filter_leaves_out_is_owed_only_to_a_client_that_has_it() {
        let mut feed = feed();
        let (created, updated) = (row(1, 1, false), row(2, 1, false));
        assert!(feed.glimpse(&created).under(&created, Some(true)).lags());
        assert!(!feed.glimpse(&created).under(&created, Some(false)).lags());
        assert!(!feed.glimpse(&created).under(&created, None).lags());
        feed.read(&created, &mut Everything);
        feed.settle(Ordinal(0), Verdict::Delivered);
        assert!(feed.glimpse(&updated).under(&updated, Some(false)).lags(), "a delete is due");
        assert!(!feed.glimpse(&updated).under(&updated, None).lags());
        let deleted = row(3, 1, true);
        assert!(feed.glimpse(&deleted).under(&deleted, None).lags(), "a tombstone is not asked about");
    }

    #[test]
    fn a_replay_of_what_it_has_is_owed_and_leaves_open_what_it_has() {
        let mut feed = feed();
        let created = row(1, 1, false);
        feed.read(&created, &mut Everything);
        feed.settle(Ordinal(0), Verdict::Delivered);
        assert!(feed.request(&created, 7, Timestamp::from_millis(0)));
        let seen = feed.glimpse(&created);
        assert_eq!((seen.client_has(&created), seen.lags()), (ClientHas::Unknown, true));
    }
}
