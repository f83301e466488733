//! In: nothing. Out: every key of the configuration with its type, its default and its bounds. This is the one place
//! where a key is declared; `default.toml` explains each to the user and a test keeps the two equal.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use super::choice::{
    AuthMode, Coordinator, DatabaseTls, DoorbellEngine, Failover, LogFormat, LogLevel, LogOutput, Place,
    Store, UserAgent, WebhookUrl,
};
use super::cidr::Cidr;
use super::cluster::{Advertised, AutoDuration, ClusterName, Credential, EtcdEndpoint, KeyPrefix, NodeName};
use super::postgresql::{DatabaseUrl, SchemaName};
use super::proxy::ProxyUrl;
use super::secret::{SecretKey, Token};
use super::section::section;
use super::setting::Port;
use super::site::{HostName, WebOrigin};
use super::size::ByteSize;
use super::telemetry::{Attributes, CertificateFile, ExportHeaders, Protocol, Ratio, ServiceName};

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

const fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

const fn hours(count: u64) -> Duration {
    Duration::from_secs(count * 3600)
}

const DECADE: Duration = hours(87_600);

section! {
    /// The whole configuration. `Config::default()` is what Flare runs with when nothing is configured.
    Config {
        /// What is logged, how, and where to.
        log: LogConfig;
        /// HTTP, both ways.
        http: HttpConfig;
        /// Secrets, and what guards them.
        auth: AuthConfig;
        /// Which addresses clients may be reached at.
        network: NetworkConfig;
        /// Rules of the API's entities.
        domain: DomainConfig;
        /// How clients are served.
        delivery: DeliveryConfig;
        /// How the operator is told of subscriptions that fail, recover or are disabled.
        notify: NotifyConfig;
        /// The web interface.
        ui: UiConfig;
        /// What the plots of the web interface and `/metrics/history` are made of.
        history: HistoryConfig;
        /// A look inside the running process.
        debug: DebugConfig;
        /// The engines below.
        provider: ProviderConfig;
        /// This node among others.
        cluster: ClusterConfig;
        /// Traces and metrics for a collector.
        telemetry: TelemetryConfig;
    }
}

section! {
    /// What is logged, how, and where to.
    LogConfig {
        /// The least severe level that is logged, or directives per module.
        level: LogLevel = LogLevel::info();
        /// How a line is written.
        format: LogFormat = LogFormat::Human;
        /// Where lines go.
        output: LogOutput = LogOutput::Stderr;
    }
}

section! {
    /// HTTP, both ways.
    HttpConfig {
        /// The API.
        server: HttpServerConfig;
        /// Requests to clients.
        client: HttpClientConfig;
    }
}

section! {
    /// The API's server.
    HttpServerConfig {
        /// Where it listens.
        addr: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080));
        /// The time the body of a request may take, and for which a client may take nothing of an answer.
        timeout: Duration = secs(30), in ms(100)..=hours(1);
        /// The time until the head of the next request is complete, the wait for it included.
        header_timeout: Duration = secs(30), in ms(100)..=hours(1);
        /// How long a stop waits for clients that have not sent the whole of a request, or do not read an answer.
        grace: Duration = secs(5), in ms(0)..=hours(1);
        /// The largest JSON body or document, and the longest line of a bulk body.
        body_limit: ByteSize = ByteSize::mb(1), in ByteSize::kb(1)..=ByteSize::mb(256);
        /// The largest head of a request. The HTTP library needs a buffer of at least 8 KiB.
        header_limit: ByteSize = ByteSize::kb(16), in ByteSize::bytes(8192)..=ByteSize::mb(1);
        /// Connections open at once; further ones are told to come back later, or wait to be accepted.
        max_connections: usize = 4096, in 1..=1_000_000;
        /// Of these, how many one address may have open; 0: all of them.
        connections_per_peer: usize = 1024, in 0..=1_000_000;
        /// Connections beyond these, for questions about health and for metrics alone.
        spare_connections: usize = 16, in 0..=1024;
        /// Requests under way at once on one connection of HTTP/2.
        streams: u32 = 100, in 1..=10_000;
        /// Names by which it may be asked for while there is no authentication, besides addresses and `localhost`.
        hosts: Vec<HostName> = Vec::new();
        /// Origins whose pages may use the API from a browser, besides its own.
        cors: Vec<WebOrigin> = Vec::new();
        /// Threads of the API, 0 to choose; see [`HttpServerConfig::thread_count`].
        threads: usize = 0, in 0..=256;
        /// Whether it may listen beyond loopback without authentication.
        insecure: bool = false;
        /// Whether, and as whom, it speaks TLS.
        tls: ServerTlsConfig;
    }
}

