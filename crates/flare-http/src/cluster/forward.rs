//! Requests about a subscription that another node serves are answered by that node: one hop, and 503 if nobody serves it. And
//! what another node created just now is looked up before it is said that there is none.

use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use flare_core::operations::{App, Owner};
use flare_model::access::Caller;
use flare_model::cluster::NodeId;
use flare_model::ids::{ResourceId, SubscriptionId};
use http::{Method, StatusCode, Uri};

use super::relay::relay;
use super::{is_forwarded, is_trusted};
use crate::error::ApiError;
use crate::{AppState, page};

/// How long the owner of a subscription may take to say how it stands.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a request is about.
#[derive(Debug, PartialEq)]
enum About {
    /// Nothing that another node would have.
    Anything,
    /// A resource.
    Resource(ResourceId),
    /// A subscription, whose owner needs not be asked.
    Entry(SubscriptionId),
    /// How a consumer fares: what is recorded will do where its reader does not answer.
    Consumer(ResourceId),
    /// How a subscription stands: what is recorded will do where its owner does not answer.
    Status(ResourceId, SubscriptionId),
    /// A subscription, which has an owner.
    Subscription(Option<ResourceId>, SubscriptionId),
}

impl About {
    fn of(method: &Method, uri: &Uri) -> About {
        let page = uri.path().strip_prefix("/ui");
        let path = page.unwrap_or(uri.path());
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        let decoded =
            |part: &str| percent_encoding::percent_decode_str(part).decode_utf8_lossy().into_owned();
        match parts.as_slice() {
            // Deleting needs the catalog alone.
            ["resources", _, "subscriptions", id] | ["consumers", _, "producers", id]
                if *method == Method::DELETE =>
            {
                About::Entry(SubscriptionId::new(decoded(id)))
            }
            // Whoever served it has some.
            ["resources", _, "subscriptions", id, "attempts", ..]
            | ["consumers", _, "producers", id, "attempts", ..]
                if page.is_none() =>
            {
                About::Entry(SubscriptionId::new(decoded(id)))
            }
            ["resources", resource, "subscriptions", id, "status"]
            | ["consumers", resource, "producers", id, "status"]
                if page.is_none() =>
            {
                About::Status(ResourceId::new(decoded(resource)), SubscriptionId::new(decoded(id)))
            }
            ["consumers", id, "status"] if page.is_none() => About::Consumer(ResourceId::new(decoded(id))),
            ["resources", resource, "subscriptions", id, ..]
            | ["consumers", resource, "producers", id, ..]
                if *id != "new" =>
            {
                let resource = ResourceId::new(decoded(resource));
                About::Subscription(Some(resource), SubscriptionId::new(decoded(id)))
            }
            ["resources" | "consumers", resource, ..] if *resource != "new" => {
                About::Resource(ResourceId::new(decoded(resource)))
            }
            ["subscriptions", id, ..] if *id != "new" => {
                About::Subscription(None, SubscriptionId::new(decoded(id)))
            }
            ["explain"] => {
                let id = page::pairs(uri).into_iter().find(|(name, _)| name == "subscription");
                id.map_or(About::Anything, |(_, id)| About::Subscription(None, SubscriptionId::new(id)))
            }
            _ => About::Anything,
        }
    }
}

/// Stands before all operations of a node that is one of several.
pub async fn forward(State(app): AppState, request: Request, next: Next) -> Response {
    let forwarded = is_forwarded(request.headers());
    if forwarded && !is_trusted(&app, request.headers()) {
        let detail = "only nodes of this cluster send requests on (cluster.token)";
        return ApiError::new(StatusCode::FORBIDDEN, "Not allowed", detail).into_response();
    }
    let about = About::of(request.method(), request.uri());
    let caller = request.extensions().get::<Caller>().cloned();
    if let About::Subscription(_, id) | About::Status(_, id) = &about
        && is_hidden(&app, caller.as_ref(), id).await
    {
        // Nor is it said of it whether anybody serves it.
        return next.run(request).await;
    }
    match about {
        About::Anything => next.run(request).await,
        About::Resource(resource) => {
            let known = app.registry.tracked(&resource).is_some();
            after_a_look(&app, known, request, next).await
        }
        About::Consumer(id) => match app.reader_elsewhere(&id).filter(|_| !forwarded) {
            Some((node, address)) => {
                let (head, body) = request.into_parts();
                let asked = Request::from_parts(head.clone(), body);
                match within_patience(&app, &node, &address, asked).await {
                    Some(answer) => answer,
                    None => next.run(Request::from_parts(head, Body::empty())).await,
                }
            }
            None => {
                let known = app.registry.tracked(&id).is_some();
                after_a_look(&app, known, request, next).await
            }
        },
        About::Entry(id) => {
            let known = app.registry.subscription_by_id(&id).is_some();
            after_a_look(&app, known, request, next).await
        }
        About::Status(resource, id) => match app.find_owner(Some(&resource), &id, forwarded).await {
            Some(Owner::There(node, address)) => {
                let (head, body) = request.into_parts();
                let asked = Request::from_parts(head.clone(), body);
                match within_patience(&app, &node, &address, asked).await {
                    Some(answer) => answer,
                    None => next.run(Request::from_parts(head, Body::empty())).await,
                }
            }
            // A node that was asked by another says that it is not the one; otherwise what is recorded will do.
            Some(Owner::Nobody) if forwarded => nobody_serves(&id),
            _ => next.run(request).await,
        },
        About::Subscription(resource, id) => match app.find_owner(resource.as_ref(), &id, forwarded).await {
            None | Some(Owner::Here) => next.run(request).await,
            Some(Owner::There(node, address)) => {
                let answer = relay(&app, &node, &address, request).await;
                answer.unwrap_or_else(IntoResponse::into_response)
            }
            Some(Owner::Nobody) => nobody_serves(&id),
        },
    }
}

