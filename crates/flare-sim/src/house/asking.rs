//! What is asked of nodes: whoever asks comes to any of them. What only the owner of a subscription can answer is sent on to
//! that one, once, as the API does it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use flare_core::operations::{App, Failure, Owner};

use super::{House, Place};
use crate::client::Name;
use crate::together::tenures::Sender;
use crate::together::ways::{Direction, End};

/// So long a node waits for the answer of another.
const PATIENCE: Duration = Duration::from_secs(2);

impl House {
    /// A node that answers, once there is one.
    async fn somebody(&self) -> &Place {
        loop {
            let up: Vec<&Place> = self.places.iter().filter(|place| place.is_up()).collect();
            match up.as_slice() {
                [] => self.ready.notified().await,
                [only] if self.together.is_none() => return only,
                several => return several[self.dice.borrow_mut().below(several.len() as u64) as usize],
            }
        }
    }

    /// Asks a node something. Nothing: the answer was lost, with the node.
    pub async fn ask<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        ask: impl FnOnce(Arc<App>, Sender) -> F,
    ) -> Option<T> {
        self.somebody().await.ask(ask).await
    }

    /// Asks whoever serves a subscription. Nothing: the answer was lost on its way, or nobody serves it at the moment.
    pub async fn ask_about<T: 'static, F: Future<Output = T> + 'static>(
        &self,
        name: &Name,
        ask: impl FnOnce(Arc<App>, Sender) -> F,
    ) -> Option<T> {
        let place = self.somebody().await;
        if self.together.is_none() {
            return place.ask(ask).await;
        }
        match owner(place, name, false).await? {
            None | Some(Owner::Here) => place.ask(ask).await,
            Some(Owner::Nobody) => None,
            Some(Owner::There(node, _)) => {
                let other = self.places.iter().find(|other| other.name() == node && other.is_up())?;
                if !self.passes(place, other).await {
                    return None;
                }
                let here = matches!(owner(other, name, true).await?, None | Some(Owner::Here));
                let answer = if here { other.ask(ask).await } else { None };
                if self.passes(other, place).await { answer } else { None }
            }
        }
    }

    /// Whether a node of several could not say: the subscription goes elsewhere, or the store does not answer.
    pub fn is_elsewhere(&self, failure: &Failure) -> bool {
        self.together.is_some() && matches!(failure, Failure::Store(error) if error.is_passing())
    }

    /// Whether something gets from one node to another: at once, or late, or not.
    async fn passes(&self, from: &Place, to: &Place) -> bool {
        let cut = from.ways.is_cut(End::Nodes, Direction::Out) || to.ways.is_cut(End::Nodes, Direction::Back);
        let (roll, way) = {
            let mut dice = self.dice.borrow_mut();
            (dice.below(100), Duration::from_millis(dice.below(4)))
        };
        let healed = self.stage.lock().healed;
        let (way, passes) = match roll {
            _ if cut => (PATIENCE, false),
            _ if healed => (way, true),
            0..2 => (PATIENCE, false),
            2..6 => (way * 300, true),
            _ => (way, true),
        };
        tokio::time::sleep(way).await;
        passes
    }
}

/// Who serves a subscription, as a node knows.
async fn owner(place: &Place, name: &Name, here: bool) -> Option<Option<Owner>> {
    let Name { resource, id } = name.clone();
    let asked = place.ask(async move |app, _| app.find_owner(Some(&resource), &id, here).await);
    asked.await
}
