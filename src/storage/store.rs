//! ShardStore: one SlateDB, one writer, batches, numbers that are never used twice.
//!
//! - L-1 The newest opener owns the shard; whoever had it before fails as [`StoreError::Fenced`].
//! - L-2 A batch is in as a whole or not at all; a flush makes durable all that came before it.
//! - L-3 Events are numbered without gaps in the order of their batches, over restarts too; a
//!   number that was given to a batch of unknown fate is not given again.
//! - L-4 The epoch is durable before [`ShardStore::open`] answers, and higher than every one
//!   before.
//!
//! It does not decide when to flush: the shard does, who knows what waits for it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use slatedb::admin::Admin;
use slatedb::config::{CloseOptions, FlushType};
use slatedb::{Db, KeyValue, VersionedCompactions, VersionedManifest};
use tokio::sync::Mutex;
use tracing::debug;

use super::batch::Batch;
use super::codec;
use super::error::StoreError;
use super::keys::{Key, Kind};
use super::settings::{BlockCache, Place, settings};
use crate::types::{Epoch, EventSeq, ShardId, Timestamp};
use crate::world::{Clock, Objects, SlateClock};

/// The layout of keys and rows that this build writes, and the newest it reads.
pub const FORMAT: u32 = 3;
/// O5: how long an event stays in the outbox.
pub const OUTBOX_TTL: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How long the first flush of an open store may take.
const OPEN_FLUSH_MAX: Duration = Duration::from_secs(60);

/// An odd number with bits everywhere: sets the seeds of incarnations apart.
const SEED_STRIDE: u64 = 0x9e37_79b9_7f4a_7c15;

const FORMAT_ROW: &str = "format";
const EPOCH_ROW: &str = "epoch";
const HEAD_ROW: &str = "head";

/// What a store is opened with.
pub struct StoreOptions {
    /// Where its objects lie.
    pub objects: Objects,
    /// Its own part of them, such as `3`.
    pub path: String,
    /// The only clock it asks.
    pub clock: Arc<dyn Clock>,
    /// Seeds the engine's randomness; different on every node.
    pub seed: u64,
    /// Bytes of rows it may hold before they are in their final place.
    pub memory_bytes_max: u64,
    /// Shared by all shards of a node; without one every read goes to the object store.
    pub cache: Option<BlockCache>,
    /// Which shard it is.
    pub shard: ShardId,
}

/// Names one batch for good: the owner's term, and its number. What is kept beside the store, such
/// as the filter, is the store's only if it names the batch the store was opened at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchId {
    /// The term of the owner that wrote it.
    pub epoch: Epoch,
    /// Counts the batches of the store.
    pub number: u64,
}

/// A batch that is in, not yet durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its name.
    pub batch: BatchId,
    /// First and last number of its events.
    pub events: Option<(EventSeq, EventSeq)>,
}

/// The row that every batch rewrites.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Head {
    batch: BatchId,
    next_event: EventSeq,
}

/// A shard's durable store. Clones are the same store.
#[derive(Clone)]
pub struct ShardStore {
    inner: Arc<Inner>,
}

struct Inner {
    db: Db,
    objects: Objects,
    path: String,
    clock: Arc<dyn Clock>,
    shard: ShardId,
    epoch: Epoch,
    opened_at: BatchId,
    head: Mutex<Head>,
}

impl ShardStore {
    /// Opens the store, made when it is not there, and becomes its owner (L-1).
    ///
    /// # Errors
    /// A newer format, a damaged store, or an object store that does not answer.
    pub async fn open(options: StoreOptions) -> Result<Self, StoreError> {
        let clock = Arc::new(SlateClock::new(Arc::clone(&options.clock), Timestamp::EPOCH));
        let db = engine(&options, Arc::clone(&clock)).await?;
        let fresh = known_format(&db).await?;
        let (found, epoch) = recover(&db, &clock).await?;
        debug!(
            shard = options.shard.0,
            epoch = epoch.0,
            batch = found.batch.number,
            "store opened"
        );
        let store = Self {
            inner: Arc::new(Inner {
                db,
                objects: options.objects,
                path: options.path,
                clock: options.clock,
                shard: options.shard,
                epoch,
                opened_at: found.batch,
                head: Mutex::new(found),
            }),
        };
        let mut batch = Batch::new();
        batch.put_own(EPOCH_ROW, &epoch);
        if fresh {
            batch.put_own(FORMAT_ROW, &FORMAT);
        }
        store.write(batch).await?;
        store.flush(OPEN_FLUSH_MAX).await?;
        Ok(store)
    }

