//! A service in a region: an operation and its JSON come in, a signed `POST` goes out, and its result comes back, or why there is
//! none. Nothing is tried again here but two things that surely were not done: what a connection that had ended did not take, and
//! what was signed with credentials that were over.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use flare_wire::{Beginning, Method, Name, Request, Room, Value};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::address::Address;
use super::credentials::{Credentials, Keys};
use super::failure::{Failure, Refusal};
use super::host::{Host, Silence};
use super::signature::{self, Scope};
use crate::Now;

const DATE: Name<'static> = Name::fixed("x-amz-date");
const TARGET: Name<'static> = Name::fixed("x-amz-target");
const TOKEN: Name<'static> = Name::fixed("x-amz-security-token");
const AUTHORIZATION: Name<'static> = Name::fixed("authorization");
const CONTENT_TYPE: Name<'static> = Name::fixed("content-type");
const USER_AGENT: Name<'static> = Name::fixed("user-agent");

/// A service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// Queues.
    Sqs,
    /// Streams.
    Kinesis,
}

impl Service {
    /// As hosts and signatures have it.
    pub fn name(self) -> &'static str {
        match self {
            Service::Sqs => "sqs",
            Service::Kinesis => "kinesis",
        }
    }

    fn content_type(self) -> &'static str {
        match self {
            Service::Sqs => "application/x-amz-json-1.0",
            Service::Kinesis => "application/x-amz-json-1.1",
        }
    }

    fn target(self, operation: &str) -> String {
        match self {
            Service::Sqs => format!("AmazonSQS.{operation}"),
            Service::Kinesis => format!("Kinesis_20131202.{operation}"),
        }
    }

    /// Where it is in a region, if nobody says otherwise.
    pub fn endpoint(self, region: &str) -> String {
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        format!("https://{}.{region}.{domain}", self.name())
    }
}

/// A service in a region.
pub struct Client {
    service: Service,
    region: String,
    host: Host,
    authority: String,
    beginning: Beginning,
    keys: Arc<Keys>,
    now: Now,
    timeout: Duration,
}

impl Client {
    /// Nothing is dialled yet.
    pub fn new(
        service: Service,
        region: String,
        address: Address,
        host: Host,
        keys: Arc<Keys>,
        now: Now,
        timeout: Duration,
    ) -> Client {
        let authority = address.authority();
        let fixed = |value: &'static str| Value::new(value.as_bytes()).expect("it is visible ASCII");
        let agent = concat!("Flare/", env!("CARGO_PKG_VERSION"));
        let fields = [(CONTENT_TYPE, fixed(service.content_type())), (USER_AGENT, fixed(agent))];
        let beginning = Beginning::new(Method::Post, &authority, fields)
            .expect("an address was checked when it was read");
        Client { service, region, host, authority, beginning, keys, now, timeout }
    }

    /// Does an operation.
    pub async fn call<T: DeserializeOwned>(
        &self,
        operation: &str,
        input: &impl Serialize,
    ) -> Result<T, Failure> {
        self.call_that_waits(operation, input, Duration::ZERO).await
    }

    /// Does an operation that the service may take so long to answer, because it waits for something.
    pub async fn call_that_waits<T: DeserializeOwned>(
        &self,
        operation: &str,
        input: &impl Serialize,
        wait: Duration,
    ) -> Result<T, Failure> {
        let body = Bytes::from(serde_json::to_vec(input).expect("what is asked is JSON"));
        let mut once_more = true;
        loop {
            let credentials = self.keys.get().await.map_err(Failure::Unsent)?;
            let request = self.request(operation, &body, &credentials)?;
            match self.answer(request, wait).await {
                Err(failure)
                    if once_more
                        && failure.is_about_credentials()
                        && self.keys.refuse(&credentials).await =>
                {
                    once_more = false;
                }
                answered => return answered,
            }
        }
    }

    async fn answer<T: DeserializeOwned>(&self, request: Request, wait: Duration) -> Result<T, Failure> {
        let answer = self.host.ask(request, self.timeout, self.timeout + wait).await;
        let answer = answer.map_err(|silence| match silence {
            Silence::Unsent(why) => Failure::Unsent(why),
            Silence::Unanswered(why) => Failure::Unanswered(why),
        })?;
        if answer.status != 200 {
            return Err(Failure::Refused(Refusal::read(&answer)));
        }
        // Operations without a result may be answered by nothing at all.
        let read = match answer.excerpt.is_empty() {
            true => serde_json::from_slice(b"{}"),
            false => serde_json::from_slice(&answer.excerpt),
        };
        read.map_err(|error| {
            Failure::Unanswered(format!("{} said what is no answer: {error}", self.authority))
        })
    }

    fn request(&self, operation: &str, body: &Bytes, credentials: &Credentials) -> Result<Request, Failure> {
        let moment = signature::moment((self.now)());
        let target = self.service.target(operation);
        let token = credentials.session_token.as_deref();
        // In alphabetical order, as they are signed.
        let mut fields = vec![
            ("content-type", self.service.content_type()),
            ("host", self.authority.as_str()),
            ("x-amz-date", moment.as_str()),
        ];
        fields.extend(token.map(|token| ("x-amz-security-token", token)));
        fields.push(("x-amz-target", target.as_str()));
        let scope = Scope { moment: &moment, region: &self.region, service: self.service.name() };
        let authorization = signature::authorization(credentials, scope, &fields, body);
        let mut request = Request::new(Room::default(), &self.beginning, |path| path.push('/'));
        let signed = [(DATE, Some(moment.as_str())), (TARGET, Some(&target)), (TOKEN, token)];
        for (name, value) in signed.into_iter().chain([(AUTHORIZATION, Some(authorization.as_str()))]) {
            let Some(value) = value else { continue };
            let value = Value::new(value.as_bytes());
            request.value(
                name,
                value.map_err(|_| Failure::Unsent("a credential has a control character".into()))?,
            );
        }
        request.set_body(body.clone());
        Ok(request)
    }
}
