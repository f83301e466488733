//! In: the patterns of all resources, each with a value. Out: for a document's url, the value of the pattern it
//! belongs to: the most specific one, literal before wildcard, left to right.
//!
//! A map of origins, then a matchit tree for each. matchit searches literals first and comes back to wildcards when a
//! literal leads nowhere, which is the rule above; the tests compare it with a naive search over all patterns. Names
//! of wildcards never reach it (they are positions there), so any name is legal. Neither do its special characters:
//! normalised literals hold no braces.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use crate::pattern::{Pattern, Segment};
use crate::url::DocumentUrl;

/// Finds the resource of a document. Keeps two clones of each value, one in the tree so that finding follows no
/// further pointer: a small `T` (an id, an `Arc`) is best.
#[derive(Clone)]
pub struct Router<T> {
    origins: HashMap<String, matchit::Router<T>>,
    /// By shape; the order makes [`Self::captured_by`] answer the same on every node.
    shapes: BTreeMap<String, Entry<T>>,
}

#[derive(Clone)]
struct Entry<T> {
    pattern: Pattern,
    value: T,
}

/// Another pattern has the same shape.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "the endpoint `{endpoint}` has the same shape as `{other}`, which is tracked already; use that resource or change the path"
)]
pub struct ShapeConflict<T> {
    /// The endpoint that was refused.
    pub endpoint: String,
    /// The endpoint that is there.
    pub other: String,
    /// The value of the endpoint that is there.
    pub existing: T,
}

impl<T: Clone> Router<T> {
    /// Without patterns.
    pub fn new() -> Self {
        Self { origins: HashMap::new(), shapes: BTreeMap::new() }
    }

    /// Adds a pattern, unless one of the same shape is there.
    pub fn insert(&mut self, pattern: &Pattern, value: T) -> Result<(), ShapeConflict<T>> {
        let shape = pattern.shape();
        if let Some(entry) = self.shapes.get(&shape) {
            return Err(ShapeConflict {
                endpoint: pattern.normalised().to_owned(),
                other: entry.pattern.normalised().to_owned(),
                existing: entry.value.clone(),
            });
        }
        let routes = self.origins.entry(pattern.origin().to_owned()).or_default();
        routes
            .insert(route(pattern), value.clone())
            .expect("whole-segment wildcards conflict only when shapes are equal");
        self.shapes.insert(shape, Entry { pattern: pattern.clone(), value });
        Ok(())
    }

    /// Takes the pattern of this shape out and gives its value.
    pub fn remove(&mut self, pattern: &Pattern) -> Option<T> {
        let entry = self.shapes.remove(&pattern.shape())?;
        if let Some(routes) = self.origins.get_mut(pattern.origin()) {
            routes.remove(route(pattern));
        }
        if self.same_origin(pattern).next().is_none() {
            self.origins.remove(pattern.origin());
        }
        Some(entry.value)
    }

    /// The value of the pattern that the url belongs to.
    pub fn find(&self, url: &DocumentUrl) -> Option<&T> {
        let matched = self.origins.get(url.origin())?.at(url.path()).ok()?;
        Some(matched.value)
    }

    /// The values of all patterns that the url fits, ordered by shape; it belongs to one of them. Looks at every
    /// pattern of the origin: for explaining, not for documents.
    pub fn fitting<'a>(&'a self, url: &'a DocumentUrl) -> impl Iterator<Item = &'a T> {
        let prefix = format!("{}/", url.origin());
        let from = self.shapes.range(prefix.clone()..);
        let same = from.take_while(move |(shape, _)| shape.starts_with(&prefix));
        same.filter(|(_, entry)| entry.pattern.matches(url)).map(|(_, entry)| &entry.value)
    }

    /// The value of the pattern of this shape.
    pub fn get(&self, pattern: &Pattern) -> Option<&T> {
        self.shapes.get(&pattern.shape()).map(|entry| &entry.value)
    }

    /// The values of the patterns from which a new one would take urls ([`Pattern::captures`]), ordered by shape.
    /// Looks at every pattern of the origin: for creating resources, not for documents.
    pub fn captured_by<'a>(&'a self, new: &'a Pattern) -> impl Iterator<Item = &'a T> {
        self.same_origin(new).filter(|entry| new.captures(&entry.pattern)).map(|entry| &entry.value)
    }

