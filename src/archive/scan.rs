//! One file, read from front to back, member by member.

use std::sync::Arc;

use bytes::Bytes;

use super::ArchiveError;
use super::member::{ArchiveFormat, MemberFault, read_member, size};
use super::record::Record;
use crate::world::Spool;

const WINDOW_BYTES: u64 = 1 << 20;

/// A place in a file.
pub(super) struct Scan {
    spool: Arc<dyn Spool>,
    name: String,
    format: ArchiveFormat,
    /// Read and not yet handed out, from `used` on.
    window: Vec<u8>,
    used: usize,
    /// Whether digests are checked.
    checks: bool,
    /// Where the member begins that is read next.
    pub(super) offset: u64,
}

/// One member and what it holds.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) record: Record,
}

impl Scan {
    /// From the beginning of a file.
    pub(super) fn new(spool: &Arc<dyn Spool>, name: &str, format: ArchiveFormat) -> Self {
        let (window, used) = (Vec::new(), 0);
        let (spool, name) = (Arc::clone(spool), name.to_owned());
        Self { spool, name, format, window, used, checks: true, offset: 0 }
    }

    /// Records are taken as they are: it is asked where they lie, not whether they are right.
    pub(super) fn unchecked(self) -> Self {
        Self { checks: false, ..self }
    }

    /// The next record, its digests checked unless they need not be; `None` at the end of the file.
    ///
    /// # Errors
    /// `Damaged` when what follows is no whole record, which also means a torn tail.
    pub(super) async fn next(&mut self) -> Result<Option<Found>, ArchiveError> {
        loop {
            match read_member(self.format, &self.window[self.used..]) {
                Ok((bytes, length)) => return self.found(bytes, length).map(Some),
                Err(MemberFault::Broken(why)) => return Err(self.damaged(why)),
                Err(MemberFault::Incomplete) => {}
            }
            if !self.read_more().await? {
                let at_end = self.used == self.window.len();
                let torn = || self.damaged("the file ends within a member".to_owned());
                return if at_end { Ok(None) } else { Err(torn()) };
            }
        }
    }

    fn found(&mut self, bytes: Vec<u8>, length: usize) -> Result<Found, ArchiveError> {
        let record = Record::parse(Bytes::from(bytes)).map_err(|why| self.damaged(why))?;
        if self.checks {
            record.check_digests().map_err(|why| self.damaged(why))?;
        }
        let found = Found { offset: self.offset, length: size(length), record };
        self.used += length;
        self.offset += found.length;
        Ok(found)
    }

    /// Doubles the window, so that a large member is not tried too often.
    async fn read_more(&mut self) -> Result<bool, ArchiveError> {
        self.window.drain(..self.used);
        self.used = 0;
        let held = size(self.window.len());
        let wanted = held.max(WINDOW_BYTES);
        let read = self.spool.read(&self.name, self.offset + held, wanted).await;
        let more = read.map_err(|source| ArchiveError::disk("read", &self.name, source))?;
        self.window.extend_from_slice(&more);
        Ok(!more.is_empty())
    }

    fn damaged(&self, why: String) -> ArchiveError {
        ArchiveError::Damaged { file: self.name.clone(), offset: self.offset, why }
    }
}
