//! What a node does by itself, beside what it is asked: one table of what, when, and what happens when it fails. In: an
//! [`App`] and its [`Inboxes`]. Out: chores, which whoever starts the node runs for as long as it lives.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::{Id, JoinSet};

use crate::config::Store;
use crate::operations::cluster::Orders;
use crate::operations::{App, Done, Inboxes};

/// The longest time between two looks for what is no longer needed.
const HOUSE: Duration = Duration::from_secs(60);

/// How often it is looked whether something that is kept for days may go.
const LONG: Duration = Duration::from_secs(60 * 60);

/// How often the wall clock is looked at. What is due or old meanwhile is so by the monotonic clock.
const CLOCK: Duration = Duration::from_secs(1);

/// How often a store that takes no writes is tried.
const REFUSED: Duration = Duration::from_secs(1);

/// How often this node looks whether another has created or revoked a token: within a second all refuse one that is.
const ACCESS: Duration = Duration::from_millis(500);

/// How often it is stored when tokens were last used.
const USED: Duration = Duration::from_secs(60);

/// Something that a node does by itself. It ends with the node and not before: see [`Chores::ended`].
pub struct Chore {
    /// What it does.
    pub what: &'static str,
    /// What sets it going.
    pub when: When,
    /// What becomes of something that does not succeed.
    pub on_failure: OnFailure,
    work: BoxFuture<'static, ()>,
}

/// What sets a chore going.
#[derive(Clone, Copy, Debug)]
pub enum When {
    /// Something that is told.
    Told,
    /// So much time has passed since it was last done.
    Every(Duration),
}

/// What becomes of something that a chore does not succeed in.
#[derive(Clone, Copy, Debug)]
pub enum OnFailure {
    /// There is nothing that could fail.
    CannotFail,
    /// The log says so, and the next turn does it.
    NextTurn,
    /// It is tried again, less and less often, until it succeeds.
    UntilDone,
    /// It is tried again a few times, then dropped and counted.
    Dropped,
    /// The node stops with the reason, and a restart reads everything anew.
    StopsNode,
}

/// One turn of a chore that comes again and again.
type Turn = for<'a> fn(&'a App) -> BoxFuture<'a, Done<()>>;

impl App {
    /// All that this node does by itself.
    pub fn chores(self: &Arc<App>, inboxes: Inboxes) -> Vec<Chore> {
        use OnFailure::{CannotFail, Dropped, NextTurn, StopsNode, UntilDone};
        use When::{Every, Told};
        let Inboxes { events, notices, rearrangements, orders } = inboxes;
        let app = || self.clone();
        let (retention, sample) = (&self.config.domain.retention, self.history.sample());
        let house = HOUSE.min(retention.tombstones).min(retention.history);
        let letters = HOUSE.min(retention.dead_letters);
        let metrics = self.config.telemetry.metrics.interval;
        let chore = Chore::new;
        let again = |what, interval, turn| {
            chore(what, Every(interval), NextTurn, Box::pin(again_and_again(app(), what, interval, turn)))
        };
        let mut chores = vec![
            chore("follow who fails", Told, CannotFail, Box::pin(app().follow_events(events))),
            chore("store decisions", Told, UntilDone, Box::pin(app().carry_out_decisions())),
            chore("spread subscriptions anew", Told, StopsNode, Box::pin(app().rearrange(rearrangements))),
            chore("begin late", Told, UntilDone, Box::pin(app().catch_up_with_the_start())),
            chore("watch the clock", Every(CLOCK), CannotFail, Box::pin(app().watch_clock(CLOCK))),
            chore("sample", Every(sample), CannotFail, Box::pin(app().sample(sample))),
            again("try a store that takes no writes", REFUSED, |app| Box::pin(app.try_a_write())),
            chore("read consumers", Told, UntilDone, Box::pin(app().read_consumers())),
            chore("replay dead letters of consumers", Told, UntilDone, Box::pin(app().replay_letters())),
            again("remove tombstones", house, |app| Box::pin(app.remove_tombstones())),
            again("remove older revisions", house, |app| Box::pin(app.trim_history())),
            again("remove dead letters of consumers", letters, |app| Box::pin(app.trim_letters())),
            again("forget what was deleted", LONG, |app| Box::pin(app.forget_deletions())),
        ];
        if self.access.is_some() {
            chores.push(again("store when tokens were used", USED, |app| Box::pin(app.store_last_used())));
            let trim = HOUSE.min(self.config.auth.audit_retention);
            chores.push(again("trim the audit log", trim, |app| Box::pin(app.trim_audit())));
            if self.config.provider.store == Store::Postgresql {
                chores.push(again("follow tokens and accounts", ACCESS, |app| Box::pin(app.follow_access())));
            }
        }
        if let Some(Orders { driver, apart, orders, lost }) = orders {
            let lives = Box::pin(app().live(driver, apart));
            chores.push(chore("live in the cluster", Told, StopsNode, lives));
            chores.push(chore("obey the cluster", Told, UntilDone, Box::pin(app().obey(orders))));
            chores.push(chore("give up lost units", Told, CannotFail, Box::pin(app().give_up_lost(lost))));
            chores.push(chore("follow the others", Told, UntilDone, Box::pin(app().follow_others())));
            let looks = self.looks_at_itself_every();
            chores.push(chore("notice whether it works", Every(looks), CannotFail, Box::pin(app().notice())));
            chores.push(chore("ring for the others", Told, Dropped, Box::pin(app().ring_for_others())));
            chores.push(chore(
                "describe the node",
                Every(CLOCK),
                CannotFail,
                Box::pin(app().describe_node()),
            ));
        }
        if let Some(url) = self.config.notify.url.get() {
            chores.push(chore("post notices", Told, Dropped, Box::pin(app().post_notices(url, notices))));
        }
        if self.telemetry.is_some() && !metrics.is_zero() {
            chores.push(again("export metrics", metrics, |app| Box::pin(app.offer_metrics())));
        }
        chores
    }
}

