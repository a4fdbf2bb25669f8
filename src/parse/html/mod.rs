//! Decoded markup in, links, metadata and visible text out, in one pass.
//!
//! Promises: what a browser without scripting would see, for the things a crawler reads; time and
//! memory linear in the document (P2), whatever it holds. Builds no tree: misnested markup is read
//! in the order it stands. What scripts would write is not seen.

mod near;
mod names;
mod tags;
mod attributes;
pub mod entities;
mod raw_text;
mod text;
mod refresh;
mod srcset;
mod nesting;
mod scanner;
mod elements;

pub use refresh::parse_refresh;
pub use scanner::{RawLink, Scan, ScanOptions, scan};
pub use srcset::candidates;
pub use text::fold;

#[cfg(test)]
mod tests;
#[cfg(test)]
mod oracle;
