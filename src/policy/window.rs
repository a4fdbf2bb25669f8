//! A bounded window in memory over a host's queue on disk (F10), and which band is next (F3).
//!
//! Each band is read in order from a remembered cursor. W-1: an entry is in the window, or beyond
//! its band's cursor on disk, or granted; never in two places, never in none.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::types::{QueueEntry, UrlId};

/// Priority bands of a queue.
pub const BANDS: usize = 4;

/// The place of an entry in its band.
pub type Place = (u64, UrlId);

/// Which rows of the queue to read next: for each band the last place read, and how many rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowRequest {
    /// Per band: read after this place; `None` from the beginning.
    pub after: [Option<Place>; BANDS],
    /// Per band: rows that it gets for sure, 0 for a band that needs none.
    pub limit: [u16; BANDS],
    /// Rows in all: what one band leaves goes to those behind it.
    pub room: u16,
}

impl WindowRequest {
    /// So many rows of each band, from its beginning.
    pub fn of_each(limit: u16) -> Self {
        let bands = u16::try_from(BANDS).unwrap_or(u16::MAX);
        let room = limit.saturating_mul(bands);
        Self { after: [None; BANDS], limit: [limit; BANDS], room }
    }

    /// How many rows of a band may be read when the bands before it had `read`.
    pub fn rows_of(&self, band: usize, read: usize) -> usize {
        let own = usize::from(self.limit[band]);
        if own == 0 {
            return 0;
        }
        let later: usize = self.limit[band + 1..].iter().copied().map(usize::from).sum();
        usize::from(self.room).saturating_sub(read + later).max(own)
    }
}

/// The rows read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowRows {
    /// Per band: the rows after the cursor, in order.
    pub rows: [Vec<QueueEntry>; BANDS],
    /// Per band: nothing lies beyond the rows read.
    pub exhausted: [bool; BANDS],
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Band {
    /// Boxed: a node of the map has room for eleven, and most hosts have few.
    entries: BTreeMap<Place, Box<QueueEntry>>,
    /// The last place read; what lies beyond is on disk only.
    cursor: Option<Place>,
    exhausted: bool,
    credit: i32,
}

/// The window and the turns of its bands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    bands: [Band; BANDS],
}

impl Window {
    /// Entries in memory.
    pub fn len(&self) -> usize {
        self.bands.iter().map(|band| band.entries.len()).sum()
    }

    /// No entry in memory.
    pub fn is_empty(&self) -> bool {
        self.bands.iter().all(|band| band.entries.is_empty())
    }

    /// Nothing in memory and nothing on disk.
    pub fn is_exhausted(&self) -> bool {
        self.bands.iter().all(|band| band.entries.is_empty() && band.exhausted)
    }

    /// What to read, or `None` when every band has entries or nothing beyond them.
    ///
    /// A read costs far more than its rows, so it fills the window: each band up to its share, and
    /// what is left for those that have more.
    pub fn wants(&self, capacity: u16) -> Option<WindowRequest> {
        if !self.bands.iter().any(|band| band.entries.is_empty() && !band.exhausted) {
            return None;
        }
        let rows = |rows: usize| u16::try_from(rows).unwrap_or(u16::MAX);
        let share = (usize::from(capacity) / BANDS).max(1);
        let mut request = WindowRequest { after: [None; BANDS], limit: [0; BANDS], room: 0 };
        for (at, band) in self.bands.iter().enumerate().filter(|(_, band)| !band.exhausted) {
            request.after[at] = band.cursor;
            request.limit[at] = rows(share.saturating_sub(band.entries.len()));
        }
        request.room = rows(usize::from(capacity).saturating_sub(self.len()));
        Some(request)
    }

    /// Takes rows that were read; those in `granted` are left out.
    pub fn load(
        &mut self,
        request: &WindowRequest,
        rows: WindowRows,
        granted: impl Fn(UrlId) -> bool,
    ) {
        for (at, (read, exhausted)) in rows.rows.into_iter().zip(rows.exhausted).enumerate() {
            let band = &mut self.bands[at];
            // A band that was filled meanwhile by `admit` keeps its cursor: the rows are on disk.
            if request.limit[at] == 0 || band.cursor != request.after[at] {
                continue;
            }
            if let Some(last) = read.last() {
                band.cursor = Some((last.order, last.id));
            }
            band.exhausted = exhausted;
            for entry in read.into_iter().filter(|entry| !granted(entry.id)) {
                band.entries.insert((entry.order, entry.id), Box::new(entry));
            }
        }
    }

