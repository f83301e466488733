//! The doorbell: a subject on which every node rings and listens. NATS keeps nothing for those who are away, so a listener whose connection was made
//! anew says that it missed some.

use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, Subscriber};
use async_trait::async_trait;
use flare_model::bridge::wording::escape;
use flare_provider::bridge::BridgeError;
use flare_provider::coding::rings::{read, write};
use flare_provider::{Doorbell, ErrorKind, Heard, Listener, ProviderError, Result, Ring};
use futures_util::{FutureExt as _, StreamExt as _};

use crate::Nats;
use crate::link::{Identity, identity};

/// How often a listener looks whether its connection is the one that it had.
const LOOK: Duration = Duration::from_secs(2);

/// Messages that are put together into one word. When full: the rest is the next word.
const TOGETHER: usize = 1024;

fn unavailable(operation: &'static str) -> impl Fn(BridgeError) -> ProviderError {
    move |error| ProviderError::new(ErrorKind::Unavailable, operation, error.detail)
}

impl Nats {
    fn bell(&self) -> String {
        let mut subject = "flare.".to_owned();
        escape(&self.owner, &mut subject);
        subject.push_str(".bell");
        subject
    }
}

#[async_trait]
impl Doorbell for Nats {
    async fn ring(&self, rings: &[Ring]) -> Result<()> {
        let operation = "doorbell.ring";
        let client = self.link.client().await.map_err(unavailable(operation))?;
        let rung = client.publish(self.bell(), write(rings).into()).await;
        rung.map_err(|error| ProviderError::new(ErrorKind::Unavailable, operation, error.to_string()))
    }

    async fn listen(&self) -> Result<Box<dyn Listener>> {
        let operation = "doorbell.listen";
        let client = self.link.client().await.map_err(unavailable(operation))?;
        let failed = |error: String| ProviderError::new(ErrorKind::Unavailable, operation, error);
        let subscriber = client.subscribe(self.bell()).await.map_err(|error| failed(error.to_string()))?;
        // What is rung from here on is heard: the server takes things in their order, and has answered something that was said later.
        let inbox = client.new_inbox();
        let mut own = client.subscribe(inbox.clone()).await.map_err(|error| failed(error.to_string()))?;
        client.publish(inbox, "".into()).await.map_err(|error| failed(error.to_string()))?;
        if !matches!(tokio::time::timeout(self.link.timeout(), own.next()).await, Ok(Some(_))) {
            return Err(failed("NATS does not answer".to_owned()));
        }
        let identity = identity(&client);
        Ok(Box::new(Listening { client, subscriber, identity }))
    }
}

struct Listening {
    client: Client,
    /// What was rung and not heard. Bound: the client's; when full it drops messages, and the next look comes anyway.
    subscriber: Subscriber,
    identity: Identity,
}

#[async_trait]
impl Listener for Listening {
    async fn next(&mut self) -> Result<Heard> {
        let operation = "doorbell.next";
        loop {
            let came = tokio::time::timeout(LOOK, self.subscriber.next()).await;
            if self.client.connection_state() != State::Connected {
                let words = "the connection to NATS broke, and is made again";
                return Err(ProviderError::new(ErrorKind::Unavailable, operation, words));
            }
            let now = identity(&self.client);
            if now != self.identity {
                self.identity = now;
                return Ok(Heard::Missed);
            }
            match came {
                Ok(Some(first)) => {
                    let mut rings = read(&first.payload);
                    for _ in 1..TOGETHER {
                        let Some(Some(more)) = self.subscriber.next().now_or_never() else { break };
                        rings = rings.zip(read(&more.payload)).map(|(rings, more)| [rings, more].concat());
                    }
                    return Ok(rings.map_or(Heard::Missed, Heard::Rings));
                }
                Ok(None) => {
                    return Err(ProviderError::new(
                        ErrorKind::Unavailable,
                        operation,
                        "the subscription ended",
                    ));
                }
                Err(_) => {}
            }
        }
    }
}
