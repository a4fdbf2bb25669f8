//! IP networks in CIDR: which addresses a rule means.
//!
//! An IPv4-mapped IPv6 address is the IPv4 address it carries, so no rule is passed by spelling an
//! address another way (H4).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use thiserror::Error;

/// Addresses that share their first `prefix` bits, `127.0.0.0/8`; bits beyond the prefix are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpNetwork {
    address: IpAddr,
    prefix: u8,
}

/// Why a text is not a network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetworkError {
    /// The part before the slash.
    #[error("`{0}` is not an IP address")]
    Address(String),
    /// The part after the slash.
    #[error("the prefix is a number from 0 to {max}")]
    Prefix {
        /// 32 or 128.
        max: u8,
    },
    /// The address says more than the prefix: probably a slip in one of them.
    #[error("bits beyond the prefix are set, the network is {0}")]
    HostBits(IpNetwork),
}

impl IpNetwork {
    /// The network of an address, bits beyond the prefix cut off; `None` when the prefix is longer
    /// than the address. A network of IPv4-mapped addresses becomes the IPv4 network.
    pub fn of(address: IpAddr, prefix: u8) -> Option<Self> {
        let mapped = matches!(address, IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
        let (address, prefix) = match prefix.checked_sub(96) {
            Some(shorter) if mapped => (address.to_canonical(), shorter),
            _ => (address, prefix),
        };
        (prefix <= width(address)).then(|| Self { address: masked(address, prefix), prefix })
    }

    /// The network of one address.
    pub fn single(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self { address, prefix: width(address) }
    }

    /// Whether the address lies in the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        width(address) == width(self.address) && masked(address, self.prefix) == self.address
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(u32::from(32 - prefix.min(32))).unwrap_or(0);
            Ipv4Addr::from_bits(v4.to_bits() & mask).into()
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(u32::from(128 - prefix.min(128))).unwrap_or(0);
            Ipv6Addr::from_bits(v6.to_bits() & mask).into()
        }
    }
}

impl FromStr for IpNetwork {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address: IpAddr =
            address.parse().map_err(|_| NetworkError::Address(address.to_owned()))?;
        let Some(prefix) = prefix else { return Ok(Self::single(address)) };
        let max = width(address);
        let digits = prefix.bytes().all(|b| b.is_ascii_digit());
        let bits: u8 =
            prefix.parse().ok().filter(|_| digits).ok_or(NetworkError::Prefix { max })?;
        let network = Self::of(address, bits).ok_or(NetworkError::Prefix { max })?;
        if masked(address, bits) == address {
            Ok(network)
        } else {
            Err(NetworkError::HostBits(network))
        }
    }
}

impl fmt::Display for IpNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> IpNetwork {
        text.parse().unwrap()
    }

    fn holds(text: &str, address: &str) -> bool {
        network(text).contains(address.parse().unwrap())
    }

    #[test]
    fn networks_contain_what_shares_their_prefix() {
        assert!(holds("127.0.0.0/8", "127.9.9.9"));
        assert!(!holds("127.0.0.0/8", "128.0.0.1"));
        assert!(holds("0.0.0.0/0", "8.8.8.8"));
        assert!(holds("::/0", "2001:db8::1"));
        assert!(holds("::1/128", "::1"));
        assert!(holds("2001:db8::/33", "2001:db8:7fff::1"));
        assert!(!holds("2001:db8::/33", "2001:db8:8000::1"));
        assert!(holds("10.1.2.3", "10.1.2.3"));
        assert!(!holds("10.1.2.3", "10.1.2.4"));
    }

    #[test]
    fn mapped_addresses_are_the_ipv4_addresses_they_carry() {
        assert!(holds("127.0.0.0/8", "::ffff:127.0.0.1"));
        assert!(holds("::ffff:10.0.0.0/104", "10.200.0.1"));
        assert!(!holds("::/0", "::ffff:10.0.0.1"));
        assert_eq!(network("::ffff:10.0.0.0/104"), network("10.0.0.0/8"));
        assert_eq!(network("::ffff:10.0.0.1"), network("10.0.0.1/32"));
    }

    #[test]
    fn networks_print_as_they_are_read() {
        for text in ["127.0.0.0/8", "::1/128", "0.0.0.0/0", "::/0", "fe80::/10"] {
            assert_eq!(network(text).to_string(), text);
        }
        assert_eq!(network("10.0.0.1").to_string(), "10.0.0.1/32");
    }

    #[test]
    fn texts_that_are_no_networks_say_why() {
        let why = |text: &str| text.parse::<IpNetwork>().unwrap_err().to_string();
        assert_eq!(why("localhost"), "`localhost` is not an IP address");
        assert_eq!(why("10.0.0.0/33"), "the prefix is a number from 0 to 32");
        assert_eq!(why("10.0.0.0/+8"), "the prefix is a number from 0 to 32");
        assert_eq!(why("::1/129"), "the prefix is a number from 0 to 128");
        assert_eq!(why("10.1.0.0/8"), "bits beyond the prefix are set, the network is 10.0.0.0/8");
    }
}
