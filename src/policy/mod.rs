//! What the crawler decides: pure functions and machines, no clock, socket, disk, task or log.
//!
//! In: facts with a [`crate::types::Moment`]. Out: verdicts, waits, and the changes to be written.

pub mod change;
pub mod robots;
pub mod normalise;
pub mod surt;
pub mod scope;
pub mod traps;
pub mod address;
pub mod retry_after;
