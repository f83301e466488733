//! Operations: drawn from the seed a batch at a time, and performed side by side. What is drawn together does not
//! meddle with the same document, nor with the same aspect of a subscription.

mod capture;
mod documents;
mod look;
mod passive;
mod resources;
mod stream;
mod subscriptions;

use std::sync::Arc;
use std::time::Duration;

use super::api::{Answer, Ask};
use super::dice::Dice;
use super::mood::Mood;
use super::stage::Stage;
use super::wish::{Aspect, Wish};

use documents::Line;
use passive::pull;
pub use resources::create_first;
pub use subscriptions::{draw_new as draw_subscription, replay, resume};

/// How a request is cut: so many parts of a thousand are sent, and the connection is left after a while.
#[derive(Clone, Copy, Debug)]
pub struct Cut {
    part: u64,
    wait: Duration,
}

impl Cut {
    fn draw(dice: &mut Dice, share: u64) -> Option<Cut> {
        let (cut, part, wait) =
            (dice.percent(share), *dice.pick(&[500, 990, 1000, 1000, 1000]), dice.below(4));
        cut.then(|| Cut { part, wait: Duration::from_millis(wait) })
    }
}

#[derive(Clone, Debug)]
pub enum Operation {
    Say { resource: usize, line: Line, cut: Option<Cut> },
    Bulk { resource: usize, lines: Vec<Line>, cut: Option<Cut> },
    Subscribe { number: usize, cut: Option<Cut> },
    Unsubscribe { number: usize, cut: Option<Cut> },
    Change { number: usize, aspects: Vec<Aspect>, wish: Box<Wish>, cut: Option<Cut> },
    Pause { number: usize, cut: Option<Cut> },
    Resume { number: usize, cut: Option<Cut> },
    Feel { number: usize, mood: Mood },
    Replay { number: usize, scope: &'static str, document: Option<String>, cut: Option<Cut> },
    DropDead { number: usize, document: Option<String> },
    Look { number: usize, at: look::Sight },
    Pull { number: usize, quantity: u64, lease: u64, dice: Box<Dice> },
    Stream { number: usize, quantity: u64, lease: u64, dice: Box<Dice> },
    Drive { number: usize },
    Raze { resource: usize, cut: Option<Cut> },
    Found { resource: usize, slot: usize, cut: Option<Cut> },
    Capture { place: u64, first: u64, cut: Option<Cut> },
}

/// A batch of operations.
pub fn draw(stage: &Stage, dice: &mut Dice) -> Vec<Operation> {
    let count = dice.between(1, 6);
    (0..count).filter_map(|_| draw_one(stage, dice)).collect()
}

/// Someone looks around just before a kill, at everything or here and there: what looking may have done to the records
/// shows after it.
pub fn draw_looks(stage: &Stage, dice: &mut Dice) -> Vec<Operation> {
    let everywhere = dice.percent(50);
    let mut dice = dice.fork(dice.clone().below(u64::MAX));
    if everywhere {
        // Twice: the first one has recorded what there was, and the second finds nothing to record.
        let all = subscriptions::existing(stage).repeat(2).into_iter();
        return all.map(|number| Operation::Look { number, at: look::Sight::DeadLetters }).collect();
    }
    let count = dice.below(4);
    let looks = (0..count).filter_map(|_| {
        let number = subscriptions::draw_existing(stage, &mut dice)?;
        Some(look::draw(stage, number, &mut dice))
    });
    looks.collect()
}

#[derive(Clone, Copy)]
enum Kind {
    Document,
    Bulk,
    Subscribe,
    Unsubscribe,
    Change,
    Pause,
    Resume,
    Feel,
    Replay,
    DropDead,
    Look,
    Pull,
    Drive,
    Resource,
    Capture,
}

fn draw_one(stage: &Stage, dice: &mut Dice) -> Option<Operation> {
    let kind = dice.weighted(&[
        (Kind::Document, 50),
        (Kind::Bulk, 8),
        (Kind::Subscribe, 3),
        (Kind::Unsubscribe, 2),
        (Kind::Change, 12),
        (Kind::Pause, 3),
        (Kind::Resume, 5),
        (Kind::Feel, 10),
        (Kind::Replay, 4),
        (Kind::DropDead, 1),
        (Kind::Look, 12),
        (Kind::Pull, 6),
        (Kind::Drive, 5),
        (Kind::Resource, 2),
        (Kind::Capture, 2),
    ]);
    // A fork for each: how much one of them draws changes nothing for those after it.
    let mut dice = dice.fork(dice.clone().below(u64::MAX));
    let dice = &mut dice;
    match kind {
        Kind::Document => documents::draw(stage, dice),
        Kind::Bulk => documents::draw_bulk(stage, dice),
        Kind::Subscribe => subscriptions::draw_new(stage, dice),
        Kind::Resource => resources::draw(stage, dice),
        Kind::Capture => capture::draw(stage, dice),
        _ => {
            let number = subscriptions::draw_existing(stage, dice)?;
            match kind {
                Kind::Unsubscribe => subscriptions::draw_end(stage, number, dice),
                Kind::Change => subscriptions::draw_change(stage, number, dice),
                Kind::Pause => Some(Operation::Pause { number, cut: Cut::draw(dice, 15) }),
                Kind::Resume => Some(Operation::Resume { number, cut: Cut::draw(dice, 15) }),
                Kind::Feel => Some(Operation::Feel { number, mood: Mood::draw(dice) }),
                Kind::Replay => Some(subscriptions::draw_replay(stage, number, dice)),
                Kind::DropDead => {
                    let document =
                        dice.percent(70).then(|| documents::draw_url(stage, number, dice)).flatten();
                    Some(Operation::DropDead { number, document })
                }
                Kind::Look => Some(look::draw(stage, number, dice)),
                Kind::Pull => passive::draw(stage, number, dice),
                _ => Some(Operation::Drive { number }),
            }
        }
    }
}

impl Operation {
    /// Performs it, until it is known what became of it.
    pub async fn perform(self, stage: Arc<Stage>) -> anyhow::Result<()> {
        stage.counts();
        match self {
            Operation::Say { resource, line, cut } => documents::say(&stage, resource, line, cut).await,
            Operation::Bulk { resource, lines, cut } => documents::bulk(&stage, resource, lines, cut).await,
            Operation::Subscribe { number, cut } => subscriptions::create(&stage, number, cut).await,
            Operation::Unsubscribe { number, cut } => subscriptions::delete(&stage, number, cut).await,
            Operation::Change { number, aspects, wish, cut } => {
                subscriptions::change(&stage, number, &aspects, *wish, cut).await
            }
            Operation::Pause { number, cut } => subscriptions::pause(&stage, number, cut).await,
            Operation::Resume { number, cut } => subscriptions::resume(&stage, number, cut).await,
            Operation::Feel { number, mood } => {
                stage.shared.clients().list[number].mood = mood;
                Ok(())
            }
            Operation::Replay { number, scope, document, cut } => {
                subscriptions::replay(&stage, number, scope, document, cut).await
            }
            Operation::DropDead { number, document } => {
                subscriptions::drop_dead(&stage, number, document).await
            }
            Operation::Look { number, at } => look::look(&stage, number, at).await,
            Operation::Pull { number, quantity, lease, mut dice } => {
                pull(&stage, number, quantity, lease, &mut dice).await
            }
            Operation::Stream { number, quantity, lease, mut dice } => {
                stream::stream(&stage, number, quantity, lease, &mut dice).await
            }
            Operation::Drive { number } => passive::drive(&stage, number).await,
            Operation::Raze { resource, cut } => resources::delete(&stage, resource, cut).await,
            Operation::Capture { place, first, cut } => capture::capture(&stage, place, first, cut).await,
            Operation::Found { resource, slot, cut } => resources::create(&stage, resource, slot, cut).await,
        }
    }
}

/// Sends a request, cut short first if so drawn, until it is answered. The second part: whether it may have been done
/// by an earlier try.
async fn insist(stage: &Stage, ask: &Ask, cut: Option<Cut>) -> anyhow::Result<(Answer, bool)> {
    if let Some(cut) = cut {
        stage.api.cut(ask, cut.part, cut.wait).await?;
    }
    let (answer, before) = stage.api.send(ask).await?;
    Ok((answer, before > 0 || cut.is_some()))
}
