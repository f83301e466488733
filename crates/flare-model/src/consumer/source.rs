//! The JSON of a source. Fields come in as a user wrote them; settings that an engine reads go out, with what was left out.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bridge::{
    Concurrency, HttpPollSource, KinesisSource, NatsSource, RabbitMqSource, Source, SqsSource, StartAt,
    is_kinesis_stream, is_sqs_queue,
};
use crate::duration::HumanDuration;
use crate::ids::ResourceId;
use crate::invalid::Invalid;
use crate::schema::headers;
use crate::subscription::check_header_names;
use crate::subscription::credentials::redacted_url;
use crate::template::UrlTemplate;
use crate::time::Timestamp;

/// What kinds of sources there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SourceKind")]
pub enum SourceType {
    /// A queue of SQS.
    #[serde(rename = "aws.sqs")]
    Sqs,
    /// A stream of Kinesis.
    #[serde(rename = "aws.kinesis")]
    Kinesis,
    /// A queue of RabbitMQ.
    #[serde(rename = "rabbitmq")]
    RabbitMq,
    /// A stream of NATS JetStream.
    #[serde(rename = "nats")]
    Nats,
    /// An endpoint that is asked again and again.
    #[serde(rename = "http.poll")]
    HttpPoll,
}

impl SourceType {
    /// The word for it, as users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            SourceType::Sqs => "aws.sqs",
            SourceType::Kinesis => "aws.kinesis",
            SourceType::RabbitMq => "rabbitmq",
            SourceType::Nats => "nats",
            SourceType::HttpPoll => "http.poll",
        }
    }

    /// The fields that one of this type may have.
    fn fields(self) -> &'static [&'static str] {
        match self {
            SourceType::Sqs => &["queue", "concurrency", "visibility", "create"],
            SourceType::Kinesis => &["stream", "start", "create"],
            SourceType::RabbitMq => &["queue", "prefetch", "exchange", "routingKey", "create"],
            SourceType::Nats => &["stream", "subject", "durable", "start"],
            SourceType::HttpPoll => &["url", "interval", "headers", "items", "next", "deletes", "timeout"],
        }
    }
}

