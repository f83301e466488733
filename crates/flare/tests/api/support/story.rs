//! The usual beginning of a story: Flare, a resource, and a client that is told about its documents.

use std::time::Instant;

use serde_json::{Value, json};

use super::{Answer, Api, Flare, LOOK, PATIENCE, Receiver, Setup};

/// A resource whose revision is the integer `rev`.
pub fn minimal_resource() -> Value {
    json!({"endpoint": "http://origin.test/users/{id}", "change": {"field": "rev"}})
}

/// The url of a document of [`minimal_resource`].
pub fn document_url(id: impl std::fmt::Display) -> String {
    format!("http://origin.test/users/{id}")
}

/// Flare, a resource, and a client.
pub struct Story {
    pub flare: Flare,
    pub receiver: Receiver,
    pub resource: String,
}

impl Story {
    /// With a client that answers 200.
    pub async fn begin() -> Story {
        Story::with(Setup::default(), Receiver::start().await).await
    }

    /// With this client.
    pub async fn told(receiver: Receiver) -> Story {
        Story::with(Setup::default(), receiver).await
    }

    /// With a Flare of one's own.
    pub async fn with(setup: Setup, receiver: Receiver) -> Story {
        let flare = setup.start().await;
        let created = flare.api().post("/resources", &minimal_resource()).await.expect(201).json();
        let resource = created["id"].as_str().expect("an id").to_owned();
        Story { flare, receiver, resource }
    }

    pub fn api(&self) -> Api {
        self.flare.api()
    }

    /// The path of the resource's subscriptions.
    pub fn subscriptions(&self) -> String {
        format!("/resources/{}/subscriptions", self.resource)
    }

    /// Creates a subscription and returns its path.
    pub async fn subscribe(&self, body: Value) -> String {
        let created = self.api().post(&self.subscriptions(), &body).await.expect(201);
        created.header("location").to_owned()
    }

    /// Subscribes the client at `/told`, with these settings of delivery.
    pub async fn subscribe_simply(&self, delivery: Value) -> String {
        self.subscribe(json!({"endpoint": {"url": self.receiver.url("/told")}, "delivery": delivery})).await
    }

    /// PUTs a document and returns the outcome.
    pub async fn put(&self, id: impl std::fmt::Display, revision: i64) -> String {
        self.api().put(&document_url(id), &json!({"rev": revision})).await
    }

    /// DELETEs a document and returns the outcome.
    pub async fn remove(&self, id: impl std::fmt::Display) -> String {
        self.api().remove(&document_url(id)).await
    }

    /// The status of a subscription.
    pub async fn status(&self, subscription: &str) -> Value {
        self.api().get(&format!("{subscription}/status")).await.expect(200).json()
    }

    /// Waits until the status of a subscription is as wanted.
    pub async fn until_status(
        &self,
        subscription: &str,
        what: &str,
        holds: impl Fn(&Value) -> bool,
    ) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let status = self.status(subscription).await;
            if holds(&status) {
                return status;
            }
            assert!(Instant::now() < deadline, "waited in vain until {what}: {status}");
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Waits until a client has everything that can be sent to it now.
    pub async fn settled(&self, subscription: &str) -> Value {
        self.until_status(subscription, "nothing lags", |status| {
            let feed = &status["feed"];
            // What expressions leave out does not lag, and is looked at all the same.
            let read = status["filter"].is_null() || feed["cursor"] == feed["head"];
            feed["lagging"] == 0 && feed["inFlight"] == 0 && read
        })
        .await
    }

    /// Sends a command such as `pause` to a subscription.
    pub async fn command(&self, subscription: &str, command: &str) -> Answer {
        self.api().send("POST", &format!("{subscription}/{command}"), &[], "").await
    }
}
