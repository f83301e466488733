//! Requests to whichever member answers. What is to be asked comes in; the answer, or the error in terms of the contracts, goes
//! out.
//!
//! A request of which nothing was sent is tried at the next member. One that may have arrived is repeated only if it changes
//! nothing: of a write whose answer was lost nobody knows, and the caller looks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use flare_provider::{ErrorKind, ProviderError, Result};
use http_body_util::Full;
use hyper::{Request, StatusCode, header};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::EtcdConfig;
use crate::answer::{Authenticated, Refused};
use crate::connection::{Broken, Connection, Endpoint, Lines, NoEndpoint};

/// Idle connections that are kept. When full: the one that comes back is closed.
const KEPT: usize = 8;

/// What a lost answer means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing changes by it: ask another member.
    Reads,
    /// It may have been done.
    Writes,
}

/// What etcd refused, and the kinds that matter here.
#[derive(Debug)]
pub enum Failure {
    /// There is no such lease.
    NoLease,
    /// Anything else, as the contract has it.
    Other(ProviderError),
}

impl Failure {
    /// For calls where a lease that is gone says nothing.
    pub fn into_error(self, operation: &'static str) -> ProviderError {
        match self {
            Failure::NoLease => ProviderError::new(ErrorKind::Fenced, operation, "the lease is over"),
            Failure::Other(error) => error,
        }
    }
}

enum Outcome {
    Answered(Bytes),
    NoLease,
    /// The token is old.
    Login,
    /// Nothing was done.
    Not(String),
    /// It may have been done.
    Perhaps(String),
    Never(String),
}

