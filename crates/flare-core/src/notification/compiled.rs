//! A subscription as the journey uses it: everything that does not depend on the document, done once.

use std::sync::Arc;

use flare_model::ids::{SubscriptionId, SubscriptionNumber};
use flare_model::resource::Resource;
use flare_model::subscription::{Spec, Target};
use flare_wire::{Beginning, Method, Name, Value};
use sha2::{Digest, Sha256};

use crate::notification::host::HostKey;
use crate::notification::signature::Signer;

/// A subscription, ready to deliver.
pub struct Compiled {
    /// As users know it.
    pub id: SubscriptionId,
    /// As the ledger counts it.
    pub number: SubscriptionNumber,
    /// How often its filter was changed.
    pub filter_changes: u64,
    /// What it follows.
    pub resource: Arc<Resource>,
    /// Its settings.
    pub spec: Spec,
    /// By action.
    pub requests: [Arc<RequestParts>; 3],
    /// Subscriptions with the same number share bodies.
    pub shape: u64,
    /// The beginning of every notification's id: subscription and log.
    pub identity: Sha256,
    /// What signs every notification.
    pub signer: Arc<Signer>,
}

/// What every request of one action begins with.
pub struct RequestParts {
    /// Method, host, user agent and the user's own headers, as they are written.
    pub beginning: Beginning,
    /// Whether the user's headers have a content type.
    pub own_content_type: bool,
    /// Where it goes.
    pub host: HostKey,
}

impl Compiled {
    /// Compiles a checked subscription.
    pub fn new(
        id: SubscriptionId,
        number: SubscriptionNumber,
        filter_changes: u64,
        resource: Arc<Resource>,
        spec: Spec,
        incarnation: u64,
        user_agent: &str,
    ) -> Compiled {
        let [create, update, delete] = &spec.targets;
        let parts = |target: &Target| Arc::new(RequestParts::new(target, user_agent));
        let creates = parts(create);
        let updates = if Arc::ptr_eq(create, update) { creates.clone() } else { parts(update) };
        let deletes = if Arc::ptr_eq(update, delete) { updates.clone() } else { parts(delete) };
        let requests = [creates, updates, deletes];
        let mut identity = Sha256::new();
        identity.update(id.as_str().as_bytes());
        identity.update([0]);
        identity.update(incarnation.to_be_bytes());
        // A document that leaves, enters, and leaves again by changes of the filter does so at one sequence: what
        // is told differs by the filter it was decided under.
        if filter_changes > 0 {
            identity.update(filter_changes.to_be_bytes());
        }
        let shape = shape_of(&spec);
        let signer = Arc::default();
        Compiled { id, number, filter_changes, resource, spec, requests, shape, identity, signer }
    }

    /// The same, with what signs its notifications.
    pub fn signed(self, signer: Arc<Signer>) -> Compiled {
        Compiled { signer, ..self }
    }
}

impl RequestParts {
    fn new(target: &Target, user_agent: &str) -> RequestParts {
        const USER_AGENT: Name<'static> = Name::fixed("user-agent");
        let has = |name: &str| target.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        // The user's takes the place of ours; of several the last, as one has one.
        let own = target.headers.iter().rfind(|(name, _)| name.eq_ignore_ascii_case(USER_AGENT.as_str()));
        let agent = own.map_or(user_agent, |(_, value)| value);
        let others =
            target.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case(USER_AGENT.as_str()));
        let others =
            others.map(|(name, value)| (Name::new(name).expect("names were checked"), value.as_str()));
        let fields = std::iter::once((USER_AGENT, agent)).chain(others);
        let fields =
            fields.map(|(name, value)| (name, Value::new(value.as_bytes()).expect("values were checked")));
        let method = Method::named(target.method).expect("methods were checked");
        let beginning = Beginning::new(method, target.url.authority(), fields)
            .expect("an authority was checked to be ASCII");
        let host =
            HostKey { https: target.url.https(), host: target.url.host().into(), port: target.url.port() };
        RequestParts { beginning, own_content_type: has("content-type"), host }
    }
}

/// A number for all that a body depends on beside the document and the action.
fn shape_of(spec: &Spec) -> u64 {
    let mut hash = Sha256::new();
    hash.update([u8::from(spec.content.envelope), u8::from(spec.content.document)]);
    hash.update(format!("{:?}", spec.data));
    let digest = hash.finalize();
    u64::from_be_bytes(digest[..8].try_into().expect("a digest has 32 bytes"))
}
