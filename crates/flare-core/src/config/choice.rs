//! In: words of the configuration that stand for a choice. Out: one enum or checked text per choice.

use std::path::PathBuf;

use flare_model::subscription::credentials::{REDACTED, redacted_url};
use tracing_subscriber::filter::{LevelFilter, Targets};

use super::setting::{Setting, Unfit};

/// Declares an enum whose every variant is one word, with the form that is shown when another word is given.
macro_rules! words {
    ($(#[$about:meta])* $name:ident: $form:literal {
        $($(#[$note:meta])* $variant:ident = $word:literal,)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name { $($(#[$note])* $variant,)* }

        impl Setting for $name {
            const FORM: &'static str = $form;

            fn from_text(text: &str) -> Result<Self, Unfit> {
                match text {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(Unfit::Form),
                }
            }

            fn to_toml(&self) -> toml::Value {
                match self { $(Self::$variant => $word.into(),)* }
            }
        }
    };
}

words! {
    /// How a log line is written.
    LogFormat: r#""human" or "json""# {
        /// One short line for people, coloured on a terminal.
        Human = "human",
        /// One JSON object per line for machines.
        Json = "json",
    }
}

words! {
    /// Whether whoever asks has to show a token.
    AuthMode: r#""none" or "token""# {
        /// Whoever can connect may do anything.
        None = "none",
        /// Every operation needs a token that is good for it.
        Token = "token",
    }
}

words! {
    /// The engine that keeps everything.
    Store: r#""embedded", "memory" or "postgresql""# {
        /// On disk, in this process.
        Embedded = "embedded",
        /// In memory only; gone when the process ends. For tests.
        Memory = "memory",
        /// In a PostgreSQL server.
        Postgresql = "postgresql",
    }
}

words! {
    /// Where nodes find each other and agree on who does what.
    Coordinator: r#""auto", "none", "postgresql" or "etcd""# {
        /// The store itself if it can, else nowhere.
        Auto = "auto",
        /// Nowhere: the node is by itself.
        None = "none",
        /// In the database that keeps everything.
        Postgresql = "postgresql",
        /// In etcd.
        Etcd = "etcd",
        /// Not built in.
        Nats = "nats",
        /// Not built in.
        Mongodb = "mongodb",
        /// Not built in.
        Cassandra = "cassandra",
    }
}

words! {
    /// How nodes hear quickly that there is something to look at.
    DoorbellEngine: r#""auto", "poll", "postgresql" or "etcd""# {
        /// What the store or the coordinator offers.
        Auto = "auto",
        /// They don't; each looks from time to time.
        Poll = "poll",
        /// By NOTIFY.
        Postgresql = "postgresql",
        /// By a key of etcd.
        Etcd = "etcd",
        /// Not built in.
        Nats = "nats",
        /// Not built in.
        Rabbitmq = "rabbitmq",
    }
}

words! {
    /// Whether the connection to a database is encrypted, and who has to be at its other end.
    DatabaseTls: r#""disable", "prefer", "require" or "verify-full""# {
        /// Never encrypted.
        Disable = "disable",
        /// If the server can, whoever it is.
        Prefer = "prefer",
        /// Always, whoever it is.
        Require = "require",
        /// Always, and with a certificate for its name from an authority that is trusted.
        VerifyFull = "verify-full",
    }
}

words! {
    /// What a database has lost after it failed over.
    Failover: r#""lossless" or "lossy""# {
        /// Nothing.
        Lossless = "lossless",
        /// Perhaps the last of what was answered.
        Lossy = "lossy",
    }
}

/// Where log lines go.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogOutput {
    /// Standard error.
    Stderr,
    /// Standard output.
    Stdout,
    /// A file that is appended to.
    File(PathBuf),
}

impl Setting for LogOutput {
    const FORM: &'static str = r#""stderr", "stdout" or the path of a file"#;

    fn from_text(text: &str) -> Result<Self, Unfit> {
        match text {
            "stderr" => Ok(Self::Stderr),
            "stdout" => Ok(Self::Stdout),
            path => PathBuf::from_text(path).map(Self::File),
        }
    }

    fn to_toml(&self) -> toml::Value {
        match self {
            Self::Stderr => "stderr".into(),
            Self::Stdout => "stdout".into(),
            Self::File(path) => path.to_toml(),
        }
    }
}

/// What is logged: a level, or directives per module such as `warn,flare_core::journey=debug`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogLevel(String);

impl LogLevel {
    /// The default: what an operator wants to know.
    pub fn info() -> Self {
        Self("info".to_owned())
    }

    /// The filter that does it.
    pub fn filter(&self) -> Targets {
        self.0.parse().expect("it was parsed when the configuration was read")
    }
}

impl Setting for LogLevel {
    const FORM: &'static str = "error, warn, info, debug, trace, off, or levels per module";
    const EXAMPLE: Option<&'static str> = Some(r#""info" or "warn,flare_core::journey=debug""#);

