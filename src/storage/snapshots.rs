//! Snapshots of sleeping HostActors in sled, local to the node (A2).
//!
//! A value is a version byte, a checksum, and the snapshot. What is damaged or of another version
//! is not there, and the host is woken from its row; so is everything when sled itself is damaged.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use thiserror::Error;
use tracing::warn;
use xxhash_rust::xxh3::xxh3_64;

use crate::types::HostId;
use crate::world::{Clock, SnapshotStore};

/// The form of the values.
const VERSION: u8 = 1;
/// Snapshots are read once, when a host wakes: a cache earns little.
const CACHE_BYTES: u64 = 4 << 20;
/// How often sled syncs; a snapshot lost in a crash is replaced from the row.
const FLUSH_INTERVAL_MS: u64 = 5_000;
/// Whoever had the snapshots before lets go of them within this time.
const FREE_WITHIN: Duration = Duration::from_secs(5);
/// How often it is looked whether they are free.
const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(20);

/// Snapshots in sled.
#[derive(Debug)]
pub struct SledSnapshots {
    db: sled::Db,
}

/// Why the snapshots cannot be opened.
#[derive(Debug, Error)]
#[error("failed to open the snapshots")]
pub struct SnapshotsError(#[from] sled::Error);

impl SledSnapshots {
    /// Opens the snapshots of a node, made when they are not there, emptied when they are damaged.
    ///
    /// # Errors
    /// The directory cannot be used.
    pub fn open(path: &Path) -> Result<Self, SnapshotsError> {
        match open(path) {
            Err(error @ (sled::Error::Corruption { .. } | sled::Error::Unsupported(_))) => {
                warn!(path = %path.display(), %error, "snapshots are damaged, starting without");
                std::fs::remove_dir_all(path).map_err(sled::Error::from)?;
                Ok(Self { db: open(path)? })
            }
            opened => Ok(Self { db: opened? }),
        }
    }

    /// As [`SledSnapshots::open`]; waits while whoever had them before still lets go of them: sled
    /// does so on a thread of its own, some time after it was told.
    ///
    /// # Errors
    /// The directory cannot be used, or is still held after five seconds.
    pub async fn open_once_free(path: &Path, clock: &dyn Clock) -> Result<Self, SnapshotsError> {
        let deadline = clock.now() + FREE_WITHIN;
        loop {
            match Self::open(path) {
                Err(SnapshotsError(sled::Error::Io(error)))
                    if is_held(&error) && clock.now() < deadline =>
                {
                    clock.sleep(LOOK_AGAIN_AFTER).await;
                }
                opened => return opened,
            }
        }
    }

    /// Makes everything put so far durable: at a clean stop.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn flush(&self) -> Result<(), SnapshotsError> {
        self.db.flush()?;
        Ok(())
    }
}

impl SnapshotStore for SledSnapshots {
    fn get(&self, host: HostId) -> Option<Vec<u8>> {
        let value = match self.db.get(key(host)) {
            Ok(value) => value?,
            Err(error) => {
                warn!(%host, %error, "snapshot not read, the host wakes from its row");
                return None;
            }
        };
        let snapshot = unwrap(&value);
        if snapshot.is_none() {
            warn!(%host, "snapshot damaged, the host wakes from its row");
        }
        snapshot
    }

    fn put(&self, host: HostId, snapshot: Vec<u8>) {
        if let Err(error) = self.db.insert(key(host), wrap(&snapshot)) {
            warn!(%host, %error, "snapshot not written");
            // The one before must not pass for this one; its generation would betray it as well.
            self.remove(host);
        }
    }

    fn remove(&self, host: HostId) {
        if let Err(error) = self.db.remove(key(host)) {
            warn!(%host, %error, "snapshot not removed");
        }
    }
}

/// sled wraps what the system said about the lock in an error of its own, in words.
fn is_held(error: &std::io::Error) -> bool {
    error.to_string().contains("could not acquire lock")
}

