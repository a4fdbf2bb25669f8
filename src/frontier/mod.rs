//! Admitted URLs in, leases out; one live owner per host.
//!
//! In: batches of candidates, ends of exchanges, operators' orders. Out: leases on credit, pages to
//! be parsed, answers. A host at rest is a row on disk and an entry of its shard's ready queue; a
//! HostActor is resident only while its host has something to do.

mod settings;
mod host;
mod shard;
mod addresses;
mod registry;

pub use addresses::{AddressActor, AddressArgs};
pub use host::{HostActor, robots_view};
pub use registry::{RegistryActor, RegistryArgs};
pub use settings::{FrontierSettings, HostPolicy, SharedQuota};
pub use shard::{InMemory, ShardActor, ShardArgs, facts, is_paused};

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
