//! Endpoints that hand out credentials, played by a listener on loopback.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_rustls::rustls::RootCertStore;
use tokio_rustls::rustls::crypto::ring::default_provider;

use super::*;

fn trusting_nobody() -> Arc<ClientConfig> {
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("ring speaks TLS")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    Arc::new(config)
}

/// Answers every request with the text that `answer` has for its head, or with 404.
async fn endpoint(
    tasks: &mut JoinSet<()>,
    answer: impl Fn(&str) -> Option<String> + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("its address"));
    tasks.spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read_u8().await {
                    Ok(byte) => head.push(byte),
                    Err(_) => break,
                }
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let (status, body) = match answer(&head) {
                Some(body) => ("200 OK", body),
                None => ("404 Not Found", String::new()),
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            // Whoever asked may be gone.
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    url
}

fn written(id: i64, expires: &str) -> String {
    format!(r#"{{"AccessKeyId":"id{id}","SecretAccessKey":"s","Token":"t","Expiration":"{expires}"}}"#)
}

fn keys(environment: &Environment, now: &Arc<AtomicI64>) -> Keys {
    let now = now.clone();
    Keys::new(
        None,
        environment,
        trusting_nobody(),
        Arc::new(move || Timestamp::from_millis(now.load(Ordering::Relaxed))),
    )
}

#[tokio::test]
async fn an_instance_hands_out_those_of_its_role_and_new_ones_before_they_end() {
    let mut tasks = JoinSet::new();
    let count = AtomicI64::new(0);
    let url = endpoint(&mut tasks, move |head| {
        let with_token = head.contains("x-aws-ec2-metadata-token: secret");
        if head.starts_with("PUT /latest/api/token") {
            Some("secret".to_owned())
        } else if head.starts_with("GET /latest/meta-data/iam/security-credentials/ ") && with_token {
            Some("role".to_owned())
        } else if head.starts_with("GET /latest/meta-data/iam/security-credentials/role ") && with_token {
            let id = count.fetch_add(1, Ordering::Relaxed);
            Some(written(id, if id == 0 { "1970-01-01T01:00:00Z" } else { "1970-01-01T02:00:00Z" }))
        } else {
            None
        }
    })
    .await;
    let now = Arc::new(AtomicI64::new(0));
    let environment = Environment { instance: Some(url), ..Environment::default() };
    let keys = keys(&environment, &now);
    let first = keys.get().await.expect("credentials");
    assert_eq!((first.access_key_id.as_str(), first.session_token.as_deref()), ("id0", Some("t")));
    now.store(54 * 60_000, Ordering::Relaxed);
    assert_eq!(keys.get().await.expect("credentials").access_key_id, "id0");
    now.store(56 * 60_000, Ordering::Relaxed);
    let second = keys.get().await.expect("credentials");
    assert_eq!(second.access_key_id, "id1", "five minutes before they end there are others");
    assert!(keys.refuse(&second).await);
    assert_eq!(keys.get().await.expect("credentials").access_key_id, "id2");
}

#[tokio::test]
async fn credentials_that_are_about_to_end_do_while_there_are_no_others() {
    let mut tasks = JoinSet::new();
    let count = AtomicI64::new(0);
    let url = endpoint(&mut tasks, move |head| {
        let first = head.starts_with("GET /v2 ") && count.fetch_add(1, Ordering::Relaxed) == 0;
        first.then(|| written(0, "1970-01-01T01:00:00Z"))
    })
    .await;
    let now = Arc::new(AtomicI64::new(0));
    let environment = Environment { container: Some(format!("{url}/v2")), ..Environment::default() };
    let keys = keys(&environment, &now);
    assert!(keys.get().await.is_ok());
    now.store(58 * 60_000, Ordering::Relaxed);
    assert_eq!(keys.get().await.expect("still good").access_key_id, "id0");
    now.store(61 * 60_000, Ordering::Relaxed);
    let why = keys.get().await.expect_err("they are over");
    assert!(why.contains("404") && why.contains("provider.aws.access-key-id"), "{why}");
}

#[tokio::test]
async fn a_container_says_who_it_is_by_the_token_in_the_file() {
    let mut tasks = JoinSet::new();
    let url = endpoint(&mut tasks, |head| {
        head.contains("authorization: from the file").then(|| written(7, "1970-01-01T01:00:00Z"))
    })
    .await;
    let file = std::env::temp_dir().join(format!("flare-aws-token-{}", std::process::id()));
    std::fs::write(&file, "from the file\n").expect("a file");
    let environment = Environment {
        container: Some(url),
        container_token_file: Some(file.display().to_string()),
        container_token: Some("from the variable".to_owned()),
        ..Environment::default()
    };
    let got = keys(&environment, &Arc::default()).get().await;
    std::fs::remove_file(&file).expect("it was there");
    assert_eq!(got.expect("credentials").access_key_id, "id7");
}

#[tokio::test]
async fn credentials_are_not_taken_from_somebody_elses_machine_without_tls() {
    let environment =
        Environment { container: Some("http://192.0.2.1/x".to_owned()), ..Environment::default() };
    let why = keys(&environment, &Arc::default()).get().await.expect_err("refused");
    assert!(why.contains("neither https"), "{why}");
}

#[test]
fn secrets_do_not_print() {
    let credentials = Credentials {
        access_key_id: "id".into(),
        secret_access_key: "hidden".into(),
        session_token: Some("hidden".into()),
        expires: None,
    };
    assert!(!format!("{credentials:?}").contains("hidden"));
}
