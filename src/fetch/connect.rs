//! The connections: one client for each (origin, pinned address), at most so many idle (H4, H6).
//!
//! C-1: a client connects to its one address and to nothing else, whatever its origin's name says,
//! so two leases with different addresses never share a connection. C-2: while the address of an
//! origin stays the same its connections are reused, across leases.
//!
//! A client is a few boxes around a shared TLS configuration: measured, 7 µs and 3 KB, where the
//! handshake that follows costs 330 µs.

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect;
use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject};
use rustls::{ClientConfig, NamedGroup, RootCertStore};
use tokio::sync::watch;
use tower_layer::Layer;
use tower_service::Service;

use super::sessions::Sessions;
use crate::types::{HostKey, Timestamp};

/// Idle connections kept to one origin; more than one only where a host allows several at once.
const IDLE_PER_ORIGIN: usize = 4;
/// The end of a connection attempt that nobody waits for any more: its request got a connection
/// that was given back meanwhile. Whoever waits has `fetch.connect_timeout`.
pub(super) const ATTEMPT_MAX: Duration = Duration::from_secs(120);
/// Bytes of a response's headers over HTTP/2; HTTP/1 stops at hyper's own bound.
pub(super) const HEADER_BYTES_MAX: u32 = 417_792;

/// What connections are made of; a change of it needs a new exchange.
#[derive(Clone, Debug)]
pub struct ConnectSettings {
    /// `fetch.extra_ca_files`: PEM files of roots trusted beside the public ones.
    pub extra_ca_files: Vec<PathBuf>,
    /// `limits.sockets`: origins whose connections are kept at once.
    pub origins_max: usize,
    /// How long a connection may be idle.
    pub idle: Duration,
    /// Hosts whose TLS sessions are remembered, to be resumed.
    pub tls_sessions_max: usize,
}

/// The client could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// A file of `fetch.extra_ca_files`.
    #[error("failed to read certificates from {}", .file.display())]
    CaFile {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: pem::Error,
    },
    /// A file of `fetch.extra_ca_files` without any.
    #[error("no certificate in {}", .file.display())]
    NoCertificate {
        /// The file.
        file: PathBuf,
    },
    /// A certificate in such a file, or the set of protocol versions.
    #[error("failed to set up TLS")]
    Tls(#[from] rustls::Error),
}

/// Clients by origin and address; the one unused for longest goes first.
pub(super) struct Clients {
    tls: ClientConfig,
    settings: ConnectSettings,
    kept: Mutex<Kept>,
}

type Place = (HostKey, SocketAddr);

#[derive(Default)]
struct Kept {
    clients: HashMap<Place, (u64, reqwest::Client)>,
    /// By turn of last use: eviction repeats from run to run.
    turns: BTreeMap<u64, (Timestamp, Place)>,
    turn: u64,
}

impl Clients {
    pub(super) fn new(settings: ConnectSettings) -> Result<Self, ConnectError> {
        let tls = tls_config(&settings)?;
        Ok(Self { tls, settings, kept: Mutex::default() })
    }

    /// The client of an origin at an address (C-1, C-2).
    pub(super) fn get(
        &self,
        origin: &HostKey,
        address: SocketAddr,
        now: Timestamp,
    ) -> reqwest::Result<reqwest::Client> {
        let place = (origin.clone(), address);
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = kept.used(&place, now) {
            return Ok(client);
        }
        kept.make_room(self.settings.origins_max, now, self.settings.idle);
        let client = self.build(address)?;
        kept.insert(place, client.clone(), now);
        Ok(client)
    }

    /// Clients kept.
    pub(super) fn len(&self) -> usize {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).clients.len()
    }

    fn build(&self, address: SocketAddr) -> reqwest::Result<reqwest::Client> {
        reqwest::Client::builder()
            .tls_backend_preconfigured(self.tls.clone())
            .dns_resolver(Pinned(address))
            .connector_layer(Noting)
            .connect_timeout(ATTEMPT_MAX)
            .no_proxy()
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            .pool_max_idle_per_host(IDLE_PER_ORIGIN)
            .pool_idle_timeout(self.settings.idle)
            .http2_max_header_list_size(HEADER_BYTES_MAX)
            .tcp_nodelay(true)
            .build()
    }
}

