//! What the crawler meets, as traits with a real and a simulated side: clock, dice, exchange,
//! resolver, snapshots, spool.
//!
//! In: questions of the stages. Out: answers of the world. The whole world of a node is one value,
//! injected everywhere, so that many nodes live in one process and a simulation replaces all of it.

mod clock;
mod dice;
mod exchange;
mod resolver;
mod snapshots;
mod spool;

pub use clock::{Clock, TokioClock};
pub use dice::{Dice, SeededDice};
pub use exchange::{
    Exchange, ExchangeFailure, ExchangeLimits, ExchangeRequest, Exchanged, Oversize,
};
pub use resolver::{Resolved, Resolver};
pub use snapshots::SnapshotStore;
pub use spool::{DirectorySpool, MemorySpool, Spool};
