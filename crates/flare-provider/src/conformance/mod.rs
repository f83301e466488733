//! The behaviours that every engine has to show. A [`Factory`] comes in; one named test per behaviour goes out.
//!
//! ```ignore
//! flare_provider::conformance!(embedded, EmbeddedFactory);
//! ```
//! makes tests such as `embedded::commit::an_older_revision_is_stale`. A behaviour is one async function over a
//! factory, in the file of its area; the list in `each_behaviour!` is the only one there is, so that a new
//! behaviour reaches every engine at once. The crate that calls the macro needs tokio with `macros` and
//! `rt-multi-thread` among its dev-dependencies.

pub mod access;
pub mod bridge;
pub mod bridges;
pub mod catalog;
pub mod cluster;
pub mod commit;
pub mod crash;
pub mod dump;
pub mod faults;
pub mod feeds;
pub mod fixture;
pub mod history;
pub mod intake;
pub mod joined;
pub mod keys;
pub mod nodes;
pub mod notes;
pub mod races;
pub mod random;
pub mod read;
pub mod records;
pub mod routing;
pub mod standings;
pub mod states;
pub mod tombstones;

use async_trait::async_trait;

use crate::Store;
use crate::memory::Memory;

/// Where the stores of an engine come from.
#[async_trait]
pub trait Factory: Send + Sync {
    /// A store of its own with nothing in it, unknown to all others.
    async fn fresh(&self) -> Box<dyn Instance>;
}

/// A running engine over one store.
#[async_trait]
pub trait Instance: Send {
    /// The engine through its contracts.
    fn store(&self) -> Store;

    /// The process dies without a word and another one opens the same store. Clones of the old [`Store`] may
    /// still be around and calls on them under way: each of these was done before the new engine opened, or is
    /// never done.
    async fn crash_and_reopen(self: Box<Self>) -> Box<dyn Instance>;

    /// Another process that is alive at the same time, on the same store. `None`: the engine is for one process at a
    /// time, and what is said of two does not concern it.
    async fn join(&self) -> Option<Box<dyn Instance>>;
}

/// Makes the module `$module` with one test per behaviour, each over a store of its own from `$factory`.
#[macro_export]
macro_rules! conformance {
    ($module:ident, $factory:expr) => {
        mod $module {
            #[allow(unused_imports, reason = "the factory may be named by its whole path")]
            use super::*;
            $crate::each_behaviour!(tests $factory);
        }
    };
}

