//! Handshakes: an own root, strangers, resumption, HTTP/2.

use std::convert::Infallible;

use http_body_util::Full;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::PrivateKeyDer;
use rustls::{HandshakeKind, ServerConfig};
use tokio_rustls::TlsAcceptor;

use super::*;

struct Site {
    address: SocketAddr,
    /// How each connection's handshake went.
    handshakes: mpsc::Receiver<HandshakeKind>,
    ca_file: tempfile::NamedTempFile,
}

/// Whoever trusts the root in the file takes this acceptor for `site.test`.
pub(super) fn acceptor(alpn: &[&str]) -> (TlsAcceptor, tempfile::NamedTempFile) {
    let made = rcgen::generate_simple_self_signed(["site.test".to_owned()]).unwrap();
    let ca_file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(ca_file.path(), made.cert.pem()).unwrap();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    config.send_tls13_tickets = 2;
    (TlsAcceptor::from(Arc::new(config)), ca_file)
}

/// A client that trusts a root.
pub(super) fn trusting(ca_file: &tempfile::NamedTempFile) -> HttpExchange {
    let extra_ca_files = vec![ca_file.path().to_owned()];
    client_with(ConnectSettings { extra_ca_files, ..settings() }, Arc::new(|_| Ok(())))
}

/// An HTTPS server for `site.test` whose certificate is its own root.
async fn site(alpn: &[&str]) -> Site {
    let (acceptor, ca_file) = acceptor(alpn);
    let (kinds, handshakes) = mpsc::channel(10);
    let handler: Handler = Arc::new(move |stream| {
        let (acceptor, kinds) = (acceptor.clone(), kinds.clone());
        Box::pin(async move {
            let Ok(stream) = acceptor.accept(stream).await else { return };
            let connection = stream.get_ref().1;
            kinds.send(connection.handshake_kind().unwrap()).await.unwrap();
            let is_h2 = connection.alpn_protocol() == Some(b"h2");
            let io = TokioIo::new(stream);
            let answer = service_fn(|_| async {
                let body = Full::new(Bytes::from("safe"));
                Ok::<_, Infallible>(hyper::Response::new(body))
            });
            // The connection ends as the client likes; how does not matter here.
            if is_h2 {
                let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                server.serve_connection(io, answer).await.ok();
            } else {
                let mut server = hyper::server::conn::http1::Builder::new();
                server.keep_alive(false).serve_connection(io, answer).await.ok();
            }
        })
    });
    let (address, _accepted) = serve("127.0.0.1:0", handler).await;
    Site { address, handshakes, ca_file }
}

fn asking(site: &Site, name: &str) -> ExchangeRequest {
    request(&format!("https://{name}:{}/", site.address.port()), site.address)
}

#[tokio::test]
async fn sessions_are_resumed() {
    let mut site = site(&["http/1.1"]).await;
    let client = trusting(&site.ca_file);
    for expected in [HandshakeKind::Full, HandshakeKind::Resumed] {
        let got = run(&client, asking(&site, "site.test")).await.unwrap();
        assert_eq!((got.protocol, got.body.as_ref()), ("HTTP/1.1", &b"safe"[..]));
        assert_eq!(got.remote, site.address);
        assert_eq!(site.handshakes.recv().await, Some(expected));
    }
}

#[tokio::test]
async fn http_2_is_spoken_where_offered_and_its_connection_reused() {
    let mut site = site(&["h2", "http/1.1"]).await;
    let client = trusting(&site.ca_file);
    for _ in 0..3 {
        let got = run(&client, asking(&site, "site.test")).await.unwrap();
        assert_eq!((got.protocol, got.body.as_ref()), ("HTTP/2", &b"safe"[..]));
        assert_eq!(got.remote, site.address);
    }
    assert_eq!(site.handshakes.recv().await, Some(HandshakeKind::Full));
    assert!(site.handshakes.try_recv().is_err());
}

#[tokio::test]
async fn strangers_are_refused() {
    let site = site(&[]).await;
    let stranger = run(&client(), asking(&site, "site.test")).await.unwrap_err();
    let misnamed = run(&trusting(&site.ca_file), asking(&site, "other.test")).await.unwrap_err();
    for (failure, words) in
        [(stranger, "comes from nobody trusted here"), (misnamed, "is for other names")]
    {
        assert_eq!(failure.outcome, Outcome::Tls, "{:?}", failure.reason);
        assert!(failure.reason.to_string().contains(words), "{}", failure.reason);
    }
}

#[tokio::test]
async fn a_peer_that_speaks_no_tls_or_hangs_up_failed_the_handshake() {
    for (answer, words) in [
        ("HTTP/1.1 400 Bad Request\r\n\r\n", "the server does not answer with TLS"),
        ("", "during the handshake"),
        ("\x15\x03\x03\0\x02\x02\x28", "no TLS version or cipher in common"),
        ("\x15\x03\x03\0\x02\x02\x70", "the server does not know this name"),
    ] {
        let answer = answer.to_owned();
        let handler: Handler = Arc::new(move |mut stream: TcpStream| {
            let answer = answer.clone();
            Box::pin(async move {
                let mut hello = [0; 4096];
                assert!(stream.read(&mut hello).await.unwrap() > 0);
                stream.write_all(answer.as_bytes()).await.unwrap();
            })
        });
        let (address, _accepted) = serve("127.0.0.1:0", handler).await;
        let url = format!("https://site.test:{}/", address.port());
        let failure = run(&client(), request(&url, address)).await.unwrap_err();
        assert_eq!(failure.outcome, Outcome::Tls, "{:?}", failure.reason);
        assert!(failure.reason.to_string().contains(words), "{}", failure.reason);
    }
}

#[test]
fn a_root_that_cannot_be_read_is_named() {
    let clock = Arc::new(TokioClock::system());
    for bad in ["/nonexistent/root.pem", "Cargo.toml"] {
        let extra_ca_files = vec![bad.into()];
        let made = HttpExchange::new(
            ConnectSettings { extra_ca_files, ..settings() },
            Arc::new(|_| Ok(())),
            Arc::clone(&clock) as Arc<dyn Clock>,
        );
        assert!(made.unwrap_err().to_string().contains(bad));
    }
}

/// A site whose TLS ends without a word, as many do.
async fn unsaid(answer: &'static str) -> (SocketAddr, tempfile::NamedTempFile) {
    let (acceptor, ca_file) = acceptor(&["http/1.1"]);
    let handler: Handler = Arc::new(move |stream| {
        let acceptor = acceptor.clone();
        Box::pin(async move {
            let mut stream = acceptor.accept(stream).await.unwrap();
            let mut head = [0; 4096];
            assert!(stream.read(&mut head).await.unwrap() > 0);
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
            // No close_notify: the socket is closed beneath TLS.
            stream.get_mut().0.shutdown().await.unwrap();
        })
    });
    let (address, _accepted) = serve("127.0.0.1:0", handler).await;
    (address, ca_file)
}

#[tokio::test]
async fn tls_that_ends_without_a_word_ends_a_body_as_any_close_does() {
    for (answer, truncated) in [
        ("HTTP/1.1 200 OK\r\n\r\nwhole", None),
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwhole", None),
        ("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nwhole", Some(Truncation::Disconnect)),
    ] {
        let (address, ca_file) = unsaid(answer).await;
        let url = format!("https://site.test:{}/", address.port());
        let got = run(&trusting(&ca_file), request(&url, address)).await.unwrap();
        assert_eq!((got.body.as_ref(), got.truncated), (&b"whole"[..], truncated), "{answer:?}");
    }
}
