//! In: names and origins as a configuration writes them. Out: the same, checked and in the form that is compared with what
//! browsers say.

use std::fmt;
use std::str::FromStr;

use super::setting::Listed;

/// The name of a host, in lower case, without a port.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostName(String);

impl HostName {
    /// Whether a host, without its port, is this one.
    pub fn is(&self, host: &str) -> bool {
        host.eq_ignore_ascii_case(&self.0)
    }
}

impl FromStr for HostName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let label = |label: &str| {
            (1..=63).contains(&label.len())
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        match text.len() <= 253 && text.split('.').all(label) {
            true => Ok(Self(text.to_ascii_lowercase())),
            false => {
                Err(format!("{text:?} is no name of a host: write it as \"flare.company.com\", without port"))
            }
        }
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Listed for HostName {
    const FORM: &'static str = "a list of names of hosts";
    const EXAMPLE: &'static str = r#"["flare.company.com"]"#;
}

/// An origin as browsers send it: scheme, host, and the port where it is not the scheme's own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct WebOrigin(String);

impl WebOrigin {
    /// Whether the value of an `Origin` header is this one.
    pub fn is(&self, origin: &str) -> bool {
        origin == self.0
    }
}

impl FromStr for WebOrigin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let unfit = || {
            format!(
                "{text:?} is no origin of a page: write scheme, host and port, \"https://console.company.com\""
            )
        };
        let uri: http::Uri = lower.parse().map_err(|_| unfit())?;
        let (Some(scheme @ ("http" | "https")), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(unfit());
        };
        if authority.as_str().contains('@') || lower != format!("{scheme}://{authority}") {
            return Err(unfit());
        }
        // Browsers leave the port of the scheme out.
        let own = if scheme == "https" { ":443" } else { ":80" };
        Ok(Self(lower.strip_suffix(own).map_or(lower.clone(), str::to_owned)))
    }
}

impl fmt::Display for WebOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Listed for WebOrigin {
    const FORM: &'static str = "a list of origins of pages";
    const EXAMPLE: &'static str = r#"["https://console.company.com"]"#;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_host_is_compared_in_any_case_and_has_no_port() {
        let name: HostName = "Flare.Company.com".parse().unwrap();
        assert!(name.is("flare.company.COM") && !name.is("company.com"));
        for wrong in ["", "a b", "flare:8080", "http://flare", "*.company.com", "a..b", "[::1]"] {
            assert!(wrong.parse::<HostName>().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn an_origin_is_what_a_browser_sends() {
        for (given, sent) in [
            ("https://console.company.com", "https://console.company.com"),
            ("https://Console.company.com:443", "https://console.company.com"),
            ("http://localhost:3000", "http://localhost:3000"),
            ("http://127.0.0.1:80", "http://127.0.0.1"),
        ] {
            assert!(given.parse::<WebOrigin>().unwrap().is(sent), "{given}");
        }
        for wrong in
            ["", "*", "null", "console.company.com", "https://a/", "https://a/b", "ftp://a", "https://u@a"]
        {
            assert!(wrong.parse::<WebOrigin>().is_err(), "{wrong:?}");
        }
    }
}
