//! In: words of the configuration that stand for a choice. Out: one enum or checked text per choice.

use std::path::PathBuf;

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

/// Where the operator is told: an http or https url, or nowhere.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WebhookUrl(String);

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
        if url.0 == "none" || url.get().is_some() { Ok(url) } else { Err(Unfit::Form) }
    }

    fn to_toml(&self) -> toml::Value {
        self.0.clone().into()
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
