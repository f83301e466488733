//! Whatever comes in as a url: it is refused, or has one spelling, which is read as itself; and where it is a pattern as well, the
//! pattern's own url fits it.

use flare_model::pattern::Pattern;
use flare_model::subscription::credentials::{
    REDACTED, credentials_in_query, has_credentials_in_query, redacted_url,
};
use flare_model::template::UrlTemplate;
use flare_model::url::DocumentUrl;

pub fn run(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(url) = DocumentUrl::parse(text) {
        let again = DocumentUrl::parse(url.as_str()).expect("its own spelling is a url");
        assert_eq!(again.as_str(), url.as_str());
        assert!(!url.as_str().contains(|c: char| c.is_control()), "{url:?}");
        if let Ok(asked) = DocumentUrl::from_request_path(url.as_str()) {
            assert_eq!(asked.as_str(), url.as_str());
        }
    }
    let _ = DocumentUrl::from_request_path(text);
    if let Ok(pattern) = Pattern::parse(text) {
        let again = Pattern::parse(pattern.normalised()).expect("its own spelling is a pattern");
        assert_eq!(again.normalised(), pattern.normalised());
        assert!(pattern.captures(&again) || pattern.shape() == again.shape());
        let mut router = flare_model::router::Router::default();
        assert!(router.insert(&pattern, 1).is_ok(), "an empty router takes it");
    }
    if let Ok(template) = UrlTemplate::parse(text, &["id", "name"]) {
        let mut path = String::new();
        template.render_path(&["a/b?c#d", "\r\n{id}"], "1\n2", &mut path);
        assert!(path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()), "{path:?}");
        assert!(!path.contains('#'));
    }
    let shown = redacted_url(text);
    assert!(!has_credentials_in_query(&shown), "{shown}");
    for value in credentials_in_query(text).filter(|value| value.len() > 20 && !REDACTED.contains(value)) {
        let query = shown.split_once('?').map_or("", |(_, query)| query);
        assert!(query.matches(value).count() < text.matches(value).count(), "{value} is still there");
    }
}
