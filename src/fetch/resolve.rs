//! Names to addresses over our own upstreams, cached here and nowhere else (H5).
//!
//! D-1: a name is asked for once at a time, whoever wants it. D-2: an answer is used for its TTL,
//! within `dns.min_ttl` and `dns.max_ttl`; a negative one for `dns.negative_ttl`. D-3: the cache
//! has a bound, and what goes first is what runs out first.

mod cache;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::Shared;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ServerOrderingStrategy,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RecordType};
use hickory_resolver::{Resolver as Hickory, TokioResolver};
use tokio::sync::Semaphore;

use self::cache::{Answered, Cache};
use crate::types::Reason;
use crate::world::{Clock, Resolved, Resolver};

/// Names kept.
const NAMES_MAX: usize = 100_000;
/// Names asked for at once.
const LOOKUPS_MAX: usize = 256;
/// The wait for one upstream's answer.
const UPSTREAM_TIMEOUT: Duration = Duration::from_secs(5);
/// Tries with the next upstream after the first one failed.
const UPSTREAM_RETRIES: usize = 2;
/// How long a failure of the upstreams themselves is remembered: it says nothing about the name,
/// so it only keeps a storm of questions off them.
const FAILURE_TTL: Duration = Duration::from_secs(5);
/// RFC 1035: octets of a name, dots between labels included, and of a label.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// `[dns]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DnsSettings {
    /// The upstreams, asked in rotation; empty for the system's.
    pub nameservers: Vec<SocketAddr>,
    /// Answers are used at least so long.
    pub min_ttl: Duration,
    /// Answers are used at most so long.
    pub max_ttl: Duration,
    /// How long a name counts as absent.
    pub negative_ttl: Duration,
}

/// The resolver could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ResolverError {
    /// The system has no usable configuration.
    #[error("failed to read the system's resolver configuration")]
    System(#[source] NetError),
    /// The upstreams cannot be used.
    #[error("failed to set up the resolver")]
    Setup(#[source] NetError),
}

type Asking = Shared<futures::future::BoxFuture<'static, Answered>>;

/// [`Resolver`] over hickory.
pub struct HickoryResolver(Arc<Inner>);

struct Inner {
    upstream: TokioResolver,
    clock: Arc<dyn Clock>,
    settings: DnsSettings,
    cache: Mutex<Cache<Asking>>,
    places: Semaphore,
}

impl HickoryResolver {
    /// A resolver with an empty cache.
    ///
    /// # Errors
    /// When the system's configuration or an upstream cannot be used.
    pub fn new(settings: DnsSettings, clock: Arc<dyn Clock>) -> Result<Self, ResolverError> {
        let upstream = upstream(&settings.nameservers)?;
        let cache = Mutex::new(Cache::new(NAMES_MAX));
        let places = Semaphore::new(LOOKUPS_MAX);
        Ok(Self(Arc::new(Inner { upstream, clock, settings, cache, places })))
    }

    /// Names in the cache, fresh or not.
    pub fn cached(&self) -> usize {
        self.0.cache().len()
    }
}

impl fmt::Debug for HickoryResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HickoryResolver({:?})", self.0.settings)
    }
}

#[async_trait]
impl Resolver for HickoryResolver {
    async fn resolve(&self, host: &str) -> Result<Resolved, Reason> {
        let now = self.0.clock.now();
        let forever = |addresses| Resolved { addresses, until: now + self.0.settings.max_ttl };
        if let Some(address) = literal(host) {
            return Ok(forever(vec![address]));
        }
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let name = name_of(&host)?;
        if is_loopback(&host) {
            // RFC 6761: never asked of anyone. Whether it may be connected to is decided later.
            return Ok(forever(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]));
        }
        let asking = {
            let mut cache = self.0.cache();
            if let Some(answer) = cache.fresh(&host, now) {
                return answer.clone();
            }
            cache.join(&host, || Inner::ask(Arc::clone(&self.0), host.clone(), name))
        };
        asking.await.answer
    }
}

impl Inner {
    fn cache(&self) -> std::sync::MutexGuard<'_, Cache<Asking>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// D-1: the one look-up of a name that everybody who wants it waits for.
    fn ask(inner: Arc<Self>, host: String, name: Name) -> Asking {
        async move {
            let answered = inner.look_up(name).await;
            inner.cache().settle(host, answered.clone());
            answered
        }
        .boxed()
        .shared()
    }

