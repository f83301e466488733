//! What the tests of this engine share.

#![allow(dead_code, reason = "each program uses some of it")]

pub mod proxy;
mod server;

#[allow(unused_imports, reason = "each program uses some of it")]
pub use server::{fresh_schema, own_server, server};

/// Where a server is, as `host:port`.
pub fn address(url: &str) -> String {
    let config: tokio_postgres::Config = url.parse().expect("a url");
    match &config.get_hosts()[0] {
        tokio_postgres::config::Host::Tcp(host) => format!("{host}:{}", config.get_ports()[0]),
        other => panic!("the tests need a server over TCP, not {other:?}"),
    }
}

/// Opens a store under a name of its own, by which its sessions are known.
pub fn open(options: &flare_postgresql::Options) -> (flare_postgresql::Postgresql, String) {
    let name = fresh_schema();
    let mut named = options.clone();
    named.url = format!("{}?application_name={name}", options.url);
    (flare_postgresql::Postgresql::open(named).expect("the server is there"), name)
}

/// Ends a process as a crash would, and waits until the server has noticed: until then it may finish what it was asked.
pub async fn crash(postgresql: flare_postgresql::Postgresql, url: &str, name: &str) {
    postgresql.close();
    let (client, connection) =
        tokio_postgres::connect(url, tokio_postgres::NoTls).await.expect("the server is there");
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(connection);
    loop {
        let left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1";
        let left: i64 = client.query_one(left, &[&name]).await.expect("it answers").get(0);
        if left == 0 {
            return;
        }
        tokio::task::yield_now().await;
    }
}
