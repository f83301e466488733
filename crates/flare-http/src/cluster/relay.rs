//! A request goes to another node as it came, and its answer back, both as they flow.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use flare_core::operations::App;
use flare_model::cluster::NodeId;
use futures_util::future::{BoxFuture, Either, FutureExt as _, select};
use http::header::{CONNECTION, HOST, HeaderName, HeaderValue, ORIGIN, TRANSFER_ENCODING};
use http::uri::{Authority, Scheme};
use http::{Request, Uri};
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use super::{FORWARDED_BY, FORWARDED_FOR, NODE, TOKEN};
use crate::debug::Peer;
use crate::error::ApiError;

/// How long a connection to another node may take to open.
const CONNECT: Duration = Duration::from_secs(2);

/// What concerns the connection to this node, or was looked at here.
const OURS: [HeaderName; 7] = [
    CONNECTION,
    TRANSFER_ENCODING,
    HOST,
    ORIGIN,
    HeaderName::from_static("sec-fetch-site"),
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("te"),
];

/// Has another node answer a request.
pub async fn relay(
    app: &App,
    node: &NodeId,
    address: &str,
    request: Request<Body>,
) -> Result<Response, ApiError> {
    let away =
        |why: String| ApiError::unavailable(format!("node {node}, which serves it, does not answer: {why}"));
    let uri: Uri = address.parse().map_err(|error| away(format!("{address} is no address: {error}")))?;
    let authority = uri.authority().cloned().ok_or_else(|| away(format!("{address} has no host")))?;
    let line = match tokio::time::timeout(CONNECT, dial(app, &uri, &authority)).await {
        Ok(Ok(line)) => line,
        Ok(Err(why)) => return Err(away(why)),
        Err(_) => return Err(away("it takes too long to connect".to_owned())),
    };
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(line)).await.map_err(|error| away(error.to_string()))?;
    let request = rewritten(app, &authority, request)?;
    let connection = async move {
        // Whatever goes wrong shows in the answer.
        let _ = connection.await;
    };
    // It may end together with the head of the answer, where the other node closes at once, and is looked at again with the body.
    let mut connection = connection.fuse().boxed();
    let answering = async {
        let sent = sender.send_request(request).boxed();
        match select(sent, &mut connection).await {
            Either::Left((answer, _)) => answer,
            Either::Right(((), sent)) => sent.await,
        }
    };
    // One that is suspended takes connections and says nothing, until it is taken for gone.
    let answer = tokio::select! {
        answer = answering => answer,
        () = app.until_gone(node) => return Err(away("it is gone".to_owned())),
    };
    let answer = answer.map_err(|error| away(error.to_string()))?;
    let mut answer =
        answer.map(|body| Body::new(Flowing { body, connection: Some(connection), _sender: sender }));
    answer.headers_mut().remove(CONNECTION);
    answer.headers_mut().remove(TRANSFER_ENCODING);
    let node = HeaderValue::from_str(node.as_str()).map_err(|error| away(error.to_string()))?;
    answer.headers_mut().insert(NODE, node);
    Ok(answer)
}

/// A connection to another node, encrypted or not.
trait Line: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Line for T {}

/// Connects to where a node said that it is reached.
async fn dial(app: &App, uri: &Uri, authority: &Authority) -> Result<Box<dyn Line>, String> {
    let told = |error: std::io::Error| error.to_string();
    let host = authority.host().trim_matches(['[', ']']).to_owned();
    let encrypted = uri.scheme() == Some(&Scheme::HTTPS);
    let port = authority.port_u16().unwrap_or(if encrypted { 443 } else { 80 });
    let stream = TcpStream::connect((host.as_str(), port)).await.map_err(told)?;
    let _ = stream.set_nodelay(true);
    if !encrypted {
        return Ok(Box::new(stream));
    }
    let connector = TlsConnector::from(app.tls_between_nodes().map_err(|error| format!("{error:#}"))?);
    let name = ServerName::try_from(host).map_err(|error| error.to_string())?;
    Ok(Box::new(connector.connect(name, stream).await.map_err(told)?))
}

fn rewritten(app: &App, authority: &Authority, request: Request<Body>) -> Result<Request<Body>, ApiError> {
    let (mut head, body) = request.into_parts();
    let wrong = |_| ApiError::unavailable("the request cannot be sent on");
    let path = head.uri.path_and_query().map_or("/", |path| path.as_str());
    head.uri = path.parse().map_err(|_| ApiError::bad_request("the path cannot be read"))?;
    OURS.iter().for_each(|name| drop(head.headers.remove(name)));
    head.headers.insert(HOST, HeaderValue::from_str(authority.as_str()).map_err(wrong)?);
    head.headers.insert(FORWARDED_BY, HeaderValue::from_str(app.about.node.as_str()).map_err(wrong)?);
    head.headers.remove(FORWARDED_FOR);
    if let Some(Peer(address)) = head.extensions.get::<Peer>() {
        let address = address.to_canonical().to_string();
        head.headers.insert(FORWARDED_FOR, HeaderValue::from_str(&address).map_err(wrong)?);
    }
    head.headers.remove(TOKEN);
    if let Some(token) = app.config.cluster.token.reveal() {
        let mut token = HeaderValue::from_str(token).map_err(wrong)?;
        token.set_sensitive(true);
        head.headers.insert(TOKEN, token);
    }
    head.version = http::Version::HTTP_11;
    head.extensions.clear();
    Ok(Request::from_parts(head, body))
}

/// An answer that flows: its connection is driven by whoever reads it.
struct Flowing {
    body: Incoming,
    connection: Option<BoxFuture<'static, ()>>,
    _sender: http1::SendRequest<Body>,
}

impl HttpBody for Flowing {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if let Some(connection) = &mut self.connection
            && connection.poll_unpin(context).is_ready()
        {
            self.connection = None;
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
