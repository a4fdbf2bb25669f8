//! To a ParseActor: nothing but to take the next job; the jobs come over a bounded channel.

use ractor::ActorRef;

use super::{Permit, ShardMsg};
use crate::types::{Response, ToParse};

/// The mailbox of a ParseActor.
#[derive(Debug)]
pub enum ParseMsg {
    /// Take the next job from the channel; sent by itself to itself.
    Next,
}

/// One fetched page to be parsed; its row is in the store.
#[derive(Debug)]
pub struct ParseJob {
    /// The durable row.
    pub row: ToParse,
    /// The response, while memory allows; else it is read back from the archive (P4).
    pub response: Option<Box<Response>>,
    /// The memory the body takes.
    pub permit: Permit,
    /// Who owns the row.
    pub shard: ActorRef<ShardMsg>,
}
