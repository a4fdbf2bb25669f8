//! The shell around a socket: writes a request, reads a head, reads a body.
//!
//! CN-1: a connection holds no buffer. Bytes are read into one that the thread has for all of its
//! exchanges, and taken from there at once: what waits holds what has come, and nothing for what
//! may. CN-2: a connection is idle only while nothing came that nobody asked for.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::io;
use std::mem::MaybeUninit;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::unconstrained;
use tokio_rustls::client::TlsStream;

use super::framing::{Framed, Framing, framed};
use super::head::{HeadFault, HeadReader};
use super::payload::Payload;
use crate::fetch::body::{Arriving, Came, Kept};
use crate::fetch::failure::{self, Failed};
use crate::types::Headers;

/// Bytes read at once: two records of TLS.
const READ_BYTES_MAX: usize = 32 * 1024;
/// A body that nobody wants is left once so many bytes of it came: a handshake takes as many.
const PASSED_OVER_MAX: u64 = 4 * 1024;

thread_local! {
    /// CN-1. Nobody waits while it is borrowed.
    static READ: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_BYTES_MAX]);
}

/// What bytes travel over.
pub(in crate::fetch) enum Stream {
    Plain(TcpStream),
    /// Boxed: an idle connection and a waiting exchange are moved about.
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection to one address, with at most one exchange on it.
pub(in crate::fetch) struct Connection {
    stream: Stream,
    remote: SocketAddr,
}

/// A head that came, and what is to be read of its body.
pub(in crate::fetch) struct Answer {
    /// 200 to 999.
    pub(in crate::fetch) status: u16,
    /// `HTTP/1.0` or `HTTP/1.1`.
    pub(in crate::fetch) protocol: &'static str,
    /// As sent, without its end.
    pub(in crate::fetch) status_line: Bytes,
    /// In the order and spelling received.
    pub(in crate::fetch) headers: Headers,
    framed: Framed,
    /// What came along with the head.
    rest: Vec<u8>,
}

/// Why no head came.
pub(in crate::fetch) enum AskFailure {
    /// The connection ended before the first byte of an answer. RFC 9110 9.2.2, RFC 9112 9.3.1: on
    /// one that was idle before, the request may be made again on another.
    Unanswered(Failed),
    /// Anything else.
    Failed(Failed),
}

impl Connection {
    pub(in crate::fetch) fn new(stream: Stream, remote: SocketAddr) -> Self {
        Self { stream, remote }
    }

    /// The address it was made to.
    pub(in crate::fetch) fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// CN-2: nothing came, not even an end, since the last exchange.
    pub(in crate::fetch) fn is_quiet(&mut self) -> bool {
        // The runtime would say that nothing came where this task has read much before.
        let looking = unconstrained(poll_fn(|context| self.poll_bytes(context, |_| ())));
        let waits = pin!(looking).poll(&mut Context::from_waker(Waker::noop())).is_pending();
        waits && self.has_nothing()
    }

    /// The kernel has no bytes and no end: the runtime may not have heard of them yet.
    fn has_nothing(&self) -> bool {
        let socket = match &self.stream {
            Stream::Plain(stream) => stream,
            Stream::Tls(stream) => stream.get_ref().0,
        };
        let peeked = SockRef::from(socket).peek(&mut [MaybeUninit::uninit()]);
        peeked.is_err_and(|why| why.kind() == io::ErrorKind::WouldBlock)
    }

    /// Writes a request and reads the head of its answer.
    pub(in crate::fetch) async fn ask(&mut self, request: &[u8]) -> Result<Answer, AskFailure> {
        if let Err(why) = self.write(request).await {
            return Err(AskFailure::Unanswered(failure::protocol(failure::words(&why))));
        }
        let mut reader = HeadReader::default();
        let head = loop {
            let took = poll_fn(|context| {
                self.poll_bytes(context, |bytes| (!bytes.is_empty()).then(|| reader.take(bytes)))
            });
            let why = match took.await {
                Ok(Some(Ok(None))) => continue,
                Ok(Some(Ok(Some(head)))) => break head,
                Ok(Some(Err(fault))) => return Err(AskFailure::Failed(fault.into())),
                Ok(None) if reader.is_untouched() => {
                    "the server closed the connection without an answer".to_owned()
                }
                Ok(None) => "the connection was closed within the head".to_owned(),
                Err(why) => failure::words(&why),
            };
            let failed = failure::protocol(why);
            return Err(match reader.is_untouched() {
                true => AskFailure::Unanswered(failed),
                false => AskFailure::Failed(failed),
            });
        };
        let framed = framed(&head).map_err(|why| AskFailure::Failed(failure::protocol(why)))?;
        Ok(Answer {
            status: head.status,
            protocol: if head.is_http_10 { "HTTP/1.0" } else { "HTTP/1.1" },
            status_line: head.status_line,
            headers: head.headers,
            framed,
            rest: reader.into_rest(),
        })
    }

