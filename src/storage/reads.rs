//! What a shard reads back. Lists take a `limit` of rows and go on behind the last one seen.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use serde::de::DeserializeOwned;
use slatedb::config::{DurabilityLevel, ScanOptions};
use slatedb::{DbIterator, KeyValue};

use super::batch::SleeperRow;
use super::codec::{self, CodecError};
use super::error::StoreError;
use super::keys::{self, Key, KeyRange, Kind};
use super::store::ShardStore;
use crate::policy::window::{WindowRequest, WindowRows};
use crate::types::{
    ContentRecord, DeadLetter, HostCounts, HostId, HostKey, HostRecord, QueueEntry, Reason,
    RobotsRecord, Timestamp, ToParse, UrlId, UrlRecord, UrlVersion, VisitRecord,
};

/// Reads of one gathered look-up that are under way at once.
const GATHERED_READS_MAX: usize = 64;
/// Bytes a window asks for at a time: about as many as it has.
const WINDOW_BYTES: usize = 16 << 10;
/// Hosts read at once where all are looked through.
const HOSTS_AT_ONCE: usize = 1000;
/// Bytes a long scan asks for at a time.
const READ_AHEAD_BYTES: usize = 64 << 10;

/// How a scan treats the store.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scan {
    /// Short and soon repeated: its blocks stay in the cache.
    Hot,
    /// Long and rare: it pushes nothing out of the cache.
    Cold,
    /// As cold, and only what is durable.
    Durable,
}

impl ShardStore {
    /// What a URL is; `None` when it is not known (I4).
    ///
    /// # Errors
    /// The row is damaged or the store does not answer; so for all reads.
    pub async fn url(&self, id: UrlId) -> Result<Option<UrlRecord>, StoreError> {
        self.row(Key::Url(id)).await
    }

