//! To a FetchActor: nothing but to take the next job; the jobs come over a bounded channel.

use std::sync::Arc;

use ractor::ActorRef;

use super::{AddressMsg, ShardMsg};
use crate::types::Lease;

/// The mailbox of a FetchActor.
#[derive(Debug)]
pub enum FetchMsg {
    /// Take the next job from the channel; sent by itself to itself.
    Next,
}

/// One lease to be served, durable already (I7).
#[derive(Clone, Debug)]
pub struct FetchJob {
    /// The lease, bound to an address.
    pub lease: Arc<Lease>,
    /// Who granted it.
    pub shard: ActorRef<ShardMsg>,
    /// The owner of its address's clock; asked once more just before sending.
    pub address: ActorRef<AddressMsg>,
}
