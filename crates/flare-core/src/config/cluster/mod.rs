//! In: the words of `[cluster]` and `[provider.etcd]`. Out: checked values, one type for each.

pub mod among_others;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::config::secret::REDACTED;
use crate::config::setting::{Listed, Setting, Unfit};
use crate::config::site::HostName;

/// Says that Flare works it out.
const AUTO: &str = "auto";
/// Says that there is none.
const NONE: &str = "none";

/// The longest name of a cluster or node.
const LONGEST: usize = 128;

fn is_name(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(&byte);
    (1..=LONGEST).contains(&text.len()) && text.bytes().all(fits)
}

/// The name of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterName(String);

impl ClusterName {
    /// The default.
    pub fn flare() -> Self {
        Self("flare".to_owned())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Setting for ClusterName {
    const FORM: &'static str = "a name: 1 to 128 letters, digits and - _ . :";

    fn from_text(text: &str) -> Result<Self, Unfit> {
        if is_name(text) { Ok(Self(text.to_owned())) } else { Err(Unfit::Form) }
    }

    fn to_toml(&self) -> toml::Value {
        self.0.clone().into()
    }
}

/// The name of a node, or the word that it is made of host and port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeName(Option<String>);

impl NodeName {
    /// Made of host and port.
    pub const fn auto() -> Self {
        Self(None)
    }

    /// The name, if it is given.
    pub fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl Setting for NodeName {
    const FORM: &'static str = r#""auto", or a name: 1 to 128 letters, digits and - _ . :"#;

    fn from_text(text: &str) -> Result<Self, Unfit> {
        match text {
            AUTO => Ok(Self(None)),
            name if is_name(name) => Ok(Self(Some(name.to_owned()))),
            _ => Err(Unfit::Form),
        }
    }

    fn to_toml(&self) -> toml::Value {
        self.0.clone().unwrap_or_else(|| AUTO.to_owned()).into()
    }
}

/// How other nodes reach this one, or the word that it is where it listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Advertised(Option<String>);

impl Advertised {
    /// Where it listens.
    pub const fn auto() -> Self {
        Self(None)
    }

    /// The address, if it is given: `http://host:port`, or `https://host:port`.
    pub fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }

    /// The name of its host, where it has one.
    pub fn host_name(&self) -> Option<HostName> {
        let (_, authority) = self.get()?.split_once("://")?;
        let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
        host.parse().ok()
    }
}

impl Setting for Advertised {
    const FORM: &'static str = r#""auto", or an address of the form http://host:port or https://host:port"#;
    const EXAMPLE: Option<&'static str> = Some(r#""http://10.0.0.1:8080""#);

    fn from_text(text: &str) -> Result<Self, Unfit> {
        let text = text.trim().trim_end_matches('/');
        if text == AUTO {
            return Ok(Self(None));
        }
        let authority = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        let authority = authority.ok_or(Unfit::Form)?;
        let authority: http::uri::Authority = authority.parse().map_err(|_| Unfit::Form)?;
        match authority.as_str().contains('@') || authority.host().is_empty() {
            true => Err(Unfit::Form),
            false => Ok(Self(Some(text.to_owned()))),
        }
    }

    fn to_toml(&self) -> toml::Value {
        self.0.clone().unwrap_or_else(|| AUTO.to_owned()).into()
    }
}

/// A duration, or the word that it follows from the lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AutoDuration(Option<Duration>);

impl AutoDuration {
    /// It follows from the lease.
    pub const fn auto() -> Self {
        Self(None)
    }

    /// The duration, or this one.
    pub fn or(self, auto: Duration) -> Duration {
        self.0.unwrap_or(auto)
    }
}

impl Setting for AutoDuration {
    const FORM: &'static str = r#""auto", or a duration"#;

    fn from_text(text: &str) -> Result<Self, Unfit> {
        if text.trim() == AUTO {
            return Ok(Self(None));
        }
        Duration::from_text(text).map(|duration| Self(Some(duration)))
    }

    fn to_toml(&self) -> toml::Value {
        self.0.map_or_else(|| AUTO.into(), |duration| duration.to_toml())
    }
}

/// A member of etcd: `http://host:port` or `https://host:port`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EtcdEndpoint(String);

impl EtcdEndpoint {
    /// The address.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for EtcdEndpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no member of etcd: write it as \"http://127.0.0.1:2379\"");
        let text = text.trim_end_matches('/');
        let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
        let authority: http::uri::Authority = rest.ok_or_else(wrong)?.parse().map_err(|_| wrong())?;
        match authority.as_str().contains('@') {
            true => Err(wrong()),
            false => Ok(Self(text.to_owned())),
        }
    }
}

impl fmt::Display for EtcdEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Listed for EtcdEndpoint {
    const FORM: &'static str = "a list of members of etcd";
    const EXAMPLE: &'static str = r#"["http://127.0.0.1:2379"]"#;
}

/// Before every key in etcd.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyPrefix(String);

impl KeyPrefix {
    /// The default.
    pub fn flare() -> Self {
        Self("flare/".to_owned())
    }

    /// The prefix.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Setting for KeyPrefix {
    const FORM: &'static str = "a text of 1 to 128 visible characters";

    fn from_text(text: &str) -> Result<Self, Unfit> {
        let fits = (1..=LONGEST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        if fits { Ok(Self(text.to_owned())) } else { Err(Unfit::Form) }
    }

    fn to_toml(&self) -> toml::Value {
        self.0.clone().into()
    }
}

/// A name or a password, or the word that there is none. It is never shown.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Credential(Option<String>);

impl Credential {
    /// There is none.
    pub const fn none() -> Self {
        Self(None)
    }

    /// The text itself, for the one place that needs it.
    pub fn reveal(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { REDACTED } else { NONE })
    }
}

impl Setting for Credential {
    const FORM: &'static str = r#""none", or a text"#;
    const SECRET: bool = true;

    fn from_text(text: &str) -> Result<Self, Unfit> {
        match text {
            NONE => Ok(Self(None)),
            "" => Err(Unfit::Form),
            text => Ok(Self(Some(text.to_owned()))),
        }
    }

    fn to_toml(&self) -> toml::Value {
        if self.0.is_some() { REDACTED.into() } else { NONE.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_for_other_nodes_has_a_host_and_no_path() {
        let address = Advertised::from_text("http://10.0.0.1:8080/").expect("an address");
        assert_eq!(address.get(), Some("http://10.0.0.1:8080"));
        let encrypted = Advertised::from_text("https://node-a:8443").expect("an address");
        assert_eq!(encrypted.get(), Some("https://node-a:8443"));
        assert_eq!(encrypted.host_name(), "node-a".parse().ok());
        assert_eq!(Advertised::from_text("auto").expect("a word").get(), None);
        for text in ["", "10.0.0.1:8080", "https://", "http://", "http://u:p@a", "http://a/b c", "ftp://a"] {
            assert!(Advertised::from_text(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_follows_from_the_lease_can_be_said_too() {
        let lease = Duration::from_secs(9);
        assert_eq!(AutoDuration::from_text("auto").expect("a word").or(lease), lease);
        assert_eq!(AutoDuration::from_text("2s").expect("a duration").or(lease), Duration::from_secs(2));
        assert!(AutoDuration::from_text("soon").is_err());
    }

    #[test]
    fn a_credential_is_never_shown() {
        let password = Credential::from_text("hidden").expect("a text");
        assert!(!format!("{password:?} {}", password.to_toml()).contains("hidden"));
    }
}
