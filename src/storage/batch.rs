//! Changes on their way into the store: encoded when pushed, numbered when written.

use slatedb::WriteBatch;
use slatedb::config::{PutOptions, Ttl};

use super::codec::{self, CodecError};
use super::keys::{Key, Kind, Phase};
use super::store::OUTBOX_TTL;
use crate::policy::change::Change;
use crate::types::{EventSeq, QueueEntry, Reason};
use serde::{Deserialize, Serialize};

/// Changes that become durable together (I7).
#[derive(Debug, Default)]
pub struct Batch {
    rows: Vec<(Key, Option<Vec<u8>>)>,
    events: Vec<Vec<u8>>,
    bytes: usize,
    fault: Option<CodecError>,
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
    pub fn push(&mut self, change: Change) {
        if let Err(fault) = self.encode(change) {
            self.fault.get_or_insert(fault);
        }
    }

    /// Rows and events so far.
    pub fn len(&self) -> usize {
        self.rows.len() + self.events.len()
    }

    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the rows so far, to bound a batch.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many events wait for their numbers.
    pub(super) fn events(&self) -> u64 {
        u64::try_from(self.events.len()).unwrap_or(u64::MAX)
    }

    /// The engine's batch, its events numbered from `first`.
    pub(super) fn into_rows(self, first: EventSeq) -> Result<WriteBatch, CodecError> {
        if let Some(fault) = self.fault {
            return Err(fault);
        }
        let mut batch = WriteBatch::new();
        for (key, row) in self.rows {
            match row {
                Some(row) => batch.put(key.encode(), row),
                None => batch.delete(key.encode()),
            }
        }
        let millis = u64::try_from(OUTBOX_TTL.as_millis()).unwrap_or(u64::MAX);
        let ages_out = PutOptions { ttl: Ttl::ExpireAfterMillis(millis) };
        for (seq, row) in (first.0..).zip(self.events) {
            batch.put_with_options(Key::Outbox(EventSeq(seq)).encode(), row, &ages_out);
        }
        Ok(batch)
    }

    /// Adds a row of the store's own.
    pub(super) fn put_own<T: Serialize>(&mut self, name: &str, row: &T) {
        if let Err(fault) = self.put(Key::Own(name.to_owned()), row) {
            self.fault.get_or_insert(fault);
        }
    }

    fn put<T: Serialize>(&mut self, key: Key, row: &T) -> Result<(), CodecError> {
        let row = codec::encode(key.kind(), row)?;
        self.bytes += row.len();
        self.rows.push((key, Some(row)));
        Ok(())
    }

    fn delete(&mut self, key: Key) -> Result<(), CodecError> {
        self.rows.push((key, None));
        Ok(())
    }

    fn emit<T: Serialize>(&mut self, event: &T) -> Result<(), CodecError> {
        let row = codec::encode(Kind::Outbox, event)?;
        self.bytes += row.len();
        self.events.push(row);
        Ok(())
    }

    fn encode(&mut self, change: Change) -> Result<(), CodecError> {
        match change {
            Change::PutUrl(id, row) => self.put(Key::Url(id), &row),
            Change::PutVisit(id, row) => self.put(Key::Visit(id), &row),
            Change::PutFailing(id, row) => self.put(Key::Failing(id), &row),
            Change::DropFailing(id) => self.delete(Key::Failing(id)),
            Change::Enqueue(entry) => self.put(Key::of_entry(&entry), &entry),
            Change::Dequeue(entry) => self.delete(Key::of_entry(&entry)),
            Change::Defer { due, entry } => self.put(Key::Due { due, id: entry.id }, &entry),
            Change::Undefer { due, id } => self.delete(Key::Due { due, id }),
            Change::Sleep { entry, reason } => {
                self.put(Key::Sleeper(entry.id), &SleeperRow { entry: *entry, reason })
            }
            Change::Unsleep(id) => self.delete(Key::Sleeper(id)),
            Change::PutUnjudged(host) => self.put(Key::Unjudged(host), &true),
            Change::DropUnjudged(host) => self.delete(Key::Unjudged(host)),
            Change::PutLease(lease) => self.put(Key::Lease(lease.id), &lease),
            Change::DropLease(id) => self.delete(Key::Lease(id)),
            Change::PutHost(id, row) => self.put(Key::Host(id), &row),
            Change::PutCounts(id, row) => self.put(Key::Counts(id), &row),
            Change::PutRobots(id, row) => self.put(Key::Robots(id), &row),
            Change::PutToParse(row) => self.put(Key::ToParse(row.id, row.version), &row),
            Change::DropToParse(id, version) => self.delete(Key::ToParse(id, version)),
            Change::PutDead(row) => self.put(Key::Dead(row.entry.id), &row),
            Change::DropDead(id) => self.delete(Key::Dead(id)),
            Change::Emit(event) => self.emit(&event),
            Change::Record { at, lease, row } => {
                self.put(Key::Ledger { at, lease, phase: Phase::of(&row) }, &row)
            }
            Change::PutPayload(digest, row) => self.put(Key::Payload(digest), &row),
            Change::PutText(hash, row) => self.put(Key::Text(hash), &row),
            Change::PutExclusion(row) => self.put(Key::Exclusion(row.id.clone()), &row),
            Change::DropExclusion(id) => self.delete(Key::Exclusion(id)),
            Change::PutMeta(name, value) => self.put(Key::Meta(name.to_owned()), &value),
            Change::PutOutput { name, state } => self.put(Key::Output(name), &state),
        }
    }
}

impl From<Vec<Change>> for Batch {
    fn from(changes: Vec<Change>) -> Self {
        let mut batch = Self::new();
        for change in changes {
            batch.push(change);
        }
        batch
    }
}
