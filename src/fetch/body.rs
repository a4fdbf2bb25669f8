//! Reading a body inside its limits: size, time, and whether it is wanted at all (H1).
//!
//! B-1: never more than `bytes_max` bytes are kept, and memory grows with what has come, not with
//! what was announced. B-2: what has come is kept when time runs out or the peer goes away.
//!
//! B-3 (P4, I8): what all bodies hold together, on their way and until nobody has them any more, is
//! bounded, but for a first part of each. Half of the memory is a credit that bodies take as they
//! grow; of the other half a body takes a place, with which it can come to its end whatever its
//! size. A body that waits for either is not read, so its server waits as well. So bodies never
//! wait for each other in a circle; and one that is slow in its place ends, for others may wait for
//! it.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;

use crate::protocol::{Credit, Permit};
use crate::types::{Reason, SizeLimit, TimeLimit, Timestamp, Truncation};
use crate::world::{Clock, Oversize};

/// Room for a body, in multiples of what has come, up to the announced length.
const ROOM_FACTOR: usize = 2;
/// What a source brings at once, about.
const READ_BYTES: usize = 32 << 10;
/// B-3: what each body may hold without credit: as much as the first reads bring.
const FREE_BYTES: usize = 2 * READ_BYTES;
/// B-3: how long a body may have a place while there is no credit for it.
const PLACE_TIME: Duration = Duration::from_secs(30);

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

/// What bodies are read with.
pub(super) struct BodyReader {
    clock: Arc<dyn Clock>,
    /// B-3: memory for all bodies, in KiB.
    memory: Credit,
    /// B-3: memory for bodies as large as they may be, in KiB.
    places: Credit,
}

impl BodyReader {
    /// Bodies have so many bytes together, beside a first part of each.
    pub(super) fn new(bytes: u64, clock: Arc<dyn Clock>) -> Self {
        let half = || Credit::new(u32::try_from(bytes / 2 / 1024).unwrap_or(u32::MAX));
        Self { clock, memory: half(), places: half() }
    }

    /// Reads a body whose announced length is `length`, if any was announced.
    pub(super) async fn read(
        &self,
        source: &mut dyn Arriving,
        length: Option<u64>,
        limits: &BodyLimits,
    ) -> Body {
        let is_skipped = limits.oversize == Oversize::Skip;
        if is_skipped && length.is_some_and(|length| length > limits.bytes_max) {
            return Body::unread(Truncation::Length, too_large(limits));
        }
        let mut kept = Kept::new(length.unwrap_or(0), limits.bytes_max);
        let mut room = Room::default();
        let mut deadline = self.clock.sleep_until(limits.deadline);
        let next = |context: &mut Context<'_>| {
            if deadline.as_mut().poll(context).is_ready() {
                let why = Reason::TimedOut { limit: TimeLimit::Total, after: limits.total };
                return Poll::Ready(Some((Truncation::Time, why)));
            }
            loop {
                if !ready!(room.poll_for(self, context, &kept)) {
                    let why = Reason::TimedOut { limit: TimeLimit::Memory, after: PLACE_TIME };
                    return Poll::Ready(Some((Truncation::Time, why)));
                }
                match ready!(source.poll_into(context, &mut kept)) {
                    Ok(Came::More) => {}
                    Ok(Came::Whole) => return Poll::Ready(None),
                    Ok(Came::TooMuch) => {
                        return Poll::Ready(Some((Truncation::Length, too_large(limits))));
                    }
                    Err(why) => {
                        let why = Reason::Protocol { why };
                        return Poll::Ready(Some((Truncation::Disconnect, why)));
                    }
                }
            }
        };
        let cut = poll_fn(next).await;
        match cut {
            Some((Truncation::Length, why)) if is_skipped => Body::unread(Truncation::Length, why),
            cut => Body { bytes: room.held_by(kept.into_bytes()), cut },
        }
    }
}

fn too_large(limits: &BodyLimits) -> Reason {
    Reason::TooLarge { limit: SizeLimit::Body, max: limits.bytes_max }
}

