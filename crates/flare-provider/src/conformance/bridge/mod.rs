//! The behaviours that every source and every sink has to show. A [`SourceFactory`] or a [`SinkFactory`] comes in; one named test
//! per behaviour goes out.
//!
//! ```ignore
//! flare_provider::source_conformance!(source, RabbitMqSources, flavor = "multi_thread", worker_threads = 2);
//! flare_provider::sink_conformance!(sink, RabbitMqSinks, flavor = "multi_thread", worker_threads = 2);
//! ```
//! What comes after the factory goes to `#[tokio::test]`: an engine within the process runs under a paused clock
//! (`start_paused = true`), one with a server of its own under the real one. Engines differ in what they can do: a behaviour that an
//! engine does not promise ([`Nature`](crate::bridge::Nature), [`SourceCan`], [`SinkCan`]) does not concern it, and its test has nothing to show.

pub mod fixture;
pub mod memory;
pub mod proxy;
pub mod sink;
pub mod source;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::bridge::{Sink, Source};

/// What a behaviour does to the server that it is shown on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Server {
    /// Nothing that others would notice: the server may be shared.
    Shared,
    /// It is started again: whoever else uses it waits.
    Alone,
}

/// Where sources of an engine come from.
#[async_trait]
pub trait SourceFactory: Send + Sync {
    /// A source of its own with nothing in it. Nothing: there is no server on this machine, which was said, and the behaviour is
    /// left out.
    async fn fresh(&self, server: Server) -> Option<Box<dyn SourceSite>>;
}

/// What a source can do, beside its nature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCan {
    /// What is rejected waits for as long as was asked for.
    pub delay: bool,
    /// What was given out, and is neither settled nor kept for so long, comes again though its stream is open. The site makes this
    /// as short as it can.
    pub lease: Option<Duration>,
    /// Payloads are text, and there is no empty one.
    pub text_only: bool,
    /// Says how many messages were not read yet.
    pub lag: bool,
}

/// A source, and the world outside of it.
#[async_trait]
pub trait SourceSite: Send + Sync {
    /// The source, with connections of its own: another process, as far as the engine can tell.
    async fn source(&self) -> Arc<dyn Source>;

    /// What it can do.
    fn can(&self) -> SourceCan;

    /// Puts messages into the source, one behind the other (into the same partition, where there are several); they are there when this is answered.
    async fn put(&self, payloads: Vec<Bytes>);

    /// Deletes what the source reads from.
    async fn delete(&self);

    /// A source of the same engine that reads from something that was never there.
    async fn nowhere(&self) -> Arc<dyn Source>;

    /// All connections break, and new ones are made at once. `false`: cannot be done here.
    async fn cut(&self) -> bool;

    /// All connections break, and there are no new ones until they are let through again. `false`: cannot be done here.
    async fn set_away(&self, away: bool) -> bool;

    /// The server ends and is started again over what it has; answers when it is ready. `false`: cannot be done here.
    async fn restart(&self) -> bool;

    /// Ends the partition into which [`put`](SourceSite::put) puts, so that at least one other follows it, into which it puts from then on.
    /// `false`: partitions do not end here.
    async fn end_partition(&self) -> bool {
        false
    }
}

/// Where sinks of an engine come from.
#[async_trait]
pub trait SinkFactory: Send + Sync {
    /// A sink of its own at whose other end nothing is. Nothing: there is no server on this machine, which was said, and the behaviour
    /// is left out.
    async fn fresh(&self, server: Server) -> Option<Box<dyn SinkSite>>;
}

/// What a sink can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SinkCan {
    /// What names a notification goes beside its body.
    pub ids: bool,
    /// Headers go beside its body.
    pub headers: bool,
    /// Bodies are text, and there is no empty one.
    pub text_only: bool,
    /// Notifications of one document arrive in the order in which they were sent.
    pub ordered: bool,
    /// A name that the sink makes of the document arrives with it.
    pub keys: bool,
}

/// What arrived at the other end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// What names the notification.
    pub id: Option<String>,
    /// What the document became: routing key, subject, group, partition key.
    pub key: Option<String>,
    /// Headers, in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

/// A sink, and the world at the other end of it.
#[async_trait]
pub trait SinkSite: Send + Sync {
    /// The sink, with connections of its own.
    async fn sink(&self) -> Arc<dyn Sink>;

    /// What it can do.
    fn can(&self) -> SinkCan;

    /// A sink to the same end, whose name is made of the document (`{id}`), so that all but [`leads_nowhere`](SinkSite::leads_nowhere) arrive. Nothing:
    /// the engine has no such names.
    async fn named(&self) -> Option<Arc<dyn Sink>>;

    /// A document for which the name that [`named`](SinkSite::named) makes leads nowhere. Nothing: every name leads somewhere.
    fn leads_nowhere(&self) -> Option<String>;

    /// A sink of the same engine to something that was never there.
    async fn nowhere(&self) -> Arc<dyn Sink>;

    /// All that has arrived until now, in its order, from the beginning.
    async fn arrived(&self) -> Vec<Arrived>;

    /// As [`SourceSite::cut`].
    async fn cut(&self) -> bool;

    /// As [`SourceSite::set_away`].
    async fn set_away(&self, away: bool) -> bool;

    /// As [`SourceSite::restart`].
    async fn restart(&self) -> bool;
}

/// Makes the module `$module` with one test per behaviour of sources, each over a source of its own from `$factory`.
#[macro_export]
macro_rules! source_conformance {
    ($module:ident, $factory:expr, $($runtime:tt)+) => {
        mod $module {
            #[allow(unused_imports, reason = "the factory may be named by its whole path")]
            use super::*;
            $crate::each_source_behaviour!(tests source SourceFactory [$($runtime)+] $factory);
        }
    };
}

