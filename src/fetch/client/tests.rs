//! The client against raw servers on loopback, real time, every wait bounded.

mod answers;
mod reuse;
mod tls;
mod http2;
mod memory;

use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::*;
use crate::fetch::connect::is_pinned;
use crate::types::{CrawlUrl, SizeLimit};
use crate::world::{Oversize, TokioClock, Wanted};

/// The most that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(20);

fn settings() -> ConnectSettings {
    ConnectSettings {
        extra_ca_files: Vec::new(),
        origins_max: 8,
        idle: Duration::from_secs(10),
        tls_sessions_max: 64,
        bodies_bytes: 64 << 20,
    }
}

fn client_with(settings: ConnectSettings, egress: EgressCheck) -> HttpExchange {
    HttpExchange::new(settings, egress, Arc::new(TokioClock::system())).unwrap()
}

fn client() -> HttpExchange {
    client_with(settings(), Arc::new(|_| Ok(())))
}

pub(in crate::fetch) fn request(url: &str, address: SocketAddr) -> ExchangeRequest {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    ExchangeRequest {
        url: CrawlUrl::parse(url).unwrap(),
        address,
        headers: vec![pair("User-Agent", "mehman/test"), pair("Accept", "text/html")],
        limits: ExchangeLimits {
            connect: Duration::from_secs(5),
            first_byte: Duration::from_secs(5),
            total: Duration::from_secs(10),
            body_bytes_max: 1000,
            oversize: Oversize::Truncate,
        },
        wanted: Wanted::everything(),
    }
}

async fn run(
    client: &HttpExchange,
    request: ExchangeRequest,
) -> Result<Exchanged, ExchangeFailure> {
    tokio::time::timeout(PATIENCE, client.exchange(request)).await.expect("within patience")
}

type Handler = Arc<dyn Fn(TcpStream) -> BoxFuture<'static, ()> + Send + Sync>;

/// Hands each connection to the handler; counts them by messages.
async fn serve(at: &str, handler: Handler) -> (SocketAddr, mpsc::Receiver<SocketAddr>) {
    let listener = TcpListener::bind(at).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (count, accepted) = mpsc::channel(100);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            // Not every test counts.
            count.send(address).await.ok();
            tokio::spawn(handler(stream));
        }
    });
    (address, accepted)
}

/// Reads one request; `None` when the peer has gone.
async fn read_head(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    String::from_utf8(head).ok()
}

/// A server that answers every request of a connection with the same bytes, then closes or not.
async fn canned(
    answer: impl Into<Vec<u8>>,
    close: bool,
) -> (SocketAddr, mpsc::Receiver<SocketAddr>) {
    let answer = Arc::new(answer.into());
    let handler: Handler = Arc::new(move |mut stream| {
        let answer = Arc::clone(&answer);
        Box::pin(async move {
            while read_head(&mut stream).await.is_some() {
                if stream.write_all(&answer).await.is_err() || close {
                    return;
                }
            }
        })
    });
    serve("127.0.0.1:0", handler).await
}

/// The exchange of one canned answer.
async fn answered(answer: &str, close: bool) -> Result<Exchanged, ExchangeFailure> {
    let (address, _accepted) = canned(answer, close).await;
    run(&client(), request(&format!("http://site.test:{}/", address.port()), address)).await
}

fn count(accepted: &mut mpsc::Receiver<SocketAddr>) -> usize {
    std::iter::from_fn(|| accepted.try_recv().ok()).count()
}

#[tokio::test]
async fn connections_are_reused_and_the_request_is_kept_as_sent() {
    let (heads, mut seen) = mpsc::channel(10);
    let handler: Handler = Arc::new(move |mut stream| {
        let heads = heads.clone();
        Box::pin(async move {
            while let Some(head) = read_head(&mut stream).await {
                heads.send(head).await.unwrap();
                let answer = "HTTP/1.1 200 OK\r\nX-B: 1\r\nContent-Length: 2\r\nX-A: 2\r\n\r\nhi";
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        })
    });
    let (address, mut accepted) = serve("127.0.0.1:0", handler).await;
    let client = client();
    for number in 0..3 {
        let url = format!("http://site.test:{}/a%20b/{number}?q=1", address.port());
        let got = run(&client, request(&url, address)).await.unwrap();
        assert_eq!((got.status, got.body.as_ref(), got.truncated), (200, &b"hi"[..], None));
        assert_eq!((got.remote, got.protocol), (address, "HTTP/1.1"));
        let names: Vec<_> = got.headers.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["X-B", "Content-Length", "X-A"]);
        assert_eq!(String::from_utf8_lossy(&got.request_head), seen.recv().await.unwrap());
        assert!(got.sent_at <= got.ended_at);
    }
    assert_eq!(count(&mut accepted), 1);
    assert_eq!(client.origins(), 1);
}