impl Chore {
    /// One that goes on for as long as the node does.
    pub fn new(what: &'static str, when: When, on_failure: OnFailure, work: BoxFuture<'static, ()>) -> Chore {
        Chore { what, when, on_failure, work }
    }

    /// Does it.
    pub async fn run(self) {
        let Chore { what, when, on_failure, work } = self;
        tracing::debug!(chore = what, ?when, ?on_failure, "a chore begins");
        work.await;
    }
}

/// Takes turns, with a rest after each.
async fn again_and_again(app: Arc<App>, what: &'static str, rest: Duration, turn: Turn) {
    loop {
        tokio::time::sleep(rest).await;
        if let Err(failure) = turn(&app).await {
            tracing::warn!(chore = what, error = %failure, "a chore failed, its next turn tries again");
        }
    }
}

/// The owner of a node's chores. They end when it is dropped.
pub struct Chores {
    tasks: JoinSet<()>,
    names: HashMap<Id, &'static str>,
}

impl Chores {
    /// Begins them, each as a task.
    pub fn start(chores: Vec<Chore>) -> Chores {
        let mut started = Chores { tasks: JoinSet::new(), names: HashMap::new() };
        for chore in chores {
            let what = chore.what;
            started.names.insert(started.tasks.spawn(chore.run()).id(), what);
        }
        started
    }

    /// Returns when one of them has ended, which only a mistake does: says which, and how.
    pub async fn ended(&mut self) -> String {
        let (id, how) = match self.tasks.join_next_with_id().await {
            Some(Ok((id, ()))) => (id, "it returned".to_owned()),
            Some(Err(error)) => (error.id(), error.to_string()),
            None => return std::future::pending().await,
        };
        let what = self.names.get(&id).copied().unwrap_or_default();
        format!("a chore of the node ended ({what}): {how}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chore(what: &'static str, work: impl Future<Output = ()> + Send + 'static) -> Chore {
        Chore::new(what, When::Told, OnFailure::CannotFail, Box::pin(work))
    }

    #[tokio::test]
    async fn a_chore_that_ends_is_named_with_how_it_ended() {
        let lasting = || chore("last", std::future::pending());
        let mut chores = Chores::start(vec![lasting(), chore("return", async {})]);
        assert_eq!(chores.ended().await, "a chore of the node ended (return): it returned");
        let mut chores = Chores::start(vec![lasting(), chore("panic", async { panic!("on purpose") })]);
        let ended = chores.ended().await;
        assert!(ended.contains("(panic)") && ended.contains("panicked"), "{ended}");
    }
}
