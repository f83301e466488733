//! The guard before every operation and page, where there is authentication. In: a request, and the route it took. Out: the
//! same with who asks, or why not.
//!
//! What a route needs stands in the table of operations, or beside the pages. A route of which nothing is said is the
//! operator's: nothing is open because somebody forgot it. What is not there for a caller is answered as what is not
//! there at all, in the same words.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{FromRequestParts as _, MatchedPath, RawPathParams, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use flare_core::access::Denied;
use flare_core::operations::App;
use flare_model::access::{Caller, Need, Scope, TokenText};
use flare_model::ids::{ResourceId, SubscriptionId};
use http::header::{ACCEPT, AUTHORIZATION, HeaderMap, LOCATION};
use http::{Method, StatusCode, Uri};

use super::lasting;
use crate::cluster;
use crate::error::ApiError;

/// What is asked of whoever takes a route.
#[derive(Debug)]
pub struct Rule {
    /// What they need.
    pub need: Need,
    /// How the audit log calls it; `None`: it is not written down.
    pub audited: Option<String>,
}

/// For the operator alone.
static OPERATORS: Rule = Rule { need: Need::Operator, audited: None };

/// What a request shows of who sends it.
pub struct Shown {
    /// The token.
    pub token: Vec<u8>,
    /// The account the operator acts for.
    pub account: Option<String>,
}

/// How pages, which are for people, differ from operations.
#[derive(Clone, Copy)]
pub struct Pages {
    /// What a browser shows.
    pub shown: fn(&HeaderMap) -> Option<Shown>,
    /// The answer to one that is not let in.
    pub refused: fn(&Method, &Uri, ApiError) -> Response,
}

/// What each route needs.
#[derive(Default)]
pub struct Gate {
    rules: HashMap<&'static str, Vec<(Method, Rule)>>,
    pages: Option<Pages>,
}

impl Gate {
    /// One more method of a route.
    pub fn add(&mut self, pattern: &'static str, method: Method, rule: Rule) {
        self.rules.entry(pattern).or_default().push((method, rule));
    }

    /// There are pages too.
    pub fn with_pages(mut self, pages: Pages) -> Gate {
        self.pages = Some(pages);
        self
    }

    /// What a method of a route needs; `None`: the route does not take it.
    fn rule(&self, pattern: &str, method: &Method) -> Option<&Rule> {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        match self.rules.get(pattern) {
            // An operation has no methods but those of the table. Of pages that is not known.
            Some(methods) => {
                let known = methods.iter().find(|(known, _)| known == method).map(|(_, rule)| rule);
                known.or_else(|| is_page(pattern).then_some(&OPERATORS))
            }
            None => Some(&OPERATORS),
        }
    }
}

/// The gate and what is behind it.
pub struct Door {
    /// The node.
    pub app: Arc<App>,
    /// What each route needs.
    pub gate: Gate,
}

/// Whatever is done under it is written down.
#[derive(Clone)]
pub struct Audited {
    app: Arc<App>,
    by: Caller,
    address: Option<IpAddr>,
    operation: String,
}

impl Audited {
    async fn note(&self, target: String, status: StatusCode) {
        let address = self.address.map(|address| address.to_canonical().to_string());
        let what = (self.operation.as_str(), target);
        self.app.note_act(&self.by, address, what, status.as_u16()).await;
    }
}

/// Stands before every route.
pub async fn stand(State(door): State<Arc<Door>>, mut request: Request, next: Next) -> Response {
    let pattern = request.extensions().get::<MatchedPath>().map_or("", |matched| matched.as_str());
    let Some(rule) = door.gate.rule(pattern, request.method()) else { return next.run(request).await };
    if rule.need == Need::Nothing || leads_to_pages(&door, pattern, request.headers()) {
        return next.run(request).await;
    }
    let pages = door.gate.pages.filter(|_| is_page(pattern));
    let shown = pages.map_or_else(|| shown(request.headers()), |pages| (pages.shown)(request.headers()));
    let names_something = NAMES.iter().any(|name| pattern.contains(name));
    match admit(&door.app, rule, shown.as_ref(), &mut request, names_something).await {
        Ok(caller) => {
            let lasts = !caller.operator;
            request.extensions_mut().insert(caller);
            let answer = next.run(request).await;
            match shown.filter(|_| lasts) {
                Some(shown) => lasting::until_revoked(&door.app, shown.token, answer),
                None => answer,
            }
        }
        Err(refusal) => match pages {
            Some(pages) => (pages.refused)(request.method(), request.uri(), refusal),
            None => refusal.into_response(),
        },
    }
}

