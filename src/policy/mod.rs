//! What the crawler decides: pure functions and machines, no clock, socket, disk, task or log.
//!
//! In: facts with a [`crate::types::Moment`]. Out: verdicts, waits, and the changes to be written.

pub mod change;
pub mod placement;
pub mod robots;
pub mod politeness;
pub mod backoff;
pub mod retry;
pub mod window;
pub mod address_clock;
pub mod host;
pub mod domain_clock;
pub mod ready;
pub mod quota;
pub mod invariants;
pub mod normalise;
