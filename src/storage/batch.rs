//! Changes on their way into the store: encoded when pushed, numbered when written.

use std::ops::Range;

use bytes::Bytes;
use slatedb::WriteBatch;
use slatedb::config::{PutOptions, Ttl};

use super::codec::{self, CodecError};
use super::keys::{Key, Kind};
use super::logs::Log;
use super::store::{BatchId, OUTBOX_TTL};
use crate::policy::change::Change;
use crate::types::{EventSeq, QueueEntry, Reason};
use serde::{Deserialize, Serialize};

/// Changes that become durable together (I7).
///
/// Keys and rows stand one after the other in one piece of memory, which the engine keeps as it is:
/// they are many, small, and die together when the engine has written them to their place.
#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    rows: Vec<Row>,
    outbox: Log,
    ledger: Log,
    fault: Option<CodecError>,
}

/// Where a key lies, and its row; none where it is deleted.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) key: Range<usize>,
    pub(super) row: Option<Range<usize>>,
}

/// The row of a sleeper.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SleeperRow {
    pub(super) entry: QueueEntry,
    pub(super) reason: Reason,
}

impl Batch {
    /// Nothing to write.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more change. A later change to the same row wins.
    pub fn push(&mut self, change: &Change) {
        if let Err(fault) = self.encode(change) {
            self.fault.get_or_insert(fault);
        }
    }

    /// Rows so far.
    pub fn len(&self) -> usize {
        self.rows.len() + self.outbox.rows() + self.ledger.rows()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of keys and rows so far, to bound a batch.
    pub fn bytes(&self) -> usize {
        self.bytes.len() + self.outbox.bytes() + self.ledger.bytes()
    }

    /// How many events wait for their numbers.
    pub(super) fn events(&self) -> u64 {
        self.outbox.entries()
    }

    /// The engine's batch, its events numbered from `first`.
    pub(super) fn into_rows(
        self,
        batch: BatchId,
        first: EventSeq,
    ) -> Result<WriteBatch, CodecError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let millis = u64::try_from(OUTBOX_TTL.as_millis()).unwrap_or(u64::MAX);
        let ages_out = PutOptions { ttl: Ttl::ExpireAfterMillis(millis) };
        let mut rows = WriteBatch::new();
        fill(&mut rows, (self.bytes, self.rows), &PutOptions::default());
        fill(&mut rows, self.ledger.into_ledger(batch), &PutOptions::default());
        fill(&mut rows, self.outbox.into_outbox(first), &ages_out);
        Ok(rows)
    }

    /// Adds a row of the store's own.
    pub(super) fn put_own<T: Serialize>(&mut self, name: &str, row: &T) {
        if let Err(fault) = self.put(Key::Own(name.to_owned()), row) {
            self.fault.get_or_insert(fault);
        }
    }

    fn put<T: Serialize>(&mut self, key: Key, row: &T) -> Result<(), CodecError> {
        let from = self.bytes.len();
        key.encode_into(&mut self.bytes);
        let between = self.bytes.len();
        codec::encode(key.kind(), row, &mut self.bytes)?;
        self.rows.push(Row { key: from..between, row: Some(between..self.bytes.len()) });
        Ok(())
    }

    fn delete(&mut self, key: Key) -> Result<(), CodecError> {
        let from = self.bytes.len();
        key.encode_into(&mut self.bytes);
        self.rows.push(Row { key: from..self.bytes.len(), row: None });
        Ok(())
    }

    fn encode(&mut self, change: &Change) -> Result<(), CodecError> {
        match change {
            Change::PutUrl(id, row) => self.put(Key::Url(*id), row),
            Change::PutVisit(id, row) => self.put(Key::Visit(*id), row),
            Change::PutFailing(id, row) => self.put(Key::Failing(*id), row),
            Change::DropFailing(id) => self.delete(Key::Failing(*id)),
            Change::Enqueue(entry) => self.put(Key::of_entry(entry), entry),
            Change::Dequeue { band, order, id } => {
                self.delete(Key::Queue { band: *band, order: *order, id: *id })
            }
            Change::Defer { due, entry } => self.put(Key::Due { due: *due, id: entry.id }, entry),
            Change::Undefer { due, id } => self.delete(Key::Due { due: *due, id: *id }),
            // As a `SleeperRow`: postcard writes a pair and a struct alike.
            Change::Sleep { entry, reason } => self.put(Key::Sleeper(entry.id), &(entry, reason)),
            Change::Unsleep(id) => self.delete(Key::Sleeper(*id)),
            Change::PutUnjudged(host) => self.put(Key::Unjudged(*host), &true),
            Change::DropUnjudged(host) => self.delete(Key::Unjudged(*host)),
            Change::PutHost(id, row) => self.put(Key::Host(*id), row),
            Change::PutCounts(id, row) => self.put(Key::Counts(*id), row),
            Change::PutRobots(id, row) => self.put(Key::Robots(*id), row),
            Change::PutToParse(row) => self.put(Key::ToParse(row.id, row.version), row),
            Change::DropToParse(id, version) => self.delete(Key::ToParse(*id, *version)),
            Change::PutDead(row) => self.put(Key::Dead(row.entry.id), row),
            Change::DropDead(id) => self.delete(Key::Dead(*id)),
            Change::Emit(event) => self.outbox.push(Kind::Outbox, event.at, event),
            Change::Record { at, row } => self.ledger.push(Kind::Ledger, *at, &(at, row)),
            Change::PutPayload(digest, row) => self.put(Key::Payload(digest.clone()), row),
            Change::PutText(hash, row) => self.put(Key::Text(*hash), row),
            Change::PutExclusion(row) => self.put(Key::Exclusion(row.id.clone()), row),
            Change::PutPurge(row) => self.put(Key::Purge(row.id.clone()), row),
            Change::DropRobots(id) => self.delete(Key::Robots(*id)),
            Change::DropPayload(digest) => self.delete(Key::Payload(digest.clone())),
            Change::DropText(hash) => self.delete(Key::Text(*hash)),
            Change::DropExclusion(id) => self.delete(Key::Exclusion(id.clone())),
            Change::PutMeta(name, value) => self.put(Key::Meta((*name).to_owned()), value),
            Change::PutOutput { name, state } => self.put(Key::Output(name.clone()), state),
        }
    }
}

/// Rows of one piece of memory, into the engine's batch.
fn fill(batch: &mut WriteBatch, (mut bytes, rows): (Vec<u8>, Vec<Row>), options: &PutOptions) {
    bytes.shrink_to_fit();
    let bytes = Bytes::from(bytes);
    for Row { key, row } in rows {
        match row {
            Some(row) => batch.put_bytes_with_options(bytes.slice(key), bytes.slice(row), options),
            None => batch.delete(&bytes[key]),
        }
    }
}

impl From<Vec<Change>> for Batch {
    fn from(changes: Vec<Change>) -> Self {
        let mut batch = Self::new();
        for change in changes {
            batch.push(&change);
        }
        batch
    }
}
