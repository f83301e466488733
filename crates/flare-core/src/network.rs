//! In: an address that is about to be dialled. Out: whether it may be, and if not, why.
//!
//! One validator for creating, testing and delivering, applied to the address that is really dialled, so that a name
//! which resolves to something else a moment later gains nothing. What is absent: names. A caller resolves, checks each
//! address, and dials an address that was checked.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

use crate::config::{Cidr, NetworkConfig};

/// Which destinations may be reached.
#[derive(Debug, Clone)]
pub struct Destinations {
    allow: Vec<Cidr>,
    deny: Vec<Cidr>,
    api_is_loopback: bool,
}

/// A destination that may not be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The address that was asked about.
    pub address: IpAddr,
    /// Why.
    pub reason: Reason,
}

/// What is wrong with a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It is in a range of `network.deny`.
    Denied(Cidr),
    /// This machine.
    Loopback,
    /// A private network, the ones that translate to one included.
    Private,
    /// The shared space of carrier-grade NAT.
    Shared,
    /// The local link.
    LinkLocal,
    /// The service of a cloud that hands out credentials.
    Metadata,
    /// Kept for documents and examples.
    Documentation,
    /// Kept for protocols, benchmarks, tunnels or the future.
    Reserved,
    /// Many machines.
    Multicast,
    /// Every machine of the local network.
    Broadcast,
    /// No machine, which systems take for this one.
    Unspecified,
}

/// Addresses of IPv4 that are not public; the first range that holds an address names the reason.
const V4: [(Cidr, Reason); 20] = [
    (Cidr::v4(169, 254, 169, 254, 32), Reason::Metadata),
    (Cidr::v4(169, 254, 170, 2, 32), Reason::Metadata),
    (Cidr::v4(100, 100, 100, 200, 32), Reason::Metadata),
    (Cidr::v4(168, 63, 129, 16, 32), Reason::Metadata),
    (Cidr::v4(0, 0, 0, 0, 8), Reason::Unspecified),
    (Cidr::v4(10, 0, 0, 0, 8), Reason::Private),
    (Cidr::v4(100, 64, 0, 0, 10), Reason::Shared),
    (Cidr::v4(127, 0, 0, 0, 8), Reason::Loopback),
    (Cidr::v4(169, 254, 0, 0, 16), Reason::LinkLocal),
    (Cidr::v4(172, 16, 0, 0, 12), Reason::Private),
    (Cidr::v4(192, 0, 0, 0, 24), Reason::Reserved),
    (Cidr::v4(192, 0, 2, 0, 24), Reason::Documentation),
    (Cidr::v4(192, 88, 99, 0, 24), Reason::Reserved),
    (Cidr::v4(192, 168, 0, 0, 16), Reason::Private),
    (Cidr::v4(198, 18, 0, 0, 15), Reason::Reserved),
    (Cidr::v4(198, 51, 100, 0, 24), Reason::Documentation),
    (Cidr::v4(203, 0, 113, 0, 24), Reason::Documentation),
    (Cidr::v4(224, 0, 0, 0, 4), Reason::Multicast),
    (Cidr::v4(255, 255, 255, 255, 32), Reason::Broadcast),
    (Cidr::v4(240, 0, 0, 0, 4), Reason::Reserved),
];

/// The same for IPv6. Only 2000::/3 has been given out for public use; what lies outside is refused in any case.
const V6: [(Cidr, Reason); 15] = [
    (Cidr::v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128), Reason::Metadata),
    (Cidr::v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128), Reason::Metadata),
    (Cidr::v6([0, 0, 0, 0, 0, 0, 0, 0], 128), Reason::Unspecified),
    (Cidr::v6([0, 0, 0, 0, 0, 0, 0, 1], 128), Reason::Loopback),
    (Cidr::v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), Reason::Private),
    (Cidr::v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), Reason::Private),
    (Cidr::v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), Reason::Private),
    (Cidr::v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), Reason::LinkLocal),
    (Cidr::v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), Reason::Multicast),
    (Cidr::v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), Reason::Documentation),
    (Cidr::v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), Reason::Documentation),
    // Protocol assignments, with Teredo in 2001::/32: a tunnel that may end anywhere.
    (Cidr::v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), Reason::Reserved),
    (Cidr::v6([0, 0, 0, 0, 0, 0, 0, 0], 3), Reason::Reserved),
    (Cidr::v6([0x4000, 0, 0, 0, 0, 0, 0, 0], 2), Reason::Reserved),
    (Cidr::v6([0x8000, 0, 0, 0, 0, 0, 0, 0], 1), Reason::Reserved),
];

