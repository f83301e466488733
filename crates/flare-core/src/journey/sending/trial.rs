//! A test notification: it is built and sent as any other, to the same address under the same rules, on a connection
//! of its own; nothing is recorded of it, and no feed, rate or pause is asked.

use std::sync::Arc;

use flare_model::feed::Attempt;
use flare_model::time::Timestamp;
use flare_wire::{Name, Request, Room};
use tokio::sync::oneshot;

use crate::journey::sending::courier::{Link, Patience, Told, deliver};
use crate::journey::worker::Tools;
use crate::notification::change::Change;
use crate::notification::compiled::Compiled;
use crate::notification::ending::Ending;
use crate::notification::message;
use crate::observe::{Phases, Spans};

const FLARE_TEST: Name<'static> = Name::fixed("flare-test");

/// What to send.
pub struct Trial {
    /// To whom.
    pub compiled: Arc<Compiled>,
    /// About which document.
    pub change: Arc<Change>,
    /// What to tell.
    pub attempt: Attempt,
    /// The notification's id, which no other has.
    pub id: String,
}

/// How it went.
pub struct Tried {
    /// As it was sent.
    pub request: Request,
    /// When it began.
    pub began: Timestamp,
    /// How it ended.
    pub ending: Ending,
    /// How long its parts took.
    pub spans: Spans,
}

/// Sends a test and tells how it went.
pub async fn run(tools: Arc<Tools>, trial: Box<Trial>, reply: oneshot::Sender<Tried>) {
    let began = tools.clock.now();
    let request = |_: bool, now, room| {
        let Trial { compiled, change, attempt, id } = &*trial;
        let mut request = message::request_as(compiled, change, attempt, None, now, room, id);
        request.text(FLARE_TEST, "true");
        request
    };
    let to = &trial.compiled.requests[trial.attempt.action as usize].to;
    let mut phases = Phases::begin(tools.clock.monotonic());
    let patience = Patience { timeout: trial.compiled.spec.timeout, grows_old: &mut |_| () };
    let link = &mut Link::default();
    let told = Told { compiled: &trial.compiled, change: &trial.change, request };
    let mut ending = deliver(&tools, to, link, patience, began, &mut phases, told).await;
    trial.compiled.echoes.conceal(&mut ending);
    let spans = phases.end(tools.clock.monotonic());
    let _ = reply.send(Tried { request: request(false, began, Room::default()), began, ending, spans });
}
