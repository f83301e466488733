//! Settle: what a client says of its leases, checked, and asked of the delivery thread.

use std::time::Duration;

use flare_model::duration::HumanDuration;
use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::invalid::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::passive::{lasting, too_long};
use crate::journey::Command;
use crate::journey::passive::{Ask, LeaseEnd, LeaseOutcome, LeaseOutcomes, LeaseWord, Settlement, Token};
use crate::operations::App;
use crate::operations::Done;

/// The body of `POST .../settle`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SettleDraft {
    /// The leases, and what is said of each.
    messages: Vec<SettleLine>,
}

/// What is said of a lease.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "SettleLineDraft")]
struct SettleLine {
    /// The token of a message.
    lease: String,
    /// What became of it.
    status: SettleStatus,
    /// When it may be handed out again; with `release` only.
    delay: Option<HumanDuration>,
    /// How long the lease lasts from now on, at least; with `extend`, and there it has to be.
    #[serde(rename = "for")]
    lasts: Option<HumanDuration>,
}

/// How a lease ends, or that it does not yet.
#[derive(Clone, Copy, Deserialize, PartialEq, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum SettleStatus {
    /// The client has it.
    Success,
    /// The client does not want it.
    Discard,
    /// It goes back, and counts as an attempt.
    Release,
    /// The client needs more time: the lease lasts longer, and its token stays good.
    Extend,
}

/// The answer of `POST .../settle`.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Settled")]
pub struct SettleView {
    /// One for each lease, in order.
    messages: Vec<SettledView>,
}

/// What became of a lease.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "SettledLease")]
struct SettledView {
    /// The token.
    lease: String,
    /// `settled`; `extended`: it lasts longer; `expired`: the lease had ended; `unknown`: it never was one.
    #[schemars(extend("enum" = ["settled", "extended", "expired", "unknown"]))]
    outcome: &'static str,
}

impl SettleLine {
    /// What it says; `at` is where it stands, and `longest` how long a lease may be.
    fn word(&self, at: usize, longest: Duration) -> Result<LeaseWord, Invalid> {
        let field = |name: &str| format!("messages[{at}].{name}");
        if self.delay.is_some() && self.status != SettleStatus::Release {
            return Err(Invalid::new(field("delay"), "goes with the status `release` only"));
        }
        if self.lasts.is_some() && self.status != SettleStatus::Extend {
            return Err(Invalid::new(field("for"), "goes with the status `extend` only"));
        }
        Ok(match self.status {
            SettleStatus::Success => LeaseWord::End(LeaseEnd::Success),
            SettleStatus::Discard => LeaseWord::End(LeaseEnd::Discard),
            SettleStatus::Release => {
                let delay = self.delay.map_or(Duration::ZERO, |delay| delay.0);
                if delay > longest {
                    return Err(too_long(&field("delay"), delay, longest));
                }
                LeaseWord::End(LeaseEnd::Release(delay))
            }
            SettleStatus::Extend => {
                let says = "has to be there with the status `extend`: how long the lease lasts from now on";
                let lasts = self.lasts.ok_or_else(|| Invalid::new(field("for"), says))?;
                LeaseWord::Extend(lasting(&field("for"), lasts.0, longest)?)
            }
        })
    }
}

impl App {
    /// Ends or extends leases. They may be of a time when the subscription was passive and it is not now.
    pub async fn settle(
        &self,
        resource: &ResourceId,
        id: &SubscriptionId,
        draft: SettleDraft,
    ) -> Done<SettleView> {
        let subscription = self.subscription(resource, id)?;
        let passive = &self.config.delivery.passive;
        if draft.messages.len() > passive.maximum_quantity as usize {
            let most = passive.maximum_quantity;
            let problem =
                format!("has more than {most} (delivery.passive.maximum-quantity); settle in several");
            return Err(Invalid::new("messages", problem).into());
        }
        let mut settlements = Vec::with_capacity(draft.messages.len());
        for (at, line) in draft.messages.iter().enumerate() {
            let word = line.word(at, passive.maximum_lease)?;
            settlements.push(Settlement { token: Token::parse(&line.lease), word });
        }
        let number = subscription.number();
        let ask = |reply| Command::Passive(number, Ask::Settle(settlements.clone(), reply));
        let LeaseOutcomes(outcomes) =
            self.journey.ask(number, ask).await.ok_or_else(|| self.left(&subscription))?;
        let outcome = |outcome| match outcome {
            LeaseOutcome::Settled => "settled",
            LeaseOutcome::Extended => "extended",
            LeaseOutcome::Expired => "expired",
            LeaseOutcome::Unknown => "unknown",
        };
        let messages = draft.messages.into_iter().zip(outcomes);
        let messages = messages.map(|(line, what)| SettledView { lease: line.lease, outcome: outcome(what) });
        Ok(SettleView { messages: messages.collect() })
    }
}