/// B-3: what a body holds of the memory for all. Most bodies need none.
#[derive(Default)]
struct Room<'r>(Option<Box<Beyond<'r>>>);

/// What it holds beyond its first part.
#[derive(Default)]
struct Beyond<'r> {
    memory: Permit,
    place: Option<Place<'r>>,
    waiting: Option<BoxFuture<'r, Got>>,
}

/// Room for the whole of a body, for a while.
struct Place<'r> {
    permit: Permit,
    ends: BoxFuture<'r, ()>,
}

/// What a body waited for.
enum Got {
    Memory(Permit),
    Place(Permit),
}

impl<'r> Room<'r> {
    /// Ready when there is memory for what comes next; with false when the body has had a place for
    /// too long.
    fn poll_for(
        &mut self,
        reader: &'r BodyReader,
        context: &mut Context<'_>,
        kept: &Kept,
    ) -> Poll<bool> {
        let wanted = units(kept.room_for(READ_BYTES));
        if wanted == 0 {
            return Poll::Ready(true);
        }
        let Beyond { memory, place, waiting } = &mut **self.0.get_or_insert_default();
        loop {
            let Some(more) = wanted.checked_sub(memory.units()).filter(|more| *more > 0) else {
                *place = None;
                return Poll::Ready(true);
            };
            if waiting.is_none()
                && let Some(permit) = reader.memory.try_take(more)
            {
                memory.add(permit);
                continue;
            }
            if let Some(place) = place {
                return Poll::Ready(place.ends.as_mut().poll(context).is_pending());
            }
            let getting = waiting.get_or_insert_with(|| Box::pin(reader.wait_for(more, kept.max)));
            let got = ready!(getting.as_mut().poll(context));
            *waiting = None;
            match got {
                Got::Memory(permit) => memory.add(permit),
                Got::Place(permit) => {
                    let ends = reader.clock.sleep(PLACE_TIME);
                    *place = Some(Place { permit, ends });
                }
            }
        }
    }

    /// The bytes, which hold their memory as long as any part of them is there: of a place as much
    /// as they need.
    fn held_by(self, bytes: Bytes) -> Bytes {
        let Beyond { mut memory, place, .. } = self.0.map(|beyond| *beyond).unwrap_or_default();
        let needed = units(bytes.len());
        memory.keep(needed);
        let mut place = place.map_or_else(Permit::free, |place| place.permit);
        place.keep(needed.saturating_sub(memory.units()));
        match memory.units() + place.units() {
            0 => bytes,
            _ => Bytes::from_owner(HeldBytes { bytes, _held: (memory, place) }),
        }
    }
}

impl BodyReader {
    /// So much more memory, or a place for a body of so many bytes, whichever comes free first.
    async fn wait_for(&self, more: u32, bytes_max: usize) -> Got {
        tokio::select! {
            biased;
            permit = self.memory.take(more) => Got::Memory(permit),
            permit = self.places.take(units(bytes_max).max(1)) => Got::Place(permit),
        }
    }
}

/// Bytes that give their memory back when they go.
struct HeldBytes {
    bytes: Bytes,
    _held: (Permit, Permit),
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// What so many bytes take of the credit, in KiB.
fn units(bytes: usize) -> u32 {
    let beyond = bytes.saturating_sub(FREE_BYTES).div_ceil(1024);
    u32::try_from(beyond).unwrap_or(u32::MAX)
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

    fn make_room(&mut self, more: usize) {
        let room = self.room_for(more);
        self.bytes.reserve_exact(room - self.bytes.len());
    }

    /// B-1: the room it has once so much more has come: a few times that, and the announced length
    /// exactly once it is near.
    fn room_for(&self, more: usize) -> usize {
        let needed = self.bytes.len().saturating_add(more);
        if needed <= self.bytes.capacity() {
            return self.bytes.capacity();
        }
        let likely = if needed <= self.announced { self.announced } else { self.max };
        needed.saturating_mul(ROOM_FACTOR).min(likely)
    }

    fn into_bytes(mut self) -> Bytes {
        self.bytes.shrink_to_fit();
        Bytes::from(self.bytes)
    }
}

#[cfg(test)]
mod tests;
