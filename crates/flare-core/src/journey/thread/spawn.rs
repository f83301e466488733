//! Where a delivery thread runs: a thread of the system, or, in a simulation, a task of whoever starts the journey.

use std::sync::Arc;

use tokio::sync::mpsc;
use tokio::task::LocalSet;

use crate::journey::bell::Bell;
use crate::journey::log::tail::Tails;
use crate::journey::thread::command::Command;
use crate::journey::thread::run::serve;
use crate::journey::worker::Tools;

/// What a delivery thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// A thread of the system with a runtime of its own.
    Own,
    /// A task of the `LocalSet` that the journey is started on: a simulation has one thread, and decides who goes on.
    Tasks,
}

/// A delivery thread that was started.
pub enum Running {
    /// A thread of the system.
    Thread(std::thread::JoinHandle<()>),
    /// A task.
    Task(tokio::task::JoinHandle<()>),
}

impl Threads {
    /// Starts one.
    pub fn spawn(
        self,
        index: usize,
        tools: Arc<Tools>,
        bell: Arc<Bell>,
        tails: Arc<Tails>,
        commands: mpsc::Receiver<Command>,
    ) -> std::io::Result<Running> {
        if self == Threads::Tasks {
            let serving = serve(index, tools, bell, tails, commands);
            return Ok(Running::Task(tokio::task::spawn_local(serving)));
        }
        let run = move || -> std::io::Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            LocalSet::new().block_on(&runtime, serve(index, tools, bell, tails, commands));
            Ok(())
        };
        std::thread::Builder::new()
            .name(format!("flare-deliver-{index}"))
            .spawn(move || {
                if let Err(error) = run() {
                    tracing::error!(error = %error, "a delivery thread could not start");
                    std::process::abort();
                }
            })
            .map(Running::Thread)
    }
}

impl Running {
    /// Waits for its end; it was told to stop and has said that it did.
    pub async fn end(self) {
        let badly = match self {
            Running::Thread(handle) => handle.join().is_err(),
            Running::Task(handle) => handle.await.is_err(),
        };
        if badly {
            tracing::error!("a delivery thread ended badly");
        }
    }
}
