//! Values that cannot be wrong: ids, times, URLs, leases, reasons, rows.
//!
//! In: text and numbers from outside, checked at the door. Out: types that need no second check.
//! Nothing here reads a clock, a socket or a disk, and nothing decides.

mod time;
mod ids;
mod url;
mod network;
mod reason;
mod outcome;
mod lease;
mod page;
mod event;
mod record;
mod purge;
mod shown;
mod span;

pub use self::time::{Moment, Timestamp};
pub use self::url::CrawlUrl;
pub use event::{CrawlEvent, Happening, Subject};
pub use ids::{Epoch, EventSeq, HostId, HostKey, LeaseId, ShardId, UrlId, UrlVersion};
pub use lease::{Completion, Lease, LeaseKind, QueueEntry, Validators};
pub use network::{IpNetwork, NetworkError};
pub use outcome::Outcome;
pub use page::{
    ArchivePointer, Document, Headers, Link, LinkKind, Response, ToParse, Truncation, UsageWish,
    header,
};
pub use purge::{PurgeRecord, Removed};
pub use reason::{DelaySource, Reason, SizeLimit, TimeLimit};
pub use record::{
    BackoffState, ContentRecord, DeadLetter, ExclusionRecord, Hindrance, HostCounts, HostOverrides,
    HostRecord, LedgerRow, ReservationsRecord, RobotsKept, RobotsRecord, UrlRecord, UrlStatus,
    UrlView, VisitRecord,
};
pub use shown::{in_full, tally};
pub use span::span;