/// How many receivers a queue has: `auto`, or a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "ReceiversDraft")]
pub enum ConcurrencyDraft {
    /// So many.
    Number(#[schemars(range(min = 1, max = 64))] u32),
    /// `auto`.
    Word(#[schemars(regex(pattern = "^auto$"))] String),
}

/// Where messages come from. Which fields there are goes by the type; all others are refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "ConsumerSourceDraft")]
pub struct SourceDraft {
    /// Which kind of source.
    pub r#type: SourceType,
    /// `aws.sqs`, `rabbitmq`: the name of the queue (for SQS also its url).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub queue: Option<String>,
    /// `aws.sqs`: `auto`, or how many receivers of ten messages each ask at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<ConcurrencyDraft>,
    /// `aws.sqs`: how long a message is hidden from others; prolonged while it is being stored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility: Option<HumanDuration>,
    /// `aws.sqs`, `aws.kinesis`, `rabbitmq`: whether `flare fixup` makes what is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub create: Option<bool>,
    /// `aws.kinesis`, `nats`: the name of the stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub stream: Option<String>,
    /// `aws.kinesis`, `nats`: where it begins: `latest`, `beginning` or a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// `rabbitmq`: how many messages may be given out and not acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub prefetch: Option<u32>,
    /// `rabbitmq`: the exchange that the queue is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub exchange: Option<String>,
    /// `rabbitmq`: by which key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 255))]
    pub routing_key: Option<String>,
    /// `nats`: only these of the stream's subjects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub subject: Option<String>,
    /// `nats`: the name of the durable consumer; `flare-con_…` where none is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub durable: Option<String>,
    /// `http.poll`: the url that is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "uri"))]
    pub url: Option<String>,
    /// `http.poll`: how often.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<HumanDuration>,
    /// `http.poll`: sent with every request.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "headers")]
    pub headers: BTreeMap<String, Vec<String>>,
    /// `http.poll`: the dotted path to the list of documents; without one the body is one document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub items: Option<String>,
    /// `http.poll`: the dotted path to the url of the next page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub next: Option<String>,
    /// `http.poll`: whether a document that is missing from a whole list was deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deletes: Option<bool>,
    /// `http.poll`: how long an answer is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<HumanDuration>,
}

/// How many receivers a queue may have.
const MOST_RECEIVERS: u32 = 64;

const INTERVAL: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(15);
const VISIBILITY: Duration = Duration::from_secs(30);
const HOUR: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(86_400);

impl SourceDraft {
    /// One with nothing but its type.
    pub fn of(r#type: SourceType) -> SourceDraft {
        SourceDraft {
            r#type,
            queue: None,
            concurrency: None,
            visibility: None,
            create: None,
            stream: None,
            start: None,
            prefetch: None,
            exchange: None,
            routing_key: None,
            subject: None,
            durable: None,
            url: None,
            interval: None,
            headers: BTreeMap::new(),
            items: None,
            next: None,
            deletes: None,
            timeout: None,
        }
    }

    /// Where it is, in a word, without credentials.
    pub fn place(&self) -> Cow<'_, str> {
        match &self.url {
            Some(url) => redacted_url(url),
            None => self.queue.as_deref().or(self.stream.as_deref()).unwrap_or_default().into(),
        }
    }

    /// Checks it, and completes it with what was left out.
    pub(super) fn check(&self, consumer: &ResourceId) -> Result<(Source, SourceDraft), Invalid> {
        for field in self.given() {
            if !self.r#type.fields().contains(&field) {
                let known = self.r#type.fields().join(", ");
                let kind = self.r#type.as_str();
                let problem = format!("a source of type {kind} has no such field; it has {known}");
                return Err(Invalid::new(format!("source.{field}"), problem));
            }
        }
        let mut whole = self.clone();
        let source = match self.r#type {
            SourceType::Sqs => Source::Sqs(self.sqs(&mut whole)?),
            SourceType::Kinesis => Source::Kinesis(self.kinesis(&mut whole)?),
            SourceType::RabbitMq => Source::RabbitMq(self.rabbitmq(&mut whole)?),
            SourceType::Nats => Source::Nats(self.nats(&mut whole, consumer)?),
            SourceType::HttpPoll => Source::HttpPoll(self.http_poll(&mut whole)?),
        };
        Ok((source, whole))
    }

    /// The names of the fields that were given.
    fn given(&self) -> impl Iterator<Item = &'static str> {
        [
            ("queue", self.queue.is_some()),
            ("concurrency", self.concurrency.is_some()),
            ("visibility", self.visibility.is_some()),
            ("create", self.create.is_some()),
            ("stream", self.stream.is_some()),
            ("start", self.start.is_some()),
            ("prefetch", self.prefetch.is_some()),
            ("exchange", self.exchange.is_some()),
            ("routingKey", self.routing_key.is_some()),
            ("subject", self.subject.is_some()),
            ("durable", self.durable.is_some()),
            ("url", self.url.is_some()),
            ("interval", self.interval.is_some()),
            ("headers", !self.headers.is_empty()),
            ("items", self.items.is_some()),
            ("next", self.next.is_some()),
            ("deletes", self.deletes.is_some()),
            ("timeout", self.timeout.is_some()),
        ]
        .into_iter()
        .filter_map(|(name, given)| given.then_some(name))
    }

    fn sqs(&self, whole: &mut SourceDraft) -> Result<SqsSource, Invalid> {
        let concurrency = match &self.concurrency {
            None => Concurrency::Auto,
            Some(ConcurrencyDraft::Word(word)) if word == "auto" => Concurrency::Auto,
            Some(ConcurrencyDraft::Number(number)) if (1..=MOST_RECEIVERS).contains(number) => {
                Concurrency::Fixed(*number)
            }
            Some(_) => {
                let problem = format!("must be \"auto\" or a number from 1 to {MOST_RECEIVERS}");
                return Err(Invalid::new("source.concurrency", problem));
            }
        };
        whole.concurrency = Some(match concurrency {
            Concurrency::Auto => ConcurrencyDraft::Word("auto".to_owned()),
            Concurrency::Fixed(number) => ConcurrencyDraft::Number(number),
        });
        let bounds = (Duration::from_secs(1), 12 * HOUR);
        let visibility = within("source.visibility", self.visibility, VISIBILITY, bounds)?;
        whole.visibility = Some(visibility);
        let create = *whole.create.get_or_insert(false);
        let queue = name("source.queue", &self.queue, 1024)?;
        is_sqs_queue(&queue).map_err(|problem| Invalid::new("source.queue", problem))?;
        Ok(SqsSource { queue, concurrency, visibility, create })
    }

    fn kinesis(&self, whole: &mut SourceDraft) -> Result<KinesisSource, Invalid> {
        let create = *whole.create.get_or_insert(false);
        let start = self.starts(whole)?;
        let stream = name("source.stream", &self.stream, 128)?;
        is_kinesis_stream(&stream).map_err(|problem| Invalid::new("source.stream", problem))?;
        Ok(KinesisSource { stream, start, create })
    }

    fn rabbitmq(&self, whole: &mut SourceDraft) -> Result<RabbitMqSource, Invalid> {
        let prefetch = *whole.prefetch.get_or_insert(100);
        let prefetch = u16::try_from(prefetch).ok().filter(|prefetch| *prefetch > 0);
        let prefetch = prefetch
            .ok_or_else(|| Invalid::new("source.prefetch", format!("must be between 1 and {}", u16::MAX)))?;
        if self.routing_key.is_some() && self.exchange.is_none() {
            let problem = "needs source.exchange: a queue is bound to an exchange by a routing key";
            return Err(Invalid::new("source.routingKey", problem));
        }
        let exchange = self.exchange.as_ref().map(|_| name("source.exchange", &self.exchange, 255));
        let create = *whole.create.get_or_insert(false);
        Ok(RabbitMqSource {
            queue: name("source.queue", &self.queue, 255)?,
            prefetch,
            exchange: exchange.transpose()?,
            routing_key: self.routing_key.clone(),
            create,
        })
    }

    fn nats(&self, whole: &mut SourceDraft, consumer: &ResourceId) -> Result<NatsSource, Invalid> {
        let subject = self.subject.as_ref().map(|_| name("source.subject", &self.subject, 1024));
        let durable = match &self.durable {
            None => format!("flare-{consumer}"),
            Some(_) => name("source.durable", &self.durable, 255)?,
        };
        let stream = name("source.stream", &self.stream, 255)?;
        for (field, name) in [("source.stream", &stream), ("source.durable", &durable)] {
            if name.contains(|c: char| c.is_whitespace() || ".*>/\\".contains(c)) {
                let problem = "must have no blanks, dots, slashes, * or >, by the rules of JetStream";
                return Err(Invalid::new(field, problem));
            }
        }
        whole.durable = Some(durable.clone());
        let start = self.starts(whole)?;
        Ok(NatsSource { stream, subject: subject.transpose()?, durable: Some(durable), start })
    }

    fn http_poll(&self, whole: &mut SourceDraft) -> Result<HttpPollSource, Invalid> {
        let url = name("source.url", &self.url, 8192)?;
        let url = url.trim();
        UrlTemplate::parse(url, &[""; 0]).map_err(|error| Invalid::new("source.url", error))?;
        whole.url = Some(url.to_owned());
        check_header_names("source.headers", &self.headers)?;
        let interval = within("source.interval", self.interval, INTERVAL, (Duration::from_secs(1), 7 * DAY))?;
        let timeout =
            within("source.timeout", self.timeout, TIMEOUT, (Duration::from_millis(100), HOUR / 12))?;
        for (field, path) in [("source.items", &self.items), ("source.next", &self.next)] {
            if path.as_ref().is_some_and(|path| path.split('.').any(str::is_empty)) {
                return Err(Invalid::new(field, "must be a path such as \"data.orders\""));
            }
        }
        for (field, given) in [("next", self.next.is_some()), ("deletes", self.deletes == Some(true))] {
            if given && self.items.is_none() {
                let problem = "needs source.items: a body that is one document has no list";
                return Err(Invalid::new(format!("source.{field}"), problem));
            }
        }
        whole.interval = Some(interval);
        whole.timeout = Some(timeout);
        Ok(HttpPollSource {
            url: url.to_owned(),
            interval,
            headers: self.headers.clone(),
            items: self.items.clone(),
            next: self.next.clone(),
            deletes: *whole.deletes.get_or_insert(false),
            timeout,
        })
    }

    fn starts(&self, whole: &mut SourceDraft) -> Result<StartAt, Invalid> {
        match whole.start.get_or_insert_with(|| "latest".to_owned()).as_str() {
            "latest" => Ok(StartAt::Latest),
            "beginning" => Ok(StartAt::Beginning),
            time => time.parse::<Timestamp>().map(StartAt::At).map_err(|_| {
                Invalid::new("source.start", "must be \"latest\", \"beginning\" or a time as RFC 3339")
            }),
        }
    }
}

/// A name that has to be there.
fn name(field: &str, given: &Option<String>, most: usize) -> Result<String, Invalid> {
    let Some(name) = given.as_deref().filter(|name| !name.trim().is_empty()) else {
        return Err(Invalid::new(field, "is required"));
    };
    if name.len() > most || name.contains(char::is_control) {
        return Err(Invalid::new(
            field,
            format!("must have {most} bytes at most, and no control characters"),
        ));
    }
    Ok(name.to_owned())
}

fn within(
    field: &str,
    given: Option<HumanDuration>,
    default: Duration,
    (least, most): (Duration, Duration),
) -> Result<HumanDuration, Invalid> {
    let given = given.map_or(default, |given| given.0);
    if given < least || given > most {
        let problem = format!("must be between {} and {}", HumanDuration(least), HumanDuration(most));
        return Err(Invalid::new(field, problem));
    }
    Ok(HumanDuration(given))
}
