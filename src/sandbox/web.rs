//! The web server: which host and page a request means, and how the answer goes out.
//!
//! Promises: one connection is served at a time per permit, every task ends when the server is
//! stopped or dropped, and what a page answers is decided in `page` but for what depends on what
//! came before (the pages that are busy or limited once) or on the request (304, content coding).

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tracing::debug;

use super::behaviour::Behaviour;
use super::page::{self, PIXEL, Page, Stamp};
use super::prepared::{Made, Prepared};
use super::site::{HostPlan, Shape, calendar_day, host_number};
use super::tls::Tls;
use super::visits::{Visit, VisitLog};
use crate::world::Clock;

/// How long a connection may take for its handshake, and to send the head of its next request.
const IDLE: Duration = Duration::from_secs(30);
/// Pieces in which a body drips.
const DRIP_PIECES: usize = 8;
/// Bodies below this are not worth compressing, in bytes.
const GZIP_MIN_BYTES: usize = 256;
/// Fast rather than small: it is made anew for each request.
const GZIP_LEVEL: u32 = 1;

const STYLE: &str = "body{font:1rem/1.5 serif;max-width:40rem;margin:2rem auto}\n";

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// The web of a sandbox: plans, made when first needed, and what happened to it.
#[derive(Debug)]
pub(super) struct Web {
    pub(super) shape: Shape,
    pub(super) visits: VisitLog,
    pub(super) prepared: Prepared,
    /// `None` where plain HTTP is spoken.
    pub(super) tls: Option<Tls>,
    pub(super) dripping: Arc<Dripping>,
    plans: Vec<OnceLock<HostPlan>>,
    /// Pages that have answered once that they are busy; bounded by their number.
    turned_away: Mutex<BTreeSet<(u16, usize)>>,
    clock: Arc<dyn Clock>,
    connections: Arc<Semaphore>,
}

/// How the bytes of an answer go out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    AtOnce,
    Late,
    Drip,
}

impl Web {
    /// A web nobody has visited yet.
    pub(super) fn new(shape: Shape, tls: Option<Tls>, clock: Arc<dyn Clock>) -> Self {
        let options = &shape.options;
        let plans = (0..options.hosts).map(|_| OnceLock::new()).collect();
        let connections = Arc::new(Semaphore::new(options.connections_max));
        let prepared = Prepared::of(if options.prepared { options.hosts } else { 0 });
        Self {
            shape,
            prepared,
            tls,
            dripping: Arc::default(),
            plans,
            clock,
            visits: VisitLog::default(),
            turned_away: Mutex::default(),
            connections,
        }
    }

    /// The plan of a host; `None` when there is no such host.
    pub(super) fn plan(&self, host: u16) -> Option<&HostPlan> {
        let plan = self.plans.get(usize::from(host))?;
        Some(plan.get_or_init(|| HostPlan::new(&self.shape, host)))
    }

    /// The time as the web sees it.
    #[cfg(test)]
    pub(super) fn clock_now(&self) -> crate::types::Timestamp {
        self.clock.now()
    }

