//! Documents in, files others read out.
//!
//! In: [`crate::protocol::OutputMsg::Publish`], a page whose links are durable. Out: files, and to
//! the owner of the page's row, once the files are synced, the pages and how far each output now
//! counts, in one message: the shard drops the rows and commits the offsets in one batch, so all
//! outputs of a page appear together or not at all (B6). Lines of closed files go where what is
//! stored of an exclusion is removed (R5).

mod committed;
mod jsonl;
mod actor;
mod purge;

pub use actor::{OutputActor, OutputArgs, Turn};
pub use jsonl::OutputSettings;
pub use purge::{PageFinds, PagePurge, is_page_file};

use std::io;

/// The name of the output in this place of the configuration, with which its files begin.
pub fn output_name(place: usize) -> String {
    if place == 0 { "pages".to_owned() } else { format!("pages{place}") }
}

/// Why an output cannot start.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The disk fails.
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
    /// What the shard keeps of it cannot be read.
    #[error("the committed state of output {name} is damaged")]
    State {
        /// Which output.
        name: String,
        /// What is wrong.
        #[source]
        source: postcard::Error,
    },
    /// A file is shorter than what the shard has committed.
    #[error(
        "{file} has {found} bytes and {committed} are committed, so it was moved or cut: put it \
         back to go on; only its files of a lower number may be moved away"
    )]
    Lost {
        /// Which file.
        file: String,
        /// Bytes on the disk.
        found: u64,
        /// Bytes that must be there.
        committed: u64,
    },
}
