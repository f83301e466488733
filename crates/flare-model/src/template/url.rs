//! In: the url where a client wants to be notified, with slots in path and query, and the values of a document. Out:
//! whom to connect to, and the path and query of the request, in which no value can break out of its place.
//!
//! The path is the client's own: a trailing slash and empty segments are sent as they were written. Only for
//! comparing ([`UrlTemplate::identity`]) does a trailing slash not count.

use super::{Piece, Template, TemplateError, value};
use crate::pattern::REVISION;
use crate::url::authority::{self, Authority};
use crate::url::{Scheme, UrlError, check_length, percent};

/// A compiled url of a subscription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UrlTemplate {
    https: bool,
    port: u16,
    /// Where in `identity` the host ends, which may have brackets, and where the authority does. They begin behind the scheme.
    host_end: u16,
    authority_end: u16,
    /// From the path's first slash on.
    path: Template,
    /// Scheme and authority, and then the path without a trailing slash.
    identity: Box<str>,
}

impl UrlTemplate {
    /// Reads an absolute http or https url that may use the wildcards and `{revision}` in its path and query.
    /// Blanks around it come from copying, and are taken off.
    pub fn parse<S: AsRef<str>>(text: &str, wildcards: &[S]) -> Result<Self, TemplateError> {
        let text = text.trim();
        check_length(text.len())?;
        let pieces = Template::compile(text, wildcards)?.pieces;
        let (authority, pieces) = split(pieces)?;
        let path = Template { pieces: normalise(pieces)? };
        let (shown, query) = show(&path, wildcards);
        let (bare, query) = shown.split_at(query);
        if let Some(segment) = bare.split('/').find(|segment| matches!(*segment, "." | "..")) {
            return Err(UrlError::DotSegment { segment: segment.to_owned() }.into());
        }
        let mut identity = String::new();
        authority.write_origin(&mut identity);
        let https = authority.scheme == Scheme::Https;
        let place = |end: usize| u16::try_from(end).expect("a url is shorter than that");
        let host_end = place(Self::authority_begin(https) + authority.host.len());
        let authority_end = place(identity.len());
        identity.push_str(bare.strip_suffix('/').unwrap_or(bare));
        identity.push_str(query);
        let port = authority.port.unwrap_or(authority.scheme.default_port());
        Ok(Self { https, port, host_end, authority_end, path, identity: identity.into() })
    }

    /// Where in a url the authority begins.
    fn authority_begin(https: bool) -> usize {
        let scheme = if https { Scheme::Https } else { Scheme::Http };
        scheme.as_str().len() + "://".len()
    }

    /// Whether the connection is encrypted.
    pub fn https(&self) -> bool {
        self.https
    }

    /// The host to connect to, in lower case; an IPv6 address without its brackets.
    pub fn host(&self) -> &str {
        let host = &self.identity[Self::authority_begin(self.https)..usize::from(self.host_end)];
        host.trim_matches(['[', ']'])
    }

    /// The port to connect to, the scheme's default where none was written.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The value of the Host header: host, and port where it is not the default.
    pub fn authority(&self) -> &str {
        &self.identity[Self::authority_begin(self.https)..usize::from(self.authority_end)]
    }

    /// Whether the url is the same for every document.
    pub fn is_static(&self) -> bool {
        self.path.is_static()
    }

    /// The normalised text, wildcards by name. Two subscriptions of one resource with equal identities for the same
    /// action are told at the same place, and conflict.
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Appends the path and query for one document. `values` are raw segments of its url, in the order of the
    /// wildcards. Nothing is allocated but what `out` needs to grow.
    pub fn render_path<V: AsRef<str>>(&self, values: &[V], revision: &str, out: &mut String) {
        for piece in &self.path.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Wildcard(position) => percent::insert_segment(value(values, *position), out),
                Piece::Revision => percent::insert_text(revision, out),
            }
        }
    }
}

