//! Names come in; whether what they carry is a secret goes out. One rule for headers of requests and answers, and for
//! the query of urls.
//!
//! A name is taken for a secret's when it is one of those that carry credentials by definition, or when one of its
//! words, or two together, is such a word. Rather one too many: what is hidden can be looked up in the subscription.

use std::borrow::Cow;

/// What stands in place of a secret.
pub const REDACTED: &str = "[redacted]";

/// Anywhere in a name.
const PARTS: [&str; 10] = [
    "auth",
    "cookie",
    "secret",
    "token",
    "password",
    "passwd",
    "apikey",
    "credential",
    "signature",
    "session",
];

/// As a whole word of a name.
const WORDS: [&str; 5] = ["key", "pass", "pwd", "sig", "jwt"];

/// Whether the value of a header or query parameter with this name is a secret.
pub fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let joined: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    PARTS.iter().any(|part| joined.contains(part)) || words.any(|word| WORDS.contains(&word))
}

/// A path and query with the secrets of the query taken out.
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
    fn names_that_smell_of_a_secret_are_known() {
        for name in [
            "authorization",
            "Proxy-Authorization",
            "cookie",
            "set-cookie",
            "x-api-key",
            "X-ApiKey",
            "x-auth",
            "x-csrf-token",
            "webhook-signature",
            "my-secret",
            "x-password",
            "key",
            "session-id",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["host", "content-type", "flare-document", "webhook-id", "x-keyboard", "etag", "x-monkey"]
        {
            assert!(!is_secret(name), "{name}");
        }
    }

    #[test]
    fn secrets_of_a_query_are_taken_out() {
        assert_eq!(path_and_query("/a?x=1&access_token=abc&y"), "/a?x=1&access_token=[redacted]&y");
        assert_eq!(path_and_query("/token=1"), "/token=1");
    }
}