    /// Which shard it is.
    pub fn shard(&self) -> ShardId {
        self.inner.shard
    }

    /// I1: the term of this owner, higher than every one before.
    pub fn epoch(&self) -> Epoch {
        self.inner.epoch
    }

    /// The last batch that the owner before had made durable.
    pub fn opened_at(&self) -> BatchId {
        self.inner.opened_at
    }

    /// The last batch that was written.
    pub async fn last_batch(&self) -> BatchId {
        self.inner.head.lock().await.batch
    }

    /// The number of the last event written; 0 before the first.
    pub async fn last_event(&self) -> EventSeq {
        EventSeq(self.inner.head.lock().await.next_event.0.saturating_sub(1))
    }

    /// Writes a batch: readable when it answers, durable after the next flush.
    ///
    /// # Errors
    /// Fenced, a row that cannot be encoded, or an engine that takes no more.
    pub async fn write(&self, mut batch: Batch) -> Result<Written, StoreError> {
        // Held over the write, so that numbers and batches have the same order.
        let mut head = self.inner.head.lock().await;
        if batch.is_empty() {
            return Ok(Written { batch: head.batch, events: None });
        }
        let (first, count) = (head.next_event, batch.events());
        // Taken before the write: its fate is unknown when it fails or is given up (L-3).
        head.next_event = EventSeq(first.0 + count);
        head.batch = BatchId { epoch: self.inner.epoch, number: head.batch.number + 1 };
        let events = (count > 0).then(|| (first, EventSeq(first.0 + count - 1)));
        batch.put_own(HEAD_ROW, &*head);
        let written = Written { batch: head.batch, events };
        let rows = batch.into_rows(head.batch, first)?;
        self.inner.db.write(rows).await.map_err(StoreError::engine("write"))?;
        Ok(written)
    }

    /// Makes everything written so far durable.
    ///
    /// # Errors
    /// Fenced, or not done within `deadline`: what was written may or may not be durable.
    pub async fn flush(&self, deadline: Duration) -> Result<(), StoreError> {
        self.within("flush", deadline, self.inner.db.flush()).await
    }

    /// Makes everything durable and stops the engine's tasks. What is in memory stays in the log,
    /// to be replayed: there may be no place for its files before a compaction has ended.
    ///
    /// # Errors
    /// As [`ShardStore::flush`]; the store is closed to writers all the same.
    pub async fn close(&self, deadline: Duration) -> Result<(), StoreError> {
        let options = CloseOptions { flush_type: Some(FlushType::Wal) };
        self.within("close", deadline, self.inner.db.close_with_options(options)).await
    }

    /// Where its objects lie.
    pub(super) fn objects(&self) -> &Objects {
        &self.inner.objects
    }

    /// Its own part of them.
    pub(super) fn path(&self) -> &str {
        &self.inner.path
    }

    /// The engine, for the reads.
    pub(super) fn db(&self) -> &Db {
        &self.inner.db
    }

    async fn within(
        &self,
        during: &'static str,
        after: Duration,
        work: impl Future<Output = Result<(), slatedb::Error>>,
    ) -> Result<(), StoreError> {
        tokio::select! {
            biased;
            done = work => done.map_err(StoreError::engine(during)),
            () = self.inner.clock.sleep(after) => Err(StoreError::Deadline { during, after }),
        }
    }
}

impl fmt::Debug for ShardStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShardStore({}, epoch {})", self.inner.shard, self.inner.epoch)
    }
}

