//! The answers that are played: what servers really say, what they should not, and what somebody might try.

use flare_wire::{EXTENSIONS_LIMIT, HEAD_LIMIT, MAX_FIELDS, TRAILERS_LIMIT};

/// Those that are each of their own kind.
pub fn distinct() -> Vec<Vec<u8>> {
    let mut cases: Vec<Vec<u8>> = WRITTEN.iter().map(|text| text.as_bytes().to_vec()).collect();
    cases.extend(combined());
    cases.extend(at_the_limits());
    cases
}

/// All of them.
pub fn all() -> Vec<Vec<u8>> {
    [distinct(), with_every_byte()].concat()
}

/// Those that are short enough to be twisted further.
pub fn short() -> Vec<Vec<u8>> {
    all().into_iter().filter(|answer| answer.len() <= 600).collect()
}

/// Written by hand.
const WRITTEN: &[&str] = &[
    // Nothing, and nothing that is HTTP.
    "",
    "\r\n",
    "\n",
    "\r",
    "\r\n\r\n\r\n",
    "hello\r\n\r\n",
    "SSH-2.0-OpenSSH_9.6\r\n",
    "220 mail.example.com ESMTP\r\n",
    "<html><body>400</body></html>",
    "\x16\x03\x01\x02\x00\x01\x00",
    "HTTP/2 200\r\n\r\n",
    "HTTP/0.9 200 OK\r\n\r\n",
    "HTTP/1.2 200 OK\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.10 200 OK\r\n\r\n",
    "http/1.1 200 OK\r\n\r\n",
    "HTTP /1.1 200 OK\r\n\r\n",
    "HTTP/1.1\r\n\r\n",
    "HTTP/1.1 \r\n\r\n",
    "HTTP/1.1  200 OK\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 20 OK\r\n\r\n",
    "HTTP/1.1 2000 OK\r\n\r\n",
    "HTTP/1.1 2x0 OK\r\n\r\n",
    "HTTP/1.1 -20 OK\r\n\r\n",
    "HTTP/1.1 000 x\r\n\r\n",
    "HTTP/1.1 099 x\r\n\r\n",
    "POST / HTTP/1.1\r\nhost: x\r\n\r\n",
    // Statuses.
    "HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 \r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200\ncontent-length: 0\n\n",
    "HTTP/1.1 200 \t odd \u{e9} reason!\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 O\0K\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 O\rK\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 600 x\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 999 x\r\ncontent-length: 1\r\n\r\nz",
    "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
    "HTTP/1.1 101 Switching Protocols\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 204 No Content\r\n\r\n",
    "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n",
    "HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello",
    "HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\netag: \"x\"\r\ncontent-length: 1234\r\n\r\n",
    "HTTP/1.1 304 Not Modified\r\ncontent-length: 1, 2\r\n\r\n",
    "HTTP/1.1 205 Reset Content\r\ncontent-length: 0\r\n\r\n",
    // Words in between.
    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 100 Continue\r\n\r\n",
    "HTTP/1.1 100 Continue\r\n\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 204 x\r\n\r\n",
    "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nserver: x\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 100 Continue\r\ncontent-length: 5\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 100 Continue\r\nconnection: close\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.0 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 199 x\r\n\r\nHTTP/1.0 200 OK\r\n\r\nold",
    "HTTP/1.1 100 Continue\r\n\r\nnonsense\r\n\r\n",
    "HTTP/1.1 100 Continue\r\nHTTP/1.1 200 OK\r\n\r\n",
    // Before the head.
    "\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "\n\n\r\n\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "\rHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    " HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "\u{feff}HTTP/1.1 200 OK\r\n\r\n",
    // Fields.
    "HTTP/1.1 200 OK\r\nServer: x\r\nX-A: 1\r\nx-a: 2\r\nX-a:3\r\nContent-Length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nx:\r\ny: \r\nz:\t\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nx: a  b \t \r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\nx: a\ncontent-length: 2\n\nok",
    "HTTP/1.1 200 OK\r\nx: a\ncontent-length: 2\r\n\nok",
    "HTTP/1.1 200 OK\r\nx : a\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\n x: a\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nx: a\r\n folded\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nno colon\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\n: a\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nx(y): a\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\n\u{e9}: a\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nx: \u{e9}\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nx: a\rb\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nx: a\r\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\nset-cookie: a=b; Path=/\r\nset-cookie: c=d\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 429 Too Many Requests\r\nretry-after: 120\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r",
    "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\rx",
    // Lengths.
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhell",
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello world",
    "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 00005\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 5,5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 5, 6\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 6, 5, 6\r\n\r\nhello!",
    "HTTP/1.1 200 OK\r\ncontent-length: 5,\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: ,5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length:\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: +5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: -5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 5.0\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 5 5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 0x5\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: \u{665}\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 9223372036854775808\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551613\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551614\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551615\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551616\r\n\r\nhello",
    "HTTP/1.1 200 OK\r\ncontent-length: 99999999999999999999999999\r\n\r\nhello",
    // Until the connection ends.
    "HTTP/1.1 200 OK\r\n\r\n",
    "HTTP/1.1 200 OK\r\n\r\nall of it",
    "HTTP/1.0 200 OK\r\n\r\nall of it",
    "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n\r\nall of it",
    "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.0 204 No Content\r\ntransfer-encoding: chunked\r\nconnection: keep-alive\r\n\r\n",
    // Encodings.
    "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: identity\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, gzip\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ntransfer-encoding: gzip\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: xchunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: \"chunked\"\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: \tCHUNKED \r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: \u{e9}, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked,\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer-encoding:\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked;q=1\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ncontent-length: 3, 4\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    "HTTP/1.1 200 OK\r\ntransfer_encoding: chunked\r\ncontent-length: 2\r\n\r\nok",
    // The connection.
    "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nConnection: CLOSE\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nconnection: keep-alive, close\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nconnection: close\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nconnection: closed\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nconnection: \"close\"\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nconnection: close \u{e9}\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nconnection: close, \u{e9}\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.0 200 OK\r\nconnection: keep-alive\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
    "HTTP/1.1 200 OK\r\nproxy-connection: close\r\nkeep-alive: timeout=5\r\ncontent-length: 2\r\n\r\nok",
];

