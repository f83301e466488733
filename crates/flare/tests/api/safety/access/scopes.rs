//! Every operation as nobody and as each scope, by what the contract says of them and not by what the table does.

use serde_json::json;

use super::{ask, operations, token};
use crate::support::{Setup, document_url};

/// Whether a scope is good for an operation, as product.md has it.
fn is_good_for(scope: &str, method: &str, path: &str) -> bool {
    let operators = ["/accounts", "/debug/", "/cluster/"].iter().any(|begin| path.starts_with(begin));
    // How the cluster is may be asked by whoever reads, of the account that is there from the beginning.
    let operators = operators && path != "/cluster/health";
    let documents = path == "/documents" || path.starts_with("/documents/");
    let below = path.contains("/subscriptions") || path == "/retry/simulate" || path == "/filters/test";
    let resources =
        path == "/resources" || path == "/resources/{rid}" || path.split('/').nth(1) == Some("consumers");
    match scope {
        _ if operators => false,
        "read" => method == "GET",
        "origin" => documents,
        "subscribe" => below,
        "admin" => resources || path.starts_with("/tokens") || path == "/audit",
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn every_operation_asks_who_it_is_and_what_they_may() {
    let flare = Setup::default().guarded().with("FLARE_AUTH_GUESSES_PER_PEER", "100000").start().await;
    let (nobody, operator) = (flare.api(), flare.operator());
    let description = operator.get("/openapi.json").await.expect(200).json();
    let mut holders = vec![];
    for scope in ["read", "origin", "subscribe", "admin"] {
        holders.push((scope, token(operator, json!({"name": scope, "scopes": [scope]})).await));
    }
    let draft = json!({"name": "mistyped", "scopes": ["read"]});
    let wrong = token(operator, draft).await.replace("flare_", "flare-");
    for (method, path) in operations(&description) {
        let open = path == "/healthz" || path == "/readyz";
        let real = match path.strip_prefix("/documents/") {
            Some(_) => format!("/documents/{}", document_url(1)),
            None => path.replace(['{', '}'], ""),
        };
        let name = format!("{method} {path}");
        for stranger in [nobody, nobody.with(&wrong), nobody.with("Bearer")] {
            let answer = ask(stranger, &method, &real, "{}").await.expect("it does not go on");
            match open {
                true => assert_eq!(answer.status, 200, "{name}"),
                false => assert_eq!(answer.refused(401, &[]).header("www-authenticate"), "Bearer", "{name}"),
            }
        }
        for (scope, token) in &holders {
            let answer = ask(nobody.with(token), &method, &real, "{}").await;
            let status = answer.as_ref().map_or(200, |answer| answer.status.as_u16());
            if open || is_good_for(scope, &method, &path) {
                assert!(![401, 403].contains(&status), "{name} as {scope}: {status}");
            } else {
                let said = answer.expect("it is refused").refused(403, &[]).json();
                let said = said["error"]["detail"].as_str().expect("a detail").to_owned();
                let missing = ["read", "origin", "subscribe", "admin", "operator"];
                assert!(missing.iter().any(|scope| said.contains(scope)), "{name} as {scope}: {said}");
            }
        }
    }
    for (path, scope) in [("/resources", "read"), ("/accounts", "operator")] {
        let origin = nobody.with(&holders[1].1);
        origin.get(path).await.refused(403, &[scope]);
    }
}

#[tokio::test]
async fn a_browser_that_asks_for_nothing_is_shown_where_to_sign_in_and_names_do_not_matter() {
    let flare = Setup::default().guarded().start().await;
    let answer = flare.api().send("GET", "/", &[("accept", "text/html,*/*")], "").await.expect(303);
    assert_eq!(answer.header("location"), "/ui");
    let request = "GET /healthz HTTP/1.1\r\nhost: flare.company.com\r\nconnection: close\r\n\r\n";
    assert!(flare.api().raw(request.as_bytes()).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn without_authentication_nobody_meets_any_of_it() {
    let flare = Setup::default().start().await;
    let api = flare.api();
    for path in ["/tokens", "/accounts", "/audit", "/tokens/tok_1", "/accounts/default"] {
        api.get(path).await.refused(404, &["auth.mode"]);
    }
    api.post("/tokens", &json!({"name": "a", "scopes": ["read"]})).await.refused(404, &["auth.mode"]);
    let page = api.send("GET", "/ui", &[("accept", "text/html")], "").await.expect(200);
    let page = String::from_utf8_lossy(&page.body).into_owned();
    assert!(!page.contains("Sign out") && !page.contains("/ui/tokens"), "{page}");
}
