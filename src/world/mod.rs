//! What the crawler meets, as traits with a real and a simulated side: clock, dice, exchange,
//! resolver, snapshots, objects, spool, records, coordinator.
//!
//! In: questions of the stages. Out: answers of the world. The whole world of a node is one value,
//! injected everywhere, so that many nodes live in one process and a simulation replaces all of it.

use std::sync::Arc;

mod clock;
mod dice;
mod exchange;
mod resolver;
mod snapshots;
mod objects;
mod spool;
mod splice;
mod records;
mod coordinator;

pub use clock::{Clock, TokioClock};
pub use coordinator::{Coordinator, Ownership};
pub use dice::{Dice, SeededDice};
pub use exchange::{
    Exchange, ExchangeFailure, ExchangeLimits, ExchangeRequest, Exchanged, Oversize, Wanted,
};
pub use objects::{Objects, ObjectsError, SlateClock};
pub use records::{RecordFailure, Records, StoredRecord};
pub use resolver::{Resolved, Resolver};
pub use snapshots::SnapshotStore;
pub use splice::{Lines, Piece, draft_of, splice, without_drafts};
pub use spool::{DirectorySpool, MemorySpool, Spool};

/// The whole world of one node.
#[derive(Clone, Debug)]
pub struct World {
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Randomness.
    pub dice: Arc<dyn Dice>,
    /// HTTP.
    pub exchange: Arc<dyn Exchange>,
    /// Names.
    pub resolver: Arc<dyn Resolver>,
    /// Snapshots of sleeping hosts.
    pub snapshots: Arc<dyn SnapshotStore>,
    /// Files of archive and outputs.
    pub spool: Arc<dyn Spool>,
    /// Objects of the shards' stores.
    pub objects: Objects,
    /// Who owns which shard.
    pub coordinator: Arc<dyn Coordinator>,
}

impl World {
    /// The time now and one throw of the dice: what a machine is stepped with.
    pub fn moment(&self) -> crate::types::Moment {
        crate::types::Moment::new(self.clock.now(), self.dice.throw())
    }
}
