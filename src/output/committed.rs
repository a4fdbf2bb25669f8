//! Numbered files that hold exactly what the shard has committed.
//!
//! Bytes are gathered, appended, synced, and count when the shard's store says so. At start
//! everything beyond the committed place is cut, so a crash leaves no line twice and none half.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::OutputError;
use crate::world::Spool;

/// How far an output counts: kept by its shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// The number of the file that is written.
    pub(super) file: u64,
    /// Bytes of it that count.
    pub(super) offset: u64,
}

/// The files of one output and shard.
#[derive(Debug)]
pub(super) struct CommittedFiles {
    /// `pages/pages-0-`; number and `suffix` follow.
    prefix: String,
    suffix: &'static str,
    file_bytes_max: u64,
    /// Where the next group begins.
    place: Place,
    gathered: Vec<u8>,
}

/// A group on its way to the disk.
#[derive(Clone, Debug)]
pub(super) struct Append {
    file: String,
    place: Place,
    bytes: Bytes,
}

impl CommittedFiles {
    /// Cuts what lies beyond the committed state, which is absent at the first start.
    ///
    /// # Errors
    /// When the disk fails or committed bytes are missing.
    pub(super) async fn open(
        spool: &Arc<dyn Spool>,
        (prefix, suffix): (String, &'static str),
        file_bytes_max: u64,
        committed: Option<Place>,
    ) -> Result<Self, OutputError> {
        let place = committed.unwrap_or_default();
        let files = Self { prefix, suffix, file_bytes_max, place, gathered: Vec::new() };
        let folder = files.prefix.rsplit_once('/').map_or("", |(folder, _)| folder);
        let disk = |what, file: &str| {
            let file = file.to_owned();
            move |source| OutputError::Disk { what, file, source }
        };
        let mut found = 0;
        for (name, bytes) in spool.list(folder).await.map_err(disk("list", folder))? {
            let Some(number) = files.number_of(&name) else { continue };
            if number > place.file || (number == place.file && place.offset == 0) {
                spool.remove(&name).await.map_err(disk("remove", &name))?;
            } else if number == place.file {
                found = bytes;
                if bytes > place.offset {
                    spool.truncate(&name, place.offset).await.map_err(disk("cut", &name))?;
                }
            }
        }
        if found < place.offset {
            let file = files.name_of(place.file);
            return Err(OutputError::Lost { file, found, committed: place.offset });
        }
        Ok(files)
    }

    /// The buffer that the next group is gathered in.
    pub(super) fn gathered(&mut self) -> &mut Vec<u8> {
        &mut self.gathered
    }

    /// What was gathered, as one append; `None` when there is nothing. A full file gives way
    /// first.
    pub(super) fn take(&mut self) -> Option<Append> {
        if self.gathered.is_empty() {
            return None;
        }
        if self.place.offset >= self.file_bytes_max {
            self.place = Place { file: self.place.file + 1, offset: 0 };
        }
        let bytes = Bytes::from(std::mem::take(&mut self.gathered));
        let append = Append { file: self.name_of(self.place.file), place: self.place, bytes };
        self.place = append.end();
        Some(append)
    }

    /// The next group begins another file, if the one in hand holds anything; how far it counts
    /// then.
    pub(super) fn rotate(&mut self) -> Option<Place> {
        (self.place.offset > 0).then(|| {
            self.place = Place { file: self.place.file + 1, offset: 0 };
            self.place
        })
    }

    fn name_of(&self, number: u64) -> String {
        format!("{}{number}{}", self.prefix, self.suffix)
    }

    fn number_of(&self, name: &str) -> Option<u64> {
        name.strip_prefix(&self.prefix)?.strip_suffix(self.suffix)?.parse().ok()
    }
}

impl Append {
    /// Puts it on the disk; may be repeated until it succeeds.
    ///
    /// # Errors
    /// What the disk says.
    pub(super) async fn run(self, spool: &dyn Spool) -> std::io::Result<()> {
        spool.append(&self.file, self.place.offset, self.bytes).await
    }

    /// How far the output counts once this is committed.
    pub(super) fn end(&self) -> Place {
        let length = u64::try_from(self.bytes.len()).unwrap_or(u64::MAX);
        Place { offset: self.place.offset.saturating_add(length), ..self.place }
    }
}
