//! The actors below the root, and what they are called.

use crate::types::ShardId;

/// What an actor below the root is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Registry,
    Address(u16),
    Shard(ShardId),
    Output(ShardId),
    Discovery,
    Archive,
    Purge,
    Fetchers,
    Parsers,
}

impl Part {
    /// What it is in the tree of actors.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::Registry => "registry",
            Self::Address(_) => "address",
            Self::Shard(_) => "shard",
            Self::Output(_) => "output",
            Self::Discovery => "discovery",
            Self::Archive => "archive",
            Self::Purge => "purge",
            Self::Fetchers | Self::Parsers => "pool",
        }
    }

    /// Its name, unique below the root.
    pub(super) fn name(self) -> String {
        match self {
            Self::Address(at) => format!("address-{at}"),
            Self::Shard(shard) => format!("shard-{shard}"),
            Self::Output(shard) => format!("output-{shard}"),
            Self::Fetchers => "fetch".to_owned(),
            Self::Parsers => "parse".to_owned(),
            Self::Registry | Self::Discovery | Self::Archive | Self::Purge => {
                self.kind().to_owned()
            }
        }
    }

    /// What it supervises.
    pub(super) fn child_kind(self) -> &'static str {
        match self {
            Self::Shard(_) => "host",
            Self::Fetchers => "fetch",
            Self::Parsers => "parse",
            Self::Registry
            | Self::Address(_)
            | Self::Output(_)
            | Self::Discovery
            | Self::Archive
            | Self::Purge => "actor",
        }
    }
}
