//! What a client is told. In: a change, a subscription with all that does not depend on the document done once
//! (`compiled`), and what to tell of it. Out: the request, its headers, body and signature; and how that ended.
//!
//! Whatever sends, watches or traces notifications may know this; nothing here knows them.

pub mod change;
pub mod compiled;
pub mod echo;
pub mod ending;
mod event;
pub mod host;
pub mod ids;
pub mod message;
pub mod outgoing;
mod payload;
pub mod signature;

use std::sync::Arc;

use flare_model::feed::{Attempt, Kept};
use flare_model::time::Timestamp;
use flare_wire::{Request, Room};

use crate::trace::SpanId;
use change::Change;
use compiled::Compiled;

/// One attempt to tell a client of a change, with all it takes to send it.
pub struct Notification {
    /// What to tell.
    pub attempt: Attempt,
    /// The document.
    pub change: Arc<Change>,
    /// The document as the client has it, where that is kept and certain.
    pub state: Option<Arc<Kept>>,
    /// The subscription as it was when the attempt began: it also ends under this version.
    pub compiled: Arc<Compiled>,
    /// Its span, where the change is traced.
    pub span: Option<SpanId>,
}

impl Notification {
    /// The request as it goes out now, with the trace of the change, where there is one. With `state` an update may be
    /// told as a patch. It is written into `room`, which may have been used before.
    #[inline]
    pub fn request(&self, state: Option<&Kept>, now: Timestamp, room: Room) -> Request {
        let mut request = message::request(&self.compiled, &self.change, &self.attempt, state, now, room);
        if let (Some(context), Some(span)) = (self.change.trace(), self.span) {
            context.inject(span, &mut request);
        }
        request
    }
}
