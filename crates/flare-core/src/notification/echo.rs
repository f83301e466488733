//! What a client may send back of what it was sent: the credentials of a subscription come in, and texts that a client answered
//! go out without them. Many servers answer a request that they refuse with the request itself, and answers are kept and shown.

use std::borrow::Cow;

use flare_model::subscription::Target;
use flare_model::subscription::credentials::{REDACTED, credentials_in_query, is_credential};

use crate::notification::ending::Ending;

/// Shorter ones are no secret, and would be found in every text.
const SHORTEST: usize = 6;

/// Values that are nobody's to read.
#[derive(Clone, Debug, Default)]
pub struct Echoes(Vec<Box<[u8]>>);

impl Echoes {
    /// Of all that is sent to these.
    pub fn of<'t>(targets: impl IntoIterator<Item = &'t Target>) -> Echoes {
        let mut values: Vec<&str> = Vec::new();
        for target in targets {
            for (_, value) in target.headers.iter().filter(|(name, _)| is_credential(name)) {
                // Of `Bearer x` the x alone is one as well.
                values.extend([value.as_str(), value.rsplit(' ').next().unwrap_or_default()]);
            }
            values.extend(credentials_in_query(target.url.identity()));
        }
        // What is a part of the word for it would be found in that again.
        values.retain(|value| value.len() >= SHORTEST && !REDACTED.contains(value));
        // The longest first: one may be a part of another.
        values.sort_by_key(|value| (std::cmp::Reverse(value.len()), *value));
        values.dedup();
        Echoes(values.into_iter().map(|value| value.as_bytes().into()).collect())
    }

    /// Takes them out of how an attempt ended.
    pub fn conceal(&self, ending: &mut Ending) {
        if let Ending::Answered(answer) = ending
            && let Cow::Owned(concealed) = self.concealed(&answer.excerpt)
        {
            answer.excerpt = concealed;
        }
    }

    /// A text without them.
    pub fn concealed<'t>(&self, text: &'t [u8]) -> Cow<'t, [u8]> {
        let mut text = Cow::Borrowed(text);
        for value in &self.0 {
            while let Some(found) = text.windows(value.len()).position(|part| *part == **value) {
                text.to_mut().splice(found..found + value.len(), REDACTED.bytes());
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_does_not_come_back() {
        let echoes = Echoes([&b"Bearer hunter22"[..], b"hunter22"].map(Into::into).into());
        let concealed =
            |text: &str| String::from_utf8(echoes.concealed(text.as_bytes()).into_owned()).unwrap();
        assert_eq!(concealed("got Bearer hunter22, hunter22!"), "got [redacted], [redacted]!");
        assert!(
            matches!(echoes.concealed(b"nothing"), Cow::Borrowed(_)),
            "nothing is copied where nothing is found"
        );
    }
}
