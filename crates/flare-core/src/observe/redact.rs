//! Names come in; whether what they carry is a secret goes out. One rule for headers of requests and answers, and for
//! the query of urls: the model's, by which credentials of subscriptions are sealed.

use std::borrow::Cow;

pub use flare_model::subscription::credentials::{REDACTED, is_credential as is_secret};

/// A path and query as it was sent, with the secrets of the query taken out, wherever they came from.
pub fn path_and_query(text: &str) -> Cow<'_, str> {
    let Some((path, query)) = text.split_once('?') else { return text.into() };
    let shown = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_secret(name) => Cow::Owned(format!("{name}={REDACTED}")),
        _ => Cow::Borrowed(pair),
    });
    format!("{path}?{}", shown.collect::<Vec<_>>().join("&")).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_of_a_query_are_taken_out() {
        assert_eq!(path_and_query("/a?x=1&access_token=abc&y"), "/a?x=1&access_token=[redacted]&y");
        assert_eq!(path_and_query("/token=1"), "/token=1");
    }
}