impl Destinations {
    /// The rules of a configuration. Where only this machine can reach the API, whoever uses it could also reach this
    /// machine's networks without it, so these are open.
    pub fn new(config: &NetworkConfig, api_is_loopback: bool) -> Self {
        Self { allow: config.allow.clone(), deny: config.deny.clone(), api_is_loopback }
    }

    /// Whether the address may be dialled. A denied range always wins. An address that carries an IPv4 address is
    /// judged by what it carries, and denied by either.
    pub fn check(&self, address: IpAddr) -> Result<(), Refused> {
        let real = carried(address);
        let refused = |reason| Err(Refused { address, reason });
        if let Some(range) = self.deny.iter().find(|range| range.contains(address) || range.contains(real)) {
            return refused(Reason::Denied(*range));
        }
        if self.allow.iter().any(|range| range.contains(real)) {
            return Ok(());
        }
        match special(real) {
            None => Ok(()),
            // These name no single machine, so there is nothing of this machine's to reach there.
            Some(reason @ (Reason::Multicast | Reason::Broadcast | Reason::Unspecified)) => refused(reason),
            Some(_) if self.api_is_loopback => Ok(()),
            Some(reason) => refused(reason),
        }
    }
}

/// The address where packets to this one end: the IPv4 address inside a mapped, a NAT64 or a 6to4 address.
fn carried(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let v4 = |high: u16, low: u16| IpAddr::V4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match v6.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => v4(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => v4(high, low),
        [0x2002, high, low, ..] => v4(high, low),
        _ => address,
    }
}

fn special(address: IpAddr) -> Option<Reason> {
    let table: &[(Cidr, Reason)] = if address.is_ipv4() { &V4 } else { &V6 };
    table.iter().find(|(range, _)| range.contains(address)).map(|(_, reason)| *reason)
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Denied(range) => return write!(f, "an address of {range}, which network.deny refuses"),
            Self::Loopback => "a loopback address",
            Self::Private => "a private address",
            Self::Shared => "an address of carrier-grade NAT",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "the address of a metadata service",
            Self::Documentation => "an address for documentation only",
            Self::Reserved => "a reserved address",
            Self::Multicast => "a multicast address",
            Self::Broadcast => "the broadcast address",
            Self::Unspecified => "an unspecified address",
        })
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remedy = if matches!(self.reason, Reason::Denied(_)) { "" } else { " and not in network.allow" };
        write!(f, "{} is {}{remedy}", self.address, self.reason)
    }
}

impl std::error::Error for Refused {}

#[cfg(test)]
mod tests {
    use super::*;

    fn destinations(allow: &[&str], deny: &[&str], api_is_loopback: bool) -> Destinations {
        let ranges = |ranges: &[&str]| ranges.iter().map(|range| range.parse().unwrap()).collect();
        Destinations::new(&NetworkConfig { allow: ranges(allow), deny: ranges(deny) }, api_is_loopback)
    }

    fn reason(destinations: &Destinations, address: &str) -> Option<Reason> {
        destinations.check(address.parse().unwrap()).err().map(|refused| refused.reason)
    }

    #[test]
    fn addresses_that_are_not_public_are_refused_with_their_reason() {
        let open = destinations(&[], &[], false);
        let cases = [
            ("127.0.0.1", Reason::Loopback),
            ("127.255.255.255", Reason::Loopback),
            ("10.1.2.3", Reason::Private),
            ("172.16.0.1", Reason::Private),
            ("172.31.255.255", Reason::Private),
            ("192.168.1.1", Reason::Private),
            ("100.64.0.1", Reason::Shared),
            ("100.127.255.255", Reason::Shared),
            ("169.254.0.1", Reason::LinkLocal),
            ("169.254.169.254", Reason::Metadata),
            ("169.254.170.2", Reason::Metadata),
            ("100.100.100.200", Reason::Metadata),
            ("168.63.129.16", Reason::Metadata),
            ("192.0.2.1", Reason::Documentation),
            ("198.51.100.1", Reason::Documentation),
            ("203.0.113.1", Reason::Documentation),
            ("192.0.0.8", Reason::Reserved),
            ("198.19.0.1", Reason::Reserved),
            ("240.0.0.1", Reason::Reserved),
            ("224.0.0.1", Reason::Multicast),
            ("255.255.255.255", Reason::Broadcast),
            ("0.0.0.0", Reason::Unspecified),
            ("0.1.2.3", Reason::Unspecified),
            ("::", Reason::Unspecified),
            ("::1", Reason::Loopback),
            ("fc00::1", Reason::Private),
            ("fdff::1", Reason::Private),
            ("fec0::1", Reason::Private),
            ("fe80::1", Reason::LinkLocal),
            ("fd00:ec2::254", Reason::Metadata),
            ("fd20:ce::254", Reason::Metadata),
            ("2001:db8::1", Reason::Documentation),
            ("3fff::1", Reason::Documentation),
            ("ff02::1", Reason::Multicast),
            ("2001::1", Reason::Reserved),
            ("100::1", Reason::Reserved),
            ("5f00::1", Reason::Reserved),
            ("::7f00:1", Reason::Reserved),
            ("64:ff9b:1::a00:1", Reason::Private),
        ];
        for (address, expected) in cases {
            assert_eq!(reason(&open, address), Some(expected), "{address}");
        }
    }

