//! Connections that wait for their next request, by origin and pinned address (H4, H6).
//!
//! P-1: a connection is only ever used for the origin and address it was made for. P-2: at most so
//! many origins, of each at most [`IDLE_PER_ORIGIN`] connections, none of them longer than the idle
//! time: the origin unused for longest goes first. P-3: one that came alive or was closed while
//! nobody used it is thrown away. Over HTTP/2 one connection is shared; who uses it while it leaves
//! here keeps it to the end.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::http1::Connection;
use super::http2::Http2;
use crate::types::{HostKey, Timestamp};
use crate::world::Clock;

/// Idle connections kept to one origin; more than one only where a host allows several at once.
const IDLE_PER_ORIGIN: usize = 4;

/// A connection, in the protocol that was agreed on.
pub(super) enum Link {
    Http1(Connection),
    Http2(Arc<Http2>),
}

/// Where a connection leads.
pub(super) type Place = (HostKey, SocketAddr);

/// The connections kept.
pub(super) struct Pool {
    kept: Arc<Mutex<Kept>>,
    places_max: usize,
    idle: Duration,
    clock: Arc<dyn Clock>,
}

#[derive(Default)]
struct Kept {
    places: HashMap<Place, Spot>,
    /// By turn of last use: eviction repeats from run to run.
    turns: BTreeMap<u64, (Timestamp, Place)>,
    turn: u64,
    /// A task looks after what is idle for too long.
    is_swept: bool,
}

#[derive(Default)]
struct Spot {
    turn: u64,
    idle: Vec<(Timestamp, Connection)>,
    shared: Option<Arc<Http2>>,
}

impl Pool {
    pub(super) fn new(places_max: usize, idle: Duration, clock: Arc<dyn Clock>) -> Self {
        Self { kept: Arc::default(), places_max: places_max.max(1), idle, clock }
    }

    /// A connection to be used again.
    pub(super) fn take(&self, place: &Place) -> Option<Link> {
        let now = self.clock.now();
        let mut kept = lock(&self.kept);
        let mut spot = kept.take(place)?;
        if let Some(shared) = spot.shared.take().filter(|shared| !shared.is_closed()) {
            spot.shared = Some(Arc::clone(&shared));
            kept.put(place, spot, now);
            return Some(Link::Http2(shared));
        }
        let is_fresh = |since: Timestamp| now.since(since) <= self.idle;
        let found = std::iter::from_fn(|| spot.idle.pop())
            .find_map(|(since, mut link)| (is_fresh(since) && link.is_quiet()).then_some(link));
        kept.put(place, spot, now);
        found.map(Link::Http1)
    }

    /// Keeps a connection for the next request.
    pub(super) fn keep(&self, place: &Place, link: Link) {
        let now = self.clock.now();
        let mut kept = lock(&self.kept);
        let mut spot = kept.take(place).unwrap_or_default();
        match link {
            Link::Http1(connection) => {
                spot.idle.retain(|(since, _)| now.since(*since) <= self.idle);
                if spot.idle.len() == IDLE_PER_ORIGIN {
                    spot.idle.remove(0);
                }
                spot.idle.push((now, connection));
            }
            Link::Http2(shared) => {
                if spot.shared.as_ref().is_none_or(|known| known.is_closed()) {
                    spot.shared = Some(shared).filter(|shared| !shared.is_closed());
                }
            }
        }
        kept.put(place, spot, now);
        while kept.places.len() > self.places_max {
            kept.drop_first();
        }
        if !kept.places.is_empty() && !std::mem::replace(&mut kept.is_swept, true) {
            let kept = Arc::downgrade(&self.kept);
            tokio::spawn(sweep(kept, self.idle, Arc::clone(&self.clock)));
        }
    }

    /// Origins with connections.
    pub(super) fn len(&self) -> usize {
        lock(&self.kept).places.len()
    }
}

impl Kept {
    fn take(&mut self, place: &Place) -> Option<Spot> {
        let spot = self.places.remove(place)?;
        self.turns.remove(&spot.turn);
        Some(spot)
    }

    /// As the one used last; nothing where nothing is left in it.
    fn put(&mut self, place: &Place, mut spot: Spot, now: Timestamp) {
        if spot.idle.is_empty() && spot.shared.is_none() {
            return;
        }
        self.turn += 1;
        spot.turn = self.turn;
        self.turns.insert(self.turn, (now, place.clone()));
        self.places.insert(place.clone(), spot);
    }

    fn drop_first(&mut self) {
        if let Some((_, (_, place))) = self.turns.pop_first() {
            self.places.remove(&place);
        }
    }

    /// P-2: drops what is idle for too long; when to look again, if anything is left.
    fn sweep(&mut self, now: Timestamp, idle: Duration) -> Option<Timestamp> {
        while let Some(first) = self.turns.first_entry() {
            let until = first.get().0 + idle;
            if until > now {
                return Some(until);
            }
            self.drop_first();
        }
        None
    }
}

/// Looks after the pool until nothing is in it.
async fn sweep(kept: std::sync::Weak<Mutex<Kept>>, idle: Duration, clock: Arc<dyn Clock>) {
    loop {
        let next = {
            let Some(kept) = kept.upgrade() else { return };
            let mut kept = lock(&kept);
            let next = kept.sweep(clock.now(), idle);
            kept.is_swept = next.is_some();
            next
        };
        match next {
            Some(at) => clock.sleep_until(at).await,
            None => return,
        }
    }
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
