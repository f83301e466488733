//! The same answer played to both: a script comes in, what each makes of it goes out.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use flare_wire::{Beginning, Broken, Connection, Method, Mistake, ReadLimits, Request};
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use crate::script::{Script, run};

pub const LIMITS: ReadLimits = ReadLimits { read: 100_000, keep: 90_000 };

/// What came of one request.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Answered(Answered),
    Failed(Kind),
    /// Neither an answer nor an end of it.
    Waits,
}

#[derive(Clone, PartialEq)]
pub struct Answered {
    pub status: u16,
    /// By name; those of one name in order.
    pub fields: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    /// Whether the connection was still there when nothing more came.
    pub reusable: bool,
}

impl std::fmt::Debug for Answered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (reusable {}, {} bytes)", self.status, self.reusable, self.body.len())?;
        for (name, value) in &self.fields {
            write!(f, " {name}: {}", value[..value.len().min(100)].escape_ascii())?;
        }
        write!(f, " | {}", self.body[..self.body.len().min(200)].escape_ascii())
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    NotHttp,
    TooLarge,
    EndedInHead,
    EndedInBody,
    BadBody,
    /// The connection was not to be used any more.
    Spent,
    Io(io::ErrorKind),
    Other(String),
}

/// Plays a script to ours, a request after the other while the connection lasts.
pub fn ours(script: Script, requests: usize) -> Vec<Outcome> {
    let beginning = Beginning::new(Method::Get, "example.com", []).unwrap();
    let mut connection = Connection::new(script);
    let mut outcomes = Vec::new();
    while outcomes.len() < requests {
        let request = Request::new(connection.take_room(), &beginning, |target| target.push('/'));
        let mut heads = 0;
        let outcome = match run(connection.exchange(request, LIMITS, |_| heads += 1)) {
            None => Outcome::Waits,
            Some(Err(broken)) => Outcome::Failed(our_kind(broken)),
            Some(Ok((answer, reusable))) => {
                assert_eq!(heads, 1, "an answer has one head");
                let fields = answer.fields.iter().map(|(name, value)| (name.to_owned(), value.to_vec()));
                let mut fields: Vec<_> = fields.collect();
                fields.sort_by(|one, other| one.0.cmp(&other.0));
                let last = outcomes.len() + 1 == requests;
                let reusable = reusable && !(last && run(connection.closed()).is_some());
                let (status, body) = (answer.status, answer.excerpt.clone());
                connection.give_room(answer);
                Outcome::Answered(Answered { status, fields, body, reusable })
            }
        };
        let goes_on = matches!(&outcome, Outcome::Answered(answered) if answered.reusable);
        outcomes.push(outcome);
        if !goes_on {
            break;
        }
    }
    outcomes
}

fn our_kind(broken: Broken) -> Kind {
    match broken {
        Broken::Write(error) | Broken::Read(error) => Kind::Io(error.kind()),
        Broken::Spent => Kind::Spent,
        Broken::Answer(mistake) => match mistake {
            Mistake::Head(_) | Mistake::Status | Mistake::Length | Mistake::Encoding | Mistake::Upgrade => {
                Kind::NotHttp
            }
            Mistake::HeadTooLarge => Kind::TooLarge,
            Mistake::Chunk(_) | Mistake::Trailers(_) => Kind::BadBody,
            Mistake::EndedInHead => Kind::EndedInHead,
            Mistake::EndedInBody => Kind::EndedInBody,
        },
    }
}

type Driver = Pin<Box<http1::Connection<TokioIo<Script>, Empty<Bytes>>>>;

/// Plays it to hyper's client, driven by whoever asks, with the same limits.
pub fn theirs(script: Script, requests: usize) -> Vec<Outcome> {
    let handshake =
        http1::Builder::new().max_buf_size(flare_wire::HEAD_LIMIT).handshake(TokioIo::new(script));
    let (mut sender, driver) = run(handshake).expect("it says nothing").expect("it does nothing");
    let mut driver = Some(Box::pin(driver));
    let mut outcomes = Vec::new();
    while outcomes.len() < requests {
        let outcome = match run(one(&mut sender, &mut driver)) {
            None => Outcome::Waits,
            Some(Err(error)) => Outcome::Failed(their_kind(&error)),
            Some(Ok((head, body, drained))) => {
                let mut fields: Vec<_> = Vec::new();
                for (name, value) in &head.headers {
                    fields.push((name.to_string(), value.as_bytes().to_vec()));
                }
                fields.sort_by(|one, other| one.0.cmp(&other.0));
                let mut reusable = drained && driver.is_some();
                if reusable && outcomes.len() + 1 == requests {
                    run(poll_fn(|cx| {
                        drive(&mut driver, cx);
                        if driver.is_none() { Poll::Ready(()) } else { Poll::Pending }
                    }));
                    reusable = driver.is_some();
                }
                Outcome::Answered(Answered { status: head.status.as_u16(), fields, body, reusable })
            }
        };
        let goes_on = matches!(&outcome, Outcome::Answered(answered) if answered.reusable);
        outcomes.push(outcome);
        if !goes_on {
            break;
        }
    }
    outcomes
}

type Head = hyper::http::response::Parts;

async fn one(
    sender: &mut http1::SendRequest<Empty<Bytes>>,
    driver: &mut Option<Driver>,
) -> Result<(Head, Vec<u8>, bool), hyper::Error> {
    poll_fn(|cx| {
        drive(driver, cx);
        sender.poll_ready(cx)
    })
    .await?;
    let request = hyper::Request::get("/").header("host", "example.com").body(Empty::new()).unwrap();
    let response = {
        let mut response = pin!(sender.send_request(request));
        poll_fn(|cx| {
            drive(driver, cx);
            response.as_mut().poll(cx)
        })
        .await?
    };
    let (head, mut body) = response.into_parts();
    let (mut kept, mut read) = (Vec::new(), 0);
    loop {
        let frame = {
            let mut frame = pin!(body.frame());
            poll_fn(|cx| {
                drive(driver, cx);
                frame.as_mut().poll(cx)
            })
            .await
        };
        let Some(frame) = frame else { return Ok((head, kept, true)) };
        if let Ok(data) = frame?.into_data() {
            kept.extend_from_slice(&data[..data.len().min(LIMITS.keep - kept.len())]);
            read += data.len();
            if read > LIMITS.read {
                return Ok((head, kept, false));
            }
        }
    }
}

fn drive(driver: &mut Option<Driver>, cx: &mut Context<'_>) {
    if let Some(running) = driver
        && running.as_mut().poll(cx).is_ready()
    {
        *driver = None;
    }
}

fn their_kind(error: &hyper::Error) -> Kind {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<io::Error>());
    match cause.map(io::Error::kind) {
        _ if error.is_parse_too_large() => Kind::TooLarge,
        _ if error.is_parse() => Kind::NotHttp,
        _ if error.is_incomplete_message() => Kind::EndedInHead,
        _ if error.is_closed() || error.is_canceled() => Kind::Spent,
        Some(io::ErrorKind::UnexpectedEof) => Kind::EndedInBody,
        Some(io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData) => Kind::BadBody,
        Some(kind) => Kind::Io(kind),
        None => Kind::Other(format!("{error:?}")),
    }
}
