//! One turn of a poll: the url and what is known of its last answer come in; the documents of the answer, of all its pages, go out, or
//! why there are none.

use std::collections::BTreeSet;

use bytes::Bytes;
use flare_model::bridge::HttpPollSource;
use flare_model::change::Path;
use flare_model::consumer::Condition;
use flare_model::subscription::credentials::redacted_url;
use http::Uri;
use serde_json::value::RawValue;

use super::Validators;
use crate::consuming::{ANSWER, Asked, Page, Tools};

/// So many pages are followed. When there are more: the turn fails, and says so; a part of a list is not taken for the whole.
const PAGES: usize = 100;

/// So many documents, and bytes, of one turn are in memory. When there are more: likewise.
const DOCUMENTS: usize = 100_000;
const BYTES: usize = 64 << 20;

/// Longer ones are not kept: whoever is asked with such a one could refuse to be asked at all.
const LONGEST_VALIDATOR: usize = 4096;

/// The documents of an answer, and what the endpoint said of it.
#[derive(Debug)]
pub(super) struct Fetched {
    pub items: Vec<Bytes>,
    pub validators: Validators,
}

/// Why there are none.
#[derive(Debug)]
pub(super) struct NotFetched {
    pub condition: Condition,
    pub error: String,
    pub retry_after: Option<String>,
}

impl NotFetched {
    fn failing(error: impl Into<String>) -> NotFetched {
        NotFetched { condition: Condition::Failing, error: error.into(), retry_after: None }
    }
}

/// Asks for everything. `None`: nothing has changed.
pub(super) async fn fetch(
    tools: &Tools,
    settings: &HttpPollSource,
    known: &Validators,
) -> Result<Option<Fetched>, NotFetched> {
    let mut headers: Vec<(String, String)> = Vec::new();
    for (name, values) in &settings.headers {
        headers.extend(values.iter().map(|value| (name.to_ascii_lowercase(), value.clone())));
    }
    let own = headers.len();
    let conditions = [("if-none-match", &known.etag), ("if-modified-since", &known.last_modified)];
    let given = conditions.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?)));
    headers.extend(given);
    let (mut url, mut seen) = (settings.url.clone(), BTreeSet::new());
    let mut fetched = Fetched { items: Vec::new(), validators: Validators::default() };
    let mut bytes = 0;
    loop {
        let asked = Asked { url: &url, headers: &headers, timeout: settings.timeout.0 };
        let page = tools.web.get(asked).await.map_err(NotFetched::failing)?;
        if page.status == 304 && seen.is_empty() {
            return Ok(None);
        }
        let body = answered(&url, &page)?;
        bytes += body.len();
        let (items, next) = read(settings, body)?;
        fetched.items.extend(items);
        if fetched.items.len() > DOCUMENTS || bytes > BYTES {
            return Err(NotFetched::failing(format!(
                "the list has more than {DOCUMENTS} documents or {BYTES} bytes; have the endpoint give less of it"
            )));
        }
        if seen.is_empty() {
            let short = |text: &String| text.len() <= LONGEST_VALIDATOR;
            let (etag, last_modified) = (page.etag.filter(short), page.last_modified.filter(short));
            fetched.validators = Validators { etag, last_modified, of: None };
            // Of the first page alone: what it was is asked about, not the others.
            headers.truncate(own);
        }
        seen.insert(url.clone());
        let Some(next) = next else { break };
        let next = same_origin(&url, &next)?;
        if seen.contains(&next) || seen.len() >= PAGES {
            return Err(NotFetched::failing(format!(
                "the list has more than {PAGES} pages, or goes in a circle"
            )));
        }
        url = next;
    }
    if seen.len() > 1 {
        // A first page that is as it was says nothing of the others.
        fetched.validators = Validators::default();
    }
    Ok(Some(fetched))
}

/// The body of an answer that has one to read.
fn answered<'p>(url: &str, page: &'p Page) -> Result<&'p [u8], NotFetched> {
    let shown = redacted_url(url);
    if (200..300).contains(&page.status) {
        return page.body.as_deref().ok_or_else(|| {
            NotFetched::failing(format!("{shown} answers more than is read of one answer ({ANSWER} bytes)"))
        });
    }
    let (condition, why) = match page.status {
        300..=399 => (Condition::Disabled, ": redirects are not followed, write the url that it leads to"),
        401 | 403 => (Condition::Disabled, ": give source.headers what it asks for"),
        404 | 410 => (Condition::Disabled, ": there is nothing under this url"),
        _ => (Condition::Failing, ""),
    };
    let error = format!("{shown} answered {}{why}", page.status);
    Err(NotFetched { condition, error, retry_after: page.retry_after.clone() })
}

/// The documents of a body, and the url of the next page.
fn read(settings: &HttpPollSource, body: &[u8]) -> Result<(Vec<Bytes>, Option<String>), NotFetched> {
    let Some(items) = &settings.items else { return Ok((vec![Bytes::copy_from_slice(body)], None)) };
    let wrong = |path: &str, problem: &str| NotFetched::failing(format!("the answer's {path} {problem}"));
    let path = Path::parse(items).map_err(|error| NotFetched::failing(error.to_string()))?;
    let list = path.find(body).map_err(|error| NotFetched::failing(format!("the answer: {error}")))?;
    let list: Vec<&RawValue> = match list {
        None => return Err(wrong(items, "is missing; it should be the list of documents")),
        Some(list) => serde_json::from_str(list).map_err(|_| wrong(items, "is no list of documents"))?,
    };
    let list = list.into_iter().map(|item| Bytes::copy_from_slice(item.get().as_bytes())).collect();
    let Some(next) = &settings.next else { return Ok((list, None)) };
    let path = Path::parse(next).map_err(|error| NotFetched::failing(error.to_string()))?;
    let found = path.find(body).map_err(|error| NotFetched::failing(error.to_string()))?;
    let url: Option<String> = match found {
        None => None,
        Some(found) => serde_json::from_str(found).map_err(|_| wrong(next, "is no url"))?,
    };
    Ok((list, url.filter(|url| !url.is_empty())))
}

/// The next page, which is on the same host: whoever answers is not to send credentials elsewhere.
fn same_origin(from: &str, next: &str) -> Result<String, NotFetched> {
    let wrong = || NotFetched::failing(format!("the url of the next page is none: {}", redacted_url(next)));
    let base: Uri = from.parse().map_err(|_| wrong())?;
    if next.starts_with('/') && !next.starts_with("//") {
        let authority = base.authority().map_or("", |authority| authority.as_str());
        return Ok(format!("{}://{authority}{next}", base.scheme_str().unwrap_or("http")));
    }
    let parsed: Uri = next.parse().map_err(|_| wrong())?;
    if parsed.scheme() != base.scheme() || parsed.authority() != base.authority() {
        let error = format!("the next page is on another host, and is not followed: {}", redacted_url(next));
        return Err(NotFetched::failing(error));
    }
    Ok(next.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_on_the_same_host() {
        let from = "http://h:81/orders?page=1";
        assert_eq!(same_origin(from, "/orders?page=2").expect("a page"), "http://h:81/orders?page=2");
        assert_eq!(same_origin(from, "http://h:81/x").expect("a page"), "http://h:81/x");
        for next in ["http://evil:81/x", "https://h:81/x", "//evil/x", "http://h/x", "x", "no url"] {
            assert!(same_origin(from, next).is_err(), "{next}");
        }
    }
}
