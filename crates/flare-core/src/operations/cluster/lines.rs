//! How this node speaks TLS to others of its cluster: the files of the configuration come in, what a connection is opened with goes
//! out.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::ClientConfig;

use crate::operations::App;
use crate::tls;

/// What connections to other nodes are opened with, and when that was made.
#[derive(Default)]
pub(in crate::operations) struct Lines(Mutex<Option<(Duration, Arc<ClientConfig>)>>);

impl App {
    /// What a connection to another node is opened with. It is made anew as often as it is looked for another certificate of the
    /// API, which is the one that is shown.
    pub fn tls_between_nodes(&self) -> anyhow::Result<Arc<ClientConfig>> {
        let now = self.clock.monotonic();
        let mut made = self.lines.0.lock();
        let fresh = made.as_ref().filter(|(at, _)| now < *at + self.config.http.server.tls.reload_interval);
        if let Some((_, known)) = fresh {
            return Ok(known.clone());
        }
        let new = tls::between_nodes(&self.config)?;
        *made = Some((now, new.clone()));
        Ok(new)
    }
}