/// Takes the authority off the first piece; what is left begins with the path.
fn split(mut pieces: Vec<Piece>) -> Result<(Authority, Vec<Piece>), TemplateError> {
    let Some(Piece::Text(first)) = pieces.first() else {
        return Err(if pieces.is_empty() { UrlError::Scheme.into() } else { TemplateError::BeforePath });
    };
    let (_, _, rest) = authority::cut(first)?;
    if rest.is_empty() && pieces.len() > 1 {
        return Err(TemplateError::BeforePath);
    }
    let (authority, rest) = authority::split(first)?;
    let slash = if rest.starts_with('/') { "" } else { "/" };
    pieces[0] = Piece::Text(format!("{slash}{rest}"));
    Ok((authority, pieces))
}

fn normalise(pieces: Vec<Piece>) -> Result<Vec<Piece>, UrlError> {
    let mut normalised = Vec::with_capacity(pieces.len());
    for piece in pieces {
        normalised.push(match piece {
            Piece::Text(text) if text.contains('#') => return Err(UrlError::Fragment),
            Piece::Text(text) => {
                let mut out = String::with_capacity(text.len());
                percent::normalise(&text, &mut out)?;
                Piece::Text(out)
            }
            slot => slot,
        });
    }
    Ok(normalised)
}

/// Path and query with their slots by name, and where the query begins. Names may hold a `?` of their own.
fn show<S: AsRef<str>>(path: &Template, wildcards: &[S]) -> (String, usize) {
    let mut shown = String::new();
    let mut query = None;
    for piece in &path.pieces {
        match piece {
            Piece::Text(text) => {
                query = query.or(text.find('?').map(|at| shown.len() + at));
                shown.push_str(text);
            }
            Piece::Wildcard(position) => shown.extend(["{", wildcards[*position].as_ref(), "}"]),
            Piece::Revision => shown.extend(["{", REVISION, "}"]),
        }
    }
    let end = shown.len();
    (shown, query.unwrap_or(end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn template(text: &str) -> UrlTemplate {
        UrlTemplate::parse(text, &["id", "x"]).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    fn rendered(text: &str, values: [&str; 2], revision: &str) -> String {
        let mut out = String::new();
        template(text).render_path(&values, revision, &mut out);
        out
    }

    #[test]
    fn the_parts_for_connecting_are_normalised() {
        let plain = template("HTTP://API.Company.com:80/wishlist/{id}");
        assert_eq!((plain.https(), plain.host(), plain.port()), (false, "api.company.com", 80));
        assert_eq!(plain.authority(), "api.company.com");
        let secure = template("https://[0::1]:8443?a={x}");
        assert_eq!((secure.https(), secure.host(), secure.port()), (true, "::1", 8443));
        assert_eq!(secure.authority(), "[::1]:8443");
        assert!(!secure.is_static() && template("http://h/x").is_static());
    }

    #[test]
    fn values_are_percent_encoded_where_they_are_inserted() {
        for (text, values, revision, expected) in [
            ("http://h", ["1", "2"], "3", "/"),
            ("http://h?id={id}", ["1", "2"], "3", "/?id=1"),
            ("http://h/w/{id}/", ["1", "2"], "3", "/w/1/"),
            ("http://h/a-{ id }.json", ["1", "2"], "3", "/a-1.json"),
            ("http://h/{x}/{id}?r={revision}", ["a%2Fb", "c%20d"], "-5", "/c%20d/a%2Fb?r=-5"),
            ("http://h/{id}", ["a+b&c=d", ""], "", "/a%2Bb%26c%3Dd"),
            ("http://h/{id}", ["%25zz", ""], "", "/%25zz"),
            ("http://h/{id}", ["100%", ""], "", "/100%25"),
            (
                "http://h/?t={revision}",
                ["", ""],
                "2006-01-02T15:04:05+07:00",
                "/?t=2006-01-02T15%3A04%3A05%2B07%3A00",
            ),
            ("http://h/{id}/{x}", [".", "%2e%2E"], "", "/%2E/%2E%2E"),
            ("http://h/{id}", ["...", ""], "", "/..."),
            ("http://h/caf\u{e9}//a?q[]=1&b=?", ["", ""], "", "/caf%C3%A9//a?q[]=1&b=?"),
        ] {
            assert_eq!(rendered(text, values, revision), expected, "{text}");
        }
    }

    #[test]
    fn every_violation_is_named() {
        for (given, expected) in [
            ("", UrlError::Scheme.into()),
            ("/wishlist/{id}", UrlError::Scheme.into()),
            ("{id}", TemplateError::BeforePath),
            ("{id}://h/x", TemplateError::BeforePath),
            ("http{id}://h/x", UrlError::Scheme.into()),
            ("http://{id}/x", TemplateError::BeforePath),
            ("http://h{id}/x", TemplateError::BeforePath),
            ("http://h:{id}/x", TemplateError::BeforePath),
            ("http://{id}@h/x", TemplateError::BeforePath),
            ("http://user@h/{id}", UrlError::UserInfo.into()),
            ("http:///{id}", UrlError::EmptyHost.into()),
            ("http://h:99999/{id}", UrlError::Port { port: "99999".into() }.into()),
            ("http://h/{id}#a", UrlError::Fragment.into()),
            ("http://h/{id}/../x", UrlError::DotSegment { segment: "..".into() }.into()),
            ("http://h/%2e", UrlError::DotSegment { segment: ".".into() }.into()),
            ("http://h/a b", UrlError::Blank.into()),
            ("http://h/a\r\nX: y", UrlError::Control.into()),
            ("http://h/%{id}", UrlError::Escape { escape: "%".into() }.into()),
        ] {
            assert_eq!(UrlTemplate::parse(given, &["id"]).expect_err(given), expected, "{given}");
        }
        assert!(matches!(UrlTemplate::parse("http://h/{y}", &["id"]), Err(TemplateError::Unknown { .. })));
        assert!(UrlTemplate::parse("http://h/{id}?a=../..", &["id"]).is_ok());
    }

    #[test]
    fn templates_of_the_same_url_have_the_same_identity() {
        for (one, other) in [
            ("http://h/a/{id}", "HTTP://H:80/a/{ id }/"),
            ("http://h", "http://h/"),
            ("http://h?a=1", "http://h/?a=1"),
            ("http://h/%7ea?x=%2f", "http://h/~a?x=%2F"),
        ] {
            assert_eq!(template(one).identity(), template(other).identity());
        }
        for (one, other) in [
            ("http://h/{id}", "http://h/{x}"),
            ("http://h/{id}", "https://h/{id}"),
            ("http://h/{id}", "http://h/{id}?"),
            ("http://h/?a=b", "http://h/?a=b/"),
        ] {
            assert_ne!(template(one).identity(), template(other).identity());
        }
        assert_eq!(
            template("http://h:81/a/{ id }/?r={revision}").identity(),
            "http://h:81/a/{id}?r={revision}"
        );
    }

    #[test]
    fn a_question_mark_in_a_name_begins_no_query() {
        let odd = UrlTemplate::parse("http://h/{a?}/../b", &["a?"]);
        assert_eq!(odd, Err(UrlError::DotSegment { segment: "..".into() }.into()));
    }

    proptest! {
        #[test]
        fn no_value_breaks_out_of_its_place(id in ".{0,20}", x in "[.%0-9a-fA-F/?#& ]{0,12}", revision in ".{0,20}") {
            let path = rendered("http://h/a/{id}/{x}/{revision}", [&id, &x], &revision);
            prop_assert!(path.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert!(!path.contains(['?', '#']));
            prop_assert_eq!(path.matches('/').count(), 4);
            prop_assert!(path.split('/').all(|segment| segment != "." && segment != ".."));
            let query = rendered("http://h/?a={id}&b={x}&c={revision}", [&id, &x], &revision);
            prop_assert!(query.bytes().all(|byte| byte.is_ascii_graphic()));
            prop_assert_eq!(query.matches(['?', '#', '&', '=', '+']).count(), 6);
        }

        #[test]
        fn a_segment_of_a_document_arrives_as_it_was(segment in "([a-z.~:@+]|%[0-9A-F]{2}){1,10}") {
            let bytes = |text: &str| crate::url::percent::decode(text);
            let path = rendered("http://h/{id}", [&segment, ""], "");
            prop_assert_eq!(bytes(&path[1..]), bytes(&segment));
        }
    }
}
