//! Where a connection goes: the scheme, the name and the port of a url, and nothing else of it.

use std::sync::Arc;

/// Where a connection goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostKey {
    /// Whether over TLS.
    pub https: bool,
    /// The name or address.
    pub host: Arc<str>,
    /// The port.
    pub port: u16,
}

impl HostKey {
    /// Where an http or https url goes.
    pub fn of(uri: &http::Uri) -> HostKey {
        let https = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
        HostKey { https, host: uri.host().unwrap_or_default().into(), port }
    }
}

impl std::fmt::Display for HostKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
