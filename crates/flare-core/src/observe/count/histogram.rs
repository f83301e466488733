//! A distribution: values come in, one at a time; out come how many fell between two bounds, and percentiles.
//!
//! The bounds are round numbers, twelve to a decade, so that a percentile is off by a tenth at most and any of them can
//! be shown to Prometheus as it is.

use super::Count;

/// The upper bounds of the buckets, growing; whatever is above the last one has a bucket of its own.
#[derive(Debug)]
pub struct Bounds {
    /// Each, in the unit of the values.
    pub each: &'static [u64],
    /// Whether Prometheus is shown this one: about three to a decade.
    pub shown: fn(u64) -> bool,
}

/// For times in microseconds: from 100 µs to 1000 s.
pub static TIMES: Bounds = Bounds { each: &MICROS, shown: is_one_two_or_five };

/// For quantities: from 1 to 10,000.
pub static QUANTITIES: Bounds = Bounds { each: &NUMBERS, shown: is_one_two_or_five };

/// For how long the answers of the API take, in microseconds: few, because every route has them.
pub static ANSWERS: Bounds = Bounds { each: &ROUGH_MICROS, shown: |_| true };

/// Within each decade, in percent of its beginning.
const STEPS: [u64; 12] = [100, 120, 150, 175, 200, 250, 300, 350, 400, 500, 600, 800];

static MICROS: [u64; 7 * STEPS.len() + 1] = {
    let mut bounds = [0; 7 * STEPS.len() + 1];
    let (mut index, mut decade) = (0, 1);
    while index < bounds.len() {
        bounds[index] = STEPS[index % STEPS.len()] * decade;
        index += 1;
        if index % STEPS.len() == 0 {
            decade *= 10;
        }
    }
    bounds
};

static ROUGH_MICROS: [u64; 8] = [250, 1000, 5000, 25_000, 100_000, 500_000, 2_500_000, 10_000_000];

static NUMBERS: [u64; 13] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000];

fn is_one_two_or_five(bound: u64) -> bool {
    let mut digit = bound;
    while digit >= 10 && digit.is_multiple_of(10) {
        digit /= 10;
    }
    matches!(digit, 1 | 2 | 5)
}

/// A distribution that is being counted. What it takes in memory is fixed when it is made.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static Bounds,
    buckets: Box<[Count]>,
    sum: Count,
}

impl Histogram {
    /// An empty one.
    pub fn new(bounds: &'static Bounds) -> Histogram {
        let buckets = (0..=bounds.each.len()).map(|_| Count::default()).collect();
        Histogram { bounds, buckets, sum: Count::default() }
    }

    /// One more value, from the only thread that writes here.
    pub fn record(&self, value: u64) {
        self.bucket(value).add(1);
        self.sum.add(value);
    }

    /// One more value, from any thread.
    pub fn record_among_many(&self, value: u64) {
        self.bucket(value).add_among_many(1);
        self.sum.add_among_many(value);
    }

    fn bucket(&self, value: u64) -> &Count {
        &self.buckets[self.bounds.each.partition_point(|bound| *bound < value)]
    }

    /// What has been counted so far.
    pub fn read(&self) -> Distribution {
        let counts = self.buckets.iter().map(Count::get).collect();
        Distribution { bounds: self.bounds, counts, sum: self.sum.get() }
    }
}

/// A distribution that was counted.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Where its buckets end.
    pub bounds: &'static Bounds,
    /// How many values are in each bucket; the last one has no upper bound.
    pub counts: Vec<u64>,
    /// All values together.
    pub sum: u64,
}

impl Distribution {
    /// One without a value.
    pub fn empty(bounds: &'static Bounds) -> Distribution {
        Distribution { bounds, counts: vec![0; bounds.each.len() + 1], sum: 0 }
    }

    /// How many values there are.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Takes another one of the same bounds in.
    pub fn add(&mut self, other: &Distribution) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(mine, other)| *mine += other);
        self.sum += other.sum;
    }

    /// What came in after an earlier reading.
    pub fn since(&self, earlier: &Distribution) -> Distribution {
        let counts = self.counts.iter().zip(&earlier.counts);
        let counts = counts.map(|(now, then)| now.saturating_sub(*then)).collect();
        Distribution { bounds: self.bounds, counts, sum: self.sum.saturating_sub(earlier.sum) }
    }

    /// The value below which this part (0 to 1) of all values lies, or nothing where there are none. Within a bucket
    /// values are taken to be spread evenly; those beyond the last bound count as that bound.
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let total = self.count();
        if total == 0 {
            return None;
        }
        let rank = part * total as f64;
        let (mut below, mut lower) = (0_u64, 0_u64);
        for (count, upper) in self.counts.iter().zip(self.bounds.each) {
            if *count > 0 && (below + count) as f64 >= rank {
                let within = ((rank - below as f64) / *count as f64).clamp(0.0, 1.0);
                return Some(lower as f64 + within * (upper - lower) as f64);
            }
            below += count;
            lower = *upper;
        }
        Some(lower as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_grow_and_the_shown_ones_are_round() {
        for bounds in [&TIMES, &QUANTITIES, &ANSWERS] {
            assert!(bounds.each.is_sorted_by(|one, other| one < other), "{bounds:?}");
        }
        let shown = TIMES.each.iter().filter(|bound| (TIMES.shown)(**bound));
        let shown: Vec<u64> = shown.copied().collect();
        assert_eq!(shown[..7], [100, 200, 500, 1000, 2000, 5000, 10_000]);
        assert_eq!((shown.len(), shown.last()), (22, Some(&1_000_000_000)));
    }

    #[test]
    fn a_value_belongs_to_the_bucket_whose_bound_it_reaches() {
        let histogram = Histogram::new(&QUANTITIES);
        for value in [0, 1, 2, 3, 5, 6, 10_000, 10_001] {
            histogram.record(value);
        }
        assert_eq!(histogram.read().counts, [2, 1, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        assert_eq!(histogram.read().sum, 20_018);
    }

    #[test]
    fn percentiles_are_right_within_a_tenth() {
        let histogram = Histogram::new(&TIMES);
        assert_eq!(histogram.read().quantile(0.5), None);
        (1..=10_000).for_each(|number| histogram.record(number * 100));
        let read = histogram.read();
        for (part, exact) in [(0.5, 500_000.0), (0.95, 950_000.0), (0.99, 990_000.0), (1.0, 1_000_000.0)] {
            let found = read.quantile(part).unwrap();
            assert!((found - exact).abs() <= exact / 10.0, "{part}: {found} is not about {exact}");
        }
        histogram.record(u64::MAX / 2);
        assert_eq!(histogram.read().quantile(1.0), Some(1e9), "beyond the last bound");
    }

    #[test]
    fn what_came_since_is_told_apart_and_put_together_again() {
        let histogram = Histogram::new(&TIMES);
        histogram.record(1000);
        let before = histogram.read();
        histogram.record_among_many(7_000);
        let after = histogram.read();
        let between = after.since(&before);
        assert_eq!((between.count(), between.sum), (1, 7_000));
        let mut sum = before.clone();
        sum.add(&between);
        assert_eq!((sum.counts, sum.sum), (after.counts, after.sum));
    }
}