    async fn look_up(&self, name: Name) -> Answered {
        // The semaphore is never closed; without a place the look-up would only be unbounded.
        let _place = self.places.acquire().await.ok();
        let four = self.upstream.lookup(name.clone(), RecordType::A);
        let six = self.upstream.lookup(name, RecordType::AAAA);
        let (four, six) = futures::join!(four, six);
        let now = self.clock.now();
        let (mut addresses, mut ttl) = (Vec::new(), self.settings.max_ttl);
        for lookup in [&four, &six].into_iter().flatten() {
            ttl = ttl.min(read(lookup, &mut addresses));
        }
        if !addresses.is_empty() {
            let until = now + ttl.max(self.settings.min_ttl);
            return Answered { answer: Ok(Resolved { addresses, until }), until };
        }
        let (why, is_answer) = explain(four.err(), six.err());
        let negative = self.settings.negative_ttl;
        let until = now + if is_answer { negative } else { negative.min(FAILURE_TTL) };
        Answered { answer: Err(Reason::Dns { why }), until }
    }
}

fn upstream(nameservers: &[SocketAddr]) -> Result<TokioResolver, ResolverError> {
    let provider = TokioRuntimeProvider::default();
    let mut builder = if nameservers.is_empty() {
        Hickory::builder(provider).map_err(ResolverError::System)?
    } else {
        let servers = nameservers.iter().map(server).collect();
        let config = ResolverConfig::from_name_servers(servers);
        Hickory::builder_with_config(config, provider)
    };
    let options = builder.options_mut();
    options.cache_size = 0;
    options.timeout = UPSTREAM_TIMEOUT;
    options.attempts = UPSTREAM_RETRIES;
    options.num_concurrent_reqs = 1;
    options.max_active_requests = LOOKUPS_MAX * 2;
    options.server_ordering_strategy = ServerOrderingStrategy::RoundRobin;
    options.use_hosts_file =
        if nameservers.is_empty() { ResolveHosts::Always } else { ResolveHosts::Never };
    builder.build().map_err(ResolverError::Setup)
}

fn server(address: &SocketAddr) -> NameServerConfig {
    let mut connections = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
    for connection in &mut connections {
        connection.port = address.port();
    }
    NameServerConfig::new(address.ip(), true, connections)
}

/// Adds the addresses of an answer; returns the shortest TTL on the way to them.
fn read(lookup: &Lookup, addresses: &mut Vec<IpAddr>) -> Duration {
    let mut ttl = Duration::MAX;
    for record in lookup.answers() {
        ttl = ttl.min(Duration::from_secs(record.ttl.into()));
        let address = record.data.ip_addr().filter(|address| !addresses.contains(address));
        addresses.extend(address);
    }
    ttl
}

/// The words for a name without addresses, and whether they are an answer about the name or only
/// a failure to get one. A failure outweighs: the other family may have had addresses.
fn explain(four: Option<NetError>, six: Option<NetError>) -> (String, bool) {
    let both = [four, six].into_iter().flatten().map(|error| words(&error));
    let mut both: Vec<_> = both.collect();
    both.sort_by_key(|(_, is_answer)| *is_answer);
    both.into_iter().next().unwrap_or_else(|| ("the name has no addresses".to_owned(), true))
}

fn words(error: &NetError) -> (String, bool) {
    if let NetError::Dns(DnsError::NoRecordsFound(none)) = error {
        return if none.response_code == ResponseCode::NXDomain {
            ("there is no such name (NXDOMAIN)".to_owned(), true)
        } else {
            ("the name has no addresses".to_owned(), true)
        };
    }
    if let NetError::Dns(DnsError::ResponseCode(ResponseCode::ServFail)) = error {
        return ("the name server failed (SERVFAIL)".to_owned(), false);
    }
    if let NetError::Timeout = error {
        return ("no name server answered in time".to_owned(), false);
    }
    (format!("the name server could not be asked: {error}"), false)
}

/// The address that a URL's host is, if it is one; v4 in every spelling is plain by then.
pub(super) fn literal(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    bare.parse().ok()
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

/// The name to ask for, without search domains; refused when it cannot exist.
fn name_of(host: &str) -> Result<Name, Reason> {
    let refuse = |why: &str| Reason::Dns { why: format!("not a name: {why}") };
    if host.len() > NAME_BYTES_MAX {
        return Err(refuse("longer than 253 bytes"));
    }
    if host.split('.').any(str::is_empty) {
        return Err(refuse("an empty label"));
    }
    if host.split('.').any(|label| label.len() > LABEL_BYTES_MAX) {
        return Err(refuse("a label longer than 63 bytes"));
    }
    let mut name = Name::from_ascii(host).map_err(|error| refuse(&error.to_string()))?;
    name.set_fqdn(true);
    Ok(name)
}

#[cfg(test)]
mod tests;
