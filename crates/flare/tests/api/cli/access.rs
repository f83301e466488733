//! `flare token` and `flare account`, against a running node.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::support::{Flare, OPERATOR, Setup};

async fn run(flare: &Flare, token: &str, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_flare"));
    command.args(words).args(["--url", &format!("http://{}", flare.addr())]);
    command.current_dir(std::env::temp_dir()).env_clear().env("FLARE_TOKEN", token).stdin(Stdio::null());
    tokio::task::spawn_blocking(move || command.output().expect("the binary runs")).await.unwrap()
}

#[track_caller]
fn insist(output: &Output, code: i32) -> String {
    let out = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(output.status.code(), Some(code), "{out}{}", String::from_utf8_lossy(&output.stderr));
    out
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_and_accounts_are_made_listed_and_ended_from_a_shell() {
    let flare = Setup::default().guarded().start().await;
    let made = run(&flare, OPERATOR, &["account", "create", "acme", "--resources", "3"]).await;
    assert!(insist(&made, 0).contains("acme"));
    let listed = insist(&run(&flare, OPERATOR, &["account", "list"]).await, 0);
    assert!(listed.contains("acme") && listed.contains("0/3"), "{listed}");

    let words =
        ["token", "create", "--name", "shop", "--scopes", "read,origin", "--ttl", "1h", "--account", "acme"];
    let token = insist(&run(&flare, OPERATOR, &words).await, 0).trim().to_owned();
    assert!(token.starts_with("flare_") && !token.contains(char::is_whitespace), "{token}");
    flare.api().with(&token).get("/resources").await.expect(200);
    insist(&run(&flare, &token, &["status"]).await, 0);
    let refused = run(&flare, &token, &["token", "create", "--name", "x", "--scopes", "read"]).await;
    assert!(refused.status.code() != Some(0));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("`admin`"));
    insist(&run(&flare, "", &["status"]).await, 4);

    let words = ["token", "list", "--account", "acme", "--output", "json"];
    let listed: Value = serde_json::from_str(&insist(&run(&flare, OPERATOR, &words).await, 0)).unwrap();
    let id = listed["tokens"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(listed["tokens"][0]["name"], "shop");
    insist(&run(&flare, OPERATOR, &["token", "revoke", &id, "--account", "acme"]).await, 0);
    flare.api().with(&token).get("/resources").await.refused(401, &[]);
    insist(&run(&flare, OPERATOR, &["account", "delete", "acme"]).await, 0);
    let again = run(&flare, OPERATOR, &["account", "delete", "acme"]).await;
    assert!(again.status.code() != Some(0) && String::from_utf8_lossy(&again.stderr).contains("acme"));
}
