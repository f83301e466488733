//! The listener: connections in, each served by hyper within the configured bounds, until told to stop.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use flare_core::config::HttpServerConfig;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Watch, debug};

/// Serves until `stop`; then answers what has begun and returns.
pub async fn serve(
    listener: TcpListener,
    routes: Router,
    watch: Arc<Watch>,
    config: &HttpServerConfig,
    stop: CancellationToken,
) {
    let mut protocol = http1::Builder::new();
    protocol
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_timeout)
        .max_buf_size(config.header_limit.as_usize().max(8192))
        .half_close(false);
    let room = Arc::new(Semaphore::new(config.max_connections));
    let connections = TaskTracker::new();
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { break };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Too many open files, most likely: room comes back when connections end.
                tracing::warn!(error = %error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let _ = stream.set_nodelay(true);
        let routes = TowerToHyperService::new(routes.clone());
        let connected = watch.traffic.connected();
        let watch = watch.clone();
        let service = service_fn(move |mut request| {
            debug::introduce(&mut request, peer);
            let (underway, watch) = (watch.begin(&request), watch.clone());
            let answering = routes.call(request);
            async move {
                let answered = answering.await;
                if let Ok(answer) = &answered {
                    underway.answered(answer.status(), watch.clock.monotonic());
                }
                answered
            }
        });
        let connection = protocol.serve_connection(TokioIo::new(stream), service);
        let stop = stop.clone();
        connections.spawn(async move {
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = stop.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    connection.as_mut().await
                }
            };
            if let Err(error) = ended {
                tracing::debug!(error = %error, "a connection ended early");
            }
            drop((connected, permit));
        });
    }
    connections.close();
    connections.wait().await;
}
