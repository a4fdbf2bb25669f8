//! A small web on loopback, made from a seed, with its own DNS.
//!
//! In: options and a clock. Out: the addresses of a web and of its name server, what a correct
//! crawl of it finds ([`Truth`]) and what was asked of it ([`Visit`]).
//!
//! Promises:
//! - the same options on the same ports give the same bytes for every page;
//! - nothing is bound outside 127.0.0.0/8 and nothing is connected to;
//! - over HTTPS its certificates are its own, and no key of them is ever written down;
//! - every page of a host is reachable from its front page, every host from the seeds;
//! - every task ends with the sandbox: awaited by [`Sandbox::shutdown`], aborted when dropped.
//!
//! It resolves only through its own name server: names end in `.test`, which no other answers.

mod draw;
mod words;
mod options;
mod behaviour;
mod site;
mod page;
mod visits;
mod tls;
mod prepared;
mod web;
mod dns;
mod truth;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing::debug;

pub use behaviour::Behaviour;
pub use options::{PageSizes, SandboxOptions, Security};
pub use tls::{Handshakes, TlsError};
pub use truth::Truth;
pub use visits::Visit;

use crate::world::Clock;
use dns::{Sockets, Zone};
use site::{RobotsAnswer, Shape};
use tls::Tls;
use web::Web;

/// Ports tried until one is free on every address.
const BIND_ATTEMPTS: usize = 16;
/// Ports after the web's that are tried for the one that refuses connections.
const CLOSED_PORTS: u16 = 32;
/// Addresses of 127.0.10.0/24 and the networks above it that are used.
const ADDRESSES_MAX: u16 = 50_000;
/// Addresses used of each network.
const ADDRESSES_OF_NETWORK: u16 = 250;

