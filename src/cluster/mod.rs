//! Who owns which shard.