section! {
    /// TLS of the API.
    ServerTlsConfig {
        /// The certificate of the API, with those that lead to its authority.
        certificate: CertificateFile = CertificateFile::none();
        /// Its private key.
        key: CertificateFile = CertificateFile::none();
        /// The authorities that vouch for whoever connects; without it anybody may.
        client_ca: CertificateFile = CertificateFile::none();
        /// How often the files are looked at for a change.
        reload_interval: Duration = secs(10), in ms(100)..=hours(24);
    }
}

section! {
    /// Requests to clients.
    HttpClientConfig {
        /// The time a connection may take to open.
        connect_timeout: Duration = secs(5), in ms(10)..=hours(1);
        /// How long an idle connection to a client is kept.
        idle_timeout: Duration = secs(30), in ms(100)..=hours(1);
        /// Connections open at once to one host.
        connections_per_host: usize = 64, in 1..=10_000;
        /// Connections open at once to all hosts.
        connections: usize = 1024, in 1..=1_000_000;
        /// How much of an answer is read.
        response_limit: ByteSize = ByteSize::kb(64), in ByteSize::kb(1)..=ByteSize::mb(16);
        /// How much of an answer is kept in a dead letter.
        excerpt_limit: ByteSize = ByteSize::kb(1), in ByteSize::bytes(0)..=ByteSize::kb(64);
        /// What Flare calls itself.
        user_agent: UserAgent = UserAgent::flare();
        /// The authorities that vouch for `https` clients, in place of the public ones.
        ca: CertificateFile = CertificateFile::none();
        /// The proxy by way of which clients are reached.
        proxy: ProxyUrl = ProxyUrl::none();
    }
}

section! {
    /// Secrets, and what guards them.
    AuthConfig {
        /// Whether whoever asks has to show a token.
        mode: AuthMode = AuthMode::None;
        /// The operator's own token: good for everything, in every account.
        operator_token: Token = Token::none();
        /// Wrong tokens that one address is answered each second; whoever sends more waits longer for each answer.
        guesses_per_peer: u32 = 10, in 1..=100_000;
        /// The same for all addresses together.
        guesses: u32 = 100, in 1..=1_000_000;
        /// How long what was done is kept in the audit log.
        audit_retention: Duration = hours(2160), in secs(1)..=DECADE;
        /// The key that seals secrets in the store; without it the file below holds it.
        secret_key: SecretKey = SecretKey::default();
        /// Where the key is kept and, on the first start, drawn; relative to the directory of the data.
        secret_key_file: PathBuf = PathBuf::from("secret.key");
        /// Whether to start although the key of some secrets is lost; their notifications go out unsigned.
        discard_lost_secrets: bool = false;
        /// How long a former secret signs beside the new one when a rotation does not say.
        secret_overlap: Duration = hours(24), in ms(0)..=DECADE;
        /// The longest overlap a rotation may ask for.
        maximum_secret_overlap: Duration = hours(168), in ms(0)..=DECADE;
    }
}

section! {
    /// Which addresses clients may be reached at.
    NetworkConfig {
        /// Ranges that are allowed although they are not public.
        allow: Vec<Cidr> = Vec::new();
        /// Ranges that are never reached, whatever else says.
        deny: Vec<Cidr> = Vec::new();
        /// Ports that are never reached, wherever they are.
        deny_ports: Vec<Port> = Vec::new();
    }
}

section! {
    /// Rules of the API's entities.
    DomainConfig {
        /// Lanes of a resource that does not say.
        lanes: u16 = 8, in 1..=256;
        /// The longest time to live that a producer may ask for.
        maximum_ttl: Duration = hours(168), in secs(1)..=DECADE;
        /// How often a message that cannot be read is tried before it is a dead letter.
        consumer_tries: u32 = 5, in 1..=1000;
        /// How many messages a source is asked for at once.
        consumer_batch: usize = 500, in 1..=10_000;
        /// Pages of lists.
        pagination: PaginationConfig;
        /// How long things are kept.
        retention: RetentionConfig;
    }
}

