//! Bytes of a response in, a document and its links out.
//!
//! The core is pure and synchronous: no clock, no I/O, no task; the time limit comes in as a
//! question. The actor around it owns the waiting and the retries.

pub mod decode;
pub mod mime;
pub mod charset;
pub mod html;
pub mod links;
