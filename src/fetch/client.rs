//! One exchange: one request to one pinned address, the response as received.
//!
//! E-1 (I6): the address is checked before the connection and compared after it; nothing else is
//! ever connected to. E-2: no redirect is followed, nothing is decoded, and nothing repeated but a
//! request that a kept connection did not carry: the server closed it before the first byte of an
//! answer, was tired of waiting (408), or says that it did not look. E-3 (H1): every wait has a
//! limit of its own, and the whole has one. E-4: what has come when a limit ends the body is kept.
//!
//! Transfer coding is undone here, content coding is not. `docs/http.md` says what a server may do
//! and what becomes of it.

use std::fmt;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;

use super::body::{Arriving, Body, BodyLimits, BodyReader};
use super::connect::{ConnectError, ConnectSettings, Connector};
use super::failure::Failed;
use super::http1::{AskFailure, Incoming};
use super::http2::{self, Frames, SendFailure};
use super::pool::{Link, Place, Pool};
use super::request;
use super::resolve::literal;
use crate::types::{Headers, Outcome, Reason, TimeLimit, Timestamp, Truncation, header};
use crate::world::{Clock, Exchange, ExchangeFailure, ExchangeLimits, ExchangeRequest, Exchanged};

/// RFC 9110 15.5.9: on a kept connection no answer to the request, but the end of waiting for one.
const IDLE_TOO_LONG: u16 = 408;

/// H4: whether an address may be connected to; the reason where not.
pub type EgressCheck = Arc<dyn Fn(IpAddr) -> Result<(), Reason> + Send + Sync>;

/// [`Exchange`] over the network.
pub struct HttpExchange {
    connector: Connector,
    pool: Pool,
    bodies: BodyReader,
    egress: EgressCheck,
    clock: Arc<dyn Clock>,
}

/// When an exchange began and when it has to end.
struct Span<'r> {
    limits: &'r ExchangeLimits,
    sent_at: Timestamp,
    deadline: Timestamp,
}

/// A response whose body is still to come: what is held while it does, beside what came of it.
struct Opened {
    /// Without its body.
    response: Exchanged,
    /// Bytes of the body as announced.
    length: Option<u64>,
    source: Source,
}

enum Source {
    Http1(Incoming),
    Http2(Frames),
}

/// Why no response began.
enum OpenFailure {
    /// E-2: the server has not looked at the request.
    Unseen(Failed),
    Failed(Failed),
}

