//! SQS and Kinesis: settings of consumers and producers come in, sources and sinks of `flare_provider::bridge` go out, which speak
//! the services' JSON protocol over HTTPS, signed.
//!
//! A queue has one partition, goes by acknowledgements and counts deliveries; the shards of a stream are partitions that go by
//! positions. What Flare made carries two tags: `flare-owner`, the name of the cluster, and `flare-consumer`, the consumer.
//!
//! | folder | has |
//! |---|---|
//! | `transport/` | requests: credentials, signatures, connections, what an answer means |
//! | `sqs/`, `kinesis/` | a source, its stream, a sink, and what `flare fixup` and `flare cleanup` do |

mod kinesis;
mod mark;
mod sqs;
mod transport;
mod upkeep;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use flare_model::bridge;
use flare_model::time::Timestamp;
use flare_provider::bridge::{Bridge, BridgeError, BridgeErrorKind, BridgeResult, Sink, Source};
use flare_provider::upkeep::Change;
use parking_lot::Mutex;
use tokio_rustls::rustls::ClientConfig;

pub use transport::environment::Environment;

use mark::Mark;
use transport::address::Address;
use transport::credentials::{Credentials, Keys};
use transport::host::Host;
use transport::{Client, Service};

/// What tells the time: signatures have it in them.
pub type Now = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Where the services are, and who asks.
#[derive(Clone)]
pub struct AwsConfig {
    /// The region; the environment's where there is none.
    pub region: Option<String>,
    /// Where both services are, instead of where they are in the region: for emulators.
    pub endpoint: Option<String>,
    /// Who asks; the environment says where neither this nor the next is given.
    pub access_key_id: Option<String>,
    /// Their secret.
    pub secret_access_key: Option<String>,
    /// The name of the cluster: what Flare makes carries it.
    pub owner: String,
    /// Whom to trust.
    pub tls: Arc<ClientConfig>,
    /// How long a connection or an answer may take.
    pub timeout: Duration,
    /// What the vendor's programs read from the environment.
    pub environment: Environment,
    /// What tells the time.
    pub now: Now,
}

/// The region that is signed for where an endpoint is given and no region: emulators take any.
const ANY_REGION: &str = "us-east-1";

/// SQS and Kinesis, as one process has them. Clones share connections and credentials.
#[derive(Clone)]
pub struct Aws {
    shared: Arc<Shared>,
}

struct Shared {
    config: AwsConfig,
    keys: Arc<Keys>,
    mark: Mark,
    /// By service and region. Bound: the regions that queues are named in.
    clients: Mutex<BTreeMap<(Service, String), Arc<Client>>>,
}

impl Aws {
    /// Reads the configuration; nothing is asked yet. `Refused`: it contradicts itself.
    pub fn new(config: AwsConfig) -> BridgeResult<Aws> {
        let configured = match (&config.access_key_id, &config.secret_access_key) {
            (Some(id), Some(secret)) => Some(Credentials {
                access_key_id: id.clone(),
                secret_access_key: secret.clone(),
                session_token: None,
                expires: None,
            }),
            (None, None) => None,
            (Some(_), None) => {
                return Err(refused("provider.aws.access-key-id needs provider.aws.secret-access-key"));
            }
            (None, Some(_)) => {
                return Err(refused("provider.aws.secret-access-key needs provider.aws.access-key-id"));
            }
        };
        if let Some(endpoint) = &config.endpoint {
            let read = Address::parse(endpoint);
            read.map_err(|mistake| refused(&format!("provider.aws.endpoint: {mistake}")))?;
        }
        let keys =
            Arc::new(Keys::new(configured, &config.environment, config.tls.clone(), config.now.clone()));
        let mark = Mark::new(&config.owner);
        Ok(Aws { shared: Arc::new(Shared { config, keys, mark, clients: Mutex::default() }) })
    }

