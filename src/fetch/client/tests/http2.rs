//! HTTP/2 from servers that do what they like: frames by hand over TLS.

use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use super::tls::{acceptor, trusting};
use super::*;

const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const HEADERS: u8 = 1;
/// `:status: 200` from the static table, the end of headers.
const OK_HEAD: &[u8] = &[0, 0, 1, HEADERS, 4, 0, 0, 0, 1, 0x88];
/// The last bytes of the first stream.
const OK_BODY: &[u8] = &[0, 0, 2, 0, 1, 0, 0, 0, 1, b'o', b'k'];
/// Nothing was looked at, no error.
const GONE: &[u8] = &[0, 0, 8, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
/// The first stream was not looked at.
const REFUSED: &[u8] = &[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 7];
/// The first stream is reset for an internal error.
const BROKEN: &[u8] = &[0, 0, 4, 3, 0, 0, 0, 0, 1, 0, 0, 0, 2];

/// A frame's kind and what it carries; `None` when the peer has gone.
async fn frame(stream: &mut TlsStream<TcpStream>) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await.ok()?;
    Some((head[3], rest))
}

/// Reads frames up to the head of a request, and says what they were; `None` without one.
async fn until_asked(stream: &mut TlsStream<TcpStream>) -> Option<Vec<(u8, Vec<u8>)>> {
    let mut frames = Vec::new();
    loop {
        let (kind, rest) = frame(stream).await?;
        if kind == HEADERS {
            return Some(frames);
        }
        frames.push((kind, rest));
    }
}

/// The first stream's head, packed by hand.
fn head_of(packed: &[u8]) -> Vec<u8> {
    let length = u32::try_from(packed.len()).unwrap().to_be_bytes();
    [&length[1..], &[HEADERS, 4, 0, 0, 0, 1], packed].concat()
}

struct Site {
    client: HttpExchange,
    address: SocketAddr,
    accepted: mpsc::Receiver<SocketAddr>,
    /// A connection has ended; what was said on it before its first request.
    ended: mpsc::Receiver<Vec<(u8, Vec<u8>)>>,
}

/// Answers the first request of connection n with the n-th bytes, of further ones with the last.
async fn site<const N: usize>(answers: [Vec<u8>; N]) -> Site {
    let (acceptor, ca_file) = acceptor(&["h2"]);
    let (answers, turn) = (Arc::new(answers), std::sync::atomic::AtomicUsize::new(0));
    let (told, ended) = mpsc::channel(10);
    let handler: Handler = Arc::new(move |stream| {
        let turn = turn.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let (acceptor, told, answers) = (acceptor.clone(), told.clone(), Arc::clone(&answers));
        Box::pin(async move {
            let mut stream = acceptor.accept(stream).await.unwrap();
            stream.read_exact(&mut [0; 24]).await.unwrap();
            stream.write_all(SETTINGS).await.unwrap();
            stream.flush().await.unwrap();
            let said = until_asked(&mut stream).await;
            if said.is_some() {
                let answer = &answers[turn.min(answers.len() - 1)];
                stream.write_all(answer).await.unwrap();
                stream.flush().await.unwrap();
                while frame(&mut stream).await.is_some() {}
            }
            // Not every test listens to the end.
            told.send(said.unwrap_or_default()).await.ok();
        })
    });
    let (address, accepted) = serve("127.0.0.1:0", handler).await;
    Site { client: trusting(&ca_file), address, accepted, ended }
}

impl Site {
    async fn ask(&self) -> Result<Exchanged, ExchangeFailure> {
        let mut request =
            request(&format!("https://site.test:{}/", self.address.port()), self.address);
        request.limits.first_byte = Duration::from_secs(10);
        run(&self.client, request).await
    }
}

#[tokio::test]
async fn a_request_that_was_not_looked_at_goes_over_a_new_connection() {
    for refusal in [GONE, REFUSED] {
        let mut site = site([refusal.to_vec(), [OK_HEAD, OK_BODY].concat()]).await;
        let got = site.ask().await.unwrap();
        assert_eq!((got.status, got.protocol, got.body.as_ref()), (200, "HTTP/2", &b"ok"[..]));
        assert_eq!(got.status_line, None);
        assert_eq!(count(&mut site.accepted), 2);
    }
}

