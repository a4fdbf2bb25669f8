//! What a decision wants written: the storage effects of the machines, as values.
//!
//! One step's changes go into one batch, so they become durable together (I7). `storage` gives each
//! its key and its bytes; nothing else knows how rows look.

use crate::types::{
    ContentRecord, CrawlEvent, DeadLetter, ExclusionRecord, HostCounts, HostId, HostRecord,
    LedgerRow, PurgeRecord, QueueEntry, Reason, RobotsRecord, Timestamp, ToParse, UrlId, UrlRecord,
    UrlVersion, VisitRecord,
};

/// One row written, moved or removed.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The row of a URL that became known.
    PutUrl(UrlId, Box<UrlRecord>),
    /// How a URL's last visit went.
    PutVisit(UrlId, Box<VisitRecord>),
    /// How later visits of a known page fail: beside its row, which keeps the last good one (F8).
    PutFailing(UrlId, Box<VisitRecord>),
    /// They fail no more.
    DropFailing(UrlId),
    /// Into the host's queue.
    Enqueue(Box<QueueEntry>),
    /// Out of the host's queue: refused or ended. A granted entry stays until its lease has ended.
    Dequeue {
        /// Its band.
        band: u8,
        /// Its place in the band.
        order: u64,
        /// What.
        id: UrlId,
    },
    /// Due later: a retry or a revisit (F8, C1).
    Defer {
        /// When.
        due: Timestamp,
        /// What.
        entry: Box<QueueEntry>,
    },
    /// Out of the due index.
    Undefer {
        /// The time it was filed under.
        due: Timestamp,
        /// What.
        id: UrlId,
    },
    /// Refused by robots rules or an exclusion: kept, and judged again when they change (R2, R5).
    Sleep {
        /// What.
        entry: Box<QueueEntry>,
        /// The rule that refused it.
        reason: Reason,
    },
    /// Out of the sleepers, back to be judged.
    Unsleep(UrlId),
    /// Rules changed: the host's sleepers are to be judged by them, also after a crash (R2).
    PutUnjudged(HostId),
    /// They are back in the queue.
    DropUnjudged(HostId),
    /// A host's row.
    PutHost(HostId, Box<HostRecord>),
    /// How many URLs a host has.
    PutCounts(HostId, HostCounts),
    /// A host's last robots.txt.
    PutRobots(HostId, Box<RobotsRecord>),
    /// A fetched page waits for its parser (P4).
    PutToParse(Box<ToParse>),
    /// Its links and document are durable.
    DropToParse(UrlId, UrlVersion),
    /// Given up (F8).
    PutDead(Box<DeadLetter>),
    /// Taken out of the dead letters by an operator.
    DropDead(UrlId),
    /// For the outbox; numbered by the one writer (O5).
    Emit(Box<CrawlEvent>),
    /// For the ledger (B2). It also says what is in flight (F5): a grant that has not ended there.
    Record {
        /// When it happened: the ledger is in the order of time.
        at: Timestamp,
        /// What is recorded.
        row: Box<LedgerRow>,
    },
    /// Where a payload lies, by its SHA-1 (D3).
    PutPayload(String, Box<ContentRecord>),
    /// Which page has this text, by the hash of the normalised text (D3).
    PutText(u128, Box<ContentRecord>),
    /// A rule made at runtime (R5).
    PutExclusion(Box<ExclusionRecord>),
    /// The order to remove what is stored of a rule, and how far it is (R5).
    PutPurge(Box<PurgeRecord>),
    /// A host's robots.txt is forgotten.
    DropRobots(HostId),
    /// No payload with this SHA-1 is known any more.
    DropPayload(String),
    /// No page with this text is known any more.
    DropText(u128),
    /// A rule taken back.
    DropExclusion(String),
    /// A named value of the shard: counters, committed output offsets.
    PutMeta(&'static str, Vec<u8>),
    /// How far an output file is committed, with the pages that it holds (B6).
    PutOutput {
        /// The output's name.
        name: String,
        /// Its committed state, as the output wrote it.
        state: Vec<u8>,
    },
}

impl Change {
    /// An entry leaves the queue.
    pub fn dequeue(entry: &QueueEntry) -> Self {
        Self::Dequeue { band: entry.band, order: entry.order, id: entry.id }
    }

    /// The time of a deferral.
    pub fn due(&self) -> Option<Timestamp> {
        if let Self::Defer { due, .. } = self { Some(*due) } else { None }
    }
}
