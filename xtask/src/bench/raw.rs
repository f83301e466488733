//! The yardstick: a plain hyper client that sends the same bodies straight to the sink, with no storage, no order and no
//! retries. In: an address. Out: requests per second of two threads, or the processor time of one request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;

use super::drive::document;
use super::sink::now;

/// Requests per second of two threads.
pub async fn per_second(address: &str, connections: usize, requests: u64) -> anyhow::Result<f64> {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let address = address.to_owned();
    on_a_thread(move || {
        let runtime = runtime()?;
        let began = Instant::now();
        runtime.block_on(send_all(&address, connections, requests))?;
        Ok(requests as f64 / began.elapsed().as_secs_f64())
    })
    .await
}

/// Processor time of each request, in microseconds, on a thread that does nothing else.
pub async fn micros(address: &str, connections: usize, requests: u64) -> anyhow::Result<f64> {
    let address = address.to_owned();
    on_a_thread(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let before = thread_time()?;
        runtime.block_on(send_all(&address, connections, requests))?;
        Ok((thread_time()? - before).as_secs_f64() * 1e6 / requests as f64)
    })
    .await
}

async fn on_a_thread<T: Send + 'static>(
    measure: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
) -> anyhow::Result<T> {
    let (reply, answer) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = reply.send(measure());
    });
    answer.await.context("the plain client does not panic")?
}

/// What this thread has used of the processor, which Linux counts in nanoseconds.
fn thread_time() -> anyhow::Result<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(Duration::from_nanos(text.split(' ').next().context("a time")?.parse()?))
}

async fn send_all(address: &str, connections: usize, requests: u64) -> anyhow::Result<()> {
    let next = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..connections {
        tasks.spawn(send_in_turn(address.to_owned(), next.clone(), requests));
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(())
}

async fn send_in_turn(address: String, next: Arc<AtomicU64>, requests: u64) -> anyhow::Result<()> {
    let mut connection = open(&address).await?;
    loop {
        let id = next.fetch_add(1, Ordering::Relaxed);
        if id >= requests {
            return Ok(());
        }
        let url = format!("http://origin.example/documents/{id}");
        let body = format!(
            "{{\"id\":\"{url}\",\"action\":\"create\",\"revision\":1,\"updatedAt\":\"2026-01-01T00:00:00.000Z\",\"document\":{}}}",
            document(id, 1, now())
        );
        let request = Request::post(format!("/raw/{id}"))
            .header("host", &address)
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))?;
        let answer = connection.send_request(request).await.context("sending")?;
        ensure!(answer.status().is_success(), "the sink answered {}", answer.status());
        answer.into_body().collect().await.context("reading the answer")?;
        connection.ready().await.context("waiting for the connection")?;
    }
}

async fn open(address: &str) -> anyhow::Result<SendRequest<Full<Bytes>>> {
    let stream = tokio::net::TcpStream::connect(address).await.context("connecting to the sink")?;
    stream.set_nodelay(true)?;
    let (connection, driver) = handshake(TokioIo::new(stream)).await.context("beginning")?;
    tokio::spawn(async move {
        let _ = driver.await;
    });
    Ok(connection)
}
