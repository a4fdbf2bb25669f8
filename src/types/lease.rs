//! F5, F6: the right to make one exchange, and the report of how it went.

use std::net::IpAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    ArchivePointer, CrawlUrl, Epoch, HostKey, LeaseId, Outcome, Reason, Timestamp, UrlId,
    UrlVersion,
};

/// H3: what a conditional request may carry, from the last good response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validators {
    /// ETag, as received.
    pub etag: Option<String>,
    /// Last-Modified, as received.
    pub last_modified: Option<String>,
    /// SHA-1 of the payload they belong to, so that a 304 can point at it.
    pub digest: Option<String>,
}

/// A URL that waits in its host's queue: everything a grant needs, so that none reads a second row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueEntry {
    /// The URL's identity.
    pub id: UrlId,
    /// The version that its completion must carry.
    pub version: UrlVersion,
    /// What is requested.
    pub url: CrawlUrl,
    /// Links away from a seed.
    pub depth: u16,
    /// Priority band, 0 first.
    pub band: u8,
    /// Place within the band, lowest first.
    pub order: u64,
    /// Tries so far that ended in a passing failure.
    pub attempts: u8,
    /// Redirects that led here in a row (H2).
    pub redirects: u8,
    /// Present on a revisit.
    pub validators: Option<Validators>,
    /// The page that named it; `None` for a seed.
    pub discovered_from: Option<CrawlUrl>,
}

/// What a lease is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaseKind {
    /// A URL of the queue.
    Page,
    /// robots.txt of `for_host`: the host itself, or one whose robots.txt redirects here (H2).
    Robots {
        /// Whose rules are asked for.
        for_host: HostKey,
        /// Redirects followed so far.
        hops: u8,
    },
}

/// F5: one grant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// Its name, never used twice in a shard.
    pub id: LeaseId,
    /// Page or robots.txt.
    pub kind: LeaseKind,
    /// The host whose clock it uses; owner of `entry.url`.
    pub host: HostKey,
    /// The URL, its version and attempts.
    pub entry: QueueEntry,
    /// I1: the owner's term.
    pub epoch: Epoch,
    /// When the host granted it.
    pub granted_at: Timestamp,
    /// I2: never sent before.
    pub not_before: Timestamp,
    /// Never answered after; then it comes back.
    pub expires_at: Timestamp,
    /// The one address that may be connected to; set before the lease leaves its shard (H4).
    pub address: Option<IpAddr>,
}

/// How the exchange of a lease ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completion {
    /// The lease it answers.
    pub lease: LeaseId,
    /// The URL's identity.
    pub id: UrlId,
    /// What was requested.
    pub url: CrawlUrl,
    /// The version the lease carried.
    pub version: UrlVersion,
    /// How it ended.
    pub outcome: Outcome,
    /// The status code, where a response began.
    pub status: Option<u16>,
    /// When the request was sent; `None` when it never was.
    pub sent_at: Option<Timestamp>,
    /// When the exchange ended.
    pub ended_at: Timestamp,
    /// Bytes of the body as received.
    pub bytes: u64,
    /// How long the site asked to stay away, from `ended_at` (F7).
    pub retry_after: Option<Duration>,
    /// Why it is not `ok`, or why something is missing.
    pub reason: Option<Reason>,
    /// Where the response lies.
    pub archive: Option<ArchivePointer>,
    /// `sha1:` and Base32 of the payload as received.
    pub digest: Option<String>,
    /// For the next visit.
    pub validators: Option<Validators>,
    /// Content-Type as received.
    pub content_type: Option<String>,
    /// Location of a redirect, as received.
    pub location: Option<String>,
    /// The address that was connected to.
    pub address: Option<IpAddr>,
    /// The body of robots.txt, decoded and cut at `robots.max_size`; only for robots leases.
    pub robots_body: Option<bytes::Bytes>,
    /// Cache-Control max-age of robots.txt, if any.
    pub max_age: Option<Duration>,
}

impl Completion {
    /// The report of an exchange that never took place or brought no response.
    pub fn failed(lease: &Lease, at: Timestamp, outcome: Outcome, reason: Reason) -> Self {
        Self {
            lease: lease.id,
            id: lease.entry.id,
            url: lease.entry.url.clone(),
            version: lease.entry.version,
            outcome,
            status: None,
            sent_at: None,
            ended_at: at,
            bytes: 0,
            retry_after: None,
            reason: Some(reason),
            archive: None,
            digest: None,
            validators: None,
            content_type: None,
            location: None,
            address: lease.address,
            robots_body: None,
            max_age: None,
        }
    }

    /// R5: the report of the same exchange when nothing of what it brought may be kept: as if an
    /// exclusion had cut it, but for what the site asked for (I3).
    pub fn without_content(&self, lease: &Lease, reason: Reason) -> Self {
        let refused = self.outcome == Outcome::RateLimited;
        let outcome = if refused { Outcome::RateLimited } else { Outcome::Cancelled };
        let bare = Self::failed(lease, self.ended_at, outcome, reason);
        Self { sent_at: self.sent_at, address: self.address, retry_after: self.retry_after, ..bare }
    }

    /// How long the exchange took, for `delay_factor` (F4).
    pub fn took(&self) -> Duration {
        self.sent_at.map_or(Duration::ZERO, |sent| self.ended_at.since(sent))
    }
}
