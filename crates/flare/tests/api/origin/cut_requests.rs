//! Clients of the API that leave in the middle of an operation: what they asked for is done or it is not, and memory and
//! store agree about it, now and after a restart.

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::support::{Api, Reply, Story, document_url, store_is_durable, until, until_true};

/// How many requests of a kind are cut.
const CUT: usize = 40;

/// Sends a whole request and leaves before it is answered.
async fn cut(story: &Story, method: &str, path: &str, body: &str) {
    let mut stream = TcpStream::connect(story.flare.addr()).await.expect("Flare listens");
    let request = format!(
        "{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await.expect("Flare reads");
}

/// Origins that keep the store busy while they live.
fn load(api: Api) -> JoinSet<()> {
    let mut origins = JoinSet::new();
    for origin in 0..4 {
        origins.spawn(async move {
            for revision in 1.. {
                api.put(&document_url(format!("load-{origin}")), &json!({"rev": revision})).await;
            }
        });
    }
    origins
}

fn at(story: &Story, client: &str, index: usize) -> Value {
    json!({"endpoint": {"url": story.receiver.url(&format!("/{client}/{index}"))}})
}

/// The id in the words of a conflict.
fn named(answer: &Value, prefix: &str) -> String {
    let detail = answer["error"]["detail"].as_str().expect("a detail");
    let id = detail.split([' ', ',']).find(|word| word.starts_with(prefix));
    id.unwrap_or_else(|| panic!("no id in: {detail}")).to_owned()
}

/// All subscriptions of the resource as they are shown.
async fn shown(story: &Story) -> Value {
    let list = story.api().get(&format!("{}?limit=1000", story.subscriptions())).await.expect(200).json();
    assert_eq!(list["pagination"]["total"], list["subscriptions"].as_array().unwrap().len());
    list["subscriptions"].clone()
}

async fn is_the_same_after_a_restart(mut story: Story) {
    if store_is_durable() {
        let (before, resources) = (shown(&story).await, story.api().get("/resources").await.json());
        story.flare.restart().await;
        assert_eq!(shown(&story).await, before);
        assert_eq!(story.api().get("/resources").await.json(), resources);
    }
}

#[tokio::test]
async fn a_subscription_whose_creator_has_left_is_there_or_it_is_not() {
    let story = Story::begin().await;
    let origins = load(story.api());
    for index in 0..CUT {
        cut(&story, "POST", &story.subscriptions(), &at(&story, "told", index).to_string()).await;
    }
    let mut there = 0;
    for index in 0..CUT {
        let again = story.api().post(&story.subscriptions(), &at(&story, "told", index)).await;
        if again.status == 409 {
            there += 1;
            let id = named(&again.json(), "sub_");
            story.api().get(&format!("{}/{id}", story.subscriptions())).await.expect(200);
        } else {
            again.expect(201);
        }
    }
    assert!(there > 0, "none was cut in the middle");
    assert_eq!(shown(&story).await.as_array().unwrap().len(), CUT);
    drop(origins);
    story.put("new", 1).await;
    until("all of them are served", || {
        let told = story.receiver.requests();
        let new = told.iter().filter(|request| request.document() == document_url("new"));
        std::future::ready((new.count() == CUT).then_some(()))
    })
    .await;
    is_the_same_after_a_restart(story).await;
}

#[tokio::test]
async fn a_patch_whose_sender_has_left_keeps_nobody_from_the_next() {
    let story = Story::begin().await;
    let path = story.subscribe_simply(json!({})).await;
    let origins = load(story.api());
    for seconds in 1..=CUT {
        let patch = json!({"delivery": {"timeout": format!("{seconds}s")}});
        cut(&story, "PATCH", &path, &patch.to_string()).await;
    }
    let patched = story.api().patch(&path, &json!({"delivery": {"concurrency": 3}})).await.expect(200).json();
    assert_eq!(patched["delivery"]["concurrency"], 3);
    for command in ["pause", "resume", "secret/rotate", "replay"] {
        for _ in 0..5 {
            cut(&story, "POST", &format!("{path}/{command}"), "").await;
        }
    }
    story.command(&path, "resume").await.expect(200);
    story.api().patch(&path, &json!({"delivery": {"concurrency": 4}})).await.expect(200);
    drop(origins);
    story.receiver.answer(|_| Reply::Status(410));
    story.put("new", 1).await;
    until_true("that is stored", || story.flare.logged("subscription disabled").is_some()).await;
    assert_eq!(story.status(&path).await["status"], "disabled");
    is_the_same_after_a_restart(story).await;
}

#[tokio::test]
async fn a_subscription_whose_deleter_has_left_is_gone_or_it_is_served() {
    let story = Story::begin().await;
    let mut paths = Vec::new();
    for index in 0..CUT {
        paths.push(story.subscribe(at(&story, "told", index)).await);
    }
    let origins = load(story.api());
    for path in &paths {
        cut(&story, "DELETE", path, "").await;
        shown(&story).await;
    }
    let mut gone = 0;
    for (index, path) in paths.iter().enumerate() {
        match story.api().delete(path).await.status.as_u16() {
            204 => {}
            404 => gone += 1,
            other => panic!("{other}"),
        }
        story.api().get(path).await.expect(404);
        story.subscribe(at(&story, "told", index)).await;
    }
    assert!(gone > 0, "none was cut in the middle");
    assert_eq!(shown(&story).await.as_array().unwrap().len(), CUT);
    drop(origins);
    is_the_same_after_a_restart(story).await;
}

#[tokio::test]
async fn a_resource_whose_creator_or_deleter_has_left_is_there_or_it_is_not() {
    let story = Story::begin().await;
    let origins = load(story.api());
    let resource = |index| json!({"endpoint": format!("http://origin.test/things-{index}/{{id}}"), "change": {"field": "rev"}});
    let document = |index| format!("/documents/http://origin.test/things-{index}/1");
    for index in 0..CUT {
        cut(&story, "POST", "/resources", &resource(index).to_string()).await;
    }
    let mut paths = Vec::new();
    for index in 0..CUT {
        let again = story.api().post("/resources", &resource(index)).await;
        let id = match again.status.as_u16() {
            409 => named(&again.json(), "res_"),
            _ => again.expect(201).json()["id"].as_str().unwrap().to_owned(),
        };
        paths.push(format!("/resources/{id}"));
        story.api().get(&paths[index]).await.expect(200);
        story.api().send("PUT", &document(index), &[], r#"{"rev":1}"#).await.expect(202);
    }
    for path in &paths {
        cut(&story, "DELETE", path, "").await;
    }
    for (index, path) in paths.iter().enumerate() {
        assert!([204, 404].contains(&story.api().delete(path).await.status.as_u16()));
        story.api().get(path).await.expect(404);
        story.api().send("PUT", &document(index), &[], r#"{"rev":1}"#).await.expect(404);
    }
    assert_eq!(story.api().get("/resources").await.json()["pagination"]["total"], 1);
    drop(origins);
    is_the_same_after_a_restart(story).await;
}

#[tokio::test]
async fn a_document_whose_origin_has_left_is_accepted_whole_or_not_at_all() {
    let story = Story::begin().await;
    let path = story.subscribe_simply(json!({})).await;
    let origins = load(story.api());
    for document in 0..CUT {
        let put = format!("/documents/{}", document_url(document));
        cut(&story, "PUT", &put, r#"{"rev":1}"#).await;
        let line = json!({"id": document_url(format!("bulk-{document}")), "document": {"rev": 1}});
        cut(&story, "POST", "/documents", &line.to_string()).await;
    }
    let mut taken = 0;
    for document in (0..CUT).map(|document| document.to_string()).chain((0..CUT).map(|n| format!("bulk-{n}")))
    {
        match story.put(&document, 1).await.as_str() {
            "unchanged" => taken += 1,
            outcome => assert_eq!(outcome, "created"),
        }
    }
    assert!(taken > 0, "none was cut in the middle");
    drop(origins);
    story.settled(&path).await;
    let requests = story.receiver.requests();
    let mut told: Vec<&str> = requests.iter().map(|request| request.document()).collect();
    told.retain(|url| !url.contains("load-"));
    told.sort_unstable();
    told.dedup();
    assert_eq!(told.len(), 2 * CUT, "clients hear of what was taken, whoever asked for it");
}
