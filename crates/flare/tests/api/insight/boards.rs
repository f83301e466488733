//! What is in `deploy/`: the dashboard and the alerts ask for metrics, labels and values that a running Flare has, and
//! Prometheus understands the questions.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use serde_json::{Value, json};

use crate::insight::metrics::{Scrape, promtool, text_of};
use crate::support::Flare;

/// What Prometheus adds to every series by itself.
const OF_PROMETHEUS: [&str; 2] = ["job", "instance"];

/// The series that a scrape shows: by name, the values of each label.
struct Exported(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

impl Exported {
    async fn by(flare: &Flare) -> Exported {
        let mut series: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
        for sample in Scrape::of(flare).await.values.keys() {
            let (name, labels) = sample.split_once('{').unwrap_or((sample, ""));
            let found = series.entry(name.to_owned()).or_default();
            for (label, value) in labels_in(labels) {
                found.entry(label).or_default().insert(value);
            }
        }
        // Prometheus makes this one for every target.
        series.insert("up".into(), BTreeMap::new());
        Exported(series)
    }

    /// What is wrong with an expression: each selector must name a metric that exists, with labels that it has, and with
    /// values that these have.
    fn problems(&self, expression: &str) -> Vec<String> {
        let mut problems = Vec::new();
        for Selector { name, matchers } in selectors(expression) {
            let Some(labels) = self.0.get(&name) else {
                problems.push(format!("there is no {name}"));
                continue;
            };
            for (label, value) in matchers {
                match labels.get(&label) {
                    None if OF_PROMETHEUS.contains(&label.as_str()) => {}
                    None => problems.push(format!("{name} has no label {label}")),
                    Some(values) => {
                        problems.extend(value.split('|').filter(|value| !values.contains(*value)).map(
                            |value| format!("{label} of {name} is never {value}, but one of {values:?}"),
                        ))
                    }
                }
            }
        }
        let known = self.labels_of(expression);
        problems.extend(
            grouped(expression)
                .into_iter()
                .filter(|label| !known.contains(label))
                .map(|label| format!("it groups by {label}, which none of its metrics has")),
        );
        problems
    }

    /// The labels that an expression's metrics have.
    fn labels_of(&self, expression: &str) -> BTreeSet<String> {
        let metrics = selectors(expression);
        let labels =
            metrics.iter().filter_map(|selector| self.0.get(&selector.name)).flat_map(BTreeMap::keys);
        labels.cloned().chain(OF_PROMETHEUS.map(ToOwned::to_owned)).collect()
    }

    /// The labels that its result has.
    fn labels_out(&self, expression: &str) -> BTreeSet<String> {
        if expression.contains("sum(") || expression.contains("max(") {
            return BTreeSet::new();
        }
        match grouped(expression) {
            labels if labels.is_empty() => self.labels_of(expression),
            labels => labels,
        }
    }
}

/// A metric in an expression, with what its labels are to be.
#[derive(Debug, PartialEq)]
struct Selector {
    name: String,
    matchers: Vec<(String, String)>,
}

/// All selectors in an expression: names of metrics, each with what is between the braces behind it.
fn selectors(expression: &str) -> Vec<Selector> {
    let mut found = Vec::new();
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut rest = expression;
    while let Some(at) = rest.find(is_name) {
        let end = rest[at..].find(|c| !is_name(c)).map_or(rest.len(), |length| at + length);
        let (name, after) = (&rest[at..end], &rest[end..]);
        rest = after;
        let metric = ["flare_", "process_"].iter().any(|prefix| name.starts_with(prefix)) || name == "up";
        if let Some(labels) = after.strip_prefix('{') {
            let (labels, after) = labels.split_once('}').expect("a brace that opens also closes");
            found.push(Selector { name: name.to_owned(), matchers: labels_in(labels) });
            rest = after;
        } else if metric {
            found.push(Selector { name: name.to_owned(), matchers: Vec::new() });
        }
    }
    found
}

/// Labels and their values, as they stand between braces.
fn labels_in(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((label, value)) = rest.split_once('"') {
        let (value, after) = value.split_once('"').expect("a quote that opens also closes");
        let label = label.trim_start_matches([',', ' ']).trim_end_matches(['=', '~', '!']);
        found.push((label.to_owned(), value.to_owned()));
        rest = after;
    }
    found
}

/// The labels by which an expression groups.
fn grouped(expression: &str) -> BTreeSet<String> {
    let groups = expression.split("by (").skip(1).filter_map(|rest| rest.split(')').next());
    groups.flat_map(|group| group.split(',')).map(|label| label.trim().to_owned()).collect()
}

/// The labels that a text for people wants inserted: `{{label}}`, or `{{ $labels.label }}`.
fn inserted(text: &str) -> BTreeSet<String> {
    let inner = text.split("{{").skip(1).filter_map(|rest| rest.split("}}").next()).map(str::trim);
    let labels = inner.filter_map(|word| match word.strip_prefix('$') {
        None => Some(word),
        Some(variable) => variable.strip_prefix("labels."),
    });
    labels.map(ToOwned::to_owned).collect()
}

#[test]
fn expressions_are_read_as_prometheus_does() {
    let expression = r#"sum by (a, le) (rate(flare_x{b=~"c|d", e!="f"}[5m])) > 2 * up"#;
    let told: Vec<_> = selectors(expression).into_iter().map(|found| (found.name, found.matchers)).collect();
    let matchers = vec![("b".to_owned(), "c|d".to_owned()), ("e".to_owned(), "f".to_owned())];
    assert_eq!(told, [("flare_x".to_owned(), matchers), ("up".to_owned(), vec![])]);
    assert_eq!(grouped(expression), ["a", "le"].map(ToOwned::to_owned).into());
    assert_eq!(inserted("{{ $labels.a }} of {{b}}: {{ $value }}"), ["a", "b"].map(ToOwned::to_owned).into());
}

#[tokio::test]
async fn a_question_about_what_does_not_exist_is_noticed() {
    let exported = Exported::by(&Flare::start().await).await;
    for (expression, problems) in [
        (r#"sum by (status) (rate(flare_attempts_total{outcome="failed", job="x"}[5m]))"#, 0),
        ("flare_renamed_total", 1),
        (r#"flare_attempts_total{reason="failed"}"#, 1),
        (r#"flare_attempts_total{outcome=~"failed|sunk"}"#, 1),
        ("sum by (route) (flare_backlog_notifications)", 1),
    ] {
        let found = exported.problems(expression);
        assert_eq!(found.len(), problems, "{expression}: {found:?}");
    }
}

#[tokio::test]
async fn the_dashboard_and_the_alerts_use_only_what_exists() {
    let exported = Exported::by(&Flare::start().await).await;
    let dashboard: Value = serde_json::from_str(&text_of("deploy/grafana/flare.json")).expect("JSON");
    let mut queries = Vec::new();
    collect(&dashboard, &mut queries);
    assert!(queries.len() > 40, "a dashboard has queries: {queries:?}");
    let mut problems = Vec::new();
    for (expression, legend) in &queries {
        let plain = expression.replace(r#"instance=~"$instance", job=~"$job""#, "");
        assert_ne!(*expression, plain, "every panel is about the nodes that were chosen");
        problems
            .extend(exported.problems(&plain).into_iter().map(|problem| format!("{problem}: {expression}")));
        let lacking = inserted(legend).difference(&exported.labels_out(&plain)).cloned().collect::<Vec<_>>();
        problems.extend(lacking.iter().map(|label| format!("{legend}: no {label} comes of {expression}")));
    }
    let expressions: Vec<String> = queries.into_iter().map(|(expression, _)| expression).collect();
    check_expressions(&expressions);

    let rules = text_of("deploy/prometheus/alerts.yml");
    let mut alerts = 0;
    for alert in rules.split("- alert: ").skip(1) {
        let expression = alert.lines().find_map(|line| line.trim().strip_prefix("expr: "));
        let expression = expression.expect("each alert has its expression on one line");
        problems.extend(
            exported.problems(expression).into_iter().map(|problem| format!("{problem}: {expression}")),
        );
        let lacking =
            inserted(alert).difference(&exported.labels_out(expression)).cloned().collect::<Vec<_>>();
        problems.extend(lacking.iter().map(|label| format!("no {label} comes of {expression}")));
        alerts += 1;
    }
    assert!(alerts > 10, "there are alerts");
    assert!(problems.is_empty(), "{problems:#?}");
}

#[test]
fn the_panels_of_the_dashboard_have_their_own_places() {
    let dashboard: Value = serde_json::from_str(&text_of("deploy/grafana/flare.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let ids: BTreeSet<u64> = panels.iter().filter_map(|panel| panel["id"].as_u64()).collect();
    assert_eq!(ids.len(), panels.len(), "an id is there twice");
    let mut taken = BTreeSet::new();
    for panel in panels {
        let [x, y, w, h] =
            ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().expect("a number"));
        assert!(x + w <= 24, "{} is wider than the page", panel["title"]);
        for place in (x..x + w).flat_map(|x| (y..y + h).map(move |y| (x, y))) {
            assert!(taken.insert(place), "{} lies upon another panel", panel["title"]);
        }
    }
}

/// Has promtool read expressions, as if they were rules.
fn check_expressions(expressions: &[String]) {
    let rules = expressions.iter().enumerate().map(|(number, expression)| {
        let expression = expression.replace("$__rate_interval", "5m");
        json!({"record": format!("dashboard:query:{number}"), "expr": expression})
    });
    let rules = json!({"groups": [{"name": "dashboard", "rules": rules.collect::<Vec<_>>()}]});
    let mut file = tempfile::NamedTempFile::new().expect("a file for the test");
    file.write_all(rules.to_string().as_bytes()).expect("room for it");
    let path = file.path().to_str().expect("a path of text");
    if let Some((content, said)) = promtool(&["check", "rules", path], "") {
        assert!(content, "{said}");
    }
}

/// Every query with the legend of its line.
fn collect(value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            if let Some(expression) = fields.get("expr").and_then(Value::as_str) {
                let legend =
                    ["legendFormat", "titleFormat"].iter().find_map(|key| fields.get(*key)?.as_str());
                found.push((expression.to_owned(), legend.unwrap_or_default().to_owned()));
            }
            fields.values().for_each(|inner| collect(inner, found));
        }
        Value::Array(entries) => entries.iter().for_each(|inner| collect(inner, found)),
        _ => {}
    }
}

#[test]
fn the_alerts_are_sound_and_fire_when_they_should() {
    for arguments in [["check", "rules", "alerts.yml"], ["test", "rules", "alerts_test.yml"]] {
        let Some((content, said)) = promtool(&arguments, "") else { return };
        assert!(content, "{said}");
    }
    let (rules, tests) =
        (text_of("deploy/prometheus/alerts.yml"), text_of("deploy/prometheus/alerts_test.yml"));
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(tests.contains(&format!("alertname: {alert}\n")), "{alert} has no test");
        let guide = text_of("docs/operations.md");
        assert!(
            guide.contains(&format!("`{alert}`")),
            "docs/operations.md does not say what to do about {alert}"
        );
    }
}
