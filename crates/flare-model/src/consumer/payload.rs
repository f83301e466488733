//! The JSON of a consumer's `payload`, and how messages are read by it: bytes come in, which document they are about and how new they
//! say it is goes out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change::{ChangeError, ChangeReader, ChangeSpec, Path};
use crate::invalid::Invalid;
use crate::revision::Revision;

/// The longest name that a document may have.
pub const MAX_NAME: usize = 1024;

/// What messages are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "MessageFormat")]
pub enum Format {
    /// Documents: JSON objects, each with a name and perhaps a revision.
    #[default]
    Json,
    /// Anything: every message is passed on, in the order in which they come.
    Raw,
}

/// Which messages say that a document is gone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ConsumerDeleteDraft")]
pub struct DeleteSpec {
    /// The dotted path of a field.
    #[schemars(regex(pattern = r"^[^.]+(\.[^.]+){0,31}$"))]
    pub field: String,
    /// The value that it has then.
    pub equals: serde_json::Value,
}

/// How messages are read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[schemars(rename = "ConsumerPayloadDraft")]
pub struct PayloadDraft {
    /// What they are.
    pub format: Format,
    /// The dotted path of the text that names the document. `json` needs it, `raw` has none.
    #[schemars(regex(pattern = r"^[^.]+(\.[^.]+){0,31}$"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Where the revision is; without one the order of arrival counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<ChangeSpec>,
    /// Which messages say that the document is gone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Option<DeleteSpec>,
}

impl PayloadDraft {
    /// Checks it and makes what reads messages by it.
    pub(super) fn check(&self) -> Result<Reader, Invalid> {
        if self.format == Format::Raw {
            let given = [
                ("payload.id", self.id.is_some()),
                ("payload.revision", self.revision.is_some()),
                ("payload.delete", self.delete.is_some()),
            ];
            if let Some((field, _)) = given.into_iter().find(|(_, given)| *given) {
                let problem = "nothing is looked for in messages that are passed on as they are: leave it out, or use the format json";
                return Err(Invalid::new(field, problem));
            }
            return Ok(Reader { naming: Naming::Position, revision: None, delete: None });
        }
        let Some(id) = &self.id else {
            let problem = "is required: the path of the text that names the document, such as \"id\"";
            return Err(Invalid::new("payload.id", problem));
        };
        let naming = Naming::At(Path::parse(id).map_err(|error| Invalid::new("payload.id", error))?);
        let revision = self.revision.as_ref().map(|revision| {
            revision.check()?;
            revision.compile()
        });
        let revision = revision.transpose().map_err(|error| Invalid::new("payload.revision", error))?;
        let delete = self.delete.as_ref().map(|delete| {
            let path = Path::parse(&delete.field);
            Ok((path.map_err(|e| Invalid::new("payload.delete.field", e))?, delete.equals.clone()))
        });
        Ok(Reader { naming, revision, delete: delete.transpose()? })
    }
}

/// What names a document.
#[derive(Clone, Debug)]
pub enum Naming {
    /// The text at this path.
    At(Path),
    /// Where the message is in its source: every one is passed on.
    Position,
}

/// Reads messages.
#[derive(Clone, Debug)]
pub struct Reader {
    naming: Naming,
    revision: Option<ChangeReader>,
    delete: Option<(Path, serde_json::Value)>,
}

/// What a message says.
#[derive(Clone, Debug, PartialEq)]
pub struct Understood {
    /// The document that it is about.
    pub name: String,
    /// Its revision; `None` where the payload has none, and the order of arrival counts.
    pub revision: Option<Revision>,
    /// Whether it says that the document is gone.
    pub is_delete: bool,
}

/// Why a message cannot be read; for people.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is no document, or has no revision.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// It has no name.
    #[error("the field {field:?}, which names the document, {problem}")]
    Name {
        /// The path.
        field: String,
        /// What is wrong with what is there.
        problem: &'static str,
    },
}

impl Reader {
    /// What names documents.
    pub fn naming(&self) -> &Naming {
        &self.naming
    }

    /// How revisions are read, where the payload has them.
    pub fn revision(&self) -> Option<&ChangeReader> {
        self.revision.as_ref()
    }

    /// Whether messages have no revision of their own.
    pub fn goes_by_arrival(&self) -> bool {
        self.revision.is_none()
    }

    /// What a message says; not for messages that are passed on as they are.
    pub fn understand(&self, payload: &[u8]) -> Result<Understood, Unreadable> {
        let Naming::At(path) = &self.naming else {
            return Ok(Understood { name: String::new(), revision: None, is_delete: false });
        };
        let name = name(path, path.find(payload)?)?;
        let is_delete = match &self.delete {
            Some((path, equals)) => path.find(payload)?.is_some_and(|found| {
                serde_json::from_str::<serde_json::Value>(found).is_ok_and(|found| found == *equals)
            }),
            None => false,
        };
        let revision = self.revision.as_ref().map(|reader| reader.read(payload)).transpose()?;
        Ok(Understood { name, revision, is_delete })
    }
}

/// The name that a JSON value stands for: a text, or an integer as it is written.
fn name(path: &Path, found: Option<&str>) -> Result<String, Unreadable> {
    let wrong = |problem| Err(Unreadable::Name { field: path.as_str().to_owned(), problem });
    let name = match found {
        None => return wrong("is missing"),
        Some(text) if text.starts_with('"') => {
            serde_json::from_str::<String>(text).map_err(ChangeError::Json)?
        }
        Some(number) if number.parse::<i128>().is_ok() => number.to_owned(),
        Some(_) => return wrong("must be a text or an integer"),
    };
    if name.is_empty() || name.len() > MAX_NAME {
        return wrong("must have between 1 and 1024 bytes");
    }
    if name.contains(char::is_control) {
        return wrong("must have no control characters");
    }
    Ok(name)
}

/// The beginning of a message, for people to read: what is no text in it is replaced.
pub fn excerpt_of(payload: &[u8], most: usize) -> String {
    let cut = &payload[..payload.len().min(most)];
    let text = String::from_utf8_lossy(cut);
    // A character that the cut went through is not the message's fault.
    let whole = if cut.len() < payload.len() { text.trim_end_matches('\u{fffd}') } else { &text };
    whole.chars().map(|c| if c.is_control() && c != '\n' && c != '\t' { '\u{fffd}' } else { c }).collect()
}