impl HttpExchange {
    /// An exchange without connections yet.
    ///
    /// # Errors
    /// When an extra root cannot be read.
    pub fn new(
        settings: ConnectSettings,
        egress: EgressCheck,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, ConnectError> {
        let connector = Connector::new(&settings)?;
        let pool = Pool::new(settings.origins_max, settings.idle, Arc::clone(&clock));
        let bodies = BodyReader::new(settings.bodies_bytes, Arc::clone(&clock));
        Ok(Self { connector, pool, bodies, egress, clock })
    }

    /// Origins whose connections are kept.
    pub fn origins(&self) -> usize {
        self.pool.len()
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

    /// E-2: the response's head, over a kept connection or a new one; over a new one once more
    /// where the first did not carry the request.
    async fn open(
        &self,
        request: &ExchangeRequest,
        place: &Place,
        span: &Span<'_>,
    ) -> Result<Opened, Failed> {
        let (link, is_kept) = match self.pool.take(place) {
            Some(link) => (link, true),
            None => (self.connect(request, place, span).await?, false),
        };
        let is_shared = matches!(link, Link::Http2(_));
        let mut opened = self.over(link, request, span).await;
        let is_unseen = match &opened {
            Ok(opened) => is_kept && !is_shared && opened.response.status == IDLE_TOO_LONG,
            Err(OpenFailure::Unseen(_)) => is_kept || is_shared,
            Err(OpenFailure::Failed(_)) => false,
        };
        if is_unseen {
            let link = self.connect(request, place, span).await?;
            opened = self.over(link, request, span).await;
        }
        opened.map_err(|(OpenFailure::Unseen(why) | OpenFailure::Failed(why))| why)
    }

    async fn connect(
        &self,
        request: &ExchangeRequest,
        place: &Place,
        span: &Span<'_>,
    ) -> Result<Link, Failed> {
        let connecting = self.connector.connect(&request.url, request.address);
        let limit = (TimeLimit::Connect, span.limits.connect);
        let link = self.within(connecting, limit, span).await?;
        if let Link::Http2(shared) = &link {
            self.pool.keep(place, Link::Http2(Arc::clone(shared)));
        }
        Ok(link)
    }

    /// The response's head over this connection, within the limit of the first byte.
    async fn over(
        &self,
        link: Link,
        request: &ExchangeRequest,
        span: &Span<'_>,
    ) -> Result<Opened, OpenFailure> {
        let limit = (TimeLimit::FirstByte, span.limits.first_byte);
        match link {
            Link::Http1(mut connection) => {
                let request_head = request::http1(request)?;
                let asking = connection.ask(&request_head);
                let mut answer = self.within(asking, limit, span).await?;
                let response = Exchanged {
                    protocol: answer.protocol,
                    status_line: Some(std::mem::take(&mut answer.status_line)),
                    headers: std::mem::take(&mut answer.headers),
                    ..bare(request_head, answer.status, connection.remote(), span)
                };
                Ok(Opened {
                    response,
                    length: answer.length(),
                    source: Source::Http1(answer.incoming(connection)),
                })
            }
            Link::Http2(connection) => {
                let (request, request_head) = request::http2(request)?;
                let sending = connection.send(request);
                let response = self.within(sending, limit, span).await?;
                let status = response.status().as_u16();
                let headers = http2::headers(&response);
                // The length in a 304 is that of the body it does not carry.
                let announced =
                    header(&headers, "content-length").filter(|_| !matches!(status, 204 | 304));
                let length = announced.and_then(|text| text.parse().ok());
                let bare = bare(request_head, status, connection.remote(), span);
                Ok(Opened {
                    response: Exchanged { protocol: "HTTP/2", headers, ..bare },
                    length,
                    source: Source::Http2(Frames { body: response.into_body(), connection }),
                })
            }
        }
    }

    /// E-3: within its own limit, and that of the whole.
    async fn within<T, E: From<Failed>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
        (limit, after): (TimeLimit, Duration),
        span: &Span<'_>,
    ) -> Result<T, E> {
        let until = self.clock.now() + after;
        let (limit, after, until) = if until < span.deadline {
            (limit, after, until)
        } else {
            (TimeLimit::Total, span.limits.total, span.deadline)
        };
        tokio::select! {
            biased;
            done = work => done,
            () = self.clock.sleep_until(until) => {
                Err(E::from((Outcome::Timeout, Reason::TimedOut { limit, after })))
            }
        }
    }

    /// All up to the body. What the request was made of is not held any longer than this.
    async fn begin(&self, request: ExchangeRequest) -> Result<Box<Begun>, ExchangeFailure> {
        let sent_at = self.clock.now();
        let ended = |sent_at, (outcome, reason)| {
            let ended_at = self.clock.now();
            ExchangeFailure { outcome, reason, sent_at, ended_at }
        };
        if let Err(reason) = self.check(&request) {
            return Err(ended(None, (Outcome::EgressRefused, reason)));
        }
        let limits = &request.limits;
        let span = Span { limits, sent_at, deadline: sent_at + limits.total };
        let place = (request.url.host_key(), request.address);
        let opened = self.open(&request, &place, &span).await;
        let opened = opened.map_err(|why| ended(Some(sent_at), why))?;
        let limits = BodyLimits {
            bytes_max: limits.body_bytes_max,
            oversize: limits.oversize,
            deadline: span.deadline,
            total: limits.total,
        };
        let unread = unwanted(&request, &opened.response);
        Ok(Box::new(Begun { opened, unread, limits, place }))
    }

    /// E-4: the body, and the end. A connection that may carry another request goes back when the
    /// body is whole.
    async fn finish(&self, mut begun: Box<Begun>) -> Exchanged {
        let Begun { opened, unread, limits, .. } = &mut *begun;
        let source: &mut dyn Arriving = match &mut opened.source {
            Source::Http1(incoming) => incoming,
            Source::Http2(frames) => frames,
        };
        let is_unread = unread.is_some();
        let Body { bytes, cut } = match unread.take() {
            Some(body) => body,
            None => self.bodies.read(source, opened.length, limits).await,
        };
        let Begun { opened, place, .. } = *begun;
        let idle = match opened.source {
            Source::Http1(incoming) if is_unread => incoming.into_idle_unread().map(Link::Http1),
            Source::Http1(incoming) if cut.is_none() => incoming.into_idle().map(Link::Http1),
            Source::Http1(_) => None,
            Source::Http2(frames) => Some(Link::Http2(frames.connection)),
        };
        if let Some(idle) = idle {
            self.pool.keep(&place, idle);
        }
        let (truncated, reason) = cut.unzip();
        let ended_at = self.clock.now();
        Exchanged { body: bytes, truncated, reason, ended_at, ..opened.response }
    }
}

/// All that is held of an exchange while its body comes.
struct Begun {
    opened: Opened,
    /// The body is not to be read.
    unread: Option<Body>,
    limits: BodyLimits,
    place: Place,
}

/// A response without what its protocol tells.
fn bare(request_head: Bytes, status: u16, remote: SocketAddr, span: &Span<'_>) -> Exchanged {
    Exchanged {
        request_head,
        protocol: "",
        status,
        status_line: None,
        headers: Headers::new(),
        body: Bytes::new(),
        truncated: None,
        reason: None,
        sent_at: span.sent_at,
        ended_at: span.sent_at,
        remote,
    }
}

/// Why the body of a response is not read: H1, nobody wants its type.
fn unwanted(request: &ExchangeRequest, response: &Exchanged) -> Option<Body> {
    let content_type = header(&response.headers, "content-type")?;
    let is_success = matches!(response.status, 200..=299);
    if !is_success || request.wanted.takes(&request.url, content_type) {
        return None;
    }
    let why = Reason::UnwantedType { content_type: content_type.to_owned() };
    Some(Body::unread(Truncation::Unspecified, why))
}

impl fmt::Debug for HttpExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpExchange({} origins)", self.origins())
    }
}

