//! A subscription as the journey uses it: everything that does not depend on the document, done once.

use std::sync::Arc;

use flare_model::ids::{SubscriptionId, SubscriptionNumber};
use flare_model::resource::Resource;
use flare_model::subscription::{RateLimit, Spec, Target, Way};
use flare_wire::{Beginning, Method, Name, Value};
use sha2::{Digest, Sha256};

use crate::bridges::{Bridges, Outlet};
use crate::notification::echo::Echoes;
use crate::notification::host::{Destination, HostKey};
use crate::notification::signature::Signer;
use crate::tls::Identity;

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
    /// Which log it follows.
    incarnation: u64,
    /// What the sequences count on from that the client is told.
    pub sequences_from: u64,
    /// What is not to be kept of an answer.
    pub echoes: Echoes,
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
    pub to: Destination,
}

/// As whom Flare comes to a client.
pub struct Appearance<'a> {
    /// What it calls itself.
    pub user_agent: &'a str,
    /// The certificate that it shows over TLS.
    pub identity: Option<Arc<Identity>>,
    /// The way to sinks.
    pub bridges: &'a Bridges,
}

impl<'a> Appearance<'a> {
    /// By its name alone, and to no sinks but these.
    pub fn named(user_agent: &'a str, bridges: &'a Bridges) -> Appearance<'a> {
        Appearance { user_agent, identity: None, bridges }
    }
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
        appearance: Appearance<'_>,
    ) -> Compiled {
        let requests = requests(&spec.way, &appearance);
        let shape = shape_of(&spec);
        let (sequences_from, signer) = (0, Arc::default());
        let echoes = Echoes::of(spec.way.targets().iter().map(|target| &**target));
        Compiled {
            id,
            number,
            filter_changes,
            resource,
            spec,
            requests,
            shape,
            incarnation,
            sequences_from,
            echoes,
            signer,
        }
    }

    /// The beginning of every notification's id: subscription and log. It is as quickly begun anew as copied, and a beginning
    /// that is kept would take more room than all it is made of.
    pub fn identity(&self) -> Sha256 {
        let mut identity = Sha256::new();
        identity.update(self.id.as_str().as_bytes());
        identity.update([0]);
        identity.update(self.incarnation.to_be_bytes());
        // A document that leaves, enters, and leaves again by changes of the filter does so at one sequence: what
        // is told differs by the filter it was decided under.
        if self.filter_changes > 0 {
            identity.update(self.filter_changes.to_be_bytes());
        }
        identity
    }

    /// The same, whose sequences count on from another number than 0.
    pub fn counting_from(self, sequences_from: u64) -> Compiled {
        Compiled { sequences_from, ..self }
    }

    /// The same within other limits.
    pub fn within(&self, concurrency: u32, rate_limit: Option<RateLimit>) -> Compiled {
        Compiled {
            id: self.id.clone(),
            number: self.number,
            filter_changes: self.filter_changes,
            resource: self.resource.clone(),
            spec: Spec { concurrency, rate_limit, ..self.spec.clone() },
            requests: self.requests.clone(),
            shape: self.shape,
            incarnation: self.incarnation,
            sequences_from: self.sequences_from,
            echoes: self.echoes.clone(),
            signer: self.signer.clone(),
        }
    }

    /// The same, with what signs its notifications.
    pub fn signed(self, signer: Arc<Signer>) -> Compiled {
        Compiled { signer, ..self }
    }
}

/// What requests begin with, by action; shared by actions that have nothing of their own.
fn requests(way: &Way, appearance: &Appearance<'_>) -> [Arc<RequestParts>; 3] {
    let [create, update, delete] = match way {
        Way::Http(targets) => targets,
        Way::Sink(sink) => {
            let outlet = appearance.bridges.outlet_or_none(sink);
            let parts = Arc::new(RequestParts::to_sink(outlet));
            return [parts.clone(), parts.clone(), parts];
        }
    };
    let parts = |target: &Target| Arc::new(RequestParts::new(target, appearance));
    let creates = parts(create);
    let updates = if Arc::ptr_eq(create, update) { creates.clone() } else { parts(update) };
    let deletes = if Arc::ptr_eq(update, delete) { updates.clone() } else { parts(delete) };
    [creates, updates, deletes]
}

impl RequestParts {
    /// To a sink: a message is written as a request would be, of which its headers and its body are taken.
    fn to_sink(outlet: Arc<Outlet>) -> RequestParts {
        let beginning = Beginning::unaddressed(Method::Post);
        RequestParts { beginning, own_content_type: false, to: Destination::Sink(outlet) }
    }

    fn new(target: &Target, appearance: &Appearance<'_>) -> RequestParts {
        const USER_AGENT: Name<'static> = Name::fixed("user-agent");
        let has = |name: &str| target.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
        // The user's takes the place of ours; of several the last, as one has one.
        let own = target.headers.iter().rfind(|(name, _)| name.eq_ignore_ascii_case(USER_AGENT.as_str()));
        let agent = own.map_or(appearance.user_agent, |(_, value)| value);
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
        let https = target.url.https();
        let identity = appearance.identity.clone().filter(|_| https);
        let host = HostKey { https, host: target.url.host().into(), port: target.url.port(), identity };
        RequestParts { beginning, own_content_type: has("content-type"), to: host.into() }
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