const CHUNKED: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

/// Bodies in chunks, and what is no chunk.
const CHUNKS: &[&str] = &[
    "0\r\n\r\n",
    "2\r\nok\r\n0\r\n\r\n",
    "1\r\no\r\n1\r\nk\r\n0\r\n\r\n",
    "2\r\nok\r\n0\r\n\r\nmore",
    "2\r\nok\r\n0\r\n\r",
    "2\r\nok\r\n0\r\n",
    "2\r\nok\r\n0",
    "2\r\nok\r\n",
    "2\r\no",
    "2\r\nok",
    "2",
    "",
    "02\r\nok\r\n00000\r\n\r\n",
    "A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n",
    "2;x\r\nok\r\n0;y=z\r\n\r\n",
    "2 ; x = \"\u{e9};\"\r\nok\r\n0\t \r\n\r\n",
    "2;\0\r\nok\r\n0\r\n\r\n",
    "2;a\nb\r\nok\r\n0\r\n\r\n",
    "2;a\rb\r\nok\r\n0\r\n\r\n",
    "2 2\r\nok\r\n0\r\n\r\n",
    " 2\r\nok\r\n0\r\n\r\n",
    "2\nok\n0\n\n",
    "2\rok",
    "2\r\nok0\r\n\r\n",
    "2\r\nok\n0\r\n\r\n",
    "2\r\nok\rx0\r\n\r\n",
    "2\r\nok!\r\n0\r\n\r\n",
    "3\r\nok\r\n0\r\n\r\n",
    "x\r\nok\r\n0\r\n\r\n",
    "-2\r\nok\r\n0\r\n\r\n",
    "0x2\r\nok\r\n0\r\n\r\n",
    "\r\nok",
    "ffffffffffffffff\r\nok",
    "10000000000000000\r\nok",
    "00000000000000000000000002\r\nok\r\n0\r\n\r\n",
    "0\r\nx: y\r\n\r\n",
    "0\r\nx: y\r\nz: a, b\r\n\r\n",
    "2\r\nok\r\n0\r\nx: y\r\n\r\nmore",
    "0\r\nx: y\r\n",
    "0\r\nx: y",
    "0\r\nx\r\n\r\n",
    "0\r\n: y\r\n\r\n",
    "0\r\nx : y\r\n\r\n",
    "0\r\nx: y\nz: a\r\n\r\n",
    "0\r\nx: y\n\nz: a\r\n\r\n",
    "0\r\nx: y\rz: a\r\n\r\n",
    "0\r\nx: \0\r\n\r\n",
    "0\r\n folded\r\n\r\n",
    "0\r\nx: y\r\n folded\r\n\r\n",
    "0\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n",
    "0\r\n\rx",
    "0\r\n\n",
    "0\r\nx: \u{e9}\r\n\r\n",
];

