//! In: the words of `[provider.postgresql]`. Out: checked values, one type for each.

use std::fmt;

use super::secret::REDACTED;
use super::setting::{Setting, Unfit};

/// Says that there is none.
const NONE: &str = "none";

/// Where a PostgreSQL server is, or the word that there is none. It may have a password, and is never shown.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DatabaseUrl(Option<String>);

impl DatabaseUrl {
    /// Nowhere.
    pub const fn none() -> Self {
        Self(None)
    }

    /// The url itself, for the one place that needs it.
    pub fn reveal(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { REDACTED } else { NONE })
    }
}

impl Setting for DatabaseUrl {
    const FORM: &'static str = r#""none", or a url that begins with postgres:// or postgresql://"#;
    const EXAMPLE: Option<&'static str> = Some(r#""postgres://flare:password@db.example:5432/flare""#);
    const SECRET: bool = true;

    fn from_text(text: &str) -> Result<Self, Unfit> {
        match text.trim() {
            NONE => Ok(Self(None)),
            url if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                Ok(Self(Some(url.to_owned())))
            }
            _ => Err(Unfit::Form),
        }
    }

    fn to_toml(&self) -> toml::Value {
        if self.0.is_some() { REDACTED.into() } else { NONE.into() }
    }
}

/// The name of a schema.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SchemaName(String);

impl SchemaName {
    /// The default.
    pub fn flare() -> Self {
        Self("flare".to_owned())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Setting for SchemaName {
    const FORM: &'static str = "a name: 1 to 63 of a-z, 0-9 and _, with a letter first";

    fn from_text(text: &str) -> Result<Self, Unfit> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
        // Names that begin so are PostgreSQL's own.
        let own = text.starts_with("pg_");
        if begins && !own && text.len() <= 63 && text.bytes().all(fits) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Unfit::Form)
        }
    }

    fn to_toml(&self) -> toml::Value {
        self.0.clone().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_of_a_database_is_never_shown() {
        let url = DatabaseUrl::from_text("postgres://flare:hidden@db/flare").expect("a url");
        assert!(url.reveal().is_some());
        assert!(!format!("{url:?} {}", url.to_toml()).contains("hidden"));
        for text in ["", "db.example", "http://db/flare", "mysql://db/flare"] {
            assert!(DatabaseUrl::from_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_schema_has_a_plain_name() {
        assert_eq!(SchemaName::from_text("flare_2").expect("a name").as_str(), "flare_2");
        for text in ["", "2flare", "Flare", "a-b", "pg_flare", "a\"b", &"a".repeat(64)] {
            assert!(SchemaName::from_text(text).is_err(), "{text}");
        }
    }
}
