//! Responses in, pointers out; before anything parses.
//!
//! In: [`crate::protocol::ArchiveMsg::Store`], a response with the report of its exchange. Out: to
//! the owner of the lease, the report with pointer and digest, once the record is synced (I7).
//! Files are WARC/1.1, one compressed member per record (O1), each with a CDXJ (O3). The same
//! payload is stored once (D3). A file is published after it was read back (B6). After that it
//! changes only where records are removed, and none that stays moves (R5).

mod digest;
mod member;
mod warc;
mod record;
mod cdxj;
mod scan;
mod publish;
mod read;
mod filler;
mod purge;
mod group;
mod actor;
#[cfg(test)]
mod samples;

pub use actor::{ArchiveActor, ArchiveArgs, ArchiveSettings};
pub use member::ArchiveFormat;
pub use purge::{ArchiveFinds, ArchivePurge};
pub use read::{ArchiveReader, StoredResponse};
pub use warc::CrawlerInfo;

use std::io;

/// Why the archive cannot write or read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The disk fails; trying again may help.
    #[error("failed to {what} {file}")]
    Disk {
        /// What was tried.
        what: &'static str,
        /// With which file.
        file: String,
        /// What the disk says.
        #[source]
        source: io::Error,
    },
    /// A file does not hold what was written.
    #[error("{file} is damaged at byte {offset}: {why}")]
    Damaged {
        /// Which file.
        file: String,
        /// Where the member begins.
        offset: u64,
        /// What is wrong.
        why: String,
    },
    /// What lay there was removed with an exclusion.
    #[error("what lay at byte {offset} of {file} was removed with an exclusion")]
    Removed {
        /// Which file.
        file: String,
        /// Where the member begins.
        offset: u64,
    },
    /// The record is no response, or a revisit without what it refers to.
    #[error("no response at byte {offset} of {file}")]
    NoResponse {
        /// Which file.
        file: String,
        /// Where the member begins.
        offset: u64,
    },
}

impl ArchiveError {
    fn disk(what: &'static str, file: &str, source: io::Error) -> Self {
        Self::Disk { what, file: file.to_owned(), source }
    }
}
