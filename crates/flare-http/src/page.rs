//! Lists: `?limit=&offset=` in, `{"pagination":{...},"<plural>":[...]}` out.

use std::collections::HashSet;

use axum::response::Response;
use flare_core::operations::App;
use http::{StatusCode, Uri};
use schemars::JsonSchema;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::body;
use super::error::ApiError;

/// Which part of a list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PageQuery {
    /// At most so many.
    pub limit: usize,
    /// After so many.
    pub offset: usize,
}

impl PageQuery {
    /// Reads the query; names other than `limit`, `offset` and `also` are refused.
    pub fn read(app: &App, uri: &Uri, also: &[&str]) -> Result<PageQuery, ApiError> {
        let pagination = &app.config.domain.pagination;
        let mut page = PageQuery { limit: pagination.default_limit as usize, offset: 0 };
        for (name, value) in given(uri)? {
            match name.as_str() {
                "limit" => page.limit = number("limit", &value)?.min(pagination.maximum_limit as usize),
                "offset" => page.offset = number("offset", &value)?,
                other if also.contains(&other) => {}
                other => return Err(unknown(other, &[&["limit", "offset"], also].concat())),
            }
        }
        Ok(page)
    }

    /// The answer.
    pub fn answer(self, total: u64, plural: &'static str, entries: Vec<impl Serialize>) -> Response {
        self.answer_with_next(Total::of(total), None, plural, entries)
    }

    /// The answer of a list that is also paged by key.
    pub fn answer_with_next(
        self,
        total: Total,
        next: Option<String>,
        plural: &'static str,
        entries: Vec<impl Serialize>,
    ) -> Response {
        let Total { total, is_bound } = total;
        let pagination =
            Pagination { limit: self.limit, offset: self.offset, total, total_is_bound: is_bound, next };
        body::answer(StatusCode::OK, &List { pagination, plural, entries })
    }
}

/// How many entries a list has.
#[derive(Clone, Copy, Debug)]
pub struct Total {
    /// So many.
    pub total: u64,
    /// Or fewer.
    pub is_bound: bool,
}

impl Total {
    /// Exactly so many.
    fn of(total: u64) -> Total {
        Total { total, is_bound: false }
    }
}

/// Which part of a list this is.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pagination {
    /// At most so many entries.
    limit: usize,
    /// After so many.
    offset: usize,
    /// How many there are in all.
    total: u64,
    /// `total` is a bound: so many, or fewer. Left out where it is exact.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    total_is_bound: bool,
    /// What `after` of the next page is, where a list has that and does not end here.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

struct List<T> {
    pagination: Pagination,
    plural: &'static str,
    entries: Vec<T>,
}

impl<T: Serialize> Serialize for List<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("pagination", &self.pagination)?;
        map.serialize_entry(self.plural, &self.entries)?;
        map.end()
    }
}

/// A number too large for the machine is a number all the same: it means the end of the list.
fn number(name: &str, value: &str) -> Result<usize, ApiError> {
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Ok(value.parse().unwrap_or(usize::MAX));
    }
    Err(ApiError::bad_request(format!("{name} must be a number that is not negative, got `{value}`")))
}

/// The names and values of a query whose parameters have one value each: two of a name contradict each other.
pub fn given(uri: &Uri) -> Result<Vec<(String, String)>, ApiError> {
    let pairs = pairs(uri);
    let mut seen = HashSet::new();
    match pairs.iter().find(|(name, _)| !seen.insert(name)) {
        Some((name, _)) => Err(ApiError::bad_request(format!("query parameter `{name}` is given twice"))),
        None => Ok(pairs),
    }
}

/// The names and values of a query.
pub fn pairs(uri: &Uri) -> Vec<(String, String)> {
    pairs_of(uri.query().unwrap_or_default())
}

/// The names and values of a query, or of a form.
pub fn pairs_of(query: &str) -> Vec<(String, String)> {
    let decode = |text: &str| {
        let text = text.replace('+', " ");
        percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        })
        .collect()
}

/// The values of parameters that have to be there, each once, and no others.
pub fn required<const N: usize>(uri: &Uri, names: [&str; N]) -> Result<[String; N], ApiError> {
    let mut values = [const { None }; N];
    for (name, value) in given(uri)? {
        let Some(at) = names.iter().position(|known| *known == name) else {
            return Err(unknown(&name, &names));
        };
        values[at] = Some(value);
    }
    for (name, value) in names.iter().zip(&values) {
        if value.as_ref().is_none_or(String::is_empty) {
            let all = names.map(|name| format!("{name}=")).join("&");
            return Err(ApiError::bad_request(format!("query parameter `{name}` is missing; say ?{all}")));
        }
    }
    Ok(values.map(Option::unwrap_or_default))
}

/// `true` or `false`.
pub fn boolean(name: &str, value: &str) -> Result<bool, ApiError> {
    match value {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(ApiError::bad_request(format!("{name} must be true or false, got `{other}`"))),
    }
}

/// A query parameter that does not exist.
pub fn unknown(name: &str, known: &[&str]) -> ApiError {
    let known = match known {
        [] => "none is known here".to_owned(),
        known => format!("known are {}", known.join(", ")),
    };
    ApiError::bad_request(format!("unknown query parameter `{name}`; {known}"))
}
