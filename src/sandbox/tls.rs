//! HTTPS: an authority of the sandbox's own, and a certificate for each host that is asked for.
//!
//! Promises: the keys are made anew for each sandbox and never leave its memory; the root is good
//! for names in `.test` only; a certificate is made once, when its host is first asked for. The
//! chain is root, issuer, host, as on the web, so that checking it costs what it costs there.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, GeneralSubtree, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, NameConstraints,
};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SigningKey};
use rustls::{HandshakeKind, ServerConfig};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::options::Security;
use super::site::{ZONE, host_name, host_number};

/// Tickets given for each full handshake, as by most servers.
const TICKETS: usize = 2;

/// The sandbox could not make its certificates.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A certificate.
    #[error("failed to make a certificate")]
    Certificate(#[from] rcgen::Error),
    /// The server's side of TLS.
    #[error("failed to set up TLS")]
    Setup(#[from] rustls::Error),
}

/// How connections of a sandbox began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Handshakes {
    /// With certificates.
    pub full: u64,
    /// From a session that was remembered.
    pub resumed: u64,
    /// Not at all: the other side went away or did not like the certificate.
    pub failed: u64,
}

/// The TLS side of a sandbox.
pub(super) struct Tls {
    acceptor: TlsAcceptor,
    /// The root in PEM.
    pub(super) root: String,
    full: AtomicU64,
    resumed: AtomicU64,
    failed: AtomicU64,
}

impl Tls {
    /// An authority for so many hosts; `None` where plain HTTP is spoken.
    pub(super) fn new(security: Security, hosts: u16) -> Result<Option<Self>, TlsError> {
        let resumption = match security {
            Security::Plain => return Ok(None),
            Security::Tls { resumption } => resumption,
        };
        let root = CertifiedIssuer::self_signed(authority("root", true), KeyPair::generate()?)?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let certificates = Certificates::signed_by(&root, hosts, &provider)?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(WebPkiClientVerifier::no_client_auth())
            .with_cert_resolver(Arc::new(certificates));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.send_tls13_tickets = if resumption { TICKETS } else { 0 };
        if resumption {
            // Sealed tickets: the server remembers nothing, however many hosts there are.
            config.ticketer = aws_lc_rs::Ticketer::new()?;
        } else {
            config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        }
        Ok(Some(Self {
            acceptor: TlsAcceptor::from(Arc::new(config)),
            root: root.pem(),
            full: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }))
    }

    /// The server's side of a handshake; `None` when it came to nothing.
    pub(super) async fn accept(&self, stream: TcpStream) -> Option<TlsStream<TcpStream>> {
        let accepted = self.acceptor.accept(stream).await.ok();
        let kind = accepted.as_ref().and_then(|stream| stream.get_ref().1.handshake_kind());
        let counter = match kind {
            Some(HandshakeKind::Resumed) => &self.resumed,
            Some(HandshakeKind::Full | HandshakeKind::FullWithHelloRetryRequest) => &self.full,
            None => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
        accepted
    }

    /// The handshakes so far.
    pub(super) fn handshakes(&self) -> Handshakes {
        Handshakes {
            full: self.full.load(Ordering::Relaxed),
            resumed: self.resumed.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tls({:?})", self.handshakes())
    }
}

fn authority(name: &str, is_root: bool) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, format!("mehman sandbox {name}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(u8::from(is_root)));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.name_constraints = is_root.then(|| NameConstraints {
        permitted_subtrees: vec![GeneralSubtree::DnsName(ZONE.to_owned())],
        excluded_subtrees: Vec::new(),
    });
    params
}

/// One certificate for each host, all of one key, made when first asked for.
struct Certificates {
    issuer: Issuer<'static, KeyPair>,
    issuer_certificate: CertificateDer<'static>,
    key: KeyPair,
    signing_key: Arc<dyn SigningKey>,
    made: Vec<OnceLock<Option<Arc<CertifiedKey>>>>,
}

impl Certificates {
    fn signed_by(
        root: &CertifiedIssuer<'static, KeyPair>,
        hosts: u16,
        provider: &CryptoProvider,
    ) -> Result<Self, TlsError> {
        let (issuer_key, params) = (KeyPair::generate()?, authority("issuer", false));
        let issuer_certificate = params.signed_by(&issuer_key, root)?.der().clone();
        let key = KeyPair::generate()?;
        let private = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let signing_key = provider.key_provider.load_private_key(private)?;
        let issuer = Issuer::new(params, issuer_key);
        let made = (0..hosts).map(|_| OnceLock::new()).collect();
        Ok(Self { issuer, issuer_certificate, key, signing_key, made })
    }

    fn make(&self, host: u16) -> Result<Arc<CertifiedKey>, rcgen::Error> {
        let params = CertificateParams::new([host_name(host)])?;
        let certificate = params.signed_by(&self.key, &self.issuer)?.der().clone();
        let chain = vec![certificate, self.issuer_certificate.clone()];
        Ok(Arc::new(CertifiedKey::new(chain, Arc::clone(&self.signing_key))))
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificates({} hosts)", self.made.len())
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let hosts = u16::try_from(self.made.len()).ok()?;
        let host = host_number(hello.server_name()?, hosts)?;
        self.made.get(usize::from(host))?.get_or_init(|| self.make(host).ok()).clone()
    }
}