fn open(path: &Path) -> sled::Result<sled::Db> {
    sled::Config::new()
        .path(path)
        .cache_capacity(CACHE_BYTES)
        .flush_every_ms(Some(FLUSH_INTERVAL_MS))
        .open()
}

fn key(host: HostId) -> [u8; 8] {
    host.0.to_be_bytes()
}

fn wrap(snapshot: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(9 + snapshot.len());
    value.push(VERSION);
    value.extend(xxh3_64(snapshot).to_be_bytes());
    value.extend(snapshot);
    value
}

fn unwrap(value: &[u8]) -> Option<Vec<u8>> {
    let (version, rest) = value.split_first()?;
    let (checksum, snapshot) = rest.split_first_chunk::<8>()?;
    let whole = *version == VERSION && u64::from_be_bytes(*checksum) == xxh3_64(snapshot);
    whole.then(|| snapshot.to_vec())
}

/// Snapshots in memory: for tests and the simulation.
#[derive(Debug, Default)]
pub struct MemorySnapshots(Mutex<BTreeMap<HostId, Vec<u8>>>);

impl SnapshotStore for MemorySnapshots {
    fn get(&self, host: HostId) -> Option<Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&host).cloned()
    }

    fn put(&self, host: HostId, snapshot: Vec<u8>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(host, snapshot);
    }

    fn remove(&self, host: HostId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Timestamp;
    use crate::world::TokioClock;

    const HOST: HostId = HostId(7);

    fn keeps_the_last(store: &impl SnapshotStore) {
        assert_eq!(store.get(HOST), None);
        store.put(HOST, b"one".to_vec());
        store.put(HOST, b"two".to_vec());
        store.put(HostId(8), Vec::new());
        assert_eq!(store.get(HOST), Some(b"two".to_vec()));
        assert_eq!(store.get(HostId(8)), Some(Vec::new()));
        store.remove(HOST);
        assert_eq!(store.get(HOST), None);
    }

    #[test]
    fn both_stores_keep_the_last_snapshot() {
        let dir = tempfile::tempdir().unwrap();
        keeps_the_last(&SledSnapshots::open(dir.path()).unwrap());
        keeps_the_last(&MemorySnapshots::default());
    }

    #[test]
    fn snapshots_survive_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let store = SledSnapshots::open(dir.path()).unwrap();
        store.put(HOST, b"asleep".to_vec());
        store.flush().unwrap();
        drop(store);
        let store = SledSnapshots::open(dir.path()).unwrap();
        assert_eq!(store.get(HOST), Some(b"asleep".to_vec()));
    }

    #[tokio::test]
    async fn snapshots_that_are_being_let_go_are_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let held = SledSnapshots::open(dir.path()).unwrap();
        let clock = TokioClock::system();
        let mut waiting = Box::pin(SledSnapshots::open_once_free(dir.path(), &clock));
        assert!(futures::poll!(&mut waiting).is_pending());
        drop(held);
        waiting.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn snapshots_that_somebody_keeps_are_not_waited_for_for_ever() {
        let dir = tempfile::tempdir().unwrap();
        let _held = SledSnapshots::open(dir.path()).unwrap();
        let clock = TokioClock::starting_at(Timestamp::EPOCH);
        let waited = SledSnapshots::open_once_free(dir.path(), &clock).await;
        assert!(waited.is_err());
        assert!(clock.now() >= Timestamp::EPOCH + FREE_WITHIN);
    }

    #[test]
    fn a_damaged_snapshot_is_not_there() {
        let dir = tempfile::tempdir().unwrap();
        let store = SledSnapshots::open(dir.path()).unwrap();
        store.put(HOST, b"asleep".to_vec());
        let whole = store.db.get(key(HOST)).unwrap().unwrap().to_vec();
        for place in 0..whole.len() {
            let mut damaged = whole.clone();
            damaged[place] ^= 1;
            store.db.insert(key(HOST), damaged).unwrap();
            assert_eq!(store.get(HOST), None, "byte {place}");
        }
        store.db.insert(key(HOST), &whole[..5]).unwrap();
        assert_eq!(store.get(HOST), None);
    }
}
