//! Passive mode: delivery on request, reservations, streams. Checked, and asked of the delivery thread.

use std::sync::Arc;
use std::time::Duration;

use flare_model::duration::HumanDuration;
use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::invalid::Invalid;
use flare_model::subscription::Mode;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::oneshot;

use crate::journey::Command;
use crate::journey::passive::{
    Ask, AskRefused, DriveOrder, Driven, Handout, Message, Open, Receipt, Reservation, StreamOrder,
};
use crate::operations::App;
use crate::operations::Done;
use crate::operations::Failure;
use crate::registry::Subscription;

/// A reservation that has something waits for what else is on its way from the store, no longer than this.
const GATHERING: Duration = Duration::from_secs(1);

/// What `POST .../deliver` says.
#[derive(Default)]
pub struct DeliverQuery {
    /// At most so many requests.
    pub quantity: Option<u64>,
    /// At most so many of them open at once.
    pub concurrency: Option<u64>,
}

/// What `POST .../reserve` says.
#[derive(Default)]
pub struct ReserveQuery {
    /// At most so many notifications.
    pub quantity: Option<u64>,
    /// How long to wait when there is none.
    pub wait: Option<HumanDuration>,
    /// For how long they are reserved.
    pub lease: Option<HumanDuration>,
}

/// What `GET .../stream` says.
#[derive(Default)]
pub struct StreamQuery {
    /// At most so many unsettled notifications.
    pub quantity: Option<u64>,
    /// For how long each is reserved.
    pub lease: Option<HumanDuration>,
    /// The header `Last-Event-ID`.
    pub last_event_id: Option<String>,
}

/// The answer of `POST .../deliver`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Delivered")]
pub struct DeliverView {
    /// How many were asked for at most.
    requested: u32,
    /// How many the client took.
    delivered: u32,
    /// How many the client asked to drop.
    discarded: u32,
    /// How many failed.
    failed: u32,
    /// How many documents the client is still owed.
    remaining: u64,
}

/// The answer of `POST .../reserve`.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(rename = "Reserved")]
pub struct ReserveView {
    /// The notifications, perhaps none.
    messages: Vec<Message>,
    /// Whoever has the answer says so with this, once the client's connection has taken it. Dropped unsaid, the
    /// notifications go back.
    #[serde(skip)]
    #[schemars(skip)]
    pub receipt: Option<Receipt>,
}

impl App {
    /// Sends notifications of a passive subscription to its endpoint, now.
    pub async fn deliver(
        &self,
        resource: &ResourceId,
        id: &SubscriptionId,
        query: DeliverQuery,
    ) -> Done<DeliverView> {
        let subscription = self.passive(resource, id)?;
        let quantity = self.quantity(query.quantity)?;
        let most = subscription.compiled.spec.concurrency;
        let concurrency = match query.concurrency {
            Some(given) => within("concurrency", given, most)?,
            None => most,
        };
        let order = DriveOrder { quantity, concurrency };
        let (reply, mut answer) = oneshot::channel();
        self.ask_passive(&subscription, Ask::Deliver(order, reply)).await;
        let answer = tokio::select! {
            biased;
            answer = &mut answer => answer,
            // What has begun is waited for; nothing more begins.
            () = self.stop.cancelled() => {
                self.ask_passive(&subscription, Ask::Halt).await;
                answer.await
            }
        };
        let driven = self.accepted(&subscription, answer)?;
        let Driven { delivered, discarded, failed, remaining } = driven;
        Ok(DeliverView { requested: quantity, delivered, discarded, failed, remaining })
    }

    /// Hands out notifications of a passive subscription.
    pub async fn reserve(
        &self,
        resource: &ResourceId,
        id: &SubscriptionId,
        query: ReserveQuery,
    ) -> Done<ReserveView> {
        let subscription = self.passive(resource, id)?;
        let quantity = self.quantity(query.quantity)? as usize;
        let lease = self.lease(query.lease)?;
        let passive = &self.config.delivery.passive;
        let wait = query.wait.map_or(Duration::ZERO, |wait| wait.0);
        if wait > passive.maximum_wait {
            return Err(too_long("wait", wait, passive.maximum_wait).into());
        }
        // Without a wait it is answered as soon as it is known whether there is something.
        let patience = if wait.is_zero() { passive.maximum_wait } else { wait };
        let asked = self.clock.monotonic();
        let deadline = asked + patience;
        // Its answer has to be under way before the wait is over, and before what it has is.
        let gathers_until = asked + GATHERING.min(patience / 2).min(lease / 2);
        loop {
            let (reply, mut answer) = oneshot::channel();
            let (patient, leased) = (!wait.is_zero(), Vec::new());
            let reservation = Reservation { quantity, lease, patient, gathers_until, leased, reply };
            self.ask_passive(&subscription, Ask::Reserve(reservation)).await;
            let left = deadline.saturating_sub(self.clock.monotonic());
            let answered = tokio::select! {
                biased;
                answered = tokio::time::timeout(left, &mut answer) => answered.ok(),
                () = self.stop.cancelled() => None,
            };
            let answer = match answered {
                Some(answer) => answer,
                None => {
                    // What was on its way just now is taken; after this nothing more is handed out.
                    answer.close();
                    match answer.try_recv() {
                        Ok(answer) => Ok(answer),
                        Err(_) => return Ok(ReserveView::default()),
                    }
                }
            };
            if answer.is_err() && self.is_elsewhere(&subscription).await {
                continue;
            }
            let Handout { messages, receipt } = self.accepted(&subscription, answer)?;
            // What is on its way to the thread that was asked is not nothing.
            if messages.is_empty() && wait.is_zero() && self.is_coming(&subscription, asked).await {
                continue;
            }
            return Ok(ReserveView { messages, receipt });
        }
    }

