//! In: an address that is about to be dialled. Out: whether it may be, and if not, why.
//!
//! One validator for creating, testing and delivering, applied to the address that is really dialled, so that a name
//! which resolves to something else a moment later gains nothing. What is absent: names. A caller resolves, checks each
//! address, and dials an address that was checked.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use crate::config::{Cidr, NetworkConfig, Port};

/// Which destinations may be reached.
#[derive(Debug, Clone)]
pub struct Destinations {
    allow: Vec<Cidr>,
    deny: Vec<Cidr>,
    deny_ports: Vec<Port>,
    api_is_loopback: bool,
}

/// A destination that may not be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused {
    /// The address that was asked about.
    pub address: SocketAddr,
    /// Why.
    pub reason: Reason,
}

/// What is wrong with a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// It is in a range of `network.deny`.
    Denied(Cidr),
    /// Its port is one of `network.deny-ports`.
    Port,
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
        let NetworkConfig { allow, deny, deny_ports } = config.clone();
        Self { allow, deny, deny_ports, api_is_loopback }
    }

    /// Whether the address may be dialled. A denied range or port always wins. An address that carries an IPv4 address is
    /// judged by what it carries, and denied by either.
    pub fn check(&self, address: SocketAddr) -> Result<(), Refused> {
        let (ip, real) = (address.ip(), carried(address.ip()));
        let refused = |reason| Err(Refused { address, reason });
        if let Some(range) = self.deny.iter().find(|range| range.contains(ip) || range.contains(real)) {
            return refused(Reason::Denied(*range));
        }
        if self.deny_ports.contains(&Port(address.port())) {
            return refused(Reason::Port);
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

    /// Whether a host may be reached as it is written: an address, in whatever form, and a port, whatever the host. What a name
    /// leads to is judged when it is dialled.
    pub fn check_written(&self, host: &str, port: u16) -> Result<(), Refused> {
        match literal(host) {
            Some(address) => self.check((address, port).into()),
            None if self.deny_ports.contains(&Port(port)) => {
                Err(Refused { address: (Ipv4Addr::UNSPECIFIED, port).into(), reason: Reason::Port })
            }
            None => Ok(()),
        }
    }
}

/// The address that a host already is, in whatever form: resolvers take `127.1`, `2130706433`, `0x7f.1` and `0177.0.0.1`
/// for addresses and ask nobody.
pub fn literal(host: &str) -> Option<IpAddr> {
    let host = host.strip_suffix('.').unwrap_or(host);
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if let Ok(address) = bare.parse() {
        return Some(address);
    }
    let parts: Vec<u64> = host.split('.').map(number).collect::<Option<_>>()?;
    let (last, first) = parts.split_last().filter(|(_, first)| first.len() < 4)?;
    // The last part fills what the ones before it leave.
    let room = 8 * (4 - first.len() as u32);
    if *last >= 1 << room || first.iter().any(|part| *part > 255) {
        return None;
    }
    let high = first.iter().fold(0, |high, part| high << 8 | part);
    u32::try_from(high << room | last).ok().map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits)))
}

/// A number as C writes it: decimal, octal after a 0, hexadecimal after 0x.
fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    // `0x` alone is 0 to some.
    if digits.is_empty() && radix == 16 {
        return Some(0);
    }
    u64::from_str_radix(digits, radix).ok().filter(|_| is_number)
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
            Self::Port => "an address whose port network.deny-ports refuses",
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
        match self.reason {
            Reason::Port if self.address.ip().is_unspecified() => {
                write!(f, "{} is a port that network.deny-ports refuses", self.address.port())
            }
            Reason::Port => write!(f, "{} is {}", self.address, self.reason),
            Reason::Denied(_) => write!(f, "{} is {}", self.address.ip(), self.reason),
            _ => write!(f, "{} is {} and not in network.allow", self.address.ip(), self.reason),
        }
    }
}

impl std::error::Error for Refused {}

