//! HTTP/2, spoken by hyper over one connection that exchanges share (RFC 9113).
//!
//! H2-1: what a peer can make us hold is bounded: header lists, windows, streams that were reset.
//! A body that is waited for holds no more than its window, and a reader takes frames as they come.
//! H2-2: the tasks of a connection end with it, and are aborted when the last who knows it drops
//! it: a peer that does not let go keeps nothing here.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::{Body, Incoming};
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::rt::Executor;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_rustls::client::TlsStream;

use super::body::{Arriving, Came, Kept};
use super::failure::{self, Failed};
use super::http1::{HEADER_BYTES_MAX, HEADERS_MAX};
use crate::types::Headers;

/// What a server may send of one body before it is read, in bytes.
const STREAM_WINDOW_BYTES: u32 = 128 * 1024;
/// The same of all bodies of a connection.
const CONNECTION_WINDOW_BYTES: u32 = 512 * 1024;
/// Bytes of requests that wait to be written.
const SEND_BUFFER_BYTES_MAX: usize = 16 * 1024;
/// Streams that were given up and may still be heard of.
const RESET_STREAMS_MAX: usize = 16;
/// Streams that a peer may break in a way that makes us reset them, before its connection ends.
const BROKEN_STREAMS_MAX: usize = 64;

/// A connection to one origin at one address.
pub(super) struct Http2 {
    sender: SendRequest<Empty<Bytes>>,
    remote: SocketAddr,
    /// H2-2: after the sender, which the tasks live by.
    _running: Running,
}

/// Why no head came.
pub(super) enum SendFailure {
    /// RFC 9113 8.7: the server did not look at the request.
    Unprocessed(Failed),
    /// Anything else.
    Failed(Failed),
}

impl Http2 {
    /// Begins to speak HTTP/2.
    ///
    /// # Errors
    /// The connection ended, or what came is no HTTP/2.
    pub(super) async fn begin(
        stream: Box<TlsStream<TcpStream>>,
        remote: SocketAddr,
    ) -> Result<Self, Failed> {
        let tasks = Tasks::default();
        let mut builder = Builder::new(tasks.clone());
        builder
            .initial_stream_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
            .max_header_list_size(HEADER_BYTES_MAX)
            .max_send_buf_size(SEND_BUFFER_BYTES_MAX)
            .max_concurrent_reset_streams(RESET_STREAMS_MAX)
            .max_pending_accept_reset_streams(RESET_STREAMS_MAX)
            .max_local_error_reset_streams(BROKEN_STREAMS_MAX);
        let begun = builder.handshake(TokioIo::new(stream)).await;
        let (sender, connection) = begun.map_err(|why| failure::protocol(failure::words(&why)))?;
        tasks.execute(async move {
            // How it ended is told to whoever waits for an answer.
            connection.await.ok();
        });
        Ok(Self { sender, remote, _running: Running(tasks) })
    }

    /// The address it was made to.
    pub(super) fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Whether no further request can be made.
    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Makes a request and waits for the head of its answer.
    pub(super) async fn send(
        &self,
        request: Request<Empty<Bytes>>,
    ) -> Result<Response<Incoming>, SendFailure> {
        let answer = self.sender.clone().try_send_request(request).await;
        let response = answer.map_err(|mut why| {
            let failed = failure::protocol(failure::words(why.error()));
            match why.take_message().is_some() || is_unprocessed(why.error()) {
                true => SendFailure::Unprocessed(failed),
                false => SendFailure::Failed(failed),
            }
        })?;
        // The library stops near the bound: what came in one frame may go beyond it.
        let headers = response.headers();
        let bytes: usize =
            headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if headers.len() > HEADERS_MAX || bytes > HEADER_BYTES_MAX as usize {
            return Err(SendFailure::Failed(failure::too_many_headers()));
        }
        Ok(response)
    }
}

/// RFC 9113 6.8, 8.7: a connection that goes away names the last request it looked at; a refused
/// stream was not looked at.
fn is_unprocessed(error: &hyper::Error) -> bool {
    let found = failure::chain(error).find_map(|link| link.downcast_ref::<h2::Error>());
    found.is_some_and(|error| {
        let reason = error.reason();
        error.is_remote()
            && (error.is_go_away() && reason == Some(h2::Reason::NO_ERROR)
                || error.is_reset() && reason == Some(h2::Reason::REFUSED_STREAM))
    })
}

/// The headers of a response, in the order of the library: names are in lower case by protocol.
pub(super) fn headers(response: &Response<Incoming>) -> Headers {
    let pair = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
        (name.as_str().to_owned(), Bytes::copy_from_slice(value.as_bytes()))
    };
    response.headers().iter().map(pair).collect()
}

/// A body on its way, and the connection it comes over.
pub(super) struct Frames {
    pub(super) body: Incoming,
    pub(super) connection: Arc<Http2>,
}

impl Arriving for Frames {
    fn poll_into(
        &mut self,
        context: &mut Context<'_>,
        kept: &mut Kept,
    ) -> Poll<Result<Came, String>> {
        Pin::new(&mut self.body).poll_frame(context).map(|frame| match frame {
            None => Ok(Came::Whole),
            Some(Err(why)) => Err(failure::words(&why)),
            Some(Ok(frame)) => {
                let fits = frame.data_ref().is_none_or(|data| kept.takes(data));
                Ok(if fits { Came::More } else { Came::TooMuch })
            }
        })
    }
}

/// H2-2: where the library's tasks run.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl Tasks {
    fn locked<T>(&self, work: impl FnOnce(&mut JoinSet<()>) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<F> Executor<F> for Tasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, future: F) {
        self.locked(|tasks| {
            while tasks.try_join_next().is_some() {}
            tasks.spawn(future);
        });
    }
}

/// H2-2: tasks that end when this goes. They know of each other, so none would end by itself.
struct Running(Tasks);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.locked(JoinSet::abort_all);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn tasks_that_never_end_end_with_their_connection() {
        let tasks = Tasks::default();
        let (held, ended) = oneshot::channel::<()>();
        let (begun, running) = oneshot::channel();
        let knows_the_others = tasks.clone();
        tasks.execute(async move {
            let _kept = (held, knows_the_others);
            begun.send(()).unwrap();
            std::future::pending::<()>().await;
        });
        let guard = Running(tasks);
        running.await.unwrap();
        drop(guard);
        let ended = tokio::time::timeout(Duration::from_secs(20), ended).await;
        assert!(ended.expect("an end within patience").is_err());
    }
}