    /// What many URLs are, in the order asked: one gathered read.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn urls_many(&self, ids: &[UrlId]) -> Result<Vec<Option<UrlRecord>>, StoreError> {
        stream::iter(ids.to_vec())
            .map(|id| self.url(id))
            .buffered(GATHERED_READS_MAX)
            .try_collect()
            .await
    }

    /// How a URL's last visit went.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn visit(&self, id: UrlId) -> Result<Option<VisitRecord>, StoreError> {
        let good: Option<VisitRecord> = self.row(Key::Visit(id)).await?;
        let failing: Option<VisitRecord> = self.row(Key::Failing(id)).await?;
        Ok(match (good, failing) {
            (Some(good), Some(failing)) => Some(good.failing(failing)),
            (good, failing) => good.or(failing),
        })
    }

    /// A host's row and counts.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn host(&self, id: HostId) -> Result<Option<(HostRecord, HostCounts)>, StoreError> {
        let Some(record) = self.row(Key::Host(id)).await? else { return Ok(None) };
        let counts = self.row(Key::Counts(id)).await?.unwrap_or_default();
        Ok(Some((record, counts)))
    }

    /// A host's last robots.txt.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn robots(&self, id: HostId) -> Result<Option<RobotsRecord>, StoreError> {
        let key = Key::Robots(id);
        let row = self.db().get(key.encode()).await.map_err(StoreError::engine("read"))?;
        Ok(row.map(|row| codec::decode(key.kind(), &row)).transpose()?)
    }

    /// F10: a window over one band of a host's queue, behind `after`; true when nothing is left
    /// behind it.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn queue_window(
        &self,
        host: HostId,
        band: u8,
        after: Option<(u64, UrlId)>,
        limit: usize,
    ) -> Result<(Vec<QueueEntry>, bool), StoreError> {
        let seen = after.map(|(order, id)| Key::Queue { band, order, id });
        let range = keys::after(keys::band_range(host, band), seen.as_ref());
        let rows = self.scan(range, limit, Scan::Hot).await?;
        let exhausted = rows.len() < limit;
        Ok((rows_of(Kind::Queue, &rows)?, exhausted))
    }

    /// F10: a window over the bands of a host's queue. One scan for all of them, since opening a
    /// scan costs more than reading its rows: it reads a band, then seeks the next.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn queue_windows(
        &self,
        host: HostId,
        request: &WindowRequest,
    ) -> Result<WindowRows, StoreError> {
        let mut windows = WindowRows::default();
        let mut wanted: Vec<(usize, KeyRange)> = Vec::new();
        for (at, _) in request.limit.iter().enumerate().filter(|(_, limit)| **limit > 0) {
            let band = u8::try_from(at).unwrap_or(u8::MAX);
            let seen = request.after[at].map(|(order, id)| Key::Queue { band, order, id });
            let range = keys::after(keys::band_range(host, band), seen.as_ref());
            wanted.push((at, range));
        }
        let (Some(first), Some(last)) = (wanted.first(), wanted.last()) else { return Ok(windows) };
        let range = first.1.start.clone()..last.1.end.clone();
        let options =
            ScanOptions::new().with_cache_blocks(true).with_read_ahead_bytes(WINDOW_BYTES);
        let engine = StoreError::engine;
        let scan = self.db().scan_with_options(range, &options);
        let mut scan = Box::pin(scan).await.map_err(engine("scan"))?;
        // The first row behind the band before, which that band cannot use.
        let mut ahead: Option<KeyValue> = None;
        let mut read = 0;
        for (at, range) in wanted {
            let limit = request.rows_of(at, read);
            let known = ahead.as_ref().is_some_and(|row| row.key[..] >= range.start[..]);
            if !known && range.start < range.end {
                ahead = None;
                scan.seek(&range.start).await.map_err(engine("scan"))?;
            }
            let mut rows: Vec<KeyValue> = Vec::new();
            while rows.len() < limit {
                let row = match ahead.take() {
                    Some(row) => Some(row),
                    None => scan.next().await.map_err(engine("scan"))?,
                };
                match row {
                    Some(row) if row.key[..] < range.end[..] => rows.push(row),
                    beyond => {
                        ahead = beyond;
                        break;
                    }
                }
            }
            read += rows.len();
            windows.exhausted[at] = rows.len() < limit;
            windows.rows[at] = rows_of(Kind::Queue, &rows)?;
        }
        Ok(windows)
    }

    /// What is due before `end`, earliest first (F8, C1).
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn due_before(
        &self,
        end: Timestamp,
        limit: usize,
    ) -> Result<Vec<(Timestamp, QueueEntry)>, StoreError> {
        let range = keys::time_range(Kind::Due, Timestamp::EPOCH, end);
        keyed(Kind::Due, &self.scan(range, limit, Scan::Hot).await?, due_of)
    }

    /// When the next retry or revisit at or after `from` is due.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn next_due_after(&self, from: Timestamp) -> Result<Option<Timestamp>, StoreError> {
        let range = keys::time_range(Kind::Due, from, Timestamp::NEVER);
        let rows = self.scan(range, 1, Scan::Hot).await?;
        match rows.first() {
            Some(row) => key_of(Kind::Due, row, due_of).map(Some),
            None => Ok(None),
        }
    }

    /// When the next retry or revisit is due.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn next_due(&self) -> Result<Option<Timestamp>, StoreError> {
        let rows = self.scan(Kind::Due.range(), 1, Scan::Hot).await?;
        match rows.first() {
            Some(row) => key_of(Kind::Due, row, due_of).map(Some),
            None => Ok(None),
        }
    }

    /// R2: URLs of a host that its robots rules refuse, with the rule. Woken ones leave the list.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn sleepers(
        &self,
        host: HostId,
        after: Option<UrlId>,
        limit: usize,
    ) -> Result<Vec<(QueueEntry, Reason)>, StoreError> {
        let range = keys::host_range(Kind::Sleeper, host);
        let range = keys::after(range, after.map(Key::Sleeper).as_ref());
        let rows = self.scan(range, limit, Scan::Cold).await?;
        let rows: Vec<SleeperRow> = rows_of(Kind::Sleeper, &rows)?;
        Ok(rows.into_iter().map(|row| (row.entry, row.reason)).collect())
    }

    /// R2: hosts whose sleepers a crash kept from being judged by new rules: a few, if any.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn unjudged(&self) -> Result<Vec<HostId>, StoreError> {
        let rows = self.scan(Kind::Unjudged.range(), usize::MAX, Scan::Cold).await?;
        let host = |key: Key| if let Key::Unjudged(host) = key { Some(host) } else { None };
        rows.iter().map(|row| key_of(Kind::Unjudged, row, host)).collect()
    }

    /// Hosts that have seeds.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn seeded_hosts(&self) -> Result<Vec<HostKey>, StoreError> {
        let (mut after, mut seeded) = (None, Vec::new());
        loop {
            let hosts = self.hosts(after, HOSTS_AT_ONCE).await?;
            let Some((last, ..)) = hosts.last() else { return Ok(seeded) };
            after = Some(*last);
            let hosts = hosts.into_iter().filter(|(_, _, counts)| counts.seeds > 0);
            seeded.extend(hosts.map(|(_, record, _)| record.key));
        }
    }

    /// Hosts in the order of their ids, with their counts.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn hosts(
        &self,
        after: Option<HostId>,
        limit: usize,
    ) -> Result<Vec<(HostId, HostRecord, HostCounts)>, StoreError> {
        let range = keys::after(Kind::Host.range(), after.map(Key::Counts).as_ref());
        // A host has up to two rows; one more tells whether the last one's counts follow.
        let rows = self.scan(range, limit.saturating_mul(2).saturating_add(1), Scan::Cold).await?;
        let mut hosts: Vec<(HostId, HostRecord, HostCounts)> = Vec::new();
        for row in &rows {
            let key = Key::decode(&row.key);
            if let Some(Key::Host(id)) = key {
                if hosts.len() == limit {
                    break;
                }
                hosts.push((id, codec::decode(Kind::Host, &row.value)?, HostCounts::default()));
            } else if let Some(Key::Counts(id)) = key {
                if let Some(host) = hosts.last_mut().filter(|(host, ..)| *host == id) {
                    host.2 = codec::decode(Kind::Counts, &row.value)?;
                }
            } else {
                return Err(foreign_key(Kind::Host, row).into());
            }
        }
        Ok(hosts)
    }

    /// P4: fetched pages that wait for their parser, behind `after`.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn to_parse(
        &self,
        after: Option<(UrlId, UrlVersion)>,
        limit: usize,
    ) -> Result<Vec<ToParse>, StoreError> {
        let seen = after.map(|(id, version)| Key::ToParse(id, version));
        let range = keys::after(Kind::ToParse.range(), seen.as_ref());
        let rows = self.scan(range, limit, Scan::Cold).await?;
        rows.iter().map(|row| Ok(codec::decode(Kind::ToParse, &row.value)?)).collect()
    }

    /// F8: dead letters behind `after`.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn dead(
        &self,
        after: Option<UrlId>,
        limit: usize,
    ) -> Result<Vec<DeadLetter>, StoreError> {
        let range = keys::after(Kind::Dead.range(), after.map(Key::Dead).as_ref());
        rows_of(Kind::Dead, &self.scan(range, limit, Scan::Cold).await?)
    }

    /// D3: where a payload lies, by its digest.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn payload(&self, digest: &str) -> Result<Option<ContentRecord>, StoreError> {
        self.row(Key::Payload(digest.to_owned())).await
    }

    /// D3: which page has a text, by its hash.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn text(&self, hash: u128) -> Result<Option<ContentRecord>, StoreError> {
        self.row(Key::Text(hash)).await
    }

    /// A named value of the shard.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn meta(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.row(Key::Meta(name.to_owned())).await
    }

    /// B6: the committed state of an output.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn output(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.row(Key::Output(name.to_owned())).await
    }

    /// The URLs of a host, in the order of their ids.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn host_urls(
        &self,
        host: HostId,
        after: Option<UrlId>,
        limit: usize,
    ) -> Result<Vec<(UrlId, UrlRecord)>, StoreError> {
        let range = keys::after(keys::host_range(Kind::Url, host), after.map(Key::Url).as_ref());
        keyed(Kind::Url, &self.scan(range, limit, Scan::Cold).await?, url_of)
    }

    /// The ids of the URL table: what a filter is rebuilt from.
    ///
    /// # Errors
    /// As [`ShardStore::url`].
    pub async fn url_ids(
        &self,
        after: Option<UrlId>,
        limit: usize,
    ) -> Result<Vec<UrlId>, StoreError> {
        let range = keys::after(Kind::Url.range(), after.map(Key::Url).as_ref());
        let rows = self.scan(range, limit, Scan::Cold).await?;
        rows.iter().map(|row| key_of(Kind::Url, row, url_of)).collect()
    }

    pub(super) async fn row<T: DeserializeOwned>(&self, key: Key) -> Result<Option<T>, StoreError> {
        let row: Option<Bytes> =
            self.db().get(key.encode()).await.map_err(StoreError::engine("read"))?;
        Ok(row.map(|row| codec::decode(key.kind(), &row)).transpose()?)
    }

    pub(super) async fn scan(
        &self,
        range: KeyRange,
        limit: usize,
        scan: Scan,
    ) -> Result<Vec<KeyValue>, StoreError> {
        if range.start >= range.end || limit == 0 {
            return Ok(Vec::new());
        }
        let mut found = self.begin_scan(range, scan).await?;
        let mut rows = Vec::new();
        while rows.len() < limit {
            match found.next().await.map_err(StoreError::engine("scan"))? {
                Some(row) => rows.push(row),
                None => break,
            }
        }
        Ok(rows)
    }

    /// A scan that is read as far as its caller wants.
    pub(super) async fn begin_scan(
        &self,
        range: KeyRange,
        scan: Scan,
    ) -> Result<DbIterator, StoreError> {
        let options = match scan {
            Scan::Hot => ScanOptions::new().with_cache_blocks(true),
            Scan::Cold => ScanOptions::new().with_read_ahead_bytes(READ_AHEAD_BYTES),
            Scan::Durable => ScanOptions::new().with_durability_filter(DurabilityLevel::Remote),
        };
        let scan = self.db().scan_with_options(range, &options);
        Box::pin(scan).await.map_err(StoreError::engine("scan"))
    }
}