impl Refused {
    /// Why, for whoever has written the address: what anybody can know of it, and which setting it is about. The ranges of
    /// `network.deny` are the operator's own.
    pub fn public(&self) -> String {
        match self.reason {
            Reason::Denied(_) => "network.deny has it".to_owned(),
            Reason::Port => "network.deny-ports has its port".to_owned(),
            reason => format!("it is {reason} and not in network.allow"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destinations(allow: &[&str], deny: &[&str], api_is_loopback: bool) -> Destinations {
        let ranges = |ranges: &[&str]| ranges.iter().map(|range| range.parse().unwrap()).collect();
        let config = NetworkConfig { allow: ranges(allow), deny: ranges(deny), ..Default::default() };
        Destinations::new(&config, api_is_loopback)
    }

    fn reason(destinations: &Destinations, address: &str) -> Option<Reason> {
        destinations
            .check((address.parse::<IpAddr>().unwrap(), 443).into())
            .err()
            .map(|refused| refused.reason)
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
        let refused = |address: &str| {
            denied.check((address.parse::<IpAddr>().unwrap(), 80).into()).unwrap_err().to_string()
        };
        assert_eq!(refused("10.0.0.1"), "10.0.0.1 is a private address and not in network.allow");
        assert_eq!(refused("1.1.1.1"), "1.1.1.1 is an address of 1.0.0.0/8, which network.deny refuses");
    }

    #[test]
    fn whoever_asks_is_told_nothing_of_the_operators_own_ranges() {
        let denied = destinations(&[], &["1.0.0.0/8"], false);
        let public = |address: &str| denied.check(address.parse().unwrap()).unwrap_err().public();
        assert_eq!(public("1.1.1.1:80"), "network.deny has it");
        assert_eq!(public("10.0.0.1:80"), "it is a private address and not in network.allow");
    }

    #[test]
    fn a_denied_port_is_refused_wherever_it_is() {
        let config = NetworkConfig { deny_ports: vec![Port(25)], ..Default::default() };
        let ports = Destinations::new(&config, true);
        assert!(ports.check("1.1.1.1:443".parse().unwrap()).is_ok());
        let refused = ports.check("127.0.0.1:25".parse().unwrap()).unwrap_err();
        assert_eq!(refused.to_string(), "127.0.0.1:25 is an address whose port network.deny-ports refuses");
        assert!(ports.check_written("mail.company.com", 443).is_ok());
        let refused = ports.check_written("mail.company.com", 25).unwrap_err();
        assert_eq!(refused.to_string(), "25 is a port that network.deny-ports refuses");
        assert_eq!(refused.public(), "network.deny-ports has its port");
        assert!(ports.check_written("127.1", 25).is_err() && ports.check_written("[::1]", 443).is_ok());
    }

    #[test]
    fn whatever_a_resolver_takes_for_an_address_is_one() {
        for (host, expected) in [
            ("127.0.0.1", Some("127.0.0.1")),
            ("127.1", Some("127.0.0.1")),
            ("127.0.1", Some("127.0.0.1")),
            ("2130706433", Some("127.0.0.1")),
            ("0x7f000001", Some("127.0.0.1")),
            ("0X7F.1", Some("127.0.0.1")),
            ("0177.0.0.1", Some("127.0.0.1")),
            ("017700000001", Some("127.0.0.1")),
            ("0x7f.0.0.0x1.", Some("127.0.0.1")),
            ("0", Some("0.0.0.0")),
            ("0xa9fea9fe", Some("169.254.169.254")),
            ("169.254.43518", Some("169.254.169.254")),
            ("[::1]", Some("::1")),
            ("::ffff:7f00:1", Some("::ffff:127.0.0.1")),
            ("4294967296", None),
            ("256.1.1.1", None),
            ("1.2.3.4.5", None),
            ("1..2", None),
            ("09.1", None),
            ("example.com", None),
            ("0x7g.1", None),
            ("", None),
        ] {
            assert_eq!(literal(host), expected.map(|address| address.parse().unwrap()), "{host}");
        }
    }
}
