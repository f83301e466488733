//! In: the url of a proxy as a configuration writes it. Out: whom to connect to and what to show there; credentials are shown to
//! nobody else.

use std::fmt;

use super::secret::REDACTED;
use super::setting::{Setting, Unfit};

const NONE: &str = "none";

/// A proxy of HTTP, or none.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProxyUrl(Option<Proxy>);

/// A proxy of HTTP.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Proxy {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// `user:password`, where it asks for them.
    credentials: Option<String>,
}

impl Proxy {
    /// What it is shown, `user:password`.
    pub fn reveal(&self) -> Option<&str> {
        self.credentials.as_deref()
    }
}

impl ProxyUrl {
    /// None.
    pub const fn none() -> Self {
        Self(None)
    }

    /// The proxy.
    pub fn get(&self) -> Option<&Proxy> {
        self.0.as_ref()
    }
}

impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            None => f.write_str(NONE),
            Some(Proxy { host, port, credentials: None }) => write!(f, "http://{host}:{port}"),
            Some(Proxy { host, port, credentials: Some(_) }) => write!(f, "http://{REDACTED}@{host}:{port}"),
        }
    }
}

impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Setting for ProxyUrl {
    const FORM: &'static str =
        r#""none", or http:// and host and port, with user:password@ before them where it asks for it"#;
    const EXAMPLE: Option<&'static str> = Some(r#""http://proxy.company.com:3128""#);
    const SECRET: bool = true;

    fn from_text(text: &str) -> Result<Self, Unfit> {
        if text == NONE {
            return Ok(Self(None));
        }
        let rest = text.strip_prefix("http://").ok_or(Unfit::Form)?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (credentials, rest) = match rest.rsplit_once('@') {
            Some((credentials, rest)) => (Some(credentials), rest),
            None => (None, rest),
        };
        let printable = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
        let fit =
            credentials.is_none_or(|shown| printable(shown) && shown.contains(':') && shown != REDACTED);
        let (host, port) = rest.rsplit_once(':').filter(|_| fit).ok_or(Unfit::Form)?;
        let is_host = printable(host) && !host.contains(['/', '?', '#', '@']);
        let port = port.parse().ok().filter(|port| is_host && *port > 0).ok_or(Unfit::Form)?;
        Ok(Self(Some(Proxy { host: host.to_owned(), port, credentials: credentials.map(ToOwned::to_owned) })))
    }

    fn to_toml(&self) -> toml::Value {
        self.to_string().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_is_host_and_port_and_its_password_is_shown_to_nobody() {
        let proxy = ProxyUrl::from_text("http://me:hunter2@proxy.test:3128/").unwrap();
        assert_eq!(proxy.get().unwrap().reveal(), Some("me:hunter2"));
        assert_eq!((proxy.get().unwrap().host.as_str(), proxy.get().unwrap().port), ("proxy.test", 3128));
        assert_eq!(
            format!("{proxy} {proxy:?}"),
            "http://[redacted]@proxy.test:3128 http://[redacted]@proxy.test:3128"
        );
        assert!(ProxyUrl::from_text("http://[::1]:3128").is_ok());
        assert!(ProxyUrl::from_text("none").unwrap().get().is_none());
        for wrong in [
            "",
            "proxy:1",
            "https://proxy:1",
            "http://proxy",
            "http://proxy:0",
            "http://a@proxy:1",
            "http://proxy:1/a",
            "http://[redacted]@p:1",
        ] {
            assert!(ProxyUrl::from_text(wrong).is_err(), "{wrong}");
        }
    }
}
