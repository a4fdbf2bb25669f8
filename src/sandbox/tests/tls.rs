//! HTTPS: who is trusted, which handshakes are made, and the pages kept ready.

use std::io::Read;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, HandshakeKind, RootCertStore};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::*;

fn over_tls(resumption: bool) -> SandboxOptions {
    SandboxOptions { security: Security::Tls { resumption }, ..small() }
}

/// A client that trusts the sandbox's authority and nobody else.
fn trusting(sandbox: &Sandbox) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let pem = sandbox.authority().unwrap();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    TlsConnector::from(Arc::new(config))
}

async fn connect(
    sandbox: &Sandbox,
    connector: &TlsConnector,
    host: u16,
    name: &str,
) -> io::Result<TlsStream<TcpStream>> {
    let address = sandbox.zone.address(host).unwrap();
    let stream = TcpStream::connect((address, sandbox.http_port())).await.unwrap();
    connector.connect(ServerName::try_from(name.to_owned()).unwrap(), stream).await
}

/// Asks for the front page; answers with head, body and how the handshake went.
async fn front(
    sandbox: &Sandbox,
    connector: &TlsConnector,
    host: u16,
) -> (String, Vec<u8>, HandshakeKind) {
    let name = host_name(host);
    let mut stream = connect(sandbox, connector, host, &name).await.unwrap();
    let request = format!(
        "GET / HTTP/1.1\r\nHost: {name}\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut raw = Vec::new();
    stream.read_to_end(&mut raw).await.unwrap();
    let end = raw.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let (head, body) = raw.split_at(end + 4);
    let kind = stream.get_ref().1.handshake_kind().unwrap();
    (String::from_utf8(head.to_vec()).unwrap(), body.to_vec(), kind)
}

#[tokio::test]
async fn every_host_shows_a_certificate_of_its_own_name() {
    let sandbox = started(over_tls(true)).await;
    assert!(sandbox.seeds().iter().all(|seed| seed.starts_with("https://")));
    let connector = trusting(&sandbox);
    for host in [0, 3, 11] {
        let (head, ..) = front(&sandbox, &connector, host).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    }
    assert!(connect(&sandbox, &connector, 0, "other.test").await.is_err());
    assert!(connect(&sandbox, &connector, 0, "example.org").await.is_err());
    let stranger = trusting(&started(over_tls(true)).await);
    assert!(connect(&sandbox, &stranger, 0, &host_name(0)).await.is_err());
    assert_eq!(sandbox.handshakes().full, 3);
    sandbox.shutdown().await;
}

#[tokio::test]
async fn sessions_are_resumed_where_that_is_offered() {
    for (resumption, second) in [(true, HandshakeKind::Resumed), (false, HandshakeKind::Full)] {
        let sandbox = started(over_tls(resumption)).await;
        let connector = trusting(&sandbox);
        let (.., kind) = front(&sandbox, &connector, 2).await;
        assert_eq!(kind, HandshakeKind::Full);
        let (.., kind) = front(&sandbox, &connector, 2).await;
        assert_eq!(kind, second);
        let resumed = u64::from(resumption);
        let expected = Handshakes { full: 2 - resumed, resumed, failed: 0 };
        assert_eq!(sandbox.handshakes(), expected);
    }
}

#[tokio::test]
async fn connections_are_closed_where_that_is_wanted() {
    let sandbox = started(SandboxOptions { keep_alive: false, ..small() }).await;
    let mut stream = TcpStream::connect(sandbox.web_addresses()[0]).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: site-000.test\r\n\r\n").await.unwrap();
    let mut raw = Vec::new();
    let ended = stream.read_to_end(&mut raw);
    tokio::time::timeout(std::time::Duration::from_secs(10), ended).await.unwrap().unwrap();
    assert!(String::from_utf8_lossy(&raw).contains("connection: close"));
}

#[tokio::test]
async fn prepared_pages_are_those_made_on_demand() {
    let sandbox = started(SandboxOptions { prepared: true, ..over_tls(true) }).await;
    let connector = trusting(&sandbox);
    for host in [0, 5] {
        let (head, body, _) = front(&sandbox, &connector, host).await;
        assert!(head.contains("content-encoding: gzip"), "{head}");
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{head}");
        let mut unpacked = Vec::new();
        flate2::read::GzDecoder::new(body.as_slice()).read_to_end(&mut unpacked).unwrap();
        let plan = sandbox.web.plan(host).unwrap();
        assert_eq!(unpacked, page(&sandbox.web.shape, plan, 0).body);
    }
}

#[tokio::test]
async fn every_page_drips_where_that_is_wanted() {
    let sandbox = started(SandboxOptions { all_drip: true, ..small() }).await;
    let urls = sandbox.front_pages();
    assert_eq!(urls.len(), 12);
    let got = get(&sandbox, &urls[6], "").await;
    assert_eq!(got.header("content-length"), got.body.len().to_string());
    assert_eq!(sandbox.most_dripping(), 1);
}
