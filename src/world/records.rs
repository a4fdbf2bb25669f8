//! Responses read back from the archive (O7, P4).

use std::fmt;

use async_trait::async_trait;
use bytes::Bytes;
use thiserror::Error;

use crate::types::{ArchivePointer, Headers};

/// A response as it lies in the archive; of a revisit, the one it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRecord {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: Headers,
    /// The body, content coding kept.
    pub body: Bytes,
}

/// A record that cannot be read back.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("failed to read the record back: {0}")]
pub struct RecordFailure(pub String);

/// Reads records back. Real: the archive's files. Simulated: memory.
#[async_trait]
pub trait Records: Send + Sync + fmt::Debug {
    /// The response at a pointer.
    ///
    /// # Errors
    /// There is none, or it is damaged.
    async fn read(&self, pointer: &ArchivePointer) -> Result<StoredRecord, RecordFailure>;
}
