//! O5: what happened, as integrators read it.

use serde::{Deserialize, Serialize};

use super::{ArchivePointer, HostKey, Outcome, Removed, Timestamp, UrlId, UrlVersion};

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Subject {
    /// A URL.
    Url {
        /// The URL as requested.
        url: String,
        /// Its identity.
        url_id: UrlId,
        /// Its version.
        version: UrlVersion,
    },
    /// A host.
    Host {
        /// Its key.
        host_key: HostKey,
        /// Counts the changes of its state, so that each has a key of its own.
        version: u64,
    },
    /// A rule made at runtime (R5).
    Rule {
        /// The rule: `host:…`, `domain:…` or `surt:…`.
        rule: String,
        /// Milliseconds since the epoch when it was made, or its purge ordered: the same rule again
        /// has another one.
        version: u64,
    },
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Happening {
    /// A URL became known.
    Discovered,
    /// An exchange for it ended for good.
    Fetched {
        /// The status, where a response began.
        status: Option<u16>,
        /// How it ended.
        outcome: Outcome,
        /// Bytes of the body as received.
        bytes: u64,
        /// `sha1:` and Base32 of the payload as received.
        digest: Option<String>,
        /// Where the response lies.
        archive: Option<ArchivePointer>,
        /// The payload differs from the last visit's; `None` on the first.
        changed: Option<bool>,
    },
    /// Its document was published and its links are known.
    Parsed {
        /// The version of the parser.
        parser_version: u32,
        /// Links handed to discovery.
        links: u32,
        /// The page with the same text.
        duplicate_of: Option<String>,
    },
    /// 404 or 410.
    Tombstone {
        /// The status.
        status: u16,
    },
    /// Given up.
    Dead {
        /// One sentence.
        reason: String,
    },
    /// A rule was made at runtime: what it covers is asked for no more.
    Excluded {
        /// The exclusion's id.
        id: String,
    },
    /// A host changed its state.
    HostState {
        /// The new state.
        state: String,
        /// One sentence.
        reason: Option<String>,
    },
    /// What was stored of a rule made at runtime is removed.
    Purged {
        /// The exclusion's id.
        id: String,
        /// What is gone.
        removed: Removed,
        /// URLs whose rows were cleared.
        urls: u64,
        /// Files that could not be read to their end.
        unreadable: u32,
    },
}

impl Happening {
    /// The `type` in docs/interface.md.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Discovered => "discovered",
            Self::Fetched { .. } => "fetched",
            Self::Parsed { .. } => "parsed",
            Self::Tombstone { .. } => "tombstone",
            Self::Dead { .. } => "dead",
            Self::Excluded { .. } => "excluded",
            Self::HostState { .. } => "host",
            Self::Purged { .. } => "purged",
        }
    }
}

/// One event of the outbox. Its key is (kind, subject, version, parser version).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CrawlEvent {
    /// When it happened.
    pub at: Timestamp,
    /// To what.
    pub subject: Subject,
    /// What.
    pub happening: Happening,
}