section! {
    /// Pages of lists.
    PaginationConfig {
        /// Entries of a page when the request does not say.
        default_limit: u32 = 30, in 1..=10_000;
        /// Entries of the largest page.
        maximum_limit: u32 = 100, in 1..=10_000;
    }
}

section! {
    /// How long things are kept.
    RetentionConfig {
        /// The least time that the tombstone of a deleted document stays.
        tombstones: Duration = hours(168), in secs(1)..=DECADE;
        /// How long a feed that does not move on may keep tombstones from going before it is disabled.
        feed: Duration = hours(720), in secs(1)..=DECADE;
        /// How long an older revision is kept for a client that wants every one, from when it was replaced.
        history: Duration = hours(168), in secs(1)..=DECADE;
        /// How many older revisions of a document are kept for clients that want every one.
        revisions: u32 = 10_000, in 1..=10_000_000;
        /// How many tombstones a lane may have before those go that only disabled feeds still need.
        held: u32 = 100_000, in 0..=1_000_000_000;
        /// How long a message that a consumer could not read is kept, from when it came.
        dead_letters: Duration = hours(2160), in secs(1)..=DECADE;
    }
}

section! {
    /// How clients are served.
    DeliveryConfig {
        /// Threads of delivery, 0 to choose; see [`DeliveryConfig::thread_count`].
        threads: usize = 0, in 0..=64;
        /// The least time between two records of outcomes.
        record_interval: Duration = ms(100), in ms(0)..=secs(10);
        /// The time an attempt may take when the subscription does not say.
        default_timeout: Duration = secs(15), in ms(10)..=hours(1);
        /// The longest timeout a subscription may ask for.
        maximum_timeout: Duration = secs(300), in ms(10)..=hours(1);
        /// Requests open at once when the subscription does not say.
        default_concurrency: u32 = 10, in 1..=100_000;
        /// The highest concurrency a subscription may ask for.
        maximum_concurrency: u32 = 1000, in 1..=100_000;
        /// How long nothing may have succeeded before a subscription is called failing.
        failing_after: Duration = secs(60), in ms(0)..=DECADE;
        /// How long nothing may have succeeded before a subscription is disabled; 0: it never is.
        disable_after: Duration = ms(0), in ms(0)..=DECADE;
        /// How many changes beyond its oldest open attempt a feed may run.
        window: usize = 4096, in 1..=1_048_576;
        /// Documents of one subscription that may wait for a retry.
        waiting_limit: usize = 1024, in 1..=1_048_576;
        /// Changes by which a feed's durable mark of what may have been sent grows.
        issue_block: u32 = 4096, in 1..=1_048_576;
        /// Newest changes kept in memory.
        tail_bytes: ByteSize = ByteSize::mb(32), in ByteSize::kb(64)..=ByteSize::gb(64);
        /// Changes read from the store at once.
        page_rows: usize = 256, in 1..=65_536;
        /// Memory for changes read from the store.
        page_bytes: ByteSize = ByteSize::mb(16), in ByteSize::kb(64)..=ByteSize::gb(1);
        /// Memory for documents as clients last got them, where that is kept.
        state_bytes: ByteSize = ByteSize::mb(16), in ByteSize::kb(64)..=ByteSize::gb(16);
        /// The largest document that is kept as a client last got it.
        state_limit: ByteSize = ByteSize::kb(256), in ByteSize::kb(1)..=ByteSize::mb(256);
        /// Tests of subscriptions under way at once.
        tests: usize = 16, in 1..=1024;
        /// When a host that does not answer is left alone.
        breaker: BreakerConfig;
        /// Subscriptions that get nothing until they ask.
        passive: PassiveConfig;
        /// What is kept of attempts, to look at.
        attempts: AttemptsConfig;
    }
}

section! {
    /// What is kept of attempts, to look at.
    AttemptsConfig {
        /// The last attempts of each subscription; 0 keeps none.
        quantity: usize = 100, in 0..=10_000;
        /// The oldest that is shown.
        age: Duration = hours(24), in secs(1)..=DECADE;
        /// Memory for all of them.
        bytes: ByteSize = ByteSize::mb(16), in ByteSize::kb(64)..=ByteSize::gb(64);
        /// Of so many successes one is kept whole, 0 for none.
        sample: u32 = 100, in 0..=1_000_000;
        /// How many may watch live.
        watchers: usize = 16, in 0..=1024;
    }
}

