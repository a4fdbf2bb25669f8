//! Snapshots of sleeping HostActors: node-local, small, often rewritten.

use std::fmt;

use crate::types::HostId;

/// Keeps the last snapshot of each host. Real: sled. Simulated: memory.
///
/// A snapshot saves work and nothing more: one that is missing, old or damaged is replaced from
/// the host's row, so a failure to write is logged by the implementation and not reported.
pub trait SnapshotStore: Send + Sync + fmt::Debug {
    /// The last snapshot of a host.
    fn get(&self, host: HostId) -> Option<Vec<u8>>;
    /// Replaces it.
    fn put(&self, host: HostId, snapshot: Vec<u8>);
    /// Forgets it.
    fn remove(&self, host: HostId);
}
