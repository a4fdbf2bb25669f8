//! A local web site that does what a test says, and remembers every request.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mehman::world::{Clock as _, TokioClock};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use super::{now, until};

/// The longest request head that is read.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// The crawler's clock counts whole milliseconds, so a wait may end within one of its end.
pub(crate) const CLOCK_STEP: Duration = Duration::from_millis(1);

/// A request as the site saw it.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// Path and query.
    pub(crate) path: String,
    /// By name in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    /// Which connection it came on, from 0.
    pub(crate) connection: u64,
    /// When its head had been read.
    pub(crate) at: Instant,
    /// Just before the last bytes of the answer were sent; `None` while it is not answered.
    pub(crate) ended: Option<Instant>,
    /// The status that was answered.
    pub(crate) status: u16,
    /// How often this path had been asked for before.
    pub(crate) earlier: usize,
}

/// What is answered.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    wait: Duration,
    cut: bool,
    raw: Option<Vec<u8>>,
}

impl Reply {
    /// A status without a body.
    pub(crate) fn status(status: u16) -> Self {
        let (headers, body) = (Vec::new(), Vec::new());
        Self { status, headers, body, wait: Duration::ZERO, cut: false, raw: None }
    }

    /// A page of HTML.
    pub(crate) fn html(html: impl Into<String>) -> Self {
        Self::status(200).header("Content-Type", "text/html; charset=utf-8").body(html.into())
    }

    /// Plain text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::status(200).header("Content-Type", "text/plain").body(text.into())
    }

    /// A redirect.
    pub(crate) fn redirect(status: u16, location: impl Into<String>) -> Self {
        Self::status(status).header("Location", location)
    }

    /// One header more.
    pub(crate) fn header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    /// The body.
    pub(crate) fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// So long nothing is answered.
    pub(crate) fn after(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// The connection is closed without an answer.
    pub(crate) fn hang_up() -> Self {
        Self { cut: true, ..Self::status(0) }
    }

    /// These bytes and no others, whatever they are; then the connection is closed.
    pub(crate) fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self { raw: Some(bytes.into()), ..Self::status(200) }
    }

    fn bytes(&self) -> Vec<u8> {
        if let Some(raw) = &self.raw {
            return raw.clone();
        }
        let mut head = format!("HTTP/1.1 {} Said\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("Content-Length: {}\r\n\r\n", self.body.len()));
        let mut bytes = head.into_bytes();
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

type Handler = dyn Fn(&Request) -> Reply + Send + Sync;

struct Shared {
    handler: Box<Handler>,
    log: Mutex<Vec<Request>>,
    connections: AtomicU64,
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, Vec<Request>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A site, served while this value lives.
pub(crate) struct Site {
    address: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Site {
    /// A site on a port of 127.0.0.1 that the system chooses.
    pub(crate) async fn start(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_on(Ipv4Addr::LOCALHOST, handler).await
    }

    /// A site on another address of this machine.
    pub(crate) async fn start_on(
        address: Ipv4Addr,
        handler: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            handler: Box::new(handler),
            log: Mutex::default(),
            connections: AtomicU64::new(0),
        });
        let serving = Arc::clone(&shared);
        let task = tokio::spawn(async move {
            // Dropped with this task, and with it every connection.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(converse(stream, Arc::clone(&serving)));
            }
        });
        Self { address, shared, task }
    }

    /// The absolute URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.key())
    }

    /// Its `host_key`.
    pub(crate) fn key(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All requests so far, by arrival.
    pub(crate) fn requests(&self) -> Vec<Request> {
        self.shared.log().clone()
    }

    /// Their paths.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.shared.log().iter().map(|request| request.path.clone()).collect()
    }

    /// How often each path was asked for.
    pub(crate) fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for path in self.paths() {
            *counts.entry(path).or_default() += 1;
        }
        counts
    }

    /// Waits until so many requests have come.
    pub(crate) async fn asked(&self, number: usize, seconds: u64) {
        let what = format!("{number} requests at {}", self.address);
        until(&what, seconds, async || (self.shared.log().len() >= number).then_some(())).await;
    }

    /// F4: one request at a time, each at least `delay` after the end of the one before.
    pub(crate) fn assert_polite(&self, delay: Duration) {
        assert_gaps(&self.requests(), delay);
    }
}

/// The same for any requests, by arrival.
pub(crate) fn assert_gaps(requests: &[Request], delay: Duration) {
    for pair in requests.windows(2) {
        let [before, after] = pair else { continue };
        let Some(ended) = before.ended.filter(|ended| *ended <= after.at) else {
            panic!("{} was asked while {} was answered", after.path, before.path);
        };
        let gap = after.at.duration_since(ended);
        assert!(
            gap + CLOCK_STEP >= delay,
            "{} came {gap:?} after {}, not {delay:?}",
            after.path,
            before.path
        );
    }
}

/// Answers on one connection until it is closed.
async fn converse(mut stream: TcpStream, shared: Arc<Shared>) {
    let connection = shared.connections.fetch_add(1, Ordering::Relaxed);
    stream.set_nodelay(true).ok();
    let mut buffer = Vec::new();
    while let Some((path, headers)) = next_head(&mut stream, &mut buffer).await {
        let (place, request) = {
            let mut log = shared.log();
            let earlier = log.iter().filter(|seen| seen.path == path).count();
            let request =
                Request { path, headers, connection, at: now(), ended: None, status: 0, earlier };
            log.push(request.clone());
            (log.len() - 1, request)
        };
        let reply = (shared.handler)(&request);
        if !reply.wait.is_zero() {
            TokioClock::system().sleep(reply.wait).await;
        }
        {
            let mut log = shared.log();
            log[place].status = reply.status;
            log[place].ended = Some(now());
        }
        if reply.cut || stream.write_all(&reply.bytes()).await.is_err() || reply.raw.is_some() {
            return;
        }
    }
}

/// Reads one request head; what follows it stays in the buffer.
async fn next_head(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
) -> Option<(String, BTreeMap<String, String>)> {
    let end = loop {
        if let Some(end) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if buffer.len() > HEAD_BYTES_MAX || stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let head: Vec<u8> = buffer.drain(..end + 4).collect();
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.lines();
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    let headers = lines.filter_map(|line| line.split_once(": "));
    let headers = headers.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    Some((path, headers.collect()))
}
