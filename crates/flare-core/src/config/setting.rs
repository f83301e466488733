//! In: a value as it was written, in the file (typed) or in an environment variable (text). Out: a value of the key's
//! type, or why it does not fit.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use flare_model::duration::HumanDuration;

use super::cidr::Cidr;

/// A value as it was given, before it is understood.
#[derive(Debug, Clone)]
pub enum Raw {
    /// From a place that only knows text: an environment variable or a flag.
    Text(String),
    /// From the file.
    Toml(toml::Value),
}

/// Why a value was not taken.
#[derive(Debug)]
pub enum Unfit {
    /// It does not have the form that [`Setting::FORM`] describes.
    Form,
    /// There is more to say than the form does.
    Because(String),
}

/// A type that a key of the configuration may have.
pub trait Setting: Clone + PartialOrd {
    /// What a value is, in words, to follow "expected".
    const FORM: &'static str;
    /// An example as it is written in the file; `None` takes the key's default.
    const EXAMPLE: Option<&'static str> = None;
    /// Whether the value must never be shown.
    const SECRET: bool = false;

    /// Reads the text of an environment variable or of a string in the file.
    fn from_text(text: &str) -> Result<Self, Unfit>;

    /// Reads a value of the file. Only strings fit unless a type says otherwise.
    fn from_toml(value: &toml::Value) -> Result<Self, Unfit> {
        value.as_str().map_or(Err(Unfit::Form), Self::from_text)
    }

    /// The value as it may be written in the file.
    fn to_toml(&self) -> toml::Value;
}

macro_rules! whole_numbers {
    ($($kind:ty),*) => {$(
        impl Setting for $kind {
            const FORM: &'static str = "a whole number";

            fn from_text(text: &str) -> Result<Self, Unfit> {
                text.trim().parse().map_err(|_| Unfit::Form)
            }

            fn from_toml(value: &toml::Value) -> Result<Self, Unfit> {
                value.as_integer().and_then(|number| Self::try_from(number).ok()).ok_or(Unfit::Form)
            }

            fn to_toml(&self) -> toml::Value {
                toml::Value::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
            }
        }
    )*};
}
whole_numbers!(u16, u32, usize);

impl Setting for bool {
    const FORM: &'static str = "true or false";

    fn from_text(text: &str) -> Result<Self, Unfit> {
        text.trim().parse().map_err(|_| Unfit::Form)
    }

    fn from_toml(value: &toml::Value) -> Result<Self, Unfit> {
        value.as_bool().ok_or(Unfit::Form)
    }

    fn to_toml(&self) -> toml::Value {
        toml::Value::Boolean(*self)
    }
}

impl Setting for Duration {
    const FORM: &'static str = "a duration";

    fn from_text(text: &str) -> Result<Self, Unfit> {
        HumanDuration::parse(text.trim()).map(|duration| duration.0).map_err(|_| Unfit::Form)
    }

    fn to_toml(&self) -> toml::Value {
        HumanDuration(*self).to_string().into()
    }
}

impl Setting for SocketAddr {
    const FORM: &'static str = "an IP address with a port";

    fn from_text(text: &str) -> Result<Self, Unfit> {
        text.trim().parse().map_err(|_| Unfit::Form)
    }

    fn to_toml(&self) -> toml::Value {
        self.to_string().into()
    }
}

impl Setting for PathBuf {
    const FORM: &'static str = "a path";

    fn from_text(text: &str) -> Result<Self, Unfit> {
        if text.is_empty() || text.contains('\0') { Err(Unfit::Form) } else { Ok(Self::from(text)) }
    }

    fn to_toml(&self) -> toml::Value {
        // Paths only come in as text, so nothing is lost here.
        self.to_string_lossy().into_owned().into()
    }
}

/// What a list of the configuration is made of. Its text has no comma.
pub trait Listed: Clone + PartialOrd + FromStr<Err = String> + ToString {
    /// What the list is, in words, to follow "expected".
    const FORM: &'static str;
    /// An example of the list as it is written in the file.
    const EXAMPLE: &'static str;

    /// The text of an entry in the file.
    fn from_entry(entry: &toml::Value) -> Option<String> {
        entry.as_str().map(str::to_owned)
    }

    /// The entry as it may be written in the file.
    fn to_entry(&self) -> toml::Value {
        self.to_string().into()
    }
}

impl Listed for Cidr {
    const FORM: &'static str = "a list of address ranges";
    const EXAMPLE: &'static str = r#"["10.0.0.0/8", "fd00::/8"]"#;
}

/// The port of an address. In a file it is a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Port(pub u16);

impl FromStr for Port {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let port = text.parse().ok().filter(|port| *port > 0);
        port.map(Self).ok_or_else(|| format!("{text:?} is no port: write a number from 1 to 65535"))
    }
}

impl std::fmt::Display for Port {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Listed for Port {
    const FORM: &'static str = "a list of ports";
    const EXAMPLE: &'static str = "[25, 587]";

    fn from_entry(entry: &toml::Value) -> Option<String> {
        entry.as_integer().map(|port| port.to_string())
    }

    fn to_entry(&self) -> toml::Value {
        i64::from(self.0).into()
    }
}

impl<T: Listed> Setting for Vec<T> {
    const FORM: &'static str = T::FORM;
    const EXAMPLE: Option<&'static str> = Some(T::EXAMPLE);

    /// Comma separated, or a list as in the file, so that an environment variable can also say `[]`.
    fn from_text(text: &str) -> Result<Self, Unfit> {
        if text.trim_start().starts_with('[') {
            return Self::from_toml(&text.trim().parse::<toml::Value>().map_err(|_| Unfit::Form)?);
        }
        text.split(',').map(|entry| entry.trim().parse().map_err(Unfit::Because)).collect()
    }

    fn from_toml(value: &toml::Value) -> Result<Self, Unfit> {
        let entries = value.as_array().ok_or(Unfit::Form)?;
        entries
            .iter()
            .map(|entry| T::from_entry(entry).ok_or(Unfit::Form)?.parse().map_err(Unfit::Because))
            .collect()
    }

    fn to_toml(&self) -> toml::Value {
        toml::Value::Array(self.iter().map(T::to_entry).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_in_text_may_be_comma_separated_or_written_as_in_the_file() {
        let written = Vec::<Cidr>::from_text(r#"["10.0.0.0/8", "fd00::/8"]"#).unwrap();
        assert_eq!(written, Vec::<Cidr>::from_text("10.0.0.0/8, fd00::/8").unwrap());
        assert_eq!(Vec::<Cidr>::from_text("[]").unwrap(), vec![]);
        assert!(Vec::<Cidr>::from_text("10.0.0.0/8,,").is_err());
    }

    #[test]
    fn a_number_in_quotes_does_not_fit_in_the_file() {
        assert!(u32::from_toml(&toml::Value::String("8".into())).is_err());
        assert_eq!(u32::from_toml(&toml::Value::Integer(8)).unwrap(), 8);
        assert!(u32::from_toml(&toml::Value::Integer(-8)).is_err());
        assert_eq!(u32::from_text("8").unwrap(), 8);
    }

    #[test]
    fn an_address_needs_its_port() {
        assert!(SocketAddr::from_text("127.0.0.1").is_err());
        assert!(SocketAddr::from_text("[::1]:8080").is_ok());
    }
}