    /// Hands out notifications of a passive subscription as they come.
    pub async fn stream(&self, resource: &ResourceId, id: &SubscriptionId, query: StreamQuery) -> Done<Open> {
        let subscription = self.passive(resource, id)?;
        let quantity = self.quantity(query.quantity)? as usize;
        let lease = self.lease(query.lease)?;
        loop {
            let order = StreamOrder { quantity, lease, last_event_id: query.last_event_id.clone() };
            let (reply, answer) = oneshot::channel();
            self.ask_passive(&subscription, Ask::Stream(order, reply)).await;
            let answer = answer.await;
            if answer.is_err() && self.is_elsewhere(&subscription).await {
                continue;
            }
            return self.accepted(&subscription, answer);
        }
    }

    fn passive(&self, resource: &ResourceId, id: &SubscriptionId) -> Done<Arc<Subscription>> {
        let subscription = self.subscription(resource, id)?;
        match subscription.compiled.spec.mode {
            Mode::Passive => Ok(subscription),
            Mode::Active => Err(active().into()),
        }
    }

    fn quantity(&self, given: Option<u64>) -> Done<u32> {
        let passive = &self.config.delivery.passive;
        match given {
            Some(given) => Ok(within("quantity", given, passive.maximum_quantity)?),
            None => Ok(passive.default_quantity),
        }
    }

    fn lease(&self, given: Option<HumanDuration>) -> Done<Duration> {
        let passive = &self.config.delivery.passive;
        let lease = given.map_or(passive.default_lease, |lease| lease.0);
        Ok(lasting("lease", lease, passive.maximum_lease)?)
    }

    async fn ask_passive(&self, subscription: &Subscription, ask: Ask) {
        let number = subscription.number();
        self.journey.send_to_first(number, Command::Passive(number, ask)).await;
    }

    /// Nothing was found at once: whether lanes of the subscription, which was turned passive just now, are on their way
    /// to where it is asked. One that is held up by an attempt that hangs is not waited for long.
    async fn is_coming(&self, subscription: &Subscription, asked: Duration) -> bool {
        const PATIENCE: Duration = Duration::from_secs(1);
        let late = self.clock.monotonic() > asked + PATIENCE;
        if late || self.stop.is_cancelled() || !self.journey.is_moving(subscription.number()) {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        true
    }

    /// The thread gave no answer: whether the subscription is served by another one, or about to be.
    async fn is_elsewhere(&self, subscription: &Subscription) -> bool {
        // A subscription that is deleted has no home in a moment.
        tokio::time::sleep(Duration::from_millis(10)).await;
        !self.stop.is_cancelled() && self.journey.shards(subscription.number()).is_some()
    }

    fn accepted<T>(
        &self,
        subscription: &Subscription,
        answer: Result<Result<T, AskRefused>, oneshot::error::RecvError>,
    ) -> Done<T> {
        answer.map_err(|_| self.left(subscription))?.map_err(|refused| match refused {
            AskRefused::Gone => self.left(subscription),
            AskRefused::Active => active().into(),
            AskRefused::Standing => {
                Failure::Conflict("the subscription stands still; resume it first".into())
            }
            AskRefused::Driving => Failure::Conflict(
                "a deliver of this subscription is under way; wait until it is answered".into(),
            ),
            AskRefused::Full => Failure::TooMany(
                "as many reserves and streams wait as may (delivery.passive.waiters); try again later".into(),
            ),
        })
    }
}

fn active() -> Invalid {
    Invalid::new(
        "mode",
        "is `active`: this subscription is served without being asked; PATCH it to `passive`",
    )
}

fn within(name: &str, given: u64, most: u32) -> Result<u32, Invalid> {
    let fits = u32::try_from(given).ok().filter(|given| (1..=most).contains(given));
    fits.ok_or_else(|| Invalid::new(name, format!("must be between 1 and {most}, got {given}")))
}

/// A time that a lease may last.
pub(in crate::operations) fn lasting(
    name: &str,
    lease: Duration,
    most: Duration,
) -> Result<Duration, Invalid> {
    if lease.is_zero() {
        return Err(Invalid::new(name, "must be above 0, got 0s"));
    }
    if lease > most {
        return Err(too_long(name, lease, most));
    }
    Ok(lease)
}

pub(in crate::operations) fn too_long(name: &str, given: Duration, most: Duration) -> Invalid {
    let (given, most) = (HumanDuration(given), HumanDuration(most));
    Invalid::new(name, format!("must be at most {most}, got {given}"))
}