    /// Serves one address until told to stop, then ends its connections.
    pub(super) async fn serve(
        self: Arc<Self>,
        listener: TcpListener,
        mut stop: watch::Receiver<bool>,
    ) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                biased;
                _ = stop.changed() => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
                accepted = self.accept(&listener) => {
                    if let Some((stream, permit)) = accepted {
                        let web = Arc::clone(&self);
                        connections.spawn(async move {
                            web.connection(stream).await;
                            drop(permit);
                        });
                    }
                }
            }
        }
        connections.shutdown().await;
    }

    async fn accept(
        &self,
        listener: &TcpListener,
    ) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
        let permit = Arc::clone(&self.connections).acquire_owned().await.ok()?;
        match listener.accept().await {
            Ok((stream, _)) => Some((stream, permit)),
            Err(error) => {
                // Out of descriptors, mostly: without a pause the loop would spin.
                debug!(%error, "sandbox failed to accept");
                self.clock.sleep(Duration::from_millis(50)).await;
                None
            }
        }
    }

    async fn connection(self: Arc<Self>, stream: TcpStream) {
        let Some(tls) = &self.tls else {
            return Arc::clone(&self).speak(stream).await;
        };
        let accepted = tokio::select! {
            biased;
            accepted = tls.accept(stream) => accepted,
            () = self.clock.sleep(IDLE) => None,
        };
        if let Some(stream) = accepted {
            Arc::clone(&self).speak(stream).await;
        }
    }

    async fn speak<S>(self: Arc<Self>, stream: S)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let keep_alive = self.shape.options.keep_alive;
        let service = service_fn(move |request| {
            let web = Arc::clone(&self);
            async move { Ok::<_, Infallible>(web.answer(request).await) }
        });
        let served = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(IDLE)
            .keep_alive(keep_alive)
            .serve_connection(TokioIo::new(stream), service)
            .await;
        if let Err(error) = served {
            debug!(%error, "sandbox connection ended early");
        }
    }

    async fn answer<B>(&self, request: Request<B>) -> Response<Body> {
        let at = self.clock.now();
        let name = host_of(&request);
        let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
        let (page, pace) = self.page(&name, path, request.method(), request.headers());
        self.visits.add(Visit {
            host: name,
            path: path.to_owned(),
            at,
            user_agent: text(request.headers(), header::USER_AGENT).map(str::to_owned),
            status: page.status(),
        });
        if pace == Pace::Late {
            self.clock.sleep(self.shape.options.slow).await;
        }
        let head = request.method() == Method::HEAD;
        page.into_response(request.headers(), |bytes| match pace {
            _ if head => Full::new(Bytes::new()).boxed_unsync(),
            Pace::AtOnce | Pace::Late => Full::new(bytes).boxed_unsync(),
            Pace::Drip => {
                let guard = Dripping::begin(&self.dripping);
                drip(bytes, Arc::clone(&self.clock), self.shape.options.drip, guard)
            }
        })
    }

    fn page(
        &self,
        name: &str,
        path: &str,
        method: &Method,
        headers: &HeaderMap,
    ) -> (Answer<'_>, Pace) {
        let found = host_number(name, self.shape.options.hosts).and_then(|host| self.plan(host));
        let Some(plan) = found else {
            return (Answer::Page(Page::plain(421, "no such host\n"), None), Pace::AtOnce);
        };
        if method != Method::GET && method != Method::HEAD {
            return (Answer::Page(Page::plain(405, "read only\n"), None), Pace::AtOnce);
        }
        let Some(nth) = plan.find(path) else {
            return (Answer::Page(self.beside(plan, path), None), Pace::AtOnce);
        };
        if let Some(status) = self.turn_away(plan, nth) {
            let after = self.shape.options.retry_after;
            let page = Page::plain(status, "one moment please\n");
            return (Answer::Page(page, Some(after)), Pace::AtOnce);
        }
        if let Some(stamp) =
            Stamp::of(&self.shape, plan, nth).filter(|stamp| fresh(headers, *stamp))
        {
            return (Answer::NotModified(stamp), Pace::AtOnce);
        }
        let behaviour = plan.node(nth).map(|node| node.behaviour);
        let pace = match behaviour {
            Some(Behaviour::Slow) => Pace::Late,
            Some(Behaviour::Drip) => Pace::Drip,
            Some(_) if self.shape.options.all_drip => Pace::Drip,
            Some(_) | None => Pace::AtOnce,
        };
        let made = self.prepared.find(&self.shape, plan, nth);
        let answer = match made.filter(|_| accepts_gzip(headers)) {
            Some(made) => Answer::Made(made),
            None => Answer::Page(page::page(&self.shape, plan, nth), None),
        };
        (answer, pace)
    }

    /// What is not in the plan: robots.txt, style, pictures, calendar.
    fn beside(&self, plan: &HostPlan, path: &str) -> Page {
        let day = calendar_day(path).filter(|_| self.shape.trap_host() == Some(plan.host));
        if path == "/robots.txt" {
            page::robots(&self.shape, plan.robots)
        } else if path == "/style.css" {
            Page { content_type: "text/css".into(), ..Page::plain(200, STYLE) }
        } else if path.starts_with("/img/") {
            let body = PIXEL.to_vec();
            Page { content_type: "image/png".into(), body, ..Page::plain(200, "") }
        } else if let Some(day) = day {
            page::calendar(&self.shape, plan, day)
        } else {
            Page::plain(404, "no such page\n")
        }
    }

    /// The status of a page that is busy or limited, the first time it is asked for.
    fn turn_away(&self, plan: &HostPlan, nth: usize) -> Option<u16> {
        let behaviour = plan.node(nth)?.behaviour;
        let status = if behaviour == Behaviour::BusyOnce {
            503
        } else if behaviour == Behaviour::LimitedOnce {
            429
        } else {
            return None;
        };
        let mut turned_away = self.turned_away.lock().unwrap_or_else(PoisonError::into_inner);
        turned_away.insert((plan.host, nth)).then_some(status)
    }
}

/// What goes out.
enum Answer<'a> {
    /// A page, with what it asks for in Retry-After.
    Page(Page, Option<Duration>),
    /// A page that was made before.
    Made(&'a Made),
    /// 304.
    NotModified(Stamp),
}

