//! What actors share: workers that come back (A1), the one timer, the wait after a failure.
//!
//! A pool takes jobs over a bounded channel made by whoever owns the queue, and `PoolMsg` from the
//! root. Each job is served, or reported as lost exactly once; nothing is dropped in silence (I8).
//!
//! ractor restarts nothing by itself, and a panic takes an actor's state and mailbox with it. So a
//! worker keeps no jobs in its mailbox, and what it has in hand stands in a slot that outlives it.

mod seat;
mod pool;
mod alarm;
mod retry;

pub use alarm::Alarm;
pub use pool::{PoolActor, PoolSetup};
pub use retry::Retry;
pub use seat::{Loss, Seat, WorkerKind};