section! {
    /// When a host that does not answer is left alone.
    BreakerConfig {
        /// Attempts in a row without an answer after which it is; 0: never.
        failures: u32 = 10, in 0..=1_000_000;
        /// For how long at first.
        pause: Duration = ms(500), in ms(1)..=hours(1);
        /// For how long at most, between two probes.
        longest_pause: Duration = secs(30), in ms(1)..=hours(24);
    }
}

section! {
    /// How the operator is told of subscriptions that fail, recover or are disabled.
    NotifyConfig {
        /// Where a POST goes to; `none`: nowhere, the log has it all the same.
        url: WebhookUrl = WebhookUrl::none();
        /// The time a POST may take.
        timeout: Duration = secs(10), in ms(10)..=hours(1);
        /// How often a POST is tried.
        attempts: u32 = 6, in 1..=20;
    }
}

section! {
    /// The web interface.
    UiConfig {
        /// Whether it is served.
        enabled: bool = true;
        /// Pages that may move at once.
        listeners: usize = 64, in 0..=4096;
        /// How long a browser stays signed in.
        session: Duration = hours(12), in secs(60)..=hours(8760);
    }
}

section! {
    /// What the plots of the web interface and `/metrics/history` are made of: points of three sizes, in memory.
    HistoryConfig {
        /// How far apart the finest points are, and how often pages move.
        fine_step: Duration = secs(1), in ms(100)..=secs(60);
        /// How long those are kept.
        fine: Duration = secs(600), in secs(10)..=hours(24);
        /// How far apart the middle points are.
        medium_step: Duration = secs(10), in ms(100)..=hours(1);
        /// How long those are kept.
        medium: Duration = hours(2), in secs(10)..=hours(720);
        /// How far apart the coarsest points are.
        coarse_step: Duration = secs(120), in ms(100)..=hours(24);
        /// How long those are kept.
        coarse: Duration = hours(24), in secs(10)..=hours(8784);
    }
}

section! {
    /// A look inside the running process.
    DebugConfig {
        /// Whether profiles may be taken, at `/debug/pprof/`.
        profiling: bool = false;
        /// The longest profile.
        maximum_profile: Duration = secs(60), in secs(1)..=hours(1);
        /// Samples for each second of processor time.
        sample_rate: u32 = 99, in 1..=1000;
    }
}

section! {
    /// Subscriptions that get nothing until they ask.
    PassiveConfig {
        /// Notifications of one request when it does not say.
        default_quantity: u32 = 10, in 1..=100_000;
        /// The most notifications of one request.
        maximum_quantity: u32 = 1000, in 1..=100_000;
        /// How long a lease is when the request does not say.
        default_lease: Duration = secs(30), in ms(10)..=hours(24);
        /// The longest lease, and the longest delay of a release.
        maximum_lease: Duration = hours(1), in ms(10)..=hours(24);
        /// The longest a reservation waits, and a delivery on request begins attempts.
        maximum_wait: Duration = secs(60), in ms(10)..=hours(1);
        /// Reservations that wait, and streams, of one subscription at once.
        waiters: usize = 64, in 1..=100_000;
        /// How often a stream with nothing to tell shows that it lives.
        heartbeat: Duration = secs(15), in ms(100)..=hours(1);
    }
}

section! {
    /// The engines below.
    ProviderConfig {
        /// The engine that keeps everything.
        store: Store = Store::Embedded;
        /// Where nodes find each other.
        cluster: Coordinator = Coordinator::Auto;
        /// How they hear quickly of what others wrote.
        doorbell: DoorbellEngine = DoorbellEngine::Auto;
        /// The embedded engine.
        embedded: EmbeddedConfig;
        /// The engine over PostgreSQL.
        postgresql: PostgresqlConfig;
        /// etcd.
        etcd: EtcdConfig;
        /// RabbitMQ, for consumers and producers.
        rabbitmq: RabbitmqConfig;
        /// NATS JetStream, likewise.
        nats: NatsConfig;
        /// SQS and Kinesis, likewise.
        aws: AwsConfig;
    }
}

section! {
    /// RabbitMQ, for consumers and producers.
    RabbitmqConfig {
        /// Where the broker is, with user and password.
        url: Credential = Credential::none();
    }
}

section! {
    /// NATS JetStream, for consumers and producers.
    NatsConfig {
        /// Where the servers are.
        url: Credential = Credential::none();
        /// What is shown to them.
        credentials: Credential = Credential::none();
    }
}

