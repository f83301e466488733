//! The ways in and out that are not HTTP: the configuration comes in, the engines of this build go out by the types that users write.
//! What is not in the build is refused by name, with the feature to build; what is not configured, with the key to set.

use std::sync::Arc;

use flare_core::bridges::Bridges;
use flare_core::config::Config;
use flare_core::door::Clock;

#[cfg(any(feature = "rabbitmq", feature = "nats", feature = "aws"))]
use flare_provider::bridge::Bridge;

/// The types of each engine.
const RABBITMQ: &[&str] = &["rabbitmq"];
const NATS: &[&str] = &["nats"];
const AWS: &[&str] = &["aws.sqs", "aws.kinesis"];

/// How long a broker may take to answer what it can answer at once.
#[cfg(any(feature = "rabbitmq", feature = "nats", feature = "aws"))]
const TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// The engines of this build. None of them connects before something is asked of it.
pub fn bridges(config: &Config, clock: &Arc<dyn Clock>) -> anyhow::Result<Arc<Bridges>> {
    let bridges = rabbitmq(Bridges::default(), config, clock)?;
    let bridges = nats(bridges, config)?;
    Ok(Arc::new(aws(bridges, config, clock)?))
}

#[cfg(not(feature = "rabbitmq"))]
fn rabbitmq(bridges: Bridges, _: &Config, _: &Arc<dyn Clock>) -> anyhow::Result<Bridges> {
    Ok(bridges.without(RABBITMQ, "rabbitmq"))
}

#[cfg(feature = "rabbitmq")]
fn rabbitmq(bridges: Bridges, config: &Config, clock: &Arc<dyn Clock>) -> anyhow::Result<Bridges> {
    let Some(url) = config.provider.rabbitmq.url.reveal() else {
        return Ok(bridges.unset(RABBITMQ, "provider.rabbitmq.url"));
    };
    let clock = clock.clone();
    let options = flare_rabbitmq::Options {
        url: url.to_owned(),
        ca: None,
        owner: config.cluster.name.as_str().to_owned(),
        timeout: TIMEOUT,
        now: Arc::new(move || clock.now()),
    };
    let engine =
        flare_rabbitmq::RabbitMq::new(options).map_err(|error| anyhow::anyhow!("RabbitMQ: {error}"))?;
    let engine: Arc<dyn Bridge> = Arc::new(engine);
    Ok(bridges.with(RABBITMQ, &engine))
}

#[cfg(not(feature = "nats"))]
fn nats(bridges: Bridges, _: &Config) -> anyhow::Result<Bridges> {
    Ok(bridges.without(NATS, "nats"))
}

#[cfg(feature = "nats")]
fn nats(bridges: Bridges, config: &Config) -> anyhow::Result<Bridges> {
    let Some(url) = config.provider.nats.url.reveal() else {
        return Ok(bridges.unset(NATS, "provider.nats.url"));
    };
    let options = flare_nats::Options {
        url: url.to_owned(),
        credentials: config.provider.nats.credentials.reveal().map(Into::into),
        ca: None,
        owner: config.cluster.name.as_str().to_owned(),
        timeout: TIMEOUT,
        lease: std::time::Duration::from_secs(30),
    };
    let engine = flare_nats::Nats::new(options).map_err(|error| anyhow::anyhow!("NATS: {error}"))?;
    let engine: Arc<dyn Bridge> = Arc::new(engine);
    Ok(bridges.with(NATS, &engine))
}

#[cfg(not(feature = "aws"))]
fn aws(bridges: Bridges, _: &Config, _: &Arc<dyn Clock>) -> anyhow::Result<Bridges> {
    Ok(bridges.without(AWS, "aws"))
}

#[cfg(feature = "aws")]
fn aws(bridges: Bridges, config: &Config, clock: &Arc<dyn Clock>) -> anyhow::Result<Bridges> {
    let (settings, clock) = (&config.provider.aws, clock.clone());
    let options = flare_aws::AwsConfig {
        region: settings.region.get().map(str::to_owned),
        endpoint: settings.endpoint.get().map(str::to_owned),
        access_key_id: settings.access_key_id.reveal().map(str::to_owned),
        secret_access_key: settings.secret_access_key.reveal().map(str::to_owned),
        owner: config.cluster.name.as_str().to_owned(),
        tls: flare_core::tls::client_trusting(&config.http.client.ca, "http.client.ca")?,
        timeout: TIMEOUT,
        environment: flare_aws::Environment::of_process(),
        now: Arc::new(move || clock.now()),
    };
    let engine = flare_aws::Aws::new(options).map_err(|error| anyhow::anyhow!("{error}"))?;
    let engine: Arc<dyn Bridge> = Arc::new(engine);
    Ok(bridges.with(AWS, &engine))
}
