//! Style sheets and scripts, embedded in the binary: the name of a file comes in, the file goes out, with a name that
//! changes with its content, so that browsers keep it for ever.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use axum::body::Body;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderValue, VARY,
};
use http::{HeaderName, StatusCode};
use sha2::{Digest, Sha256};

/// A file as it is in the binary.
struct Asset {
    /// Its name in templates.
    name: &'static str,
    content: Content,
}

enum Content {
    /// As it is.
    Plain(&'static str),
    /// Compressed by `cargo xtask assets`.
    Gzip(&'static [u8]),
}

static ASSETS: [Asset; 5] = [
    Asset {
        name: "tabler.css",
        content: Content::Gzip(include_bytes!("../../ui-assets/vendor/tabler.css.gz")),
    },
    Asset { name: "flare.css", content: Content::Plain(include_str!("../../ui-assets/flare.css")) },
    Asset { name: "turbo.js", content: Content::Gzip(include_bytes!("../../ui-assets/vendor/turbo.js.gz")) },
    Asset { name: "moving.js", content: Content::Plain(include_str!("../../ui-assets/moving.js")) },
    Asset { name: "flare.js", content: Content::Plain(include_str!("../../ui-assets/flare.js")) },
];

/// The name of each asset to the world, in the order of [`ASSETS`].
static NAMES: LazyLock<[String; ASSETS.len()]> =
    LazyLock::new(|| std::array::from_fn(|at| ASSETS[at].hashed_name()));

impl Asset {
    fn bytes(&self) -> &'static [u8] {
        match &self.content {
            Content::Plain(text) => text.as_bytes(),
            Content::Gzip(bytes) => bytes,
        }
    }

    fn hashed_name(&self) -> String {
        let (stem, extension) = self.name.rsplit_once('.').expect("every asset has an extension");
        let mut name = format!("{stem}-");
        for byte in &Sha256::digest(self.bytes())[..8] {
            write!(name, "{byte:02x}").expect("writing to a string cannot fail");
        }
        format!("{name}.{extension}")
    }

    fn media_type(&self) -> &'static str {
        if self.name.ends_with(".css") { "text/css; charset=utf-8" } else { "text/javascript; charset=utf-8" }
    }
}

/// The address of an asset, for templates.
pub fn url(name: &str) -> String {
    let at = ASSETS.iter().position(|asset| asset.name == name);
    format!("/ui/assets/{}", NAMES[at.expect("templates name assets that exist; a test renders them all")])
}

/// `GET /ui/assets/{file}`.
pub async fn handle(Path(file): Path<String>, headers: HeaderMap) -> Response {
    let Some(at) = NAMES.iter().position(|name| *name == file) else {
        return (StatusCode::NOT_FOUND, "there is no such file\n").into_response();
    };
    let asset = &ASSETS[at];
    let (body, encoding) = match &asset.content {
        Content::Plain(text) => (Cow::Borrowed(text.as_bytes()), None),
        Content::Gzip(bytes) if takes_gzip(&headers) => (Cow::Borrowed(*bytes), Some("gzip")),
        Content::Gzip(bytes) => (Cow::Owned(unpack(bytes)), None),
    };
    let body = match body {
        Cow::Borrowed(bytes) => Body::from(bytes),
        Cow::Owned(bytes) => Body::from(bytes),
    };
    let mut response = Response::new(body);
    let mut insert =
        |name: HeaderName, value| response.headers_mut().insert(name, HeaderValue::from_static(value));
    insert(CONTENT_TYPE, asset.media_type());
    insert(CACHE_CONTROL, "public, max-age=31536000, immutable");
    insert(VARY, "accept-encoding");
    if let Some(encoding) = encoding {
        insert(CONTENT_ENCODING, encoding);
    }
    response
}

/// Whether the client says that it reads gzip; one that says nothing does not.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|coding| {
        let (name, parameters) = coding.split_once(';').unwrap_or((coding, ""));
        let refused = matches!(parameters.trim().strip_prefix("q="), Some("0" | "0.0" | "0.00" | "0.000"));
        matches!(name.trim(), "gzip" | "x-gzip" | "*") && !refused
    })
}

/// What `cargo xtask assets` packed: a head of ten bytes, the deflated text, and eight bytes of sums.
fn unpack(gzip: &[u8]) -> Vec<u8> {
    let deflated = &gzip[10..gzip.len() - 8];
    miniz_oxide::inflate::decompress_to_vec(deflated)
        .expect("what is embedded was packed well; a test unpacks it")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_packed_asset_unpacks_to_text_that_asks_for_nothing_elsewhere() {
        for asset in &ASSETS {
            let text = match &asset.content {
                Content::Plain(text) => (*text).to_owned(),
                Content::Gzip(bytes) => String::from_utf8(unpack(bytes)).unwrap(),
            };
            assert!(text.len() > 100, "{}", asset.name);
            assert!(!text.contains("url(http") && !text.contains("url(\"http"), "{}", asset.name);
            assert!(!text.contains("@import"), "{}", asset.name);
        }
    }

    #[test]
    fn what_the_browser_takes_is_read_from_its_header() {
        for (header, takes) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, gzip;q=0.8", true),
            ("*", true),
            ("gzip;q=0", false),
            ("br", false),
            ("", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(header))]);
            assert_eq!(takes_gzip(&headers), takes, "{header}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }
}
