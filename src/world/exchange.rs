//! One HTTP exchange: a request to one pinned address in, the response as received out.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::types::{CrawlUrl, Headers, Outcome, Reason, Timestamp, Truncation};

/// What is asked for and how much of it is wanted (H1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeRequest {
    /// What is requested.
    pub url: CrawlUrl,
    /// The only address that may be connected to (H4).
    pub address: SocketAddr,
    /// Headers beside Host: User-Agent, Accept, Accept-Encoding, validators.
    pub headers: Vec<(String, String)>,
    /// The limits in force.
    pub limits: ExchangeLimits,
    /// H1: of a 2xx of any other type the body is not read.
    pub wanted: Wanted,
}

type IsWanted = dyn Fn(&CrawlUrl, &str) -> bool + Send + Sync;

/// Which content types are read to the end: a question about a type without parameters, in lower
/// case.
#[derive(Clone)]
pub struct Wanted(Arc<IsWanted>);

impl Wanted {
    /// Types for which `is_wanted` holds.
    pub fn new(is_wanted: impl Fn(&CrawlUrl, &str) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(is_wanted))
    }

    /// Every type.
    pub fn everything() -> Self {
        Self::new(|_, _| true)
    }

    /// Whether the body of a response from this URL with this Content-Type, as received, is to be
    /// read.
    pub fn takes(&self, url: &CrawlUrl, content_type: &str) -> bool {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        (self.0)(url, &essence.to_ascii_lowercase())
    }
}

impl PartialEq for Wanted {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Wanted {}

impl fmt::Debug for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Wanted")
    }
}

/// H1: where an exchange ends, whatever the server does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeLimits {
    /// Until the connection (with TLS) stands.
    pub connect: Duration,
    /// From the request sent to the first byte.
    pub first_byte: Duration,
    /// The whole exchange.
    pub total: Duration,
    /// Body bytes as received.
    pub body_bytes_max: u64,
    /// Keep the first `body_bytes_max` of a longer body, or refuse it.
    pub oversize: Oversize,
}

/// `fetch.oversize`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oversize {
    /// Keep what fits.
    Truncate,
    /// Keep nothing.
    Skip,
}

/// The response as received: transfer coding undone, content coding kept.
#[derive(Clone, Debug)]
pub struct Exchanged {
    /// Request line and headers as sent, with the final blank line.
    pub request_head: Bytes,
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2`.
    pub protocol: &'static str,
    /// The status code.
    pub status: u16,
    /// The status line as received, without its end; HTTP/2 has none.
    pub status_line: Option<Bytes>,
    /// In the order received; over HTTP/1 the names as they were spelt.
    pub headers: Headers,
    /// As received.
    pub body: Bytes,
    /// Where it was cut.
    pub truncated: Option<Truncation>,
    /// Why it was cut.
    pub reason: Option<Reason>,
    /// When the request was sent.
    pub sent_at: Timestamp,
    /// When the last byte came.
    pub ended_at: Timestamp,
    /// The address that was connected to.
    pub remote: SocketAddr,
}

/// No response came that could be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExchangeFailure {
    /// How it ended.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
    /// When the request was sent; `None` when it never was.
    pub sent_at: Option<Timestamp>,
    /// When it ended.
    pub ended_at: Timestamp,
}

/// Makes exchanges. Real: HTTP over sockets. Simulated: a web from a seed.
#[async_trait]
pub trait Exchange: Send + Sync + fmt::Debug {
    /// One exchange, one hop: redirects are not followed, nothing is decoded, and nothing retried
    /// that a server may have looked at.
    ///
    /// # Errors
    /// A failure when no response came.
    async fn exchange(&self, request: ExchangeRequest) -> Result<Exchanged, ExchangeFailure>;
}
