//! The text that Prometheus reads: families come in, a page in one of its two formats goes out.

use std::fmt::{self, Write as _};

use super::{Family, Labelled, LabelledDistribution, Samples};

/// How the page is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The text format of Prometheus.
    Prometheus,
    /// OpenMetrics 1.0, which differs in how counters are announced and in its end.
    OpenMetrics,
}

impl Format {
    /// What a request wants, by its `Accept`: OpenMetrics where that is named, unless the older text is preferred.
    pub fn wanted(accept: &str) -> Format {
        let quality = |kind: &str| {
            let part = accept.split(',').map(str::trim).find(|part| part.starts_with(kind))?;
            let quality = part.split(';').find_map(|parameter| parameter.trim().strip_prefix("q="));
            quality.map_or(Some(1.0), |quality| quality.parse::<f32>().ok())
        };
        match (quality("application/openmetrics-text"), quality("text/plain")) {
            (Some(open), plain) if open > 0.0 && open >= plain.unwrap_or(0.0) => Format::OpenMetrics,
            _ => Format::Prometheus,
        }
    }

    /// The content type of the page.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// Writes the page.
pub fn page(families: &[Family], format: Format) -> String {
    let mut page = String::with_capacity(families.len() * 512);
    for family in families {
        write_family(&mut page, family, format);
    }
    if format == Format::OpenMetrics {
        page.push_str("# EOF\n");
    }
    page
}

fn write_family(page: &mut String, family: &Family, format: Format) {
    let Family { name, help, samples } = family;
    let kind = match samples {
        Samples::Counter(_) => "counter",
        Samples::Gauge(_) => "gauge",
        Samples::Histogram(..) => "histogram",
    };
    // OpenMetrics takes `_total` for a part of the sample's name, not of the family's.
    let of_family = match format {
        Format::OpenMetrics => name.strip_suffix("_total").unwrap_or(name),
        Format::Prometheus => name,
    };
    let _ = writeln!(page, "# HELP {of_family} {help}\n# TYPE {of_family} {kind}");
    match samples {
        Samples::Counter(each) | Samples::Gauge(each) => {
            each.iter().for_each(|sample| write_sample(page, name, sample));
        }
        Samples::Histogram(each, unit) => {
            each.iter().for_each(|labelled| write_histogram(page, name, labelled, *unit));
        }
    }
}

fn write_sample(page: &mut String, name: &str, Labelled { labels, value }: &Labelled) {
    let _ = write!(page, "{name}{}", Labels(labels, None));
    let _ = match value.is_infinite() {
        true => writeln!(page, " +Inf"),
        false => writeln!(page, " {value}"),
    };
}

fn write_histogram(
    page: &mut String,
    name: &str,
    LabelledDistribution { labels, distribution }: &LabelledDistribution,
    unit: f64,
) {
    let mut below = 0;
    for (count, bound) in distribution.counts.iter().zip(distribution.bounds.each) {
        below += count;
        if (distribution.bounds.shown)(*bound) {
            // From the exact number, so that no digit of rounding is in it.
            let le = if unit == 1.0 { *bound as f64 } else { *bound as f64 / (1.0 / unit).round() };
            let _ = writeln!(page, "{name}_bucket{} {below}", Labels(labels, Some(le)));
        }
    }
    let count = distribution.count();
    let sum = distribution.sum as f64 / (1.0 / unit).round();
    let all = Labels(labels, None);
    let _ = writeln!(page, "{name}_bucket{} {count}", Labels(labels, Some(f64::INFINITY)));
    let _ = writeln!(page, "{name}_sum{all} {sum}\n{name}_count{all} {count}");
}

/// Labels as they stand behind a name, that of a bucket's bound at the end.
struct Labels<'a>(&'a [(&'static str, &'static str)], Option<f64>);

