//! To an ArchiveActor: responses to be stored before anything parses them (I7).

use ractor::ActorRef;
use serde::Serialize;

use super::{Answer, Permit, ShardMsg, Unheard};
use crate::types::{Completion, ContentRecord, Response};

/// The mailbox of an ArchiveActor; bounded by the body credit that each response carries.
#[derive(Debug)]
pub enum ArchiveMsg {
    /// Store this response; its completion goes to the shard once it is synced.
    Store(Box<StoreJob>),
    /// The shard's answer: where the payload of a waiting response already lies, if it does (D3).
    PayloadKnown {
        /// The number of the waiting response.
        job: u64,
        /// The first capture with the same payload.
        found: Option<Box<ContentRecord>>,
    },
    /// A group was written and synced, or failed.
    Synced(Result<(), String>),
    /// A closed file was read back and published, or the disk failed.
    Published {
        /// Its final name.
        file: String,
        /// What the disk said.
        result: Result<(), String>,
    },
    /// Time to sync a group or to rotate the file.
    Tick,
    /// Publish all that was given so far; answered when it is done, while the work goes on (R5).
    Rotate(Answer<()>),
    /// Sync, close the file, publish it and its CDXJ; nothing comes after.
    Close(Answer<()>),
    /// Say how it stands.
    Observe(Answer<ArchiveView>),
}

/// A response on its way into the archive.
#[derive(Debug)]
pub struct StoreJob {
    /// What came.
    pub response: Response,
    /// The report; the archive fills in pointer and digest.
    pub completion: Completion,
    /// Whom to report to: the owner of the lease.
    pub shard: ActorRef<ShardMsg>,
    /// The memory the body takes, given back after parsing.
    pub permit: Permit,
    /// Tells the shard, should the archive die with it.
    pub unheard: Unheard,
}

/// The state of an ArchiveActor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ArchiveView {
    /// The file being written.
    pub file: Option<String>,
    /// Its size in bytes.
    pub file_bytes: u64,
    /// Records written since the start.
    pub records: u64,
    /// Bytes written since the start.
    pub bytes: u64,
    /// Responses that wait for a sync.
    pub waiting: u32,
    /// Why it cannot write, if it cannot.
    pub failure: Option<String>,
}
