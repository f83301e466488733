//! How clients answer: requests come in as they arrive; each is processed, or not, and answered, or not, as the mood of
//! its client says.

use std::sync::Arc;
use std::time::Duration;

use flare_promises::beliefs::Ending;
use flare_promises::mood::{Kind, Reply};
use tokio::sync::mpsc;

use crate::line::{Arrival, Closed};
use crate::stage::Stage;

/// Serves all clients, for as long as there is a network.
pub async fn serve(stage: Arc<Stage>, mut arrivals: mpsc::UnboundedReceiver<Arrival>) {
    while let Some(arrival) = arrivals.recv().await {
        let reply = {
            let mut inside = stage.lock();
            let client = &mut inside.clients[arrival.client];
            Reply::draw(client.mood, &mut client.dice)
        };
        tokio::task::spawn_local(answer(stage.clone(), arrival, reply));
    }
}

async fn answer(stage: Arc<Stage>, arrival: Arrival, reply: Reply) {
    let Arrival { client, request, told, line } = arrival;
    let way = Duration::from_millis(stage.lock().dice.below(3));
    tokio::time::sleep(way).await;
    if let Kind::Hang { late } = reply.kind {
        line.left().await;
        if late {
            tokio::time::sleep(Duration::from_millis(30)).await;
            stage.lock().processes_late(client, &told);
        }
        return;
    }
    if line.is_gone() {
        // The request lies in the network, and is read all the same.
        if reply.processes {
            stage.lock().processes_late(client, &told);
        }
        return;
    }
    if reply.processes {
        let mut inside = stage.lock();
        inside.processes_request(client, request, &told);
        if matches!(reply.kind, Kind::Status { .. }) && reply.kind.ending() == Ending::Failed {
            inside.denies(client, &told);
        }
    }
    tokio::time::sleep(reply.after).await;
    let ending = reply.kind.ending();
    let (text, ending, closed) = match reply.kind {
        Kind::Status { status, retry_after } => {
            let more = retry_after.map_or(String::new(), |seconds| format!("retry-after: {seconds}\r\n"));
            let text = format!("HTTP/1.1 {status} So\r\ncontent-length: 0\r\n{more}\r\n");
            (text, Some(ending), None)
        }
        Kind::Close => {
            let text = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
            (text.to_owned(), Some(ending), Some(Closed::Properly))
        }
        Kind::CloseSilently => {
            let text = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            (text.to_owned(), Some(ending), Some(Closed::Properly))
        }
        Kind::Garbage => ("there is no such thing\r\n\r\n".to_owned(), None, Some(Closed::Properly)),
        Kind::Half => {
            ("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf".to_owned(), None, Some(Closed::Properly))
        }
        Kind::Drop | Kind::Hang { .. } => (String::new(), None, Some(Closed::ByReset)),
    };
    stage.note(|| {
        format!(
            "client {client} answers #{request}: {:?}, {:?}",
            reply.kind,
            ending.unwrap_or(Ending::Failed)
        )
    });
    line.answer(text.as_bytes(), ending, closed);
}
