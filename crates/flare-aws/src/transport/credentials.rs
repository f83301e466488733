//! Whom requests are signed for. In: the configuration and the environment. Out: credentials that are good for a while.
//!
//! In this order: those of the configuration, those of the environment, those that a container is given, those of the role of an
//! instance. Profiles, single sign-on and web identity are absent: each needs files or services of its own, and whoever has them
//! has a program that turns them into one of the four.

use std::sync::Arc;
use std::time::Duration;

use flare_model::time::Timestamp;
use tokio::sync::Mutex;
use tokio_rustls::rustls::ClientConfig;

use super::environment::Environment;
use super::fetching;
use crate::Now;

/// Credentials that end are fetched anew this long before.
const BEFORE_THE_END: Duration = Duration::from_secs(300);

/// Credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// Who.
    pub access_key_id: String,
    /// What only they know.
    pub secret_access_key: String,
    /// What goes with credentials that end.
    pub session_token: Option<String>,
    /// When they end.
    pub expires: Option<Timestamp>,
}

impl std::fmt::Debug for Credentials {
    /// Without what is secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "credentials of {}", self.access_key_id)
    }
}

/// Where credentials come from.
pub struct Keys {
    origin: Origin,
    now: Now,
    /// Those that were fetched last. Held while others are fetched: whoever comes meanwhile waits for those.
    fetched: Mutex<Option<Arc<Credentials>>>,
}

enum Origin {
    Fixed(Arc<Credentials>),
    Fetched { environment: Box<Environment>, tls: Arc<ClientConfig> },
}

impl Keys {
    /// Those of the configuration where it has some, or else whatever the environment leads to.
    pub fn new(
        configured: Option<Credentials>,
        environment: &Environment,
        tls: Arc<ClientConfig>,
        now: Now,
    ) -> Keys {
        let from_environment = || {
            Some(Credentials {
                access_key_id: environment.access_key_id.clone()?,
                secret_access_key: environment.secret_access_key.clone()?,
                session_token: environment.session_token.clone(),
                expires: None,
            })
        };
        let origin = match configured.or_else(from_environment) {
            Some(fixed) => Origin::Fixed(Arc::new(fixed)),
            None => Origin::Fetched { environment: Box::new(environment.clone()), tls },
        };
        Keys { origin, now, fetched: Mutex::default() }
    }

    /// Credentials that are good now, or why there are none.
    pub async fn get(&self) -> Result<Arc<Credentials>, String> {
        let (environment, tls) = match &self.origin {
            Origin::Fixed(fixed) => return Ok(fixed.clone()),
            Origin::Fetched { environment, tls } => (environment, tls),
        };
        let mut fetched = self.fetched.lock().await;
        let now = (self.now)();
        let good_until = |until: Timestamp| {
            fetched.as_ref().filter(|known| known.expires.is_none_or(|end| end > until)).cloned()
        };
        if let Some(known) = good_until(now.saturating_add(BEFORE_THE_END)) {
            return Ok(known);
        }
        match fetching::fetch(environment, tls).await {
            Ok(fresh) => Ok(fetched.insert(Arc::new(fresh)).clone()),
            // Those that are about to end are still good.
            Err(why) => good_until(now).ok_or(why),
        }
    }

    /// The service does not take these: fetch others, if they were fetched. Says whether there is a point in trying again.
    pub async fn refuse(&self, refused: &Arc<Credentials>) -> bool {
        if matches!(self.origin, Origin::Fixed(_)) {
            return false;
        }
        let mut fetched = self.fetched.lock().await;
        if fetched.as_ref().is_some_and(|known| Arc::ptr_eq(known, refused)) {
            *fetched = None;
        }
        true
    }
}

#[cfg(test)]
#[path = "credentials_tests.rs"]
mod tests;
