//! One seed, from the first start of the node to the last check.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::api::Api;
use super::client::{Receiver, Shared};
use super::dice::Dice;
use super::limits::Limits;
use super::node::Node;
use super::operate::{self, Operation};
use super::stage::Stage;
use super::{finish, verify};

/// How many findings of one seed are told.
const MOST_TOLD: usize = 6;

/// A whole run may take so long; one that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// Of so many documents it is looked after a kill whether they are as they were accepted.
const SAMPLE: usize = 40;

/// What came of a seed, or of several.
#[derive(Default)]
pub struct Report {
    pub seeds: u64,
    pub operations: u64,
    pub requests: u64,
    pub kills: u64,
    pub time: Duration,
    /// What was wrong, ready to be read.
    pub wrong: Vec<String>,
}

impl Report {
    pub fn add(&mut self, other: &Report) {
        self.seeds += other.seeds;
        self.operations += other.operations;
        self.requests += other.requests;
        self.kills += other.kills;
    }
}

/// Where a seed has its data and logs.
pub fn folder(seed: u64) -> PathBuf {
    crate::bench::target().unwrap_or_else(|_| "target".into()).join("stress").join(seed.to_string())
}

/// Runs a seed. What it leaves on disk goes, if all went well.
pub async fn seed(binary: &Path, log: &str, seed: u64) -> Report {
    let (began, folder) = (Instant::now(), folder(seed));
    let mut report = Report { seeds: 1, ..Report::default() };
    let shared = Arc::new(Shared::default());
    let whole =
        tokio::time::timeout(PATIENCE, play(binary, log, seed, &folder, shared.clone(), &mut report)).await;
    match whole {
        Ok(Ok(())) => {}
        Ok(Err(error)) => report.wrong.push(format!("{error:#}")),
        Err(_) => report.wrong.push(format!("it was not over after {PATIENCE:?}")),
    }
    let clients = shared.clients();
    (report.requests, report.kills, report.time) = (clients.requests, clients.kills, began.elapsed());
    report.wrong.extend(clients.wrong.iter().take(MOST_TOLD).map(|wrong| {
        let mut text =
            format!("- {}\n  client {} document {}", wrong.what, wrong.client as i64, wrong.document);
        let client = clients.list.get(wrong.client);
        for line in
            client.and_then(|client| client.pairs.get(&wrong.document)).iter().flat_map(|pair| &pair.log)
        {
            text.push_str(&format!("\n    {line}"));
        }
        text
    }));
    let _ = match report.wrong.is_empty() {
        true => std::fs::remove_dir_all(&folder),
        false => std::fs::write(folder.join("journal.txt"), clients.journal()),
    };
    report
}

struct Run {
    stage: Arc<Stage>,
    node: Node,
    door: watch::Sender<Option<SocketAddr>>,
    limits: Limits,
    _receivers: Vec<Receiver>,
}

async fn play(
    binary: &Path,
    log: &str,
    seed: u64,
    folder: &Path,
    shared: Arc<Shared>,
    report: &mut Report,
) -> anyhow::Result<()> {
    let dice = Dice::new(seed);
    let _ = std::fs::remove_dir_all(folder);
    std::fs::create_dir_all(folder)?;
    let limits = Limits::draw(&mut dice.fork(1));
    let mut receivers = Vec::new();
    for _ in 0..3 {
        receivers.push(Receiver::start(shared.clone()).await?);
    }
    shared.clients().note(|| format!("{:?} {:?}", limits.variables, limits.lanes));
    let node = Node::start(binary, folder, log, &limits.variables).await?;
    let door = watch::Sender::new(Some(node.address));
    let stage = Arc::new(Stage {
        api: Api::new(door.subscribe(), shared.clone()),
        shared,
        hosts: receivers.iter().map(|receiver| receiver.address).collect(),
        subscriptions: Mutex::default(),
        lanes: limits.lanes.clone(),
        forgets: limits.forgets,
        forgets_revisions: limits.forgets_revisions,
        lowers: limits.lowers,
        operations: Default::default(),
        places: Default::default(),
    });
    let mut run = Run { stage, node, door, limits, _receivers: receivers };
    let played = run.acts(&mut dice.fork(2)).await;
    report.operations = run.stage.operations.load(Ordering::Relaxed);
    played?;
    if let Some(status) = run.node.ended() {
        anyhow::bail!("Flare ended by itself: {status}");
    }
    run.node.kill().await?;
    audit(folder, &run.stage).await
}

/// What the engine finds in the store that is left.
async fn audit(folder: &Path, stage: &Stage) -> anyhow::Result<()> {
    let audit = super::audit_program()?;
    let data = super::node::data(folder);
    let found = tokio::process::Command::new(&audit).arg(data).output().await;
    let found = found.with_context(|| format!("running {}", audit.display()))?;
    if !found.status.success() {
        let text = [found.stdout, found.stderr].concat();
        stage.wrong(usize::MAX, "", format!("the audit of the store: {}", String::from_utf8_lossy(&text)));
    }
    Ok(())
}

