//! In: the trace a change came with, if any, and a new trace's id. Out: whether spans are recorded. Pure.

use crate::trace::{Parent, TraceId};

/// Which changes are traced.
#[derive(Clone, Copy, Debug)]
pub struct Sampler {
    /// Traces whose lower bits are below this one are recorded: every node decides alike.
    bound: u64,
    /// Whether whoever began the trace decides.
    parent_based: bool,
}

impl Sampler {
    /// Records this part of the traces, from 0 to 1.
    pub fn new(ratio: f64, parent_based: bool) -> Sampler {
        // 63 bits, as the SDKs of OpenTelemetry do it; 1 is beyond all of them.
        Sampler { bound: (ratio.clamp(0.0, 1.0) * (1_u64 << 63) as f64) as u64, parent_based }
    }

    /// Whether a change that came with this trace is recorded.
    pub fn follows(&self, parent: &Parent) -> bool {
        if self.parent_based { parent.flags.sampled() } else { self.takes(parent.trace) }
    }

    /// Whether a trace that begins here is recorded.
    pub fn takes(&self, trace: TraceId) -> bool {
        (trace.0 as u64 >> 1) < self.bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door::Chance;
    use http::header::{HeaderMap, HeaderValue};

    fn parent(flags: &str) -> Parent {
        let text = format!("00-0af7651916cd43ddffffffffffffffff-b7ad6b7169203331-{flags}");
        let mut headers = HeaderMap::new();
        headers.insert("traceparent", HeaderValue::from_str(&text).unwrap());
        Parent::of(&headers).unwrap()
    }

    #[test]
    fn the_parent_decides_unless_it_is_not_asked() {
        let (asked, not_asked) = (Sampler::new(0.5, true), Sampler::new(0.5, false));
        assert!(asked.follows(&parent("01")) && !asked.follows(&parent("00")));
        assert!(!not_asked.follows(&parent("01")), "its id is among the highest");
        assert!(Sampler::new(1.0, false).follows(&parent("00")));
    }

    #[test]
    fn the_ratio_is_that_of_the_traces_taken() {
        let chance = Chance::from_seed(7);
        for ratio in [0.0, 0.1, 0.5, 1.0] {
            let sampler = Sampler::new(ratio, true);
            let taken = (0..10_000).filter(|_| sampler.takes(TraceId(u128::from(chance.bits())))).count();
            assert!((taken as f64 / 10_000.0 - ratio).abs() < 0.02, "{ratio}: {taken}");
        }
    }
}