    /// How many patterns there are.
    pub fn len(&self) -> usize {
        self.shapes.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.shapes.is_empty()
    }

    fn same_origin<'a>(&'a self, pattern: &'a Pattern) -> impl Iterator<Item = &'a Entry<T>> {
        // A pattern always has a path, so the slash keeps `http://h` apart from `http://h:81` and `http://hh`.
        let prefix = format!("{}/", pattern.origin());
        let from = self.shapes.range(prefix.clone()..);
        from.take_while(move |(shape, _)| shape.starts_with(&prefix)).map(|(_, entry)| entry)
    }
}

impl<T: Clone> Default for Router<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The path as matchit wants it, with positions for names: `/users/{1}`.
fn route(pattern: &Pattern) -> String {
    let mut route = String::new();
    for (position, segment) in pattern.segments().iter().enumerate() {
        match segment {
            Segment::Literal(text) => write!(route, "/{text}"),
            Segment::Wildcard => write!(route, "/{{{position}}}"),
        }
        .expect("writing to a string does not fail");
    }
    route
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::parse(text).unwrap()
    }

    fn url(text: &str) -> DocumentUrl {
        DocumentUrl::parse(text).unwrap()
    }

    fn router(endpoints: &[&'static str]) -> Router<&'static str> {
        let mut router = Router::new();
        endpoints.iter().for_each(|endpoint| router.insert(&pattern(endpoint), *endpoint).unwrap());
        router
    }

    #[test]
    fn the_most_specific_pattern_wins() {
        let general = "http://h/users/{id}/{x}";
        let me = "http://h/users/me/{x}";
        let posts = "http://h/users/{id}/posts";
        let router = router(&[general, me, posts]);
        assert_eq!(router.find(&url("http://h/users/1/likes")), Some(&general));
        assert_eq!(router.find(&url("http://h/users/me/likes")), Some(&me));
        assert_eq!(router.find(&url("http://h/users/1/posts")), Some(&posts));
        assert_eq!(router.find(&url("http://h/users/me/posts")), Some(&me));
        let both = url("http://h/users/me/posts");
        assert_eq!(router.fitting(&both).copied().collect::<Vec<_>>(), [me, posts, general]);
        assert_eq!(router.find(&url("http://h/users/1")), None);
        assert_eq!(router.find(&url("http://h/users/1/likes/2")), None);
        assert_eq!(router.find(&url("http://h")), None);
    }

    #[test]
    fn a_literal_that_leads_nowhere_gives_way_to_a_wildcard() {
        let router = router(&["http://h/a/b/{x}/c", "http://h/a/{y}/d/e", "http://h/{z}/b/d/{w}"]);
        assert_eq!(router.find(&url("http://h/a/b/d/c")), Some(&"http://h/a/b/{x}/c"));
        assert_eq!(router.find(&url("http://h/a/b/d/e")), Some(&"http://h/a/{y}/d/e"));
        assert_eq!(router.find(&url("http://h/a/b/d/f")), Some(&"http://h/{z}/b/d/{w}"));
    }

    #[test]
    fn origins_are_apart() {
        let router = router(&["http://h/{id}", "https://h/{id}", "http://h:81/{id}"]);
        assert_eq!(router.find(&url("https://H:443/1")), Some(&"https://h/{id}"));
        assert_eq!(router.find(&url("http://h:81/1")), Some(&"http://h:81/{id}"));
        assert_eq!(router.find(&url("http://hh/1")), None);
    }

    #[test]
    fn odd_names_and_literals_are_only_text() {
        let odd = "http://h/*/{*}/a:b/{*rest}/:c/%7Bd%7D";
        let router = router(&[odd]);
        assert_eq!(router.find(&url("http://h/*/x/a:b/y/:c/%7bd%7d")), Some(&odd));
        assert_eq!(router.find(&url("http://h/z/x/a:b/y/:c/%7Bd%7D")), None);
        assert_eq!(router.find(&url("http://h/*/x/a:b/y/c/%7Bd%7D")), None);
    }

    #[test]
    fn equal_shapes_conflict_and_the_other_is_named() {
        let mut router = router(&["http://h/users/{id}"]);
        let conflict = router.insert(&pattern("http://h/users/{name}"), "new").unwrap_err();
        assert_eq!(conflict.existing, "http://h/users/{id}");
        assert!(
            conflict
                .to_string()
                .contains("`http://h/users/{name}` has the same shape as `http://h/users/{id}`")
        );
        assert_eq!(router.get(&pattern("http://h/users/{x}")), Some(&"http://h/users/{id}"));
        assert_eq!(router.len(), 1);
    }

    #[test]
    fn a_removed_pattern_gives_its_urls_back() {
        let mut router = router(&["http://h/{a}/{b}", "http://h/x/{b}", "http://h:81/{a}"]);
        assert_eq!(router.remove(&pattern("http://h/x/{other}")), Some("http://h/x/{b}"));
        assert_eq!(router.find(&url("http://h/x/1")), Some(&"http://h/{a}/{b}"));
        assert_eq!(router.remove(&pattern("http://h/x/{b}")), None);
        assert_eq!(router.remove(&pattern("http://h/{a}/{b}")), Some("http://h/{a}/{b}"));
        assert_eq!(router.find(&url("http://h/x/1")), None);
        assert_eq!(router.find(&url("http://h:81/1")), Some(&"http://h:81/{a}"));
        assert!(!router.is_empty() && !router.origins.contains_key("http://h"));
    }

    #[test]
    fn what_a_new_pattern_would_capture_is_listed() {
        let router = router(&[
            "http://h/users/{id}/{x}",
            "http://h/users/{id}/posts",
            "http://h/a/{b}",
            "http://hh/{a}",
        ]);
        let captured = |text: &str| router.captured_by(&pattern(text)).copied().collect::<Vec<_>>();
        assert_eq!(
            captured("http://h/users/me/{x}"),
            ["http://h/users/{id}/posts", "http://h/users/{id}/{x}"]
        );
        assert_eq!(captured("http://h/{a}/{b}/{c}"), [""; 0]);
    }

    const WORDS: [&str; 6] = ["a", "b", "ab", "aa", "ba", "*"];

    fn path(wildcards: bool) -> impl Strategy<Value = String> {
        let segment = (0..if wildcards { 10 } else { WORDS.len() }).prop_map(|n| WORDS.get(n).copied());
        prop::collection::vec(segment, 1..5).prop_map(|segments| {
            let text = |(at, segment): (usize, &Option<&str>)| {
                segment.map_or(format!("/{{w{at}}}"), |s| format!("/{s}"))
            };
            segments.iter().enumerate().map(text).collect()
        })
    }

    /// Every pattern is tried; of those that match, the one that no other captures from.
    fn naive<'a>(patterns: &'a [Pattern], url: &DocumentUrl) -> Option<&'a Pattern> {
        let matching: Vec<_> = patterns.iter().filter(|pattern| pattern.matches(url)).collect();
        matching.iter().find(|one| !matching.iter().any(|other| other.captures(one))).copied()
    }

    proptest! {
        #[test]
        fn finding_agrees_with_trying_every_pattern(
            endpoints in prop::collection::vec(path(true), 1..12),
            urls in prop::collection::vec(path(false), 20),
            gone in any::<prop::sample::Index>(),
        ) {
            let mut router = Router::new();
            let mut patterns = Vec::new();
            for pattern in endpoints.iter().filter_map(|path| Pattern::parse(&format!("http://h{path}")).ok()) {
                if router.insert(&pattern, pattern.clone()).is_ok() {
                    patterns.push(pattern);
                }
            }
            let urls: Vec<_> = urls.iter().map(|path| url(&format!("http://h{path}"))).collect();
            for url in &urls {
                prop_assert_eq!(router.find(url), naive(&patterns, url));
            }
            if !patterns.is_empty() {
                let gone = patterns.remove(gone.index(patterns.len()));
                prop_assert_eq!(router.remove(&gone), Some(gone));
            }
            for url in &urls {
                prop_assert_eq!(router.find(url), naive(&patterns, url));
            }
        }
    }
}
