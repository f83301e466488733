//! A server that plays the services for what no emulator does: requests come in, and a test says what is answered.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// What is answered.
pub enum Answer {
    /// A status and a body.
    Says(u16, Value),
    /// Nothing: the connection is closed.
    HangsUp,
}

/// The result of an operation.
pub fn gives(result: Value) -> Answer {
    Answer::Says(200, result)
}

/// A refusal.
pub fn refuses(status: u16, code: &str) -> Answer {
    Answer::Says(status, json!({"__type": code, "message": "as played"}))
}

/// What was asked, by operation.
type Asked = Arc<Mutex<Vec<(String, Value)>>>;

/// The server. It ends with this.
pub struct Played {
    /// Where it listens.
    pub address: String,
    asked: Asked,
    _tasks: JoinSet<()>,
}

impl Played {
    /// One that answers an operation and its input so.
    pub async fn start(answer: impl Fn(&str, &Value) -> Answer + Send + Sync + 'static) -> Played {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it is bound").to_string();
        let asked = Asked::default();
        let (answer, noted) = (Arc::new(answer), asked.clone());
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, noted) = (answer.clone(), noted.clone());
                connections.spawn(async move {
                    // Whoever asked may be gone.
                    let _ = serve(stream, &*answer, &noted).await;
                });
            }
        });
        Played { address, asked, _tasks: tasks }
    }

    /// The inputs of all requests for an operation, in their order.
    pub fn asked(&self, operation: &str) -> Vec<Value> {
        let asked = self.asked.lock();
        asked.iter().filter(|(of, _)| of == operation).map(|(_, input)| input.clone()).collect()
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: &(impl Fn(&str, &Value) -> Answer + Send + Sync),
    asked: &Asked,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let field = |name: &str| {
        let mut lines = head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(field, _)| *field == name).map(|(_, value)| value.to_owned())
    };
    let length: usize = field("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    let input: Value = serde_json::from_slice(&body)?;
    let target = field("x-amz-target").unwrap_or_default();
    let operation = target.rsplit('.').next().unwrap_or_default().to_owned();
    let said = answer(&operation, &input);
    asked.lock().push((operation, input));
    if let Answer::Says(status, body) = said {
        let body = body.to_string();
        let head =
            format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(format!("{head}{body}").as_bytes()).await?;
    }
    Ok(())
}
