//! The stores of the shards, and their number: chosen at the first start, and kept in every store.
//! With another number hosts would lie elsewhere, so what is known of them would be forgotten (I3,
//! I4).

use std::sync::Arc;
use std::time::Duration;

use super::error::NodeError;
use super::plan::Plan;
use crate::policy::change::Change;
use crate::storage::{Batch, ShardStore, StoreError, StoreOptions};
use crate::types::ShardId;

/// The row that keeps it.
const SHARDS_ROW: &str = "shards";
/// The first row must be durable by then.
const KEPT_WITHIN: Duration = Duration::from_secs(10);

/// Opens stores side by side: each may have a log to replay first.
pub(super) async fn open(
    plan: &Plan,
    shards: impl Iterator<Item = ShardId>,
) -> Result<Vec<ShardStore>, NodeError> {
    let wanted = plan.config().frontier.shards;
    let opening: Vec<_> = shards
        .map(|shard| {
            let options = store_options(plan, shard);
            tokio::spawn(async move {
                let failed = |source| NodeError::Store { shard, source: Box::new(source) };
                let store = ShardStore::open(options).await.map_err(failed)?;
                agree(&store, wanted).await?;
                Ok::<_, NodeError>(store)
            })
        })
        .collect();
    // All of them end before one that failed is reported: nothing is left behind that opens.
    let opened = futures::future::join_all(opening).await;
    opened.into_iter().map(|opened| opened.unwrap_or(Err(NodeError::Silent("the store")))).collect()
}

/// Refuses another number than the one this store was made with; a new store keeps it.
async fn agree(store: &ShardStore, wanted: u16) -> Result<(), NodeError> {
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
    batch.push(&Change::PutMeta(SHARDS_ROW, wanted.to_be_bytes().to_vec()));
    store.write(batch).await?;
    store.flush(KEPT_WITHIN).await
}

fn store_options(plan: &Plan, shard: ShardId) -> StoreOptions {
    let shards = u64::from(plan.config().frontier.shards.max(1));
    StoreOptions {
        objects: plan.world.objects.clone(),
        path: shard.to_string(),
        clock: Arc::clone(&plan.world.clock),
        seed: plan.world.dice.throw(),
        memory_bytes_max: plan.memory.unflushed / shards,
        cache: plan.cache.clone(),
        shard,
    }
}
