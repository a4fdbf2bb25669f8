//! Reading a body inside its limits: size, time, and whether it is wanted at all (H1).
//!
//! B-1: never more than `bytes_max` bytes are kept, and memory grows with what has come, not with
//! what was announced. B-2: what has come is kept when time runs out or the peer goes away.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;

use crate::types::{Reason, SizeLimit, TimeLimit, Timestamp, Truncation};
use crate::world::{Clock, Oversize};

/// Room for a body, in multiples of what has come, up to the announced length.
const ROOM_FACTOR: usize = 2;

/// Where bytes come from.
pub(super) trait Arriving: Send {
    /// Keeps what comes next.
    ///
    /// # Errors
    /// The words for an end that is not regular.
    fn poll_into(
        &mut self,
        context: &mut Context<'_>,
        kept: &mut Kept,
    ) -> Poll<Result<Came, String>>;
}

/// How far a body has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Came {
    /// There is more.
    More,
    /// That was all.
    Whole,
    /// More came than is kept.
    TooMuch,
}

/// How much is read, and until when.
pub(super) struct BodyLimits {
    pub(super) bytes_max: u64,
    pub(super) oversize: Oversize,
    /// When the whole exchange ends, and the limit that says so.
    pub(super) deadline: Timestamp,
    pub(super) total: Duration,
}

/// What came of a body.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) bytes: Bytes,
    pub(super) cut: Option<(Truncation, Reason)>,
}

impl Body {
    /// Nothing was read, for this reason.
    pub(super) fn unread(cut: Truncation, why: Reason) -> Self {
        Self { bytes: Bytes::new(), cut: Some((cut, why)) }
    }
}

/// Reads a body whose announced length is `length`, if any was announced.
pub(super) async fn read(
    source: &mut dyn Arriving,
    length: Option<u64>,
    limits: &BodyLimits,
    clock: &dyn Clock,
) -> Body {
    if limits.oversize == Oversize::Skip && length.is_some_and(|length| length > limits.bytes_max) {
        return Body::unread(Truncation::Length, too_large(limits));
    }
    let mut kept = Kept::new(length.unwrap_or(0), limits.bytes_max);
    let mut deadline = clock.sleep_until(limits.deadline);
    let next = |context: &mut Context<'_>| {
        if deadline.as_mut().poll(context).is_ready() {
            let why = Reason::TimedOut { limit: TimeLimit::Total, after: limits.total };
            return Poll::Ready(Some((Truncation::Time, why)));
        }
        loop {
            match std::task::ready!(source.poll_into(context, &mut kept)) {
                Ok(Came::More) => {}
                Ok(Came::Whole) => return Poll::Ready(None),
                Ok(Came::TooMuch) => {
                    return Poll::Ready(Some((Truncation::Length, too_large(limits))));
                }
                Err(why) => {
                    return Poll::Ready(Some((Truncation::Disconnect, Reason::Protocol { why })));
                }
            }
        }
    };
    let cut = poll_fn(next).await;
    match cut {
        Some((Truncation::Length, why)) if limits.oversize == Oversize::Skip => {
            Body::unread(Truncation::Length, why)
        }
        cut => Body { bytes: kept.into_bytes(), cut },
    }
}

fn too_large(limits: &BodyLimits) -> Reason {
    Reason::TooLarge { limit: SizeLimit::Body, max: limits.bytes_max }
}

/// The bytes so far.
#[derive(Debug)]
pub(super) struct Kept {
    bytes: Vec<u8>,
    announced: usize,
    max: usize,
}

impl Kept {
    pub(super) fn new(announced: u64, max: u64) -> Self {
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Self { bytes: Vec::new(), announced: size(announced.min(max)), max: size(max) }
    }

    /// Takes what fits; false when something did not.
    pub(super) fn takes(&mut self, bytes: &[u8]) -> bool {
        let taken = bytes.len().min(self.max - self.bytes.len());
        self.make_room(taken);
        self.bytes.extend_from_slice(&bytes[..taken]);
        taken == bytes.len()
    }

    /// B-1: a few times what has come, and the announced length exactly once it is near.
    fn make_room(&mut self, more: usize) {
        let needed = self.bytes.len() + more;
        if needed <= self.bytes.capacity() {
            return;
        }
        let likely = if needed <= self.announced { self.announced } else { self.max };
        let room = needed.saturating_mul(ROOM_FACTOR).min(likely);
        self.bytes.reserve_exact(room - self.bytes.len());
    }

    fn into_bytes(mut self) -> Bytes {
        self.bytes.shrink_to_fit();
        Bytes::from(self.bytes)
    }
}

#[cfg(test)]
mod tests;
