//! In: a url. Out: its [`Authority`] (scheme, host, port, normalised) and the rest, from the path on. Document urls,
//! endpoints of resources and url templates all begin here, so that they agree on what the same host is.

use std::borrow::Cow;
use std::net::Ipv6Addr;

use super::{UrlError, percent};

/// The two schemes that Flare speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scheme {
    /// `http`, port 80.
    Http,
    /// `https`, port 443.
    Https,
}

impl Scheme {
    /// In lower case, without the colon.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }

    /// The port that is meant when none is written.
    pub fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        [Self::Http, Self::Https].into_iter().find(|scheme| text.eq_ignore_ascii_case(scheme.as_str()))
    }
}

/// Who is addressed, normalised.
#[derive(Debug)]
pub(crate) struct Authority {
    pub scheme: Scheme,
    /// Lower case; an IPv6 address has its brackets.
    pub host: String,
    /// Only where it is not the scheme's default.
    pub port: Option<u16>,
}

impl Authority {
    /// Appends `http://host:port`.
    pub fn write_origin(&self, out: &mut String) {
        out.push_str(self.scheme.as_str());
        out.push_str("://");
        self.write(out);
    }

    /// Appends `host:port`, as in a Host header.
    pub fn write(&self, out: &mut String) {
        out.push_str(&self.host);
        if let Some(port) = self.port {
            out.push(':');
            out.push_str(&port.to_string());
        }
    }
}

/// Splits an absolute url where its path, query string or fragment begins: (scheme, authority's text, the rest).
pub(crate) fn cut(text: &str) -> Result<(Scheme, &str, &str), UrlError> {
    let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
    let scheme = Scheme::read(scheme).ok_or(UrlError::Scheme)?;
    let end = rest.bytes().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(rest.len());
    Ok((scheme, &rest[..end], &rest[end..]))
}

/// Reads and normalises the authority of an absolute url; gives it and the rest.
pub(crate) fn split(text: &str) -> Result<(Authority, &str), UrlError> {
    let (scheme, authority, rest) = cut(text)?;
    if authority.contains('@') {
        return Err(UrlError::UserInfo);
    }
    let (host, port) = host_and_port(authority);
    let host = read_host(&international(host)?)?;
    let port = port.map(read_port).transpose()?.filter(|port| *port != scheme.default_port());
    Ok((Authority { scheme, host, port }, rest))
}

fn host_and_port(authority: &str) -> (&str, Option<&str>) {
    // The colons of an IPv6 address stand before the closing bracket.
    let from = authority.rfind(']').unwrap_or(0);
    match authority[from..].find(':') {
        Some(colon) => (&authority[..from + colon], Some(&authority[from + colon + 1..])),
        None => (authority, None),
    }
}

fn read_port(text: &str) -> Result<u16, UrlError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u16>() {
        Ok(port) if digits && port > 0 => Ok(port),
        _ => Err(UrlError::Port { port: text.to_owned() }),
    }
}

/// An international name in Unicode, percent-encoded or not, as the `xn--` form that DNS is asked for; any other host as
/// it is.
fn international(host: &str) -> Result<Cow<'_, str>, UrlError> {
    let decoded = if host.is_ascii() { percent::decode(host).ok() } else { Some(host.to_owned()) };
    let Some(name) = decoded.filter(|name| !name.is_ascii() && !name.contains(' ')) else {
        return Ok(Cow::Borrowed(host));
    };
    idna::domain_to_ascii(&name).map(Cow::Owned).map_err(|_| UrlError::NonAsciiHost { host: name })
}

/// A url with its host in the `xn--` form, where it is written in Unicode; `None` where there is nothing to change, or where
/// it is no name, which whoever reads the url says.
pub fn with_ascii_host(url: &str) -> Option<String> {
    let start = url.find("://")? + 3;
    let end = url[start..].find(['/', '?', '#']).map_or(url.len(), |end| start + end);
    let (host, _) = host_and_port(&url[start..end]);
    if host.is_ascii() {
        return None;
    }
    let ascii = international(host).ok()?;
    Some(format!("{}{ascii}{}", &url[..start], &url[start + host.len()..]))
}

fn read_host(host: &str) -> Result<String, UrlError> {
    if let Some(inside) = host.strip_prefix('[') {
        let address = inside.strip_suffix(']').and_then(|address| address.parse::<Ipv6Addr>().ok());
        return address.map(|address| format!("[{address}]")).ok_or_else(|| bad_host(host));
    }
    // A final dot (a name that is complete) is legal and another name to a resolver, so it stays.
    let mut labels = host.strip_suffix('.').unwrap_or(host).split('.');
    let legal = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
    };
    if host.len() > 254 || !labels.all(legal) {
        return Err(bad_host(host));
    }
    Ok(host.to_ascii_lowercase())
}

fn bad_host(host: &str) -> UrlError {
    match host {
        "" => UrlError::EmptyHost,
        host if host.contains(' ') => UrlError::Blank,
        host if host.contains(|c: char| c.is_ascii_control()) => UrlError::Control,
        host => UrlError::Host { host: host.to_owned() },
    }
}