    /// Hears of an entry that was put into the queue; keeps it if it lies before the cursor.
    pub fn admit(&mut self, entry: QueueEntry, capacity: u16) {
        let band = &mut self.bands[usize::from(entry.band).min(BANDS - 1)];
        let place = (entry.order, entry.id);
        let read_past = band.exhausted || band.cursor.is_some_and(|cursor| place <= cursor);
        if !read_past {
            return;
        }
        band.entries.insert(place, Box::new(entry));
        if band.entries.len() > usize::from(capacity) {
            // The tail goes back to being on disk only.
            band.entries.pop_last();
            band.cursor = band.entries.last_key_value().map(|(place, _)| *place);
            band.exhausted = false;
        } else if band.cursor < Some(place) {
            band.cursor = Some(place);
        }
    }

    /// F3: the next entry: bands take turns by their weights (smooth weighted round robin), so a
    /// high band comes first and none starves.
    pub fn pop(&mut self, weights: &[u8; BANDS]) -> Option<QueueEntry> {
        let mut total = 0;
        let mut best: Option<(usize, i32)> = None;
        for (at, band) in self.bands.iter_mut().enumerate() {
            if band.entries.is_empty() {
                continue;
            }
            let weight = i32::from(weights[at].max(1));
            band.credit = band.credit.saturating_add(weight);
            total += weight;
            if best.is_none_or(|(_, credit)| band.credit > credit) {
                best = Some((at, band.credit));
            }
        }
        let (at, _) = best?;
        let band = &mut self.bands[at];
        band.credit -= total;
        let (_, entry) = band.entries.pop_first()?;
        if band.entries.is_empty() {
            // An emptied map keeps its last node, and most hosts at rest have nothing but that.
            band.entries = BTreeMap::new();
        }
        Some(*entry)
    }

    /// Puts an entry back that was popped and not granted.
    pub fn put_back(&mut self, entry: QueueEntry) {
        let band = &mut self.bands[usize::from(entry.band).min(BANDS - 1)];
        band.entries.insert((entry.order, entry.id), Box::new(entry));
    }