#[tokio::test]
async fn urls_of_every_shape_are_sent_as_they_are_kept() {
    let (heads, mut seen) = mpsc::channel(20);
    let handler: Handler = Arc::new(move |mut stream| {
        let heads = heads.clone();
        Box::pin(async move {
            while let Some(head) = read_head(&mut stream).await {
                heads.send(head).await.unwrap();
                stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
            }
        })
    });
    let (address, _accepted) = serve("127.0.0.1:0", handler).await;
    let (client, port) = (client(), address.port());
    let hosts = ["site.test", "site.test.", "127.0.0.1", "b\u{fc}cher.test"];
    let paths =
        ["", "?q", "/a|b", "/{a}\"<>`^", "/%zz/%2F?x=[1]&y='|^`{}", "/\u{fc}?\u{fc}", "//a//"];
    for url in hosts.iter().flat_map(|host| paths.map(|path| format!("http://{host}:{port}{path}")))
    {
        let got = run(&client, request(&url, address)).await.expect(&url);
        assert_eq!(String::from_utf8_lossy(&got.request_head), seen.recv().await.unwrap(), "{url}");
    }
}

#[tokio::test]
async fn another_pinned_address_means_another_connection() {
    let handler: Handler = Arc::new(|mut stream: TcpStream| {
        Box::pin(async move {
            let at = stream.local_addr().unwrap().ip().to_string();
            while read_head(&mut stream).await.is_some() {
                let length = at.len();
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{at}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        })
    });
    let (one, mut at_one) = serve("127.0.0.1:0", Arc::clone(&handler)).await;
    let (two, mut at_two) = serve(&format!("127.0.0.2:{}", one.port()), handler).await;
    let client = client();
    let url = format!("http://site.test:{}/", one.port());
    for address in [one, two, one, two] {
        let got = run(&client, request(&url, address)).await.unwrap();
        assert_eq!(got.body, address.ip().to_string());
        assert_eq!(got.remote, address);
    }
    assert_eq!((count(&mut at_one), count(&mut at_two)), (1, 1));
}

#[tokio::test]
async fn only_the_pinned_and_allowed_address_is_connected_to() {
    let (address, mut accepted) =
        canned("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false).await;
    let port = address.port();
    let refusing: EgressCheck =
        Arc::new(|ip: IpAddr| Err(Reason::EgressRefused { address: format!("{ip} (loopback)") }));
    let refusing = client_with(settings(), refusing);
    let client = client();
    let elsewhere = SocketAddr::from(([127, 0, 0, 2], port));
    let other_port = SocketAddr::from(([127, 0, 0, 1], port.wrapping_add(1)));
    let cases = [
        (&refusing, format!("http://site.test:{port}/"), address),
        (&refusing, format!("http://127.0.0.1:{port}/"), address),
        (&client, format!("http://127.0.0.1:{port}/"), elsewhere),
        (&client, format!("http://[::1]:{port}/"), address),
        (&client, format!("http://site.test:{port}/"), other_port),
        (&client, "http://site.test/".to_owned(), address),
    ];
    for (client, url, pinned) in cases {
        let failure = run(client, request(&url, pinned)).await.unwrap_err();
        assert_eq!((failure.outcome, failure.sent_at), (Outcome::EgressRefused, None), "{url}");
        assert!(matches!(failure.reason, Reason::EgressRefused { .. }));
    }
    assert_eq!(count(&mut accepted), 0);
    for url in [format!("http://127.1:{port}/"), format!("http://0x7f000001:{port}/")] {
        assert_eq!(run(&client, request(&url, address)).await.unwrap().status, 200);
    }
}

#[tokio::test]
async fn a_peer_found_elsewhere_is_not_spoken_to() {
    let (address, _accepted) = canned("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false).await;
    let stream = TcpStream::connect(address).await.unwrap();
    assert_eq!(is_pinned(stream.peer_addr(), address), Ok(address));
    let elsewhere = SocketAddr::from(([127, 0, 0, 2], address.port()));
    let unknown = || Err(std::io::ErrorKind::NotConnected.into());
    for (peer, pinned) in [(stream.peer_addr(), elsewhere), (unknown(), address)] {
        let (outcome, _) = is_pinned(peer, pinned).unwrap_err();
        assert_eq!(outcome, Outcome::EgressRefused);
    }
}

#[tokio::test]
async fn many_slow_exchanges_run_at_once() {
    const MANY: usize = 300;
    let handler: Handler = Arc::new(|mut stream| {
        Box::pin(async move {
            read_head(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\nslow").await.unwrap();
            std::future::pending().await
        })
    });
    let (address, accepted) = serve("127.0.0.1:0", handler).await;
    drop(accepted);
    let client = client();
    let clock = TokioClock::system();
    let began = clock.now();
    let slow = (0..MANY).map(|number| {
        let url = format!("http://host{number}.test:{}/", address.port());
        let mut request = request(&url, address);
        // A kernel that holds 128 new connections makes the others try again after a second.
        request.limits.total = Duration::from_secs(3);
        run(&client, request)
    });
    for got in futures::future::join_all(slow).await {
        let got = got.unwrap();
        assert_eq!((got.body.as_ref(), got.truncated), (&b"slow"[..], Some(Truncation::Time)));
    }
    assert!(clock.now().since(began) < PATIENCE);
    assert!(client.origins() <= 8);
}

#[tokio::test]
async fn idle_origins_are_bounded() {
    let (address, mut accepted) =
        canned("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false).await;
    let client =
        client_with(ConnectSettings { origins_max: 2, ..settings() }, Arc::new(|_| Ok(())));
    let url = |name: &str| format!("http://{name}.test:{}/", address.port());
    for (name, connections) in [("a", 1), ("b", 1), ("a", 0), ("c", 1), ("a", 0), ("b", 1)] {
        run(&client, request(&url(name), address)).await.unwrap();
        assert_eq!(count(&mut accepted), connections, "{name}");
        assert!(client.origins() <= 2);
    }
}

#[tokio::test]
async fn redirects_are_not_followed_and_codings_are_kept() {
    let answer = "HTTP/1.1 302 Found\r\nLocation: /elsewhere\r\nContent-Encoding: gzip\r\n\
                  Content-Length: 4\r\n\r\n\x1f\x0b\x08\x00";
    let got = answered(answer, false).await.unwrap();
    assert_eq!((got.status, got.body.len()), (302, 4));
    assert_eq!(header(&got.headers, "location"), Some("/elsewhere"));
}

#[tokio::test]
async fn chunking_is_undone() {
    let answer =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n";
    let got = answered(answer, false).await.unwrap();
    assert_eq!((got.body.as_ref(), got.truncated), (&b"abcde"[..], None));
}

#[tokio::test]
async fn http_1_0_ends_with_its_connection() {
    let got =
        answered("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nold", true).await.unwrap();
    assert_eq!((got.protocol, got.body.as_ref(), got.truncated), ("HTTP/1.0", &b"old"[..], None));
}

#[tokio::test]
async fn no_body_is_read_after_204_and_304() {
    for status in ["204 No Content", "304 Not Modified"] {
        let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 5000\r\n\r\nstray");
        let (address, _accepted) = canned(answer, false).await;
        let client = client();
        let url = format!("http://site.test:{}/", address.port());
        for oversize in [Oversize::Truncate, Oversize::Skip] {
            let mut request = request(&url, address);
            request.limits.oversize = oversize;
            let got = run(&client, request).await.unwrap();
            assert_eq!((got.body.len(), got.truncated), (0, None), "{status}");
        }
    }
}

#[tokio::test]
async fn an_early_close_keeps_what_came() {
    for head in ["Content-Length: 10", "Transfer-Encoding: chunked"] {
        let body = if head.contains("chunked") { "a\r\nhalf" } else { "half" };
        let got =
            answered(&format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}"), true).await.unwrap();
        assert_eq!(
            (got.body.as_ref(), got.truncated),
            (&b"half"[..], Some(Truncation::Disconnect))
        );
        assert!(matches!(got.reason, Some(Reason::Protocol { .. })), "{:?}", got.reason);
    }
}

#[tokio::test]
async fn a_slow_drip_ends_at_the_whole_limit_with_what_came() {
    let handler: Handler = Arc::new(|mut stream| {
        Box::pin(async move {
            read_head(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n").await.unwrap();
            let clock = TokioClock::system();
            while stream.write_all(b"x").await.is_ok() {
                clock.sleep(Duration::from_millis(20)).await;
            }
        })
    });
    let (address, _accepted) = serve("127.0.0.1:0", handler).await;
    let mut request = request(&format!("http://site.test:{}/", address.port()), address);
    request.limits.total = Duration::from_millis(400);
    let got = run(&client(), request).await.unwrap();
    assert_eq!(got.truncated, Some(Truncation::Time));
    assert!(!got.body.is_empty() && got.body.len() < 100);
}

#[tokio::test]
async fn a_silent_server_ends_at_the_first_byte_limit() {
    let handler: Handler = Arc::new(|mut stream| {
        Box::pin(async move {
            read_head(&mut stream).await;
            stream.write_all(b"HTTP/1.1 200 OK\r\nX-Slow").await.unwrap();
            std::future::pending().await
        })
    });
    let (address, _accepted) = serve("127.0.0.1:0", handler).await;
    let mut silent = request(&format!("http://site.test:{}/", address.port()), address);
    silent.limits.first_byte = Duration::from_millis(100);
    let failure = run(&client(), silent.clone()).await.unwrap_err();
    let limit = |limit, after| Reason::TimedOut { limit, after: Duration::from_millis(after) };
    assert_eq!(failure.outcome, Outcome::Timeout);
    assert_eq!(failure.reason, limit(TimeLimit::FirstByte, 100));
    silent.limits.total = Duration::from_millis(50);
    let failure = run(&client(), silent).await.unwrap_err();
    assert_eq!(failure.reason, limit(TimeLimit::Total, 50));
    assert!(failure.sent_at.is_some());
}

#[tokio::test]
async fn connecting_has_a_limit_of_its_own() {
    // TCP is accepted by the kernel, the handshake is never answered.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut request = request(&format!("https://site.test:{}/", address.port()), address);
    request.limits.connect = Duration::from_millis(100);
    let failure = run(&client(), request).await.unwrap_err();
    let after = Duration::from_millis(100);
    assert_eq!(failure.reason, Reason::TimedOut { limit: TimeLimit::Connect, after });
}

#[tokio::test]
async fn oversize_bodies_are_cut_or_skipped() {
    let body = "x".repeat(2000);
    let answers = [
        format!("HTTP/1.1 200 OK\r\nContent-Length: 2000\r\n\r\n{body}"),
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n{body}\r\n0\r\n\r\n"),
    ];
    for answer in answers {
        let (address, _accepted) = canned(answer, false).await;
        for (oversize, kept) in [(Oversize::Truncate, 1000), (Oversize::Skip, 0)] {
            let mut request = request(&format!("http://site.test:{}/", address.port()), address);
            request.limits.oversize = oversize;
            let got = run(&client(), request).await.unwrap();
            assert_eq!((got.body.len(), got.truncated), (kept, Some(Truncation::Length)));
            let reason = Reason::TooLarge { limit: SizeLimit::Body, max: 1000 };
            assert_eq!(got.reason, Some(reason));
        }
    }
}

#[tokio::test]
async fn an_unwanted_type_is_not_read() {
    let answer = |status: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Type: Video/MP4; x=y\r\nContent-Length: 3\r\n\r\nabc")
    };
    for (status, length) in [("200 OK", 0), ("404 Not Found", 3)] {
        let (address, _accepted) = canned(answer(status), false).await;
        let mut request = request(&format!("http://site.test:{}/", address.port()), address);
        request.wanted = Wanted::new(|_, content_type| content_type != "video/mp4");
        let got = run(&client(), request).await.unwrap();
        assert_eq!(got.body.len(), length, "{status}");
        assert_eq!(got.truncated, (length == 0).then_some(Truncation::Unspecified));
    }
}

#[tokio::test]
async fn a_flood_of_headers_is_refused() {
    let many = "X-Flood: 1\r\n".repeat(500);
    let long = format!("X-Flood: {}\r\n", "x".repeat(500_000));
    for flood in [many, long] {
        let answer = format!("HTTP/1.1 200 OK\r\n{flood}Content-Length: 0\r\n\r\n");
        let failure = answered(&answer, false).await.unwrap_err();
        assert_eq!(failure.outcome, Outcome::TooLarge, "{:?}", failure.reason);
        let is_headers =
            matches!(failure.reason, Reason::TooLarge { limit, .. } if limit == SizeLimit::Headers);
        assert!(is_headers);
    }
}

#[tokio::test]
async fn failures_are_told_apart() {
    for (answer, outcome) in [
        ("SSH-2.0-OpenSSH_9.6\r\n", Outcome::Protocol),
        ("", Outcome::Protocol),
        ("HTTP/1.1 200 OK\r\nContent-Le", Outcome::Protocol),
    ] {
        let failure = answered(answer, true).await.unwrap_err();
        assert_eq!(failure.outcome, outcome, "{answer:?}: {:?}", failure.reason);
        assert!(failure.sent_at.is_some());
    }
    let (address, _) = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        (listener.local_addr().unwrap(), ())
    };
    let closed = request(&format!("http://site.test:{}/", address.port()), address);
    let failure = run(&client(), closed).await.unwrap_err();
    assert_eq!(failure.outcome, Outcome::Connect, "{:?}", failure.reason);
}
