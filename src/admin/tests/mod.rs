//! The interface as its users meet it, against actors that say what a test wants.

mod fakes;
mod shard;
mod described;
mod reads;
mod orders;
mod feed;
mod serving;
