//! To the RootActor: the whole node.

use serde::Serialize;

use super::Answer;
use crate::types::ShardId;

/// The mailbox of the RootActor.
#[derive(Debug)]
pub enum RootMsg {
    /// A shard that failed is to be opened again.
    ReopenShard(ShardId),
    /// The archive failed, and could not be opened again yet.
    ReopenArchive,
    /// Say which actors there are.
    Observe(Answer<ActorNode>),
}

/// A node of the tree of actors: `GET /v1/actors`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ActorNode {
    /// Unique among its siblings.
    pub name: String,
    /// The kind of actor.
    pub kind: String,
    /// Messages or jobs that wait, where the actor knows it.
    pub mailbox: Option<u64>,
    /// Restarts since the start; of a pool or a shard with those of its workers or hosts.
    pub restarts: u64,
    /// What it supervises; at most a thousand are shown.
    pub children: Vec<ActorNode>,
}
