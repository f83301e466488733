//! One host and the connections to it: a request comes in, the answer goes out, or that there is none and whether the request may
//! have arrived. Connections are driven by who asks; nothing runs beside them.

use std::sync::Arc;
use std::time::Duration;

use flare_wire::{Answer, Connection, ReadLimits, Request};
use parking_lot::Mutex;
use tokio::time::timeout;
use tokio_rustls::rustls::ClientConfig;

use super::address::Address;
use super::line::Line;

/// Idle connections that are kept: as many as a queue has receivers, and some. When full: the one that comes back is closed.
const KEPT: usize = 32;

/// More than the largest answer there is: ten megabytes of records in base64. Beyond: cut off, which is no JSON.
const LARGEST: usize = 16 << 20;

const LIMITS: ReadLimits = ReadLimits { read: LARGEST, keep: LARGEST };

/// Why there is no answer.
#[derive(Debug)]
pub enum Silence {
    /// Nothing of the request went out.
    Unsent(String),
    /// It may have arrived.
    Unanswered(String),
}

/// A host.
pub struct Host {
    address: Address,
    tls: Arc<ClientConfig>,
    /// Bound: [`KEPT`].
    idle: Mutex<Vec<Connection<Line>>>,
}

impl Host {
    /// Nothing is dialled yet.
    pub fn new(address: Address, tls: Arc<ClientConfig>) -> Host {
        Host { address, tls, idle: Mutex::default() }
    }

    /// Asks. `dialling` is how long a connection may take to be there, `answering` the answer.
    pub async fn ask(
        &self,
        request: Request,
        dialling: Duration,
        answering: Duration,
    ) -> Result<Answer, Silence> {
        let kept = self.idle.lock().pop();
        if let Some(kept) = kept {
            match self.exchange(kept, request.clone(), answering).await {
                // The service closed it while nobody used it.
                Err(Silence::Unsent(_)) => {}
                answered => return answered,
            }
        }
        let unsent = |why: &dyn std::fmt::Display| {
            Err(Silence::Unsent(format!("{} could not be reached: {why}", self.address.authority())))
        };
        match timeout(dialling, Line::dial(&self.address, &self.tls)).await {
            Ok(Ok(line)) => self.exchange(Connection::new(line), request, answering).await,
            Ok(Err(error)) => unsent(&error),
            Err(_) => unsent(&"it took too long"),
        }
    }

    async fn exchange(
        &self,
        mut connection: Connection<Line>,
        request: Request,
        answering: Duration,
    ) -> Result<Answer, Silence> {
        let before = connection.written();
        let why = match timeout(answering, connection.exchange(request, LIMITS, |_| ())).await {
            Ok(Ok((answer, reusable))) => {
                let mut idle = self.idle.lock();
                if reusable && idle.len() < KEPT {
                    idle.push(connection);
                }
                return Ok(answer);
            }
            Ok(Err(broken)) => broken.to_string(),
            Err(_) => "it did not answer in time".to_owned(),
        };
        let why = format!("{}: {why}", self.address.authority());
        match connection.written() == before {
            true => Err(Silence::Unsent(why)),
            false => Err(Silence::Unanswered(why)),
        }
    }
}
