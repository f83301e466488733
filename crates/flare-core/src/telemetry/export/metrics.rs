//! In: the families of metrics that `GET /metrics` shows. Out: the message that tells a collector of them, under the same
//! names: counters and histograms are cumulative since the process began.

use super::about::{About, attribute};
use crate::observe::metrics::{Family, Labelled, LabelledDistribution, Samples};
use crate::protobuf::Message;

const CUMULATIVE: u64 = 2;

/// When counting began and when it was looked, in nanoseconds of the wall clock.
#[derive(Clone, Copy, Debug)]
pub struct Period {
    /// When counting began.
    pub start: u64,
    /// When it was looked.
    pub time: u64,
}

/// An `ExportMetricsServiceRequest`.
pub fn encode(about: &About, families: &[Family], period: Period) -> Vec<u8> {
    let mut request = Message::default();
    request.message(1, |resource_metrics| {
        resource_metrics.message(1, |resource| about.resource(resource));
        resource_metrics.message(2, |scope_metrics| {
            scope_metrics.message(1, |scope| about.scope(scope));
            for family in families {
                scope_metrics.message(2, |metric| write(metric, family, period));
            }
        });
    });
    request.into_bytes()
}

fn write(metric: &mut Message, family: &Family, period: Period) {
    metric.bytes(1, family.name).bytes(2, family.help).bytes(3, unit(family.name));
    match &family.samples {
        Samples::Gauge(samples) => metric.message(5, |gauge| {
            let now = Period { start: 0, ..period };
            samples.iter().for_each(|sample| {
                gauge.message(1, |point| number(point, sample, now));
            });
        }),
        Samples::Counter(samples) => metric.message(7, |sum| {
            samples.iter().for_each(|sample| {
                sum.message(1, |point| number(point, sample, period));
            });
            sum.number(2, CUMULATIVE).number(3, 1);
        }),
        Samples::Histogram(each, unit) => metric.message(9, |histogram| {
            each.iter().for_each(|labelled| {
                histogram.message(1, |point| buckets(point, labelled, *unit, period));
            });
            histogram.number(2, CUMULATIVE);
        }),
    };
}

fn number(point: &mut Message, Labelled { labels, value }: &Labelled, period: Period) {
    times(point, period);
    point.double(4, *value);
    labels.iter().for_each(|(name, value)| attribute(point, 7, name, value));
}

/// The same buckets as in `GET /metrics`, each counted by itself.
fn buckets(point: &mut Message, labelled: &LabelledDistribution, unit: f64, period: Period) {
    let LabelledDistribution { labels, distribution } = labelled;
    let scale = (1.0 / unit).round();
    let (mut bounds, mut counts, mut since) = (Vec::new(), Vec::new(), 0);
    for (count, bound) in distribution.counts.iter().zip(distribution.bounds.each) {
        since += count;
        if (distribution.bounds.shown)(*bound) {
            bounds.push((*bound as f64 / scale).to_bits());
            counts.push(std::mem::take(&mut since));
        }
    }
    counts.push(distribution.count() - counts.iter().sum::<u64>());
    times(point, period);
    point.fixed64(4, distribution.count()).double(5, distribution.sum as f64 / scale);
    point.packed64(6, counts.into_iter()).packed64(7, bounds.into_iter());
    labels.iter().for_each(|(name, value)| attribute(point, 9, name, value));
}

fn times(point: &mut Message, Period { start, time }: Period) {
    if start > 0 {
        point.fixed64(2, start);
    }
    point.fixed64(3, time);
}

/// The unit in the words of OpenTelemetry, by the name's own.
fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    match name.rsplit('_').next() {
        Some("seconds") => "s",
        Some("bytes") => "By",
        Some("ratio") => "1",
        _ => "",
    }
}