impl Kept {
    fn used(&mut self, place: &Place, now: Timestamp) -> Option<reqwest::Client> {
        let (turn, client) = self.clients.get_mut(place)?;
        let place = self.turns.remove(turn)?.1;
        self.turn += 1;
        *turn = self.turn;
        self.turns.insert(self.turn, (now, place));
        Some(client.clone())
    }

    fn insert(&mut self, place: Place, client: reqwest::Client, now: Timestamp) {
        self.turn += 1;
        self.clients.insert(place.clone(), (self.turn, client));
        self.turns.insert(self.turn, (now, place));
    }

    /// A client whose connections have all been closed for idleness is of no more use. One that
    /// goes while an exchange is under way takes nothing from it.
    fn make_room(&mut self, max: usize, now: Timestamp, idle: Duration) {
        while let Some(first) = self.turns.first_entry() {
            let is_stale = now.since(first.get().0) > idle;
            if !is_stale && self.clients.len() < max.max(1) {
                return;
            }
            self.clients.remove(&first.remove().1);
        }
    }
}

/// I6: the only addresses a client ever hears of.
struct Pinned(SocketAddr);

impl Resolve for Pinned {
    fn resolve(&self, _name: Name) -> Resolving {
        let addresses: Addrs = Box::new(std::iter::once(self.0));
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

/// How far a request has come, so that each wait has its own limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// On a connection that stands, or waiting for one to be given back.
    Ready,
    /// TCP and TLS.
    Connecting,
}

tokio::task_local! {
    /// Where the request that is being driven wants to hear of its stage. A connection attempt
    /// begins while its request is polled; one that has no request tells nobody.
    pub(super) static STAGE: watch::Sender<Stage>;
}

/// Tells requests when their connection is being made.
#[derive(Clone, Copy)]
struct Noting;

#[derive(Clone)]
struct Noted<S>(S);

impl<S> Layer<S> for Noting {
    type Service = Noted<S>;

    fn layer(&self, inner: S) -> Noted<S> {
        Noted(inner)
    }
}

impl<S, R> Service<R> for Noted<S>
where
    S: Service<R>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let attempt = Attempt(STAGE.try_with(watch::Sender::clone).ok());
        attempt.note(Stage::Connecting);
        let connecting = self.0.call(request);
        Box::pin(async move {
            let connected = connecting.await;
            drop(attempt);
            connected
        })
    }
}

/// A connection being made; gone when it stands or is given up.
struct Attempt(Option<watch::Sender<Stage>>);

impl Attempt {
    fn note(&self, stage: Stage) {
        if let Some(sender) = &self.0 {
            sender.send_replace(stage);
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.note(Stage::Ready);
    }
}

/// H6: public roots and the operator's own, sessions kept for many hosts, X25519 first.
fn tls_config(settings: &ConnectSettings) -> Result<ClientConfig, ConnectError> {
    let mut provider: CryptoProvider = aws_lc_rs::default_provider();
    provider.kx_groups.sort_by_key(|group| group.name() != NamedGroup::X25519);
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for file in &settings.extra_ca_files {
        let before = roots.len();
        let unreadable = |source| ConnectError::CaFile { file: file.clone(), source };
        for certificate in CertificateDer::pem_file_iter(file).map_err(unreadable)? {
            roots.add(certificate.map_err(unreadable)?)?;
        }
        if roots.len() == before {
            return Err(ConnectError::NoCertificate { file: file.clone() });
        }
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    config.resumption = Resumption::store(Arc::new(Sessions::new(settings.tls_sessions_max)));
    Ok(config)
}
