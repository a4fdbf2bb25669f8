//! Every message of every actor, one file each, in the order of the flow.
//!
//! Stages know each other only through these types. `actors.md` lists the same messages; a test
//! compares the two. Questions carry an [`Answer`]; what costs memory carries a [`Permit`].

mod answer;
mod credit;
mod owners;
pub mod discovery;
pub mod registry;
pub mod shard;
pub mod at_rest;
pub mod host;
pub mod address;
pub mod fetch;
pub mod archive;
pub mod parse;
pub mod output;
pub mod purge;
pub mod pool;
pub mod root;
#[cfg(test)]
pub(crate) mod probe;

pub use address::AddressMsg;
pub use answer::{Answer, ask};
pub use archive::ArchiveMsg;
pub use credit::{Credit, Permit};
pub use discovery::DiscoveryMsg;
pub use fetch::{FetchJob, FetchMsg};
pub use host::{HostMsg, HostPhase, HostView};
pub use output::OutputMsg;
pub use owners::{Owners, Unheard};
pub use parse::{ParseJob, ParseMsg};
pub use pool::PoolMsg;
pub use purge::PurgeMsg;
pub use registry::{NodeActor, RegistryMsg, Routes, RoutesWatch, ShardRoute};
pub use root::RootMsg;
pub use shard::ShardMsg;
