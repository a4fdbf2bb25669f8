//! One exchange with a server that writes given bytes, and what came of it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use mehman::fetch::{ConnectSettings, HttpExchange};
use mehman::types::{CrawlUrl, Outcome, Truncation};
use mehman::world::{
    Exchange, ExchangeLimits, ExchangeRequest, Exchanged, Oversize, TokioClock, Wanted,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// The limits of time: what hangs ends here.
const FIRST_BYTE: Duration = Duration::from_millis(500);
const TOTAL: Duration = Duration::from_millis(1_000);
/// A test that waits longer has found a fault.
const PATIENCE: Duration = Duration::from_secs(30);
/// Beyond any body in the corpora, below one without an end.
const BODY_BYTES_MAX: u64 = 1 << 20;

/// What a server does after its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Closes.
    Close,
    /// Says nothing more.
    Hold,
    /// Resets the connection.
    Reset,
    /// Writes this again and again.
    Repeat(Vec<u8>),
}

/// What came of it.
pub(crate) enum Came {
    /// A response, whole or cut, and whether its connection was kept.
    Response(Box<Exchanged>, bool),
    /// None.
    Failed(Outcome),
}

impl Came {
    /// A response that is not cut for what its server did.
    pub(crate) fn whole(&self) -> Option<&Exchanged> {
        match self {
            Self::Response(got, _) if got.truncated.is_none() => Some(got),
            Self::Response(..) | Self::Failed(_) => None,
        }
    }

    /// As an oddity's outcome is named.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Failed(_) => "error",
            Self::Response(got, _) => match got.truncated {
                None => "page",
                Some(Truncation::Length) => "limit",
                Some(Truncation::Time | Truncation::Disconnect | Truncation::Unspecified) => {
                    "truncated"
                }
            },
        }
    }
}

/// Asks a server that answers so.
pub(crate) async fn exchange(bytes: Vec<u8>, then: Then) -> Came {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            answer(stream, &bytes, &then).await;
        }
    });
    let settings = ConnectSettings {
        extra_ca_files: Vec::new(),
        origins_max: 10,
        idle: Duration::from_secs(10),
        tls_sessions_max: 10,
        bodies_bytes: 64 << 20,
    };
    let clock = Arc::new(TokioClock::system());
    let client = HttpExchange::new(settings, Arc::new(|_: IpAddr| Ok(())), clock).unwrap();
    let got = tokio::time::timeout(PATIENCE, client.exchange(request(address))).await;
    server.abort();
    match got.expect("an end within patience") {
        Ok(got) => Came::Response(Box::new(got), client.origins() > 0),
        Err(failure) => Came::Failed(failure.outcome),
    }
}

fn request(address: SocketAddr) -> ExchangeRequest {
    ExchangeRequest {
        url: CrawlUrl::parse(&format!("http://site.test:{}/a", address.port())).unwrap(),
        address,
        headers: vec![("User-Agent".to_owned(), "mehman/test".to_owned())],
        limits: ExchangeLimits {
            connect: FIRST_BYTE,
            first_byte: FIRST_BYTE,
            total: TOTAL,
            body_bytes_max: BODY_BYTES_MAX,
            oversize: Oversize::Truncate,
        },
        wanted: Wanted::everything(),
    }
}

/// The peer may have gone at any time: it has read enough.
async fn answer(mut stream: TcpStream, bytes: &[u8], then: &Then) -> Option<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    stream.write_all(bytes).await.ok()?;
    match then {
        Then::Close => {}
        Then::Hold => drop(stream.read_u8().await),
        Then::Reset => stream.set_zero_linger().ok()?,
        Then::Repeat(more) => loop {
            stream.write_all(more).await.ok()?;
        },
    }
    Some(())
}

/// A text whose characters are bytes.
pub(crate) fn latin(text: &str) -> Vec<u8> {
    text.chars().map(|c| u8::try_from(u32::from(c)).expect("a byte")).collect()
}

/// RFC 4648, without line ends.
pub(crate) fn base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b'=').map(value).collect();
    let group = |group: &[u8]| {
        let bits = group.iter().fold(0_u32, |bits, digit| bits << 6 | u32::from(*digit));
        let bytes = (bits << (6 * (4 - group.len()))).to_be_bytes();
        bytes[1..group.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}
