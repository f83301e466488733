//! `GET /tail` of the other nodes: the same question goes to each of them, and to each that comes; out come their lines, as they come.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::response::Response;
use flare_core::operations::App;
use flare_model::cluster::NodeId;
use futures_util::future::{BoxFuture, FutureExt as _, join_all};
use futures_util::stream::{self, BoxStream, SelectAll, StreamExt as _};
use http::{HeaderMap, Request, StatusCode};

use crate::cluster::gather::PATIENCE;
use crate::cluster::relay::relay;
use crate::error::ApiError;

/// How often it is looked whether nodes have come.
const LOOK: Duration = Duration::from_secs(1);

/// A line is this long at most: an attempt, without what was sent. When longer: that node is not heard any more.
const LONGEST: usize = 1 << 20;

/// What was asked of this node, for others.
pub struct Asked {
    pub path: String,
    pub headers: HeaderMap,
}

/// What comes of another node.
enum Heard {
    Line(String),
    /// It stopped, or is gone.
    Nothing(NodeId),
}

/// Nodes that began to be watched, each with what it says.
type Opened = Vec<(NodeId, BodyDataStream)>;

/// All others that are watched.
pub struct Others {
    app: Arc<App>,
    asked: Arc<Asked>,
    watched: HashSet<NodeId>,
    /// Bound: a line of each node.
    lines: SelectAll<BoxStream<'static, Heard>>,
    /// Those that came since are being asked: kept here, since whoever waits for a line may stop waiting at any time.
    opening: Option<BoxFuture<'static, Opened>>,
    looks_at: Duration,
}

impl Asked {
    fn request(&self) -> Result<Request<Body>, ApiError> {
        let request = Request::get(self.path.as_str()).body(Body::empty());
        let mut request = request.map_err(|_| ApiError::bad_request("the path cannot be read"))?;
        *request.headers_mut() = self.headers.clone();
        Ok(request)
    }

    /// The lines of one other node, as it answers.
    pub async fn of_one(&self, app: &App, node: &NodeId) -> Result<Response, ApiError> {
        let unknown = || ApiError::bad_request(format!("node: there is no node `{node}` in this cluster"));
        let address = app.address_of(node).ok_or_else(unknown)?;
        relay(app, node, &address, self.request()?).await
    }
}

impl Others {
    /// Watches all that are there.
    pub async fn watch(app: Arc<App>, asked: Asked) -> Others {
        let (asked, looks_at) = (Arc::new(asked), Duration::ZERO);
        let (watched, lines) = (HashSet::new(), SelectAll::new());
        let mut others = Others { app, asked, watched, lines, opening: None, looks_at };
        let opened = others.open_fresh().await;
        others.take(opened);
        others
    }

    /// The next line of any of them. May be dropped at any await.
    pub async fn next(&mut self) -> String {
        loop {
            let now = self.app.clock.monotonic();
            if self.opening.is_none() && now >= self.looks_at {
                self.opening = Some(self.open_fresh());
            }
            let wait = self.looks_at.saturating_sub(now);
            tokio::select! {
                Some(heard) = self.lines.next(), if !self.lines.is_empty() => match heard {
                    Heard::Line(line) => return line,
                    Heard::Nothing(node) => drop(self.watched.remove(&node)),
                },
                opened = finished(&mut self.opening) => {
                    self.opening = None;
                    self.take(opened);
                }
                () = tokio::time::sleep(wait), if self.opening.is_none() => {}
            }
        }
    }

    fn take(&mut self, opened: Opened) {
        self.looks_at = self.app.clock.monotonic() + LOOK;
        for (node, body) in opened {
            self.watched.insert(node.clone());
            self.lines.push(lines(node, body));
        }
    }

    /// Asks those that came since.
    fn open_fresh(&self) -> BoxFuture<'static, Opened> {
        let (app, asked) = (self.app.clone(), self.asked.clone());
        let fresh: Vec<_> =
            app.others().into_iter().filter(|(node, _)| !self.watched.contains(node)).collect();
        async move {
            let opened = fresh.into_iter().map(|(node, address)| {
                let (app, asked) = (app.clone(), asked.clone());
                async move {
                    let answer = relay(&app, &node, &address, asked.request().ok()?);
                    let answer = tokio::time::timeout(PATIENCE, answer).await.ok()?.ok()?;
                    (answer.status() == StatusCode::OK).then(|| (node, answer.into_body().into_data_stream()))
                }
            });
            join_all(opened).await.into_iter().flatten().collect()
        }
        .boxed()
    }
}

async fn finished(opening: &mut Option<BoxFuture<'static, Opened>>) -> Opened {
    match opening {
        Some(opening) => opening.await,
        None => std::future::pending().await,
    }
}

/// The lines of a node, without the first, which says that it watches, and those that say nothing.
fn lines(node: NodeId, body: BodyDataStream) -> BoxStream<'static, Heard> {
    let lines =
        stream::unfold((body, Vec::new()), |(mut body, mut buffer): (BodyDataStream, Vec<u8>)| async {
            loop {
                if let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = buffer.drain(..=end).collect();
                    let said = line.trim_ascii();
                    if said.is_empty() || said.starts_with(br#"{"watching""#) {
                        continue;
                    }
                    let line = String::from_utf8_lossy(&line).into_owned();
                    return Some((Heard::Line(line), (body, buffer)));
                }
                if buffer.len() > LONGEST {
                    return None;
                }
                buffer.extend_from_slice(&body.next().await?.ok()?);
            }
        });
    lines.chain(stream::once(async { Heard::Nothing(node) })).boxed()
}
