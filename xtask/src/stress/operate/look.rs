//! Looking: whatever operators read, at any moment. None of it may change anything.

use super::{Operation, documents};
use crate::stress::api::Ask;
use crate::stress::dice::Dice;
use crate::stress::stage::Stage;

#[derive(Clone, Debug)]
pub enum Sight {
    Status,
    DeadLetters,
    Explain(String),
    Drift,
    Lagging,
    Attempts,
    Replays,
    Subscription,
    List,
    Metrics,
}

pub fn draw(stage: &Stage, number: usize, dice: &mut Dice) -> Operation {
    let at = match dice.below(12) {
        0 | 1 => Sight::Status,
        2..=4 => Sight::DeadLetters,
        5 | 6 => documents::draw_url(stage, number, dice).map_or(Sight::Status, Sight::Explain),
        7 => Sight::Drift,
        8 => Sight::Lagging,
        9 => dice.pick(&[Sight::Attempts, Sight::Replays]).clone(),
        10 => Sight::Subscription,
        _ => dice.pick(&[Sight::List, Sight::Metrics]).clone(),
    };
    Operation::Look { number, at }
}

pub async fn look(stage: &Stage, number: usize, at: Sight) -> anyhow::Result<()> {
    let Some(path) = stage.path(number) else { return Ok(()) };
    let path = match &at {
        Sight::Status => format!("{path}/status"),
        Sight::DeadLetters => format!("{path}/dead-letters"),
        Sight::Explain(url) => {
            let id = path.rsplit('/').next().unwrap_or_default();
            format!("/explain?document={url}&subscription={id}")
        }
        Sight::Drift => format!("{path}/documents?limit=100"),
        Sight::Lagging => format!("{path}/documents?lagging=true&limit=100"),
        Sight::Attempts => format!("{path}/attempts"),
        Sight::Replays => format!("{path}/replays"),
        Sight::Subscription => path,
        Sight::List => "/subscriptions?limit=100".into(),
        Sight::Metrics => "/metrics".into(),
    };
    let (answer, _) = stage.api.send(&Ask::get(&path)).await?;
    // 404: it is being deleted at the same moment.
    if !matches!(answer.status, 200 | 404) {
        stage.wrong(number, "", format!("GET {path} was answered {}: {}", answer.status, answer.text()));
    }
    Ok(())
}