async fn engine(options: &StoreOptions, clock: Arc<SlateClock>) -> Result<Db, StoreError> {
    let path = options.path.as_str();
    let admin = Admin::builder(path, options.objects.store())
        .with_system_clock(Arc::<SlateClock>::clone(&clock))
        .with_seed(options.seed)
        .build();
    let manifest = admin.read_manifest(None).await.map_err(StoreError::engine("open"))?;
    let compactions = admin.read_compactions(None).await.map_err(StoreError::engine("open"))?;
    clock.raise(newest_file(manifest.as_ref(), compactions.as_ref()));
    // Every open writes a manifest. Without its number two incarnations of one seed that start in
    // the same millisecond would give their files the same names, and lose the older ones.
    let incarnation = manifest.map_or(0, |manifest| manifest.id());
    let overwrites = options.objects.overwrites_conditionally();
    let place = if overwrites { Place::Store } else { Place::Disk };
    let settings = settings(options.memory_bytes_max, place);
    let builder = Db::builder(path, options.objects.store())
        .with_settings(settings)
        .with_system_clock(clock)
        .with_seed(options.seed ^ incarnation.wrapping_mul(SEED_STRIDE));
    let builder = match &options.cache {
        Some(cache) => builder.with_db_cache(Arc::clone(cache), u64::from(options.shard.0)),
        None => builder.with_db_cache_disabled(),
    };
    // The future is several kilobytes; on the heap it costs its callers nothing.
    Box::pin(builder.build()).await.map_err(StoreError::engine("open"))
}

/// The newest time that a file of the store carries in its name, or a row that is in one. The
/// engine takes no file that is older than those before: under a clock that was set back it would
/// take none.
fn newest_file(
    manifest: Option<&VersionedManifest>,
    compactions: Option<&VersionedCompactions>,
) -> Timestamp {
    let tick = manifest.map_or(0, VersionedManifest::last_l0_clock_tick);
    let views = manifest.into_iter().flat_map(VersionedManifest::all_sst_views);
    let files = views.flat_map(|view| [view.id, view.sst.id.value()]);
    let compacted = manifest.and_then(VersionedManifest::last_compacted_l0_sst_view_id);
    let jobs = compactions.into_iter().flat_map(VersionedCompactions::recent_compactions);
    let jobs = jobs.flat_map(|job| {
        job.output_ssts().into_iter().map(|file| file.id.value()).chain([job.id()])
    });
    let names = files.chain(compacted).chain(jobs);
    let named = names.map(|name| i64::try_from(name.timestamp_ms()).unwrap_or(i64::MAX));
    Timestamp::from_millis(named.chain([tick]).max().unwrap_or(tick))
}

/// Checks the format; true when the store is empty and has none yet.
async fn known_format(db: &Db) -> Result<bool, StoreError> {
    match own_row::<u32>(db, FORMAT_ROW).await? {
        Some((found, _)) if found > FORMAT => {
            Err(StoreError::NewerVersion { found, known: FORMAT })
        }
        Some((FORMAT, _)) => Ok(false),
        Some(_) => Err(StoreError::Damaged {
            what: "an older mehman wrote it in a format that this build does not read",
        }),
        None => {
            let engine = StoreError::engine;
            let mut rows = db.scan::<std::ops::RangeFull>(..).await.map_err(engine("open"))?;
            match rows.next().await.map_err(engine("open"))? {
                Some(_) => Err(StoreError::Damaged { what: "it has rows but no format" }),
                None => Ok(true),
            }
        }
    }
}

/// Where the owner before stopped, and the next epoch; raises the clock above its last write.
async fn recover(db: &Db, clock: &SlateClock) -> Result<(Head, Epoch), StoreError> {
    let mut head = Head { next_event: EventSeq(1), ..Head::default() };
    if let Some((found, row)) = own_row::<Head>(db, HEAD_ROW).await? {
        clock.raise(Timestamp::from_millis(row.create_ts));
        head = found;
    }
    let before = own_row::<Epoch>(db, EPOCH_ROW).await?.map_or(0, |(epoch, _)| epoch.0);
    let epoch =
        before.checked_add(1).ok_or(StoreError::Damaged { what: "its epochs are used up" })?;
    Ok((head, Epoch(epoch)))
}

async fn own_row<T: DeserializeOwned>(
    db: &Db,
    name: &str,
) -> Result<Option<(T, KeyValue)>, StoreError> {
    let key = Key::Own(name.to_owned()).encode();
    match db.get_key_value(key).await.map_err(StoreError::engine("open"))? {
        Some(row) => Ok(Some((codec::decode(Kind::Own, &row.value)?, row))),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests;
