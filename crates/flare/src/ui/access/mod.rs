//! Who may see and do what here, where there is authentication: what each page needs, and how a browser shows its token.

pub mod accounts;
pub mod audit;
mod cookie;
pub mod sign_in;
pub mod tokens;

use axum::response::{IntoResponse as _, Redirect, Response};
use flare_http::access::guard::{Gate, Pages, Rule};
use flare_http::error::ApiError;
use flare_model::access::{Need, Scope};
use http::{Method, StatusCode, Uri};

use super::HOME;
use super::page::PageError;
use super::pager::encode;

pub const READ: Need = Need::Scope(&[Scope::Read]);
pub const NODE: Need = Need::Node(&[Scope::Read]);
pub const SAY: Need = Need::Scope(&[Scope::Origin]);
pub const LOOK: Need = Need::Scope(&[Scope::Read, Scope::Origin]);
pub const SUBSCRIBE: Need = Need::Scope(&[Scope::Subscribe]);
pub const FOLLOW: Need = Need::Scope(&[Scope::Read, Scope::Subscribe]);
pub const ADMIN: Need = Need::Scope(&[Scope::Admin]);
pub const KNOW: Need = Need::Scope(&[Scope::Read, Scope::Admin]);
const ANY: Need = Need::Scope(&Scope::ALL);

/// What pages need that are only looked at. Whatever is not here or below is the operator's.
const SEEN: &[(&str, Need)] = &[
    (HOME, NODE),
    ("/ui/assets/{file}", Need::Nothing),
    ("/ui/sign-in", Need::Nothing),
    ("/ui/live/dashboard", NODE),
    ("/ui/resources", KNOW),
    ("/ui/resources/new", ADMIN),
    ("/ui/resources/{rid}", KNOW),
    ("/ui/consumers", KNOW),
    ("/ui/consumers/new", ADMIN),
    ("/ui/consumers/{cid}", KNOW),
    ("/ui/documents", LOOK),
    ("/ui/documents/show", LOOK),
    ("/ui/documents/put", SAY),
    ("/ui/explain", READ),
    ("/ui/cluster", Need::Operator),
    ("/ui/live/cluster", Need::Operator),
    ("/ui/settings", Need::Operator),
    ("/ui/tokens", KNOW),
    ("/ui/tokens/new", ADMIN),
    ("/ui/accounts", Need::Operator),
    ("/ui/accounts/new", Need::Operator),
    ("/ui/audit", KNOW),
    ("/docs", READ),
    ("/ui/{*path}", ANY),
    ("/ui/subscriptions", FOLLOW),
    ("/ui/subscriptions/new", SUBSCRIBE),
    ("/ui/resources/{rid}/subscriptions", FOLLOW),
    ("/ui/resources/{rid}/subscriptions/new", SUBSCRIBE),
    ("/ui/resources/{rid}/subscriptions/{id}", FOLLOW),
    ("/ui/subscriptions/{id}", FOLLOW),
    ("/ui/subscriptions/{id}/live", FOLLOW),
    ("/ui/subscriptions/{id}/edit", SUBSCRIBE),
    ("/ui/subscriptions/{id}/replays", FOLLOW),
    ("/ui/subscriptions/{id}/replays/live", FOLLOW),
    ("/ui/subscriptions/{id}/test", SUBSCRIBE),
    ("/ui/subscriptions/{id}/secret", FOLLOW),
    ("/ui/subscriptions/{id}/attempts", FOLLOW),
    ("/ui/subscriptions/{id}/attempts/live", FOLLOW),
    ("/ui/subscriptions/{id}/attempts/{attempt}", FOLLOW),
    ("/ui/subscriptions/{id}/documents", FOLLOW),
    ("/ui/subscriptions/{id}/dead-letters", FOLLOW),
    ("/ui/subscriptions/{id}/leases", FOLLOW),
    ("/ui/dead-letters", FOLLOW),
    ("/ui/consumers/{cid}/producers", KNOW),
    ("/ui/consumers/{cid}/producers/new", ADMIN),
    ("/ui/consumers/{cid}/producers/{id}", KNOW),
    ("/ui/producers/{id}/edit", ADMIN),
];

