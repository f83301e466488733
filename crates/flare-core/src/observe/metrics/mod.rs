//! Metrics: what was counted and how everything stands comes in, families of samples with names and help go out, for
//! Prometheus ([`text`]) and for whoever else wants them.
//!
//! Every label has a fixed set of values: the number of time series does not grow with subscriptions, documents or
//! hosts. `docs/metrics.md` describes each one, and a test keeps the two equal.

mod delivery;
mod http;
mod node;
mod origin;
pub mod process;
pub mod text;

use super::count::{Distribution, Totals};
use super::gauges::Gauges;
pub use node::{Facts, StoreFacts};

/// All samples of one name.
#[derive(Debug)]
pub struct Family {
    /// With the unit, and `_total` where it counts.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub help: &'static str,
    /// What is in it.
    pub samples: Samples,
}

/// The samples of a family, by its type.
#[derive(Debug)]
pub enum Samples {
    /// Numbers that only grow, until the process ends.
    Counter(Vec<Labelled>),
    /// Numbers that go up and down.
    Gauge(Vec<Labelled>),
    /// Distributions; their values times this are in the unit of the name.
    Histogram(Vec<LabelledDistribution>, f64),
}

/// One number, with its labels.
#[derive(Debug)]
pub struct Labelled {
    /// Names and values.
    pub labels: Vec<(&'static str, &'static str)>,
    /// The number.
    pub value: f64,
}

/// One distribution, with its labels.
#[derive(Debug)]
pub struct LabelledDistribution {
    /// Names and values.
    pub labels: Vec<(&'static str, &'static str)>,
    /// The distribution.
    pub distribution: Distribution,
}

/// All families, in the order of `docs/metrics.md`.
pub fn families(totals: Totals, gauges: &Gauges, facts: &Facts) -> Vec<Family> {
    let mut families = origin::families(&totals);
    families.extend(delivery::families(totals));
    families.extend(delivery::standing(gauges));
    families.extend(http::families(facts));
    families.extend(node::families(facts));
    families
}

/// The length of a microsecond.
const MICROSECOND: f64 = 1e-6;

impl Family {
    fn counter(name: &'static str, help: &'static str, value: u64) -> Family {
        Family { name, help, samples: Samples::Counter(vec![plain(value as f64)]) }
    }

    /// One number that goes up and down.
    pub fn gauge(name: &'static str, help: &'static str, value: f64) -> Family {
        Family { name, help, samples: Samples::Gauge(vec![plain(value)]) }
    }

    /// Of times that were counted in microseconds.
    fn seconds(name: &'static str, help: &'static str, times: Distribution) -> Family {
        Family { name, help, samples: Samples::Histogram(vec![alone(times)], MICROSECOND) }
    }

    /// A counter for each value of a label.
    fn counters(
        name: &'static str,
        help: &'static str,
        label: &'static str,
        values: impl IntoIterator<Item = (&'static str, u64)>,
    ) -> Family {
        Family { name, help, samples: Samples::Counter(labelled(label, values)) }
    }

    /// A gauge for each value of a label.
    fn gauges(
        name: &'static str,
        help: &'static str,
        label: &'static str,
        values: impl IntoIterator<Item = (&'static str, u64)>,
    ) -> Family {
        Family { name, help, samples: Samples::Gauge(labelled(label, values)) }
    }
}

/// A distribution without labels.
fn alone(distribution: Distribution) -> LabelledDistribution {
    LabelledDistribution { labels: Vec::new(), distribution }
}

fn plain(value: f64) -> Labelled {
    Labelled { labels: Vec::new(), value }
}

fn labelled(label: &'static str, values: impl IntoIterator<Item = (&'static str, u64)>) -> Vec<Labelled> {
    let each =
        values.into_iter().map(|(name, value)| Labelled { labels: vec![(label, name)], value: value as f64 });
    each.collect()
}
