//! Pages of a list: the size of the list and the page asked for come in, links to the pages around it go out.

use flare_core::operations::App;
use flare_http::error::ApiError;
use flare_http::page::{PageQuery, pairs};
use http::Uri;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// The links below a list.
pub struct Pager {
    /// The first entry shown, counted from 1; 0 where nothing is shown.
    pub from: u64,
    /// The last entry shown.
    pub to: u64,
    /// How many there are in all, where that is known.
    pub total: Option<u64>,
    /// The address of the page before.
    pub previous: Option<String>,
    /// The address of the page after.
    pub next: Option<String>,
}

impl Pager {
    /// Reads `limit` and `offset` of a page's address as the API does; other parameters are the page's own.
    pub fn query(app: &App, uri: &Uri) -> Result<PageQuery, ApiError> {
        let given = pairs(uri);
        let others: Vec<&str> = given.iter().map(|(name, _)| name.as_str()).collect();
        PageQuery::read(app, uri, &others)
    }

    /// The links of a list that is paged by offset.
    pub fn new(uri: &Uri, page: PageQuery, shown: usize, total: usize) -> Pager {
        let to = page.offset.saturating_add(shown);
        let link = |offset: usize| with(uri, &[("offset", Some(offset.to_string()))]);
        let back = page.offset.saturating_sub(page.limit);
        Pager {
            from: if shown == 0 { 0 } else { page.offset as u64 + 1 },
            to: to as u64,
            total: Some(total as u64),
            previous: (page.offset > 0 && page.limit > 0).then(|| link(back)),
            next: (to < total && shown > 0).then(|| link(to)),
        }
    }

    /// Whether there is anything to go to.
    pub fn is_needed(&self) -> bool {
        self.previous.is_some() || self.next.is_some()
    }
}

/// The same address with other parameters; `None` takes one away.
pub fn with(uri: &Uri, changes: &[(&str, Option<String>)]) -> String {
    let mut kept = pairs(uri);
    kept.retain(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
    for (name, value) in changes {
        if let Some(value) = value {
            kept.push(((*name).to_owned(), value.clone()));
        }
    }
    let pairs: Vec<String> =
        kept.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value))).collect();
    if pairs.is_empty() { uri.path().to_owned() } else { format!("{}?{}", uri.path(), pairs.join("&")) }
}

/// A text as it may stand in a query or in a path.
pub fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_the_pages_around() {
        let uri: Uri = "/ui/resources?q=a%20b&offset=30".parse().unwrap();
        let pager = Pager::new(&uri, PageQuery { limit: 30, offset: 30 }, 30, 100);
        assert_eq!((pager.from, pager.to), (31, 60));
        assert_eq!(pager.previous.as_deref(), Some("/ui/resources?q=a%20b&offset=0"));
        assert_eq!(pager.next.as_deref(), Some("/ui/resources?q=a%20b&offset=60"));
        let last = Pager::new(&uri, PageQuery { limit: 30, offset: 90 }, 10, 100);
        assert_eq!((last.next, last.to), (None, 100));
    }
}
