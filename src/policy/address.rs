//! H4, I6: which addresses may be connected to. One table of everything that is not the public
//! Internet, from the IANA special-purpose registries; addresses that carry an IPv4 address inside
//! (mapped, compatible, NAT64, 6to4, Teredo) are judged by that one too.
//!
//! Whoever connects asks with the very address of the socket, on every hop; a name that resolved
//! well a moment ago proves nothing.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Host;

use crate::types::{CrawlUrl, Reason};

/// Whether `address` may be connected to. `allowed` says which special-purpose addresses the
/// configuration opens (`fetch.allow_networks`); it is asked for the address as written and, where
/// one lies inside, for the IPv4 address that is reached in the end.
///
/// # Errors
/// [`Reason::EgressRefused`] with the address and the range it lies in.
pub fn may_connect(address: IpAddr, allowed: impl Fn(IpAddr) -> bool) -> Result<(), Reason> {
    let Some(range) = special_range(address) else {
        return Ok(());
    };
    let inside = match address {
        IpAddr::V6(address) => embedded(address),
        IpAddr::V4(_) => None,
    };
    if allowed(address) || inside.is_some_and(|inside| allowed(IpAddr::V4(inside))) {
        return Ok(());
    }
    Err(Reason::EgressRefused { address: format!("{address} ({range})") })
}

/// The address that a URL names where others name a host.
pub fn literal(url: &CrawlUrl) -> Option<IpAddr> {
    match url.as_url().host()? {
        Host::Ipv4(address) => Some(IpAddr::V4(address)),
        Host::Ipv6(address) => Some(IpAddr::V6(address)),
        Host::Domain(_) => None,
    }
}

/// What an address that is not public lies in; `None` for a public one.
pub fn special_range(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => special_v4(address),
        IpAddr::V6(address) => match embedded(address) {
            Some(inside) => special_v4(inside),
            None => special_v6(address),
        },
    }
}

/// Base, prefix length, name; the first that holds the address names it.
const V4: &[(Ipv4Addr, u32, &str)] = &[
    (Ipv4Addr::new(0, 0, 0, 0), 8, "this network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "carrier-grade NAT"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local, cloud metadata"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "protocol assignments"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "documentation"),
    (Ipv4Addr::new(192, 31, 196, 0), 24, "AS112"),
    (Ipv4Addr::new(192, 52, 193, 0), 24, "AMT"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "6to4 relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(192, 175, 48, 0), 24, "AS112"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "benchmarking"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved, broadcast"),
    // Public by the registry, and the metadata or host service of a cloud in practice.
    (Ipv4Addr::new(168, 63, 129, 16), 32, "cloud metadata"),
];

const V6: &[(Ipv6Addr, u32, &str)] = &[
    (Ipv6Addr::UNSPECIFIED, 128, "unspecified"),
    (Ipv6Addr::LOCALHOST, 128, "loopback"),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, "local-use NAT64"),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64, "discard only"),
    (Ipv6Addr::new(0x100, 0, 0, 1, 0, 0, 0, 0), 64, "dummy prefix"),
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "protocol assignments"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "documentation"),
    (Ipv6Addr::new(0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0), 48, "AS112"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "documentation"),
    (Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16, "segment routing"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "unique local, cloud metadata"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "link-local"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "site-local"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "multicast"),
];

fn special_v4(address: Ipv4Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    V4.iter()
        .find(|(base, prefix, _)| (bits ^ base.to_bits()).leading_zeros() >= *prefix)
        .map(|(_, _, name)| *name)
}

fn special_v6(address: Ipv6Addr) -> Option<&'static str> {
    let bits = address.to_bits();
    V6.iter()
        .find(|(base, prefix, _)| (bits ^ base.to_bits()).leading_zeros() >= *prefix)
        .map(|(_, _, name)| *name)
        // Only 2000::/3 has been given out; the rest is nobody's to answer from.
        .or((bits >> 125 != 0b001).then_some("not global unicast"))
}

/// The IPv4 address that traffic to an IPv6 address ends at.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let join = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    match (a, b) {
        // Unspecified and loopback have names of their own.
        _ if address.is_unspecified() || address.is_loopback() => None,
        // ::a.b.c.d, ::ffff:a.b.c.d and ::ffff:0:a.b.c.d.
        (0, 0) if [c, d] == [0, 0] && matches!([e, f], [0, 0] | [0, 0xffff] | [0xffff, 0]) => {
            Some(join(g, h))
        }
        // NAT64; the local-use prefix 64:ff9b:1::/48 is refused whole.
        (0x64, 0xff9b) if [c, d, e, f] == [0; 4] => Some(join(g, h)),
        // 6to4.
        (0x2002, _) => Some(join(b, c)),
        // Teredo hides the client's address behind an exclusive or.
        (0x2001, 0) => Some(join(!g, !h)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn refused(text: &str) -> bool {
        may_connect(address(text), |_| false).is_err()
    }

    #[test]
    fn public_addresses_may_be_connected_to() {
        for text in [
            "1.1.1.1",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "172.15.255.255",
            "172.32.0.0",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450:4001::200e",
            "::ffff:1.1.1.1",
            "64:ff9b::8.8.8.8",
            "2002:0808:0808::1",
        ] {
            assert!(!refused(text), "{text}");
        }
    }

    #[test]
    fn special_purpose_addresses_are_refused_in_every_form() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.255",
            "169.254.169.254",
            "168.63.129.16",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:0:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::1.1.1.1",
            "100::1",
            "2001::1",
            "2001:0:4136:e378:8000:63bf:80ff:fffe",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:c0a8:101::1",
            "3fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(refused(text), "{text}");
        }
    }

    #[test]
    fn the_configuration_opens_what_it_names_and_no_more() {
        let loopback = |asked: IpAddr| asked == address("127.0.0.1");
        assert!(may_connect(address("127.0.0.1"), loopback).is_ok());
        assert!(may_connect(address("::ffff:127.0.0.1"), loopback).is_ok());
        assert!(may_connect(address("127.0.0.2"), loopback).is_err());
        assert!(may_connect(address("::1"), loopback).is_err());
    }

    #[test]
    fn a_refusal_names_address_and_range() {
        let reason = may_connect(address("10.1.2.3"), |_| false).unwrap_err();
        assert_eq!(reason, Reason::EgressRefused { address: "10.1.2.3 (private)".to_owned() });
    }
}
