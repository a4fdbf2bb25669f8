//! Exclusions, and what their purges read: where content lies, and how visits went, as the rows
//! have it (R5).

use futures::{StreamExt, TryStreamExt, stream};

use super::error::StoreError;
use super::keys::{self, Key, Kind};
use super::reads::{Scan, keyed, rows_of};
use super::store::ShardStore;
use crate::protocol::purge::VisitRows;
use crate::types::{ContentRecord, ExclusionRecord, PurgeRecord, UrlId};

/// Rows of visits that are read at once.
const VISITS_AT_ONCE: usize = 64;

impl ShardStore {
    /// R5: every rule made at runtime.
    ///
    /// # Errors
    /// The row is damaged or the store does not answer; so for all reads.
    pub async fn exclusions(&self) -> Result<Vec<ExclusionRecord>, StoreError> {
        rows_of(Kind::Exclusion, &self.scan(Kind::Exclusion.range(), usize::MAX, Scan::Cold).await?)
    }

    /// Every order to remove what is stored.
    ///
    /// # Errors
    /// As [`ShardStore::exclusions`].
    pub async fn purges(&self) -> Result<Vec<PurgeRecord>, StoreError> {
        rows_of(Kind::Purge, &self.scan(Kind::Purge.range(), usize::MAX, Scan::Cold).await?)
    }

    /// The visits of these URLs.
    ///
    /// # Errors
    /// As [`ShardStore::exclusions`].
    pub async fn visit_rows(&self, ids: Vec<UrlId>) -> Result<Vec<VisitRows>, StoreError> {
        let read = async |id| {
            let failing = self.row(Key::Failing(id)).await?;
            Ok((id, self.row(Key::Visit(id)).await?, failing))
        };
        stream::iter(ids).map(read).buffered(VISITS_AT_ONCE).try_collect().await
    }

    /// D3: where payloads lie, in the order of their digests.
    ///
    /// # Errors
    /// As [`ShardStore::exclusions`].
    pub async fn payloads(
        &self,
        after: Option<String>,
        limit: usize,
    ) -> Result<Vec<(String, ContentRecord)>, StoreError> {
        let range = keys::after(Kind::Payload.range(), after.map(Key::Payload).as_ref());
        let digest = |key: Key| if let Key::Payload(digest) = key { Some(digest) } else { None };
        keyed(Kind::Payload, &self.scan(range, limit, Scan::Cold).await?, digest)
    }

    /// D3: which pages have texts, in the order of the hashes.
    ///
    /// # Errors
    /// As [`ShardStore::exclusions`].
    pub async fn texts(
        &self,
        after: Option<u128>,
        limit: usize,
    ) -> Result<Vec<(u128, ContentRecord)>, StoreError> {
        let range = keys::after(Kind::Text.range(), after.map(Key::Text).as_ref());
        let hash = |key: Key| if let Key::Text(hash) = key { Some(hash) } else { None };
        keyed(Kind::Text, &self.scan(range, limit, Scan::Cold).await?, hash)
    }
}
