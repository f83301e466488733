//! A request that is no notification: a url and a body come in, the answer goes out. It runs on a delivery thread,
//! under the same rules for destinations as everything that Flare sends, over a connection of its own.

use std::sync::Arc;
use std::time::Duration;

use flare_wire::Request;
use tokio::sync::oneshot;

use crate::journey::connection::{Broken, ReadLimits};
use crate::journey::worker::Tools;
use crate::notification::ending::Answer;
use crate::notification::host::HostKey;

/// What is to be sent, and who wants to know what came of it.
pub struct Errand {
    /// Where to.
    pub host: HostKey,
    /// What.
    pub request: Request,
    /// How long it may take.
    pub timeout: Duration,
    /// How much of the answer is read, if not as much as of clients'.
    pub limits: Option<ReadLimits>,
    /// The answer, or why there is none.
    pub reply: oneshot::Sender<Result<Answer, String>>,
}

/// Runs an errand to its end.
pub async fn run(tools: Arc<Tools>, errand: Errand) {
    let Errand { host, request, timeout, limits, reply } = errand;
    let limits = limits.unwrap_or(tools.read_limits);
    let exchange = async {
        let mut connection = tools.dialler.dial(&host).await?;
        let (answer, _) = connection.exchange(request, limits, |_| ()).await?;
        Ok::<Answer, Broken>(Answer::new(answer, false))
    };
    let outcome = match tokio::time::timeout(timeout, exchange).await {
        Ok(outcome) => outcome.map_err(|broken| broken.to_string()),
        Err(_) => Err(format!("no answer within {}", flare_model::duration::HumanDuration(timeout))),
    };
    let _ = reply.send(outcome);
}
