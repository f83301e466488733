//! Behaviours in trouble: what was answered is true, and what was not may be sent again.

use super::super::SinkSite;
use super::super::fixture::*;
use crate::bridge::Sent;

/// One that was used, and one that never was.
pub async fn a_sink_that_is_away_delivers_nothing_and_works_again(site: &dyn SinkSite) {
    let (used, unused) = (site.sink().await, site.sink().await);
    assert_eq!(send_one(&*used, notification("d", 0)).await, Sent::Delivered);
    if !site.set_away(true).await {
        return;
    }
    for sink in [&used, &unused] {
        let sent = send_one(&**sink, notification("d", 1)).await;
        assert!(matches!(sent, Sent::Failed(_) | Sent::Unknown(_)), "{sent:?}");
    }
    assert!(site.set_away(false).await);
    until_delivered(&*used, notification("d", 2)).await;
    until_delivered(&*unused, notification("d", 3)).await;
    let arrived = until_arrived(site, 3).await;
    for number in [0, 2, 3] {
        assert!(arrived.iter().any(|one| one.body == notification("d", number).body), "{number} is missing");
    }
}

/// In the middle of sending.
pub async fn nothing_delivered_is_missing_when_connections_break(site: &dyn SinkSite) {
    send_through(site, async {
        for _ in 0..3 {
            if !site.cut().await {
                return false;
            }
            tokio::time::sleep(LOOK).await;
        }
        true
    })
    .await
}