/// What another node answers, if it has an answer soon enough.
async fn within_patience(app: &App, node: &NodeId, address: &str, asked: Request) -> Option<Response> {
    let answer = tokio::time::timeout(PATIENCE, relay(app, node, address, asked)).await.ok()?.ok()?;
    (answer.status() != StatusCode::SERVICE_UNAVAILABLE).then_some(answer)
}

/// Whether a subscription is there, and not for whoever asks. Without authentication everything is there for everybody.
async fn is_hidden(app: &App, caller: Option<&Caller>, id: &SubscriptionId) -> bool {
    let Some(caller) = caller else { return false };
    if app.registry.subscription_by_id(id).is_none() {
        // Where the store does not answer, its owner is asked for as ever.
        let _ = app.follow_catalog().await;
    }
    app.registry.subscription_by_id(id).is_some() && app.registry.subscription_for(caller, id).is_none()
}

/// Has a request handled, once it was looked whether another node has created what is not known here. Whether it is known afterwards
/// is for its handler to say; where that cannot be asked, nobody can.
async fn after_a_look(app: &App, known: bool, request: Request, next: Next) -> Response {
    if !known && let Err(failure) = app.follow_catalog().await {
        return ApiError::from(failure).into_response();
    }
    next.run(request).await
}

fn nobody_serves(id: &SubscriptionId) -> Response {
    let detail = format!("no node serves {} {id} at the moment; one will soon", id.kind());
    ApiError::unavailable(detail).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_an_owner_is_told_from_the_rest() {
        let about = |method: Method, path: &str| About::of(&method, &path.parse().expect("a path"));
        let one = |resource: Option<&str>| {
            About::Subscription(resource.map(ResourceId::new), SubscriptionId::new("sub_1"))
        };
        let status = About::Status(ResourceId::new("res_1"), SubscriptionId::new("sub_1"));
        assert_eq!(about(Method::GET, "/resources/res_1/subscriptions/sub_1/status"), status);
        assert_eq!(
            about(Method::GET, "/resources/res_1/subscriptions/sub_1/dead-letters"),
            one(Some("res_1"))
        );
        assert_eq!(about(Method::PATCH, "/resources/res_1/subscriptions/sub_1"), one(Some("res_1")));
        assert_eq!(about(Method::GET, "/explain?document=http://a&subscription=sub_1"), one(None));
        assert_eq!(about(Method::GET, "/subscriptions/sub_1"), one(None));
        let producer = About::Subscription(Some(ResourceId::new("con_1")), SubscriptionId::new("prd_1"));
        assert_eq!(about(Method::GET, "/consumers/con_1/producers/prd_1/leases"), producer);
        let status = About::Status(ResourceId::new("con_1"), SubscriptionId::new("prd_1"));
        assert_eq!(about(Method::GET, "/consumers/con_1/producers/prd_1/status"), status);
        let consumer = About::Consumer(ResourceId::new("con_1"));
        assert_eq!(about(Method::GET, "/consumers/con_1/status"), consumer);
        let consumer = About::Resource(ResourceId::new("con_1"));
        assert_eq!(about(Method::POST, "/consumers/con_1/producers"), consumer);
        let resource = About::Resource(ResourceId::new("res_1"));
        let entry = About::Entry(SubscriptionId::new("sub_1"));
        assert_eq!(about(Method::DELETE, "/resources/res_1/subscriptions/sub_1"), entry);
        assert_eq!(about(Method::GET, "/resources/res_1/subscriptions/sub_1/attempts"), entry);
        assert_eq!(about(Method::POST, "/resources/res_1/subscriptions"), resource);
        for path in ["/", "/status", "/documents/http://a/b", "/resources", "/cluster/health"] {
            assert_eq!(about(Method::GET, path), About::Anything, "{path}");
        }
    }
}
