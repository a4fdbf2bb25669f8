//! What is durable in a shard, in which order it is written and why.
