//! The disks of the simulated world: files and objects in memory that take virtual time, and that a
//! crash catches in the middle of a write.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt as _;

use super::draw::{below, draw};
use super::faults::{Fault, Faults};
use super::power::{Power, Step};
use super::weather::{disk_fails, standstill};
use crate::types::HostId;
use crate::world::{Clock, MemorySpool, SnapshotStore, Spool};

/// The folder of the outputs.
const OUTPUTS: &str = "pages";
/// The longest write of a file, in milliseconds.
const WRITE_MS_MAX: u64 = 12;

/// Files in memory. A write takes a few milliseconds; whoever asked for it may go, it is done all
/// the same, as by a thread of its own; only a power cut leaves a part of it.
#[derive(Debug)]
pub(super) struct SimulatedSpool {
    pub(super) files: Arc<MemorySpool>,
    /// True time.
    pub(super) clock: Arc<dyn Clock>,
    pub(super) power: Arc<Power>,
    pub(super) faults: Faults,
    pub(super) seed: u64,
}

/// An append that is under way.
struct Writing<'a> {
    spool: &'a SimulatedSpool,
    name: &'a str,
    offset: u64,
    bytes: Bytes,
    is_done: bool,
}

impl Writing<'_> {
    fn finish(&mut self) -> io::Result<()> {
        self.is_done = true;
        let bytes = self.bytes.clone();
        self.spool
            .files
            .append(self.name, self.offset, bytes)
            .now_or_never()
            .unwrap_or_else(|| Err(io::Error::other("memory does not wait")))
    }

    /// A part of it is written, maybe nothing, maybe all.
    fn tear(&mut self) {
        let about = format!("torn {} {}", self.name, self.offset);
        let whole = u64::try_from(self.bytes.len()).unwrap_or(u64::MAX);
        let kept = below(whole + 1, self.spool.seed, about);
        self.bytes.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        self.is_done = true;
        if self.offset > 0 || kept > 0 {
            // How it ended is not known to anybody.
            self.finish().ok();
        }
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if self.is_done {
            return;
        }
        if self.spool.power.is_cut() {
            self.tear();
        } else {
            // Nobody is left to be told how it ended.
            self.finish().ok();
        }
    }
}

impl SimulatedSpool {
    /// Takes a while, longer while the outputs stand still; or fails while the disk does.
    async fn take_time(&self, name: &str) -> io::Result<()> {
        self.power.needed().await;
        let now = self.clock.now();
        if disk_fails(&self.faults, now) {
            self.faults.count(Fault::Disk);
            return Err(io::Error::other("the simulated disk is full"));
        }
        let about = format!("disk {name} {}", now.as_millis());
        let millis = 1 + below(WRITE_MS_MAX, self.seed, about);
        self.clock.sleep(Duration::from_millis(millis)).await;
        if name.starts_with(OUTPUTS)
            && let Some(until) = standstill(&self.faults, OUTPUTS, now)
        {
            self.faults.count(Fault::Parser);
            self.clock.sleep_until(until).await;
        }
        self.power.needed().await;
        Ok(())
    }
}

#[async_trait]
impl Spool for SimulatedSpool {
    async fn append(&self, name: &str, offset: u64, bytes: Bytes) -> io::Result<()> {
        self.power.needed().await;
        self.power.step(Step::FileBegun);
        let mut writing = Writing { spool: self, name, offset, bytes, is_done: false };
        if let Err(full) = self.take_time(name).await {
            writing.tear();
            return Err(full);
        }
        writing.finish()?;
        self.power.step(Step::FileEnded);
        self.power.needed().await;
        Ok(())
    }

    async fn read(&self, name: &str, offset: u64, length: u64) -> io::Result<Bytes> {
        self.files.read(name, offset, length).await
    }

    async fn truncate(&self, name: &str, length: u64) -> io::Result<()> {
        self.take_time(name).await?;
        self.files.truncate(name, length).await
    }

