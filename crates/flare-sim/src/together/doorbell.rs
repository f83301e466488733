//! The doorbell as one node meets it: what others ring is heard, or not, or late, or twice.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_promises::dice::Dice;
use flare_provider::memory::MemoryDoorbell;
use flare_provider::{Doorbell, Heard, Listener, Result, Ring};
use parking_lot::Mutex;

use super::ways::{Direction, End, Ways};

/// How much of what is rung is not heard, or not as it was rung.
#[derive(Clone)]
pub struct Hearing(Arc<Mutex<(u64, Dice)>>);

impl Hearing {
    /// Of a hundred rings so many are lost, late or doubled.
    pub fn new(trouble: u64, dice: Dice) -> Hearing {
        Hearing(Arc::new(Mutex::new((trouble, dice))))
    }

    /// Everything is heard. What was lost stays so: whoever did not hear it looks.
    pub fn heal(&self) {
        self.0.lock().0 = 0;
    }
}

/// The bell of one node.
pub struct Bell {
    pub inner: MemoryDoorbell,
    pub hearing: Hearing,
    pub ways: Ways,
}

#[async_trait]
impl Doorbell for Bell {
    async fn ring(&self, rings: &[Ring]) -> Result<()> {
        match self.ways.is_cut(End::Store, Direction::Out) {
            true => Ok(()),
            false => self.inner.ring(rings).await,
        }
    }

    async fn listen(&self) -> Result<Box<dyn Listener>> {
        let inner = self.inner.listen().await?;
        let (hearing, ways) = (self.hearing.clone(), self.ways.clone());
        Ok(Box::new(Ear { inner, hearing, ways, kept: VecDeque::new() }))
    }
}

struct Ear {
    inner: Box<dyn Listener>,
    hearing: Hearing,
    ways: Ways,
    /// What comes next. Bound: what came at once, twice.
    kept: VecDeque<Heard>,
}

#[async_trait]
impl Listener for Ear {
    async fn next(&mut self) -> Result<Heard> {
        loop {
            if let Some(heard) = self.kept.pop_front() {
                return Ok(heard);
            }
            let heard = self.inner.next().await?;
            let (roll, late) = {
                let (trouble, dice) = &mut *self.hearing.0.lock();
                let (roll, late) = (dice.below(100), Duration::from_millis(dice.below(1000)));
                (if roll < *trouble { roll * 100 / *trouble } else { 100 }, late)
            };
            if self.ways.is_cut(End::Store, Direction::Back) || roll < 60 {
                continue;
            }
            match roll {
                60..80 => {
                    // Whoever does not wait for it hears it when it listens again.
                    self.kept.push_back(heard);
                    tokio::time::sleep(late).await;
                }
                80..100 => {
                    self.kept.extend([heard.clone(), heard]);
                }
                _ => return Ok(heard),
            }
        }
    }
}
