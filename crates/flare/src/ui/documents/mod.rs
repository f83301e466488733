//! `/ui/documents`: what changed, and who has it.

pub mod delete;
pub mod put;
pub mod search;
pub mod show;

use flare_core::journey::accept::{NotAccepted, Word};
use flare_core::operations::App;
use flare_model::access::Caller;
use flare_model::document::Outcome;
use flare_model::url::DocumentUrl;
use flare_provider::ProviderError;

use super::pager::encode;

/// The page of a document.
pub fn place(url: &str) -> String {
    format!("/ui/documents/show?url={}", encode(url))
}

/// Says a word about a document as an origin would.
async fn say(
    app: &App,
    by: &Caller,
    url: DocumentUrl,
    word: Word,
) -> Result<Result<Outcome, NotAccepted>, ProviderError> {
    let draft = match app.draft(by, url, word) {
        Ok(draft) => draft,
        Err(refused) => return Ok(Err(refused)),
    };
    let outcome = app.commit(vec![draft]).await?.pop();
    Ok(outcome.expect("one write has one outcome"))
}

/// What became of a word, in a sentence.
fn sentence(url: &str, outcome: Outcome) -> String {
    match outcome {
        Outcome::Created => format!("{url} is created; clients that want it are told."),
        Outcome::Updated => format!("{url} is updated; clients that want it are told."),
        Outcome::Unchanged => format!("Flare has this revision of {url} already; nobody is told."),
        Outcome::Stale => format!("Flare has a newer revision of {url}; nobody is told."),
        Outcome::Deleted => format!("{url} is deleted; clients that have it are told."),
        Outcome::Absent => format!("There was no {url} to delete; nobody is told."),
    }
}
