//! Reading a body inside its limits: size, time, and whether it is wanted at all (H1).
//!
//! B-1: never more than `bytes_max` bytes are kept, and memory grows with what has come, not with
//! what was announced. B-2: what has come is kept when time runs out or the peer goes away.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;

use crate::types::{Reason, SizeLimit, TimeLimit, Timestamp, Truncation};
use crate::world::{Clock, Oversize};

/// Room made at once for an announced length; 10,000 slow bodies must not cost what they announce.
const ROOM_FIRST: usize = 16 * 1024;
/// Room made later, in multiples of what has come, up to the announced length.
const ROOM_FACTOR: usize = 4;
/// A first piece up to here is copied: it is a slice of a buffer that may be many times larger.
const COPIED_MAX: usize = 16 * 1024;

/// Where bytes come from.
#[async_trait]
pub(super) trait Chunks: Send {
    /// The next bytes; `None` at the regular end.
    ///
    /// # Errors
    /// The words for an end that is not regular.
    async fn next(&mut self) -> Result<Option<Bytes>, String>;
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
    chunks: &mut dyn Chunks,
    length: Option<u64>,
    limits: &BodyLimits,
    clock: &dyn Clock,
) -> Body {
    if limits.oversize == Oversize::Skip && length.is_some_and(|length| length > limits.bytes_max) {
        return Body::unread(Truncation::Length, too_large(limits));
    }
    let mut kept = Kept::new(length.unwrap_or(0).min(limits.bytes_max));
    let mut deadline = clock.sleep_until(limits.deadline);
    let cut = loop {
        let chunk = tokio::select! {
            biased;
            () = &mut deadline => {
                let why = Reason::TimedOut { limit: TimeLimit::Total, after: limits.total };
                break Some((Truncation::Time, why));
            }
            chunk = chunks.next() => chunk,
        };
        match chunk {
            Ok(None) => break None,
            Ok(Some(bytes)) if kept.takes(&bytes, limits.bytes_max) => {}
            Ok(Some(_)) if limits.oversize == Oversize::Skip => {
                return Body::unread(Truncation::Length, too_large(limits));
            }
            Ok(Some(_)) => break Some((Truncation::Length, too_large(limits))),
            Err(why) => break Some((Truncation::Disconnect, Reason::Protocol { why })),
        }
    };
    Body { bytes: kept.into_bytes(), cut }
}

fn too_large(limits: &BodyLimits) -> Reason {
    Reason::TooLarge { limit: SizeLimit::Body, max: limits.bytes_max }
}

/// The bytes so far; a large body that comes in one piece is never copied.
struct Kept {
    only: Bytes,
    joined: Vec<u8>,
    announced: usize,
}

impl Kept {
    fn new(announced: u64) -> Self {
        let announced = usize::try_from(announced).unwrap_or(usize::MAX);
        Self { only: Bytes::new(), joined: Vec::new(), announced }
    }

    /// Takes what fits; false when something did not.
    fn takes(&mut self, bytes: &Bytes, bytes_max: u64) -> bool {
        let max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let free = max.saturating_sub(self.only.len() + self.joined.len());
        let fits = bytes.len() <= free;
        let taken = bytes.slice(..bytes.len().min(free));
        if self.only.is_empty() && self.joined.is_empty() {
            let copied = taken.len() <= COPIED_MAX;
            self.only = if copied { Bytes::copy_from_slice(&taken) } else { taken };
            return fits;
        }
        if self.joined.is_empty() {
            let only = std::mem::take(&mut self.only);
            self.make_room(only.len() + taken.len());
            self.joined.extend_from_slice(&only);
        } else {
            self.make_room(taken.len());
        }
        self.joined.extend_from_slice(&taken);
        fits
    }

    /// B-1: a few times what has come, and the announced length exactly once it is near.
    fn make_room(&mut self, more: usize) {
        let needed = self.joined.len() + more;
        if needed <= self.joined.capacity() {
            return;
        }
        if needed > self.announced {
            self.joined.reserve(more);
            return;
        }
        let room = needed.saturating_mul(ROOM_FACTOR).max(ROOM_FIRST).min(self.announced);
        self.joined.reserve_exact(room - self.joined.len());
    }

    fn into_bytes(mut self) -> Bytes {
        if self.joined.is_empty() {
            return self.only;
        }
        self.joined.shrink_to_fit();
        Bytes::from(self.joined)
    }
}

#[cfg(test)]
mod tests;
