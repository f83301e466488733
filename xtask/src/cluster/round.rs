//! One round: something is done to the cluster, it is looked how long that takes to be made good, and everything is put right again.

use std::time::{Duration, Instant};

use anyhow::Context;
use flare_promises::dice::Dice;

use super::account::Suspended;
use super::event::{Coordinator, Event};
use super::network::Place;
use super::stage::{LEASE, Stage};

/// What came of a round.
pub struct Round {
    pub event: Event,
    /// The node that it was done to.
    pub node: Option<String>,
    /// Until all its units ran elsewhere, or all was well again.
    pub took: Option<Duration>,
    pub bound: Duration,
    /// Requests that were told again though they had been answered.
    pub repeated: u64,
    /// Late requests of a node that was suspended: as clients saw them, and as the nodes counted.
    pub late: Option<(u64, u64)>,
    pub wrong: Vec<String>,
}

/// A store that ends is away for so long.
const DOWN: Duration = Duration::from_millis(700);

impl Round {
    /// Plays one.
    pub async fn play(
        stage: &mut Stage,
        event: Event,
        coordinator: Coordinator,
        dice: &mut Dice,
    ) -> anyhow::Result<Round> {
        let repeated = stage.clients.accounts().repeated;
        let bound = event.bound(LEASE, coordinator);
        let mut round =
            Round { event, node: None, took: None, bound, repeated: 0, late: None, wrong: Vec::new() };
        if event.disturbs() {
            stage.clients.accounts().disturb();
        }
        match event {
            Event::RestartStore | Event::Promote => round.take_store_away(stage).await?,
            _ => {
                let node = match event {
                    Event::KillLeader => stage.leader().await.context("nobody leads")?,
                    _ => dice.below(stage.nodes.len() as u64) as usize,
                };
                round.node = Some(stage.nodes[node].name.clone());
                round.hurt(stage, node).await?;
            }
        }
        if let Err(error) = stage.until_green().await {
            round.wrong.push(format!("{error:#}"));
        }
        stage.clients.accounts().calm();
        if let Err(error) = stage.until_shared().await {
            round.wrong.push(format!("{error:#}"));
        }
        round.repeated = stage.clients.accounts().repeated - repeated;
        if event == Event::Stop && round.repeated > 0 {
            round.wrong.push(format!("{} requests were repeated by an orderly stop", round.repeated));
        }
        for node in &mut stage.nodes {
            if let Some(status) = node.ended() {
                round.wrong.push(format!("{} ended by itself: {status}", node.name));
            }
        }
        Ok(round)
    }

    /// Does it to a node, looks, and makes up for it.
    async fn hurt(&mut self, stage: &mut Stage, node: usize) -> anyhow::Result<()> {
        let began = Instant::now();
        let network = stage.network.clone();
        let place = Place::Node(node);
        let others: Vec<Place> =
            (0..stage.nodes.len()).filter(|other| *other != node).map(Place::Node).collect();
        match self.event {
            Event::Kill | Event::KillLeader => stage.nodes[node].kill().await?,
            Event::Suspend => stage.nodes[node].signal("-STOP")?,
            Event::Stop => stage.nodes[node].signal("-TERM")?,
            Event::CutStore => network.part(place, Place::Store)?,
            Event::CutCoordinator => network.part(place, Place::Coordinator)?,
            Event::CutBoth => {
                network.part(place, Place::Store)?;
                network.part(place, Place::Coordinator)?;
            }
            Event::CutOthers => others.iter().try_for_each(|other| network.part(place, *other))?,
            Event::CutOutward => {
                network.cut(place, Place::Store)?;
                network.cut(place, Place::Coordinator)?;
            }
            Event::CutInward => {
                network.cut(Place::Store, place)?;
                network.cut(Place::Coordinator, place)?;
            }
            Event::RestartStore | Event::Promote => {}
        }
        if self.event.loses_units() {
            // Longer than is allowed, to say by how much.
            self.took = stage.until_elsewhere(node, LEASE * 6).await;
            self.judge("until its units ran elsewhere");
        } else {
            self.must_stay(stage, began).await?;
        }
        self.make_up(stage, node).await
    }

    /// Nothing may move while nodes do not reach each other.
    async fn must_stay(&mut self, stage: &Stage, began: Instant) -> anyhow::Result<()> {
        let before = stage.store.ask("SELECT sum(epoch) FROM flare.feeds")?;
        tokio::time::sleep((LEASE * 2).saturating_sub(began.elapsed())).await;
        let moved = stage.store.ask("SELECT sum(epoch) FROM flare.feeds")? != before;
        if moved && self.event == Event::CutOthers {
            self.wrong.push("units moved though every node reached store and coordinator".to_owned());
        }
        self.took = Some(Duration::ZERO);
        Ok(())
    }

    async fn make_up(&mut self, stage: &mut Stage, node: usize) -> anyhow::Result<()> {
        stage.network.heal()?;
        match self.event {
            Event::Kill | Event::KillLeader => stage.nodes[node].start().await,
            Event::Stop => {
                stage.nodes[node].stopped().await?;
                stage.nodes[node].start().await
            }
            Event::Suspend => self.resume(stage, node).await,
            _ => Ok(()),
        }
    }

    /// A node goes on that was suspended past its lease. What slips out of it late is counted by clients, and by itself.
    async fn resume(&mut self, stage: &mut Stage, node: usize) -> anyhow::Result<()> {
        let place = stage.nodes[node].place.address();
        stage.clients.accounts().suspended.insert(place.clone(), Suspended::default());
        stage.nodes[node].signal("-CONT")?;
        if let Err(error) = stage.until_green().await {
            self.wrong.push(format!("{error:#}"));
        }
        let stats = stage.nodes[node].get("/cluster/stats").await?.json;
        let counted = stats["lateRequests"].as_u64().context("stats count late requests")?;
        let seen = stage.clients.accounts().suspended.remove(&place).map_or(0, |suspended| suspended.late);
        self.late = Some((seen, counted));
        if seen > counted {
            self.wrong.push(format!("clients saw {seen} late requests, and the cluster counts {counted}"));
        }
        Ok(())
    }

    async fn take_store_away(&mut self, stage: &mut Stage) -> anyhow::Result<()> {
        let began = Instant::now();
        match self.event {
            Event::Promote => tokio::task::block_in_place(|| stage.store.promote())?,
            _ => tokio::task::block_in_place(|| stage.store.restart(DOWN))?,
        }
        let back = began.elapsed();
        self.bound += back;
        if let Err(error) = stage.until_green().await {
            self.wrong.push(format!("{error:#}"));
        }
        self.took = Some(began.elapsed());
        self.judge("until all was well");
        Ok(())
    }

    fn judge(&mut self, what: &str) {
        match self.took {
            Some(took) if took <= self.bound => {}
            Some(took) => self.wrong.push(format!("{took:.1?} {what}, and {:.1?} are allowed", self.bound)),
            None => self.wrong.push(format!("never {what}")),
        }
    }
}
