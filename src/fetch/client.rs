//! One exchange over reqwest: one request to one pinned address, the response as received.
//!
//! E-1 (I6): the address is checked before the connection and compared after it; nothing else is
//! ever connected to. E-2: no redirect is followed, nothing is retried or decoded. E-3 (H1): every
//! wait has a limit of its own, and the whole has one. E-4: what has come when a limit ends the
//! body is kept.
//!
//! reqwest gives header names in lower case and undoes chunking, so the archive rebuilds the block.

use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap};
use reqwest::{Response, Version};
use tokio::sync::watch;

use super::body::{self, Body, BodyLimits, Chunks};
use super::connect::{Clients, ConnectError, ConnectSettings, HEADER_BYTES_MAX, STAGE, Stage};
use super::failure;
use super::resolve::literal;
use crate::types::{CrawlUrl, Headers, Outcome, Reason, TimeLimit, Timestamp, Truncation};
use crate::world::{Clock, Exchange, ExchangeFailure, ExchangeLimits, ExchangeRequest, Exchanged};

/// H4: whether an address may be connected to; the reason where not.
pub type EgressCheck = Arc<dyn Fn(IpAddr) -> Result<(), Reason> + Send + Sync>;

/// [`Exchange`] over the network.
pub struct ReqwestExchange {
    clients: Clients,
    egress: EgressCheck,
    clock: Arc<dyn Clock>,
}

/// When an exchange began and when it has to end.
struct Span<'r> {
    limits: &'r ExchangeLimits,
    sent_at: Timestamp,
    deadline: Timestamp,
}

impl ReqwestExchange {
    /// An exchange without connections yet.
    ///
    /// # Errors
    /// When an extra root cannot be read.
    pub fn new(
        settings: ConnectSettings,
        egress: EgressCheck,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ConnectError> {
        let clients = Clients::new(settings)?;
        Ok(Self { clients, egress, clock })
    }

    /// Origins whose connections are kept.
    pub fn origins(&self) -> usize {
        self.clients.len()
    }

    /// E-1, before anything is connected to.
    fn check(&self, request: &ExchangeRequest) -> Result<(), Reason> {
        let url = request.url.as_url();
        let address = request.address;
        let refuse = |why: &str| Reason::EgressRefused { address: format!("{address} ({why})") };
        if url.port_or_known_default() != Some(address.port()) {
            return Err(refuse("not the port of the URL"));
        }
        let named = url.host_str().and_then(literal);
        if named.is_some_and(|named| named != address.ip()) {
            return Err(refuse("not the address in the URL"));
        }
        (self.egress)(address.ip())
    }

    /// The response's head, within the limits of connecting and of the first byte.
    async fn head(
        &self,
        request: &ExchangeRequest,
        span: &Span<'_>,
    ) -> Result<Response, (Outcome, Reason)> {
        let origin = request.url.host_key();
        let explain = |error: reqwest::Error| failure::explain(&error);
        let client = self.clients.get(&origin, request.address, span.sent_at).map_err(explain)?;
        let mut builder = client.get(request.url.as_url().clone());
        for (name, value) in &request.headers {
            builder = builder.header(name, value);
        }
        let (stage, seen) = watch::channel(Stage::Ready);
        let sending = client.execute(builder.build().map_err(explain)?);
        let answer = self.within(STAGE.scope(stage, sending), seen, span).await?;
        let response = answer.map_err(explain)?;
        // The HTTP library stops near the bound: what came in one read may go beyond it.
        let headers = response.headers().iter();
        let bytes: usize = headers.map(|(name, value)| name.as_str().len() + value.len()).sum();
        if u32::try_from(bytes).is_ok_and(|bytes| bytes <= HEADER_BYTES_MAX) {
            Ok(response)
        } else {
            Err(failure::too_many_headers())
        }
    }

    /// E-3: each stage's own limit, begun anew when the stage changes.
    async fn within<T>(
        &self,
        sending: impl Future<Output = T>,
        mut seen: watch::Receiver<Stage>,
        span: &Span<'_>,
    ) -> Result<T, (Outcome, Reason)> {
        let mut sending = pin!(sending);
        loop {
            let (limit, after) = match *seen.borrow_and_update() {
                Stage::Connecting => (TimeLimit::Connect, span.limits.connect),
                Stage::Ready => (TimeLimit::FirstByte, span.limits.first_byte),
            };
            let until = self.clock.now() + after;
            let (limit, after, until) = if until < span.deadline {
                (limit, after, until)
            } else {
                (TimeLimit::Total, span.limits.total, span.deadline)
            };
            tokio::select! {
                biased;
                answer = &mut sending => return Ok(answer),
                Ok(()) = seen.changed() => {}
                () = self.clock.sleep_until(until) => {
                    return Err((Outcome::Timeout, Reason::TimedOut { limit, after }));
                }
            }
        }
    }

    /// E-1, after the connection: the body of a stranger's answer is not looked at. The lease's
    /// shard counts it as a violation (I6).
    fn came_from(
        &self,
        response: &Response,
        pinned: SocketAddr,
    ) -> Result<SocketAddr, (Outcome, Reason)> {
        let remote = response.remote_addr();
        match remote.filter(|at| at.ip() == pinned.ip() && at.port() == pinned.port()) {
            Some(remote) => Ok(remote),
            None => {
                let found = remote.map_or("an unknown address".to_owned(), |at| at.to_string());
                let address = format!("{found} (asked for at {pinned})");
                Err((Outcome::EgressRefused, Reason::EgressRefused { address }))
            }
        }
    }

    async fn body(
        &self,
        mut response: Box<Response>,
        request: &ExchangeRequest,
        span: &Span<'_>,
    ) -> Body {
        let headers = response.headers();
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let unwanted = text(CONTENT_TYPE).filter(|content_type| {
            response.status().is_success() && !request.wanted.takes(&request.url, content_type)
        });
        if let Some(content_type) = unwanted {
            let why = Reason::UnwantedType { content_type: content_type.to_owned() };
            return Body::unread(Truncation::Unspecified, why);
        }
        // The length in a 304 is that of the body it does not carry.
        let has_body = !matches!(response.status().as_u16(), 204 | 304);
        let length = text(CONTENT_LENGTH).filter(|_| has_body).and_then(|text| text.parse().ok());
        let limits = BodyLimits {
            bytes_max: span.limits.body_bytes_max,
            oversize: span.limits.oversize,
            deadline: span.deadline,
            total: span.limits.total,
        };
        // Headers are slices of the buffer they were read into; a slow body would keep it.
        *response.headers_mut() = HeaderMap::new();
        body::read(&mut Arriving(response), length, &limits, self.clock.as_ref()).await
    }
}

impl fmt::Debug for ReqwestExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReqwestExchange({} origins)", self.origins())
    }
}