/// What forms need, and how the audit log calls what they do: as the API does. Without a name they change nothing but
/// documents.
const SENT: &[(&str, Need, Option<&str>)] = &[
    ("/ui/sign-in", Need::Nothing, None),
    ("/ui/sign-out", Need::Nothing, None),
    ("/ui/resources/new", ADMIN, Some("createResource")),
    ("/ui/resources/{rid}/delete", ADMIN, Some("deleteResource")),
    ("/ui/consumers/new", ADMIN, Some("createConsumer")),
    ("/ui/consumers/{cid}/pause", ADMIN, Some("pauseConsumer")),
    ("/ui/consumers/{cid}/resume", ADMIN, Some("resumeConsumer")),
    ("/ui/consumers/{cid}/delete", ADMIN, Some("deleteConsumer")),
    ("/ui/consumers/{cid}/replay", ADMIN, Some("replayConsumer")),
    ("/ui/consumers/{cid}/discard", ADMIN, Some("dropConsumerDeadLetters")),
    ("/ui/documents/put", SAY, None),
    ("/ui/documents/delete", SAY, None),
    ("/ui/tokens/new", ADMIN, Some("createToken")),
    ("/ui/tokens/{token}/revoke", ADMIN, Some("revokeToken")),
    ("/ui/accounts/new", Need::Operator, Some("createAccount")),
    ("/ui/accounts/{account}/delete", Need::Operator, Some("deleteAccount")),
    ("/ui/resources/{rid}/subscriptions/new", SUBSCRIBE, Some("createSubscription")),
    ("/ui/resources/{rid}/subscriptions/draft", SUBSCRIBE, None),
    ("/ui/resources/{rid}/subscriptions/preview", SUBSCRIBE, None),
    ("/ui/resources/{rid}/subscriptions/try", SUBSCRIBE, None),
    ("/ui/consumers/{cid}/producers/new", ADMIN, Some("createProducer")),
    ("/ui/producers/{id}/edit", ADMIN, Some("replaceProducer")),
    ("/ui/subscriptions/{id}/edit", SUBSCRIBE, Some("changeSubscription")),
    ("/ui/subscriptions/{id}/draft", SUBSCRIBE, None),
    ("/ui/subscriptions/{id}/pause", SUBSCRIBE, Some("pauseSubscription")),
    ("/ui/subscriptions/{id}/resume", SUBSCRIBE, Some("resumeSubscription")),
    ("/ui/subscriptions/{id}/delete", SUBSCRIBE, Some("deleteSubscription")),
    ("/ui/subscriptions/{id}/replays", SUBSCRIBE, Some("replay")),
    ("/ui/subscriptions/{id}/test", SUBSCRIBE, Some("testSubscription")),
    ("/ui/subscriptions/{id}/secret", SUBSCRIBE, Some("rotateSecret")),
    ("/ui/subscriptions/{id}/dead-letters/replay", SUBSCRIBE, Some("replay")),
    ("/ui/subscriptions/{id}/dead-letters/discard", SUBSCRIBE, Some("dropDeadLetters")),
    ("/ui/subscriptions/{id}/leases", SUBSCRIBE, Some("endLeases")),
];

/// A gate that knows what pages need, too.
pub fn rules(mut gate: Gate) -> Gate {
    for (pattern, need) in SEEN {
        gate.add(pattern, Method::GET, Rule { need: *need, audited: None });
    }
    for (pattern, need, name) in SENT {
        gate.add(pattern, Method::POST, Rule { need: *need, audited: name.map(str::to_owned) });
    }
    gate.with_pages(Pages { shown: cookie::shown, refused })
}

/// Whoever is not known signs in; whoever may not see the whole node begins elsewhere; anybody else is told.
fn refused(method: &Method, uri: &Uri, error: ApiError) -> Response {
    if error.status() == StatusCode::UNAUTHORIZED {
        // A form that was sent is not sent again by itself.
        let next = (method == Method::GET).then(|| uri.path_and_query().map_or(HOME, |whole| whole.as_str()));
        let place = next
            .map_or_else(|| "/ui/sign-in".to_owned(), |next| format!("/ui/sign-in?next={}", encode(next)));
        return Redirect::to(&place).into_response();
    }
    if error.status() == StatusCode::FORBIDDEN && uri.path() == HOME {
        return Redirect::to("/ui/subscriptions").into_response();
    }
    super::guard::secured(PageError::from(error).into_response())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::ui::live::Live;

    #[test]
    fn of_every_page_it_is_said_who_may_see_it() {
        let (_, patterns) = crate::ui::routes(Arc::new(Live::new(1))).into_parts();
        for pattern in &patterns {
            let seen = SEEN.iter().any(|(known, _)| known == pattern);
            let sent = SENT.iter().any(|(known, ..)| known == pattern);
            assert!(seen || sent, "{pattern}");
        }
        for pattern in SEEN.iter().map(|(known, _)| known).chain(SENT.iter().map(|(known, ..)| known)) {
            assert!(patterns.contains(pattern), "{pattern} leads nowhere");
        }
    }

    #[test]
    fn what_forms_do_is_called_as_the_api_calls_it() {
        let description = flare_http::openapi::description(&flare_core::config::Config::default());
        let description = String::from_utf8_lossy(&description).into_owned();
        for name in SENT.iter().filter_map(|(_, _, name)| *name) {
            assert!(description.contains(&format!("\"operationId\":\"{name}\"")), "{name}");
        }
    }

    #[test]
    fn forms_need_more_than_to_read() {
        for (pattern, need, _) in SENT {
            assert!(!matches!(need, Need::Scope(scopes) if scopes.contains(&Scope::Read)), "{pattern}");
        }
    }
}
