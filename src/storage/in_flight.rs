//! F5: what is in flight, read from the ledger: grants that have not ended there.
//!
//! A grant has no row but that of the ledger. So that a start reads little of it, a named row says
//! from which time on open grants can be found; every grant is written with one that is not later.

use std::collections::{BTreeMap, BTreeSet};

use super::error::StoreError;
use super::store::ShardStore;
use crate::policy::change::Change;
use crate::types::{Lease, LeaseId, LedgerRow, Timestamp};

/// The row that says from when on.
const OPEN_SINCE_ROW: &str = "open_since";
/// Entries of the ledger that are read at once.
const LEDGER_PAGE: usize = 2000;

/// A grant that has not ended.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenLease {
    /// The time it has in the ledger.
    pub recorded_at: Timestamp,
    /// The lease.
    pub lease: Lease,
}

/// No grant that is open, or is written in this batch or later, has an earlier time in the ledger.
pub fn open_since(at: Timestamp) -> Change {
    Change::PutMeta(OPEN_SINCE_ROW, at.as_millis().to_be_bytes().to_vec())
}

impl ShardStore {
    /// F5: every grant in flight, in the order of lease ids; their number is bounded by the
    /// fetchers' credit. Reads the ledger since the oldest of them.
    ///
    /// # Errors
    /// A row is damaged or the store does not answer.
    pub async fn open_leases(&self) -> Result<Vec<OpenLease>, StoreError> {
        let mut open: BTreeMap<LeaseId, OpenLease> = BTreeMap::new();
        // Of grants that lie before, and should an end ever stand before its grant.
        let mut ended: BTreeSet<LeaseId> = BTreeSet::new();
        let since = self.since().await?;
        let mut after = None;
        loop {
            let (entries, more) = self.ledger(since, after, LEDGER_PAGE).await?;
            for (at, row) in entries {
                match row {
                    LedgerRow::Granted { lease, .. } => {
                        let id = lease.id;
                        if !ended.remove(&id) {
                            let lease = Lease::clone(&lease);
                            open.insert(id, OpenLease { recorded_at: at, lease });
                        }
                    }
                    LedgerRow::Ended { lease, .. } => {
                        if open.remove(&lease).is_none() {
                            ended.insert(lease);
                        }
                    }
                }
            }
            if more.is_none() {
                break;
            }
            after = more;
        }
        Ok(open.into_values().collect())
    }

    async fn since(&self) -> Result<Timestamp, StoreError> {
        let Some(row) = self.meta(OPEN_SINCE_ROW).await? else { return Ok(Timestamp::EPOCH) };
        let millis = <[u8; 8]>::try_from(row.as_slice());
        let damaged = |_| StoreError::Damaged { what: "the time of its oldest grant" };
        Ok(Timestamp::from_millis(i64::from_be_bytes(millis.map_err(damaged)?)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::storage::{Batch, StoreOptions};
    use crate::types::{
        CrawlUrl, DelaySource, Epoch, HostKey, LeaseKind, Outcome, QueueEntry, ShardId, UrlId,
        UrlVersion,
    };
    use crate::world::{Objects, TokioClock};

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + millis)
    }

    fn granted(id: u64, recorded_at: i64) -> Change {
        let host = HostKey::parse("https://a.test").unwrap();
        let entry = QueueEntry {
            id: UrlId { host: host.id(), hash: id, disambiguator: 0 },
            version: UrlVersion::FIRST,
            url: CrawlUrl::parse(&format!("https://a.test/{id}")).unwrap(),
            depth: 0,
            band: 0,
            order: 0,
            attempts: 0,
            redirects: 0,
            validators: None,
            discovered_from: None,
        };
        let lease = Lease {
            id: LeaseId(id),
            kind: LeaseKind::Page,
            host,
            entry,
            epoch: Epoch(1),
            granted_at: at(0),
            not_before: at(0),
            expires_at: at(300_000),
            address: None,
        };
        let (set_by, policy) = (DelaySource::MinDelay, 0);
        let row = LedgerRow::Granted { lease: Arc::new(lease), set_by, policy };
        Change::Record { at: at(recorded_at), row: Box::new(row) }
    }

    fn ended(id: u64, recorded_at: i64) -> Change {
        let (lease, at) = (LeaseId(id), at(recorded_at));
        let outcome = Outcome::Ok;
        let row = LedgerRow::Ended { lease, sent_at: None, ended_at: at, outcome, address: None };
        Change::Record { at, row: Box::new(row) }
    }

    async fn store() -> ShardStore {
        let options = StoreOptions {
            objects: Objects::memory(),
            path: "0".to_owned(),
            clock: Arc::new(TokioClock::starting_at(at(0))),
            seed: 1,
            memory_bytes_max: 1 << 20,
            cache: None,
            shard: ShardId(0),
        };
        ShardStore::open(options).await.unwrap()
    }

    async fn open_ids(store: &ShardStore) -> Vec<u64> {
        let open = store.open_leases().await.unwrap();
        open.iter().map(|open| open.lease.id.0).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn grants_that_have_not_ended_are_in_flight() {
        let store = store().await;
        assert_eq!(open_ids(&store).await, [0_u64; 0]);
        let rows = vec![granted(1, 10), granted(2, 10), granted(3, 20), ended(2, 15)];
        store.write(Batch::from(rows)).await.unwrap();
        assert_eq!(open_ids(&store).await, [1, 3]);
        let places: Vec<Timestamp> =
            store.open_leases().await.unwrap().iter().map(|open| open.recorded_at).collect();
        assert_eq!(places, [at(10), at(20)]);
        store.write(Batch::from(vec![ended(1, 10), ended(3, 900)])).await.unwrap();
        assert_eq!(open_ids(&store).await, [0_u64; 0]);
        // An end that stands before its grant ends it all the same.
        store.write(Batch::from(vec![ended(4, 900), granted(4, 950)])).await.unwrap();
        assert_eq!(open_ids(&store).await, [0_u64; 0]);
        store.close(Duration::from_secs(5)).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn what_lies_before_the_oldest_open_grant_is_not_read() {
        let store = store().await;
        let rows = vec![granted(1, 10), granted(2, 50), open_since(at(50))];
        store.write(Batch::from(rows)).await.unwrap();
        assert_eq!(open_ids(&store).await, [2], "the first is before the time that is written");
        store.write(Batch::from(vec![open_since(at(10))])).await.unwrap();
        assert_eq!(open_ids(&store).await, [1, 2]);
        store.close(Duration::from_secs(5)).await.unwrap();
    }
}
