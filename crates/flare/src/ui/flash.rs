//! A word to the next page: what was done comes in before a redirect, and goes out as a cookie that the page after it
//! shows and forgets.

use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{COOKIE, HeaderMap, HeaderValue, LOCATION, SET_COOKIE};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

const COOKIE_NAME: &str = "flare-flash";
/// Characters of a message, at most: a cookie has to fit into the head of a request.
const LONGEST: usize = 500;

/// What kind of word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// It was done.
    Success,
    /// It was not.
    Danger,
}

/// A word to the next page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flash {
    /// What kind.
    pub tone: Tone,
    /// The words.
    pub text: String,
}

impl Flash {
    /// What is waiting to be shown.
    pub fn read(headers: &HeaderMap) -> Option<Flash> {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut pairs =
            cookies.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let (_, value) = pairs.find(|(name, _)| *name == COOKIE_NAME)?;
        let (tone, text) = value.split_once('.')?;
        let tone = match tone {
            "success" => Tone::Success,
            "danger" => Tone::Danger,
            _ => return None,
        };
        let text = percent_decode_str(text).decode_utf8().ok()?.into_owned();
        Some(Flash { tone, text })
    }

    /// The kind, as style sheets name it.
    pub fn tone(&self) -> &'static str {
        match self.tone {
            Tone::Success => "success",
            Tone::Danger => "danger",
        }
    }

    fn cookie(&self) -> String {
        let tone = self.tone();
        let text: String = self.text.chars().take(LONGEST).collect();
        let text = utf8_percent_encode(&text, NON_ALPHANUMERIC);
        format!("{COOKIE_NAME}={tone}.{text}; Path=/ui; Max-Age=60; HttpOnly; SameSite=Strict")
    }
}

/// The header that forgets what was shown.
pub fn forget() -> HeaderValue {
    HeaderValue::from_static("flare-flash=; Path=/ui; Max-Age=0; HttpOnly; SameSite=Strict")
}

/// On to another page, which says that it was done.
pub fn done(to: &str, text: impl Into<String>) -> Response {
    redirect(to, &Flash { tone: Tone::Success, text: text.into() })
}

/// On to another page, which says why it was not done.
pub fn refused(to: &str, text: impl Into<String>) -> Response {
    redirect(to, &Flash { tone: Tone::Danger, text: text.into() })
}

fn redirect(to: &str, flash: &Flash) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    for (name, value) in [(LOCATION, to.to_owned()), (SET_COOKIE, flash.cookie())] {
        let value = HeaderValue::from_str(&value).expect("paths of pages and encoded words are plain text");
        response.headers_mut().insert(name, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_arrives_as_it_was_sent() {
        let flash = Flash { tone: Tone::Danger, text: "no; \"é\" = 100 %\n".into() };
        let sent = flash.cookie();
        let (pair, _) = sent.split_once(';').unwrap();
        let headers =
            HeaderMap::from_iter([(COOKIE, HeaderValue::from_str(&format!("a=b; {pair}; c=d")).unwrap())]);
        assert_eq!(Flash::read(&headers), Some(flash));
    }

    #[test]
    fn a_cookie_of_someone_else_says_nothing() {
        for cookie in ["flare-flash=", "flare-flash=loud.hello", "flare-flash=success.%FF", "x=success.y"] {
            let headers = HeaderMap::from_iter([(COOKIE, HeaderValue::from_static(cookie))]);
            assert_eq!(Flash::read(&headers), None, "{cookie}");
        }
    }
}