#[async_trait]
impl Exchange for HttpExchange {
    /// Not `async`: such a future would keep room for the request, twice, to its end.
    fn exchange<'s, 'f>(
        &'s self,
        request: ExchangeRequest,
    ) -> BoxFuture<'f, Result<Exchanged, ExchangeFailure>>
    where
        's: 'f,
        Self: 'f,
    {
        let begin = Box::pin(self.begin(request));
        Box::pin(async move { Ok(self.finish(begin.await?).await) })
    }
}

impl From<Failed> for OpenFailure {
    fn from(why: Failed) -> Self {
        Self::Failed(why)
    }
}

impl From<AskFailure> for OpenFailure {
    fn from(why: AskFailure) -> Self {
        match why {
            AskFailure::Unanswered(why) => Self::Unseen(why),
            AskFailure::Failed(why) => Self::Failed(why),
        }
    }
}

impl From<SendFailure> for OpenFailure {
    fn from(why: SendFailure) -> Self {
        match why {
            SendFailure::Unprocessed(why) => Self::Unseen(why),
            SendFailure::Failed(why) => Self::Failed(why),
        }
    }
}

impl From<Failed> for AskFailure {
    fn from(why: Failed) -> Self {
        Self::Failed(why)
    }
}

impl From<Failed> for SendFailure {
    fn from(why: Failed) -> Self {
        Self::Failed(why)
    }
}

#[cfg(test)]
pub(in crate::fetch) mod tests;