section! {
    /// SQS and Kinesis, for consumers and producers.
    AwsConfig {
        /// The region.
        region: Place = Place::none();
        /// Where the services are, if not where the region has them.
        endpoint: Place = Place::none();
        /// Who asks.
        access_key_id: Credential = Credential::none();
        /// And by which key.
        secret_access_key: Credential = Credential::none();
    }
}

section! {
    /// This node among others.
    ClusterConfig {
        /// Nodes of one name in one coordinator are one cluster.
        name: ClusterName = ClusterName::flare();
        /// What this node is called.
        node: NodeName = NodeName::auto();
        /// How the others reach it.
        advertise: Advertised = Advertised::auto();
        /// What all nodes share, for requests between them.
        token: Token = Token::none();
        /// How much it takes, compared with others.
        weight: u32 = 1, in 0..=1000;
        /// Whether it may lead.
        leader: bool = true;
        /// How long it is taken for alive when nothing is heard of it.
        lease: Duration = secs(10), in secs(2)..=secs(300);
        /// How often it says that it is.
        renew: AutoDuration = AutoDuration::auto();
        /// So long before the end of its lease it stops.
        margin: AutoDuration = AutoDuration::auto();
        /// So long may what is in flight take when a unit moves.
        drain_timeout: Duration = secs(30), in Duration::ZERO..=hours(1);
        /// So long the members have to stay the same until units move for balance.
        rebalance_delay: AutoDuration = AutoDuration::auto();
        /// Units under way at once for balance.
        moves: u32 = 16, in 1..=10_000;
        /// How busy it has to be to give units back.
        give_back: Ratio = Ratio(0.95), in Ratio(0.1)..=Ratio(1.0);
    }
}

section! {
    /// etcd.
    EtcdConfig {
        /// Its members.
        endpoints: Vec<EtcdEndpoint> = vec!["http://127.0.0.1:2379".parse().expect("it is one")];
        /// Before every key.
        prefix: KeyPrefix = KeyPrefix::flare();
        /// Who asks, where it wants to know.
        user: Credential = Credential::none();
        /// And by which password.
        password: Credential = Credential::none();
        /// The authorities that vouch for members by https, in place of the public ones.
        ca: CertificateFile = CertificateFile::none();
        /// How long a member may take to answer.
        timeout: Duration = secs(2), in ms(100)..=secs(60);
    }
}

section! {
    /// The embedded engine.
    EmbeddedConfig {
        /// The directory of the data, relative to the working directory.
        path: PathBuf = PathBuf::from("./flare-data");
        /// Memory for pages of the database.
        cache: ByteSize = ByteSize::mb(32), in ByteSize::mb(1)..=ByteSize::gb(64);
        /// Writes that may wait for the disk before the origin is told to come back later.
        queue_bytes: ByteSize = ByteSize::mb(64), in ByteSize::kb(64)..=ByteSize::gb(16);
        /// The largest commit.
        commit_bytes: ByteSize = ByteSize::mb(4), in ByteSize::kb(64)..=ByteSize::gb(1);
        /// The size of the write-ahead log at which it is folded into the database.
        checkpoint_bytes: ByteSize = ByteSize::mb(256), in ByteSize::mb(1)..=ByteSize::gb(64);
    }
}

section! {
    /// The engine over PostgreSQL.
    PostgresqlConfig {
        /// Where the server is.
        url: DatabaseUrl = DatabaseUrl::none();
        /// The schema that has everything.
        schema: SchemaName = SchemaName::flare();
        /// All connections of this node.
        connections: usize = 16, in 4..=1000;
        /// Connections that commit documents.
        committers: usize = 1, in 1..=64;
        /// Writes that may wait for the server before the origin is told to come back later.
        queue_bytes: ByteSize = ByteSize::mb(64), in ByteSize::kb(64)..=ByteSize::gb(16);
        /// The largest commit.
        commit_bytes: ByteSize = ByteSize::mb(4), in ByteSize::kb(64)..=ByteSize::gb(1);
        /// How long a connection may take to open.
        connect_timeout: Duration = secs(5), in ms(100)..=secs(300);
        /// How long a statement may take.
        statement_timeout: Duration = secs(30), in ms(100)..=hours(1);
        /// When a server that vanished without a word is noticed.
        tcp_user_timeout: Duration = secs(10), in ms(100)..=hours(1);
        /// How often it is looked for what a notification would have told.
        poll_interval: Duration = secs(1), in ms(10)..=secs(60);
        /// Whether connections are encrypted.
        tls: DatabaseTls = DatabaseTls::Prefer;
        /// The authorities that vouch for the server, in place of the public ones.
        ca: CertificateFile = CertificateFile::none();
        /// What the server has lost after it failed over.
        failover: Failover = Failover::Lossless;
    }
}

