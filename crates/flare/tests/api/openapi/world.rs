//! A node on which the examples of the description make sense: the resource, the documents and the subscriptions that
//! they speak of. Ids are drawn by the node, so those of the examples are replaced by the real ones.

use serde_json::{Value, json};

use super::Operation;
use crate::support::{Api, Flare, Receiver, Reply, Setup, until};

/// The ids that the examples use, as `examples.rs` of the description has them.
const RESOURCE: &str = "res_e13ezvc2975ntr7j40xm";
const SUBSCRIPTION: &str = "sub_bshh5ta4fs6w8je0ny7b";
const REPLAY: &str = "rpl_1";
const ATTEMPT: &str = "att_000500000000001f";
const CLIENT: &str = "http://127.0.0.1:9000";

/// The node, and what is on it.
pub struct World {
    pub flare: Flare,
    pub description: Value,
    /// It refuses everything, so that there are failures to look at.
    receiver: Receiver,
    pub resource: String,
    /// What the example of `createResource` was answered.
    pub created: Value,
    /// Active; its client refuses.
    pub told: String,
    /// Passive, for requests.
    pub asking: String,
    /// Passive, for a stream.
    pub streaming: String,
    /// To be deleted.
    pub doomed: String,
    pub doomed_resource: String,
    pub attempt: String,
    pub replay: String,
}

impl World {
    pub async fn begin() -> World {
        // Profiles are part of the description, and off by default.
        let setup =
            Setup::default().with("FLARE_DEBUG_PROFILING", "true").with("FLARE_DEBUG_MAXIMUM_PROFILE", "1s");
        let flare = setup.start().await;
        let api = flare.api();
        let receiver = Receiver::answering(|_| Reply::Status(500)).await;
        let description = api.get("/openapi.json").await.expect(200).json();
        let created =
            api.post("/resources", &example(&description, "createResource")).await.expect(201).json();
        let resource = created["id"].as_str().expect("an id").to_owned();
        let doomed = json!({"endpoint": "http://doomed.test/{x}", "change": {"field": "version"}});
        let doomed_resource = id(&api, "/resources", &doomed).await;
        let list = format!("/resources/{resource}/subscriptions");
        let subscription = |name: &str, mode: &str| {
            let url = receiver.url(&format!("/{name}/{{id}}"));
            json!({"endpoint": {"url": url}, "mode": mode, "delivery": {"retry": {"quantity": 1}}})
        };
        let told = id(&api, &list, &subscription("told", "active")).await;
        let asking = id(&api, &list, &subscription("asking", "passive")).await;
        let streaming = id(&api, &list, &subscription("streaming", "passive")).await;
        let doomed = id(&api, &list, &subscription("doomed", "active")).await;
        for user in 1..=3 {
            let document = json!({"version": 1, "quantity": 1, "name": "Ada"});
            api.put(&format!("http://api.company.com/users/{user}"), &document).await;
        }
        let told_path = format!("{list}/{told}");
        let attempts = format!("{told_path}/attempts");
        let attempt = until("an attempt was made", || async {
            let found = api.get(&attempts).await.expect(200).json();
            found["attempts"][0]["id"].as_str().map(ToOwned::to_owned)
        });
        let attempt = attempt.await;
        let letters = format!("{told_path}/dead-letters");
        until("all three were given up", || async {
            let found = api.get(&letters).await.expect(200).json();
            (found["pagination"]["total"] == 3).then_some(())
        })
        .await;
        let replay = json!({"document": "http://api.company.com/users/3"});
        let replay = api.post(&format!("{told_path}/replay"), &replay).await.expect(202).json();
        let replay = replay["id"].as_str().expect("an id").to_owned();
        World {
            flare,
            description,
            receiver,
            resource,
            created,
            told,
            asking,
            streaming,
            doomed,
            doomed_resource,
            attempt,
            replay,
        }
    }

    pub fn api(&self) -> Api {
        self.flare.api()
    }

    /// A text of an example, with the ids of this world.
    pub fn real(&self, operation: &Operation, text: &str) -> String {
        let subscription = match operation.id() {
            "stream" => &self.streaming,
            "deleteSubscription" => &self.doomed,
            _ if operation.says["tags"][0] == "Pull mode" => &self.asking,
            _ => &self.told,
        };
        let resource =
            if operation.id() == "deleteResource" { &self.doomed_resource } else { &self.resource };
        let client = self.receiver.url("");
        [(RESOURCE, resource), (SUBSCRIPTION, subscription), (REPLAY, &self.replay), (ATTEMPT, &self.attempt)]
            .into_iter()
            .fold(text.replace(CLIENT, client.trim_end_matches('/')), |text, (example, real)| {
                text.replace(example, real)
            })
    }
}

/// The body that an operation's example sends.
fn example(description: &Value, operation: &str) -> Value {
    let found = super::operations(description).into_iter().find(|found| found.id() == operation);
    let found = found.unwrap_or_else(|| panic!("{operation} is not described"));
    found.says["requestBody"]["content"]["application/json"]["example"].clone()
}

async fn id(api: &Api, path: &str, body: &Value) -> String {
    let created = api.post(path, body).await.expect(201).json();
    created["id"].as_str().expect("an id").to_owned()
}
