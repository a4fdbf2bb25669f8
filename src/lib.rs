//! mehman (मेहमान, "guest"): a web crawler as a system of actors.
//!
//! Modules stand in reading order; a module may use those above it, never those below. Stages
//! (discovery to output) never import each other: they share `types`, `policy` and `protocol`.

pub mod types;
pub mod policy;
pub mod config;
pub mod world;
pub mod telemetry;
pub mod protocol;
pub mod storage;
pub mod supervise;
pub mod discovery;
pub mod frontier;
pub mod fetch;
pub mod archive;
pub mod parse;
pub mod output;
pub mod cluster;
pub mod admin;
pub mod node;
pub mod sandbox;
pub mod simulation;
pub mod load;
pub mod cli;
