//! Seeds and links in, admitted URLs out.
//!
//! In: seeds of operators, links of parsed pages. Out: batches of candidates for the shards that
//! own their hosts; when those have answered, the page goes to the outputs. Every refusal has a
//! [`crate::types::Reason`] and is counted; nothing is awaited per URL.

mod settings;
mod steps;
mod judge;
mod actor;

pub use actor::{DiscoveryActor, DiscoveryArgs};
pub use settings::DiscoverySettings;