/// What in the pattern of a route names something that is there for some and not for others.
const NAMES: [&str; 3] = ["{rid}", "{cid}", "{id}"];

/// A browser that asks for nothing in particular is sent to the pages, which ask it who it is.
fn leads_to_pages(door: &Door, pattern: &str, headers: &HeaderMap) -> bool {
    let is_browser = headers.get(ACCEPT).is_some_and(|accept| accept.as_bytes().starts_with(b"text/html"));
    pattern == "/" && is_browser && door.app.config.ui.enabled
}

/// Whether a route is for people.
fn is_page(pattern: &str) -> bool {
    pattern == "/ui" || pattern.starts_with("/ui/") || pattern == "/docs"
}

/// Who asks, if they may.
async fn admit(
    app: &Arc<App>,
    rule: &Rule,
    shown: Option<&Shown>,
    request: &mut Request,
    names_something: bool,
) -> Result<Caller, ApiError> {
    let address = cluster::address_of(app, request);
    let caller = identify(app, shown, address).await?;
    let audited = rule.audited.as_ref().map(|operation| Audited {
        app: app.clone(),
        by: caller.clone(),
        address,
        operation: operation.clone(),
    });
    let allowed = match caller.has(rule.need) {
        true if !names_something => Ok(()),
        true => reaches(app, &caller, request).await,
        false => Err(lacks(&caller, rule.need)),
    };
    if let Err(refusal) = allowed {
        if let Some(audited) = audited {
            audited.note(request.uri().path().to_owned(), refusal.status()).await;
        }
        return Err(refusal);
    }
    if let Some(audited) = audited {
        request.extensions_mut().insert(audited);
    }
    Ok(caller)
}

/// Whose token it is. Whoever shows a wrong one waits.
pub async fn identify(app: &App, shown: Option<&Shown>, address: Option<IpAddr>) -> Result<Caller, ApiError> {
    let Some(Shown { token, account }) = shown else {
        return Err(unauthorized("send a token as Authorization: Bearer"));
    };
    let access = app.access.as_ref().ok_or_else(unknown)?;
    let mut caller = access.caller(token, account.as_deref(), app.clock.now());
    // Another node may have created it just now. What cannot be a token is not looked for.
    let is_worth_a_look = match &caller {
        Err(Denied::Unknown) => TokenText::is_one(token),
        Err(Denied::NoAccount(_)) => true,
        Ok(_) | Err(Denied::NotTheOperator) => false,
    };
    if is_worth_a_look && app.member.is_some() {
        // Where the store does not answer, what is known counts.
        let _ = app.follow_catalog().await;
        caller = access.caller(token, account.as_deref(), app.clock.now());
    }
    match caller {
        Ok(caller) => Ok(caller),
        Err(Denied::Unknown) => {
            tokio::time::sleep(access.guesses.wrong(address, app.clock.monotonic())).await;
            Err(unknown())
        }
        Err(Denied::NoAccount(name)) => Err(ApiError::not_found(format!("there is no account {name}"))),
        Err(Denied::NotTheOperator) => {
            Err(forbidden("Flare-Account: only the operator acts for other accounts; leave it out"))
        }
    }
}

/// What an operation shows of its sender.
fn shown(headers: &HeaderMap) -> Option<Shown> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.as_bytes().split_at_checked(7)?;
    let token = scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii().to_vec())?;
    let account =
        headers.get("flare-account").map(|name| String::from_utf8_lossy(name.as_bytes()).trim().to_owned());
    Some(Shown { token, account: account.filter(|name| !name.is_empty()) })
}

