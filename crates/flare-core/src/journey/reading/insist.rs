//! A read of the store that is made again until the store can be read.

use std::time::Duration;

use flare_provider::ProviderError;

use crate::journey::worker::Tools;

/// A store that cannot be read now is asked again so often.
pub const PATIENCE: Duration = Duration::from_millis(100);

/// Reads until the store can be read. `None`: it never will, and the node stops.
pub async fn insist<T, F>(tools: &Tools, read: impl Fn() -> F) -> Option<T>
where
    F: Future<Output = Result<T, ProviderError>>,
{
    loop {
        match read().await {
            Ok(found) => return Some(found),
            Err(error) => {
                if !may_try_again(tools, error).await {
                    return None;
                }
            }
        }
    }
}

/// Waits if trying again makes sense; otherwise the node has to stop.
async fn may_try_again(tools: &Tools, error: ProviderError) -> bool {
    if !error.is_passing() {
        tools.report.fatal(error);
        return false;
    }
    tokio::time::sleep(PATIENCE).await;
    true
}