impl fmt::Display for Labels<'_> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Labels(labels, bound) = self;
        for (index, (label, value)) in labels.iter().enumerate() {
            let before = if index == 0 { '{' } else { ',' };
            // Values are names in the code, versions and hashes: nothing in them needs to be escaped.
            write!(to, "{before}{label}=\"{value}\"")?;
        }
        let before = if labels.is_empty() { '{' } else { ',' };
        match bound {
            Some(bound) if bound.is_infinite() => write!(to, "{before}le=\"+Inf\"}}"),
            Some(bound) => write!(to, "{before}le=\"{bound:?}\"}}"),
            None if labels.is_empty() => Ok(()),
            None => to.write_char('}'),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::count::Histogram;
    use crate::observe::count::{QUANTITIES, TIMES};

    #[test]
    fn the_format_is_the_one_that_is_asked_for() {
        for (accept, wanted) in [
            ("", Format::Prometheus),
            ("*/*", Format::Prometheus),
            ("text/plain", Format::Prometheus),
            ("application/openmetrics-text", Format::OpenMetrics),
            // What Prometheus sends.
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
                Format::OpenMetrics,
            ),
            ("text/plain;q=0.9, application/openmetrics-text;q=0.1", Format::Prometheus),
            ("application/openmetrics-text;q=0", Format::Prometheus),
        ] {
            assert_eq!(Format::wanted(accept), wanted, "{accept}");
        }
    }

    #[test]
    fn counters_gauges_and_labels_are_written_as_prometheus_reads_them() {
        let families = [
            Family::counters("things_total", "Things.", "kind", [("good", 2), ("bad", 0)]),
            Family::gauge("level", "A level.", 1.5),
            Family::gauge("limit", "None.", f64::INFINITY),
        ];
        let plain = "# HELP things_total Things.\n# TYPE things_total counter\n\
            things_total{kind=\"good\"} 2\nthings_total{kind=\"bad\"} 0\n\
            # HELP level A level.\n# TYPE level gauge\nlevel 1.5\n\
            # HELP limit None.\n# TYPE limit gauge\nlimit +Inf\n";
        assert_eq!(page(&families, Format::Prometheus), plain);
        let open =
            plain.replace("HELP things_total", "HELP things").replace("TYPE things_total", "TYPE things");
        assert_eq!(page(&families, Format::OpenMetrics), open + "# EOF\n");
    }

    #[test]
    fn buckets_are_cumulative_with_round_bounds_in_the_unit_of_the_name() {
        let times = Histogram::new(&TIMES);
        [90, 110, 1_500_000, 2_000_000_000].into_iter().for_each(|micros| times.record(micros));
        let text = page(&[Family::seconds("t_seconds", "T.", times.read())], Format::Prometheus);
        for line in [
            "t_seconds_bucket{le=\"0.0001\"} 1",
            "t_seconds_bucket{le=\"0.0002\"} 2",
            "t_seconds_bucket{le=\"1.0\"} 2",
            "t_seconds_bucket{le=\"2.0\"} 3",
            "t_seconds_bucket{le=\"1000.0\"} 3",
            "t_seconds_bucket{le=\"+Inf\"} 4",
            "t_seconds_sum 2001.5002",
            "t_seconds_count 4",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
        }
        assert_eq!(text.lines().count(), 2 + 22 + 3, "{text}");
        let group = Histogram::new(&QUANTITIES);
        group.record(3);
        let told = |labels| {
            let samples =
                Samples::Histogram(vec![LabelledDistribution { labels, distribution: group.read() }], 1.0);
            page(&[Family { name: "group", help: "G.", samples }], Format::Prometheus)
        };
        let text = told(vec![]);
        assert!(text.contains("group_bucket{le=\"2.0\"} 0\ngroup_bucket{le=\"5.0\"} 1\n"), "{text}");
        assert!(text.ends_with("group_sum 3\ngroup_count 1\n"), "{text}");
        let text = told(vec![("of", "a"), ("by", "/{b}")]);
        assert!(text.contains("group_bucket{of=\"a\",by=\"/{b}\",le=\"+Inf\"} 1\n"), "{text}");
        assert!(text.ends_with("group_count{of=\"a\",by=\"/{b}\"} 1\n"), "{text}");
    }
}