fn due_of(key: Key) -> Option<Timestamp> {
    if let Key::Due { due, .. } = key { Some(due) } else { None }
}

fn url_of(key: Key) -> Option<UrlId> {
    if let Key::Url(id) = key { Some(id) } else { None }
}

pub(super) fn key_of<K>(
    kind: Kind,
    row: &KeyValue,
    place: fn(Key) -> Option<K>,
) -> Result<K, StoreError> {
    Key::decode(&row.key).and_then(place).ok_or_else(|| foreign_key(kind, row).into())
}

pub(super) fn rows_of<T: DeserializeOwned>(
    kind: Kind,
    rows: &[KeyValue],
) -> Result<Vec<T>, StoreError> {
    rows.iter().map(|row| Ok(codec::decode(kind, &row.value)?)).collect()
}

/// Rows with what their keys say.
pub(super) fn keyed<K, T: DeserializeOwned>(
    kind: Kind,
    rows: &[KeyValue],
    place: fn(Key) -> Option<K>,
) -> Result<Vec<(K, T)>, StoreError> {
    rows.iter()
        .map(|row| Ok((key_of(kind, row, place)?, codec::decode(kind, &row.value)?)))
        .collect()
}

fn foreign_key(kind: Kind, row: &KeyValue) -> CodecError {
    CodecError::Key { kind, key: row.key.to_vec() }
}
