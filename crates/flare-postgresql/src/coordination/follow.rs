//! Follows the number that every change of a key raises: when it is told to look, when the next session may be over, and from
//! time to time all the same. One statement each time, for all watches of the process.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use super::{Place, sessions};
use crate::engine::Runner;
use crate::pool::Borrowed;

/// Between two looks at least: many changes close to each other are one.
const GAP: Duration = Duration::from_millis(10);

/// Until the last participant is dropped.
pub(super) async fn run(
    runner: Runner,
    place: Place,
    look: Arc<Notify>,
    tell: watch::Sender<u64>,
    poll_interval: Duration,
) {
    loop {
        let wait = match once(&runner, &place).await {
            Ok((number, ends)) => {
                tell.send_if_modified(|known| std::mem::replace(known, number) != number);
                ends.map_or(poll_interval, |ends| poll_interval.min(ends))
            }
            Err(error) => {
                tracing::debug!(error = %error, "the coordinator cannot be followed now");
                poll_interval
            }
        };
        tokio::time::sleep(GAP).await;
        tokio::select! {
            () = look.notified() => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// The number, and in how long the next session is over. Those that are go now.
async fn once(runner: &Runner, place: &Place) -> flare_provider::Result<(u64, Option<Duration>)> {
    const OPERATION: &str = "cluster.watch";
    let ask = {
        let cluster = place.cluster.clone();
        move |session: Arc<Borrowed>| async move {
            let ask = session
                .prepare(
                    "SELECT (SELECT value FROM numbers WHERE name = 'coordination'),
                     (SELECT ceil(extract(epoch FROM min(ends) - clock_timestamp()) * 1000)::bigint
                      FROM sessions WHERE cluster = $1)",
                )
                .await?;
            let row = session.client.query_one(&ask, &[&&*cluster]).await?;
            Ok((row.try_get::<_, i64>(0)? as u64, row.try_get::<_, Option<i64>>(1)?))
        }
    };
    let (number, left) = runner.read(OPERATION, ask.clone()).await?;
    if left.is_none_or(|left| left > 0) {
        return Ok((number, left.map(|left| Duration::from_millis(left as u64))));
    }
    let at = place.clone();
    let expire = move |session: Arc<Borrowed>| async move { sessions::expire(&session, &at).await };
    runner.write(OPERATION, expire).await?;
    let (number, left) = runner.read(OPERATION, ask).await?;
    Ok((number, left.map(|left| Duration::from_millis(left.max(0) as u64))))
}
