//! `/cluster`: the nodes, what each has, and how all of it fares; and requests that another node has to answer.

pub mod assignments;
pub mod drain;
pub mod explain;
pub mod forward;
pub mod gather;
pub mod health;
pub mod nodes;
pub mod relay;
pub mod reroute;
pub mod stats;

use std::net::IpAddr;

use http::header::HeaderName;
use http::{HeaderMap, Request};

use flare_core::operations::App;

use crate::debug::Peer;

/// The node that a request was sent on by. It is answered where it arrives, and not sent on again.
pub const FORWARDED_BY: HeaderName = HeaderName::from_static("flare-forwarded-by");

/// Whom a request was sent on for, where there is authentication: the audit log and whoever slows guesses go by it.
pub const FORWARDED_FOR: HeaderName = HeaderName::from_static("flare-forwarded-for");

/// The node that made an answer, if it is not the one that was asked.
pub const NODE: HeaderName = HeaderName::from_static("flare-node");

/// What nodes show each other.
pub const TOKEN: HeaderName = HeaderName::from_static("flare-cluster-token");

/// Whether another node of the cluster sent a request on.
pub fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(FORWARDED_BY)
}

/// Where a request comes from. A node that sent it on says for whom, and is believed if it shows what nodes share.
pub fn address_of<B>(app: &App, request: &Request<B>) -> Option<IpAddr> {
    let headers = request.headers();
    let by_a_node = || {
        app.member.is_some()
            && is_forwarded(headers)
            && app.config.cluster.token.reveal().is_some()
            && is_trusted(app, headers)
    };
    let said = headers.get(FORWARDED_FOR).filter(|_| by_a_node());
    let said = said.and_then(|said| said.to_str().ok()?.parse().ok());
    said.or_else(|| request.extensions().get::<Peer>().map(|Peer(address)| *address))
}

/// Whether who says that he is a node shows what nodes share.
pub fn is_trusted(app: &App, headers: &HeaderMap) -> bool {
    let Some(token) = app.config.cluster.token.reveal() else { return true };
    let shown = headers.get(TOKEN).map(|shown| shown.as_bytes()).unwrap_or_default();
    // In the same time wherever they differ.
    let differing = shown.iter().zip(token.as_bytes()).fold(0, |differ, (one, other)| differ | (one ^ other));
    differing == 0 && shown.len() == token.len()
}