    #[test]
    fn public_addresses_pass() {
        let open = destinations(&[], &[], false);
        for address in [
            "1.1.1.1",
            "172.32.0.1",
            "100.128.0.1",
            "192.0.1.1",
            "2606:4700::1111",
            "2a00::1",
            "2001:4860::1",
        ] {
            assert_eq!(reason(&open, address), None, "{address}");
        }
    }

    #[test]
    fn an_address_inside_another_is_the_one_that_counts() {
        let open = destinations(&[], &[], false);
        let cases = [
            ("::ffff:127.0.0.1", Some(Reason::Loopback)),
            ("::ffff:169.254.169.254", Some(Reason::Metadata)),
            ("64:ff9b::10.0.0.1", Some(Reason::Private)),
            ("64:ff9b::169.254.169.254", Some(Reason::Metadata)),
            ("2002:7f00:1::", Some(Reason::Loopback)),
            ("2002:c0a8:101::1", Some(Reason::Private)),
            ("::ffff:1.1.1.1", None),
            ("64:ff9b::1.1.1.1", None),
            ("2002:101:101::1", None),
        ];
        for (address, expected) in cases {
            assert_eq!(reason(&open, address), expected, "{address}");
        }
    }

    #[test]
    fn an_allowed_range_opens_itself_and_nothing_else() {
        let some = destinations(&["10.0.0.0/8", "fd12::/16"], &[], false);
        for address in ["10.0.0.1", "::ffff:10.0.0.1", "64:ff9b::10.0.0.1", "fd12::1"] {
            assert_eq!(reason(&some, address), None, "{address}");
        }
        assert_eq!(reason(&some, "192.168.0.1"), Some(Reason::Private));
        let all_of_v6 = destinations(&["::/0"], &[], false);
        assert_eq!(reason(&all_of_v6, "::ffff:10.0.0.1"), Some(Reason::Private));
        assert_eq!(reason(&all_of_v6, "64:ff9b::10.0.0.1"), Some(Reason::Private));
    }

    #[test]
    fn a_denied_range_wins_over_everything() {
        let denied = destinations(&["10.0.0.0/8"], &["10.9.0.0/16", "1.1.1.1", "2002::/16"], true);
        for address in ["10.9.0.1", "::ffff:10.9.0.1", "1.1.1.1", "64:ff9b::1.1.1.1", "2002:808:808::1"] {
            assert!(matches!(reason(&denied, address), Some(Reason::Denied(_))), "{address}");
        }
        assert_eq!(reason(&denied, "10.8.0.1"), None);
    }

    #[test]
    fn an_api_on_loopback_opens_the_local_networks_but_no_crowd() {
        let local = destinations(&[], &[], true);
        for address in ["127.0.0.1", "::1", "10.0.0.1", "169.254.169.254", "192.0.2.1", "fd00::1"] {
            assert_eq!(reason(&local, address), None, "{address}");
        }
        for address in ["0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255"] {
            assert!(reason(&local, address).is_some(), "{address}");
        }
    }

    #[test]
    fn a_refusal_names_the_address_and_the_reason() {
        let denied = destinations(&[], &["1.0.0.0/8"], false);
        let refused = |address: &str| denied.check(address.parse().unwrap()).unwrap_err().to_string();
        assert_eq!(refused("10.0.0.1"), "10.0.0.1 is a private address and not in network.allow");
        assert_eq!(refused("1.1.1.1"), "1.1.1.1 is an address of 1.0.0.0/8, which network.deny refuses");
    }
}
