//! F5: what is in flight, read from the ledger: grants that have not ended there.
//!
//! A grant has no row but that of the ledger. So that a start reads little of it, a named row says
//! from which time on open grants can be found; every grant is written with one that is not later.

use std::collections::BTreeMap;

use super::error::StoreError;
use super::reads::LedgerPlace;
use super::store::ShardStore;
use crate::policy::change::Change;
use crate::types::{Lease, LeaseId, LedgerRow, Timestamp};

/// The row that says from when on.
const OPEN_SINCE_ROW: &str = "open_since";
/// Rows of the ledger that are read at once.
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
        let since = self.since().await?;
        let mut after: Option<LedgerPlace> = None;
        loop {
            let rows = self.ledger(since, Timestamp::NEVER, after, LEDGER_PAGE).await?;
            let Some((last, _)) = rows.last() else { break };
            after = Some(*last);
            for (LedgerPlace { at, lease: id, .. }, row) in rows {
                match row {
                    LedgerRow::Granted { lease, .. } => {
                        let lease = Lease::clone(&lease);
                        open.insert(id, OpenLease { recorded_at: at, lease });
                    }
                    LedgerRow::Ended { lease, .. } => drop(open.remove(&lease)),
                }
            }
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
