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
        outgoing.headers.push((written(name), value));
    }
    outgoing
}

/// Unlike those of HTTP, names of headers and attributes differ by case where brokers have them: Flare's own are `Flare-Document` and the
/// like, as they are written everywhere.
fn written(name: &str) -> String {
    let Some(rest) = name.strip_prefix("flare-") else { return name.to_owned() };
    let words = rest.split('-').map(|word| {
        let (first, others) = word.split_at(word.chars().next().map_or(0, char::len_utf8));
        first.to_ascii_uppercase() + others
    });
    format!("Flare-{}", words.collect::<Vec<_>>().join("-"))
}

#[cfg(test)]
mod tests {
    use super::written;

    #[test]
    fn names_are_written_as_they_are_described() {
        let names = ["flare-document", "flare-patch-from", "webhook-id", "ce-type"].map(written);
        assert_eq!(names, ["Flare-Document", "Flare-Patch-From", "webhook-id", "ce-type"]);
    }
}
