//! What is durable in a shard, in which order it is written and why.
//!
//! In: batches of [`crate::policy::change::Change`], from the shard's one writer. Out: rows, and
//! events by number. All writes of a shard pass one [`ShardStore`]: what one step decides goes into
//! one batch, so it becomes durable together (I7); the newest opener fences the one before (I1).
//!
//! Beside the store stand what only saves work: the fingerprints and the filter that answer "known"
//! and "absent" without a read (D2), and the snapshots that make waking a host cheap (A2).

mod keys;
mod codec;
mod error;
mod settings;
mod batch;
mod store;
mod reads;
mod logs;
mod forgetting;
mod in_flight;
mod fingerprints;
mod filter;
mod beside;
mod snapshots;
mod directory;
mod made;

pub use batch::Batch;
pub use codec::CodecError;
pub use directory::{DIRECTORY_VERSION, DataDir, DirectoryError};
pub use error::{Remedy, StoreError};
pub use filter::Filter;
pub use fingerprints::{Fingerprint, Fingerprints};
pub use in_flight::{OpenLease, open_since};
pub use keys::Kind;
pub use logs::LedgerPlace;
pub use made::{MadeShards, MadeShardsError};
pub use settings::{BlockCache, UNFLUSHED_BYTES_MAX, block_cache};
pub use snapshots::{MemorySnapshots, SledSnapshots, SnapshotsError};
pub use store::{BatchId, FORMAT, OUTBOX_TTL, ShardStore, StoreOptions, Written};