section! {
    /// Traces and metrics for a collector, by OTLP.
    TelemetryConfig {
        /// Where they go to; `none`: nowhere, and nothing is collected.
        endpoint: WebhookUrl = WebhookUrl::none();
        /// How they are sent.
        protocol: Protocol = Protocol::Http;
        /// What goes with every export, keys of the collector among it.
        headers: ExportHeaders = ExportHeaders::default();
        /// The authorities that vouch for the collector, in place of the public ones.
        certificate: CertificateFile = CertificateFile::none();
        /// The time an export may take, and the last one when the node stops.
        timeout: Duration = secs(10), in ms(10)..=secs(300);
        /// What the node is called.
        service_name: ServiceName = ServiceName::flare();
        /// What else is said of it.
        resource_attributes: Attributes = Attributes::default();
        /// Traces.
        traces: TracesConfig;
        /// Metrics.
        metrics: MetricsExportConfig;
    }
}

section! {
    /// Traces, from a change to the answers of the clients.
    TracesConfig {
        /// Which part of the changes that come without a trace begins one.
        ratio: Ratio = Ratio(1.0), in Ratio(0.0)..=Ratio(1.0);
        /// Whether a change that comes with a trace follows its decision.
        parent_based: bool = true;
        /// The longest time until a span that has ended is sent.
        interval: Duration = secs(5), in ms(10)..=hours(1);
        /// Spans sent at once.
        batch: usize = 512, in 1..=65_536;
        /// Spans that may wait to be sent.
        queue: usize = 8192, in 1..=1_048_576;
    }
}

section! {
    /// Metrics for a collector.
    MetricsExportConfig {
        /// How often they are sent; 0 for never.
        interval: Duration = secs(60), in ms(0)..=hours(24);
    }
}

impl HttpServerConfig {
    /// Whether only this machine can reach the API.
    pub fn is_loopback(&self) -> bool {
        self.addr.ip().to_canonical().is_loopback()
    }

    /// The number of API threads on a machine with so many cores: as configured, or one per two cores.
    pub fn thread_count(&self, cores: usize) -> usize {
        if self.threads == 0 { (cores / 2).max(1) } else { self.threads }
    }
}

impl HistoryConfig {
    /// How many points one size may have: a plot has room for fewer, and memory for more is better spent elsewhere.
    pub const MOST_POINTS: u128 = 10_000;

    /// The sizes of points, from the finest to the coarsest: how far apart they are, and how long they are kept.
    pub fn sizes(&self) -> [(Duration, Duration); 3] {
        [(self.fine_step, self.fine), (self.medium_step, self.medium), (self.coarse_step, self.coarse)]
    }
}

impl DeliveryConfig {
    /// The number of delivery threads on a machine with so many cores: as configured, or one per core up to four.
    pub fn thread_count(&self, cores: usize) -> usize {
        if self.threads == 0 { cores.clamp(1, 4) } else { self.threads }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_chosen_by_the_cores_unless_configured() {
        let (mut server, mut delivery) = (HttpServerConfig::default(), DeliveryConfig::default());
        for (cores, api, out) in [(0, 1, 1), (1, 1, 1), (2, 1, 2), (4, 2, 4), (64, 32, 4)] {
            assert_eq!(
                (server.thread_count(cores), delivery.thread_count(cores)),
                (api, out),
                "{cores} cores"
            );
        }
        (server.threads, delivery.threads) = (3, 7);
        assert_eq!((server.thread_count(64), delivery.thread_count(64)), (3, 7));
    }

    #[test]
    fn loopback_is_recognised_in_every_spelling() {
        for (addr, loopback) in [
            ("127.0.0.1:80", true),
            ("127.9.9.9:80", true),
            ("[::1]:80", true),
            ("[::ffff:127.0.0.1]:80", true),
            ("0.0.0.0:80", false),
            ("[::]:80", false),
            ("10.0.0.1:80", false),
        ] {
            let server = HttpServerConfig { addr: addr.parse().unwrap(), ..HttpServerConfig::default() };
            assert_eq!(server.is_loopback(), loopback, "{addr}");
        }
    }
}
