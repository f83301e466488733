//! The client side of HTTP/1.1, as far as Flare needs it. A request and a stream of bytes come in, the answer goes out.
//!
//! One request at a time, driven by the task that asks: nothing is handed to another task, nothing is spawned, and no
//! clock is read; whoever calls brings the timeout. [`Request`] can be made of nothing that would end a line or a
//! message early. [`Connection`] writes it and reads the [`Answer`], and knows whether another may follow. The parts
//! between, from bytes to an answer, are [`Reading`]: pure, and resumable at every byte.
//!
//! Absent on purpose: pipelining, upgrades, `CONNECT`, `HEAD`, `Expect`, bodies of unknown length in requests, and
//! whatever makes a request into two (redirects, cookies, proxies). docs/adr/0014-our-own-wire.md says why this is not
//! hyper.

#![warn(missing_docs)]

mod answer;
mod connection;
mod field;
mod request;
mod stream;

pub use answer::chunks::{EXTENSIONS_LIMIT, TRAILERS_LIMIT};
pub use answer::head::MAX_FIELDS;
pub use answer::reading::{HEAD_LIMIT, Progress, Reading};
pub use answer::{Answer, Fields, Mistake, ReadLimits};
pub use connection::{Broken, Connection};
pub use field::{BadField, Name, Value};
pub use request::{Beginning, Lines, Method, Request, Room, Text};
pub use stream::{Counted, Stream};
