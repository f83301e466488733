//! In: the `traceparent` and `tracestate` of a request, by W3C Trace Context. Out: the trace that a change belongs to, and
//! the same two headers for the next one. Pure.

use std::fmt::{self, Write as _};
use std::sync::Arc;
use std::time::Duration;

use flare_wire::{Name, Request, Value};
use http::header::{HeaderMap, HeaderName, HeaderValue};

pub(crate) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(crate) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The longest `tracestate` that is passed on; the standard asks for at least this. A longer one is left out.
const STATE_LIMIT: usize = 512;

/// A trace, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId(pub u128);

/// A span within a trace, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanId(pub u64);

/// What is said of a whole trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u8);

impl Flags {
    const SAMPLED: u8 = 1;
    /// The trace's id is random enough to decide by. Passed on as it came.
    const RANDOM: u8 = 2;

    /// The flags of a trace that begins here.
    pub fn of_own() -> Flags {
        Flags(Flags::RANDOM)
    }

    /// Whether spans of it are recorded.
    pub fn sampled(self) -> bool {
        self.0 & Flags::SAMPLED != 0
    }

    /// The same with this decision.
    pub fn with_sampled(self, sampled: bool) -> Flags {
        Flags(self.0 & !Flags::SAMPLED | u8::from(sampled))
    }
}

/// Where a request came from: a span of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Parent {
    /// The trace.
    pub trace: TraceId,
    /// The span that made the request.
    pub span: SpanId,
    /// What it said of the trace.
    pub flags: Flags,
    /// What the vendors on the way noted, which is not ours to read.
    pub state: Option<Arc<HeaderValue>>,
}

impl Parent {
    /// Reads the headers of a request. `None` where there is no `traceparent`, or none that can be understood: the
    /// standard says to begin anew then.
    pub fn of(headers: &HeaderMap) -> Option<Parent> {
        let mut parents = headers.get_all(TRACEPARENT).iter();
        let (parent, None) = (parents.next()?, parents.next()) else { return None };
        let (trace, span, flags) = parse(parent.as_bytes())?;
        Some(Parent { trace, span, flags, state: state_of(headers) })
    }
}

/// Version, trace, span and flags, in small hexadecimal digits, with dashes between them. A later version may have more
/// behind them.
fn parse(text: &[u8]) -> Option<(TraceId, SpanId, Flags)> {
    let (known, rest) = text.split_at_checked(55)?;
    let dashes = [2, 35, 52].iter().all(|at| known[*at] == b'-');
    let version = hex(&known[..2])?;
    let fits = match version {
        0 => rest.is_empty(),
        0xff => false,
        _ => rest.is_empty() || rest[0] == b'-',
    };
    let (trace, span, flags) = (hex(&known[3..35])?, hex(&known[36..52])? as u64, hex(&known[53..])? as u8);
    let flags = Flags(flags & (Flags::SAMPLED | Flags::RANDOM));
    (dashes && fits && trace != 0 && span != 0).then_some((TraceId(trace), SpanId(span), flags))
}

fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

/// One header may come as several.
fn state_of(headers: &HeaderMap) -> Option<Arc<HeaderValue>> {
    let mut whole = Vec::new();
    for part in headers.get_all(TRACESTATE).iter().filter(|part| !part.is_empty()) {
        if !whole.is_empty() {
            whole.push(b',');
        }
        whole.extend_from_slice(part.as_bytes());
    }
    if whole.is_empty() || whole.len() > STATE_LIMIT || !whole.is_ascii() {
        return None;
    }
    HeaderValue::from_bytes(&whole).ok().map(Arc::new)
}

/// The trace that a change belongs to. It goes with the change for as long as that is in memory.
#[derive(Clone, Debug)]
pub struct Context {
    /// The trace.
    pub trace: TraceId,
    /// The span of the commit, under which everything that follows stands.
    pub commit: SpanId,
    /// Whether spans of it are recorded.
    pub flags: Flags,
    /// Passed on.
    pub state: Option<Arc<HeaderValue>>,
    /// When the change was durable, monotonic.
    pub committed: Duration,
}

impl Context {
    /// Tells the receiver of a request that it was made by this span.
    pub fn inject(&self, span: SpanId, request: &mut Request) {
        const PARENT: Name<'static> = Name::fixed("traceparent");
        const STATE: Name<'static> = Name::fixed("tracestate");
        request.remove(PARENT);
        request.compose(PARENT, |value| {
            write!(value, "00-{}-{span}-{:02x}", self.trace, self.flags.0)
                .expect("writing to memory does not fail");
        });
        if let Some(state) = &self.state {
            request.remove(STATE);
            request.value(STATE, Value::new(state.as_bytes()).expect("it was the value of a header"));
        }
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flare_wire::{Beginning, Method, Room};

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, HeaderValue::from_str(value).unwrap());
        }
        headers
    }

    fn parent(text: &str) -> Option<Parent> {
        Parent::of(&headers(&[("traceparent", text)]))
    }

    #[test]
    fn what_comes_in_goes_out_with_another_span() {
        let headers = headers(&[("traceparent", GOOD), ("tracestate", "a=1"), ("tracestate", "b=2")]);
        let parent = Parent::of(&headers).unwrap();
        assert_eq!(parent.span, SpanId(0xb7ad_6b71_6920_3331));
        assert!(parent.flags.sampled());
        let Parent { trace, flags, state, .. } = parent;
        let context = Context { trace, commit: SpanId(1), flags, state, committed: Duration::ZERO };
        let own = [(Name::fixed("traceparent"), Value::new(b"of the user").unwrap())];
        let beginning = Beginning::new(Method::Post, "h", own).unwrap();
        let mut sent = Request::new(Room::default(), &beginning, |path| path.push('/'));
        context.inject(SpanId(0xff), &mut sent);
        let expected = "00-0af7651916cd43dd8448eb211c80319c-00000000000000ff-01";
        assert_eq!(sent.get("traceparent"), Some(expected.as_bytes()));
        assert_eq!(sent.get("tracestate"), Some(&b"a=1,b=2"[..]));
        assert_eq!(sent.fields().count(), 3, "host, and one of each");
    }

    #[test]
    fn a_later_version_may_have_more_to_say() {
        let later = GOOD.replacen("00", "cc", 1);
        assert_eq!(parent(&later).unwrap().trace, parent(GOOD).unwrap().trace);
        assert!(parent(&format!("{later}-what-the-future-brings")).is_some());
        assert!(parent(&format!("{later}.")).is_none());
    }

    #[test]
    fn flags_that_are_not_known_are_not_passed_on() {
        let flags = |text: &str| parent(&GOOD.replace("-01", text)).unwrap().flags;
        assert_eq!(flags("-ff"), Flags(3));
        assert!(!flags("-fe").sampled());
    }

    #[test]
    fn what_breaks_the_standard_is_no_parent() {
        for wrong in [
            "",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333g-01",
        ] {
            assert!(parent(wrong).is_none(), "{wrong}");
        }
        assert!(
            Parent::of(&headers(&[("traceparent", GOOD), ("traceparent", GOOD)])).is_none(),
            "two of them"
        );
        let long = "x=".to_owned() + &"y".repeat(STATE_LIMIT);
        let parent = Parent::of(&headers(&[("traceparent", GOOD), ("tracestate", &long)])).unwrap();
        assert!(parent.state.is_none(), "too long to be passed on");
    }
}
