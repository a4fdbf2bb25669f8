//! To the PurgeActor: orders to remove what is stored of an exclusion (R5).

use serde::Serialize;

use super::Answer;
use crate::types::{HostId, PurgeRecord, Removed, ToParse, UrlId, UrlVersion, VisitRecord};
use crate::world::Piece;

/// The mailbox of the PurgeActor: one step is under way at a time.
#[derive(Debug)]
pub enum PurgeMsg {
    /// An order was made.
    Look,
    /// The step under way has come to its end, or failed and is tried again.
    Did(Result<PurgeDid, String>),
    /// Time to try again.
    Tick,
    /// Say how it stands.
    Observe(Answer<PurgeView>),
}

/// What a step has done.
#[derive(Debug)]
pub enum PurgeDid {
    /// The archive has published all that it had been given.
    Settled,
    /// Rows of so many URLs are clear.
    Forgotten(u64),
    /// The outputs write other files.
    Closed,
    /// These files are to be looked through.
    Listed(Vec<String>),
    /// What goes from the file.
    Looked(Box<FileFinds>),
    /// How far it is is durable.
    Noted,
    /// It is gone from the file.
    Rewritten,
    /// All is done, and everybody knows.
    Finished,
}

/// What goes from one file.
#[derive(Debug, Default)]
pub struct FileFinds {
    /// Records of an archive file.
    pub records: Vec<Piece>,
    /// Lines: of the index of an archive file, or of a file of page records.
    pub lines: Vec<Piece>,
    /// In numbers.
    pub removed: Removed,
    /// Something of the file could not be looked through.
    pub unreadable: bool,
}

/// The state of the PurgeActor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PurgeView {
    /// Orders that are not done.
    pub undone: u32,
    /// The one it works on, as far as it is.
    pub current: Option<PurgeRecord>,
    /// Why it does not get on, if it does not.
    pub failure: Option<String>,
}

/// What a page of rows has that a purge covers, and its last row; `None` behind the last page.
#[derive(Clone, Debug)]
pub enum ForgetRead {
    /// Pages that wait for a parser.
    ToParse(Vec<ToParse>, Option<(UrlId, UrlVersion)>),
    /// Hosts that the rule touches, and whether it covers all of them.
    Hosts(Vec<(HostId, bool)>, Option<HostId>),
    /// Visits.
    Visits(Vec<VisitRows>, Option<UrlId>),
    /// Payloads, by their digests.
    Payloads(Vec<String>, Option<String>),
    /// Texts, by their hashes.
    Texts(Vec<u128>, Option<u128>),
}

/// A URL's visit and how later ones fail, each as its row has it.
pub type VisitRows = (UrlId, Option<VisitRecord>, Option<VisitRecord>);