    async fn write(&mut self, request: &[u8]) -> io::Result<()> {
        match &mut self.stream {
            Stream::Plain(stream) => stream.write_all(request).await,
            Stream::Tls(stream) => {
                stream.write_all(request).await?;
                stream.flush().await
            }
        }
    }

    /// CN-1: reads once and hands on what came; nothing came of a peer that has closed.
    fn poll_bytes<T>(
        &mut self,
        context: &mut Context<'_>,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Poll<io::Result<T>> {
        READ.with_borrow_mut(|place| {
            let mut buffer = ReadBuf::new(place);
            let read = match &mut self.stream {
                Stream::Plain(stream) => Pin::new(stream).poll_read(context, &mut buffer),
                Stream::Tls(stream) => Pin::new(stream).poll_read(context, &mut buffer),
            };
            read.map(|read| match read {
                // Many servers end TLS without saying so; browsers take it as any other end.
                Err(why) if why.kind() == io::ErrorKind::UnexpectedEof => Ok(take(&[])),
                other => other.map(|()| take(buffer.filled())),
            })
        })
    }
}

impl Answer {
    /// Bytes of the body as announced, where they were.
    pub(in crate::fetch) fn length(&self) -> Option<u64> {
        match self.framed.framing {
            Framing::Length(length) => Some(length),
            Framing::NoBody => Some(0),
            Framing::Chunked | Framing::ToClose => None,
        }
    }

    /// The body on its way; the rest of the answer is left.
    pub(in crate::fetch) fn incoming(&mut self, connection: Connection) -> Incoming {
        Incoming {
            connection,
            payload: Payload::new(self.framed.framing),
            rest: std::mem::take(&mut self.rest),
            is_kept: self.framed.is_kept,
        }
    }
}

/// A body on its way.
pub(in crate::fetch) struct Incoming {
    connection: Connection,
    payload: Payload,
    /// What came with the head and is not taken yet.
    rest: Vec<u8>,
    is_kept: bool,
}

impl Incoming {
    /// The connection, where it may carry another request.
    pub(in crate::fetch) fn into_idle(self) -> Option<Connection> {
        (self.is_kept && self.payload.ended_clearly()).then_some(self.connection)
    }

    /// As [`Incoming::into_idle`], for a body that nobody wants: passes over it if all of it is
    /// here already. Waits for nothing.
    pub(in crate::fetch) fn into_idle_unread(mut self) -> Option<Connection> {
        let mut scrap = Kept::new(0, PASSED_OVER_MAX);
        let passing = unconstrained(poll_fn(|context| {
            while let Poll::Ready(came) = self.poll_into(context, &mut scrap) {
                if !matches!(came, Ok(Came::More)) {
                    return Poll::Ready(());
                }
            }
            Poll::Pending
        }));
        let waits = pin!(passing).poll(&mut Context::from_waker(Waker::noop())).is_pending();
        if waits { None } else { self.into_idle() }
    }

    fn take(&mut self, mut bytes: &[u8], kept: &mut Kept) -> Result<Came, String> {
        let came = self.payload.take(&mut bytes, kept)?;
        // RFC 9112 6.3: what lies beyond the body is not to be read as another response.
        self.is_kept &= bytes.is_empty();
        Ok(came)
    }
}

impl Arriving for Incoming {
    fn poll_into(
        &mut self,
        context: &mut Context<'_>,
        kept: &mut Kept,
    ) -> Poll<Result<Came, String>> {
        let rest = std::mem::take(&mut self.rest);
        let came = self.take(&rest, kept);
        if !rest.is_empty() || !matches!(came, Ok(Came::More)) {
            return Poll::Ready(came);
        }
        let Self { connection, payload, is_kept, .. } = self;
        let read = connection.poll_bytes(context, |mut bytes| {
            if bytes.is_empty() {
                return payload.closed().map(|()| Came::Whole);
            }
            let came = payload.take(&mut bytes, kept)?;
            *is_kept &= bytes.is_empty();
            Ok(came)
        });
        read.map(|read| read.map_err(|why| failure::words(&why))?)
    }
}

impl From<HeadFault> for Failed {
    fn from(fault: HeadFault) -> Self {
        match fault {
            HeadFault::TooLarge => failure::too_many_headers(),
            HeadFault::Malformed(why) => failure::protocol(why),
        }
    }
}
