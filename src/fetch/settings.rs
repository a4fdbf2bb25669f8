//! What a reload may change in the way pages are fetched.

use std::time::Duration;

use crate::types::{Lease, LeaseKind, Timestamp};
use crate::world::{ExchangeLimits, ExchangeRequest, Oversize, Wanted};

/// `fetch` and `identity`, as the workers see them; published over a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchSettings {
    /// R5: with a contact URL.
    pub user_agent: String,
    /// `Accept`.
    pub accept: String,
    /// `Accept-Language`, where one is wanted.
    pub accept_language: Option<String>,
    /// H1: limits of pages.
    pub limits: ExchangeLimits,
    /// `robots.max_size`, in bytes: of the body as received, and decoded.
    pub robots_bytes_max: u64,
    /// H1: types that are read to the end.
    pub wanted: Wanted,
}

/// Where every host has its rules.
const ROBOTS_PATH: &str = "/robots.txt";
/// Codings that the parser can undo.
const PAGE_CODINGS: &str = "gzip, deflate, zstd";
/// Codings that are undone for robots.txt.
const ROBOTS_CODINGS: &str = "gzip, deflate";

/// R3: a Sitemap line of a robots.txt named it.
fn is_named_by_robots(lease: &Lease) -> bool {
    let from = lease.entry.discovered_from.as_ref();
    from.is_some_and(|from| from.path_and_query() == ROBOTS_PATH)
}

impl FetchSettings {
    /// The request of a lease, to be sent at `now`: its headers, and limits cut so that no answer
    /// comes after the lease has run out (F5). `None` where the lease has no address.
    pub(super) fn request(&self, lease: &Lease, now: Timestamp) -> Option<ExchangeRequest> {
        let url = lease.entry.url.clone();
        let port = url.as_url().port_or_known_default()?;
        let left = lease.expires_at.since(now);
        let limits = self.limits_of(&lease.kind, left);
        let wanted = match lease.kind {
            // P3: what a Sitemap line names is a sitemap by that, whatever its type and name.
            LeaseKind::Page if is_named_by_robots(lease) => Wanted::everything(),
            LeaseKind::Page => self.wanted.clone(),
            LeaseKind::Robots { .. } => Wanted::everything(),
        };
        let address = (lease.address?, port).into();
        Some(ExchangeRequest { url, address, headers: self.headers(lease), limits, wanted })
    }

    /// R1: what fits of a robots.txt is obeyed, so it is cut and never skipped.
    fn limits_of(&self, kind: &LeaseKind, left: Duration) -> ExchangeLimits {
        let mut limits = self.limits.clone();
        limits.total = limits.total.min(left);
        match kind {
            LeaseKind::Page => {}
            LeaseKind::Robots { .. } => {
                limits.body_bytes_max = self.robots_bytes_max;
                limits.oversize = Oversize::Truncate;
            }
        }
        limits
    }

    fn headers(&self, lease: &Lease) -> Vec<(String, String)> {
        let mut headers = Vec::with_capacity(5);
        let mut add = |name: &str, value: &str| headers.push((name.to_owned(), value.to_owned()));
        add("User-Agent", &self.user_agent);
        match lease.kind {
            LeaseKind::Page => {
                add("Accept", &self.accept);
                add("Accept-Encoding", PAGE_CODINGS);
            }
            LeaseKind::Robots { .. } => {
                add("Accept", "text/plain,*/*;q=0.5");
                add("Accept-Encoding", ROBOTS_CODINGS);
            }
        }
        if let Some(languages) = &self.accept_language {
            add("Accept-Language", languages);
        }
        if let Some((name, value)) = condition(lease) {
            add(name, value);
        }
        headers
    }
}

/// H3: the condition of a revisit: If-None-Match, else If-Modified-Since.
pub(super) fn condition(lease: &Lease) -> Option<(&'static str, &str)> {
    let validators = lease.entry.validators.as_ref()?;
    match (&validators.etag, &validators.last_modified) {
        (Some(etag), _) => Some(("If-None-Match", etag)),
        (None, Some(at)) => Some(("If-Modified-Since", at)),
        (None, None) => None,
    }
}
