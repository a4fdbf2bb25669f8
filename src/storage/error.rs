//! What can go wrong with a shard's store, and what to do about it.

use std::time::Duration;

use slatedb::{CloseReason, ErrorKind};
use thiserror::Error;

use super::codec::CodecError;
use crate::types::span;

/// Why a shard's store did not do what was asked.
#[derive(Debug, Error)]
pub enum StoreError {
    /// I1: another owner has opened the shard; this one writes no more.
    #[error("fenced: the shard was opened by another owner")]
    Fenced,
    /// It was closed.
    #[error("the store is closed")]
    Closed,
    /// Written by a newer mehman.
    #[error("store of format {found}; this build reads up to {known}")]
    NewerVersion {
        /// The format found.
        found: u32,
        /// The newest one known.
        known: u32,
    },
    /// It has rows but not the one that says what they are.
    #[error("damaged store: {what}")]
    Damaged {
        /// One phrase.
        what: &'static str,
    },
    /// A row cannot be read or written.
    #[error(transparent)]
    Row(#[from] CodecError),
    /// The object store did not answer in time: a full disk, a lost network.
    #[error("{during} took longer than {}", span(*.after))]
    Deadline {
        /// What was tried.
        during: &'static str,
        /// How long it was given.
        after: Duration,
    },
    /// The object store does not answer.
    #[error("object store unavailable during {during}")]
    Unavailable {
        /// What was tried.
        during: &'static str,
        /// Why.
        #[source]
        source: slatedb::Error,
    },
    /// Anything else.
    #[error("{during} failed")]
    Engine {
        /// What was tried.
        during: &'static str,
        /// Why.
        #[source]
        source: slatedb::Error,
    },
}

/// What to do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Try again: it may pass.
    Retry,
    /// Give the shard up: another owner has it.
    GiveUp,
    /// A person must act.
    Report,
}

impl StoreError {
    /// What to do about it.
    pub fn remedy(&self) -> Remedy {
        match self {
            Self::Deadline { .. } | Self::Unavailable { .. } => Remedy::Retry,
            Self::Fenced | Self::Closed => Remedy::GiveUp,
            Self::NewerVersion { .. }
            | Self::Damaged { .. }
            | Self::Row(_)
            | Self::Engine { .. } => Remedy::Report,
        }
    }

    /// The engine's error, and what was tried.
    pub(super) fn engine(during: &'static str) -> impl FnOnce(slatedb::Error) -> Self {
        move |source| match source.kind() {
            ErrorKind::Closed(CloseReason::Fenced) => Self::Fenced,
            ErrorKind::Closed(CloseReason::Clean) => Self::Closed,
            ErrorKind::Unavailable => Self::Unavailable { during, source },
            ErrorKind::Transaction
            | ErrorKind::Closed(_)
            | ErrorKind::Invalid
            | ErrorKind::Data
            | ErrorKind::Internal
            | _ => Self::Engine { during, source },
        }
    }
}
