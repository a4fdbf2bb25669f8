//! A node in this process, in a world of the test's own: real but for what may fail on command.

use std::backtrace::Backtrace;
use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use mehman::cluster::SingleNode;
use mehman::config::Config;
use mehman::fetch::{ConnectSettings, HttpExchange};
use mehman::node::{Node, NodeOptions, Purpose};
use mehman::protocol::discovery::{Seed, SeedResult};
use mehman::types::{HostId, Reason, Timestamp};
use mehman::world::{
    Clock, DirectorySpool, Exchange, ExchangeFailure, ExchangeRequest, Exchanged, Objects,
    Resolved, Resolver, SeededDice, SnapshotStore, TokioClock, World,
};
use tokio::net::TcpListener;

use super::http::Client;
use super::until;

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A clock that panics the next time a chosen part of the program asks it.
#[derive(Debug)]
pub(crate) struct TouchyClock {
    inner: TokioClock,
    victim: Mutex<Option<&'static str>>,
}

impl TouchyClock {
    /// The system's time.
    pub(crate) fn new() -> Self {
        Self { inner: TokioClock::system(), victim: Mutex::default() }
    }

    /// Panics once, when a function below this path asks the time.
    pub(crate) fn fail(&self, module: &'static str) {
        *locked(&self.victim) = Some(module);
    }

    /// Whether it has.
    pub(crate) fn has_failed(&self) -> bool {
        locked(&self.victim).is_none()
    }
}

#[async_trait]
impl Clock for TouchyClock {
    fn now(&self) -> Timestamp {
        let wanted = *locked(&self.victim);
        if let Some(victim) = wanted.filter(|victim| asker().is_some_and(|it| it.contains(victim)))
            && locked(&self.victim).take().is_some()
        {
            panic!("the clock does not like {victim}");
        }
        self.inner.now()
    }

    async fn sleep_until(&self, at: Timestamp) {
        self.inner.sleep_until(at).await;
    }
}

/// The function of the program that is asking: the innermost that is not the world itself.
fn asker() -> Option<String> {
    let trace = Backtrace::force_capture().to_string();
    let frames = trace.lines().filter(|line| line.contains("mehman::"));
    frames.map(str::to_owned).find(|frame| !frame.contains("mehman::world"))
}

/// Exchanges that panic for some URLs.
#[derive(Debug)]
pub(crate) struct TouchyExchange {
    inner: Arc<dyn Exchange>,
    /// How often still, by the end of a URL.
    panics: Mutex<BTreeMap<&'static str, u32>>,
    /// How often it did.
    pub(crate) died: AtomicU64,
}

impl TouchyExchange {
    fn is_to_panic(&self, url: &str) -> bool {
        let mut panics = locked(&self.panics);
        let found = panics.iter_mut().find(|(end, left)| url.ends_with(*end) && **left > 0);
        let Some((_, left)) = found else { return false };
        *left -= 1;
        true
    }
}

#[async_trait]
impl Exchange for TouchyExchange {
    async fn exchange(&self, request: ExchangeRequest) -> Result<Exchanged, ExchangeFailure> {
        let url = request.url.to_string();
        if self.is_to_panic(&url) {
            self.died.fetch_add(1, Ordering::Relaxed);
            panic!("the exchange does not like {url}");
        }
        self.inner.exchange(request).await
    }
}

/// Snapshots in memory, that panic when they are first written.
#[derive(Debug, Default)]
pub(crate) struct TouchySnapshots {
    rows: Mutex<BTreeMap<HostId, Vec<u8>>>,
    panics: AtomicU64,
}

impl SnapshotStore for TouchySnapshots {
    fn get(&self, host: HostId) -> Option<Vec<u8>> {
        locked(&self.rows).get(&host).cloned()
    }

    fn put(&self, host: HostId, snapshot: Vec<u8>) {
        let spent =
            self.panics.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
        assert!(spent.is_err(), "the snapshots do not like {host}");
        locked(&self.rows).insert(host, snapshot);
    }

    fn remove(&self, host: HostId) {
        locked(&self.rows).remove(&host);
    }
}

/// Addresses as they are written, and no names.
struct Literals(Arc<TouchyClock>);

impl fmt::Debug for Literals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Literals")
    }
}

#[async_trait]
impl Resolver for Literals {
    async fn resolve(&self, host: &str) -> Result<Resolved, Reason> {
        let address: IpAddr =
            host.parse().map_err(|_| Reason::Dns { why: "only addresses".to_owned() })?;
        Ok(Resolved { addresses: vec![address], until: self.0.now() + Duration::from_secs(3600) })
    }
}

