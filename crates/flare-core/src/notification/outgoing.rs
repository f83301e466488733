//! From a request to what a sink is given: the same headers and body, the id and the document by themselves.

use flare_model::document::Document;
use flare_model::patch::PatchKind;
use flare_provider::bridge::Outgoing;
use flare_wire::Request;

use crate::notification::change::Change;
use crate::notification::compiled::Compiled;
use crate::notification::event::STRUCTURED;
use crate::notification::message::{CONTENT_TYPE, WEBHOOK_ID};
use crate::notification::payload::{ANYTHING, JSON};

/// Every type that a body has.
const TYPES: [&str; 5] =
    [JSON, ANYTHING, STRUCTURED, PatchKind::Merge.media_type(), PatchKind::Json.media_type()];

/// What a sink is given of a request about a document.
pub fn outgoing(request: &Request, compiled: &Compiled, change: &Change) -> Outgoing {
    let Document { url, revision, .. } = &change.document;
    let name = compiled.resource.name(url, revision);
    let mut outgoing = Outgoing {
        id: String::new(),
        document: if name == &**url { url.clone() } else { name.into() },
        revision: change.texts(name).revision.to_string(),
        headers: Vec::new(),
        content_type: None,
        body: request.body().clone(),
    };
    for (name, value) in request.fields() {
        if name == CONTENT_TYPE.as_str() {
            outgoing.content_type = TYPES.into_iter().find(|known| known.as_bytes() == value);
            continue;
        }
        let value = String::from_utf8_lossy(value).into_owned();
        if name == WEBHOOK_ID.as_str() {
            outgoing.id.clone_from(&value);
        }
        outgoing.headers.push((name.to_owned(), value));
    }
    outgoing
}
