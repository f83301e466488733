//! For fuzz targets alone: bytes of strangers come in, and what looks at them first is held to its promises.

use bytes::Bytes;
use flare_core::config::HttpServerConfig;
use http::Request;

use super::browser::Visitors;
use super::documents::lines::{Lines, Next};
use super::head;

/// A body of lines: the first byte says how large the parts are in which it comes, the second how long a line may be. The lines are
/// those of the body, however it comes.
pub fn lines(data: &[u8]) {
    let [size, limit, body @ ..] = data else { return };
    let (size, limit) = (usize::from(*size).max(1), usize::from(*limit));
    let mut lines = Lines::new(limit);
    let mut found: Vec<Option<Bytes>> = Vec::new();
    let mut take = |lines: &mut Lines| {
        loop {
            match lines.next() {
                Next::Line(line) => found.push(Some(line)),
                Next::TooLong => found.push(None),
                Next::Nothing => break,
            }
        }
    };
    for part in body.chunks(size) {
        lines.push(Bytes::copy_from_slice(part));
        take(&mut lines);
    }
    lines.end();
    take(&mut lines);
    let mut expected: Vec<Option<Bytes>> = body
        .split(|byte| *byte == b'\n')
        .map(|line| (line.len() <= limit).then(|| Bytes::copy_from_slice(line)))
        .collect();
    // After the last end of a line there is no line.
    if expected.last().is_some_and(|last| last.as_ref().is_some_and(|last| last.is_empty())) {
        expected.pop();
    }
    assert_eq!(found, expected);
}

/// The head of a request: a target, and lines of `name: value`. It is looked at without a panic, and whoever is not asked for by a
/// name that is known, or comes for another site, is refused.
pub fn head(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == b'\n');
    let Some(target) = parts.next() else { return };
    let mut request = Request::builder().uri(target);
    for line in parts {
        let at = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = (&line[..at], line.get(at + 1..).unwrap_or_default());
        request = request.header(name, value.trim_ascii());
    }
    let Ok(mut request) = request.body(()) else { return };
    head::without_trailing_slash(&mut request);
    let path = request.uri().path();
    assert!(path == "/" || !path.ends_with('/') || path.starts_with("/documents/") || path.len() > 1);
    let refused = head::refuse(&request).is_some();
    let visitors = Visitors::new(&HttpServerConfig::default(), false, None);
    let origin = request.headers().get("origin").cloned();
    let host = request.headers().get("host").and_then(|host| host.to_str().ok()).map(str::to_ascii_lowercase);
    if !refused && visitors.admit(&request).is_ok() {
        let host = host.unwrap_or_default();
        let name = host.split(':').next().unwrap_or_default();
        let is_name = name.bytes().any(|byte| byte.is_ascii_alphabetic()) && !host.starts_with('[');
        assert!(!is_name || matches!(name, "localhost" | "localhost."), "{host}");
        let own = origin.as_ref().and_then(|origin| origin.to_str().ok()).map(str::to_ascii_lowercase);
        assert!(
            own.is_none_or(|own| own.ends_with(&host) || request.uri().authority().is_some()),
            "{origin:?}"
        );
    }
}
