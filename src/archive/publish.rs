//! From a file being written to a published one: read back, indexed, renamed (B6).
//!
//! A file is `.open` until every member was read from the disk again, its digests compared and its
//! place checked. Its CDXJ is there before it is. All of it may be repeated after a crash.

use std::io::ErrorKind;
use std::sync::Arc;

use tracing::{error, warn};

use super::member::{ArchiveFormat, size};
use super::record::Record;
use super::scan::Scan;
use super::{ArchiveError, cdxj, warc};
use crate::telemetry::{ArchiveFileClosed, Metrics, TornTailCut};
use crate::world::Spool;

/// Where a file of this name lies once it is published.
pub(super) fn final_path(file: &str) -> String {
    format!("{FOLDER}/{file}")
}

/// Where it lies while it is written.
pub(super) fn open_path(file: &str) -> String {
    format!("{FOLDER}/{file}{OPEN}")
}

/// Where it is kept for a person to look at when it does not hold what was written.
pub(super) fn damaged_path(file: &str) -> String {
    format!("{FOLDER}/{file}.damaged")
}

/// Where the index of a file lies, with or without the folder of the file.
pub(super) fn index_path(file: &str) -> String {
    let name = file.rsplit_once('/').map_or(file, |(_, name)| name);
    let base = name.split_once(".warc").map_or(name, |(base, _)| base);
    format!("{INDEX}/{base}.cdxj")
}

pub(super) const INDEX: &str = "index";
pub(super) const FOLDER: &str = "archive";
pub(super) const OPEN: &str = ".open";

/// A file that takes no more records.
#[derive(Clone, Debug, Default)]
pub(super) struct ClosedFile {
    /// Its final name, without folder.
    pub(super) name: String,
    /// What counts of it: an append that failed may have left more.
    pub(super) bytes: u64,
    /// Offset and length of each member as it was written; empty when nobody knows any more.
    pub(super) members: Vec<(u64, u64)>,
}

/// Publishes a closed file and its index.
///
/// # Errors
/// When the disk fails: try again. When the file is damaged it was put aside: do not.
pub(super) async fn publish(
    spool: &Arc<dyn Spool>,
    file: &ClosedFile,
    metrics: &Metrics,
) -> Result<(), ArchiveError> {
    let records = index_and_rename(spool, file).await?;
    ArchiveFileClosed { file: &file.name, records, bytes: file.bytes }.emit(metrics);
    Ok(())
}

/// Answers with the number of its records.
async fn index_and_rename(spool: &Arc<dyn Spool>, file: &ClosedFile) -> Result<u64, ArchiveError> {
    let open = open_path(&file.name);
    let step = |what| move |source| ArchiveError::disk(what, &file.name, source);
    match spool.truncate(&open, file.bytes).await {
        Err(error) if error.kind() == ErrorKind::NotFound && is_done(spool, file).await => {
            return Ok(size(file.members.len()));
        }
        cut => cut.map_err(step("truncate"))?,
    }
    let (lines, records) = match index_of(spool, file).await {
        Err(ArchiveError::Damaged { file: _, offset, why }) => {
            error!(file = file.name, offset, why, "archive file is damaged, put aside");
            let aside = damaged_path(&file.name);
            spool.rename(&open, &aside).await.map_err(step("rename"))?;
            return Err(ArchiveError::Damaged { file: file.name.clone(), offset, why });
        }
        indexed => indexed?,
    };
    let index = index_path(&file.name);
    let draft = format!("{index}.tmp");
    spool.append(&draft, 0, lines.concat().into()).await.map_err(step("index"))?;
    spool.rename(&draft, &index).await.map_err(step("index"))?;
    spool.rename(&open, &final_path(&file.name)).await.map_err(step("rename"))?;
    Ok(size(records))
}

/// An earlier try got as far as the last name, and only its end was not heard of.
async fn is_done(spool: &Arc<dyn Spool>, file: &ClosedFile) -> bool {
    let names = [final_path(&file.name), damaged_path(&file.name)];
    list(spool).await.is_ok_and(|files| files.iter().any(|(name, _)| names.contains(name)))
}

