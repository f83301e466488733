//! Which consumers are read here: those that are not paused, of a node by itself all, of a member those whose unit it has. A chore
//! owns the tasks that read, begins them, and stops them when something is otherwise.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_model::access::Account;
use flare_model::cluster::life::Event;
use flare_model::cluster::{UnitId, UnitKind};
use flare_model::consumer::{ConsumerDraft, Counted};
use flare_model::document::Write;
use flare_model::ids::ResourceId;
use flare_provider::ProviderError;
use flare_wire::{Beginning, Method, Name, ReadLimits, Request, Room, Value};
use http::Uri;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use crate::consuming::board::Board;
use crate::consuming::reading::Ended;
use crate::consuming::run::Run;
use crate::consuming::{ANSWER, Accounts, Asked, Fitting, Page, Tools, Web};
use crate::notification::host::HostKey;
use crate::operations::App;
use crate::registry::Consumer;

/// How long to wait before something that could not be begun, or ended by itself, is begun again.
const AGAIN: Duration = Duration::from_secs(1);

/// Consumers that are read here.
#[derive(Default)]
pub(in crate::operations) struct Consuming {
    /// Of a member: which it has, and under which epoch. Bound: the consumers there are.
    claimed: Mutex<HashMap<ResourceId, u64>>,
    /// Bound: likewise.
    running: Mutex<HashMap<ResourceId, Running>>,
    changed: Notify,
    /// The same, for whoever replays dead letters.
    replays: Notify,
    /// What this process has read.
    counted: Arc<Mutex<Counted>>,
}

struct Running {
    /// What its user said; anything else of it may change while it is read.
    draft: ConsumerDraft,
    epoch: u64,
    board: Arc<Board>,
    stop: CancellationToken,
    ended: CancellationToken,
    abort: AbortHandle,
}

impl Consuming {
    /// What is known of a consumer that is read here.
    pub(in crate::operations) fn board(&self, id: &ResourceId) -> Option<Arc<Board>> {
        self.running.lock().get(id).map(|running| running.board.clone())
    }

    /// What this process has read.
    pub(in crate::operations) fn counted(&self) -> Counted {
        *self.counted.lock()
    }

    /// Returns when replays may be otherwise than they were.
    pub(super) async fn replays_changed(&self) {
        self.replays.notified().await;
    }
}

impl App {
    /// Consumers came, went, or are otherwise.
    pub(in crate::operations) fn consumers_changed(&self) {
        self.consuming.changed.notify_one();
        self.consuming.replays.notify_one();
        self.tell_units();
    }

    /// This node has a consumer's unit from now on.
    pub(in crate::operations) fn claim_consumer(&self, id: &ResourceId, epoch: u64) {
        self.consuming.claimed.lock().insert(id.clone(), epoch);
        self.consuming.changed.notify_one();
    }

    /// This node has it no more. Returns once nothing of it is read here.
    pub(in crate::operations) async fn release_consumer(&self, id: &ResourceId, at_once: bool) {
        self.consuming.claimed.lock().remove(id);
        let ended = self.consuming.running.lock().get(id).map(|running| {
            running.stop.cancel();
            if at_once {
                running.abort.abort();
            }
            running.ended.clone()
        });
        self.consuming.changed.notify_one();
        if let Some(ended) = ended.filter(|_| !at_once) {
            ended.cancelled().await;
        }
    }

    /// Reads consumers for as long as the node lives.
    pub(in crate::operations) async fn read_consumers(self: Arc<App>) {
        let tools = Arc::new(Tools {
            store: self.store.clone(),
            clock: self.clock.clone(),
            chance: self.entropy.chance(),
            bridges: self.bridges.clone(),
            web: Arc::new(Errands::of(&self)),
            accounts: Arc::new(Allowed { app: self.clone() }),
            tries: self.config.domain.consumer_tries,
            batch: self.config.domain.consumer_batch,
            counted: self.consuming.counted.clone(),
            commit_bytes: self.config.provider.embedded.commit_bytes.as_usize(),
        });
        let mut tasks: JoinSet<(ResourceId, Ended)> = JoinSet::new();
        loop {
            let again = self.begin_and_stop(&tools, &mut tasks).await;
            tokio::select! {
                () = self.consuming.changed.notified() => {}
                Some(ended) = tasks.join_next_with_id() => self.reader_ended(ended).await,
                () = tokio::time::sleep(AGAIN), if again => {}
            }
        }
    }