/// The list of all behaviours, by area.
#[doc(hidden)]
#[macro_export]
macro_rules! each_behaviour {
    ($($what:tt)*) => {
        $crate::with_behaviours! { $($what)*;
            catalog: [
                a_created_entity_comes_back_as_it_was_given,
                an_unknown_entity_is_absent,
                a_list_goes_by_number_and_in_pages,
                a_replaced_entity_has_its_new_body_and_keys_and_nothing_else,
                a_replacement_of_an_older_version_is_refused,
                every_change_raises_the_version,
                numbers_are_never_reused,
                a_subscription_needs_its_resource,
                a_resource_with_subscriptions_stays,
                a_subscription_has_as_many_lanes_as_its_resource,
            ]
            keys: [
                a_taken_id_is_a_conflict_that_names_it,
                a_taken_key_is_a_conflict_that_names_the_other_entity,
                a_replacement_keeps_its_own_keys_and_may_not_take_others,
                keys_are_unique_within_their_kind_and_parent_only,
                keys_that_are_given_up_may_be_taken,
                a_key_given_twice_by_one_entity_is_one_key,
            ]
            access: [
                accounts_and_tokens_are_entities_like_others,
                what_belongs_to_an_account_needs_it,
                keys_are_unique_within_an_account,
                an_account_goes_without_resources_and_takes_its_tokens,
                acts_are_listed_with_the_last_first,
                acts_are_removed_from_the_old_end_only,
            ]
            bridges: [
                a_consumer_has_lanes_and_documents_like_a_resource,
                a_producer_has_feeds_like_a_subscription,
                consumers_and_resources_never_share_a_number,
                a_consumer_with_producers_stays_and_keeps_its_account,
            ]
            intake: [
                what_was_read_is_written_by_its_owner_alone,
                progress_and_letters_are_written_as_one_and_outlive_a_crash,
                letters_are_listed_in_pages_and_removed,
                what_was_read_goes_with_its_consumer,
            ]
            commit: [
                a_newer_revision_wins,
                an_equal_revision_changes_nothing,
                a_revision_of_another_kind_is_refused,
                an_older_revision_is_stale,
                a_delete_without_a_revision_takes_the_current_one,
                a_delete_with_a_revision_is_compared_by_it,
                a_delete_of_an_unknown_document_leaves_a_tombstone_only_with_a_revision,
                a_tombstone_ignores_older_and_equal_revisions,
                a_rebirth_remembers_the_delete_before_it,
                a_batch_is_applied_in_order,
                an_empty_batch_is_answered_with_nothing,
                an_unknown_lane_refuses_its_own_items_only,
                seqs_and_ordinals_are_dense_within_each_lane,
                the_witness_hears_of_each_change_once_and_in_order,
                a_second_witness_replaces_the_first,
                revisions_come_back_as_they_were_written,
                contents_of_any_size_come_back_byte_for_byte,
                urls_of_the_same_hash_are_different_documents,
                urls_are_compared_byte_for_byte,
            ]
            routing: [
                a_batch_that_an_older_catalog_routed_is_refused_whole,
                a_deleted_resource_has_writes_routed_again,
                a_resource_takes_no_live_document_that_its_creator_has_not_seen,
                a_tombstone_is_not_captured_and_its_document_begins_anew,
                too_much_unseen_is_looked_at_by_the_creator_first,
                a_document_and_the_resource_that_captures_it_are_never_both_accepted,
            ]
            read: [
                nothing_is_found_where_nothing_is,
                documents_are_fetched_as_asked_with_the_head,
                a_scan_meets_each_document_once_where_it_last_changed,
                a_scan_in_pages_of_rows_misses_nothing,
                a_scan_in_pages_of_bytes_stops_with_the_document_that_fills_it,
                a_scan_stops_at_upto_and_says_so,
                a_scan_beyond_the_head_is_empty,
                lanes_are_counted,
                the_newest_changes_are_those_that_nothing_has_replaced,
            ]
            tombstones: [
                the_tombstones_that_would_go_are_listed,
                a_removed_tombstone_is_forgotten,
                live_documents_are_never_removed,
                only_tombstones_up_to_a_seq_are_removed,
                only_tombstones_accepted_before_a_time_are_removed,
                kept_ordinals_are_not_removed,
                at_most_the_limit_is_removed_oldest_first,
                seqs_and_ordinals_are_not_reused_after_a_removal,
                a_deleted_resource_takes_its_documents_along,
            ]
            history: [
                what_is_replaced_is_kept_while_a_subscription_wants_it,
                a_subscription_that_wants_every_revision_sees_all_from_its_creation_on,
                a_subscription_may_change_its_mind_about_the_history,
                a_scan_of_revisions_in_pages_misses_nothing,
                a_scan_of_revisions_leaves_out_what_was_replaced_before,
                the_next_revision_of_a_document_is_the_first_at_or_beyond_a_seq,
                removed_revisions_are_gone_and_the_newest_stays,
                a_history_survives_a_crash,
                a_history_goes_with_its_resource,
            ]
            feeds: [
                a_subscription_from_now_begins_at_the_tail,
                a_subscription_from_the_beginning_sweeps_up_to_the_tail,
                a_subscription_to_empty_lanes_has_nothing_to_sweep,
                opening_a_feed_fences_its_former_owner,
                a_feed_of_a_newer_owner_cannot_be_opened,
                an_epoch_nobody_opened_writes_nothing,
                the_same_epoch_may_open_again,
                an_opened_feed_knows_the_head_of_its_lane,
                feeds_that_do_not_exist_are_left_out,
                feeds_go_with_their_subscription,
                a_vanished_feed_refuses_its_own_record_only,
                every_epoch_is_higher_than_all_before,
            ]
            records: [
                a_record_comes_back_as_it_was_written,
                a_record_replaces_all_but_what_is_held_and_standing,
                a_record_written_twice_is_the_same_as_once,
                records_of_one_call_are_written_in_order,
                what_is_held_adds_up_over_many_records,
                marks_may_go_back,
                numbers_come_back_in_full,
            ]
            standings: [
                a_standing_comes_back_as_it_was_written,
                a_standing_is_replaced_by_the_next_one,
                a_cleared_standing_is_gone,
                dead_letters_are_told_apart_by_doubt,
                a_revived_dead_letter_is_waiting_again,
                dead_and_waiting_are_listed_apart,
                a_list_of_standings_has_pages_and_a_total,
                standings_go_with_their_subscription,
            ]
            notes: [
                a_note_comes_back_as_it_was_written,
                a_note_is_replaced_and_taken_back_with_its_record,
                a_refused_record_writes_no_note,
                notes_go_with_their_subscription,
            ]
            states: [
                a_state_comes_back_as_it_was_kept,
                a_state_is_replaced_and_forgotten_with_its_record,
                a_state_of_another_life_is_not_there,
                a_refused_record_keeps_nothing,
                states_go_with_their_subscription,
            ]
            races: [
                a_resource_is_never_deleted_under_a_new_subscription,
                one_of_many_replacements_wins,
                one_of_many_creations_gets_the_key,
                many_writers_leave_the_highest_revision_and_a_whole_log,
                a_page_is_one_snapshot,
                a_new_subscription_misses_no_change,
                a_new_owner_sees_all_that_the_old_one_was_told_is_written,
                many_owners_write_their_feeds_at_once,
            ]
            nodes: [
                changes_of_the_catalog_come_in_order_of_version,
                changes_of_the_catalog_come_in_pages_that_miss_nothing,
                a_deletion_leaves_a_trace_until_that_is_forgotten,
                a_version_that_the_catalog_has_not_come_to_is_listed_anew,
                a_commit_tells_the_heads_that_it_found_and_left,
                the_lanes_of_one_resource_are_told_apart,
                a_feed_needs_what_its_client_has_and_what_stands,
                only_feeds_that_send_every_revision_owe_some,
                needs_come_in_pages_and_take_nothing_over,
                a_summary_has_what_was_recorded,
                a_sweeper_is_fenced_by_the_next_one,
                a_process_follows_the_catalog_of_another,
                a_commit_finds_what_another_process_has_written,
                a_witness_can_tell_what_it_has_not_heard,
                the_needs_of_feeds_are_known_to_every_process,
            ]
            joined: [
                seqs_become_visible_in_order_whoever_commits,
                a_newer_revision_wins_whoever_writes_it,
                a_witness_hears_of_its_own_process_only,
                a_feed_opened_by_another_process_is_fenced,
                epochs_are_given_out_once_whoever_asks,
                one_of_two_processes_creates_what_both_want_to,
                a_replacement_by_another_process_is_a_conflict,
                versions_grow_in_the_order_of_commits,
                what_one_process_routes_anew_the_other_has_to_route_again,
                a_subscription_misses_no_change_of_another_process,
            ]
            crash: [
                everything_answered_is_there_after_a_crash,
                answers_given_during_a_crash_hold,
                records_answered_during_a_crash_hold,
                a_crash_keeps_the_incarnation,
                counters_go_on_after_a_crash,
            ]
            faults: [
                a_commit_repeated_after_a_lost_answer_changes_nothing,
                a_creation_repeated_after_a_lost_answer_names_itself,
                a_record_repeated_after_a_lost_answer_is_the_same,
                a_cancelled_commit_is_there_whole_or_not_at_all,
                callers_that_repeat_until_answered_end_where_memory_does,
            ]
            random: [
                random_operations_answer_as_memory_does,
            ]
        }
    };
}

