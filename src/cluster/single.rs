//! The coordinator of a cluster of one: this node owns every shard, for good.
//!
//! The data directory's lock keeps a second process out, and the store fences an older writer.

use async_trait::async_trait;

use crate::types::{ShardId, Timestamp};
use crate::world::{Coordinator, Ownership};

/// A cluster of one.
#[derive(Clone, Copy, Debug, Default)]
pub struct SingleNode;

#[async_trait]
impl Coordinator for SingleNode {
    async fn own(&self, shards: u16) -> Result<Vec<Ownership>, String> {
        let shards = (0..shards).map(ShardId);
        Ok(shards.map(|shard| Ownership { shard, until: Timestamp::NEVER }).collect())
    }

    async fn release(&self, _shard: ShardId) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_node_owns_every_shard() {
        let owned = SingleNode.own(4).await.unwrap();
        let shards: Vec<u16> = owned.iter().map(|owned| owned.shard.0).collect();
        assert_eq!(shards, [0, 1, 2, 3]);
        assert!(owned.iter().all(|owned| owned.until == Timestamp::NEVER));
    }
}
