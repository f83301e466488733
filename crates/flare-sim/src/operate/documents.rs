//! What origins say: newer, equal and older revisions, and deletes, one thing about a document at a time, and again until
//! it is answered.

use std::rc::Rc;

use flare_core::journey::accept::Word as Said;
use flare_model::access::Caller;
use flare_model::document::Outcome;
use flare_model::url::DocumentUrl;
use flare_promises::dice::Dice;
use flare_promises::world::content;
use serde_json::Value;

use super::{AGAIN, Operation, resources};
use crate::house::House;
use crate::profile::Profile;
use crate::stage::Inside;

/// One thing to be said about one document.
#[derive(Clone, Debug)]
pub struct Line {
    pub resource: usize,
    pub url: String,
    pub revision: i64,
    pub word: Word,
}

#[derive(Clone, Debug)]
pub enum Word {
    /// The document is this now.
    Put(Value),
    /// It is gone, and this is the revision of that.
    Delete,
    /// It is gone, with the revision it has.
    DeletePlainly,
    /// What was said before is said again: nothing changes.
    Repeat(Value),
}

/// A line about a document about which nothing is being said. It counts as being said from now on.
pub fn draw(inside: &mut Inside, profile: &Profile, dice: &mut Dice) -> Option<Operation> {
    let resource = *dice.pick(&resources::existing(inside));
    let url = format!("{}{}", inside.world.resources[resource].prefix, dice.below(profile.documents));
    let (kind, deletes) = (dice.below(100), profile.deletes);
    let document = inside.world.document(resource, &url);
    if document.busy {
        return None;
    }
    let revision = document.highest() + 1;
    let line = match (kind, document.newest().cloned()) {
        // What is said again of a document that is gone may be new, once that is forgotten.
        (0..=4, Some(said)) if said.content.is_some() => {
            let old = said.content.unwrap_or_default();
            document.busy = true;
            return Some(Operation::Say(Line {
                resource,
                url,
                revision: said.revision,
                word: Word::Repeat(old),
            }));
        }
        (5.., _) if kind < deletes => Line { resource, url, revision, word: Word::Delete },
        (5.., Some(said)) if kind < deletes + 5 && said.content.is_some() => {
            Line { resource, url, revision: said.revision, word: Word::DeletePlainly }
        }
        _ => Line { resource, url, revision, word: Word::Put(content(revision, dice)) },
    };
    let content = match &line.word {
        Word::Put(document) => Some(document.clone()),
        _ => None,
    };
    inside.world.says(resource, &line.url, line.revision, content);
    Some(Operation::Say(line))
}

/// Says it until it is answered.
pub async fn say(house: Rc<House>, line: Line) {
    let url = DocumentUrl::parse(&line.url).expect("urls of documents are right");
    let mut again = false;
    let outcome = loop {
        let (url, word) = (url.clone(), said(&line));
        let asked = house.ask(async move |app, _| {
            let draft = app.draft_anywhere(&Caller::anybody(), url, word).await;
            let draft = draft.map_err(|refused| refused.to_string())?;
            let mut answers = app.commit(vec![draft]).await.map_err(|error| error.to_string())?;
            answers.pop().expect("one for each draft").map_err(|refused| refused.to_string())
        });
        match asked.await {
            Some(Ok(outcome)) => break outcome,
            Some(Err(error)) => house.stage.note(|| format!("{line:?} is not taken: {error}")),
            None => {}
        }
        again = true;
        tokio::time::sleep(AGAIN).await;
    };
    hear(&mut house.stage.lock(), &line, outcome, again);
}

fn said(line: &Line) -> Said {
    match &line.word {
        Word::Put(document) | Word::Repeat(document) => Said::Put(document.to_string().into()),
        Word::Delete => Said::Delete(Some(line.revision.to_string())),
        Word::DeletePlainly => Said::Delete(None),
    }
}

/// What was answered. `again`: an earlier try may have been accepted, without anyone hearing of it.
fn hear(inside: &mut Inside, line: &Line, outcome: Outcome, again: bool) {
    use Outcome::{Absent, Created, Deleted, Stale, Unchanged, Updated};
    inside.note(|| format!("{} revision {}: {outcome:?}", line.url, line.revision));
    let lived = inside.world.document(line.resource, &line.url).lives();
    let expected: &[Outcome] = match &line.word {
        Word::Put(_) if again => &[Created, Updated, Unchanged],
        Word::Put(_) if lived => &[Updated],
        Word::Put(_) => &[Created],
        Word::Delete | Word::DeletePlainly if again => &[Deleted, Absent],
        Word::Delete | Word::DeletePlainly if lived => &[Deleted],
        Word::Delete | Word::DeletePlainly => &[Absent],
        Word::Repeat(_) => &[Unchanged, Stale],
    };
    if !expected.contains(&outcome) {
        inside.wrong(None, &line.url, format!("{line:?} was answered {outcome:?} in place of {expected:?}"));
    }
    if matches!(line.word, Word::Repeat(_)) {
        inside.world.document(line.resource, &line.url).busy = false;
    } else {
        // A delete of what is not there is remembered, but nobody is told of it.
        inside.world.hears(line.resource, &line.url, true);
    }
}
