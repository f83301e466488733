//! SQS and Kinesis against two emulators that have nothing in common, since each forgives something: what every source and every
//! sink has to show, what plans do, and, played by a server of our own, what no emulator does.
//!
//! What is left out, and why:
//! - Neither emulator can be started again over what it had, so nothing is shown of restarts.
//! - ministack drops a shard that was split with what is in it, and moto never ends one: that shards end, and what follows them, is
//!   shown by the played server.
//! - Neither forgets records, refuses a read as one too many, or loses an answer: likewise.
//! - A group of a FIFO queue hands out nothing more while ten of its messages are out, which the suite of sources does not expect of a
//!   queue: what such queues promise is in `fifo.rs`.
//! - moto looks at its queue without a lock, so that requests side by side are given the same messages: it is read by one receiver. It
//!   copies what it has with every request, so that what needs thousands of messages is left out (`emulator::TOO_MUCH_FOR_MOTO`).

mod emulator;
mod fifo;
mod plans;
mod played;
mod scripts;
mod sinks;
mod sources;

use emulator::Emulator::{Ministack, Moto};
use sinks::{ToFifo, ToKinesis, ToSqs};
use sources::{FromKinesis, FromSqs};

flare_provider::source_conformance!(
    sqs_source_on_ministack,
    FromSqs(Ministack),
    flavor = "multi_thread",
    worker_threads = 2
);
flare_provider::source_conformance!(
    sqs_source_on_moto,
    FromSqs(Moto),
    flavor = "multi_thread",
    worker_threads = 2
);
flare_provider::source_conformance!(
    kinesis_source_on_ministack,
    FromKinesis(Ministack),
    flavor = "multi_thread",
    worker_threads = 2
);
flare_provider::source_conformance!(
    kinesis_source_on_moto,
    FromKinesis(Moto),
    flavor = "multi_thread",
    worker_threads = 2
);
flare_provider::sink_conformance!(
    sqs_sink_on_ministack,
    ToSqs(Ministack),
    flavor = "multi_thread",
    worker_threads = 2
);
flare_provider::sink_conformance!(sqs_sink_on_moto, ToSqs(Moto), flavor = "multi_thread", worker_threads = 2);
flare_provider::sink_conformance!(
    fifo_sink_on_ministack,
    ToFifo(Ministack),
    flavor = "multi_thread",
    worker_threads = 2
);
flare_provider::sink_conformance!(
    kinesis_sink_on_ministack,
    ToKinesis(Ministack),
    flavor = "multi_thread",
    worker_threads = 2
);
flare_provider::sink_conformance!(
    kinesis_sink_on_moto,
    ToKinesis(Moto),
    flavor = "multi_thread",
    worker_threads = 2
);