    fn from_text(text: &str) -> Result<Self, Unfit> {
        let text = text.trim();
        // The filter takes a lone word that is no level for the name of a module, so "inof" would silence everything
        // but a module of that name. Such a word needs a level here. Nothing at all it takes for "error".
        for part in text.split(',').map(str::trim) {
            let is_level = || !part.is_empty() && part.parse::<LevelFilter>().is_ok();
            if !part.contains('=') && !is_level() {
                return Err(Unfit::Form);
            }
        }
        text.parse::<Targets>().map_err(|error| Unfit::Because(error.to_string()))?;
        Ok(Self(text.to_owned()))
    }

    fn to_toml(&self) -> toml::Value {
        self.0.clone().into()
    }
}

/// What Flare calls itself in requests. `{version}` stands for the version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct UserAgent(String);

impl UserAgent {
    /// The default, with a placeholder so that the default file need not change with each version.
    pub fn flare() -> Self {
        Self("Flare/{version}".to_owned())
    }

    /// The header's value.
    pub fn value(&self) -> String {
        self.0.replace("{version}", crate::version::VERSION)
    }
}

impl Setting for UserAgent {
    const FORM: &'static str = "a header value: 1 to 256 printable ASCII characters";

    fn from_text(text: &str) -> Result<Self, Unfit> {
        let text = text.trim();
        let printable = text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if printable && (1..=256).contains(&text.len()) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Unfit::Form)
        }
    }

    fn to_toml(&self) -> toml::Value {
        self.0.clone().into()
    }
}

/// Where the operator is told: an http or https url, or nowhere. Credentials in its query are shown to nobody.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WebhookUrl(String);

impl std::fmt::Debug for WebhookUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&redacted_url(&self.0))
    }
}

impl WebhookUrl {
    /// Nowhere.
    pub fn none() -> Self {
        Self("none".to_owned())
    }

    /// The url; `None` for nowhere.
    pub fn get(&self) -> Option<http::Uri> {
        let uri: http::Uri = self.0.parse().ok()?;
        let scheme = matches!(uri.scheme_str(), Some("http" | "https"));
        let authority = uri.authority().is_some_and(|authority| !authority.as_str().contains('@'));
        (scheme && authority).then_some(uri)
    }
}

impl Setting for WebhookUrl {
    const FORM: &'static str = r#""none", or an http or https url without user info"#;
    const EXAMPLE: Option<&'static str> = Some(r#""https://ops.example/flare""#);

    fn from_text(text: &str) -> Result<Self, Unfit> {
        let url = Self(text.trim().to_owned());
        // What is shown in place of a credential is none.
        let is_url = url.get().is_some() && !url.0.contains(REDACTED);
        if url.0 == "none" || is_url { Ok(url) } else { Err(Unfit::Form) }
    }

    fn to_toml(&self) -> toml::Value {
        redacted_url(&self.0).into_owned().into()
    }
}

/// Where something is, in a word, or the word that nothing is said of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place(Option<String>);

impl Place {
    /// Nothing is said.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Where.
    pub fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl Setting for Place {
    const FORM: &'static str = r#""none", or a text without blanks"#;

    fn from_text(text: &str) -> Result<Self, Unfit> {
        match text.trim() {
            "none" => Ok(Self(None)),
            "" => Err(Unfit::Form),
            place if place.contains(char::is_whitespace) => Err(Unfit::Form),
            place => Ok(Self(Some(place.to_owned()))),
        }
    }

    fn to_toml(&self) -> toml::Value {
        self.0.clone().unwrap_or_else(|| "none".to_owned()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_a_level_or_directives_and_never_a_typing_error() {
        for text in ["info", "off", "TRACE", "warn,flare_core::journey=debug", "flare=trace,error"] {
            assert!(LogLevel::from_text(text).is_ok(), "{text}");
        }
        for text in ["inof", "", "info,", "info,flare", "flare=loud", "flare[accept{id=1}]=trace"] {
            assert!(LogLevel::from_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn the_user_agent_names_the_version_and_cannot_break_a_header() {
        assert_eq!(UserAgent::flare().value(), format!("Flare/{}", crate::version::VERSION));
        for text in ["", "  ", "a\r\nb: c", "Flär"] {
            assert!(UserAgent::from_text(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_webhook_is_an_http_url_or_none() {
        assert!(WebhookUrl::from_text("none").unwrap().get().is_none());
        assert!(WebhookUrl::from_text("https://ops.example:8443/hooks?team=a").unwrap().get().is_some());
        for text in ["", "ops.example", "ftp://ops.example/", "https://user:pw@ops.example/", "/path"] {
            assert!(WebhookUrl::from_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_output_that_is_no_stream_is_a_file() {
        assert_eq!(LogOutput::from_text("stdout").unwrap(), LogOutput::Stdout);
        assert_eq!(LogOutput::from_text("/var/log/flare").unwrap(), LogOutput::File("/var/log/flare".into()));
        assert!(LogOutput::from_text("").is_err());
    }
}
