//! A subscription as the journey uses it: everything that does not depend on the document, done once.

use std::sync::Arc;

use flare_model::ids::{SubscriptionId, SubscriptionNumber};
use flare_model::resource::Resource;
use flare_model::subscription::{Spec, Target};
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
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
    /// The method.
    pub method: Method,
    /// Host, user agent and the user's own headers. Pairs rather than a map: they are put into a map for each
    /// request, and a map of its own for each subscription takes ten times as much room.
    pub headers: Box<[(HeaderName, HeaderValue)]>,
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
        user_agent: &HeaderValue,
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
    fn new(target: &Target, user_agent: &HeaderValue) -> RequestParts {
        let mut headers = HeaderMap::new();
        let authority =
            HeaderValue::from_str(target.url.authority()).expect("an authority was checked to be ASCII");
        headers.insert(HOST, authority);
        headers.insert(USER_AGENT, user_agent.clone());
        for (name, value) in &target.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("names were checked");
            let value = HeaderValue::from_str(value).expect("values were checked");
            if name == USER_AGENT {
                headers.insert(name, value);
            } else {
                headers.append(name, value);
            }
        }
        let own_content_type = headers.contains_key(CONTENT_TYPE);
        let host =
            HostKey { https: target.url.https(), host: target.url.host().into(), port: target.url.port() };
        let method = Method::from_bytes(target.method.as_bytes()).expect("methods were checked");
        let pairs = headers.iter().map(|(name, value)| (name.clone(), value.clone()));
        RequestParts { method, headers: pairs.collect(), own_content_type, host }
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
