//! New connections: TCP to the pinned address, TLS with the name in the URL (H4, H6).
//!
//! C-1: only the pinned address is ever connected to, whatever the origin's name says, and a peer
//! found elsewhere is not spoken to. C-2: TLS is 1.2 or 1.3 with a certificate that is verified;
//! sessions are resumed across connections.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::Resumption;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, NamedGroup, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::failure::{self, Failed};
use super::http1::{Connection, Stream};
use super::http2::Http2;
use super::pool::Link;
use super::sessions::Sessions;
use crate::types::{CrawlUrl, Outcome, Reason};

/// The name of HTTP/2 in a handshake (RFC 9113 3.2).
const H2: &[u8] = b"h2";

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
    /// A part of `limits.memory`: for bodies on their way, beside a first part of each.
    pub bodies_bytes: u64,
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
    /// A certificate in such a file that is no root.
    #[error("a certificate in {} cannot be used", .file.display())]
    NoRoot {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: rustls::Error,
    },
    /// The set of protocol versions.
    #[error("failed to set up TLS")]
    Tls(#[from] rustls::Error),
}

/// Makes connections.
pub(super) struct Connector {
    tls: TlsConnector,
}

impl Connector {
    pub(super) fn new(settings: &ConnectSettings) -> Result<Self, ConnectError> {
        Ok(Self { tls: TlsConnector::from(Arc::new(tls_config(settings)?)) })
    }

    /// C-1: a new connection for the origin of a URL, to this address.
    pub(super) async fn connect(
        &self,
        url: &CrawlUrl,
        address: SocketAddr,
    ) -> Result<Link, Failed> {
        let stream = TcpStream::connect(address).await.map_err(|why| failure::connect(&why))?;
        let remote = is_pinned(stream.peer_addr(), address)?;
        // A request is one write: it need not wait for company.
        stream.set_nodelay(true).map_err(|why| failure::connect(&why))?;
        if url.as_url().scheme() != "https" {
            return Ok(Link::Http1(Connection::new(Stream::Plain(stream), remote)));
        }
        let name = server_name(url)?;
        // Boxed: the handshake's future is large and soon over.
        let stream = Box::pin(self.tls.connect(name, stream)).await;
        let stream = Box::new(stream.map_err(|why| failure::handshake(&why))?);
        if stream.get_ref().1.alpn_protocol() == Some(H2) {
            return Ok(Link::Http2(Arc::new(Box::pin(Http2::begin(stream, remote)).await?)));
        }
        Ok(Link::Http1(Connection::new(Stream::Tls(stream), remote)))
    }
}

/// I6: the peer is at the pinned address. The lease's shard counts another one as a violation.
pub(super) fn is_pinned(
    remote: io::Result<SocketAddr>,
    pinned: SocketAddr,
) -> Result<SocketAddr, Failed> {
    let found = match remote {
        Ok(at) if at.ip() == pinned.ip() && at.port() == pinned.port() => return Ok(at),
        Ok(at) => at.to_string(),
        Err(_) => "an unknown address".to_owned(),
    };
    let address = format!("{found} (asked for at {pinned})");
    Err((Outcome::EgressRefused, Reason::EgressRefused { address }))
}

/// What the certificate has to be for.
fn server_name(url: &CrawlUrl) -> Result<ServerName<'static>, Failed> {
    let host = url.as_url().host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(bare.to_owned()).map_err(|_| {
        let why = format!("no certificate can be for the name `{host}`");
        (Outcome::Tls, Reason::Tls { why })
    })
}

/// The roots in a file of `fetch.extra_ca_files`.
///
/// # Errors
/// It cannot be read, has no certificate, or one that is none.
pub fn roots_of(file: &Path) -> Result<RootCertStore, ConnectError> {
    let unreadable = |source| ConnectError::CaFile { file: file.to_owned(), source };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(unreadable)? {
        let added = roots.add(certificate.map_err(unreadable)?);
        added.map_err(|source| ConnectError::NoRoot { file: file.to_owned(), source })?;
    }
    match roots.is_empty() {
        true => Err(ConnectError::NoCertificate { file: file.to_owned() }),
        false => Ok(roots),
    }
}

/// H6: public roots and the operator's own, sessions kept for many hosts, X25519 first.
fn tls_config(settings: &ConnectSettings) -> Result<ClientConfig, ConnectError> {
    let mut provider: CryptoProvider = aws_lc_rs::default_provider();
    provider.kx_groups.sort_by_key(|group| group.name() != NamedGroup::X25519);
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for file in &settings.extra_ca_files {
        roots.roots.extend(roots_of(file)?.roots);
    }
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![H2.to_vec(), b"http/1.1".to_vec()];
    config.resumption = Resumption::store(Arc::new(Sessions::new(settings.tls_sessions_max)));
    Ok(config)
}
