//! In: a ratio and the index of a delay. Out: by what the interval is multiplied. One meaning of `ratio` for all four
//! progressions: the second delay is `ratio` times the first.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How delays grow during the backoff. With an interval *i*, a ratio *r*, and *k* = 0, 1, 2, ... the delay is as given
/// below, cut at `maxInterval`; the examples are for an interval of 5 s and a ratio of 2. With a ratio of 1 the delay
/// stays at the interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Progression {
    /// Equal steps: *i* · (1 + (*r* - 1) · *k*). 5, 10, 15, 20, 25 s.
    Linear,
    /// Steps that grow by the same amount: *i* · (1 + (*r* - 1) · *k*(*k* + 1)/2). 5, 10, 20, 35, 55 s.
    Arithmetic,
    /// Each delay is *r* times the one before: *i* · *r*^*k*. 5, 10, 20, 40, 80 s.
    #[default]
    Geometric,
    /// The factor itself grows by *r* each time: *i* · *r*^(*k*(*k* + 1)/2). 5, 10, 40, 320, 5120 s.
    Exponential,
}

impl Progression {
    /// What the interval is multiplied by: 1 for the index 0, never less for a higher one, possibly infinite.
    pub(crate) fn factor(self, ratio: f64, index: u32) -> f64 {
        // So close to 1, the rounding of powers could make a delay shorter than the one before; nobody can tell the
        // difference from a ratio of 1.
        if index == 0 || ratio < 1.0 + 1e-9 {
            return 1.0;
        }
        let k = f64::from(index);
        let triangle = k * (k + 1.0) / 2.0;
        match self {
            Self::Linear => 1.0 + (ratio - 1.0) * k,
            Self::Arithmetic => 1.0 + (ratio - 1.0) * triangle,
            Self::Geometric => ratio.powf(k),
            Self::Exponential => ratio.powf(triangle),
        }
    }
}