impl Answer<'_> {
    fn status(&self) -> u16 {
        match self {
            Self::Page(page, _) => page.status,
            Self::Made(made) => made.page.status,
            Self::NotModified(_) => 304,
        }
    }

    fn into_response(self, asked: &HeaderMap, body: impl FnOnce(Bytes) -> Body) -> Response<Body> {
        let status = StatusCode::from_u16(self.status()).expect("our own statuses are valid");
        let (page, retry_after, made) = match self {
            Self::Page(page, retry_after) => (page, retry_after, None),
            Self::Made(made) => (made.page.clone(), None, Some(made.gzip.clone())),
            Self::NotModified(stamp) => {
                let mut response = Response::new(Full::new(Bytes::new()).boxed_unsync());
                *response.status_mut() = status;
                stamp_headers(response.headers_mut(), stamp);
                return response;
            }
        };
        let gzip = made.is_some() || (accepts_gzip(asked) && is_compressible(&page));
        let bytes = match made {
            Some(made) => made,
            None if gzip => compressed(&page.body).into(),
            None => page.body.into(),
        };
        let length = bytes.len();
        let mut response = Response::new(body(bytes));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        set(headers, header::CONTENT_TYPE, &page.content_type);
        set(headers, header::CONTENT_LENGTH, &length.to_string());
        set(headers, header::VARY, "accept-encoding");
        if gzip {
            set(headers, header::CONTENT_ENCODING, "gzip");
        }
        if let Some(location) = page.location {
            set(headers, header::LOCATION, &location);
        }
        if let Some(after) = retry_after {
            set(headers, header::RETRY_AFTER, &after.as_secs().to_string());
        }
        if let Some(stamp) = page.stamp {
            stamp_headers(headers, stamp);
        }
        response
    }
}

fn stamp_headers(headers: &mut HeaderMap, stamp: Stamp) {
    set(headers, header::ETAG, &stamp.entity_tag());
    set(headers, header::LAST_MODIFIED, &stamp.last_modified());
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    let value = HeaderValue::from_str(value).expect("generated values are visible ASCII");
    headers.insert(name, value);
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// The name of the Host header, in lower case, without port.
fn host_of<B>(request: &Request<B>) -> String {
    let host = text(request.headers(), header::HOST).unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    name.trim_end_matches('.').to_ascii_lowercase()
}

/// Whether the validators of the request match. If-None-Match decides alone where it is sent.
fn fresh(headers: &HeaderMap, stamp: Stamp) -> bool {
    if let Some(tags) = text(headers, header::IF_NONE_MATCH) {
        let own = stamp.entity_tag();
        let own = own.trim_start_matches("W/");
        return tags.split(',').map(str::trim).any(|tag| tag == "*" || tag.ends_with(own));
    }
    text(headers, header::IF_MODIFIED_SINCE)
        .and_then(|date| httpdate::parse_http_date(date).ok())
        .and_then(|since| since.duration_since(std::time::UNIX_EPOCH).ok())
        .is_some_and(|since| since.as_secs() >= stamp.modified_secs)
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let codings = text(headers, header::ACCEPT_ENCODING).unwrap_or_default();
    codings.split(',').any(|coding| {
        let mut parts = coding.split(';').map(str::trim);
        let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case("gzip"));
        named && !parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
    })
}

/// Whether compression is worth its while.
pub(super) fn is_compressible(page: &Page) -> bool {
    page.content_type.starts_with("text/") && page.body.len() >= GZIP_MIN_BYTES
}

fn compressed(body: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
    encoder.write_all(body).expect("a vector takes what is written to it");
    encoder.finish().expect("a vector takes what is written to it")
}

/// How many bodies drip at this moment, and how many did at most.
#[derive(Debug, Default)]
pub(super) struct Dripping {
    current: AtomicUsize,
    most: AtomicUsize,
}

/// One body that drips.
struct OneDrip(Arc<Dripping>);

impl Dripping {
    fn begin(dripping: &Arc<Self>) -> OneDrip {
        let current = dripping.current.fetch_add(1, Ordering::Relaxed) + 1;
        dripping.most.fetch_max(current, Ordering::Relaxed);
        OneDrip(Arc::clone(dripping))
    }

    /// The most at once so far.
    pub(super) fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }
}

impl Drop for OneDrip {
    fn drop(&mut self) {
        self.0.current.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A body in pieces, with a pause before each but the first.
fn drip(bytes: Bytes, clock: Arc<dyn Clock>, pause: Duration, counted: OneDrip) -> Body {
    let piece = bytes.len().div_ceil(DRIP_PIECES).max(1);
    let pieces = stream::unfold((bytes, false, counted), move |(mut rest, started, counted)| {
        let clock = Arc::clone(&clock);
        async move {
            if rest.is_empty() {
                return None;
            }
            if started {
                clock.sleep(pause).await;
            }
            let next = rest.split_to(piece.min(rest.len()));
            Some((Ok(Frame::data(next)), (rest, true, counted)))
        }
    });
    StreamBody::new(pieces).boxed_unsync()
}
