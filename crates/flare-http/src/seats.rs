//! In: a listener. Out: its connections, each with the place that it takes. Places are bounded: in all, for one address,
//! and a few beyond for those who only ask how the node fares.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use flare_core::config::HttpServerConfig;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What may be asked where there is no place left.
const VITAL: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

/// How many may be connected.
pub struct Seats {
    /// Bound: `http.server.max-connections`. When full: the spare ones.
    all: Arc<Semaphore>,
    /// Bound: `http.server.spare-connections`. When full: whoever connects waits to be accepted.
    spare: Arc<Semaphore>,
    peers: Peers,
}

/// A place that is taken, until it is dropped.
pub struct Seat {
    /// Why only the vital is answered here.
    pub limited: Option<&'static str>,
    _place: OwnedSemaphorePermit,
    _peer: Option<Peer>,
}

impl Seat {
    /// Why a path is not answered from this place.
    pub fn refuses(&self, path: &str) -> Option<&'static str> {
        self.limited.filter(|_| !VITAL.contains(&path))
    }
}

impl Seats {
    /// As many as configured.
    pub fn new(config: &HttpServerConfig) -> Seats {
        Seats {
            all: Arc::new(Semaphore::new(config.max_connections)),
            spare: Arc::new(Semaphore::new(config.spare_connections)),
            peers: Peers { most: config.connections_per_peer, open: Arc::default() },
        }
    }

    /// The next connection, once there is a place for it. `None`: there was one, and its address has too many.
    pub async fn accept(&self, listener: &TcpListener) -> io::Result<Option<(TcpStream, SocketAddr, Seat)>> {
        let place = self.place().await?;
        match listener.accept().await {
            Ok((stream, peer)) => {
                let _ = stream.set_nodelay(true);
                Ok(self.seat(place, peer.ip()).map(|seat| (stream, peer, seat)))
            }
            Err(error) => {
                // Too many open files, most likely: room comes back when connections end.
                tracing::warn!(error = %error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                Err(error)
            }
        }
    }

    /// A place, and whether it is a spare one.
    async fn place(&self) -> io::Result<(OwnedSemaphorePermit, bool)> {
        let (all, spare) = (self.all.clone(), self.spare.clone());
        let (place, is_spare) = tokio::select! {
            biased;
            place = all.acquire_owned() => (place, false),
            place = spare.acquire_owned() => (place, true),
        };
        Ok((place.map_err(io::Error::other)?, is_spare))
    }

    fn seat(&self, (place, is_spare): (OwnedSemaphorePermit, bool), peer: IpAddr) -> Option<Seat> {
        let Some(peer) = self.peers.open(peer) else {
            // One who has too many may still ask how the node fares.
            drop(place);
            let place = self.spare.clone().try_acquire_owned().ok()?;
            let limited = "this address has too many connections open (http.server.connections-per-peer)";
            return Some(Seat { limited: Some(limited), _place: place, _peer: None });
        };
        // While nobody came, another may have left.
        let (place, is_spare) = match is_spare.then(|| self.all.clone().try_acquire_owned()) {
            Some(Ok(free)) => (free, false),
            _ => (place, is_spare),
        };
        let limited = is_spare.then_some("too many connections are open (http.server.max-connections)");
        Some(Seat { limited, _place: place, _peer: Some(peer) })
    }
}

/// Who has how many connections.
struct Peers {
    /// 0: as many as there are places.
    most: usize,
    /// Bound: the places.
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Peers {
    /// One more, unless that is too many.
    fn open(&self, address: IpAddr) -> Option<Peer> {
        let address = address.to_canonical();
        let mut open = self.open.lock();
        let count = open.entry(address).or_default();
        if self.most > 0 && *count >= self.most {
            return None;
        }
        *count += 1;
        Some(Peer { address, open: self.open.clone() })
    }
}

/// One connection of an address.
struct Peer {
    address: IpAddr,
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
            }
        }
    }
}
