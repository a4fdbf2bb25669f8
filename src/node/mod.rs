//! Builds everything in the order of the flow; the only wiring.
//!
//! In: a configuration, and a world where a test brings its own. Out: a running node that can be
//! asked, told and stopped. Nothing here is global: many nodes live in one process.