    /// How many entries stand before this one in its band.
    pub fn position(&self, id: UrlId) -> Option<usize> {
        self.bands.iter().find_map(|band| band.entries.keys().position(|place| place.1 == id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{CrawlUrl, HostId, UrlVersion};

    const WEIGHTS: [u8; BANDS] = [8, 4, 2, 1];

    fn entry(band: u8, order: u64) -> QueueEntry {
        let hash = u64::from(band) << 32 | order;
        QueueEntry {
            id: UrlId { host: HostId(1), hash, disambiguator: 0 },
            version: UrlVersion(1),
            url: CrawlUrl::parse("http://a.test/").unwrap(),
            depth: 0,
            band,
            order,
            attempts: 0,
            redirects: 0,
            validators: None,
            discovered_from: None,
        }
    }

    fn rows(band: usize, orders: impl Iterator<Item = u64>, exhausted: bool) -> WindowRows {
        let mut rows = WindowRows { exhausted: [true; BANDS], ..WindowRows::default() };
        rows.rows[band] = orders.map(|order| entry(u8::try_from(band).unwrap(), order)).collect();
        rows.exhausted[band] = exhausted;
        rows
    }

    fn loaded(band: usize, orders: impl Iterator<Item = u64>, exhausted: bool) -> Window {
        let mut window = Window::default();
        let request = window.wants(64).unwrap();
        window.load(&request, rows(band, orders, exhausted), |_| false);
        window
    }

    #[test]
    fn high_bands_come_first_and_none_starves() {
        let mut window = Window::default();
        let request = window.wants(64).unwrap();
        let mut all = WindowRows { exhausted: [true; BANDS], ..WindowRows::default() };
        for band in 0..4u8 {
            all.rows[usize::from(band)] = (0..15).map(|order| entry(band, order)).collect();
        }
        window.load(&request, all, |_| false);
        let mut served = [0; BANDS];
        for _ in 0..15 {
            served[usize::from(window.pop(&WEIGHTS).unwrap().band)] += 1;
        }
        assert_eq!(served, [8, 4, 2, 1]);
    }

    #[test]
    fn an_entry_behind_the_cursor_is_kept_and_one_beyond_it_stays_on_disk() {
        let mut window = loaded(0, [10, 20].into_iter(), false);
        window.admit(entry(0, 15), 64);
        window.admit(entry(0, 25), 64);
        let order = |entry: QueueEntry| entry.order;
        assert_eq!(window.pop(&WEIGHTS).map(order), Some(10));
        assert_eq!(window.pop(&WEIGHTS).map(order), Some(15));
        assert_eq!(window.pop(&WEIGHTS).map(order), Some(20));
        let wants = window.wants(64).unwrap();
        assert_eq!(wants.after[0].map(|place| place.0), Some(20));
    }

    #[test]
    fn a_full_window_gives_its_tail_back_to_the_disk() {
        let mut window = loaded(0, [10, 20].into_iter(), true);
        window.admit(entry(0, 5), 2);
        assert_eq!(window.len(), 2);
        window.pop(&WEIGHTS);
        window.pop(&WEIGHTS);
        let wants = window.wants(2).unwrap();
        assert_eq!(wants.after[0].map(|place| place.0), Some(10));
        assert!(!window.is_exhausted());
    }

    #[test]
    fn rows_that_are_granted_already_are_left_out() {
        let mut window = Window::default();
        let request = window.wants(64).unwrap();
        let taken = entry(1, 3).id;
        window.load(&request, rows(1, [3, 4].into_iter(), true), |id| id == taken);
        assert_eq!(window.pop(&WEIGHTS).map(|entry| entry.order), Some(4));
        assert!(window.is_exhausted());
    }

    #[test]
    fn a_read_fills_the_window() {
        let full = loaded(1, 0..32, false);
        assert_eq!(full.len(), 32);
        // The other bands are exhausted: theirs is this one's too.
        let mut window = full;
        (0..32).for_each(|_| assert!(window.pop(&WEIGHTS).is_some()));
        let request = window.wants(64).unwrap();
        assert_eq!((request.limit, request.room), ([0, 16, 0, 0], 64));
        assert_eq!(request.rows_of(1, 0), 64);
        assert_eq!(request.rows_of(0, 0), 0);
        assert_eq!(request.after[1].map(|place| place.0), Some(31));

        // A band that is read for another's sake goes on behind what it has.
        let mut window = Window::default();
        let request = window.wants(64).unwrap();
        let rows = |band, orders: std::ops::Range<u64>| -> Vec<QueueEntry> {
            orders.map(|order| entry(band, order)).collect()
        };
        let all = WindowRows {
            rows: [rows(0, 0..1), rows(1, 0..16), rows(2, 0..16), Vec::new()],
            exhausted: [false, false, false, true],
        };
        window.load(&request, all, |_| false);
        assert!(window.wants(64).is_none());
        window.pop(&WEIGHTS);
        let request = window.wants(64).unwrap();
        assert_eq!((request.limit, request.room), ([16, 0, 0, 0], 32));
        window.pop(&WEIGHTS);
        let request = window.wants(64).unwrap();
        assert_eq!((request.limit, request.room), ([16, 1, 0, 0], 33));
        assert_eq!(request.after[1].map(|place| place.0), Some(15));
        // The first takes what it has, the second what is left; both shares are kept.
        assert_eq!((request.rows_of(0, 0), request.rows_of(1, 5)), (32, 28));
        let more = WindowRows {
            rows: [rows(0, 1..6), rows(1, 16..44), Vec::new(), Vec::new()],
            exhausted: [true, false, false, false],
        };
        window.load(&request, more, |_| false);
        assert_eq!(window.len(), 64);
        assert!(!window.bands[2].exhausted, "a band that was not read says nothing");
    }

    #[test]
    fn rows_read_before_a_band_was_refilled_are_not_taken_twice() {
        let mut window = loaded(0, [1].into_iter(), false);
        window.pop(&WEIGHTS);
        let request = window.wants(64).unwrap();
        window.load(&request, rows(0, [2].into_iter(), true), |_| false);
        window.load(&request, rows(0, [2].into_iter(), true), |_| false);
        assert_eq!(window.len(), 1);
    }
}
