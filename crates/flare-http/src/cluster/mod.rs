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

use http::HeaderMap;
use http::header::HeaderName;

use flare_core::operations::App;

/// The node that a request was sent on by. It is answered where it arrives, and not sent on again.
pub const FORWARDED_BY: HeaderName = HeaderName::from_static("flare-forwarded-by");

/// The node that made an answer, if it is not the one that was asked.
pub const NODE: HeaderName = HeaderName::from_static("flare-node");

/// What nodes show each other.
pub const TOKEN: HeaderName = HeaderName::from_static("flare-cluster-token");

/// Whether another node of the cluster sent a request on.
pub fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(FORWARDED_BY)
}

/// Whether who says that he is a node shows what nodes share.
pub fn is_trusted(app: &App, headers: &HeaderMap) -> bool {
    let Some(token) = app.config.cluster.token.reveal() else { return true };
    let shown = headers.get(TOKEN).map(|shown| shown.as_bytes()).unwrap_or_default();
    // In the same time wherever they differ.
    let differing = shown.iter().zip(token.as_bytes()).fold(0, |differ, (one, other)| differ | (one ^ other));
    differing == 0 && shown.len() == token.len()
}