pub struct Gateway {
    config: EtcdConfig,
    endpoints: Vec<Endpoint>,
    /// The member that answered last.
    current: AtomicUsize,
    idle: Mutex<Vec<(usize, Connection)>>,
    token: Mutex<Option<Arc<str>>>,
}

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum Mistake {
    #[error("no member of etcd is named")]
    NoMember,
    #[error(transparent)]
    Member(#[from] NoEndpoint),
    #[error("members by https need authorities to trust")]
    NoAuthorities,
}

impl Gateway {
    pub fn new(config: EtcdConfig) -> std::result::Result<Gateway, Mistake> {
        let endpoints: Vec<Endpoint> = config
            .endpoints
            .iter()
            .map(|text| Endpoint::parse(text))
            .collect::<std::result::Result<_, _>>()?;
        if endpoints.is_empty() {
            return Err(Mistake::NoMember);
        }
        if config.tls.is_none() && endpoints.iter().any(Endpoint::is_secure) {
            return Err(Mistake::NoAuthorities);
        }
        let (current, idle, token) = (AtomicUsize::new(0), Mutex::default(), Mutex::default());
        Ok(Gateway { config, endpoints, current, idle, token })
    }

    pub fn config(&self) -> &EtcdConfig {
        &self.config
    }

    /// Asks, at each member once at most.
    pub async fn call<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        path: &'static str,
        body: &impl Serialize,
        effect: Effect,
    ) -> std::result::Result<T, Failure> {
        let body = Bytes::from(serde_json::to_vec(body).expect("requests are JSON"));
        let error = |kind, words: String| Failure::Other(ProviderError::new(kind, operation, words));
        let mut why = String::new();
        let mut logged_in = false;
        let mut tries = 0;
        while tries < self.endpoints.len() {
            let member = self.current.load(Ordering::Relaxed) % self.endpoints.len();
            match self.ask(member, path, &body).await {
                Outcome::Answered(answer) => {
                    return serde_json::from_slice(&answer).map_err(|wrong| {
                        error(ErrorKind::Internal, format!("etcd said what is no answer: {wrong}"))
                    });
                }
                Outcome::NoLease => return Err(Failure::NoLease),
                Outcome::Login if !logged_in => {
                    logged_in = true;
                    match self.log_in(member).await {
                        Ok(()) => continue,
                        Err(words) => why = words,
                    }
                }
                Outcome::Login => {
                    return Err(error(ErrorKind::Internal, "etcd does not take the token it gave".into()));
                }
                Outcome::Not(words) => why = words,
                Outcome::Perhaps(words) if effect == Effect::Reads => why = words,
                Outcome::Perhaps(words) => {
                    self.leave(member);
                    return Err(error(ErrorKind::Unknown, words));
                }
                Outcome::Never(words) => return Err(error(ErrorKind::Internal, words)),
            }
            self.leave(member);
            tries += 1;
        }
        Err(error(ErrorKind::Unavailable, why))
    }

    /// The next call begins with another member.
    pub fn leave(&self, member: usize) {
        let next = (member + 1) % self.endpoints.len();
        // Somebody else may have left it already.
        let _ = self.current.compare_exchange(member, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    async fn ask(&self, member: usize, path: &'static str, body: &Bytes) -> Outcome {
        let limit = self.config.timeout;
        let mut connection = match self.connection(member).await {
            Ok(connection) => connection,
            Err(words) => return Outcome::Not(words),
        };
        let answer = loop {
            let (connection_was_used, mut open) = connection;
            let request = self.request(member, path, body.clone());
            match tokio::time::timeout(limit, open.exchange(request)).await {
                Ok(Ok(answer)) => {
                    if open.is_usable() {
                        let mut idle = self.idle.lock();
                        if idle.len() < KEPT {
                            idle.push((member, open));
                        }
                    }
                    break answer;
                }
                // The member closed it while nobody used it.
                Ok(Err(Broken::Unsent(_))) if connection_was_used => match self.dial(member).await {
                    Ok(fresh) => connection = (false, fresh),
                    Err(words) => return Outcome::Not(words),
                },
                Ok(Err(Broken::Unsent(words))) => return Outcome::Not(words),
                Ok(Err(Broken::Unanswered(words))) => return Outcome::Perhaps(words),
                Err(_) => return Outcome::Perhaps(format!("{} did not answer in time", self.name(member))),
            }
        };
        read(answer)
    }

    fn name(&self, member: usize) -> String {
        self.endpoints[member].authority()
    }

    async fn connection(&self, member: usize) -> std::result::Result<(bool, Connection), String> {
        let kept = {
            let mut idle = self.idle.lock();
            idle.iter().position(|(of, _)| *of == member).map(|place| idle.swap_remove(place).1)
        };
        match kept {
            Some(kept) => Ok((true, kept)),
            None => Ok((false, self.dial(member).await?)),
        }
    }

    async fn dial(&self, member: usize) -> std::result::Result<Connection, String> {
        let dialled = Connection::dial(&self.endpoints[member], self.config.tls.as_ref());
        match tokio::time::timeout(self.config.timeout, dialled).await {
            Ok(Ok(connection)) => Ok(connection),
            Ok(Err(Broken::Unsent(words) | Broken::Unanswered(words))) => Err(words),
            Err(_) => Err(format!("{} could not be reached in time", self.name(member))),
        }
    }

    fn request(&self, member: usize, path: &'static str, body: Bytes) -> Request<Full<Bytes>> {
        let mut request = Request::post(path)
            .header(header::HOST, self.name(member))
            .header(header::CONTENT_TYPE, "application/json");
        if let Some(token) = self.token.lock().as_deref() {
            request = request.header(header::AUTHORIZATION, token);
        }
        request.body(Full::new(body)).expect("paths are ours, and a token is what a header takes")
    }

    async fn log_in(&self, member: usize) -> std::result::Result<(), String> {
        let Some(login) = &self.config.login else {
            return Err("etcd wants a user and a password, and none are configured".to_owned());
        };
        *self.token.lock() = None;
        let body = json!({"name": login.user, "password": login.password}).to_string().into();
        match self.ask(member, "/v3/auth/authenticate", &body).await {
            Outcome::Answered(answer) => {
                let read: Authenticated =
                    serde_json::from_slice(&answer).map_err(|error| error.to_string())?;
                *self.token.lock() = Some(read.token.into());
                Ok(())
            }
            Outcome::Not(words) | Outcome::Perhaps(words) | Outcome::Never(words) => Err(words),
            Outcome::NoLease | Outcome::Login => {
                Err("etcd does not take the user or the password".to_owned())
            }
        }
    }

    /// Opens a stream at whichever member gives one, and says at which.
    pub async fn stream(
        &self,
        operation: &'static str,
        path: &'static str,
        body: Bytes,
    ) -> Result<(usize, Lines)> {
        let mut why = String::new();
        for _ in 0..self.endpoints.len() {
            let member = self.current.load(Ordering::Relaxed) % self.endpoints.len();
            let opened = async {
                let connection = self.dial(member).await?;
                let request = self.request(member, path, body.clone());
                let lines = tokio::time::timeout(self.config.timeout, connection.stream(request)).await;
                match lines {
                    Ok(Ok(lines)) if lines.status == StatusCode::OK => Ok(lines),
                    Ok(Ok(lines)) => Err(format!("{} answered {}", self.name(member), lines.status)),
                    Ok(Err(Broken::Unsent(words) | Broken::Unanswered(words))) => Err(words),
                    Err(_) => Err(format!("{} did not answer in time", self.name(member))),
                }
            };
            match opened.await {
                Ok(lines) => return Ok((member, lines)),
                Err(words) => why = words,
            }
            self.leave(member);
        }
        Err(ProviderError::new(ErrorKind::Unavailable, operation, why))
    }
}

/// What an answer means for who asked.
fn read((status, body): (StatusCode, Bytes)) -> Outcome {
    if status == StatusCode::OK {
        return Outcome::Answered(body);
    }
    let refused: Refused = serde_json::from_slice(&body).unwrap_or_default();
    let words = match (refused.message.is_empty(), refused.error.is_empty()) {
        (false, _) => refused.message,
        (true, false) => refused.error,
        (true, true) => format!("etcd answered {status}"),
    };
    // The codes of gRPC.
    match refused.code {
        5 if words.contains("lease not found") => Outcome::NoLease,
        16 => Outcome::Login,
        // A user that is missing is an invalid argument to etcd.
        3 if words.contains("user name is empty") => Outcome::Login,
        // Deadline, exhausted, aborted, unavailable: some of them before anything was done, some after.
        4 | 8 | 10 | 14 => Outcome::Perhaps(words),
        0 if status.is_server_error() => Outcome::Perhaps(words),
        _ => Outcome::Never(words),
    }
}
