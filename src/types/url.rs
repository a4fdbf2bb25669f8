//! A URL that has been parsed once, by the WHATWG rules, and can be requested as it stands.
//!
//! What the page said is what is requested ([`CrawlUrl::as_str`]). The form that recognises the URL
//! as known is made from it by [`crate::policy::normalise`], and only identifies.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use url::Url;

use super::{HostKey, Reason};

/// An absolute http(s) URL without fragment and without credentials.
///
/// Shared, because a URL stands in many places at once (candidate, row, queue entry, lease, event)
/// and never changes.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct CrawlUrl(Arc<Url>);

impl CrawlUrl {
    /// Parses an absolute URL.
    ///
    /// # Errors
    /// The [`Reason`] it cannot be crawled: not a URL, not http(s), or carrying credentials.
    pub fn parse(text: &str) -> Result<Self, Reason> {
        let text = text.trim();
        let parsed = Url::parse(text).map_err(|why| Reason::NotAUrl { why: why.to_string() });
        parsed.and_then(Self::from_url).map_err(|reason| match meant_by(text) {
            Some(meant) => Reason::NotAUrl { why: format!("it has no scheme; try {meant}") },
            None => reason,
        })
    }

    /// Resolves a reference against this URL.
    ///
    /// # Errors
    /// As [`CrawlUrl::parse`].
    pub fn join(&self, reference: &str) -> Result<Self, Reason> {
        let url = self.0.join(reference).map_err(|why| Reason::NotAUrl { why: why.to_string() })?;
        Self::from_url(url)
    }

    /// Takes a parsed URL, drops its fragment.
    ///
    /// # Errors
    /// As [`CrawlUrl::parse`].
    pub fn from_url(mut url: Url) -> Result<Self, Reason> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Reason::NotHttp { scheme: url.scheme().to_owned() });
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Reason::Credentials);
        }
        url.set_fragment(None);
        Ok(Self(Arc::new(url)))
    }

    /// The URL as it is requested.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The parsed parts.
    pub fn as_url(&self) -> &Url {
        &self.0
    }

    /// The host that owns this URL.
    pub fn host_key(&self) -> HostKey {
        HostKey::of(&self.0)
    }

    /// Path and query as robots rules match them: `/path?query`.
    pub fn path_and_query(&self) -> &str {
        self.0.as_str().get(self.0[..url::Position::BeforePath].len()..).unwrap_or("/")
    }
}

impl fmt::Display for CrawlUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for CrawlUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CrawlUrl({})", self.as_str())
    }
}

impl Serialize for CrawlUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for CrawlUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).map_err(|reason| de::Error::custom(reason.to_string()))
    }
}

/// The URL that text means which looks like a name: `example.org/page`, `localhost:8080`.
fn meant_by(text: &str) -> Option<CrawlUrl> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:/".contains(&byte);
    let begins = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let is_name = begins && !text.contains("://") && text.bytes().take(64).all(plain);
    let url = is_name.then(|| Url::parse(&format!("https://{text}")).ok()).flatten()?;
    CrawlUrl::from_url(url).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_keep_what_the_page_said_but_the_fragment() {
        let url = CrawlUrl::parse(" HTTP://Example.com:80/a/../b?x=%7e#top ").unwrap();
        assert_eq!(url.as_str(), "http://example.com/b?x=%7e");
        assert_eq!(url.path_and_query(), "/b?x=%7e");
        assert_eq!(url.host_key().as_str(), "http://example.com");
    }

    #[test]
    fn urls_that_cannot_be_crawled_say_why() {
        let why = |text| CrawlUrl::parse(text).unwrap_err();
        assert!(matches!(why("/relative"), Reason::NotAUrl { .. }));
        assert!(matches!(why("mailto:a@b.c"), Reason::NotHttp { .. }));
        assert!(matches!(why("http://user:pw@host/"), Reason::Credentials));
        for (text, meant) in [
            ("example.org/x", "https://example.org/x"),
            ("notaurl", "https://notaurl/"),
            (" localhost:8080 ", "https://localhost:8080/"),
        ] {
            let said = format!("not a URL: it has no scheme; try {meant}");
            assert_eq!(why(text).to_string(), said, "{text}");
        }
    }
}
