//! A request and its answer, side by side: what was kept of them comes in, and what a page shows goes out.

use super::plot::{Phase, phases};
use crate::ui::text;
use flare_core::observe::{Headers, RequestView, ResponseView, Timing};

/// A request and its answer as they are shown.
pub struct Exchange {
    /// The method, and where it went.
    pub line: String,
    /// The request's headers, where they were kept.
    pub headers: Vec<(String, String)>,
    /// The beginning of its body.
    pub body: Option<String>,
    /// How much of the body is not shown.
    pub cut: Option<String>,
    /// Whether the request was kept whole.
    pub kept: bool,
    /// The answer's status, where there was an answer.
    pub status: Option<u16>,
    /// The answer's headers.
    pub answer_headers: Vec<(String, String)>,
    /// The beginning of the answer's body.
    pub answer: Option<String>,
    /// What went wrong where there was none.
    pub error: Option<String>,
    /// The parts of the time it took.
    pub phases: Vec<Phase>,
    /// All of it.
    pub total: String,
    /// From the acceptance of the change to the attempt.
    pub queued: Option<String>,
    /// In words, for who cannot see the plot.
    pub label: String,
}

impl Exchange {
    /// What is shown of these.
    pub fn of(
        request: RequestView,
        response: Option<ResponseView>,
        error: Option<String>,
        timing: &Timing,
    ) -> Exchange {
        let list = |headers: Option<Headers>| headers.map_or(Vec::new(), |Headers(list)| list);
        let body = request.body.filter(|body| !body.is_empty());
        let shown = body.as_ref().map_or(0, String::len);
        let left = request.body_bytes.unwrap_or(0).saturating_sub(shown) as u64;
        let phases = phases(timing);
        let told: Vec<String> = phases.iter().map(|phase| format!("{} {}", phase.name, phase.took)).collect();
        let (status, answer_headers, answer) = match response {
            Some(response) => (Some(response.status), list(response.headers), response.body),
            None => (None, Vec::new(), None),
        };
        Exchange {
            line: format!("{} {}", request.method, request.url),
            kept: request.headers.is_some(),
            headers: list(request.headers),
            body: body.map(|body| text::pretty(body.as_bytes())),
            cut: (left > 0).then(|| text::count(left, "more byte", "more bytes")),
            status,
            answer_headers,
            answer: answer.filter(|body| !body.is_empty()).map(|body| text::pretty(body.as_bytes())),
            error,
            label: format!("Where the time went: {}", told.join(", ")),
            phases,
            total: super::plot::short(timing.total.0),
            queued: timing.queued.map(|queued| super::plot::short(queued.0)),
        }
    }
}
