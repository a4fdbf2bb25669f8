//! The number of shards: chosen at the first start, and kept in every shard's store. With another
//! number hosts would lie elsewhere, so what is known of them would be forgotten (I3, I4).

use std::time::Duration;

use super::error::NodeError;
use crate::policy::change::Change;
use crate::storage::{Batch, ShardStore, StoreError};

/// The row that keeps it.
const SHARDS_ROW: &str = "shards";
/// The first row must be durable by then.
const KEPT_WITHIN: Duration = Duration::from_secs(10);

/// Refuses another number than the one this store was made with; a new store keeps it.
pub(super) async fn agree(store: &ShardStore, wanted: u16) -> Result<(), NodeError> {
    let failed = |source| NodeError::Store { shard: store.shard(), source: Box::new(source) };
    match store.meta(SHARDS_ROW).await.map_err(failed)? {
        None => keep(store, wanted).await.map_err(failed),
        Some(row) => match <[u8; 2]>::try_from(row).map(u16::from_be_bytes) {
            Ok(found) if found == wanted => Ok(()),
            Ok(found) => Err(NodeError::Shards { wanted, found }),
            Err(_) => Err(failed(StoreError::Damaged { what: "its number of shards is none" })),
        },
    }
}

async fn keep(store: &ShardStore, wanted: u16) -> Result<(), StoreError> {
    let mut batch = Batch::new();
    batch.push(Change::PutMeta(SHARDS_ROW, wanted.to_be_bytes().to_vec()));
    store.write(batch).await?;
    store.flush(KEPT_WITHIN).await
}
