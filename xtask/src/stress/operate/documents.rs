//! What origins do: one document at a time, or many in bulk; newer, equal and older revisions, and deletes.

use serde_json::{Value, json};

use super::{Cut, Operation, insist};
use crate::stress::api::Ask;
use crate::stress::dice::Dice;
use crate::stress::stage::Stage;
use crate::stress::world::content;

/// How many documents of a resource change all the time.
const HOT: u64 = 8;

/// One thing to be said about one document.
#[derive(Clone, Debug)]
pub struct Line {
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
    /// What was said before is said again, or something older: nothing changes.
    Repeat(Value),
}

impl Line {
    fn in_bulk(&self) -> String {
        match &self.word {
            Word::Put(document) | Word::Repeat(document) => json!({"id": self.url, "document": document}),
            Word::Delete => json!({"id": self.url, "delete": true, "revision": self.revision}),
            Word::DeletePlainly => json!({"id": self.url, "delete": true}),
        }
        .to_string()
    }

    fn alone(&self) -> Ask {
        let path = format!("/documents/{}", self.url);
        match &self.word {
            Word::Put(document) | Word::Repeat(document) => Ask::new("PUT", path, document),
            Word::Delete => {
                let headers = vec![("flare-revision", self.revision.to_string())];
                Ask { headers, ..Ask::new("DELETE", path, "") }
            }
            Word::DeletePlainly => Ask::new("DELETE", path, ""),
        }
    }
}

/// One of the documents of a subscription's resource.
pub fn draw_url(stage: &Stage, number: usize, dice: &mut Dice) -> Option<String> {
    let resource = stage.subscriptions()[number].resource;
    let world = stage.shared.world();
    let urls: Vec<&String> = world.resources[resource].documents.keys().collect();
    (!urls.is_empty()).then(|| (*dice.pick(&urls)).clone())
}

fn draw_resource(stage: &Stage, dice: &mut Dice) -> Option<usize> {
    let there = stage.resources();
    (!there.is_empty()).then(|| *dice.pick(&there))
}

/// A line about a document about which nothing is being said. It counts as being said from now on.
fn draw_line(stage: &Stage, resource: usize, documents: u64, dice: &mut Dice) -> Option<Line> {
    let mut world = stage.shared.world();
    let url = format!("{}{}", world.resources[resource].prefix, dice.below(documents));
    let (kind, document_dice) = (dice.below(100), &mut dice.fork(7));
    let document = world.document(resource, &url);
    if document.busy {
        return None;
    }
    let revision = document.highest() + 1;
    let newest = document.newest().cloned();
    let line = match (kind, newest) {
        // Where deletes are forgotten, nobody knows whether an older revision is news.
        (0..=4, Some(said)) if !stage.forgets || said.content.is_some() => {
            let old = said.content.unwrap_or_else(|| content(said.revision, document_dice));
            Line { url, revision: said.revision, word: Word::Repeat(old) }
        }
        (5..=18, _) => Line { url, revision, word: Word::Delete },
        (19..=24, Some(said)) if said.content.is_some() => {
            Line { url, revision: said.revision, word: Word::DeletePlainly }
        }
        _ => {
            let document = content(revision, document_dice);
            Line { url, revision, word: Word::Put(document) }
        }
    };
    let content = match &line.word {
        Word::Put(document) => Some(document.clone()),
        Word::Repeat(_) => {
            world.document(resource, &line.url).busy = true;
            return Some(line);
        }
        Word::Delete | Word::DeletePlainly => None,
    };
    world.says(resource, &line.url, line.revision, content);
    Some(line)
}

pub fn draw(stage: &Stage, dice: &mut Dice) -> Option<Operation> {
    let resource = draw_resource(stage, dice)?;
    let line = draw_line(stage, resource, HOT, dice)?;
    Some(Operation::Say { resource, line, cut: Cut::draw(dice, 10) })
}

pub fn draw_bulk(stage: &Stage, dice: &mut Dice) -> Option<Operation> {
    let resource = draw_resource(stage, dice)?;
    let (count, documents) = *dice.pick(&[(3, HOT), (20, 60), (20, 60), (80, 200)]);
    let lines: Vec<Line> = (0..count).filter_map(|_| draw_line(stage, resource, documents, dice)).collect();
    (!lines.is_empty()).then(|| Operation::Bulk { resource, lines, cut: Cut::draw(dice, 20) })
}

/// Says it until it is answered.
pub async fn say(stage: &Stage, resource: usize, line: Line, cut: Option<Cut>) -> anyhow::Result<()> {
    let (answer, again) = insist(stage, &line.alone(), cut).await?;
    let outcome = answer.header("flare-outcome").to_owned();
    if answer.status != 202 {
        let what = format!("{line:?} was answered {}: {}", answer.status, answer.text());
        stage.wrong(usize::MAX, &line.url, what);
    }
    hear(stage, resource, &line, &outcome, again);
    Ok(())
}

/// Says all lines; those that were not answered are said one by one.
pub async fn bulk(stage: &Stage, resource: usize, lines: Vec<Line>, cut: Option<Cut>) -> anyhow::Result<()> {
    let body: Vec<String> = lines.iter().map(Line::in_bulk).collect();
    let ask = Ask::new("POST", "/documents", body.join("\n"));
    let mut answered = 0;
    if let Some(cut) = cut {
        stage.api.cut(&ask, cut.part, cut.wait).await?;
    } else if let Ok(answer) = stage.api.try_send(&ask).await {
        for text in answer.text().lines() {
            let word: Value = serde_json::from_str(text).unwrap_or_default();
            let (Some(line), Some(outcome)) = (lines.get(answered), word["outcome"].as_str()) else { break };
            if word["id"] != json!(line.url) {
                stage.wrong(
                    usize::MAX,
                    &line.url,
                    format!("a line of bulk was answered for another: {text}"),
                );
            }
            hear(stage, resource, line, outcome, false);
            answered += 1;
        }
    }
    for line in &lines[answered..] {
        let (answer, _) = insist(stage, &line.alone(), None).await?;
        hear(stage, resource, line, answer.header("flare-outcome"), true);
    }
    Ok(())
}

/// What was answered. `again`: an earlier try may have been accepted, without anyone hearing of it.
fn hear(stage: &Stage, resource: usize, line: &Line, outcome: &str, again: bool) {
    let mut world = stage.shared.world();
    let lived = world.document(resource, &line.url).lives();
    let expected: &[&str] = match &line.word {
        Word::Put(_) if again => &["created", "updated", "unchanged"],
        Word::Put(_) if lived => &["updated"],
        Word::Put(_) => &["created"],
        Word::Delete | Word::DeletePlainly if again => &["deleted", "absent"],
        Word::Delete | Word::DeletePlainly if lived => &["deleted"],
        Word::Delete | Word::DeletePlainly => &["absent"],
        Word::Repeat(_) => &["unchanged", "stale"],
    };
    if matches!(line.word, Word::Repeat(_)) {
        world.document(resource, &line.url).busy = false;
    } else {
        // A delete of what is not there is remembered, but nobody is told of it.
        world.hears(resource, &line.url, true);
    }
    drop(world);
    if !expected.contains(&outcome) {
        let what = format!("outcome {outcome:?} in place of {expected:?}: {line:?}");
        stage.wrong(usize::MAX, &line.url, what);
    }
}
