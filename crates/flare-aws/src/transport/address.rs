//! Where a service is: a url comes in, a host, a port and whether TLS is spoken go out.

/// Where a service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Whether TLS is spoken.
    pub secure: bool,
    /// The host, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

/// Why a text is no address.
#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no endpoint; write http://host:port or https://host")]
pub struct NoAddress(String);

impl Address {
    /// Reads `http://host:port` or `https://host`, and what stands behind it: an empty path where there is none.
    pub fn parse(text: &str) -> Result<(Address, String), NoAddress> {
        let refused = || NoAddress(text.to_owned());
        let (secure, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(refused()),
        };
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        // Credentials in a url have no meaning here, and would end up in messages.
        if authority.contains('@') {
            return Err(NoAddress("a url with a user in it".to_owned()));
        }
        let usual = if secure { 443 } else { 80 };
        let (host, port) = match authority.strip_prefix('[').and_then(|inner| inner.split_once(']')) {
            Some((host, "")) => (host, usual),
            Some((host, port)) => {
                (host, port.strip_prefix(':').and_then(|port| port.parse().ok()).ok_or_else(refused)?)
            }
            None => match authority.split_once(':') {
                Some((host, port)) => (host, port.parse().map_err(|_| refused())?),
                None => (authority, usual),
            },
        };
        if host.is_empty() {
            return Err(refused());
        }
        Ok((Address { secure, host: host.to_owned(), port }, path.to_owned()))
    }

    /// As the `host` header has it: the usual port is not written, and signatures are made over that.
    pub fn authority(&self) -> String {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => self.host.clone(),
        };
        match (self.secure, self.port) {
            (true, 443) | (false, 80) => host,
            _ => format!("{host}:{}", self.port),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_a_host_and_a_port_and_what_is_behind_them() {
        for (text, authority, port, path) in [
            ("https://sqs.eu-west-1.amazonaws.com", "sqs.eu-west-1.amazonaws.com", 443, ""),
            ("http://127.0.0.1:4566/", "127.0.0.1:4566", 4566, "/"),
            ("https://sqs.eu-west-1.amazonaws.com/1/q", "sqs.eu-west-1.amazonaws.com", 443, "/1/q"),
            ("http://[::1]:80/x?y", "[::1]", 80, "/x?y"),
            ("http://[fd00:ec2::23]:8080", "[fd00:ec2::23]:8080", 8080, ""),
        ] {
            let (address, rest) = Address::parse(text).expect(text);
            assert_eq!((address.authority().as_str(), address.port, rest.as_str()), (authority, port, path));
        }
    }

    #[test]
    fn what_is_no_address_is_refused_and_shows_no_credentials() {
        for text in ["", "sqs.amazonaws.com", "ftp://host", "http://", "http://host:port", "http://[::1]x"] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
        let mistake = Address::parse("http://user:hidden@host").expect_err("a user");
        assert!(!mistake.to_string().contains("hidden"));
    }
}
