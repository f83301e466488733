//! Other ways in and out: where a consumer's messages come from, and where a producer's notifications go. Engines read these
//! settings; users write them, and `check` has looked at them before an engine does.

mod draft;
pub mod source;
pub mod target;
pub mod wording;

pub use draft::{
    KinesisDraft, NatsDraft, RabbitMqDraft, SinkDraft, SqsDraft, is_kinesis_stream, is_sqs_queue,
};
pub use source::{
    Concurrency, HttpPollSource, KinesisSource, NatsSource, RabbitMqSource, Source, SqsSource, StartAt,
};
pub use target::{KinesisTarget, NatsTarget, RabbitMqTarget, SqsTarget, Target};
pub use wording::Wording;
