//! Who owns which shard (A3, I1).

use std::fmt;

use async_trait::async_trait;

use crate::types::{ShardId, Timestamp};

/// The right to grant leases of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ownership {
    /// The shard.
    pub shard: ShardId,
    /// Until when this node may grant without asking again, on its own clock.
    pub until: Timestamp,
}

/// Hands out shards. Alone: everything, for good. In a cluster: leases in a coordinator.
#[async_trait]
pub trait Coordinator: Send + Sync + fmt::Debug {
    /// The shards of this node among `shards`, each taken until its time.
    ///
    /// # Errors
    /// The coordinator's words, when it does not answer.
    async fn own(&self, shards: u16) -> Result<Vec<Ownership>, String>;

    /// Gives a shard back.
    async fn release(&self, shard: ShardId);
}
