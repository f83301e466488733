//! In: the `[log]` section. Out: log lines, for people or as JSON.
//!
//! A line is formatted in the thread that says it and written with one call; nothing waits in memory, so the last words
//! of a process that dies are there. That is affordable because lines are short and few at the default level.
//! What is absent: records of the `log` crate, which only libraries use, for what Flare says better itself.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::IsTerminal as _;
use std::sync::Arc;

use anyhow::Context as _;
use flare_core::config::{LogConfig, LogFormat, LogOutput};
use serde::Serialize;
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer as _;
use tracing_subscriber::fmt::format::{FormatEvent, JsonFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;

use crate::version;

/// Keep it until the process ends; dropping it brings a log file to the disk.
#[must_use = "dropping it ends the care for the log file"]
#[derive(Debug)]
pub struct Guard {
    file: Option<Arc<File>>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // Nothing is left to tell it to.
            let _ = file.sync_all();
        }
    }
}

/// Sets up logging for the whole process. Fails when the log file cannot be opened or when called a second time.
pub fn init(config: &LogConfig) -> anyhow::Result<Guard> {
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let (writer, colours, file) = match &config.output {
        LogOutput::Stderr => (BoxMakeWriter::new(std::io::stderr), std::io::stderr().is_terminal(), None),
        LogOutput::Stdout => (BoxMakeWriter::new(std::io::stdout), std::io::stdout().is_terminal(), None),
        LogOutput::File(path) => {
            let open = File::options().create(true).append(true).open(path);
            let file = Arc::new(open.with_context(|| format!("opening the log file {}", path.display()))?);
            (BoxMakeWriter::new(Arc::clone(&file)), false, Some(file))
        }
    };
    // Not `try_init`, which would also take the records of the `log` crate.
    tracing::subscriber::set_global_default(subscriber(config, writer, colours && !no_color))
        .context("setting up the log")?;
    Ok(Guard { file })
}

fn subscriber(config: &LogConfig, writer: BoxMakeWriter, colours: bool) -> impl Subscriber + Send + Sync {
    // A line that cannot be written is dropped: reporting it on standard error would panic where that is what broke.
    let layer =
        tracing_subscriber::fmt::layer().with_writer(writer).with_ansi(colours).log_internal_errors(false);
    let layer = match config.format {
        LogFormat::Human => layer.compact().boxed(),
        LogFormat::Json => layer.fmt_fields(JsonFields::new()).event_format(JsonLine).boxed(),
    };
    tracing_subscriber::registry().with(layer.with_filter(config.level.filter()))
}

/// One JSON object per line, the fields of the event beside the fixed ones.
struct JsonLine;

#[derive(Serialize)]
struct Line<'a> {
    timestamp: String,
    level: &'a str,
    target: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Value>,
    #[serde(flatten)]
    fields: Map<String, Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    spans: Vec<Value>,
    version: &'a str,
    sha: &'a str,
}

impl<S> FormatEvent<S, JsonFields> for JsonLine
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut timestamp = String::new();
        SystemTime.format_time(&mut Writer::new(&mut timestamp))?;
        let mut fields = Fields(Map::new());
        event.record(&mut fields);
        let Fields(mut fields) = fields;
        let message = fields.remove("message");
        // Every line has the first two; the others would appear twice in the object.
        for name in ["version", "sha"] {
            fields.remove(name);
        }
        for name in ["timestamp", "level", "target", "spans"] {
            if let Some(value) = fields.remove(name) {
                fields.insert(format!("field.{name}"), value);
            }
        }
        let spans = context.event_scope().into_iter().flat_map(|scope| scope.from_root()).map(|span| {
            let extensions = span.extensions();
            let text =
                extensions.get::<FormattedFields<JsonFields>>().map_or("", |fields| fields.fields.as_str());
            let mut fields: Map<String, Value> = serde_json::from_str(text).unwrap_or_default();
            fields.insert("name".to_owned(), span.name().into());
            Value::Object(fields)
        });
        let metadata = event.metadata();
        let line = Line {
            timestamp,
            level: metadata.level().as_str(),
            target: metadata.target(),
            message,
            fields,
            spans: spans.collect(),
            version: version::VERSION,
            sha: version::SHA,
        };
        writeln!(writer, "{}", serde_json::to_string(&line).map_err(|_| fmt::Error)?)
    }
}

/// The fields of an event as JSON values.
struct Fields(Map<String, Value>);

impl Fields {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }

    /// With the whole chain of causes.
    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        let mut chain = value.to_string();
        let mut cause = value.source();
        while let Some(error) = cause {
            let _ = write!(chain, ": {error}");
            cause = error.source();
        }
        self.put(field, chain);
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use tracing::{debug, info, info_span, warn};

    use super::*;

    /// Collects what is written.
    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn written(format: LogFormat, say: impl FnOnce()) -> String {
        let page = Page::default();
        let writer = page.clone();
        let config = LogConfig { format, ..LogConfig::default() };
        let subscriber = subscriber(&config, BoxMakeWriter::new(move || writer.clone()), false);
        tracing::subscriber::with_default(subscriber, say);
        let bytes = page.0.lock().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn a_json_line_is_flat_and_names_version_and_sha() {
        let text = written(LogFormat::Json, || {
            warn!(subscription.id = %"sub_1", attempt = 3, level = "x", sha = "y", "client refused");
            debug!("not at this level");
        });
        assert_eq!(text.lines().count(), 1, "{text}");
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["message"], "client refused");
        assert_eq!((&line["subscription.id"], &line["attempt"]), (&"sub_1".into(), &3.into()));
        assert_eq!(line["field.level"], "x");
        assert_eq!((&line["version"], &line["sha"]), (&version::VERSION.into(), &version::SHA.into()));
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'), "{text}");
    }

    #[test]
    fn an_error_is_logged_with_its_chain() {
        let error = anyhow::anyhow!("disk full").context("writing the record");
        let error: &(dyn std::error::Error + 'static) = error.as_ref();
        let text = written(LogFormat::Json, || warn!(error, "stopping"));
        assert!(text.contains(r#""error":"writing the record: disk full""#), "{text}");
        let text = written(LogFormat::Human, || warn!(error, "stopping"));
        assert!(text.contains("writing the record") && text.contains("disk full"), "{text}");
    }

    #[test]
    fn spans_are_listed_outermost_first() {
        let text = written(LogFormat::Json, || {
            let outer = info_span!("put", document = "d1").entered();
            let inner = info_span!("commit").entered();
            info!("done");
            drop((inner, outer));
        });
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            line["spans"],
            serde_json::json!([{ "name": "put", "document": "d1" }, { "name": "commit" }])
        );
    }

    #[test]
    fn a_human_line_is_one_line_in_utc_without_colours_off_a_terminal() {
        let text = written(LogFormat::Human, || info!(addr = "127.0.0.1:8080", "listening"));
        assert_eq!(text.lines().count(), 1);
        assert!(text.contains("Z  INFO") && text.contains("listening"), "{text}");
        assert!(text.contains("addr=\"127.0.0.1:8080\"") && !text.contains('\u{1b}'), "{text}");
    }
}
