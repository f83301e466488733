//! Secrets of subscriptions: drawn or given, sealed, rotated, and opened for whoever signs.

use std::sync::Arc;

use flare_model::duration::HumanDuration;
use flare_model::ids::{ResourceId, SubscriptionId};
use flare_model::invalid::Invalid;
use flare_model::subscription::{Secret, Stored, StoredSecret, live, rotated};
use flare_model::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::notification::signature::Signer;
use crate::operations::App;
use crate::operations::Done;
use crate::vault::Closed;

/// The body of `POST .../secret/rotate`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct RotationDraft {
    /// The new secret; one is drawn where none is given.
    pub secret: Option<Secret>,
    /// How long the former signs too; `0s`: not at all.
    pub overlap: Option<HumanDuration>,
}

/// What a rotation answers: the only time that the new secret is shown.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rotation {
    /// The new secret.
    pub secret: String,
    /// Since when it signs.
    pub created_at: Timestamp,
    /// Until when the former secret signs too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub former_ends_at: Option<Timestamp>,
}

impl App {
    /// The secret of a new subscription, given or drawn, and what is stored of it.
    pub(in crate::operations) fn first_secret(
        &self,
        id: &SubscriptionId,
        given: Option<Secret>,
        now: Timestamp,
    ) -> (Secret, StoredSecret) {
        let secret = given.unwrap_or_else(|| self.draw());
        let sealed = self.vault.seal(id, &secret);
        (secret, StoredSecret { sealed, created_at: now, ends_at: None })
    }

    /// Gives a subscription another secret. Both sign until the overlap is over.
    pub async fn rotate_secret(
        &self,
        resource: &ResourceId,
        id: &SubscriptionId,
        draft: RotationDraft,
    ) -> Done<Rotation> {
        let longest = self.config.auth.maximum_secret_overlap;
        let overlap = draft.overlap.map_or(self.config.auth.secret_overlap, |overlap| overlap.0);
        if overlap > longest {
            let (most, got) = (HumanDuration(longest), HumanDuration(overlap));
            let problem = format!("must be at most {most} (auth.maximum-secret-overlap), got {got}");
            return Err(Invalid::new("overlap", problem).into());
        }
        let _catalog = self.hold_catalog().await?;
        let current = self.subscription(resource, id)?;
        let now = self.clock.now();
        // One whose key is lost cannot sign, so it has no successor to wait for.
        let known: Vec<(StoredSecret, Secret)> = live(&current.stored.secrets, now)
            .filter_map(|stored| Some((stored.clone(), self.vault.unseal(id, &stored.sealed).ok()?)))
            .collect();
        let secrets: Vec<StoredSecret> = known.iter().map(|(stored, _)| stored.clone()).collect();
        let given = draft.secret.as_ref();
        match known.iter().find(|(_, secret)| Some(secret) == given) {
            // A rotation that is asked for again, because its answer was lost, changes nothing.
            Some((stored, secret)) if stored.ends_at.is_none() => {
                return Ok(Rotation::of(secret, &secrets, now));
            }
            Some(_) => {
                let problem = "is the one that is being replaced; give another, or none to have one drawn";
                return Err(Invalid::new("secret", problem).into());
            }
            None => {}
        }
        let secret = draft.secret.unwrap_or_else(|| self.draw());
        let secrets = rotated(&secrets, self.vault.seal(id, &secret), overlap, now);
        let rotation = Rotation::of(&secret, &secrets, now);
        let changed =
            self.keep(&current, |stored| (stored.secrets, stored.updated_at) = (secrets, now)).await?;
        self.journey.replace(&changed.compiled).await;
        tracing::info!(subscription.id = %id, "secret rotated");
        Ok(rotation)
    }

    fn draw(&self) -> Secret {
        Secret::drawn(self.entropy.bytes())
    }

    /// Opens what signs for a subscription.
    pub(in crate::operations) fn signer(
        &self,
        id: &SubscriptionId,
        stored: &Stored,
    ) -> Result<Arc<Signer>, Closed> {
        let mut signer = Signer::default();
        // One that has ended by a clock that is ahead stays silent, and signs again when the clock is right.
        let late = self.steps.late(&*self.clock, self.config.auth.maximum_secret_overlap);
        for secret in live(&stored.secrets, late) {
            match self.vault.unseal(id, &secret.sealed) {
                Ok(opened) => signer.add(&opened, secret.ends_at),
                Err(error) if self.config.auth.discard_lost_secrets => {
                    tracing::warn!(
                        subscription.id = %id, error = %error,
                        "a secret cannot be opened and does not sign any more; rotate it"
                    );
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Arc::new(signer))
    }
}

impl Rotation {
    fn of(secret: &Secret, secrets: &[StoredSecret], now: Timestamp) -> Rotation {
        let created_at = secrets.iter().find(|s| s.ends_at.is_none()).map_or(now, |s| s.created_at);
        let former_ends_at = live(secrets, now).find_map(|secret| secret.ends_at);
        Rotation { secret: secret.reveal(), created_at, former_ends_at }
    }
}
