//! A connection's behaviour around its answers: how it writes, what ends it, and what is known of a failure.

use std::io::ErrorKind;
use std::pin::pin;

use bytes::Bytes;
use flare_wire::{Beginning, Broken, Connection, Counted, Method, Mistake, Request, Room};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

mod support;

use support::{LIMITS, Read, Told, poll_once, run};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn request(room: Room, body: usize) -> Request {
    let beginning = Beginning::new(Method::Post, "example.com", []).unwrap();
    let mut request = Request::new(room, &beginning, |target| target.push('/'));
    request.set_body(Bytes::from(vec![b'x'; body]));
    request
}

#[test]
fn a_request_is_one_write_and_an_answer_one_read() {
    for (body, parts) in [(0, 1), (16 * 1024, 1), (16 * 1024 + 1, 2), (1 << 20, 2)] {
        let mut told = Told::new([Read::AfterWrite, Read::Bytes(OK)]);
        let (answer, reusable) =
            run(Connection::new(&mut told).exchange(request(Room::default(), body), LIMITS, |_| ())).unwrap();
        assert_eq!((answer.status, &answer.excerpt[..], reusable), (200, &b"ok"[..], true));
        let writes: Vec<_> = told.writes.iter().map(|(_, parts)| *parts).collect();
        assert_eq!(writes, [parts], "a body of {body}");
        assert!(told.reads.is_empty());
    }
}

#[test]
fn a_stream_that_takes_little_at_a_time_gets_all_of_it() {
    let whole = {
        let mut told = Told::new([Read::AfterWrite, Read::Bytes(OK)]);
        run(Connection::new(&mut told).exchange(request(Room::default(), 20_000), LIMITS, |_| ())).unwrap();
        told.wire()
    };
    for takes in [1, 2, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 65, 66, 67, 68, 69, 70, 19_999, 20_000] {
        let mut told = Told::new([Read::AfterBytes(whole.len()), Read::Bytes(OK)]);
        told.takes = takes;
        let mut connection = Connection::new(&mut told);
        let outcome = run(connection.exchange(request(Room::default(), 20_000), LIMITS, |_| ()));
        assert!(outcome.unwrap().1);
        assert_eq!(connection.written(), whole.len() as u64);
        assert!(told.wire() == whole, "{takes} at a time");
    }
}

#[test]
fn room_is_used_again() {
    let mut told = Told::new((0..3).flat_map(|_| [Read::AfterWrite, Read::Bytes(OK)]));
    let mut connection = Connection::new(&mut told);
    let mut places = Vec::new();
    for _ in 0..3 {
        let (answer, _) = {
            let request = request(connection.take_room(), 100);
            run(connection.exchange(request, LIMITS, |_| ())).unwrap()
        };
        places.push(answer.excerpt.as_ptr());
        connection.give_room(answer);
    }
    assert_eq!(connection.uses(), 3);
    places.dedup();
    assert_eq!(places.len(), 1);
}

#[test]
fn an_end_while_idle_is_seen_before_anything_is_written() {
    for end in [
        Read::Bytes(b""),
        Read::Bytes(b"HTTP/1.1 408 x\r\n\r\n"),
        Read::Fails(ErrorKind::InvalidData),
        Read::Fails(ErrorKind::UnexpectedEof),
    ] {
        let mut told = Told::new([Read::AfterWrite, Read::Bytes(OK), end]);
        let mut connection = Connection::new(&mut told);
        run(connection.exchange(request(Room::default(), 0), LIMITS, |_| ())).unwrap();
        let before = connection.written();
        let broken = run(connection.exchange(request(Room::default(), 0), LIMITS, |_| ())).unwrap_err();
        assert!(matches!(broken, Broken::Spent) && broken.closed_silently());
        assert_eq!(connection.written(), before, "nothing was sent");
    }
}

#[test]
fn an_idle_connection_resolves_when_it_ends() {
    for end in [Read::Bytes(b""), Read::Bytes(b"x"), Read::Fails(ErrorKind::ConnectionReset)] {
        let mut told = Told::new([end]);
        let mut connection = Connection::new(&mut told);
        run(connection.closed());
        run(connection.closed());
        let broken = run(connection.exchange(request(Room::default(), 0), LIMITS, |_| ())).unwrap_err();
        assert!(matches!(broken, Broken::Spent));
        assert_eq!(connection.written(), 0);
    }
}

#[test]
fn a_request_that_was_given_up_leaves_nothing_for_the_next() {
    let mut told = Told::new([Read::AfterWrite, Read::AfterWrite, Read::Bytes(OK)]);
    let mut connection = Connection::new(&mut told);
    {
        let exchange = connection.exchange(request(Room::default(), 0), LIMITS, |_| ());
        assert!(poll_once(pin!(exchange)).is_none());
    }
    assert!(matches!(
        run(connection.exchange(request(Room::default(), 0), LIMITS, |_| ())),
        Err(Broken::Spent)
    ));
    assert!(poll_once(pin!(connection.closed())).is_some());
}