/// Whether what the path names is there for them.
async fn reaches(app: &App, caller: &Caller, request: &mut Request) -> Result<(), ApiError> {
    let only_asks = matches!(*request.method(), Method::GET | Method::HEAD);
    let path = request.uri().path().to_owned();
    let (mut parts, body) = std::mem::take(request).into_parts();
    let params = RawPathParams::from_request_parts(&mut parts, &()).await;
    *request = Request::from_parts(parts, body);
    let Ok(params) = params else { return Ok(()) };
    let named =
        |wanted: &str| params.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.to_owned());
    let (resource, subscription) = (named("rid").or_else(|| named("cid")), named("id"));
    let knows = |id: &String| app.registry.tracked(&ResourceId::new(id.as_str())).is_some();
    let knows_subscription =
        |id: &String| app.registry.subscription_by_id(&SubscriptionId::new(id.as_str())).is_some();
    let all_known = resource.iter().all(knows) && subscription.iter().all(knows_subscription);
    if app.member.is_some() && !all_known {
        // Another node may have created it just now. Where the store does not answer, what is known counts.
        let _ = app.follow_catalog().await;
    }
    if let Some(id) = &resource {
        let kind = if named("cid").is_some() { "consumer" } else { "resource" };
        let unknown = || ApiError::not_found(format!("there is no {kind} {id}"));
        let known = app.registry.tracked(&ResourceId::new(id.as_str()));
        let known = known.filter(|known| known.kind() == kind).ok_or_else(unknown)?;
        if !caller.sees(&known) {
            return Err(unknown());
        }
        // What is of a resource or consumer itself is for whoever may see all of it: messages that could not be read are those
        // of everybody.
        let is_of_all = !only_asks || tells_of_all(&path);
        if subscription.is_none() && is_of_all && !caller.sees_whole(&known) {
            let parts = if kind == "consumer" { "producers" } else { "subscriptions" };
            return Err(forbidden(format!("this token is limited to some of the {parts} of the {kind}")));
        }
    }
    if let Some(id) = subscription {
        let id = SubscriptionId::new(id);
        let of = match resource.is_some() {
            true if id.is_producer() => " of this consumer",
            true => " of this resource",
            false => "",
        };
        // Pages of subscriptions are those of producers too, which are not for whoever may subscribe.
        let need = Need::Scope(if only_asks { &[Scope::Read, Scope::Admin] } else { &[Scope::Admin] });
        if id.is_producer() && !caller.has(need) {
            return Err(lacks(caller, need));
        }
        let found = app.registry.subscription_for(caller, &id);
        let found = found.filter(|found| {
            resource.as_ref().is_none_or(|resource| found.compiled.resource.id().as_str() == resource)
        });
        found.ok_or_else(|| ApiError::not_found(format!("there is no {} {id}{of}", id.kind())))?;
    }
    Ok(())
}

/// Whether what is asked of a resource or consumer itself, by its path, tells of everything below it.
fn tells_of_all(path: &str) -> bool {
    let is_page = || path.strip_prefix("/ui/consumers/").is_some_and(|rest| !rest.contains('/'));
    matches!(path.rsplit('/').next(), Some("dead-letters" | "status")) || is_page()
}

/// What is written down if its client leaves, and ends it thereby, before anybody knows what became of it.
struct Leaving(Option<(Audited, String)>);

impl Drop for Leaving {
    fn drop(&mut self) {
        if let Some((audited, path)) = self.0.take() {
            let left = StatusCode::from_u16(499).expect("it is a number of three digits");
            let changes = audited.app.changes.clone();
            changes.begin(async move { audited.note(path, left).await });
        }
    }
}

/// Writes down what was done, once it is, whoever still listens: it stands inside of what is seen through to its end.
pub async fn note(request: Request, next: Next) -> Response {
    let Some(audited) = request.extensions().get::<Audited>().cloned() else {
        return next.run(request).await;
    };
    let path = request.uri().path().to_owned();
    let mut leaving = Leaving(Some((audited, path)));
    let answer = next.run(request).await;
    let Some((audited, path)) = leaving.0.take() else { return answer };
    // A form that made something leads on to its page.
    let makes = match answer.status() {
        StatusCode::CREATED => true,
        StatusCode::SEE_OTHER => path.ends_with("/new"),
        _ => false,
    };
    let made = answer.headers().get(LOCATION).filter(|_| makes);
    let target = made.and_then(|place| place.to_str().ok()).map_or(path, str::to_owned);
    audited.note(target, answer.status()).await;
    answer
}

/// 401: nobody knows who asks.
pub fn unknown() -> ApiError {
    unauthorized("the token is not known: it is wrong, was revoked, or has expired")
}

fn unauthorized(detail: &str) -> ApiError {
    ApiError::new(StatusCode::UNAUTHORIZED, "Unauthorized", detail)
}

fn forbidden(detail: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::FORBIDDEN, "Forbidden", detail)
}

/// 403 that names what is missing.
fn lacks(caller: &Caller, need: Need) -> ApiError {
    let words = need.words();
    let whole = Caller { operator: false, ..caller.clone() };
    match need {
        Need::Node(scopes) if whole.has(Need::Scope(scopes)) => forbidden(
            "this tells of the whole node: it needs a token of the account default that is not limited, or the operator's \
             (auth.operator-token)",
        ),
        _ => forbidden(format!("this needs {words}, and the token does not have it")),
    }
}
