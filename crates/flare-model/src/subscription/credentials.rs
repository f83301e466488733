//! Credentials of an endpoint: values of headers, and of the query of urls, whose names smell of one. An endpoint comes in;
//! the same goes out without them, to be shown, or with them again where only the word for them was sent back.
//!
//! A name is taken for a credential's when one of its parts, or one of its words, is such a word. Rather one too many: what
//! is sealed works like everything else. What is absent: paths. Nothing in `/services/T00/B00/x` says that it is a secret;
//! whoever has such a url should be given it as what it is, and the documentation says so.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::{ActionsDraft, EndpointDraft};
use crate::invalid::Invalid;
use crate::url::percent;

/// What stands in place of a credential.
pub const REDACTED: &str = "[redacted]";

/// The same in a url that somebody's library has escaped.
const ESCAPED: &str = "%5bredacted%5d";

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

/// Whether the value of a header or query parameter with this name is a credential.
pub fn is_credential(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let joined: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    PARTS.iter().any(|part| joined.contains(part)) || words.any(|word| WORDS.contains(&word))
}

/// A url, or a path and query, with the credentials of the query taken out.
pub fn redacted_url(text: &str) -> Cow<'_, str> {
    if !has_credentials_in_query(text) {
        return text.into();
    }
    map_query(text, |name, value| is_credential_pair(name, value).then(|| REDACTED.to_owned())).into()
}

/// Whether the query of a url has a credential.
pub fn has_credentials_in_query(url: &str) -> bool {
    pairs(url).any(|(name, value)| is_credential_pair(name, value))
}

/// The credentials in the query of a url, as they are written.
pub fn credentials_in_query(url: &str) -> impl Iterator<Item = &str> {
    pairs(url).filter(|(name, value)| is_credential_pair(name, value)).map(|(_, value)| value)
}

/// Whether an endpoint has a credential anywhere.
pub fn has_credentials(endpoint: &EndpointDraft) -> bool {
    let in_headers = |headers: &Headers| {
        let mut values =
            headers.iter().filter(|(name, _)| is_credential(name)).flat_map(|(_, values)| values);
        values.any(|value| value != REDACTED)
    };
    let own = actions(&endpoint.actions).into_iter().filter_map(|(_, own)| own);
    let (urls, headers): (Vec<_>, Vec<_>) = own.map(|own| (own.url.as_deref(), &own.headers)).unzip();
    endpoint.tls.as_ref().is_some_and(|tls| !tls.key.is_empty() && tls.key != REDACTED)
        || in_headers(&endpoint.headers)
        || headers.into_iter().any(in_headers)
        || urls.into_iter().chain([endpoint.url.as_deref()]).flatten().any(has_credentials_in_query)
}

/// An endpoint as it may be shown.
pub fn redacted(endpoint: &EndpointDraft) -> EndpointDraft {
    let mut shown = endpoint.clone();
    let hide = |url: &mut Option<String>, headers: &mut Headers| {
        if let Some(url) = url {
            *url = redacted_url(url).into_owned();
        }
        let credentials = headers.iter_mut().filter(|(name, _)| is_credential(name));
        credentials.flat_map(|(_, values)| values).for_each(|value| REDACTED.clone_into(value));
    };
    hide(&mut shown.url, &mut shown.headers);
    if let Some(tls) = &mut shown.tls {
        REDACTED.clone_into(&mut tls.key);
    }
    let own = &mut shown.actions;
    for own in [&mut own.create, &mut own.update, &mut own.delete].into_iter().flatten() {
        hide(&mut own.url, &mut own.headers);
    }
    shown
}

/// Puts what is kept wherever the word for it was sent back, so that whoever reads, changes and writes need not know it.
/// A credential of a url is kept only where the url leads to the same place: it is not for whoever may change a url to send
/// it elsewhere.
pub fn restore(wanted: &mut EndpointDraft, kept: Option<&EndpointDraft>) -> Result<(), Invalid> {
    let none = EndpointDraft::default();
    let kept = kept.unwrap_or(&none);
    restore_headers("endpoint.headers", &mut wanted.headers, &kept.headers)?;
    restore_url("endpoint.url", &mut wanted.url, kept.url.as_deref())?;
    if let Some(tls) = wanted.tls.as_mut().filter(|tls| tls.key == REDACTED) {
        let kept = kept.tls.as_ref().map(|kept| &kept.key).filter(|kept| *kept != REDACTED);
        kept.ok_or_else(|| nothing_kept("endpoint.tls.key".to_owned()))?.clone_into(&mut tls.key);
    }
    let own = &mut wanted.actions;
    for (own, (name, kept)) in
        [&mut own.create, &mut own.update, &mut own.delete].into_iter().zip(actions(&kept.actions))
    {
        let Some(own) = own else { continue };
        let (headers, url) = kept.map_or((&none.headers, None), |kept| (&kept.headers, kept.url.as_deref()));
        restore_headers(&format!("endpoint.actions.{name}.headers"), &mut own.headers, headers)?;
        restore_url(&format!("endpoint.actions.{name}.url"), &mut own.url, url)?;
    }
    Ok(())
}

