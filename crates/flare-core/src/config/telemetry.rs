//! In: the words of `[telemetry]`, and the standard `OTEL_` variables. Out: checked values, one type for each.
//!
//! Whatever Flare's own file, variables and flags say goes before the standard variables: those are often set for all
//! programs of a machine, and what is said to one of them is meant for it.

#![cfg_attr(not(feature = "otlp"), allow(dead_code, reason = "nothing is sent, so nobody asks how"))]

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use http::{HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

use super::load::Given;
use super::problem::Origin;
use super::secret::REDACTED;
use super::setting::{Raw, Setting, Unfit};

/// The standard variables that are understood, and the key that each one sets.
const STANDARD: [(&str, &str); 6] = [
    ("OTEL_EXPORTER_OTLP_ENDPOINT", "telemetry.endpoint"),
    ("OTEL_EXPORTER_OTLP_PROTOCOL", "telemetry.protocol"),
    ("OTEL_EXPORTER_OTLP_HEADERS", "telemetry.headers"),
    ("OTEL_EXPORTER_OTLP_CERTIFICATE", "telemetry.certificate"),
    ("OTEL_SERVICE_NAME", "telemetry.service-name"),
    ("OTEL_RESOURCE_ATTRIBUTES", "telemetry.resource-attributes"),
];

/// Turns everything off that the other variables turn on.
const DISABLED: &str = "OTEL_SDK_DISABLED";

/// Reads the standard variables; an empty one counts as one that is not set.
pub fn read(environment: &[(OsString, OsString)]) -> Vec<Given> {
    let value = |wanted: &str| {
        let found = environment.iter().find(|(name, value)| name == wanted && !value.is_empty());
        found.map(|(_, value)| value.to_string_lossy().into_owned())
    };
    if value(DISABLED).is_some_and(|text| text.trim().eq_ignore_ascii_case("true")) {
        return Vec::new();
    }
    let given = STANDARD.iter().filter_map(|(variable, key)| {
        let origin = Origin::Environment { variable: (*variable).to_owned() };
        Some(Given { key: (*key).to_owned(), raw: Raw::Text(value(variable)?), origin })
    });
    given.collect()
}

/// How telemetry is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// gRPC, over HTTP/2.
    Grpc,
    /// Protobuf in a POST.
    Http,
}

impl Setting for Protocol {
    const FORM: &'static str = r#""grpc" or "http/protobuf""#;

    fn from_text(text: &str) -> Result<Self, Unfit> {
        match text.trim() {
            "grpc" => Ok(Self::Grpc),
            "http/protobuf" | "http" => Ok(Self::Http),
            _ => Err(Unfit::Form),
        }
    }

    fn to_toml(&self) -> toml::Value {
        match self {
            Self::Grpc => "grpc".into(),
            Self::Http => "http/protobuf".into(),
        }
    }
}

/// A file of certificates, or the word that there is none. It is read where telemetry starts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertificateFile(Option<PathBuf>);

impl CertificateFile {
    /// No file.
    pub const fn none() -> Self {
        Self(None)
    }

    /// Where it is.
    pub fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }
}

impl From<Option<PathBuf>> for CertificateFile {
    fn from(path: Option<PathBuf>) -> Self {
        Self(path)
    }
}

impl Setting for CertificateFile {
    const FORM: &'static str = r#""none", or the path of a PEM file"#;
    const EXAMPLE: Option<&'static str> = Some(r#""/etc/flare/collector-ca.pem""#);

    fn from_text(text: &str) -> Result<Self, Unfit> {
        match text {
            NONE => Ok(Self(None)),
            path => PathBuf::from_text(path).map(|path| Self(Some(path))),
        }
    }

    fn to_toml(&self) -> toml::Value {
        self.0.as_ref().map_or_else(|| NONE.into(), Setting::to_toml)
    }
}

/// A part of the whole, from 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Ratio(pub f64);

impl Setting for Ratio {
    const FORM: &'static str = "a number";

    fn from_text(text: &str) -> Result<Self, Unfit> {
        let number: f64 = text.trim().parse().map_err(|_| Unfit::Form)?;
        if number.is_finite() { Ok(Self(number)) } else { Err(Unfit::Form) }
    }

    fn from_toml(value: &toml::Value) -> Result<Self, Unfit> {
        match value {
            toml::Value::Float(number) if number.is_finite() => Ok(Self(*number)),
            toml::Value::Integer(number) => Ok(Self(*number as f64)),
            _ => Err(Unfit::Form),
        }
    }

    fn to_toml(&self) -> toml::Value {
        self.0.into()
    }
}

/// Headers that go with every export. They may hold a key, so their values are never shown.
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExportHeaders(Vec<(String, String)>);

impl ExportHeaders {
    /// The headers themselves, for the one place that sends them.
    pub fn reveal(&self) -> impl Iterator<Item = (HeaderName, HeaderValue)> {
        self.0.iter().map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).expect("it was checked when it was read");
            let mut value = HeaderValue::from_str(value).expect("it was checked when it was read");
            value.set_sensitive(true);
            (name, value)
        })
    }
}