/// Makes the module `$module` with one test per behaviour of sinks, each over a sink of its own from `$factory`.
#[macro_export]
macro_rules! sink_conformance {
    ($module:ident, $factory:expr, $($runtime:tt)+) => {
        mod $module {
            #[allow(unused_imports, reason = "the factory may be named by its whole path")]
            use super::*;
            $crate::each_sink_behaviour!(tests sink SinkFactory [$($runtime)+] $factory);
        }
    };
}

/// The list of all behaviours of sources, by area, each with what it does to its server.
#[doc(hidden)]
#[macro_export]
macro_rules! each_source_behaviour {
    ($($what:tt)*) => {
        $crate::with_bridge_behaviours! { $($what)*;
            reading Shared: [
                demand_is_never_exceeded,
                payloads_of_any_bytes_come_as_they_were_put,
                large_batches_come_whole,
                messages_come_in_order_where_that_is_promised,
                messages_are_told_apart_by_position,
                orders_grow,
                a_dropped_question_loses_nothing,
                what_is_put_later_wakes_whoever_waits,
                lag_says_what_was_not_read,
            ]
            settling Shared: [
                what_was_acknowledged_never_comes_again,
                what_was_not_acknowledged_comes_again_after_a_reopen,
                a_part_of_a_batch_may_be_acknowledged,
                acknowledging_twice_is_fine,
                what_was_rejected_comes_again,
                what_was_rejected_holds_nobody_up,
                what_was_rejected_waits_where_that_is_possible,
                deliveries_are_counted_where_that_is_promised,
                what_is_kept_does_not_come_again,
                what_is_not_kept_comes_again,
            ]
            positions Shared: [
                a_position_resumes_exactly_after,
                without_a_position_all_comes_again,
                a_partition_that_ends_says_so_and_is_followed,
            ]
            trouble Shared: [
                a_queue_that_does_not_exist_is_missing,
                a_queue_deleted_while_it_is_read_is_noticed,
                a_broken_connection_loses_nothing,
                a_source_that_is_away_is_unavailable_and_works_again,
                a_call_dropped_while_it_is_away_leaves_the_source_usable,
            ]
            restarts Alone: [
                a_server_that_starts_again_loses_nothing,
            ]
        }
    };
}

/// The list of all behaviours of sinks, by area, each with what it does to its server.
#[doc(hidden)]
#[macro_export]
macro_rules! each_sink_behaviour {
    ($($what:tt)*) => {
        $crate::with_bridge_behaviours! { $($what)*;
            sending Shared: [
                what_was_delivered_arrives_once_as_it_was_sent,
                bodies_of_any_bytes_arrive_as_they_were_sent,
                a_full_batch_is_answered_one_by_one,
                notifications_of_a_document_arrive_in_order_over_calls,
                many_calls_at_once_are_answered_each_for_its_own,
                what_leads_nowhere_is_refused,
                one_that_leads_nowhere_is_refused_and_the_others_arrive,
                names_made_of_documents_are_told_apart,
                a_dropped_call_leaves_the_sink_usable,
            ]
            trouble Shared: [
                a_sink_that_is_away_delivers_nothing_and_works_again,
                nothing_delivered_is_missing_when_connections_break,
            ]
            restarts Alone: [
                nothing_delivered_is_missing_after_a_restart,
            ]
        }
    };
}

/// What can be made of the lists: the tests, or the names.
#[doc(hidden)]
#[macro_export]
macro_rules! with_bridge_behaviours {
    (tests $side:ident $trait:ident $runtime:tt $factory:expr; $($area:ident $server:ident: [$($behaviour:ident),* $(,)?])*) => {
        $(mod $area {
            #[allow(unused_imports, reason = "the factory may be named by its whole path")]
            use super::*;
            $($crate::bridge_behaviour!($side $trait $runtime $factory, $server $area $behaviour);)*
        })*
    };
    (names; $($area:ident $server:ident: [$($behaviour:ident),* $(,)?])*) => {
        [$((stringify!($area), vec![$(stringify!($behaviour)),*])),*]
    };
}

/// One test.
#[doc(hidden)]
#[macro_export]
macro_rules! bridge_behaviour {
    ($side:ident $trait:ident [$($runtime:tt)+] $factory:expr, $server:ident $area:ident $behaviour:ident) => {
        #[::tokio::test($($runtime)+)]
        async fn $behaviour() {
            use $crate::conformance::bridge::$trait as _;
            if let Some(site) = $factory.fresh($crate::conformance::bridge::Server::$server).await {
                $crate::conformance::bridge::$side::$area::$behaviour(&*site).await
            }
        }
    };
}

#[cfg(test)]
mod tests {
    /// A behaviour that is written and not listed would be shown by no engine, and nobody would notice.
    #[test]
    fn every_behaviour_that_is_written_is_listed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/conformance/bridge");
        let sources = crate::each_source_behaviour!(names).into_iter().map(|area| ("source", area));
        let sinks = crate::each_sink_behaviour!(names).into_iter().map(|area| ("sink", area));
        for (side, (area, listed)) in sources.chain(sinks) {
            let source =
                std::fs::read_to_string(format!("{folder}/{side}/{area}.rs")).expect("an area is a file");
            let names = source.lines().filter_map(|line| line.strip_prefix("pub async fn "));
            let written: Vec<&str> = names.filter_map(|rest| rest.split('(').next()).collect();
            assert_eq!(written, listed, "behaviours of {area}, in order");
        }
    }
}
