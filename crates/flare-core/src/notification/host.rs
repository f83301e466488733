//! Where notifications go: to a host, which is the scheme, the name and the port of a url, and nothing else of it, and as whom
//! one comes there; or to a sink.

use std::sync::Arc;

use crate::bridges::Outlet;
use crate::tls::Identity;

/// What connections are counted for and silence is noticed of.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Destination {
    /// A host, over HTTP.
    Host(HostKey),
    /// A sink.
    Sink(Arc<Outlet>),
}

impl std::fmt::Display for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Destination::Host(host) => host.fmt(f),
            Destination::Sink(outlet) => outlet.fmt(f),
        }
    }
}

impl From<HostKey> for Destination {
    fn from(host: HostKey) -> Destination {
        Destination::Host(host)
    }
}

/// Where a connection over HTTP goes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostKey {
    /// Whether over TLS.
    pub https: bool,
    /// The name or address.
    pub host: Arc<str>,
    /// The port.
    pub port: u16,
    /// The certificate that is shown there: a connection that was opened as one is not another's.
    pub identity: Option<Arc<Identity>>,
}

impl HostKey {
    /// Where an http or https url goes.
    pub fn of(uri: &http::Uri) -> HostKey {
        let https = uri.scheme_str() == Some("https");
        let port = uri.port_u16().unwrap_or(if https { 443 } else { 80 });
        HostKey { https, host: uri.host().unwrap_or_default().into(), port, identity: None }
    }
}

impl std::fmt::Display for HostKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
