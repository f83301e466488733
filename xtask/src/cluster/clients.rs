//! The clients: a few hosts in the hub, each of many subscriptions, whose number is in the path. They take a moment to answer, fail now
//! and then, and put everything on their accounts.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use flare_promises::beliefs::Ending;
use flare_promises::dice::Dice;
use flare_promises::told::{Payload, Told};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::account::Accounts;
use super::network::Place;
use crate::bench::{find, length, now};
use crate::stress::Connection;

const HOSTS: usize = 8;

/// How clients behave.
#[derive(Clone, Copy, Debug)]
pub struct Manners {
    /// In so many of a hundred cases with 503.
    pub fails: u64,
    /// They take so long at most.
    pub dawdles: Duration,
}

/// All clients; they serve until this is dropped.
pub struct Clients {
    pub shared: Arc<Shared>,
    hosts: Vec<String>,
    _serving: JoinSet<()>,
}

pub struct Shared {
    accounts: Mutex<Accounts>,
    manners: Mutex<Manners>,
    dice: Mutex<Dice>,
}

impl Shared {
    pub fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().expect("nobody panics with the accounts in hand")
    }

    /// From now on they behave so.
    pub fn behave(&self, manners: Manners) {
        *self.manners.lock().expect("nobody panics with the manners in hand") = manners;
    }

    /// How the next request is answered: when, and whether with success.
    fn draw(&self) -> (Duration, bool) {
        let manners = *self.manners.lock().expect("nobody panics with the manners in hand");
        let mut dice = self.dice.lock().expect("nobody panics with the dice in hand");
        let after = Duration::from_micros(dice.below(manners.dawdles.as_micros() as u64 + 1));
        (after, !dice.percent(manners.fails))
    }
}

impl Clients {
    pub async fn start(dice: Dice, manners: Manners) -> io::Result<Clients> {
        let shared = Arc::new(Shared {
            accounts: Mutex::default(),
            manners: Mutex::new(manners),
            dice: Mutex::new(dice),
        });
        let (mut hosts, mut serving) = (Vec::new(), JoinSet::new());
        for _ in 0..HOSTS {
            let listener = TcpListener::bind((Place::Hub.address(), 0)).await?;
            hosts.push(listener.local_addr()?.to_string());
            serving.spawn(accept(listener, shared.clone()));
        }
        Ok(Clients { shared, hosts, _serving: serving })
    }

    /// Where a client is.
    pub fn url(&self, client: usize) -> String {
        format!("http://{}/{client}/{{id}}", self.hosts[client % self.hosts.len()])
    }

    pub fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.shared.accounts()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            Ok((stream, from)) = listener.accept() => {
                let (shared, from) = (shared.clone(), from.ip().to_string());
                connections.spawn(async move {
                    // Whoever is killed leaves its connections in the middle.
                    let _ = serve(stream, &from, &shared).await;
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, from: &str, shared: &Shared) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (connection, mut stream) = Connection::of(stream)?;
    let connection = Arc::new(connection);
    let mut buffer = Vec::new();
    let served = async {
        while let Some((client, told)) = read(&mut stream, &mut buffer, shared).await? {
            let number = shared.accounts().begins(client, &told, from, &connection);
            let (after, well) = shared.draw();
            tokio::time::sleep(after).await;
            let ending = if well { Ending::Delivered } else { Ending::Failed };
            shared.accounts().ends(client, number, &told, ending);
            let status = if well { "200 OK" } else { "503 Busy" };
            stream.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n").as_bytes()).await?;
        }
        Ok(())
    };
    let served = served.await;
    connection.close();
    served
}

/// The next request: whose it is, and what it tells.
async fn read(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    shared: &Shared,
) -> io::Result<Option<(usize, Told)>> {
    loop {
        if let Some(head) = find(buffer, b"\r\n\r\n") {
            let text = String::from_utf8_lossy(&buffer[..head]).into_owned();
            let end = head + 4 + length(&text).unwrap_or(0);
            if buffer.len() >= end {
                let header = |name: &str| {
                    let values = text.lines().skip(1).filter_map(|line| line.split_once(':'));
                    let mut found = values.filter(|(key, _)| key.eq_ignore_ascii_case(name));
                    found.next().map(|(_, value)| value.trim().to_owned())
                };
                let client = text.split('/').nth(1).and_then(|number| number.parse::<usize>().ok());
                let told = Told::read(header, &buffer[head + 4..end]);
                buffer.drain(..end);
                match (client, told) {
                    (Some(client), Ok(told)) => {
                        note_latency(&told, shared);
                        return Ok(Some((client, told)));
                    }
                    (_, told) => {
                        shared.accounts().wrong(format!("a request that is none: {:?}: {text}", told.err()));
                        return Ok(None);
                    }
                }
            }
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

/// A document may say when it was put.
fn note_latency(told: &Told, shared: &Shared) {
    if let Payload::Whole(document) = &told.payload
        && let Some(sent) = document["sentAtNs"].as_u64()
    {
        shared.accounts().latencies.push(now().saturating_sub(Duration::from_nanos(sent)));
    }
}
