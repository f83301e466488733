//! The cookie that keeps a browser signed in: a token, and for the operator the account, come in; what the browser keeps
//! goes out, and back. No script can read it, and no other site's page has it sent.

use std::time::Duration;

use flare_http::access::guard::Shown;
use http::header::{COOKIE, HeaderMap, HeaderValue, ORIGIN};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const NAME: &str = "flare-session";

/// What a browser shows.
pub fn shown(headers: &HeaderMap) -> Option<Shown> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    let (_, value) = pairs.find(|(name, _)| *name == NAME)?;
    let (token, account) = value.split_once('.')?;
    let token: Vec<u8> = percent_decode_str(token).collect();
    let account = percent_decode_str(account).decode_utf8().ok()?.into_owned();
    (!token.is_empty())
        .then_some(Shown { token, account: Some(account).filter(|account| !account.is_empty()) })
}

/// The header that keeps a token for so long. Over TLS it is sent over nothing else: Flare's own, or that of a proxy, as the
/// browser itself says by the origin of the form.
pub fn keep(
    token: &str,
    account: &str,
    time: Duration,
    headers: &HeaderMap,
    speaks_tls: bool,
) -> HeaderValue {
    let secure =
        speaks_tls || headers.get(ORIGIN).is_some_and(|origin| origin.as_bytes().starts_with(b"https://"));
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let cookie = format!(
        "{NAME}={}.{}; Path=/; Max-Age={}; HttpOnly; SameSite=Strict{}",
        encode(token),
        encode(account),
        time.as_secs(),
        if secure { "; Secure" } else { "" }
    );
    HeaderValue::from_str(&cookie).expect("what is encoded is plain text")
}

/// The header that forgets it.
pub fn forget() -> HeaderValue {
    HeaderValue::from_static("flare-session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_shows_what_it_was_given() {
        let kept = |origin: &'static str| {
            let headers = HeaderMap::from_iter([(ORIGIN, HeaderValue::from_static(origin))]);
            let kept = keep("op.era;tor=1", "acme", Duration::from_secs(60), &headers, false);
            kept.to_str().unwrap().to_owned()
        };
        let over_tls = keep("a", "", Duration::from_secs(60), &HeaderMap::new(), true);
        assert!(over_tls.to_str().unwrap().ends_with("; Secure"), "whatever the browser says");
        let sent = kept("http://127.0.0.1:8080");
        for part in ["HttpOnly", "SameSite=Strict", "Max-Age=60"] {
            assert!(sent.contains(part), "{sent}");
        }
        assert!(!sent.contains("Secure") && kept("https://flare.company.com").ends_with("; Secure"));
        let (pair, _) = sent.split_once(';').unwrap();
        let pair = HeaderValue::from_str(&format!("a=b; {pair}")).unwrap();
        let shown = shown(&HeaderMap::from_iter([(COOKIE, pair)])).unwrap();
        assert_eq!(
            (shown.token.as_slice(), shown.account.as_deref()),
            (b"op.era;tor=1".as_slice(), Some("acme"))
        );
        for none in ["flare-session=", "flare-session=.", "other=a.b"] {
            let headers = HeaderMap::from_iter([(COOKIE, HeaderValue::from_static(none))]);
            assert!(super::shown(&headers).is_none(), "{none}");
        }
    }
}