impl std::fmt::Debug for ExportHeaders {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

impl Setting for ExportHeaders {
    const FORM: &'static str = r#""none", or headers as `name=value`, separated by commas"#;
    const EXAMPLE: Option<&'static str> = Some(r#""api-key=0123456789abcdef""#);
    const SECRET: bool = true;

    fn from_text(text: &str) -> Result<Self, Unfit> {
        let headers = pairs(text)?;
        for (name, value) in &headers {
            HeaderName::from_bytes(name.as_bytes()).map_err(|_| Unfit::Form)?;
            HeaderValue::from_str(value).map_err(|_| Unfit::Form)?;
        }
        Ok(Self(headers))
    }

    fn to_toml(&self) -> toml::Value {
        listed(self.0.iter().map(|(name, _)| format!("{name}={REDACTED}")))
    }
}

/// What is said of the program beside its name, such as the environment it runs in.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attributes(Vec<(String, String)>);

impl Attributes {
    /// Names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl Setting for Attributes {
    const FORM: &'static str = r#""none", or attributes as `name=value`, separated by commas"#;
    const EXAMPLE: Option<&'static str> = Some(r#""deployment.environment.name=staging,region=eu""#);

    fn from_text(text: &str) -> Result<Self, Unfit> {
        pairs(text).map(Self)
    }

    fn to_toml(&self) -> toml::Value {
        let encode = |text: &str| text.replace('%', "%25").replace(',', "%2C").replace('=', "%3D");
        listed(self.0.iter().map(|(name, value)| format!("{name}={}", encode(value))))
    }
}

/// The name under which the node is found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceName(String);

impl ServiceName {
    /// The default.
    pub fn flare() -> Self {
        Self("flare".to_owned())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Setting for ServiceName {
    const FORM: &'static str = "a name of 1 to 255 characters";

    fn from_text(text: &str) -> Result<Self, Unfit> {
        let text = text.trim();
        if (1..=255).contains(&text.len()) { Ok(Self(text.to_owned())) } else { Err(Unfit::Form) }
    }

    fn to_toml(&self) -> toml::Value {
        self.0.clone().into()
    }
}

/// Says that there is no file, and that there are no headers or attributes, so that a variable can say it too.
const NONE: &str = "none";

/// The opposite of [`pairs`].
fn listed(shown: impl Iterator<Item = String>) -> toml::Value {
    let listed = shown.collect::<Vec<_>>().join(",");
    if listed.is_empty() { NONE.into() } else { listed.into() }
}

/// `name=value,name=value`, values percent-encoded: the form of the standard variables. Blanks around names and values
/// do not count.
fn pairs(text: &str) -> Result<Vec<(String, String)>, Unfit> {
    if text.trim() == NONE {
        return Ok(Vec::new());
    }
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts
        .map(|part| {
            let (name, value) = part.split_once('=').ok_or(Unfit::Form)?;
            let value = percent_decode_str(value.trim()).decode_utf8().map_err(|_| Unfit::Form)?;
            let name = name.trim();
            if name.is_empty() { Err(Unfit::Form) } else { Ok((name.to_owned(), value.into_owned())) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pairs: &[(&str, &str)]) -> Vec<String> {
        let environment: Vec<_> = pairs.iter().map(|(name, value)| (name.into(), value.into())).collect();
        read(&environment).into_iter().map(|given| given.key).collect()
    }

    #[test]
    fn the_standard_variables_set_keys_unless_they_are_empty_or_all_is_disabled() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4317");
        assert_eq!(given(&[endpoint, ("OTEL_SERVICE_NAME", "")]), ["telemetry.endpoint"]);
        assert!(given(&[endpoint, ("OTEL_SDK_DISABLED", "true")]).is_empty());
    }

    #[test]
    fn every_standard_variable_sets_a_key_that_exists() {
        let keys = crate::config::load::keys();
        for (variable, key) in STANDARD {
            assert!(keys.iter().any(|known| known == key), "{variable} sets {key}");
        }
    }

    #[test]
    fn headers_are_decoded_and_never_shown() {
        let headers = ExportHeaders::from_text("api-key=s%2Ccret , x=y").unwrap();
        let sent: Vec<_> =
            headers.reveal().map(|(name, value)| (name, value.to_str().unwrap().to_owned())).collect();
        assert_eq!(sent[0].1, "s,cret");
        assert_eq!(sent.len(), 2);
        assert!(!format!("{headers:?} {}", headers.to_toml()).contains("cret"));
        for wrong in ["api-key", "=x", "bad name=x", "x=a%0Ab"] {
            assert!(ExportHeaders::from_text(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn attributes_are_shown_as_they_can_be_read_again() {
        let attributes = Attributes::from_text("region=eu, note=a%2Cb%3Dc%25").unwrap();
        assert_eq!(attributes.iter().last(), Some(("note", "a,b=c%")));
        for attributes in [attributes, Attributes::default()] {
            assert_eq!(Attributes::from_toml(&attributes.to_toml()).unwrap(), attributes);
        }
    }
}