/// Every kind of beginning with every kind of body.
fn combined() -> Vec<Vec<u8>> {
    let mut cases: Vec<Vec<u8>> =
        CHUNKS.iter().map(|chunks| format!("{CHUNKED}{chunks}").into_bytes()).collect();
    for version in ["1.0", "1.1"] {
        for status in [200, 202, 204, 301, 304, 410, 413, 429, 500, 503] {
            for connection in ["", "connection: close\r\n", "Connection: Keep-Alive\r\n"] {
                for body in [
                    "content-length: 2\r\n\r\nok",
                    "\r\nok",
                    "transfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
                ] {
                    cases.push(format!("HTTP/{version} {status} x\r\n{connection}{body}").into_bytes());
                }
            }
        }
    }
    cases
}

/// Every byte, in a name, a value, a status line, a size of a chunk.
pub fn with_every_byte() -> Vec<Vec<u8>> {
    let mut cases = Vec::new();
    for byte in (0..=u8::MAX).filter(|byte| !byte.is_ascii_alphanumeric()) {
        for (before, after) in [
            ("HTTP/1.1 200 O", "K\r\ncontent-length: 0\r\n\r\n"),
            ("HTTP/1.1 200 OK\r\nx", "y: z\r\ncontent-length: 0\r\n\r\n"),
            ("HTTP/1.1 200 OK\r\nx: y", "z\r\ncontent-length: 0\r\n\r\n"),
            ("HTTP/1.1 200 OK\r\ncontent-length: 1", "\r\n\r\nx"),
            ("HTTP/1.1 200 OK\r\nconnection: close", "\r\ncontent-length: 0\r\n\r\n"),
            ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2", "\r\nok\r\n0\r\n\r\n"),
        ] {
            cases.push([before.as_bytes(), &[byte], after.as_bytes()].concat());
        }
    }
    cases
}

/// A little below and a little above what is allowed.
fn at_the_limits() -> Vec<Vec<u8>> {
    let mut cases = Vec::new();
    let padded = |start: &str, long: usize, end: &str| {
        let mut case = start.as_bytes().to_vec();
        case.resize(long - end.len(), b'x');
        case.extend_from_slice(end.as_bytes());
        case
    };
    for long in [HEAD_LIMIT - 1, HEAD_LIMIT, HEAD_LIMIT + 1, 3 * HEAD_LIMIT] {
        cases.push(padded("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx: ", long, "\r\n\r\n"));
        cases.push(padded("HTTP/1.1 200 ", long, "\r\n\r\n"));
    }
    for count in [MAX_FIELDS - 1, MAX_FIELDS] {
        let fields = "x: y\r\n".repeat(count);
        cases.push(format!("HTTP/1.1 200 OK\r\n{fields}content-length: 0\r\n\r\n").into_bytes());
        cases.push(format!("{CHUNKED}0\r\n{fields}x: y\r\n\r\n").into_bytes());
    }
    for long in [EXTENSIONS_LIMIT - 1, EXTENSIONS_LIMIT] {
        cases.push(format!("{CHUNKED}1;{}\r\na\r\n0\r\n\r\n", "x".repeat(long)).into_bytes());
    }
    for long in [TRAILERS_LIMIT - 10, TRAILERS_LIMIT] {
        cases.push(format!("{CHUNKED}0\r\nx: {}\r\n\r\n", "x".repeat(long)).into_bytes());
    }
    for long in [99_999, 100_000, 100_001, 150_000] {
        let body = "x".repeat(long);
        cases.push(format!("HTTP/1.1 200 OK\r\ncontent-length: {long}\r\n\r\n{body}").into_bytes());
        cases.push(format!("HTTP/1.1 200 OK\r\n\r\n{body}").into_bytes());
        cases.push(format!("{CHUNKED}{long:x}\r\n{body}\r\n0\r\n\r\n").into_bytes());
    }
    let hints = format!("HTTP/1.1 103 x\r\nx: {}\r\n\r\n", "x".repeat(1000));
    for count in [50, 70] {
        cases.push(
            format!("{}HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", hints.repeat(count)).into_bytes(),
        );
    }
    cases
}