#[derive(Clone, Copy)]
enum Incident {
    None,
    Kill,
    Stop,
    Clock(i64),
}

impl Run {
    async fn acts(&mut self, dice: &mut Dice) -> anyhow::Result<()> {
        self.begin(dice).await?;
        for _ in 0..dice.between(25, 60) {
            let batch = operate::draw(&self.stage, dice);
            let incident = dice.weighted(&[
                (Incident::None, 90),
                (Incident::Kill, 6),
                (Incident::Stop, 2),
                (Incident::Clock(3_600_000), 1),
                (Incident::Clock(-7_200_000), 1),
            ]);
            let looks = operate::draw_looks(&self.stage, dice);
            let pauses = [dice.below(15), *dice.pick(&[0, 5, 30, 60, 100])].map(Duration::from_millis);
            self.step(batch, incident, looks, pauses).await?;
            tokio::time::sleep(Duration::from_millis(*dice.pick(&[0, 0, 1, 5, 20]))).await;
        }
        finish::heal(&self.stage).await?;
        finish::settle(&self.stage).await?;
        verify::clients(&self.stage).await?;
        self.again_and_nothing_happens().await
    }

    /// The resources, and some who want to hear of them.
    async fn begin(&mut self, dice: &mut Dice) -> anyhow::Result<()> {
        for slot in 0..self.limits.lanes.len() {
            operate::create_first(&self.stage, slot).await?;
        }
        for number in 0..3 {
            if let Some(operation) = operate::draw_subscription(&self.stage, &mut dice.fork(number)) {
                operation.perform(self.stage.clone()).await?;
            }
        }
        Ok(())
    }

    /// A batch of operations side by side, and what happens to the node meanwhile. Before a kill someone looks around,
    /// while what the batch has begun is still under way.
    async fn step(
        &mut self,
        batch: Vec<Operation>,
        incident: Incident,
        looks: Vec<Operation>,
        [first, second]: [Duration; 2],
    ) -> anyhow::Result<()> {
        let mut performing = JoinSet::new();
        for operation in batch {
            performing.spawn(operation.perform(self.stage.clone()));
        }
        tokio::time::sleep(first).await;
        match incident {
            Incident::None => {}
            Incident::Kill => {
                for look in looks {
                    look.perform(self.stage.clone()).await?;
                }
                tokio::time::sleep(second).await;
                self.kill().await?;
            }
            Incident::Stop => self.stop().await?,
            Incident::Clock(offset) => {
                self.stage.shared.clients().clock_was_set();
                self.node.set_clock(offset)?;
            }
        }
        while let Some(done) = performing.join_next().await {
            done.context("an operation panicked")??;
        }
        if let Some(status) = self.node.ended() {
            anyhow::bail!("Flare ended by itself: {status}");
        }
        Ok(())
    }

    async fn kill(&mut self) -> anyhow::Result<()> {
        self.stage.shared.stopping.store(true, Ordering::SeqCst);
        self.door.send_replace(None);
        self.node.kill().await?;
        // Nothing of the dead process is still on its way when the next one begins.
        self.stage.shared.drained().await;
        let now = self.stage.shared.world().now();
        self.stage.shared.clients().killed(now);
        self.start().await?;
        verify::accepted(&self.stage, SAMPLE).await
    }

    async fn stop(&mut self) -> anyhow::Result<()> {
        self.stage.shared.stopping.store(true, Ordering::SeqCst);
        self.node.stop().await?;
        self.door.send_replace(None);
        self.stage.shared.drained().await;
        self.stage.shared.clients().stopped();
        self.start().await
    }

    async fn start(&mut self) -> anyhow::Result<()> {
        self.stage.shared.clients().restarts();
        let variables = self.limits.lowered.clone();
        self.node.start_again(&variables).await?;
        self.stage.shared.stopping.store(false, Ordering::SeqCst);
        self.door.send_replace(Some(self.node.address));
        Ok(())
    }

    /// Stopped, and then killed, when all is at rest and recorded: nobody is told anything, and nothing has changed.
    async fn again_and_nothing_happens(&mut self) -> anyhow::Result<()> {
        for clean in [true, false] {
            let before = self.stage.shared.clients().requests;
            if clean {
                self.stop().await?;
            } else {
                self.kill().await?;
            }
            finish::settle(&self.stage).await?;
            let after = self.stage.shared.clients().requests;
            if after != before {
                let how = if clean { "a clean stop" } else { "a kill at rest" };
                self.stage.wrong(usize::MAX, "", format!("{} requests after {how}", after - before));
            }
            verify::clients(&self.stage).await?;
        }
        Ok(())
    }
}
