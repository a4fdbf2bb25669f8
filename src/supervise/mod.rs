//! Workers that come back: pools of supervised actors that pull from one bounded channel (A1).
//!
//! In: jobs over a channel made by whoever owns the queue; `PoolMsg` from the root. Out: each job
//! served, or reported as lost exactly once; nothing is dropped in silence (I8).
//!
//! ractor restarts nothing by itself, and a panic takes an actor's state and mailbox with it. So a
//! worker keeps no jobs in its mailbox, and what it has in hand stands in a slot that outlives it.

mod seat;
mod pool;

pub use pool::{PoolActor, PoolSetup};
pub use seat::{Loss, Seat, WorkerKind};