type Headers = BTreeMap<String, Vec<String>>;

type Own<'d> = Option<&'d super::ActionDraft>;

/// What each action has of its own.
fn actions(actions: &ActionsDraft) -> [(&'static str, Own<'_>); 3] {
    [
        ("create", actions.create.as_deref()),
        ("update", actions.update.as_deref()),
        ("delete", actions.delete.as_deref()),
    ]
}

fn restore_headers(field: &str, wanted: &mut Headers, kept: &Headers) -> Result<(), Invalid> {
    for (name, values) in wanted.iter_mut().filter(|(name, _)| is_credential(name)) {
        let kept = kept.iter().find(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, kept)| kept);
        for (place, value) in values.iter_mut().enumerate().filter(|(_, value)| *value == REDACTED) {
            let kept = kept.and_then(|kept| kept.get(place)).filter(|kept| *kept != REDACTED);
            kept.ok_or_else(|| nothing_kept(format!("{field}.{name}")))?.clone_into(value);
        }
    }
    Ok(())
}

fn restore_url(field: &str, wanted: &mut Option<String>, kept: Option<&str>) -> Result<(), Invalid> {
    let Some(url) = wanted.as_mut().filter(|url| pairs(url).any(|(name, value)| is_word(name, value))) else {
        return Ok(());
    };
    let kept = kept.unwrap_or_default();
    if !kept.is_empty() && !origin(kept).eq_ignore_ascii_case(origin(url)) {
        let problem = "the url leads elsewhere now, and what is kept is for where it led: write the value";
        return Err(Invalid::new(field, format!("{REDACTED}: {problem}")));
    }
    let (mut met, mut missing) = (BTreeMap::<String, usize>::new(), false);
    *url = map_query(url, |name, value| {
        let count = met.entry(name.to_owned()).or_default();
        let place = *count;
        *count += 1;
        if !is_word(name, value) {
            return None;
        }
        let kept = pairs(kept).filter(|(other, _)| *other == name).nth(place);
        let kept = kept.map(|(_, value)| value).filter(|value| *value != REDACTED);
        missing |= kept.is_none();
        kept.map(ToOwned::to_owned)
    });
    if missing { Err(nothing_kept(field.to_owned())) } else { Ok(()) }
}

fn nothing_kept(field: String) -> Invalid {
    Invalid::new(field, format!("{REDACTED} stands for a value that is kept, and none is; write it"))
}

/// Scheme, host and port of a url, as written.
fn origin(url: &str) -> &str {
    let authority = url.find("://").map_or(0, |found| found + 3);
    url[authority..].find(['/', '?']).map_or(url, |end| &url[..authority + end])
}

/// Names and values of a query, as written.
fn pairs(url: &str) -> impl Iterator<Item = (&str, &str)> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    query.split('&').filter_map(|pair| pair.split_once('='))
}

/// A url with other values in its query.
fn map_query(url: &str, mut change: impl FnMut(&str, &str) -> Option<String>) -> String {
    let Some((before, query)) = url.split_once('?') else { return url.to_owned() };
    let shown = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, value)) => match change(name, value) {
            Some(other) => Cow::Owned(format!("{name}={other}")),
            None => Cow::Borrowed(pair),
        },
        None => Cow::Borrowed(pair),
    });
    format!("{before}?{}", shown.collect::<Vec<_>>().join("&"))
}

/// Whether a parameter carries a credential: what is only a wildcard comes from the document's own url.
fn is_credential_pair(name: &str, value: &str) -> bool {
    let is_wildcard = value.starts_with('{') && value.find('}') == Some(value.len() - 1);
    !value.is_empty() && !is_wildcard && value != REDACTED && is_credential_name(name)
}

/// Whether a parameter has the word for a credential.
fn is_word(name: &str, value: &str) -> bool {
    (value == REDACTED || value.eq_ignore_ascii_case(ESCAPED)) && is_credential_name(name)
}