    async fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.take_time(from).await?;
        self.files.rename(from, to).await
    }

    async fn remove(&self, name: &str) -> io::Result<()> {
        self.power.needed().await;
        self.files.remove(name).await
    }

    async fn list(&self, folder: &str) -> io::Result<Vec<(String, u64)>> {
        self.files.list(folder).await
    }
}

/// Snapshots of sleeping hosts; a crash finds some of them missing and some of them old.
#[derive(Default)]
pub(super) struct SimulatedSnapshots(Mutex<BTreeMap<HostId, [Option<Vec<u8>>; 2]>>);

impl SimulatedSnapshots {
    /// What was not synced is gone.
    pub(super) fn crash(&self, seed: u64) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (host, [newest, before]) in kept.iter_mut() {
            match draw(seed, format_args!("snapshot {host}")) % 4 {
                0 => *newest = None,
                1 => *newest = before.take(),
                _ => {}
            }
        }
    }
}

/// The snapshots as one life of the node writes them.
#[derive(Debug)]
pub(super) struct SnapshotsOfLife {
    pub(super) kept: Arc<SimulatedSnapshots>,
    pub(super) power: Arc<Power>,
}

impl SnapshotStore for SnapshotsOfLife {
    fn get(&self, host: HostId) -> Option<Vec<u8>> {
        self.kept.get(host)
    }

    fn put(&self, host: HostId, snapshot: Vec<u8>) {
        if !self.power.is_cut() {
            self.kept.put(host, snapshot);
            self.power.step(Step::Snapshot);
        }
    }

    fn remove(&self, host: HostId) {
        if !self.power.is_cut() {
            self.kept.remove(host);
        }
    }
}

impl SimulatedSnapshots {
    fn get(&self, host: HostId) -> Option<Vec<u8>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.get(&host).and_then(|[newest, _]| newest.clone())
    }

    fn put(&self, host: HostId, snapshot: Vec<u8>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [newest, before] = kept.entry(host).or_default();
        *before = newest.replace(snapshot);
    }

    fn remove(&self, host: HostId) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [newest, before] = kept.entry(host).or_default();
        *before = newest.take();
    }
}

impl fmt::Debug for SimulatedSnapshots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SimulatedSnapshots")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Timestamp;
    use crate::world::TokioClock;

    fn spool() -> SimulatedSpool {
        SimulatedSpool {
            files: Arc::default(),
            clock: Arc::new(TokioClock::starting_at(Timestamp::EPOCH)),
            power: Arc::new(Power::new(None)),
            faults: Faults::new(1, Timestamp::EPOCH, std::collections::BTreeSet::new()),
            seed: 1,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_nobody_waits_for_is_done_unless_the_power_is_cut() {
        let spool = spool();
        let whole = || Bytes::from(vec![b'x'; 1000]);
        drop(spool.append("a/one", 0, whole()).now_or_never());
        assert_eq!(spool.files.content("a/one").map(|content| content.len()), Some(1000));
        spool.append("a/one", 1000, whole()).await.unwrap();
        let writing = spool.append("a/one", 2000, whole());
        let mut writing = Box::pin(writing);
        assert!(futures::poll!(&mut writing).is_pending());
        spool.power.cut();
        drop(writing);
        let length = spool.files.content("a/one").unwrap().len();
        assert!((2000..3000).contains(&length), "{length}");
    }

    #[test]
    fn a_crash_loses_some_snapshots_and_leaves_some_old() {
        let snapshots = SimulatedSnapshots::default();
        for host in 0..100 {
            snapshots.put(HostId(host), vec![1]);
            snapshots.put(HostId(host), vec![2]);
        }
        snapshots.crash(5);
        let found: Vec<_> = (0..100).map(|host| snapshots.get(HostId(host))).collect();
        for kind in [None, Some(vec![1]), Some(vec![2])] {
            assert!(found.iter().filter(|found| **found == kind).count() > 5, "{kind:?}");
        }
    }
}
