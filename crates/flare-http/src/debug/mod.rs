//! `/debug/pprof/`: profiles of this process, for whoever runs it. In: a request, and who sends it. Out: whether that is
//! somebody who may.

mod format;
pub mod heap;
pub mod profile;

use std::net::{IpAddr, SocketAddr};

use flare_core::config::{AuthMode, Config};
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::header::{AUTHORIZATION, HeaderMap};
use http::{Request, StatusCode};
use serde_json::json;
use sha2::Sha256;

use super::error::ApiError;
use super::openapi::Notes;

/// Where a request comes from.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);

/// Headers by which a proxy says that it sends a request for somebody else.
const FORWARDED: [&str; 3] = ["forwarded", "x-forwarded-for", "x-real-ip"];

/// Notes where a request comes from, where that matters: with authentication always. For all others this is one comparison.
pub fn introduce<B>(request: &mut Request<B>, peer: SocketAddr, always: bool) {
    if always || request.uri().path().starts_with("/debug/") {
        request.extensions_mut().insert(Peer(peer.ip()));
    }
}

/// Admits an administrator, and nobody while it is off.
fn admit(config: &Config, peer: Option<Peer>, headers: &HeaderMap) -> Result<(), ApiError> {
    if !config.debug.profiling {
        return Err(ApiError::not_found("profiles are off; debug.profiling = true turns them on"));
    }
    // Then the guard has let in the operator alone.
    if config.auth.mode == AuthMode::Token {
        return Ok(());
    }
    let Some(token) = config.auth.operator_token.reveal() else {
        let here = peer.is_some_and(|Peer(ip)| ip.to_canonical().is_loopback());
        let forwarded = FORWARDED.iter().any(|name| headers.contains_key(*name));
        return match here && !forwarded {
            true => Ok(()),
            false => Err(ApiError::new(
                StatusCode::FORBIDDEN,
                "Forbidden",
                "without auth.operator-token only requests from this machine itself are admitted, and none that a \
                 proxy has forwarded; set one, and send it as Authorization: Bearer",
            )),
        };
    };
    let given = headers.get(AUTHORIZATION).and_then(|value| value.as_bytes().split_at_checked(7));
    let given = given.filter(|(scheme, _)| scheme.eq_ignore_ascii_case(b"bearer "));
    match given.is_some_and(|(_, given)| same(given.trim_ascii(), token.as_bytes())) {
        true => Ok(()),
        false => Err(ApiError::new(
            StatusCode::UNAUTHORIZED,
            "Unauthorized",
            "send the value of auth.operator-token as Authorization: Bearer",
        )),
    }
}

/// What the description says of every profile; `build` is what a build needs to have it.
fn describe(it: &mut Notes<'_>, build: &str) {
    it.text("For whoever runs the process, and off unless `debug.profiling = true`. With `auth.operator-token` set it is \
        for whoever sends that as `Authorization: Bearer`; without it, for requests from the machine itself that no \
        proxy has forwarded.")
        .needs_token()
        .query(
            "format",
            json!({"type": "string", "enum": ["pprof", "svg"]}),
            "`pprof` for tools, `svg` for a flamegraph. Without it `Accept` decides: a browser gets the picture.",
            json!("pprof"),
        )
        .answers_only(&[400, 503])
        .answers_as(
            200,
            "The profile.",
            "application/octet-stream",
            json!({"type": "string", "contentMediaType": "application/octet-stream"}),
            json!("profile.proto, not compressed"),
        )
        .or_as(
            200,
            "image/svg+xml",
            json!({"type": "string"}),
            json!("<svg xmlns=\"http://www.w3.org/2000/svg\"/>"),
        )
        .refuses(401, "`auth.operator-token` is set, and was not sent.")
        .with_header(401, "WWW-Authenticate", json!({"type": "string", "const": "Bearer"}), "What to send it by.")
        .refuses(403, "`auth.operator-token` is not set, and the request comes from elsewhere.")
        .refuses(404, "`debug.profiling` is off.")
        .refuses(429, "A profile is being taken; one at a time.")
        .refuses(501, &format!("This Flare was built without `{build}`."));
}

/// Whether two texts are the same, in a time that tells nothing about either: what is compared are their codes under a
/// key, and that in constant time.
fn same(given: &[u8], token: &[u8]) -> bool {
    let code = |text: &[u8]| {
        let mac: Hmac<Sha256> =
            Hmac::new_from_slice(b"auth.operator-token").expect("a key may have any length");
        mac.chain_update(text)
    };
    code(token).verify(&code(given).finalize().into_bytes()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(config: &Config, peer: &str, headers: &[(&'static str, &str)]) -> u16 {
        use axum::response::IntoResponse as _;
        let map =
            headers.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect();
        let peer = Some(Peer(peer.parse().unwrap()));
        admit(config, peer, &map).map_or_else(|error| error.into_response().status().as_u16(), |()| 200)
    }

    fn profiling() -> Config {
        let mut config = Config::default();
        config.debug.profiling = true;
        config
    }

    #[test]
    fn nobody_is_admitted_while_it_is_off() {
        assert_eq!(status(&Config::default(), "127.0.0.1", &[]), 404);
    }

    #[test]
    fn without_a_token_only_this_machine_is_admitted_and_nobody_through_a_proxy() {
        let config = profiling();
        for (peer, expected) in
            [("127.0.0.1", 200), ("::1", 200), ("::ffff:127.0.0.1", 200), ("10.0.0.1", 403), ("8.8.8.8", 403)]
        {
            assert_eq!(status(&config, peer, &[]), expected, "{peer}");
        }
        assert_eq!(status(&config, "127.0.0.1", &[("x-forwarded-for", "127.0.0.1")]), 403);
        assert!(admit(&config, None, &HeaderMap::new()).is_err());
    }

    #[test]
    fn with_a_token_everybody_needs_it_and_nobody_else_does() {
        let mut config = profiling();
        config.auth.operator_token = flare_core::config::Token::given("correct horse battery staple");
        for (given, expected) in [
            ("Bearer correct horse battery staple", 200),
            ("bearer  correct horse battery staple", 200),
            ("Bearer correct horse battery stapl", 401),
            ("Bearer correct horse battery staple!", 401),
            ("Bearer ", 401),
            ("Bear", 401),
            ("Basic correct horse battery staple", 401),
        ] {
            for peer in ["127.0.0.1", "8.8.8.8"] {
                assert_eq!(
                    status(&config, peer, &[("authorization", given)]),
                    expected,
                    "{given} from {peer}"
                );
            }
        }
        assert_eq!(status(&config, "127.0.0.1", &[]), 401, "loopback alone is not enough then");
    }
}