/// What can be made of the list: the tests, or the names.
#[doc(hidden)]
#[macro_export]
macro_rules! with_behaviours {
    (tests $factory:expr; $($area:ident: [$($behaviour:ident),* $(,)?])*) => {
        $(mod $area {
            #[allow(unused_imports, reason = "the factory may be named by its whole path")]
            use super::*;
            $(
                #[::tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $behaviour() {
                    $crate::conformance::$area::$behaviour(&$factory).await
                }
            )*
        })*
    };
    (names; $($area:ident: [$($behaviour:ident),* $(,)?])*) => {
        [$((stringify!($area), vec![$(stringify!($behaviour)),*])),*]
    };
}

/// Stores of the reference engine.
pub struct MemoryFactory;

#[async_trait]
impl Factory for MemoryFactory {
    async fn fresh(&self) -> Box<dyn Instance> {
        Box::new(Memory::new())
    }
}

#[async_trait]
impl Instance for Memory {
    fn store(&self) -> Store {
        Memory::store(self)
    }

    async fn crash_and_reopen(self: Box<Self>) -> Box<dyn Instance> {
        Box::new(self.reopen())
    }

    async fn join(&self) -> Option<Box<dyn Instance>> {
        Some(Box::new(Memory::join(self)))
    }
}

#[cfg(test)]
mod tests {
    /// A behaviour that is written and not listed would be shown by no engine, and nobody would notice.
    #[test]
    fn every_behaviour_that_is_written_is_listed() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/conformance");
        for (area, listed) in crate::each_behaviour!(names) {
            let source = std::fs::read_to_string(format!("{folder}/{area}.rs"))
                .or_else(|_| std::fs::read_to_string(format!("{folder}/{area}/mod.rs")))
                .expect("an area is a file or a folder");
            let names = source.lines().filter_map(|line| line.strip_prefix("pub async fn "));
            let written: Vec<&str> = names.filter_map(|rest| rest.split('(').next()).collect();
            assert_eq!(written, listed, "behaviours of {area}, in order");
        }
    }
}
