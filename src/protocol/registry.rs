//! To the RegistryActor: where a host lives. What it knows is published as [`Routes`], so that
//! nobody asks it per message.

use std::sync::Arc;

use ractor::ActorRef;
use serde::Serialize;
use tokio::sync::watch;

use super::{AddressMsg, Answer, ArchiveMsg, DiscoveryMsg, OutputMsg, PoolMsg, PurgeMsg, ShardMsg};
use crate::policy::placement;
use crate::types::{HostKey, ShardId};

/// The mailbox of the RegistryActor.
#[derive(Debug)]
pub enum RegistryMsg {
    /// A shard is open and takes messages here.
    ShardUp(ShardId, ShardRoute),
    /// A shard is gone until it is up again.
    ShardDown(ShardId),
    /// Another actor of the node started, or started again.
    Started(NodeActor),
    /// Where a host lives.
    Locate(HostKey, Answer<Option<ActorRef<ShardMsg>>>),
    /// Say how it stands.
    Observe(Answer<RegistryView>),
}

/// An actor that a node has beside its shards.
#[derive(Clone, Debug)]
pub enum NodeActor {
    /// The owner of the addresses with this hash.
    Address(u16, ActorRef<AddressMsg>),
    /// Takes seeds and pages.
    Discovery(ActorRef<DiscoveryMsg>),
    /// Takes responses.
    Archive(ActorRef<ArchiveMsg>),
    /// Removes what is stored of exclusions.
    Purge(ActorRef<PurgeMsg>),
    /// Keeps the workers of this name.
    Pool(&'static str, ActorRef<PoolMsg>),
}

/// How to reach a shard and the actors beside it.
#[derive(Clone, Debug)]
pub struct ShardRoute {
    /// The shard.
    pub shard: ActorRef<ShardMsg>,
    /// The outputs that hold its pages.
    pub output: ActorRef<OutputMsg>,
}

/// The map of the frontier at one moment.
#[derive(Clone, Debug, Default)]
pub struct Routes {
    /// By shard number; `None` while a shard is down.
    pub shards: Vec<Option<ShardRoute>>,
    /// The owners of address clocks, by hash of the address.
    pub addresses: Vec<ActorRef<AddressMsg>>,
    /// Takes seeds and pages.
    pub discovery: Option<ActorRef<DiscoveryMsg>>,
    /// Takes responses.
    pub archive: Option<ActorRef<ArchiveMsg>>,
    /// Removes what is stored of exclusions.
    pub purge: Option<ActorRef<PurgeMsg>>,
    /// The pools by name, in the order of the flow.
    pub pools: Vec<(&'static str, ActorRef<PoolMsg>)>,
}

/// A map that is always the newest.
pub type RoutesWatch = watch::Receiver<Arc<Routes>>;

impl Routes {
    /// The shard of a host: by the hash of its registered domain.
    pub fn shard_of(&self, host: &HostKey) -> ShardId {
        placement::shard_of(host.domain(), self.shards.len())
    }

    /// How to reach the shard of a host; `None` while it is down.
    pub fn route(&self, host: &HostKey) -> Option<&ShardRoute> {
        self.shard(self.shard_of(host))
    }

    /// How to reach a shard.
    pub fn shard(&self, shard: ShardId) -> Option<&ShardRoute> {
        self.shards.get(usize::from(shard.0))?.as_ref()
    }

    /// The shard that keeps the index of this content hash.
    pub fn content_shard(&self, key: &str) -> Option<&ShardRoute> {
        self.shard(placement::shard_of(key, self.shards.len()))
    }

    /// The owner of an address's clock.
    pub fn address(&self, address: std::net::IpAddr) -> Option<&ActorRef<AddressMsg>> {
        self.addresses.get(placement::address_owner(address, self.addresses.len()))
    }

    /// Every shard that is up.
    pub fn all(&self) -> impl Iterator<Item = &ShardRoute> {
        self.shards.iter().flatten()
    }
}

/// The state of the RegistryActor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RegistryView {
    /// Shards in all.
    pub shards: u32,
    /// Shards that are up.
    pub up: u32,
}
