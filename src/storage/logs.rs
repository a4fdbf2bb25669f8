//! What only grows: the outbox and the ledger, the entries of a batch together in few rows.
//!
//! - An outbox row is filed under the number of its last event: event *n* is in the first row at or
//!   behind *n*.
//! - A ledger row is filed under the latest time in it, its batch and its part of the batch: what
//!   happened from a time on is in the rows from that time on, whatever clocks and orders did.
//! - A row is one version byte, then its entries, each in postcard.

use std::ops::Range;

use serde::Serialize;

use super::batch::Row;
use super::codec::{self, CodecError};
use super::error::StoreError;
use super::keys::{self, Key, Kind};
use super::reads::{Scan, key_of};
use super::store::{BatchId, ShardStore};
use crate::types::{CrawlEvent, EventSeq, LedgerRow, Timestamp};

/// A row that has as many bytes takes no more entries.
const ROW_BYTES: usize = 16 << 10;

/// Entries of one log on their way into the store.
#[derive(Debug, Default)]
pub(super) struct Log {
    bytes: Vec<u8>,
    rows: Vec<LogRow>,
    entries: u64,
}

/// Some entries that stand together.
#[derive(Debug)]
struct LogRow {
    row: Range<usize>,
    /// Of all entries of the batch, those up to here.
    entries: u64,
    /// The latest time of these.
    until: Timestamp,
}

impl Log {
    /// One more entry.
    pub(super) fn push<T: Serialize>(
        &mut self,
        kind: Kind,
        at: Timestamp,
        entry: &T,
    ) -> Result<(), CodecError> {
        let from = self.bytes.len();
        let open = self.rows.pop_if(|row| row.row.len() < ROW_BYTES);
        let mut row = open.unwrap_or_else(|| {
            self.bytes.push(codec::ROW_VERSION);
            LogRow { row: from..from, entries: 0, until: at }
        });
        codec::append(kind, entry, &mut self.bytes)?;
        self.entries += 1;
        row.row.end = self.bytes.len();
        row.entries = self.entries;
        row.until = row.until.max(at);
        self.rows.push(row);
        Ok(())
    }

    /// How many entries.
    pub(super) fn entries(&self) -> u64 {
        self.entries
    }

    /// How many rows they fill.
    pub(super) fn rows(&self) -> usize {
        self.rows.len()
    }

    /// Bytes of the rows.
    pub(super) fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The rows of an outbox whose first event has the number `first`.
    pub(super) fn into_outbox(self, first: EventSeq) -> (Vec<u8>, Vec<Row>) {
        self.filed(|_, row| Key::Outbox(EventSeq(first.0 + row.entries - 1)))
    }

    /// The rows of a ledger.
    pub(super) fn into_ledger(self, batch: BatchId) -> (Vec<u8>, Vec<Row>) {
        self.filed(|part, row| {
            let part = u32::try_from(part).unwrap_or(u32::MAX);
            Key::Ledger(LedgerPlace { until: row.until, batch: batch.number, part })
        })
    }

    fn filed(mut self, key: impl Fn(usize, &LogRow) -> Key) -> (Vec<u8>, Vec<Row>) {
        let mut rows = Vec::with_capacity(self.rows.len());
        for (part, row) in self.rows.into_iter().enumerate() {
            let from = self.bytes.len();
            key(part, &row).encode_into(&mut self.bytes);
            rows.push(Row { key: from..self.bytes.len(), row: Some(row.row) });
        }
        (self.bytes, rows)
    }
}

/// Where a row of the ledger stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LedgerPlace {
    /// The latest time in it.
    pub until: Timestamp,
    /// The batch that it came with.
    pub batch: u64,
    /// Which of the rows of that batch.
    pub part: u32,
}

impl ShardStore {
    /// O5: the outbox behind `after`, up to what is durable (I7).
    ///
    /// # Errors
    /// A row is damaged or the store does not answer; so for all reads.
    pub async fn events(
        &self,
        after: EventSeq,
        limit: usize,
    ) -> Result<Vec<(EventSeq, CrawlEvent)>, StoreError> {
        let range = keys::after(Kind::Outbox.range(), Some(&Key::Outbox(after)));
        let mut rows = self.begin_scan(range, Scan::Durable).await?;
        let mut events = Vec::new();
        while events.len() < limit
            && let Some(row) = rows.next().await.map_err(StoreError::engine("scan"))?
        {
            let last = key_of(Kind::Outbox, &row, event_of)?;
            let found: Vec<CrawlEvent> = codec::decode_all(Kind::Outbox, &row.value)?;
            let numbers = (0..=last.0).rev().map(EventSeq).zip(found.into_iter().rev());
            let mut found: Vec<_> = numbers.take_while(|(seq, _)| *seq > after).collect();
            found.reverse();
            events.extend(found);
        }
        events.truncate(limit);
        Ok(events)
    }

    /// The first event that has not aged out; a cursor before it has expired.
    ///
    /// # Errors
    /// As [`ShardStore::events`].
    pub async fn oldest_event(&self) -> Result<Option<EventSeq>, StoreError> {
        Ok(self.events(EventSeq(0), 1).await?.first().map(|(seq, _)| *seq))
    }

    /// B2: what happened from `from` on, with its time, of about `enough` entries behind `after`;
    /// and where to go on, unless that was all.
    ///
    /// # Errors
    /// As [`ShardStore::events`].
    pub async fn ledger(
        &self,
        from: Timestamp,
        after: Option<LedgerPlace>,
        enough: usize,
    ) -> Result<(Vec<(Timestamp, LedgerRow)>, Option<LedgerPlace>), StoreError> {
        let range = keys::time_range(Kind::Ledger, from, Timestamp::NEVER);
        let range = keys::after(range, after.map(Key::Ledger).as_ref());
        let mut rows = self.begin_scan(range, Scan::Cold).await?;
        let mut entries: Vec<(Timestamp, LedgerRow)> = Vec::new();
        while let Some(row) = rows.next().await.map_err(StoreError::engine("scan"))? {
            let found: Vec<(Timestamp, LedgerRow)> = codec::decode_all(Kind::Ledger, &row.value)?;
            entries.extend(found.into_iter().filter(|(at, _)| *at >= from));
            if entries.len() >= enough {
                return Ok((entries, Some(key_of(Kind::Ledger, &row, place_of)?)));
            }
        }
        Ok((entries, None))
    }
}

fn event_of(key: Key) -> Option<EventSeq> {
    if let Key::Outbox(seq) = key { Some(seq) } else { None }
}

fn place_of(key: Key) -> Option<LedgerPlace> {
    if let Key::Ledger(place) = key { Some(place) } else { None }
}