    /// Begins what is to be read and is not, and stops what is not to be, or is another one by now. Answers whether something could
    /// not be done yet.
    async fn begin_and_stop(&self, tools: &Arc<Tools>, tasks: &mut JoinSet<(ResourceId, Ended)>) -> bool {
        let mut wanted: HashMap<ResourceId, (Arc<Consumer>, u64)> = HashMap::new();
        let mut again = false;
        for consumer in self.registry.consumers() {
            if consumer.stored.paused_since.is_some() || consumer.is_closed() || self.stop.is_cancelled() {
                continue;
            }
            let epoch = match self.member.is_some() {
                true => self.consuming.claimed.lock().get(consumer.id()).copied(),
                // A store that takes no writes gives none out yet.
                false => self.journey.epoch().await.inspect_err(|_| again = true).ok(),
            };
            if let Some(epoch) = epoch {
                wanted.insert(consumer.id().clone(), (consumer, epoch));
            }
        }
        let mut running = self.consuming.running.lock();
        for (id, known) in running.iter() {
            let same = |(consumer, epoch): &(Arc<Consumer>, u64)| {
                consumer.stored.draft == known.draft && *epoch == known.epoch
            };
            if !wanted.get(id).is_some_and(same) {
                known.stop.cancel();
            }
        }
        for (id, (consumer, epoch)) in wanted {
            if running.contains_key(&id) {
                continue;
            }
            let (board, stop) = (Arc::new(Board::default()), self.stop.child_token());
            let run = Run {
                tools: tools.clone(),
                resource: consumer.resource.clone(),
                epoch,
                board: board.clone(),
                stop: stop.clone(),
            };
            let ended = CancellationToken::new();
            let (of, last) = (id.clone(), ended.clone().drop_guard());
            let abort = tasks.spawn(async move {
                let _last = last;
                (of, run.run().await)
            });
            let draft = consumer.stored.draft.clone();
            running.insert(id, Running { draft, epoch, board, stop, ended, abort });
        }
        again
    }

    /// A consumer is not read any more: it was told to stop, or another reader has it.
    async fn reader_ended(
        &self,
        ended: Result<(tokio::task::Id, (ResourceId, Ended)), tokio::task::JoinError>,
    ) {
        let task = match &ended {
            Ok((task, _)) => *task,
            Err(error) => error.id(),
        };
        let id = {
            let mut running = self.consuming.running.lock();
            let found = running.iter().find(|(_, known)| known.abort.id() == task).map(|(id, _)| id.clone());
            found.inspect(|id| {
                running.remove(id);
            })
        };
        let Some(id) = id else { return };
        match ended {
            Ok((_, (_, Ended::Fenced))) => {
                tracing::warn!(consumer.id = %id, "another reader has a consumer, or it is gone");
                if let (Some(member), Some(_)) = (&self.member, self.consuming.claimed.lock().remove(&id)) {
                    member.tell(Event::Fenced(unit(&id)));
                }
                // Where this node is alone nobody else should have it; it is not begun again in a hurry.
                tokio::time::sleep(AGAIN).await;
            }
            Ok(_) => {}
            Err(error) if error.is_panic() => {
                tracing::error!(consumer.id = %id, error = %error, "reading a consumer failed; it is begun again");
                tokio::time::sleep(AGAIN).await;
            }
            Err(_) => {}
        }
    }
}

/// The unit of a consumer.
pub(in crate::operations) fn unit(id: &ResourceId) -> UnitId {
    UnitId::new(UnitKind::Consumer, id.as_str(), "0")
}

/// What accounts may have, as the catalog has it.
struct Allowed {
    app: Arc<App>,
}

#[async_trait]
impl Accounts for Allowed {
    fn messages(&self, account: &Account, wanted: usize) -> Result<usize, Duration> {
        self.app.take_messages(account, wanted)
    }

    async fn commit(&self, account: &Account, writes: Vec<Write>) -> Result<Fitting, ProviderError> {
        self.app.commit_of_consumer(account, writes).await
    }
}

/// Asks endpoints by way of a delivery thread, under the same rules as everything that Flare sends.
struct Errands {
    app: Arc<App>,
}

impl Errands {
    fn of(app: &Arc<App>) -> Errands {
        Errands { app: app.clone() }
    }
}

#[async_trait]
impl Web for Errands {
    async fn get(&self, asked: Asked<'_>) -> Result<Page, String> {
        let uri: Uri = asked.url.parse().map_err(|error| format!("the url cannot be read: {error}"))?;
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let mut fields: Vec<(Name<'_>, Value<'_>)> = Vec::with_capacity(asked.headers.len() + 2);
        let given = |name: &str| asked.headers.iter().any(|(own, _)| own == name);
        let own = [("user-agent", self.app.user_agent.as_str()), ("accept", "application/json")];
        let own = own.into_iter().filter(|(name, _)| !given(name));
        let all = own.chain(asked.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        for (name, value) in all {
            let wrong = |_| format!("the header {name} cannot be sent");
            fields.push((Name::new(name).map_err(wrong)?, Value::new(value.as_bytes()).map_err(wrong)?));
        }
        let beginning = Beginning::new(Method::Get, authority, fields).map_err(|error| error.to_string())?;
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let request = Request::new(Room::default(), &beginning, |path| path.push_str(target));
        let limits = ReadLimits { read: ANSWER, keep: ANSWER };
        let answer = self.app.journey.errand(HostKey::of(&uri), request, asked.timeout, Some(limits)).await?;
        let field = |name: &str| {
            let value = answer.fields.get(name)?;
            std::str::from_utf8(value).ok().map(str::to_owned)
        };
        Ok(Page {
            status: answer.status,
            etag: field("etag"),
            last_modified: field("last-modified"),
            retry_after: field("retry-after"),
            body: (answer.excerpt.len() < ANSWER).then_some(answer.excerpt),
        })
    }
}
