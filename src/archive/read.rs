//! Records back, to be parsed again (O7): also from a file that is still being written.

use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;

use super::ArchiveError;
use super::filler;
use super::member::{ArchiveFormat, MemberFault, read_member, size};
use super::publish::{damaged_path, final_path, open_path};
use super::record::Record;
use super::warc::{REFERS_TO_FILE, REFERS_TO_LENGTH, REFERS_TO_OFFSET};
use crate::types::{ArchivePointer, CrawlUrl, Headers, Timestamp};
use crate::world::{RecordFailure, Records, Spool, StoredRecord};

/// A revisit refers to a response; a chain can only come from somebody else's index.
const REVISITS_IN_A_ROW: u8 = 3;

/// A response as it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    /// What was requested.
    pub url: CrawlUrl,
    /// When.
    pub fetched_at: Timestamp,
    /// The status; of a 304, that of the response it stands for.
    pub status: u16,
    /// The headers as stored: `Transfer-Encoding` renamed, `Content-Length` right.
    pub headers: Headers,
    /// As received, content coding kept; of a revisit, that of the record it refers to.
    pub body: Bytes,
}

/// Reads records by their pointers.
#[derive(Clone, Debug)]
pub struct ArchiveReader {
    spool: Arc<dyn Spool>,
}

#[async_trait]
impl Records for ArchiveReader {
    async fn read(&self, pointer: &ArchivePointer) -> Result<StoredRecord, RecordFailure> {
        let stored = Self::read(self, pointer).await;
        let StoredResponse { status, headers, body, .. } =
            stored.map_err(|error| RecordFailure(error.to_string()))?;
        Ok(StoredRecord { status, headers, body })
    }
}

impl ArchiveReader {
    /// A reader of the archive in this spool.
    pub fn new(spool: Arc<dyn Spool>) -> Self {
        Self { spool }
    }

    /// The response at a pointer, its digests checked. A revisit is followed to the payload.
    ///
    /// # Errors
    /// When the disk fails, the record is damaged or removed, or it holds no response.
    pub async fn read(&self, pointer: &ArchivePointer) -> Result<StoredResponse, ArchiveError> {
        let record = self.record(pointer).await?;
        let mut stored = response_in(&record, pointer)?;
        let not_modified = stored.status == 304;
        let mut next = target_of(&record);
        for _ in 0..REVISITS_IN_A_ROW {
            let Some(target) = next else { return Ok(stored) };
            let record = self.record(&target).await?;
            let original = response_in(&record, &target)?;
            stored.body = original.body;
            if not_modified {
                (stored.status, stored.headers) = (original.status, original.headers);
            }
            next = target_of(&record);
        }
        if next.is_none() { Ok(stored) } else { Err(no_response(pointer)) }
    }

    async fn record(&self, pointer: &ArchivePointer) -> Result<Record, ArchiveError> {
        let damaged = |why| ArchiveError::Damaged {
            file: pointer.file.to_string(),
            offset: pointer.offset,
            why,
        };
        let format = ArchiveFormat::of_name(&pointer.file).ok_or_else(|| no_response(pointer))?;
        let bytes = self.bytes(pointer).await?;
        let (record, length) = read_member(format, &bytes).map_err(|fault| match fault {
            MemberFault::Incomplete => damaged("the file ends within the member".to_owned()),
            MemberFault::Broken(why) => damaged(why),
        })?;
        if size(length) != pointer.length {
            return Err(damaged(format!("the member has {length} bytes")));
        }
        let record = Record::parse(record.into()).map_err(damaged)?;
        if record.kind() != filler::REMOVED {
            record.check_digests().map_err(damaged)?;
        }
        Ok(record)
    }

    /// The file that is still written comes first: most of what is read back is in it. A file may
    /// be renamed between two looks, to either of its last names, so the order holds for all.
    async fn bytes(&self, pointer: &ArchivePointer) -> Result<Bytes, ArchiveError> {
        let last = final_path(&pointer.file);
        let names = [open_path(&pointer.file), last.clone(), damaged_path(&pointer.file)];
        for name in names {
            match self.spool.read(&name, pointer.offset, pointer.length).await {
                Ok(bytes) => return Ok(bytes),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(source) => return Err(ArchiveError::disk("read", &name, source)),
            }
        }
        Err(ArchiveError::disk("find", &last, io::ErrorKind::NotFound.into()))
    }
}

fn response_in(record: &Record, pointer: &ArchivePointer) -> Result<StoredResponse, ArchiveError> {
    if record.kind() == filler::REMOVED {
        let (file, offset) = (pointer.file.to_string(), pointer.offset);
        return Err(ArchiveError::Removed { file, offset });
    }
    let is_response = matches!(record.kind(), "response" | "revisit");
    let http = record.http().filter(|_| is_response).ok_or_else(|| no_response(pointer))?;
    let url = record.field("WARC-Target-URI").and_then(|url| CrawlUrl::parse(url).ok());
    let fetched_at = record.field("WARC-Date").and_then(Timestamp::parse_rfc3339);
    Ok(StoredResponse {
        url: url.ok_or_else(|| no_response(pointer))?,
        fetched_at: fetched_at.ok_or_else(|| no_response(pointer))?,
        status: http.status,
        headers: http.headers,
        body: http.body,
    })
}

fn no_response(pointer: &ArchivePointer) -> ArchiveError {
    ArchiveError::NoResponse { file: pointer.file.to_string(), offset: pointer.offset }
}

/// The record that a revisit refers to.
pub(super) fn target_of(record: &Record) -> Option<ArchivePointer> {
    let number = |name| record.field(name).and_then(|value| value.parse().ok());
    if record.kind() != "revisit" {
        return None;
    }
    Some(ArchivePointer {
        file: record.field(REFERS_TO_FILE)?.into(),
        offset: number(REFERS_TO_OFFSET)?,
        length: number(REFERS_TO_LENGTH)?,
    })
}