/// Why a sandbox did not start.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// There must be at least one host.
    #[error("a sandbox needs at least one host")]
    NoHosts,
    /// There must be at least one address, and at most 50,000.
    #[error("a sandbox needs 1 to {ADDRESSES_MAX} addresses, not {0}")]
    Addresses(u16),
    /// There is no HTTPS without certificates.
    #[error("failed to make the certificates of the sandbox")]
    Tls(#[from] TlsError),
    /// No port was to be had for the web.
    #[error("failed to listen for the web of the sandbox")]
    Web(#[source] io::Error),
    /// No port was to be had for the name server.
    #[error("failed to listen for the name server of the sandbox")]
    Dns(#[source] io::Error),
}

/// A web on loopback, served while this value lives.
#[derive(Debug)]
pub struct Sandbox {
    web: Arc<Web>,
    zone: Arc<Zone>,
    dns: SocketAddr,
    stop: watch::Sender<bool>,
    /// Dropping it aborts every task; each owns the tasks of its connections.
    tasks: JoinSet<()>,
    /// Bound and never listening, so that its port refuses for as long as links point to it.
    _closed: TcpSocket,
}

impl Sandbox {
    /// Binds the addresses and serves them.
    ///
    /// # Errors
    /// Options that make no web, or a port that cannot be had.
    pub async fn start(
        options: SandboxOptions,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, SandboxError> {
        if options.hosts == 0 {
            return Err(SandboxError::NoHosts);
        }
        if !(1..=ADDRESSES_MAX).contains(&options.addresses) {
            return Err(SandboxError::Addresses(options.addresses));
        }
        let (listeners, http_port) = listen(&options).await.map_err(SandboxError::Web)?;
        let addresses: Vec<Ipv4Addr> = listeners.iter().map(|(address, _)| *address).collect();
        let first = addresses.first().copied().unwrap_or(Ipv4Addr::LOCALHOST);
        let (closed, closed_port) = closed_port(first, http_port).map_err(SandboxError::Web)?;
        let sockets = Sockets::bind().await.map_err(SandboxError::Dns)?;
        let dns = sockets.address;
        let zone = Arc::new(Zone { hosts: options.hosts, addresses });
        let tls = Tls::new(options.security, options.hosts)?;
        let prepared = options.prepared;
        let shape = Shape { options, http_port, closed_port };
        let web = Arc::new(Web::new(shape, tls, Arc::clone(&clock)));
        if prepared {
            prepared::prepare(&web).await;
        }

        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        for (_, listener) in listeners {
            tasks.spawn(Arc::clone(&web).serve(listener, stopped.clone()));
        }
        tasks.spawn(sockets.serve(Arc::clone(&zone), clock, stopped));
        debug!(http_port, %dns, "sandbox serves");
        Ok(Self { web, zone, dns, stop, tasks, _closed: closed })
    }

    /// The addresses the web is served on, all on the same port.
    pub fn web_addresses(&self) -> Vec<SocketAddr> {
        let port = self.http_port();
        self.zone.addresses.iter().map(|address| SocketAddr::from((*address, port))).collect()
    }

    /// The port of the web on every address.
    pub fn http_port(&self) -> u16 {
        self.web.shape.http_port
    }

    /// Where the name server answers, over UDP and TCP.
    pub fn dns_address(&self) -> SocketAddr {
        self.dns
    }

    /// A few front pages from which everything is found.
    pub fn seeds(&self) -> Vec<String> {
        self.seed_hosts().map(|host| self.web.shape.url(host, "/")).collect()
    }

    /// The front pages of all hosts.
    pub fn front_pages(&self) -> Vec<String> {
        (0..self.zone.hosts).map(|host| self.web.shape.url(host, "/")).collect()
    }

    /// The authority whose certificates the hosts show, in PEM; `None` where they speak HTTP.
    pub fn authority(&self) -> Option<&str> {
        self.web.tls.as_ref().map(|tls| tls.root.as_str())
    }

    /// The TLS handshakes so far.
    pub fn handshakes(&self) -> Handshakes {
        self.web.tls.as_ref().map(Tls::handshakes).unwrap_or_default()
    }

    /// How many bodies dripped at once, at most.
    pub fn most_dripping(&self) -> usize {
        self.web.dripping.most()
    }

    /// What a correct, polite crawl from the seeds finds when its scope is the whole sandbox.
    pub fn expected(&self) -> Truth {
        Truth::walk(&self.web, self.seed_hosts())
    }

    /// The URLs of all pages of a behaviour, those that are not to be fetched included.
    pub fn urls_of(&self, behaviour: Behaviour) -> Vec<String> {
        let shape = &self.web.shape;
        (0..shape.options.hosts)
            .filter_map(|host| self.web.plan(host))
            .flat_map(|plan| plan.nodes.iter().map(move |node| (plan.host, node)))
            .filter(|(_, node)| node.behaviour == behaviour)
            .map(|(host, node)| shape.url(host, &node.path))
            .collect()
    }

    /// The requests seen, oldest first; the last 100,000 are kept.
    pub fn visits(&self) -> Vec<Visit> {
        self.web.visits.all()
    }

    /// How many requests were seen, those no longer kept included.
    pub fn visit_count(&self) -> u64 {
        self.web.visits.total()
    }

    /// Stops serving, and returns when every task has ended.
    pub async fn shutdown(mut self) {
        self.stop.send_replace(true);
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                debug!(%error, "sandbox task ended badly");
            }
        }
    }

    /// The first host, the second and one from the middle, unless nothing of it may be fetched.
    fn seed_hosts(&self) -> impl Iterator<Item = u16> + use<> {
        let hosts = self.web.shape.options.hosts;
        let mut seeds = vec![0, 1, hosts / 2];
        seeds.sort_unstable();
        seeds.dedup();
        seeds.into_iter().filter(move |host| {
            *host < hosts && RobotsAnswer::of(*host) != RobotsAnswer::Unavailable
        })
    }
}

type Listeners = Vec<(Ipv4Addr, TcpListener)>;

/// Listens on every address, on one port.
async fn listen(options: &SandboxOptions) -> io::Result<(Listeners, u16)> {
    let wanted: Vec<Ipv4Addr> = (0..options.addresses).map(address).collect();
    let mut attempts = 0;
    loop {
        attempts += 1;
        let error = match listen_once(&wanted, options.port).await {
            Ok(listening) => return Ok(listening),
            Err(error) => error,
        };
        if error.kind() == io::ErrorKind::AddrNotAvailable {
            // Not every system answers on all of 127.0.0.0/8 without being told to.
            return listen_once(&[Ipv4Addr::LOCALHOST], options.port).await;
        }
        let taken = error.kind() == io::ErrorKind::AddrInUse && options.port == 0;
        if !taken || attempts >= BIND_ATTEMPTS {
            return Err(error);
        }
    }
}

/// An address by its number: 127.0.10.1 and on, 250 of each network.
fn address(number: u16) -> Ipv4Addr {
    let [_, network] = (number / ADDRESSES_OF_NETWORK + 10).to_be_bytes();
    let [_, last] = (number % ADDRESSES_OF_NETWORK + 1).to_be_bytes();
    Ipv4Addr::new(127, 0, network, last)
}

/// Listens on every address on the port the first one gets.
async fn listen_once(addresses: &[Ipv4Addr], port: u16) -> io::Result<(Listeners, u16)> {
    let mut listeners = Vec::new();
    let mut port = port;
    for address in addresses {
        let listener = TcpListener::bind((*address, port)).await?;
        port = listener.local_addr()?.port();
        listeners.push((*address, listener));
    }
    Ok((listeners, port))
}

/// Takes a port that will refuse connections: near the web's, so that the same port of the web
/// gives the same links.
fn closed_port(address: Ipv4Addr, http_port: u16) -> io::Result<(TcpSocket, u16)> {
    let near = (1..=CLOSED_PORTS).filter_map(|step| http_port.checked_add(step));
    let mut failed = io::ErrorKind::AddrInUse.into();
    for port in near.chain([0]) {
        let socket = TcpSocket::new_v4()?;
        match socket.bind(SocketAddr::from((address, port))) {
            Ok(()) => {
                let port = socket.local_addr()?.port();
                return Ok((socket, port));
            }
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

#[cfg(test)]
mod tests;
