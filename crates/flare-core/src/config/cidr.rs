//! In: an address range such as "10.0.0.0/8", or one address. Out: a [`Cidr`] that says whether it holds an address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A range of IP addresses: those whose first `prefix` bits are those of `address`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

impl Cidr {
    /// A range of IPv4 addresses.
    pub const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> Self {
        Self { address: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), prefix }
    }

    /// A range of IPv6 addresses.
    pub const fn v6(segments: [u16; 8], prefix: u8) -> Self {
        let [a, b, c, d, e, f, g, h] = segments;
        Self { address: IpAddr::V6(Ipv6Addr::new(a, b, c, d, e, f, g, h)), prefix }
    }

    /// Whether the address is in the range. An IPv4 address is in no IPv6 range, nor the other way round.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(_), IpAddr::V4(_)) | (IpAddr::V6(_), IpAddr::V6(_)) => {
                network(address, self.prefix) == network(self.address, self.prefix)
            }
            _ => false,
        }
    }

    /// Whether every address of the other range is in this one.
    pub fn covers(&self, other: &Self) -> bool {
        self.prefix <= other.prefix && self.contains(other.address)
    }
}

/// The leading bits of an address as a number; the bits below the prefix are gone.
fn network(address: IpAddr, prefix: u8) -> u128 {
    let (bits, width) = match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()), 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    };
    bits.checked_shr(width - u32::from(prefix)).unwrap_or(0)
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

impl FromStr for Cidr {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (address, prefix) =
            text.split_once('/').map_or((text, None), |(address, prefix)| (address, Some(prefix)));
        let address: IpAddr = address.parse().map_err(|_| format!("{text:?} is no address range"))?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            None => width,
            Some(prefix) => prefix
                .parse()
                .ok()
                .filter(|prefix| *prefix <= width)
                .ok_or_else(|| format!("the length in {text:?} is not a number from 0 to {width}"))?,
        };
        if Self::v6([0, 0, 0, 0, 0, 0xffff, 0, 0], 96).contains(address) {
            return Err(format!("{text:?} is an IPv4 range in IPv6 clothes: write it as IPv4"));
        }
        let first = first_address(address, prefix);
        if first != address {
            return Err(format!("{text:?} has bits beyond its length: write \"{first}/{prefix}\""));
        }
        Ok(Self { address, prefix })
    }
}

fn first_address(address: IpAddr, prefix: u8) -> IpAddr {
    let network = network(address, prefix);
    match address {
        IpAddr::V4(_) => {
            let bits = network.checked_shl(32 - u32::from(prefix)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(bits).expect("32 bits were taken and put back")))
        }
        IpAddr::V6(_) => {
            IpAddr::V6(Ipv6Addr::from_bits(network.checked_shl(128 - u32::from(prefix)).unwrap_or(0)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_its_first_and_last_address_and_not_their_neighbours() {
        let cases = [
            ("10.0.0.0/8", "10.0.0.0", "10.255.255.255", "9.255.255.255", "11.0.0.0"),
            ("100.64.0.0/10", "100.64.0.0", "100.127.255.255", "100.63.255.255", "100.128.0.0"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.7", "192.0.2.6", "192.0.2.8"),
            ("fd00::/8", "fd00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "fcff::", "fe00::"),
            ("fd00:ec2::254", "fd00:ec2::254", "fd00:ec2::254", "fd00:ec2::253", "fd00:ec2::255"),
        ];
        for (range, first, last, before, after) in cases {
            let range: Cidr = range.parse().unwrap();
            assert!(
                range.contains(first.parse().unwrap()) && range.contains(last.parse().unwrap()),
                "{range}"
            );
            assert!(
                !range.contains(before.parse().unwrap()) && !range.contains(after.parse().unwrap()),
                "{range}"
            );
        }
    }

    #[test]
    fn the_whole_of_one_family_holds_nothing_of_the_other() {
        let all: Cidr = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("255.255.255.255".parse().unwrap()));
        assert!(!all.contains("::1".parse().unwrap()));
        let all: Cidr = "::/0".parse().unwrap();
        assert!(all.contains("ff02::1".parse().unwrap()));
        assert!(!all.contains("127.0.0.1".parse().unwrap()));
    }

    #[test]
    fn a_wrong_range_is_refused_with_its_remedy() {
        let cases = [
            ("10.0.0.1/8", "write \"10.0.0.0/8\""),
            ("fd00::1/8", "write \"fd00::/8\""),
            ("10.0.0.0/33", "from 0 to 32"),
            ("::/129", "from 0 to 128"),
            ("10.0.0.0/", "from 0 to 32"),
            ("localhost", "no address range"),
            ("", "no address range"),
            ("::ffff:10.0.0.0/104", "write it as IPv4"),
        ];
        for (text, remedy) in cases {
            let error = text.parse::<Cidr>().unwrap_err();
            assert!(error.contains(remedy), "{text}: {error}");
        }
    }

    #[test]
    fn a_range_covers_itself_and_its_parts() {
        let outer: Cidr = "64:ff9b::/96".parse().unwrap();
        assert!(outer.covers(&outer));
        assert!(outer.covers(&"64:ff9b::a00:0/104".parse().unwrap()));
        assert!(!outer.covers(&"64:ff9b::/95".parse().unwrap()));
    }
}