    /// The client of a service, in its own region or in this one.
    fn client(&self, service: Service, region: Option<&str>) -> BridgeResult<Arc<Client>> {
        let config = &self.shared.config;
        let from_environment = match service {
            Service::Sqs => &config.environment.sqs_endpoint,
            Service::Kinesis => &config.environment.kinesis_endpoint,
        };
        let endpoint = config.endpoint.as_ref().or(from_environment.as_ref());
        let known = config.region.as_deref().or(config.environment.region.as_deref());
        let region = match (region, known, endpoint) {
            (Some(region), _, None) => region,
            (_, Some(region), _) => region,
            (_, None, Some(_)) => ANY_REGION,
            (None, None, None) => {
                return Err(refused("there is no region: set provider.aws.region, or AWS_REGION"));
            }
        };
        let mut clients = self.shared.clients.lock();
        if let Some(client) = clients.get(&(service, region.to_owned())) {
            return Ok(client.clone());
        }
        let endpoint = endpoint.cloned().unwrap_or_else(|| service.endpoint(region));
        let (address, _) = Address::parse(&endpoint).map_err(|mistake| refused(&mistake.to_string()))?;
        let host = Host::new(address.clone(), config.tls.clone());
        let (keys, now) = (self.shared.keys.clone(), config.now.clone());
        let client = Client::new(service, region.to_owned(), address, host, keys, now, config.timeout);
        Ok(clients.entry((service, region.to_owned())).or_insert(Arc::new(client)).clone())
    }

    /// Whether anybody has said where the services are. Where nobody has, nothing was made there.
    fn is_placed(&self) -> bool {
        let (config, environment) = (&self.shared.config, &self.shared.config.environment);
        let said = [
            &config.region,
            &config.endpoint,
            &environment.region,
            &environment.sqs_endpoint,
            &environment.kinesis_endpoint,
        ];
        said.into_iter().any(Option::is_some)
    }

    fn queue(&self, named: &str) -> BridgeResult<sqs::Queue> {
        let client = self.client(Service::Sqs, sqs::region_of(named))?;
        Ok(sqs::Queue::new(client, named))
    }

    fn stream(&self, name: &str) -> BridgeResult<kinesis::Named> {
        Ok(kinesis::Named::new(self.client(Service::Kinesis, None)?, name))
    }
}

fn refused(why: &str) -> BridgeError {
    BridgeError::new(BridgeErrorKind::Refused, why)
}

#[async_trait]
impl Bridge for Aws {
    fn source(&self, _consumer: &str, settings: &bridge::Source) -> BridgeResult<Arc<dyn Source>> {
        let now = self.shared.config.now.clone();
        match settings {
            bridge::Source::Sqs(settings) => {
                Ok(Arc::new(sqs::SqsSource::new(self.queue(&settings.queue)?, settings, now)))
            }
            bridge::Source::Kinesis(settings) => {
                Ok(Arc::new(kinesis::KinesisSource::new(self.stream(&settings.stream)?, settings.start, now)))
            }
            other => Err(refused(&format!("aws has no source of the type {}", other.kind()))),
        }
    }

    fn sink(&self, settings: &bridge::Target) -> BridgeResult<Arc<dyn Sink>> {
        match settings {
            bridge::Target::Sqs(settings) => Ok(Arc::new(sqs::SqsSink::new(self.queue(&settings.queue)?))),
            bridge::Target::Kinesis(settings) => {
                Ok(Arc::new(kinesis::KinesisSink::new(self.stream(&settings.stream)?)))
            }
            other => Err(refused(&format!("aws has no target of the type {}", other.kind()))),
        }
    }

    async fn missing(&self, sources: &[(String, bridge::Source)]) -> BridgeResult<Vec<Change>> {
        upkeep::missing(self, sources).await
    }

    async fn left_over(&self, sources: &[(String, bridge::Source)]) -> BridgeResult<Vec<Change>> {
        upkeep::left_over(self, sources).await
    }

    async fn apply(&self, sources: &[(String, bridge::Source)], change: &Change) -> BridgeResult<()> {
        upkeep::apply(self, sources, change).await
    }
}
