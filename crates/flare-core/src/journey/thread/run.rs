//! The body of a delivery thread: it listens to the bell, the clock and the node, until it is told to stop.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

use crate::journey::bell::Bell;
use crate::journey::log::tail::Tails;
use crate::journey::settling::recorder;
use crate::journey::thread::command::Command;
use crate::journey::thread::obey::obey;
use crate::journey::worker::{Tools, Worker};

/// Serves as one delivery thread, until it is told to stop.
/// Serves until it is told to stop, then finishes what is in flight and records.
pub async fn serve(
    thread: usize,
    tools: Arc<Tools>,
    bell: Arc<Bell>,
    tails: Arc<Tails>,
    mut commands: mpsc::Receiver<Command>,
) {
    let worker = Worker::new(thread, tools, TaskTracker::new());
    let recording = tokio::task::spawn_local(recorder::recorder(worker.clone()));
    let earlier = worker.borrow().alarms.earlier();
    let stopped = loop {
        let next = worker.borrow_mut().ring_alarms().unwrap_or(Duration::from_secs(3600));
        tokio::select! {
            // In this order, so that a simulation can be repeated: the seldom before the frequent, which would crowd it
            // out. Commands are bounded by the runtime's budget of a task, beyond which they are not ready.
            biased;
            command = commands.recv() => match command {
                Some(Command::Stop(done)) => break Some(done),
                Some(command) => obey(&worker, &tails, command),
                None => break None,
            },
            () = earlier.notified() => {}
            () = tokio::time::sleep(next) => {}
            rung = bell.heard() => worker.borrow_mut().rung(rung),
        }
    };
    stop(&worker, recording).await;
    if let Some(done) = stopped {
        let _ = done.send(());
    }
}

/// Finishes what is in flight, then records that nothing is.
async fn stop(worker: &Rc<RefCell<Worker>>, recording: tokio::task::JoinHandle<()>) {
    let drained = {
        let mut worker = worker.borrow_mut();
        worker.stopping = true;
        worker.hosts.dismiss_idle_couriers();
        worker.drained.clone()
    };
    while worker.borrow().in_flight > 0 {
        drained.notified().await;
    }
    // The recorder may be waiting for a commit: what it took is durable or will be found again.
    recorder::finish(worker, recording).await;
    worker.borrow_mut().take_back_what_nobody_has();
    for (_, subscriber) in worker.borrow_mut().subscribers.iter_mut() {
        subscriber.lanes.iter_mut().for_each(|lane| lane.feed.close());
    }
    recorder::write_all(worker).await;
}
