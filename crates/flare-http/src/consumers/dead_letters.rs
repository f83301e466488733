//! `GET` and `DELETE /consumers/:id/dead-letters`.

use axum::extract::{Path, State};
use axum::response::Response;
use flare_core::operations::ConsumerLetterView;
use flare_model::ids::ResourceId;
use http::{StatusCode, Uri};
use serde_json::json;

use crate::AppState;
use crate::error::ApiError;
use crate::openapi::{Notes, examples};
use crate::page::{self, PageQuery};

/// Lists messages that could not be read.
pub async fn list(State(app): AppState, Path(id): Path<String>, uri: Uri) -> Result<Response, ApiError> {
    let page = PageQuery::read(&app, &uri, &[])?;
    let id = ResourceId::new(id);
    let (total, letters) = app.consumer_letters(&id, page.offset as u64, page.limit as u64).await?;
    Ok(page.answer(total, "deadLetters", letters))
}

/// Drops one (`?id=`), or all.
pub async fn discard(State(app): AppState, Path(id): Path<String>, uri: Uri) -> Result<StatusCode, ApiError> {
    let mut letter = None;
    for (name, value) in page::given(&uri)? {
        match name.as_str() {
            "id" => letter = Some(value),
            other => return Err(page::unknown(other, &["id"])),
        }
    }
    app.drop_consumer_letters(&ResourceId::new(id), letter.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What the description says of the list.
pub fn describe_list(it: &mut Notes<'_>) {
    it.is("listConsumerDeadLetters", "Consumers", "List messages that could not be read")
        .pages()
        .answers_list::<ConsumerLetterView>(
        "deadLetters",
        "The oldest first, until they are replayed or dropped.",
        json!({
            "id": "ltr_1", "receivedAt": examples::TIME, "tries": 5,
            "error": "the field \"id\", which names the document, is missing", "excerpt": "{\"total\":3}",
            "position": "0",
        }),
    );
}

/// What the description says of dropping them.
pub fn describe_discard(it: &mut Notes<'_>) {
    it.is("dropConsumerDeadLetters", "Consumers", "Drop messages that could not be read")
        .text("One with `id`, all without.")
        .query(
            "id",
            json!({"type": "string", "pattern": "^ltr_[0-9]{1,18}$"}),
            "Only this one.",
            json!("ltr_1"),
        )
        .answers_nothing(204, "They are gone.")
        .refuses(404, "There is no such consumer, or no such dead letter.");
}
