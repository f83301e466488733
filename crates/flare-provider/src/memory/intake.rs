//! How far consumers have read, in memory.

use std::collections::BTreeMap;

use async_trait::async_trait;
use flare_model::ids::ResourceNumber;

use super::{Durable, Engine};
use crate::catalog::EntityKind;
use crate::error::{Conflict, ErrorKind, ProviderError, Result};
use crate::intake::{Intake, Letter, ListLetters, NewLetter, Reading};

/// Partitions and letters of all consumers.
#[derive(Clone, Default)]
pub(super) struct Readings {
    partitions: BTreeMap<(ResourceNumber, String), (u64, Option<String>)>,
    letters: BTreeMap<(ResourceNumber, u64), Letter>,
    last_letter: u64,
}

impl Readings {
    /// A consumer is gone.
    pub fn forget(&mut self, consumer: ResourceNumber) {
        self.partitions.retain(|(of, _), _| *of != consumer);
        self.letters.retain(|(of, _), _| *of != consumer);
    }
}

impl Durable {
    fn take(&mut self, consumer: ResourceNumber, partition: &str, epoch: u64) -> Result<Option<String>> {
        const OPERATION: &str = "intake.take";
        if !self.entities.has(EntityKind::Consumer, consumer.0) {
            return Err(ProviderError::conflict(OPERATION, Conflict::Parent));
        }
        let key = (consumer, partition.to_owned());
        let (owner, progress) = self.readings.partitions.entry(key).or_default();
        if *owner > epoch {
            return Err(ProviderError::new(ErrorKind::Fenced, OPERATION, "it was taken over since"));
        }
        *owner = epoch;
        Ok(progress.clone())
    }
}

#[async_trait]
impl Intake for Engine {
    async fn take(&self, consumer: ResourceNumber, partition: &str, epoch: u64) -> Result<Option<String>> {
        self.durable("intake.take")?.take(consumer, partition, epoch)
    }

    async fn advance(
        &self,
        consumer: ResourceNumber,
        partition: &str,
        epoch: u64,
        progress: String,
        letters: Vec<NewLetter>,
    ) -> Result<()> {
        const OPERATION: &str = "intake.advance";
        let readings = &mut self.durable(OPERATION)?.readings;
        let Some((owner, written)) = readings.partitions.get_mut(&(consumer, partition.to_owned())) else {
            return Err(ProviderError::new(ErrorKind::Fenced, OPERATION, "its consumer is gone"));
        };
        if *owner != epoch {
            return Err(ProviderError::new(ErrorKind::Fenced, OPERATION, "it was taken over since"));
        }
        *written = Some(progress);
        for kept in letters {
            readings.last_letter += 1;
            let letter = Letter { number: readings.last_letter, partition: partition.to_owned(), kept };
            readings.letters.insert((consumer, letter.number), letter);
        }
        Ok(())
    }

    async fn readings(&self, consumer: ResourceNumber) -> Result<Vec<Reading>> {
        let durable = self.durable("intake.readings")?;
        let own = durable.readings.partitions.iter().filter(|((of, _), _)| *of == consumer);
        let reading = |((_, partition), (epoch, progress)): (&(ResourceNumber, String), &(u64, _))| Reading {
            partition: partition.clone(),
            epoch: *epoch,
            progress: Option::clone(progress),
        };
        Ok(own.map(reading).collect())
    }

    async fn letters(&self, list: ListLetters) -> Result<(u64, Vec<Letter>)> {
        let durable = self.durable("intake.letters")?;
        let all = durable.readings.letters.range((list.consumer, 0)..=(list.consumer, u64::MAX));
        let total = all.clone().count() as u64;
        let beyond = all.filter(|((_, number), _)| *number > list.after);
        let page = beyond.skip(list.offset as usize).take(list.limit as usize);
        Ok((total, page.map(|(_, letter)| letter.clone()).collect()))
    }

    async fn remove_letters(&self, consumer: ResourceNumber, numbers: Option<Vec<u64>>) -> Result<u64> {
        let letters = &mut self.durable("intake.remove_letters")?.readings.letters;
        let before = letters.len();
        letters.retain(|(of, number), _| {
            *of != consumer || numbers.as_ref().is_some_and(|numbers| !numbers.contains(number))
        });
        Ok((before - letters.len()) as u64)
    }
}
