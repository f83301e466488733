//! The web interface asks who it is: signing in and out, and what is shown to whom.

use serde_json::json;

use super::{id, tenant, token};
use crate::support::{Answer, Api, OPERATOR, Setup, document_url, minimal_resource};

const OWN: (&str, &str) = ("sec-fetch-site", "same-origin");

async fn sign_in(api: Api, token: &str, account: &str) -> Answer {
    let body = format!("token={token}&account={account}&next=%2Fui%2Fresources");
    let kind = ("content-type", "application/x-www-form-urlencoded");
    api.send("POST", "/ui/sign-in", &[OWN, kind], body).await
}

/// The cookie that a browser would send.
async fn session(api: Api, token: &str, account: &str) -> String {
    let answer = sign_in(api, token, account).await.expect(303);
    answer.header("set-cookie").split(';').next().unwrap_or_default().to_owned()
}

async fn page(api: Api, cookie: &str, path: &str) -> Answer {
    api.send("GET", path, &[("cookie", cookie), ("accept", "text/html")], "").await
}

fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

#[tokio::test]
async fn a_browser_signs_in_and_out() {
    let flare = Setup::default().guarded().with("FLARE_UI_SESSION", "1h").start().await;
    let api = flare.api();
    for path in ["/ui", "/ui/resources?limit=3", "/docs", "/ui/settings", "/ui/nothing"] {
        let answer = api.get(path).await.expect(303);
        assert!(answer.header("location").starts_with("/ui/sign-in?next="), "{path}");
    }
    let form = api.get("/ui/sign-in").await.expect(200);
    assert!(
        text(&form).contains("name=\"token\"") && form.header("content-security-policy").contains("'self'")
    );
    assert!(!text(&form).contains("href=\"/ui/settings\""), "there is no menu for a stranger");
    let wrong = sign_in(api, "flare_nothing", "").await.expect(401);
    assert!(text(&wrong).contains("not known") && wrong.header("set-cookie").is_empty());
    assert!(!text(&wrong).contains("flare_nothing"), "what was typed is not shown again");

    let answer = sign_in(api, OPERATOR, "").await.expect(303);
    assert_eq!(answer.header("location"), "/ui/resources");
    let cookie = answer.header("set-cookie");
    for part in ["HttpOnly", "SameSite=Strict", "Max-Age=3600"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let cookie = cookie.split(';').next().unwrap();
    for path in ["/ui", "/ui/resources", "/ui/settings", "/ui/accounts", "/ui/tokens", "/ui/audit", "/docs"] {
        page(api, cookie, path).await.expect(200);
    }
    let home = text(&page(api, cookie, "/ui").await);
    assert!(home.contains("Sign out") && home.contains("operator"));
    // A cookie is for pages: it opens nothing of the API, and a page of another site sends no form.
    api.send("GET", "/resources", &[("cookie", cookie)], "").await.refused(401, &[]);
    let foreign = [("cookie", cookie), ("sec-fetch-site", "cross-site")];
    api.send("POST", "/ui/sign-out", &foreign, "").await.expect(403);
    let left = api.send("POST", "/ui/sign-out", &[("cookie", cookie), OWN], "").await.expect(303);
    assert!(left.header("set-cookie").contains("Max-Age=0") && left.header("location") == "/ui/sign-in");
}

#[tokio::test]
async fn pages_show_what_the_scopes_allow_and_nothing_of_another_account() {
    let flare = Setup::default().guarded().start().await;
    let (api, operator) = (flare.api(), flare.operator());
    operator.post("/accounts", &json!({"name": "acme"})).await.expect(201);
    let acme = api.with(&tenant(operator.acting_for("acme")).await);
    let resource = id(acme, "/resources", &minimal_resource()).await;
    let draft = json!({"endpoint": {"url": "http://127.0.0.1:9/of-acme/{id}"}});
    let subscription = id(acme, &format!("/resources/{resource}/subscriptions"), &draft).await;
    acme.put(&document_url("of-acme"), &json!({"rev": 1})).await;

    let reader = token(operator, json!({"name": "reader", "scopes": ["read"]})).await;
    let reader = session(api, &reader, "").await;
    let paths = [
        "/ui",
        "/ui/resources",
        "/ui/subscriptions",
        "/ui/documents",
        "/ui/dead-letters",
        "/ui/explain",
        "/ui/tokens",
        "/ui/audit",
    ];
    for path in paths {
        let shown = text(&page(api, &reader, path).await.expect(200));
        assert!(!shown.contains("of-acme") && !shown.contains(&resource), "{path}");
        assert!(
            !shown.contains("href=\"/ui/settings\"") && !shown.contains("href=\"/ui/accounts\""),
            "{path}"
        );
    }
    for path in ["/ui/settings", "/ui/accounts", "/ui/cluster", "/ui/resources/new", "/ui/tokens/new"] {
        page(api, &reader, path).await.expect(403);
    }
    let theirs = format!("/ui/subscriptions/{subscription}");
    for path in [
        format!("/ui/resources/{resource}"),
        theirs.clone(),
        format!("{theirs}/attempts"),
        format!("{theirs}/live"),
    ] {
        page(api, &reader, &path).await.expect(404);
    }
    let show = format!("/ui/documents/show?url={}", document_url("of-acme"));
    page(api, &reader, &show).await.expect(404);
    let form = [("cookie", reader.as_str()), OWN];
    api.send("POST", "/ui/resources/new", &form, "endpoint=http://h/{x}&change.field=rev").await.expect(403);
    api.send("POST", &format!("{theirs}/pause"), &form, "").await.expect(403);

    // Their own account sees it, and so does the operator who acts for it.
    let own = session(api, &tenant(operator.acting_for("acme")).await, "").await;
    for cookie in [&own, &session(api, OPERATOR, "acme").await] {
        for path in ["/ui/resources", "/ui/documents"] {
            assert!(text(&page(api, cookie, path).await.expect(200)).contains("origin.test"), "{path}");
        }
        page(api, cookie, &theirs).await.expect(200);
        page(api, cookie, &show).await.expect(200);
    }
    let home = page(api, &own, "/ui").await.expect(303);
    assert_eq!(home.header("location"), "/ui/subscriptions", "the dashboard tells of all accounts");
    let paused = api.send("POST", &format!("{theirs}/pause"), &[("cookie", &own), OWN], "").await;
    assert_eq!(paused.status, 303);
    let audit = operator.acting_for("acme").get("/audit").await.expect(200).json();
    assert_eq!(
        (&audit["events"][0]["operation"], &audit["events"][0]["token"]["name"]),
        (&json!("pauseSubscription"), &json!("tenant"))
    );
}

#[tokio::test]
async fn a_token_made_on_the_page_is_shown_once_and_works() {
    let flare = Setup::default().guarded().start().await;
    let api = flare.api();
    let cookie = session(api, OPERATOR, "").await;
    let form = [("cookie", cookie.as_str()), OWN];
    let made = api.send("POST", "/ui/tokens/new", &form, "name=shop&scopes.read=on&ttl=1h").await.expect(201);
    let made = text(&made);
    let at = made.find("flare_").expect("it is shown");
    let shown: String = made[at..].chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    api.with(&shown).get("/resources").await.expect(200);
    let list = text(&page(api, &cookie, "/ui/tokens").await);
    assert!(list.contains("shop") && !list.contains(&shown));
    let wrong = api.send("POST", "/ui/tokens/new", &form, "name=none").await.expect(400);
    assert!(text(&wrong).contains("scopes"));
    let tokens = flare.operator().get("/tokens").await.expect(200).json();
    let revoke = format!("/ui/tokens/{}/revoke", tokens["tokens"][0]["id"].as_str().unwrap());
    api.send("POST", &revoke, &form, "").await.expect(303);
    api.with(&shown).get("/resources").await.refused(401, &[]);
}