/// A name as it is read, whichever of its letters are escaped.
fn is_credential_name(name: &str) -> bool {
    let mut read = String::with_capacity(name.len());
    match percent::normalise(name, &mut read) {
        Ok(()) => is_credential(&read),
        Err(_) => is_credential(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn endpoint(json: Value) -> EndpointDraft {
        serde_json::from_value(json).unwrap()
    }

    fn shown(endpoint: &EndpointDraft) -> Value {
        serde_json::to_value(endpoint).unwrap()
    }

    fn whole() -> EndpointDraft {
        endpoint(json!({
            "url": "https://h/hook?token=abc&page=2&Sig=d%20e",
            "headers": {"Authorization": ["Bearer x", "Bearer y"], "X-Plain": ["seen"]},
            "actions": {"delete": {"url": "https://h/gone?api_key=k&id={id}", "headers": {"x-api-key": ["k"]}}},
            "tls": {"certificate": "c", "key": "k"},
        }))
    }

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
            assert!(is_credential(name), "{name}");
        }
        for name in ["host", "content-type", "flare-document", "webhook-id", "x-keyboard", "etag", "x-monkey"]
        {
            assert!(!is_credential(name), "{name}");
        }
    }

    #[test]
    fn an_endpoint_is_shown_without_its_credentials() {
        assert!(has_credentials(&whole()));
        let shown = redacted(&whole());
        assert!(!has_credentials(&shown), "there is nothing left to hide");
        assert_eq!(
            serde_json::to_value(&shown).unwrap(),
            json!({
                "url": "https://h/hook?token=[redacted]&page=2&Sig=[redacted]",
                "headers": {"Authorization": [REDACTED, REDACTED], "X-Plain": ["seen"]},
                "actions": {"delete": {
                    "url": "https://h/gone?api_key=[redacted]&id={id}", "headers": {"x-api-key": [REDACTED]},
                }},
                "tls": {"certificate": "c", "key": REDACTED},
            })
        );
    }

    #[test]
    fn credentials_of_a_query_are_known_by_their_name() {
        for (url, expected) in [
            ("/a?x=1&access_token=abc&y", "/a?x=1&access_token=[redacted]&y"),
            ("/a?to%6Ben=abc", "/a?to%6Ben=[redacted]"),
            ("/token=1", "/token=1"),
            ("/a?key={id}", "/a?key={id}"),
            ("/a?key=", "/a?key="),
            ("/a?key={id}x", "/a?key=[redacted]"),
            ("/a?page=2", "/a?page=2"),
        ] {
            assert_eq!(redacted_url(url), expected);
        }
    }

    #[test]
    fn what_is_sent_back_as_it_was_shown_is_what_it_was() {
        let mut back = redacted(&whole());
        restore(&mut back, Some(&whole())).unwrap();
        assert_eq!(shown(&back), shown(&whole()));
        let mut changed = redacted(&whole());
        changed.headers.insert("authorization".into(), vec![REDACTED.into(), "Bearer z".into()]);
        changed.headers.remove("Authorization");
        changed.url = Some("https://H/other?token=%5Bredacted%5D&Sig=new".into());
        restore(&mut changed, Some(&whole())).unwrap();
        assert_eq!(changed.headers["authorization"], ["Bearer x", "Bearer z"]);
        assert_eq!(changed.url.as_deref(), Some("https://H/other?token=abc&Sig=new"));
    }

    #[test]
    fn the_word_for_a_credential_is_none() {
        for (wanted, field) in [
            (json!({"url": "https://h/a?token=[redacted]"}), "endpoint.url"),
            (json!({"headers": {"X-Token": [REDACTED]}}), "endpoint.headers.X-Token"),
            (json!({"tls": {"certificate": "c", "key": REDACTED}}), "endpoint.tls.key"),
            (
                json!({"actions": {"update": {"headers": {"X-Token": [REDACTED]}}}}),
                "endpoint.actions.update.headers.X-Token",
            ),
        ] {
            let wrong = restore(&mut endpoint(wanted), None).unwrap_err();
            assert_eq!(wrong.field, field);
        }
        let mut plain =
            endpoint(json!({"url": "https://h/a?page=[redacted]", "headers": {"X-Plain": [REDACTED]}}));
        restore(&mut plain, None).unwrap();
    }

    #[test]
    fn a_url_that_leads_elsewhere_takes_no_credential_along() {
        for url in [
            "https://evil/hook?token=[redacted]",
            "http://h/hook?token=[redacted]",
            "https://h:1/?token=[redacted]",
        ] {
            let mut wanted = endpoint(json!({ "url": url }));
            assert_eq!(restore(&mut wanted, Some(&whole())).unwrap_err().field, "endpoint.url", "{url}");
        }
    }
}
