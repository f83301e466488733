//! In: a socket and a role. Out: a client that is told over HTTP and behaves as its role says.

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::inbox::Notification;
use super::role::{Mood, Role};
use super::thing::Thing;
use super::world::World;

/// The largest notification that is read; the shop's are far smaller.
const MOST: usize = 1 << 20;

/// Takes notifications for as long as it is polled. Bound: as many connections as Flare opens to one host.
pub async fn serve(world: Arc<World>, role: Role, listener: TcpListener) -> io::Result<Infallible> {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        while connections.try_join_next().is_some() {}
        stream.set_nodelay(true)?;
        let world = world.clone();
        let service = service_fn(move |request| answer(world.clone(), role, request));
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        // How it ends is Flare's to see.
        connections.spawn(async move { drop(connection.await) });
    }
}

async fn answer(
    world: Arc<World>,
    role: Role,
    request: Request<Incoming>,
) -> Result<Response<Empty<Bytes>>, io::Error> {
    let (head, body) = request.into_parts();
    let body = Limited::new(body, MOST).collect().await.map_err(io::Error::other)?.to_bytes();
    let thing = header(&head.headers, "flare-document").and_then(Thing::of_url);
    tokio::time::sleep(role.thinks(world.chance())).await;
    let status = match world.mood(role) {
        Mood::Up => match read(&head.headers, &body) {
            Some(notification) => {
                world.tell(role, notification);
                StatusCode::NO_CONTENT
            }
            // A test that somebody sent from the UI, say.
            None => StatusCode::OK,
        },
        Mood::Refusing => {
            world.refuse(role, "answered 503 to", thing);
            StatusCode::SERVICE_UNAVAILABLE
        }
        Mood::Broken => {
            world.refuse(role, "answered 500 to", thing);
            StatusCode::INTERNAL_SERVER_ERROR
        }
        Mood::HangingUp => {
            world.refuse(role, "hung up on", thing);
            // The server closes the connection on an error.
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
    };
    let mut response = Response::new(Empty::new());
    *response.status_mut() = status;
    Ok(response)
}

fn read(headers: &HeaderMap, body: &[u8]) -> Option<Notification> {
    let envelope: Value = serde_json::from_slice(body).ok()?;
    notification(header(headers, "flare-sequence")?, &envelope)
}

/// Reads an envelope, which is the same whether it was sent or fetched.
pub fn notification(sequence: &str, envelope: &Value) -> Option<Notification> {
    let action = envelope["action"].as_str()?.to_owned();
    let document = if action == "delete" { None } else { Some(envelope.get("document")?.clone()) };
    Some(Notification {
        thing: Thing::of_url(envelope["id"].as_str()?)?,
        sequence: sequence.parse().ok()?,
        document,
        action,
    })
}

fn header<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name)?.to_str().ok()
}
