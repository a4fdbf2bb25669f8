//! Names of things, each its own type so that one cannot be passed for another.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// F1: scheme and authority, `https://host[:port]`, the default port left out, lower case.
///
/// Made by [`crate::types::CrawlUrl::host_key`] or checked by [`HostKey::parse`]; never empty.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostKey(Arc<str>);

impl HostKey {
    /// Checks a host key; `None` unless it is exactly the origin of an http(s) URL.
    pub fn parse(text: &str) -> Option<Self> {
        let url = url::Url::parse(text).ok()?;
        let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        let plain = url.username().is_empty() && url.password().is_none();
        let web = matches!(url.scheme(), "http" | "https");
        (bare && plain && web).then(|| Self::of(&url))
    }

    /// The key of a parsed http(s) URL.
    pub fn of(url: &url::Url) -> Self {
        let host = url.host_str().unwrap_or_default();
        // A name with its final dot is the same host.
        let host = host.strip_suffix('.').filter(|host| !host.is_empty()).unwrap_or(host);
        Self(match url.port() {
            Some(port) => format!("{}://{host}:{port}", url.scheme()).into(),
            None => format!("{}://{host}", url.scheme()).into(),
        })
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// `http` or `https`.
    pub fn scheme(&self) -> &str {
        self.0.split_once("://").map_or("", |(scheme, _)| scheme)
    }

    /// Host and, when it is not the default, port.
    pub fn authority(&self) -> &str {
        self.0.split_once("://").map_or("", |(_, authority)| authority)
    }

    /// The host name or address alone (an IPv6 address keeps its brackets).
    pub fn host(&self) -> &str {
        let authority = self.authority();
        match authority.rsplit_once(':') {
            Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
            _ => authority,
        }
    }

    /// The port that is connected to.
    pub fn port(&self) -> u16 {
        let default = if self.scheme() == "https" { 443 } else { 80 };
        let authority = self.authority();
        match authority.rsplit_once(':') {
            Some((_, port)) => port.parse().unwrap_or(default),
            None => default,
        }
    }

    /// The registered domain (public suffix list, private section included), or the host itself
    /// when it has none: an address, a bare suffix, a name without dots.
    pub fn domain(&self) -> &str {
        let host = self.host();
        psl::domain_str(host)
            .filter(|_| host.parse::<std::net::Ipv4Addr>().is_err())
            .unwrap_or(host)
    }

    /// The id of this host: 64 bits of XXH3, stable for ever.
    pub fn id(&self) -> HostId {
        HostId(xxhash_rust::xxh3::xxh3_64(self.0.as_bytes()))
    }
}

impl fmt::Display for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for HostKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostKey({})", self.0)
    }
}

impl Serialize for HostKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for HostKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| de::Error::custom(format!("`{text}` is not scheme://host[:port]")))
    }
}

/// A host in keys and maps: eight bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct HostId(pub u64);

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// A URL's identity: its host, the hash of its key, and a number that tells collisions apart.
///
/// Shown as 34 lower-case hexadecimal digits; the same 17 bytes are its key in the URL table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UrlId {
    /// The host the URL belongs to.
    pub host: HostId,
    /// XXH3-64 of the recognised form.
    pub hash: u64,
    /// 0, or the next free number where another URL already has the same hash (D2).
    pub disambiguator: u8,
}

impl UrlId {
    /// The 17 bytes of the table key.
    pub fn to_bytes(self) -> [u8; 17] {
        let mut bytes = [0; 17];
        bytes[..8].copy_from_slice(&self.host.0.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.hash.to_be_bytes());
        bytes[16] = self.disambiguator;
        bytes
    }

    /// Reads the 17 bytes back; `None` for any other length.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 17] = bytes.try_into().ok()?;
        Some(Self {
            host: HostId(u64::from_be_bytes(bytes[..8].try_into().ok()?)),
            hash: u64::from_be_bytes(bytes[8..16].try_into().ok()?),
            disambiguator: bytes[16],
        })
    }
}

impl fmt::Display for UrlId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}{:016x}{:02x}", self.host.0, self.hash, self.disambiguator)
    }
}

impl FromStr for UrlId {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let part = |range| text.get(range).ok_or(());
        if text.len() != 34 {
            return Err(());
        }
        Ok(Self {
            host: HostId(u64::from_str_radix(part(0..16)?, 16).map_err(drop)?),
            hash: u64::from_str_radix(part(16..32)?, 16).map_err(drop)?,
            disambiguator: u8::from_str_radix(part(32..34)?, 16).map_err(drop)?,
        })
    }
}

impl Serialize for UrlId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            (self.host.0, self.hash, self.disambiguator).serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for UrlId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            text.parse().map_err(|()| de::Error::custom("a URL id has 34 hexadecimal digits"))
        } else {
            let (host, hash, disambiguator) = Deserialize::deserialize(deserializer)?;
            Ok(Self { host: HostId(host), hash, disambiguator })
        }
    }
}

macro_rules! number {
    ($(#[$doc:meta])* $name:ident, $inner:ty) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0)
            }
        }
    };
}

number!(
    /// F6: raised by every revisit; a completion counts only at the version its lease carried.
    UrlVersion, u32
);
impl UrlVersion {
    /// That of a URL that was never visited.
    pub const FIRST: Self = Self(1);
}

number!(
    /// F5: one grant. The shard's epoch in the upper bits, a counter below: never used twice.
    LeaseId, u64
);
number!(
    /// One of the fixed number of parts the frontier is cut into.
    ShardId, u16
);
number!(
    /// I1: the term of a shard's owner; grants carry it, a higher one fences them.
    Epoch, u32
);
number!(
    /// The place of an event in a shard's outbox.
    EventSeq, u64
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_keys_take_themselves_apart() {
        let key = HostKey::parse("https://www.example.co.uk:8443").unwrap();
        assert_eq!(key.host(), "www.example.co.uk");
        assert_eq!(key.port(), 8443);
        assert_eq!(key.domain(), "example.co.uk");
        assert_eq!(
            HostKey::parse("http://EXAMPLE.com:80/").unwrap().as_str(),
            "http://example.com"
        );
        assert_eq!(HostKey::parse("http://127.0.0.1:81").unwrap().domain(), "127.0.0.1");
        assert_eq!(HostKey::parse("http://[::1]:81").unwrap().host(), "[::1]");
        assert_eq!(HostKey::parse("http://[::1]").unwrap().port(), 80);
    }

    #[test]
    fn host_keys_refuse_what_is_more_than_an_origin() {
        for text in ["ftp://a.b", "http://a.b/c", "http://a.b/?q", "http://u@a.b", "a.b", ""] {
            assert_eq!(HostKey::parse(text), None, "{text}");
        }
    }

    #[test]
    fn url_ids_survive_text_and_bytes() {
        let id = UrlId { host: HostId(0xabc), hash: u64::MAX - 1, disambiguator: 3 };
        assert_eq!(id.to_string().parse(), Ok(id));
        assert_eq!(UrlId::from_bytes(&id.to_bytes()), Some(id));
        assert_eq!("xyz".parse::<UrlId>(), Err(()));
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(serde_json::from_str::<UrlId>(&json).unwrap(), id);
        let row = postcard::to_stdvec(&id).unwrap();
        assert_eq!(postcard::from_bytes::<UrlId>(&row).unwrap(), id);
    }
}
