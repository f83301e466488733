//! The behaviours that every coordinator and every doorbell has to show. A [`ClusterFactory`] comes in; one named test per
//! behaviour goes out.
//!
//! ```ignore
//! flare_provider::cluster_conformance!(etcd, EtcdFactory, flavor = "multi_thread", worker_threads = 2);
//! ```
//! What comes after the factory goes to `#[tokio::test]`: an engine within the process runs under a paused clock
//! (`start_paused = true`), one with a server of its own under the real one. Behaviours that are about time wait for what is
//! to happen and compare times; none of them takes a nap and hopes.

pub mod fixture;
pub mod keys;
pub mod lost;
pub mod rings;
pub mod sessions;
pub mod watches;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::cluster::Cluster;
use crate::doorbell::Doorbell;

/// Where clusters of an engine come from.
#[async_trait]
pub trait ClusterFactory: Send + Sync {
    /// A cluster of its own with nothing in it, unknown to all others. Nothing: there is no server on this machine, which was
    /// said, and the behaviour is left out.
    async fn fresh(&self) -> Option<Box<dyn Gathering>>;
}

/// A cluster that can be joined.
#[async_trait]
pub trait Gathering: Send + Sync {
    /// One more participant, with connections of its own: another process, as far as the engine can tell.
    async fn join(&self) -> Participant;

    /// The shortest time to live that the engine gives.
    fn shortest_ttl(&self) -> Duration;
}

/// One process of a cluster.
#[derive(Clone)]
pub struct Participant {
    /// The coordinator.
    pub cluster: Arc<dyn Cluster>,
    /// The doorbell.
    pub doorbell: Arc<dyn Doorbell>,
}

/// Makes the module `$module` with one test per behaviour, each over a cluster of its own from `$factory`.
#[macro_export]
macro_rules! cluster_conformance {
    ($module:ident, $factory:expr, $($runtime:tt)+) => {
        mod $module {
            #[allow(unused_imports, reason = "the factory may be named by its whole path")]
            use super::*;
            $crate::each_cluster_behaviour!(tests [$($runtime)+] $factory);
        }
    };
}

/// The list of all behaviours, by area.
#[doc(hidden)]
#[macro_export]
macro_rules! each_cluster_behaviour {
    ($($what:tt)*) => {
        $crate::with_cluster_behaviours! { $($what)*;
            sessions: [
                a_session_gets_at_least_the_time_it_asked_for,
                keys_of_a_session_are_there_until_its_deadline,
                keys_of_a_session_vanish_when_its_time_is_over,
                keys_of_a_session_vanish_together_when_it_ends,
                it_is_told_how_long_a_session_lasts_yet,
                a_renewed_session_outlives_its_first_deadline,
                a_session_that_is_over_is_never_renewed_again,
                a_session_that_was_ended_is_never_renewed_again,
                a_renewal_names_its_owner,
                only_its_owner_ends_a_session,
                an_ended_session_writes_nothing,
                a_deadline_counts_from_before_the_question,
                sessions_of_one_owner_are_told_apart,
            ]
            keys: [
                a_key_comes_back_as_it_was_put,
                a_key_that_is_there_is_taken,
                an_old_version_writes_nothing,
                an_old_version_deletes_nothing,
                a_deleted_key_may_be_put_again_with_a_higher_version,
                versions_grow_over_all_keys,
                a_replaced_key_stays_in_its_session,
                a_key_without_a_session_outlives_all,
                a_list_has_what_begins_with_the_prefix_by_name,
                values_of_any_bytes_come_back,
                what_one_puts_the_others_list,
                one_of_many_gets_the_key,
                one_of_many_replaces_a_version,
                a_taken_key_is_free_for_one_when_its_session_ends,
            ]
            lost: [
                a_put_whose_answer_was_lost_is_found_by_looking,
                a_renewal_whose_answer_was_lost_moves_no_deadline,
                a_dropped_call_leaves_the_participant_usable,
            ]
            watches: [
                a_watch_says_that_something_was_put,
                a_watch_says_that_something_was_replaced_or_deleted,
                a_watch_says_that_a_session_ended,
                a_watch_says_that_a_session_was_over,
                a_watch_says_nothing_of_other_prefixes,
                a_watch_sees_what_happened_while_nobody_asked,
                a_dropped_question_loses_nothing,
                whoever_follows_a_watch_ends_with_the_truth,
            ]
            rings: [
                a_listener_hears_later_rings,
                all_who_listen_hear,
                whoever_rings_hears_itself,
                numbers_of_rings_come_in_full,
                ringing_where_nobody_listens_is_fine,
                a_listener_that_was_slow_hears_or_is_told,
            ]
        }
    };
}

/// What can be made of the list: the tests, or the names.
#[doc(hidden)]
#[macro_export]
macro_rules! with_cluster_behaviours {
    (tests $runtime:tt $factory:expr; $($area:ident: [$($behaviour:ident),* $(,)?])*) => {
        $(mod $area {
            #[allow(unused_imports, reason = "the factory may be named by its whole path")]
            use super::*;
            $($crate::cluster_behaviour!($runtime $factory, $area $behaviour);)*
        })*
    };
    (names; $($area:ident: [$($behaviour:ident),* $(,)?])*) => {
        [$((stringify!($area), vec![$(stringify!($behaviour)),*])),*]
    };
}

/// One test.
#[doc(hidden)]
#[macro_export]
macro_rules! cluster_behaviour {
    ([$($runtime:tt)+] $factory:expr, $area:ident $behaviour:ident) => {
        #[::tokio::test($($runtime)+)]
        async fn $behaviour() {
            use $crate::conformance::cluster::ClusterFactory as _;
            if let Some(gathering) = $factory.fresh().await {
                $crate::conformance::cluster::$area::$behaviour(&*gathering).await
            }
        }
    };
}

#[cfg(test)]
mod tests {
    /// A behaviour that is written and not listed would be shown by no engine, and nobody would notice.
    #[test]
    fn every_behaviour_that_is_written_is_listed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/conformance/cluster");
        for (area, listed) in crate::each_cluster_behaviour!(names) {
            let source = std::fs::read_to_string(format!("{folder}/{area}.rs")).expect("an area is a file");
            let names = source.lines().filter_map(|line| line.strip_prefix("pub async fn "));
            let written: Vec<&str> = names.filter_map(|rest| rest.split('(').next()).collect();
            assert_eq!(written, listed, "behaviours of {area}, in order");
        }
    }
}
