//! In: the head of a request. Out: why it is refused, whatever it asks for: what the HTTP library lets through and the
//! rules of HTTP do not.

use axum::response::{IntoResponse, Response};
use http::header::{CONNECTION, HOST, HeaderMap, HeaderValue, TRANSFER_ENCODING};
use http::uri::PathAndQuery;
use http::{Request, Uri, Version};

use super::error::ApiError;

/// The refusal of a request with such a head. What follows it on its connection is not looked at.
pub fn refuse<B>(request: &Request<B>) -> Option<Response> {
    let why = fault(request.version(), request.headers())?;
    let mut response = ApiError::bad_request(why).into_response();
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    Some(response)
}

/// Takes the slash off the end of a path of Flare's own. That of a document's url is the url's, which has rules of its
/// own for it.
pub fn without_trailing_slash<B>(request: &mut Request<B>) {
    let path = request.uri().path();
    let Some(shorter) = path.strip_suffix('/').filter(|shorter| !shorter.is_empty()) else { return };
    if shorter.starts_with("/documents/") {
        return;
    }
    let query = request.uri().query().map_or_else(String::new, |query| format!("?{query}"));
    let Ok(path) = PathAndQuery::try_from(format!("{shorter}{query}")) else { return };
    let mut parts = request.uri().clone().into_parts();
    parts.path_and_query = Some(path);
    if let Ok(uri) = Uri::from_parts(parts) {
        *request.uri_mut() = uri;
    }
}

/// What is wrong with a head.
fn fault(version: Version, headers: &HeaderMap) -> Option<&'static str> {
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (None, _) if version >= Version::HTTP_11 => return Some("Host: is missing; HTTP/1.1 requires it"),
        (Some(_), Some(_)) => return Some("Host: is given twice"),
        (Some(host), None) if !host.as_bytes().iter().all(|byte| may_be_in_a_host(*byte)) => {
            return Some("Host: is no host, or host and port");
        }
        _ => {}
    }
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    match (codings.next(), codings.next()) {
        (None, _) => None,
        (Some(coding), None) if coding.as_bytes().trim_ascii().eq_ignore_ascii_case(b"chunked") => None,
        _ => Some("Transfer-Encoding: only `chunked` is understood, and once"),
    }
}

/// By RFC 3986: unreserved, sub-delims, the signs of an escape and of an address, and that of a port.
fn may_be_in_a_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=%[]:".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_that_breaks_the_rules_of_http_is_refused() {
        type Lines = &'static [(&'static str, &'static str)];
        let cases: [(Lines, bool); 14] = [
            (&[("host", "api.company.com")], true),
            (&[("host", "127.0.0.1:8080"), ("transfer-encoding", "Chunked")], true),
            (&[("host", "[::1]:8080")], true),
            (&[("host", "")], true),
            (&[], false),
            (&[("host", "a"), ("host", "b")], false),
            (&[("host", "a"), ("host", "a")], false),
            (&[("host", "a b")], false),
            (&[("host", "user@a")], false),
            (&[("host", "a/b")], false),
            (&[("host", "a"), ("transfer-encoding", "gzip, chunked")], false),
            (&[("host", "a"), ("transfer-encoding", "identity")], false),
            (&[("host", "a"), ("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")], false),
            (&[("host", "a"), ("transfer-encoding", "gzip"), ("transfer-encoding", "chunked")], false),
        ];
        for (lines, expected) in cases {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                let name: http::HeaderName = name.parse().unwrap();
                headers.append(name, HeaderValue::from_str(value).unwrap());
            }
            assert_eq!(fault(Version::HTTP_11, &headers).is_none(), expected, "{lines:?}");
        }
        assert_eq!(fault(Version::HTTP_10, &HeaderMap::new()), None, "before HTTP/1.1 there was no Host");
    }
}