/// The sorted CDXJ lines of a file and how many records it has, made from what is on the disk and
/// not from what is remembered.
async fn index_of(
    spool: &Arc<dyn Spool>,
    file: &ClosedFile,
) -> Result<(Vec<String>, usize), ArchiveError> {
    let format = ArchiveFormat::of_name(&file.name).unwrap_or_default();
    let mut scan = Scan::new(spool, &open_path(&file.name), format);
    let mut lines = Vec::new();
    let mut members = 0;
    let files = list(spool).await?;
    while let Some(found) = scan.next().await? {
        let written = file.members.get(members);
        if !file.members.is_empty() && written != Some(&(found.offset, found.length)) {
            let why = "a member is not where it was written".to_owned();
            let offset = found.offset;
            return Err(ArchiveError::Damaged { file: file.name.clone(), offset, why });
        }
        check_target(&found.record, &files, &file.name);
        lines.extend(cdxj::line(&found.record, &file.name, found.offset, found.length));
        members += 1;
    }
    if members < file.members.len() {
        let why = format!("{members} of {} members are there", file.members.len());
        return Err(ArchiveError::Damaged { file: file.name.clone(), offset: scan.offset, why });
    }
    lines.sort_unstable();
    Ok((lines, members))
}

/// B6: what a revisit refers to is there. It may have aged out since, so this is only said.
fn check_target(record: &Record, files: &[(String, u64)], in_file: &str) {
    let Some(pointer) = super::read::target_of(record) else { return };
    let (last, open) = (final_path(&pointer.file), open_path(&pointer.file));
    let end = pointer.offset.saturating_add(pointer.length);
    let there = |(name, size): &(String, u64)| (*name == last || *name == open) && *size >= end;
    if !files.iter().any(there) {
        warn!(file = in_file, target = &*pointer.file, "revisit of a record that is not there");
    }
}

/// All files of the archive.
pub(super) async fn list(spool: &Arc<dyn Spool>) -> Result<Vec<(String, u64)>, ArchiveError> {
    spool.list(FOLDER).await.map_err(|source| ArchiveError::disk("list", FOLDER, source))
}

/// Publishes a file that a crash left open, cut behind its last whole member. A file that holds
/// nothing but its warcinfo is removed.
///
/// # Errors
/// When the disk fails.
pub(super) async fn recover(
    spool: &Arc<dyn Spool>,
    name: &str,
    bytes: u64,
    metrics: &Metrics,
) -> Result<(), ArchiveError> {
    let path = open_path(name);
    let format = ArchiveFormat::of_name(name).unwrap_or_default();
    let mut scan = Scan::new(spool, &path, format);
    let mut replayed = 0;
    loop {
        match scan.next().await {
            Ok(Some(found)) => replayed += u32::from(found.record.kind() != "warcinfo"),
            Ok(None) => break,
            Err(ArchiveError::Damaged { offset, why, .. }) => {
                let bytes = bytes.saturating_sub(offset);
                TornTailCut { file: name, bytes, why: &why }.emit(metrics);
                break;
            }
            Err(error) => return Err(error),
        }
    }
    if replayed == 0 {
        return spool
            .remove(&path)
            .await
            .map_err(|source| ArchiveError::disk("remove", name, source));
    }
    let whole = ClosedFile { name: name.to_owned(), bytes: scan.offset, members: Vec::new() };
    publish(spool, &whole, metrics).await
}

/// The serial number and the writer's index in a file name; `None` for a file of somebody else.
pub(super) fn numbers_of(path: &str) -> Option<(u64, u16)> {
    let (_, file) = path.rsplit_once('/')?;
    let (base, _) = file.split_once(".warc")?;
    let mut parts = base.strip_prefix(warc::FILE_PREFIX)?.split('-').skip(1);
    let serial = parts.next()?.parse().ok()?;
    Some((serial, parts.next()?.parse().ok()?))
}