/// What is to go wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wrong {
    /// How often an exchange panics, by the end of its URL.
    pub(crate) exchanges: BTreeMap<&'static str, u32>,
    /// How often writing a snapshot panics.
    pub(crate) snapshots: u64,
}

/// A running node and what it runs in.
pub(crate) struct Crawl {
    /// The node.
    pub(crate) node: Node,
    /// Its clock.
    pub(crate) clock: Arc<TouchyClock>,
    /// Its exchanges.
    pub(crate) exchange: Arc<TouchyExchange>,
    /// Asks its admin interface.
    pub(crate) client: Client,
}

impl Crawl {
    /// Starts a node in a directory.
    pub(crate) async fn start(config: &str, data: &Path, wrong: Wrong) -> Self {
        let config = Config::from_toml(config, "test").expect("a sound configuration");
        let clock = Arc::new(TouchyClock::new());
        let connect = ConnectSettings {
            extra_ca_files: Vec::new(),
            origins_max: 100,
            idle: Duration::from_secs(10),
            tls_sessions_max: 10,
            bodies_bytes: 64 << 20,
        };
        let egress = Arc::new(|address: IpAddr| {
            let stranger = Reason::EgressRefused { address: address.to_string() };
            if address.is_loopback() { Ok(()) } else { Err(stranger) }
        });
        let real = HttpExchange::new(connect, egress, Arc::clone(&clock) as _);
        let exchange = Arc::new(TouchyExchange {
            inner: Arc::new(real.expect("a client")),
            panics: Mutex::new(wrong.exchanges),
            died: AtomicU64::new(0),
        });
        let snapshots =
            TouchySnapshots { panics: AtomicU64::new(wrong.snapshots), ..Default::default() };
        std::fs::create_dir_all(data.join("shards")).expect("a directory");
        let world = World {
            clock: Arc::clone(&clock) as _,
            dice: Arc::new(SeededDice::new(1)),
            exchange: Arc::clone(&exchange) as _,
            resolver: Arc::new(Literals(Arc::clone(&clock))),
            snapshots: Arc::new(snapshots),
            spool: Arc::new(DirectorySpool::new(data)),
            objects: Objects::open_directory(&data.join("shards")).expect("a store"),
            coordinator: Arc::new(SingleNode),
        };
        let config = Arc::new(config);
        let options = NodeOptions { config, purpose: Purpose::Crawl, reloader: None };
        let mut node = Node::start_in(options, world).await.expect("a node");
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let client = Client::new(listener.local_addr().expect("an address"));
        node.serve_admin(listener);
        Self { node, clock, exchange, client }
    }

    /// Gives a seed.
    pub(crate) async fn seed(&self, url: &str) {
        let seeds = vec![Seed { url: url.to_owned(), ..Seed::default() }];
        let answers = self.node.seed(seeds).await.expect("an answer");
        assert_eq!(answers[0].result, SeedResult::Accepted, "{answers:?}");
    }

    /// Waits until nothing is left to do.
    pub(crate) async fn done(&self, seconds: u64) {
        let mut quiet = 0;
        until("the end of the crawl", seconds, async || {
            let found = self.node.progress().await;
            let over = !found.busy && found.in_flight == 0 && found.next_wake.is_none();
            quiet = if over { quiet + 1 } else { 0 };
            (quiet > 20).then_some(())
        })
        .await;
    }

    /// Waits until the clock has panicked where it was told to.
    pub(crate) async fn failed(&self, seconds: u64) {
        until("the panic", seconds, async || self.clock.has_failed().then_some(())).await;
    }

    /// The figure of a metric, all labels together.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let text = self.client.get("/metrics").await.text;
        let lines = text.lines().filter(|line| {
            line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']))
        });
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum()
    }

    /// The restarts of an actor in the tree, by its name.
    pub(crate) async fn restarts(&self, name: &str) -> u64 {
        let tree = self.client.get("/v1/actors").await.json();
        let children = tree["children"].as_array().expect("a list");
        let found = children.iter().filter(|child| {
            child["name"]
                .as_str()
                .is_some_and(|own| own == name || own.starts_with(&format!("{name}-")))
        });
        found.filter_map(|child| child["restarts"].as_u64()).sum()
    }

    /// Stops it in order.
    pub(crate) async fn stop(self) {
        self.node.stop(Duration::from_secs(10)).await.expect("a clean stop");
    }
}
