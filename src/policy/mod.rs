//! What the crawler decides: pure functions and machines, no clock, socket, disk, task or log.
//!
//! In: facts with a [`crate::types::Moment`]. Out: verdicts, waits, and the changes to be written.

pub mod change;
pub mod placement;
pub mod normalise;
pub mod surt;
pub mod scope;
pub mod exclusion;
pub mod purge;
pub mod traps;
pub mod address;
pub mod robots;
pub mod wishes;
pub mod asked;
pub mod retry_after;
pub mod politeness;
pub mod backoff;
pub mod retry;
pub mod window;
pub mod address_clock;
pub mod domain_clock;
pub mod ready;
pub mod quota;
pub mod host;
pub mod why;
pub mod invariants;
