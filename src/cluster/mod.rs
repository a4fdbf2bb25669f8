//! Who owns which shard.
//!
//! In: the number of shards. Out: the shards of this node, with the time until which it may grant.

mod single;

pub use single::SingleNode;
