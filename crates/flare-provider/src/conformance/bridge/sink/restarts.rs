//! Behaviours around a server that ends and is started again.

use super::super::SinkSite;
use super::super::fixture::send_through;

/// In the middle of sending.
pub async fn nothing_delivered_is_missing_after_a_restart(site: &dyn SinkSite) {
    send_through(site, site.restart()).await
}