#[test]
fn a_failed_write_is_told_unless_there_is_an_answer() {
    const REFUSED: &[u8] = b"HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
    let play = |reads: Vec<Read>, writes| {
        let mut told = Told::new(reads);
        (told.takes, told.writes_until_failure) = (1000, writes);
        let mut connection = Connection::new(&mut told);
        let outcome = run(connection.exchange(request(Room::default(), 100_000), LIMITS, |_| ()));
        (outcome.map(|(answer, reusable)| (answer.status, reusable)), connection.written())
    };
    let (outcome, written) = play(vec![Read::AfterWrite, Read::Bytes(REFUSED)], 3);
    assert!(matches!(outcome, Ok((413, false))), "{outcome:?}");
    assert_eq!(written, 3000);
    let (outcome, _) = play(vec![Read::AfterWrite], 3);
    assert!(
        matches!(&outcome, Err(Broken::Write(error)) if error.kind() == ErrorKind::BrokenPipe),
        "{outcome:?}"
    );
    assert!(outcome.unwrap_err().closed_silently());
    let (outcome, _) = play(vec![Read::AfterWrite, Read::Fails(ErrorKind::ConnectionReset)], 3);
    assert!(matches!(outcome, Err(Broken::Write(_))), "{outcome:?}");
}

#[test]
fn what_counts_as_closed_silently() {
    let after = |reads: Vec<Read>| {
        let mut told = Told::new(reads);
        run(Connection::new(&mut told).exchange(request(Room::default(), 0), LIMITS, |_| ())).unwrap_err()
    };
    for (read, silent) in [
        (Read::Bytes(b""), true),
        (Read::Bytes(b"HTTP/1.1 200 OK\r\n"), true),
        (Read::Fails(ErrorKind::ConnectionReset), true),
        (Read::Fails(ErrorKind::UnexpectedEof), true),
        (Read::Fails(ErrorKind::TimedOut), false),
        (Read::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n"), false),
        (Read::Bytes(b"nonsense"), false),
        (Read::Bytes(b"HTTP/1.1 101 x\r\n\r\n"), false),
    ] {
        let broken = after(vec![Read::AfterWrite, read]);
        assert_eq!(broken.closed_silently(), silent, "{broken:?}");
    }
    let cut = after(vec![
        Read::AfterWrite,
        Read::Bytes(b"HTTP/1.1 200 OK\r\n\r\nuntil the end"),
        Read::Fails(ErrorKind::UnexpectedEof),
    ]);
    assert!(
        matches!(cut, Broken::Read(_)),
        "an end that TLS did not announce may be somebody's cut: {cut:?}"
    );
    let ended = after(vec![Read::AfterWrite, Read::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n")]);
    assert!(matches!(ended, Broken::Answer(Mistake::EndedInBody)));
}

#[tokio::test]
async fn a_refusal_of_a_large_body_arrives_though_the_server_closes_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    for _ in 0..30 {
        let client = async {
            let mut connection = Connection::new(Counted::new(TcpStream::connect(address).await.unwrap()));
            connection.exchange(request(Room::default(), 20 << 20), LIMITS, |_| ()).await
        };
        let ((), outcome) = tokio::join!(refuse(&listener), client);
        let (answer, reusable) = outcome.unwrap();
        assert_eq!((answer.status, reusable), (413, false));
    }
}

async fn refuse(listener: &TcpListener) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut some = [0; 1000];
    stream.read_exact(&mut some).await.unwrap();
    stream.write_all(b"HTTP/1.1 413 x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    // What is unread when it goes makes a reset of the end.
}

#[tokio::test]
async fn a_connection_is_used_again_until_the_server_closes_it() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        for _ in 0..100 {
            let mut seen = Vec::new();
            while !seen.ends_with(b"\r\n\r\nxxxxx") {
                assert_ne!(stream.read_buf(&mut seen).await.unwrap(), 0);
            }
            stream.write_all(OK).await.unwrap();
        }
    };
    let client = async {
        let mut connection = Connection::new(Counted::new(TcpStream::connect(address).await.unwrap()));
        for _ in 0..100 {
            let request = request(connection.take_room(), 5);
            let (answer, reusable) = connection.exchange(request, LIMITS, |_| ()).await.unwrap();
            assert_eq!((answer.status, reusable), (200, true));
            connection.give_room(answer);
        }
        connection.closed().await;
        let broken = connection.exchange(request(Room::default(), 5), LIMITS, |_| ()).await.unwrap_err();
        assert!(matches!(broken, Broken::Spent));
    };
    tokio::join!(server, client);
}
