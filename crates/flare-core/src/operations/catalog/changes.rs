//! Whatever changes something runs to its end, whoever still listens. In: the work of a request. Out: its result, for as
//! long as somebody waits for it.
//!
//! The server drops the future of a request whose client has left. An operation that ended with it, between its commit
//! and what the registry and the delivery threads are told, would leave memory and store apart. So such work is a task
//! that the node owns and waits for when it stops.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

/// The owner of changes that are under way.
#[derive(Clone)]
pub struct Changes {
    tasks: TaskTracker,
    /// Bound: as many as connections may be open (`http.server.max-connections`), those whose clients have left
    /// included. When full: the next one waits to begin, and ends with its client as long as it does.
    room: Arc<Semaphore>,
}

impl Changes {
    /// Room for so many at once.
    pub fn new(most: usize) -> Changes {
        Changes { tasks: TaskTracker::new(), room: Arc::new(Semaphore::new(most)) }
    }

    /// Does some work. Once it has begun it goes on, even if nobody waits for this future any more.
    pub async fn see_through<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> T {
        let place = self.room.clone().acquire_owned().await.expect("nobody closes it");
        let done = self.tasks.spawn(async move {
            let done = work.await;
            drop(place);
            done
        });
        match done.await.map_err(tokio::task::JoinError::try_into_panic) {
            Ok(done) => done,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // Tasks are cancelled with the runtime alone, and whoever waits here is then too.
            Err(Err(_)) => std::future::pending().await,
        }
    }

    /// Begins some work that nobody waits for.
    pub fn begin(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }

    /// Waits until none is under way; none may begin any more.
    pub async fn done(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::sync::oneshot;
    use tokio::time::timeout;

    const MOMENT: Duration = Duration::from_millis(10);

    #[tokio::test]
    async fn what_has_begun_goes_on_when_nobody_waits_for_it() {
        let changes = Changes::new(1);
        let (go, gone) = oneshot::channel::<()>();
        let (tell, told) = oneshot::channel();
        let work = changes.see_through(async move {
            let _ = gone.await;
            let _ = tell.send("done");
        });
        assert!(timeout(MOMENT, work).await.is_err(), "its client has left");
        go.send(()).unwrap();
        assert_eq!(told.await, Ok("done"));
        changes.done().await;
    }

    #[tokio::test]
    async fn what_waits_for_room_ends_with_its_client() {
        let changes = Changes::new(1);
        let (go, gone) = oneshot::channel::<()>();
        let first = changes.see_through(async move { gone.await.is_ok() });
        assert!(timeout(MOMENT, first).await.is_err());
        let (tell, told) = oneshot::channel::<()>();
        let second = changes.see_through(async move { tell.send(()).is_ok() });
        assert!(timeout(MOMENT, second).await.is_err(), "there is no room");
        assert!(told.await.is_err(), "it has not begun, and never will");
        go.send(()).unwrap();
        changes.done().await;
        assert_eq!(changes.see_through(async { 7 }).await, 7, "there is room again");
    }
}