#[async_trait]
impl Exchange for ReqwestExchange {
    async fn exchange(&self, request: ExchangeRequest) -> Result<Exchanged, ExchangeFailure> {
        let now = self.clock.now();
        let ended = |sent_at, (outcome, reason)| {
            let ended_at = self.clock.now();
            ExchangeFailure { outcome, reason, sent_at, ended_at }
        };
        if let Err(reason) = self.check(&request) {
            return Err(ended(None, (Outcome::EgressRefused, reason)));
        }
        let limits = &request.limits;
        let span = Span { limits, sent_at: now, deadline: now + limits.total };
        let failed = |why| ended(Some(now), why);
        // Boxed: a slow body would keep a place for it in each of the futures it passes through.
        let response = Box::new(Box::pin(self.head(&request, &span)).await.map_err(failed)?);
        let remote = self.came_from(&response, request.address).map_err(failed)?;
        let protocol = protocol(response.version());
        let status = response.status().as_u16();
        let headers = in_order(response.headers());
        let Body { bytes, cut } = Box::pin(self.body(response, &request, &span)).await;
        let (truncated, reason) = cut.unzip();
        Ok(Exchanged {
            request_head: request_head(&request.url, protocol, &request.headers),
            protocol,
            status,
            headers,
            body: bytes,
            truncated,
            reason,
            sent_at: now,
            ended_at: self.clock.now(),
            remote,
        })
    }
}

/// A response whose body is arriving.
struct Arriving(Box<Response>);

#[async_trait]
impl Chunks for Arriving {
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        self.0.chunk().await.map_err(|error| failure::words(&error))
    }
}

/// The request as it is written: reqwest puts the names in lower case and Host last.
fn request_head(url: &CrawlUrl, protocol: &str, headers: &[(String, String)]) -> Bytes {
    let mut head = format!("GET {} {protocol}\r\n", url.path_and_query());
    for (name, value) in headers {
        head.extend([&name.to_ascii_lowercase(), ": ", value, "\r\n"]);
    }
    let authority = &url.as_url()[url::Position::BeforeHost..url::Position::AfterPort];
    head.extend(["host: ", authority, "\r\n\r\n"]);
    Bytes::from(head)
}

fn in_order(headers: &HeaderMap) -> Headers {
    let pair = |(name, value): (&reqwest::header::HeaderName, &reqwest::header::HeaderValue)| {
        (name.as_str().to_owned(), Bytes::copy_from_slice(value.as_bytes()))
    };
    headers.iter().map(pair).collect()
}

fn protocol(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_3 => "HTTP/3",
        _ => "HTTP/1.1",
    }
}

#[cfg(test)]
mod tests;
