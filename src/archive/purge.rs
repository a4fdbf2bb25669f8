//! Records of published files are removed, with their lines of the index (R5).
//!
//! A file is looked through from front to back, then copied beside itself with a filler in place of
//! each record that goes, and renamed; the index goes first, so that nobody is led to what is being
//! removed. Names, lengths and places of all other records stay.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use serde::Deserialize;
use tracing::error;

use super::ArchiveError;
use super::filler::{self, Removal};
use super::member::ArchiveFormat;
use super::publish::{FOLDER, INDEX, OPEN, index_path};
use super::scan::Scan;
use crate::types::{CrawlUrl, Removed, Timestamp};
use crate::world::{Dice, Lines, Piece, Spool, draft_of, splice, without_drafts};

/// What the name of a file ends with that was put aside.
const DAMAGED: &str = ".damaged";

/// Takes records out of files.
#[derive(Clone, Debug)]
pub struct ArchivePurge {
    /// The disk.
    pub spool: Arc<dyn Spool>,
    /// For the ids of the records that take their places.
    pub dice: Arc<dyn Dice>,
    /// The id of the exclusion.
    pub exclusion: String,
    /// When the order was given.
    pub at: Timestamp,
}

/// What goes from one archive file and its index.
#[derive(Debug, Default)]
pub struct ArchiveFinds {
    /// The members.
    pub records: Vec<Piece>,
    /// The lines that lead to them.
    pub lines: Vec<Piece>,
    /// Something of the file could not be looked through.
    pub unreadable: bool,
}

impl ArchiveFinds {
    /// In numbers.
    pub fn removed(&self) -> Removed {
        let count = |pieces: &[Piece]| u64::try_from(pieces.len()).unwrap_or(u64::MAX);
        Removed {
            records: count(&self.records),
            bytes: self.records.iter().map(|piece| piece.length).sum(),
            index_lines: count(&self.lines),
            page_records: 0,
        }
    }
}

/// The part of a line of the index that leads to a record.
#[derive(Deserialize)]
struct Leads {
    offset: String,
}

impl ArchivePurge {
    /// The files that take no more records. Drafts that a crash left are removed.
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn files(&self) -> io::Result<Vec<String>> {
        without_drafts(&*self.spool, INDEX).await?;
        let mut files = without_drafts(&*self.spool, FOLDER).await?;
        files.retain(|name| !name.ends_with(OPEN) && format_of(name).is_some());
        Ok(files)
    }

    /// Looks for the records of URLs that the rule covers.
    ///
    /// # Errors
    /// When the disk fails.
    pub async fn look(
        &self,
        file: &str,
        covers: &(dyn Fn(&CrawlUrl) -> bool + Send + Sync),
    ) -> io::Result<ArchiveFinds> {
        let mut finds = ArchiveFinds::default();
        let Some(format) = format_of(file) else { return Ok(finds) };
        let mut scan = Scan::new(&self.spool, file, format).unchecked();
        loop {
            match scan.next().await {
                Ok(None) => break,
                Ok(Some(found)) => {
                    let url = found.record.field("WARC-Target-URI").map(CrawlUrl::parse);
                    if url.is_some_and(|url| url.is_ok_and(|url| covers(&url))) {
                        let piece = Piece { offset: found.offset, length: found.length };
                        if piece.length < filler::LENGTH_MIN {
                            error!(file, piece.offset, "record too short to be purged");
                            finds.unreadable = true;
                        } else {
                            finds.records.push(piece);
                        }
                    }
                }
                Err(ArchiveError::Damaged { offset, why, .. }) => {
                    error!(file, offset, why, "what follows cannot be looked through for a purge");
                    finds.unreadable = true;
                    break;
                }
                Err(ArchiveError::Disk { source, .. }) => return Err(source),
                Err(other) => return Err(io::Error::other(other)),
            }
        }
        if !finds.records.is_empty() {
            finds.lines = self.lines_of(file, &finds.records).await?;
        }
        Ok(finds)
    }

    /// The lines of the index that lead to these records.
    async fn lines_of(&self, file: &str, records: &[Piece]) -> io::Result<Vec<Piece>> {
        let gone: BTreeSet<u64> = records.iter().map(|piece| piece.offset).collect();
        let index = index_path(file);
        let (mut lines, mut found) = (Lines::new(&*self.spool, &index), Vec::new());
        loop {
            match lines.next().await {
                Ok(Some((line, piece))) => {
                    let fields = memchr::memchr(b'{', line).and_then(|at| line.get(at..));
                    let leads = fields.and_then(|it| serde_json::from_slice::<Leads>(it).ok());
                    let offset = leads.and_then(|leads| leads.offset.parse().ok());
                    found.extend(offset.filter(|offset| gone.contains(offset)).map(|_| piece));
                }
                Ok(None) => return Ok(found),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes what was found.
    ///
    /// # Errors
    /// When the disk fails or `stops` says so: the file is as it was, or as it should be, and so
    /// is its index. Which of these is found by another look; what was found before is void.
    pub async fn rewrite(
        &self,
        file: &str,
        finds: &ArchiveFinds,
        stops: &(dyn Fn() -> bool + Send + Sync),
    ) -> io::Result<()> {
        let format = format_of(file).unwrap_or_default();
        let removal = Removal { at: self.at, exclusion: &self.exclusion };
        let fill = |piece: Piece| {
            filler::member(format, piece.length, removal, &*self.dice)
                .expect("what was found is long enough for a filler")
        };
        splice(&*self.spool, file, &finds.records, fill, stops).await?;
        if !finds.lines.is_empty() {
            let index = index_path(file);
            splice(&*self.spool, &index, &finds.lines, |_| Vec::new(), stops).await?;
            self.spool.rename(&draft_of(&index), &index).await?;
        }
        self.spool.rename(&draft_of(file), file).await
    }
}

/// The format of a file of the archive, also of one that was put aside.
fn format_of(path: &str) -> Option<ArchiveFormat> {
    ArchiveFormat::of_name(path.strip_suffix(DAMAGED).unwrap_or(path))
}

#[cfg(test)]
mod tests;
