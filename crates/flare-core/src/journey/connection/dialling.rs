//! How many connections are being opened at once. In: those who want one. Out: their turn.
//!
//! After a start a thousand hosts may have something to get, and opening a connection is the most expensive part of the first
//! delivery: a name is looked up, and with TLS keys are agreed on. All at once they would hold up everything else, and whoever
//! is behind one address with them.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Connections that are being opened at once, in all.
const AT_ONCE: usize = 32;

/// One that takes longer than this lets the next one begin: it waits for the other side, and works at nothing.
const AT_WORK: Duration = Duration::from_millis(100);

/// Those who open connections, one after the other.
#[derive(Clone)]
pub struct Dialling(Arc<Semaphore>);

/// Somebody's turn to open a connection.
pub struct DialTurn {
    place: Option<OwnedSemaphorePermit>,
}

impl Default for Dialling {
    fn default() -> Dialling {
        Dialling(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl Dialling {
    /// Waits for a turn.
    pub async fn turn(&self) -> DialTurn {
        DialTurn { place: self.0.clone().acquire_owned().await.ok() }
    }
}

impl DialTurn {
    /// A turn that nobody had to wait for.
    pub fn free() -> DialTurn {
        DialTurn { place: None }
    }

    /// Opens a connection in this turn.
    pub async fn open<T>(self, opening: impl Future<Output = T>) -> T {
        let mut opening = pin!(opening);
        if self.place.is_some() {
            if let Ok(opened) = tokio::time::timeout(AT_WORK, opening.as_mut()).await {
                return opened;
            }
            drop(self);
        }
        opening.await
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// How many of a hundred have begun, after each tenth of a second.
    async fn begun(opening: impl AsyncFn()) -> Vec<usize> {
        let (dialling, begun) = (Dialling::default(), Cell::new(0));
        let one = async || {
            let turn = dialling.turn().await;
            turn.open(async {
                begun.set(begun.get() + 1);
                opening().await;
            })
            .await;
        };
        let all = futures_util::future::join_all((0..100).map(|_| one()));
        let watch = async {
            let mut seen = Vec::new();
            for _ in 0..5 {
                tokio::time::sleep(AT_WORK / 2).await;
                seen.push(begun.get());
                tokio::time::sleep(AT_WORK / 2).await;
            }
            seen
        };
        tokio::select! {
            seen = watch => seen,
            _ = async { all.await; std::future::pending::<()>().await } => unreachable!("it never ends"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_hang_hold_up_the_others_for_a_moment_only() {
        assert_eq!(begun(async || std::future::pending().await).await, [32, 64, 96, 100, 100]);
    }

    #[tokio::test(start_paused = true)]
    async fn those_that_are_quick_follow_each_other_at_once() {
        let quick = async || tokio::time::sleep(Duration::from_millis(10)).await;
        assert_eq!(begun(quick).await[0], 100);
    }
}
