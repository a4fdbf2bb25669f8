//! One struct per noteworthy event; emitting it writes the log line and moves the metric.

use std::time::Duration;

use tracing::{error, info, warn};

use super::metrics::{Counter, Metrics};
use crate::types::{Epoch, HostKey, PurgeRecord, ShardId};

/// A1: a host's actor failed too often in a row and is left alone until an operator resumes it.
#[derive(Clone, Debug)]
pub struct HostParked<'a> {
    /// The host.
    pub host: &'a HostKey,
    /// Failures in a row.
    pub failures: u32,
}

impl HostParked<'_> {
    /// Writes the log line and moves the metric.
    pub fn emit(&self, metrics: &Metrics) {
        metrics.add(Counter::HostsParked, 1);
        warn!(host = %self.host, failures = self.failures, "host parked");
    }
}

/// A shard, or what it depends on, failed, and it is open again.
#[derive(Clone, Debug)]
pub struct ShardReopened {
    /// The shard.
    pub shard: ShardId,
    /// Its new term.
    pub epoch: Epoch,
    /// How long it was away.
    pub away: Duration,
}

impl ShardReopened {
    /// Writes the log line and moves the metric.
    pub fn emit(&self, metrics: &Metrics) {
        metrics.add(Counter::ShardsReopened, 1);
        let away_seconds = self.away.as_secs_f64();
        warn!(shard = %self.shard, epoch = %self.epoch, away_seconds, "shard opened again");
    }
}

/// A worker of a pool died over a job and was started again.
#[derive(Clone, Debug)]
pub struct WorkerRestarted<'a> {
    /// The pool.
    pub pool: &'a str,
    /// What it died of, as far as it said.
    pub why: &'a str,
}

impl WorkerRestarted<'_> {
    /// Writes the log line and moves the metric.
    pub fn emit(&self, metrics: &Metrics) {
        metrics.add(Counter::WorkersRestarted, 1);
        warn!(pool = self.pool, why = self.why, "worker restarted");
    }
}

/// An archive file is published with its index.
#[derive(Clone, Debug)]
pub struct ArchiveFileClosed<'a> {
    /// Its name.
    pub file: &'a str,
    /// Records in it.
    pub records: u64,
    /// Its size.
    pub bytes: u64,
}

impl ArchiveFileClosed<'_> {
    /// Writes the log line and moves the metric.
    pub fn emit(&self, metrics: &Metrics) {
        metrics.add(Counter::ArchiveFilesClosed, 1);
        info!(file = self.file, records = self.records, bytes = self.bytes, "archive file closed");
    }
}

/// A file ended in the middle of a record after a crash; the rest was cut off.
#[derive(Clone, Debug)]
pub struct TornTailCut<'a> {
    /// The file.
    pub file: &'a str,
    /// Bytes cut off.
    pub bytes: u64,
    /// What is wrong with the first of them.
    pub why: &'a str,
}

impl TornTailCut<'_> {
    /// Writes the log line and moves the metric.
    pub fn emit(&self, metrics: &Metrics) {
        metrics.add(Counter::ArchiveBytesCut, self.bytes);
        warn!(file = self.file, bytes = self.bytes, why = self.why, "torn tail cut");
    }
}

/// A4: a shard's store refused a write or a flush, which is tried again.
#[derive(Clone, Debug)]
pub struct StoreFailed<'a> {
    /// The shard.
    pub shard: ShardId,
    /// The store's words.
    pub why: &'a str,
}

impl StoreFailed<'_> {
    /// Writes the log line and moves the metric.
    pub fn emit(&self, metrics: &Metrics) {
        metrics.add(Counter::StoreFailures, 1);
        error!(shard = %self.shard, why = self.why, "store failed, tried again");
    }
}

/// A4: a local disk, full or broken, refused a write, which is tried again.
#[derive(Clone, Debug)]
pub struct DiskFailed<'a> {
    /// What was written.
    pub what: &'a str,
    /// The system's words.
    pub why: &'a str,
}

impl DiskFailed<'_> {
    /// Writes the log line and moves the metric.
    pub fn emit(&self, metrics: &Metrics) {
        metrics.add(Counter::DiskFailures, 1);
        error!(what = self.what, why = self.why, "disk failed, tried again");
    }
}

/// R5: all that was stored of an exclusion is removed.
#[derive(Clone, Debug)]
pub struct PurgeDone<'a> {
    /// What was ordered and what is gone.
    pub record: &'a PurgeRecord,
}

impl PurgeDone<'_> {
    /// Writes the log line and moves the metrics.
    pub fn emit(&self, metrics: &Metrics) {
        let PurgeRecord { rule, removed, urls, unreadable, .. } = self.record;
        metrics.add(Counter::PurgesDone, 1);
        metrics.add(Counter::PurgedRecords, removed.records + removed.page_records);
        let (records, pages) = (removed.records, removed.page_records);
        if *unreadable > 0 {
            error!(rule, unreadable, "files could not be looked through to their end for a purge");
        }
        info!(rule, records, pages, urls, "what was stored of an exclusion is removed");
    }
}

/// The configuration was read again.
#[derive(Clone, Debug)]
pub struct ConfigReloaded<'a> {
    /// Keys that changed and are in force.
    pub applied: &'a [String],
    /// Keys that changed and wait for a restart.
    pub needs_restart: &'a [String],
}

impl ConfigReloaded<'_> {
    /// Writes the log line and moves the metric.
    pub fn emit(&self, metrics: &Metrics) {
        metrics.add(Counter::ConfigReloads, 1);
        let (applied, needs_restart) = (self.applied, self.needs_restart);
        info!(?applied, ?needs_restart, "configuration reloaded");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emitting_moves_the_metric() {
        let metrics = Metrics::new();
        let host = HostKey::parse("https://a.test").unwrap();
        HostParked { host: &host, failures: 3 }.emit(&metrics);
        TornTailCut { file: "a.warc.gz", bytes: 512, why: "torn" }.emit(&metrics);
        StoreFailed { shard: ShardId(1), why: "fenced" }.emit(&metrics);
        assert_eq!(metrics.count(Counter::HostsParked), 1);
        assert_eq!(metrics.count(Counter::ArchiveBytesCut), 512);
        assert_eq!(metrics.count(Counter::StoreFailures), 1);
    }
}
