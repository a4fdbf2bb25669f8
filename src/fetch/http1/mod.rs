//! One exchange over HTTP/1.1, read by ourselves (RFC 9112).
//!
//! Bytes of a response come in as they are read; head, framing and chunked coding are pure and told
//! apart here, the socket is `connection.rs`. Whatever bytes come, memory is bounded by what came
//! and by the limits of each file, and nothing panics. What is open to two readings is read once,
//! and its connection is not used again. `docs/http.md` lists what is read how.

mod head;
mod framing;
mod chunked;
mod payload;
mod connection;

pub(super) use connection::{AskFailure, Connection, Incoming, Stream};
pub(super) use head::{HEADER_BYTES_MAX, HEADERS_MAX};

#[cfg(test)]
pub(super) use head::INTERIM_MAX;
