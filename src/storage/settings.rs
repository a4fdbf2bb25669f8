//! How SlateDB is set up for one shard: memory bounded, few requests at rest, garbage collected.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use slatedb::config::{
    CompactionWorkerOptions, CompactorOptions, CompressionCodec, GarbageCollectorDirectoryOptions,
    GarbageCollectorOptions, Settings,
};
use slatedb::db_cache::moka::{MokaCache, MokaCacheOptions};
use slatedb::db_cache::{DbCache, SplitCache};

/// A block cache, shared by all shards of a node.
pub type BlockCache = Arc<dyn DbCache>;

/// The smallest memtable: below it the files become too many.
const SST_BYTES_MIN: u64 = 4 << 20;
/// The largest: what is in it and not in its file is replayed from the log after a kill, and a
/// start with four shards must not take two seconds for that.
const SST_BYTES_MAX: u64 = 8 << 20;
/// The most that a shard keeps in memtables until it is in its files: all of it is replayed after a
/// kill.
pub const UNFLUSHED_BYTES_MAX: u64 = 4 * SST_BYTES_MAX;
/// Files that have not been compacted. As many as one compaction takes, and some that come while it
/// runs; every scan looks into each of them.
const L0_FILES_MAX: usize = 16;
/// Files or runs that one compaction may take: all that wait, so that each row is rewritten seldom.
const COMPACTED_AT_ONCE: usize = 16;
/// How often a compaction is sought and begun on a disk, where looking costs nothing. Left to the
/// engine's own five seconds, files wait for up to ten, and with them the memtables behind them.
const POLL_NEAR: Duration = Duration::from_secs(1);
/// As often where every look is a request to be paid for.
const POLL_FAR: Duration = Duration::from_secs(5);
/// The largest file that a compaction writes.
const COMPACTED_BYTES_MAX: usize = 64 << 20;
/// How long a reader may hold on to files that a compaction has replaced.
const CHECKPOINT_LIFETIME: Duration = Duration::from_secs(5 * 60);
/// Tables with fewer keys are read without a filter.
const FILTER_KEYS_MIN: u32 = 1000;

/// A cache of `bytes_max`: a quarter of it for indexes and filters, so that a scan of data cannot
/// push them out.
pub fn block_cache(bytes_max: u64) -> BlockCache {
    let part = |max_capacity| -> BlockCache {
        let options = MokaCacheOptions { max_capacity, ..MokaCacheOptions::default() };
        Arc::new(MokaCache::new_with_opts(options))
    };
    let meta = bytes_max / 4;
    let split = SplitCache::new()
        .with_block_cache(Some(part(bytes_max - meta)))
        .with_meta_cache(Some(part(meta)));
    Arc::new(split.build())
}

/// Where the objects of a store lie, as far as its settings depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Files of this machine: looking is free, and none is overwritten on a condition.
    Disk,
    /// Somewhere that is asked by requests.
    Store,
}

/// The settings for a shard that may keep `memory_bytes_max` unflushed.
pub(super) fn settings(memory_bytes_max: u64, place: Place) -> Settings {
    let unflushed_bytes = memory_bytes_max.clamp(2 * SST_BYTES_MIN, UNFLUSHED_BYTES_MAX);
    let sst_bytes = (unflushed_bytes / 4).max(SST_BYTES_MIN);
    Settings {
        // The shard flushes when it wants to answer; a timer of the engine's would only add files.
        flush_interval: None,
        manifest_poll_interval: Duration::from_secs(2),
        min_filter_keys: FILTER_KEYS_MIN,
        l0_sst_size_bytes: usize::try_from(sst_bytes).unwrap_or(usize::MAX),
        l0_max_ssts: L0_FILES_MAX,
        l0_max_ssts_per_key: L0_FILES_MAX,
        l0_flush_parallelism: 1,
        max_unflushed_bytes: usize::try_from(unflushed_bytes).unwrap_or(usize::MAX),
        compression_codec: Some(CompressionCodec::Lz4),
        compactor_options: Some(compaction(place)),
        garbage_collector_options: Some(garbage_collection(place)),
        ..Settings::default()
    }
}

fn compaction(place: Place) -> CompactorOptions {
    let poll = match place {
        Place::Disk => POLL_NEAR,
        Place::Store => POLL_FAR,
    };
    let at_once = ("max_compaction_sources".to_owned(), COMPACTED_AT_ONCE.to_string());
    CompactorOptions {
        poll_interval: poll,
        scheduler_options: HashMap::from([at_once]),
        max_concurrent_compactions: 1,
        checkpoint_lifetime: CHECKPOINT_LIFETIME,
        worker: Some(CompactionWorkerOptions {
            compactions_poll_interval: poll,
            max_concurrent_compactions: 1,
            max_sst_size: COMPACTED_BYTES_MAX,
            max_fetch_tasks: 2,
            bytes_to_fetch: 512 << 10,
            max_subcompactions: 1,
            min_filter_keys: FILTER_KEYS_MIN,
            compression_codec: Some(CompressionCodec::Lz4),
            ..CompactionWorkerOptions::default()
        }),
        ..CompactorOptions::default()
    }
}

/// Every flush is an object, so those of the log go soonest; the others are few.
fn garbage_collection(place: Place) -> GarbageCollectorOptions {
    let directory = |interval_secs, min_age_secs| {
        Some(GarbageCollectorDirectoryOptions {
            interval: Some(Duration::from_secs(interval_secs)),
            min_age: Duration::from_secs(min_age_secs),
            dry_run: false,
        })
    };
    GarbageCollectorOptions {
        wal_options: directory(60, 60),
        // A fence that is gone no longer fences a writer that was asleep, and they are few.
        wal_fence_options: None,
        manifest_options: directory(300, 600),
        compacted_options: directory(300, 600),
        compactions_options: directory(300, 600),
        detach_options: None,
        boundary_files_enabled: place == Place::Store,
        ..GarbageCollectorOptions::default()
    }
}