#[tokio::test]
async fn a_request_that_is_refused_again_fails() {
    for refusal in [GONE, REFUSED] {
        let mut site = site([refusal.to_vec()]).await;
        assert_eq!(site.ask().await.unwrap_err().outcome, Outcome::Protocol);
        assert_eq!(count(&mut site.accepted), 2);
    }
}

#[tokio::test]
async fn a_stream_that_is_reset_is_not_asked_for_again() {
    let mut site = site([BROKEN.to_vec()]).await;
    let failure = site.ask().await.unwrap_err();
    assert_eq!(failure.outcome, Outcome::Protocol, "{:?}", failure.reason);
    assert_eq!(count(&mut site.accepted), 1);
}

#[tokio::test]
async fn a_body_that_is_reset_keeps_what_came() {
    const PART: &[u8] = &[0, 0, 2, 0, 0, 0, 0, 0, 1, b'o', b'k'];
    let site = site([[OK_HEAD, PART, BROKEN].concat()]).await;
    let got = site.ask().await.unwrap();
    assert_eq!((got.body.as_ref(), got.truncated), (&b"ok"[..], Some(Truncation::Disconnect)));
}

#[tokio::test]
async fn frames_that_are_none_are_refused() {
    // A window update of nothing on the whole connection, a frame beyond the largest size, noise.
    for wrong in [
        &[0, 0, 4, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
        &[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1],
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    ] {
        let site = site([wrong.to_vec()]).await;
        let failure = site.ask().await.unwrap_err();
        assert_eq!(failure.outcome, Outcome::Protocol, "{wrong:?}: {:?}", failure.reason);
    }
}

#[tokio::test]
async fn a_connection_ends_with_its_exchange_and_its_pool() {
    let mut site = site([[OK_HEAD, OK_BODY].concat()]).await;
    site.ask().await.unwrap();
    assert_eq!(site.client.origins(), 1);
    assert!(site.ended.try_recv().is_err());
    drop(site.client);
    tokio::time::timeout(PATIENCE, site.ended.recv()).await.expect("the connection has ended");
}

#[tokio::test]
async fn a_flood_of_headers_is_refused() {
    let many = [&[0x88][..], &b"\0\x01x\x011".repeat(300)].concat();
    // One header into the table, and many times the same from there.
    let long = [&b"\x88\x40\x01x\x7f\xbd\x1d"[..], &[b'y'; 3900], &[0xbe; 120]].concat();
    for (packed, outcomes) in
        [(many, &[Outcome::TooLarge][..]), (long, &[Outcome::TooLarge, Outcome::Protocol])]
    {
        let site = site([head_of(&packed)]).await;
        let failure = site.ask().await.unwrap_err();
        assert!(outcomes.contains(&failure.outcome), "{:?}", failure.reason);
    }
}

#[tokio::test]
async fn what_was_not_read_is_bounded() {
    let mut site = site([[OK_HEAD, OK_BODY].concat()]).await;
    site.ask().await.unwrap();
    drop(site.client);
    let said = tokio::time::timeout(PATIENCE, site.ended.recv()).await.unwrap().unwrap();
    let settings = &said.iter().find(|(kind, _)| *kind == 4).unwrap().1;
    let setting = |id: u8| {
        let found = settings.chunks(6).find(|setting| setting[..2] == [0, id]);
        found.map(|setting| u32::from_be_bytes(setting[2..].try_into().unwrap()))
    };
    // Push, the window of a stream, the size of a header list.
    assert_eq!([setting(2), setting(4), setting(6)], [Some(0), Some(128 * 1024), Some(417_792)]);
    let more = &said.iter().find(|(kind, _)| *kind == 8).unwrap().1;
    assert_eq!(more[..], (512 * 1024 - 65_535_u32).to_be_bytes());
}
