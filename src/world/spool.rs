//! The files that archive and outputs append to.
//!
//! Names are relative, with `/` between folder and file; folders appear when they are needed. Every
//! call is whole: when it returns, what it did is on disk, names included. No file is kept open
//! between calls, so an owner that was replaced holds nothing. Real: a directory; simulated:
//! memory.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;

/// Append-only files.
#[async_trait]
pub trait Spool: Send + Sync + fmt::Debug {
    /// Writes at `offset`, which must be where what counts of the file ends: anything beyond is cut
    /// off first, so a failed append is repaired by the next one. A file is made at offset 0 only.
    ///
    /// # Errors
    /// As the disk says; an unknown part of `bytes` may then lie beyond `offset`.
    async fn append(&self, name: &str, offset: u64, bytes: Bytes) -> io::Result<()>;

    /// Up to `length` bytes from `offset`; fewer at the end of the file.
    ///
    /// # Errors
    /// As the disk says.
    async fn read(&self, name: &str, offset: u64, length: u64) -> io::Result<Bytes>;

    /// Cuts the file at `length`.
    ///
    /// # Errors
    /// As the disk says.
    async fn truncate(&self, name: &str, length: u64) -> io::Result<()>;

    /// Gives a file another name, in place of a file that has it.
    ///
    /// # Errors
    /// As the disk says.
    async fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// As the disk says.
    async fn remove(&self, name: &str) -> io::Result<()>;

    /// The files of a folder with their sizes, sorted by name; empty when there is none.
    ///
    /// # Errors
    /// As the disk says.
    async fn list(&self, folder: &str) -> io::Result<Vec<(String, u64)>>;
}

/// Files under one directory.
#[derive(Clone, Debug)]
pub struct DirectorySpool {
    root: Arc<Path>,
}

impl DirectorySpool {
    /// A spool in a directory, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into().into() }
    }

    async fn run<T, F>(&self, work: F) -> io::Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Path) -> io::Result<T> + Send + 'static,
    {
        let root = Arc::clone(&self.root);
        tokio::task::spawn_blocking(move || work(&root)).await.map_err(io::Error::other)?
    }
}

#[async_trait]
impl Spool for DirectorySpool {
    async fn append(&self, name: &str, offset: u64, bytes: Bytes) -> io::Result<()> {
        let name = name.to_owned();
        self.run(move |root| append_to(&root.join(name), offset, &bytes)).await
    }

    async fn read(&self, name: &str, offset: u64, length: u64) -> io::Result<Bytes> {
        let name = name.to_owned();
        self.run(move |root| {
            let mut file = File::open(root.join(name))?;
            file.seek(SeekFrom::Start(offset))?;
            let mut bytes = Vec::new();
            file.take(length).read_to_end(&mut bytes)?;
            Ok(bytes.into())
        })
        .await
    }

    async fn truncate(&self, name: &str, length: u64) -> io::Result<()> {
        let name = name.to_owned();
        self.run(move |root| {
            let file = OpenOptions::new().write(true).open(root.join(name))?;
            file.set_len(length)?;
            file.sync_all()
        })
        .await
    }

    async fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let (from, to) = (from.to_owned(), to.to_owned());
        self.run(move |root| {
            let (from, to) = (root.join(from), root.join(to));
            make_folder(&to)?;
            fs::rename(&from, &to)?;
            sync_folder(&to)?;
            if from.parent() == to.parent() { Ok(()) } else { sync_folder(&from) }
        })
        .await
    }

    async fn remove(&self, name: &str) -> io::Result<()> {
        let name = name.to_owned();
        self.run(move |root| {
            let path = root.join(name);
            fs::remove_file(&path)?;
            sync_folder(&path)
        })
        .await
    }

    async fn list(&self, folder: &str) -> io::Result<Vec<(String, u64)>> {
        let folder = folder.to_owned();
        self.run(move |root| list_files(&root.join(&folder), &folder)).await
    }
}

fn append_to(path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
    let fresh = offset == 0;
    if fresh {
        make_folder(path)?;
    }
    let mut file = OpenOptions::new().write(true).create(fresh).truncate(fresh).open(path)?;
    let length = file.metadata()?.len();
    if length < offset {
        let why = format!("{} ends at {length}, before {offset}", path.display());
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, why));
    }
    if length > offset {
        file.set_len(offset)?;
    }
    file.seek(SeekFrom::Start(offset))?;
    file.write_all(bytes)?;
    file.sync_data()?;
    if fresh { sync_folder(path) } else { Ok(()) }
}

fn list_files(path: &Path, folder: &str) -> io::Result<Vec<(String, u64)>> {
    let entries = match fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry?;
        let metadata = entry.metadata()?;
        // A name that is not UTF-8 is none of ours.
        if let (true, Some(name)) = (metadata.is_file(), entry.file_name().to_str()) {
            files.push((format!("{folder}/{name}"), metadata.len()));
        }
    }
    files.sort();
    Ok(files)
}

fn make_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// A name is durable when its folder is synced.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    } else {
        Ok(())
    }
}

/// Files in memory: what a disk would hold, with a fault to set.
#[derive(Debug, Default)]
pub struct MemorySpool {
    disk: Mutex<Disk>,
}

#[derive(Debug, Default)]
struct Disk {
    files: BTreeMap<String, Vec<u8>>,
    fault: Option<String>,
}

impl MemorySpool {
    /// An empty disk.
    pub fn new() -> Self {
        Self::default()
    }

    /// From now on every change fails with this text, after half of an append was written; `None`
    /// heals the disk.
    pub fn set_fault(&self, fault: Option<&str>) {
        self.lock().fault = fault.map(str::to_owned);
    }

    /// The content of a file.
    pub fn content(&self, name: &str) -> Option<Vec<u8>> {
        self.lock().files.get(name).cloned()
    }

    /// Puts a file there, as if it had always been there.
    pub fn place(&self, name: &str, content: Vec<u8>) {
        self.lock().files.insert(name.to_owned(), content);
    }

    fn lock(&self) -> MutexGuard<'_, Disk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk {
    fn check(&self) -> io::Result<()> {
        self.fault.as_ref().map_or(Ok(()), |fault| Err(io::Error::other(fault.clone())))
    }

    fn file(&mut self, name: &str) -> io::Result<&mut Vec<u8>> {
        self.files.get_mut(name).ok_or_else(|| missing(name))
    }
}

fn missing(name: &str) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{name} is not there"))
}

#[async_trait]
impl Spool for MemorySpool {
    async fn append(&self, name: &str, offset: u64, bytes: Bytes) -> io::Result<()> {
        let mut disk = self.lock();
        let (offset, fault) = (index(offset), disk.check());
        if offset == 0 {
            disk.files.insert(name.to_owned(), Vec::new());
        }
        let file = disk.file(name)?;
        if file.len() < offset {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "shorter than its offset"));
        }
        file.truncate(offset);
        let whole = if fault.is_ok() { bytes.len() } else { bytes.len() / 2 };
        file.extend_from_slice(bytes.get(..whole).unwrap_or_default());
        fault
    }

    async fn read(&self, name: &str, offset: u64, length: u64) -> io::Result<Bytes> {
        let mut disk = self.lock();
        let file = disk.file(name)?;
        let from = index(offset).min(file.len());
        let to = from.saturating_add(index(length)).min(file.len());
        Ok(Bytes::copy_from_slice(&file[from..to]))
    }

    async fn truncate(&self, name: &str, length: u64) -> io::Result<()> {
        let mut disk = self.lock();
        disk.check()?;
        disk.file(name)?.truncate(index(length));
        Ok(())
    }

    async fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.lock();
        disk.check()?;
        let content = disk.files.remove(from).ok_or_else(|| missing(from))?;
        disk.files.insert(to.to_owned(), content);
        Ok(())
    }

    async fn remove(&self, name: &str) -> io::Result<()> {
        let mut disk = self.lock();
        disk.check()?;
        disk.files.remove(name).map(drop).ok_or_else(|| missing(name))
    }

    async fn list(&self, folder: &str) -> io::Result<Vec<(String, u64)>> {
        let disk = self.lock();
        let mut files = Vec::new();
        for (name, content) in &disk.files {
            let size = u64::try_from(content.len()).unwrap_or(u64::MAX);
            match name.rsplit_once('/') {
                Some((place, _)) if place == folder => files.push((name.clone(), size)),
                _ => {}
            }
        }
        Ok(files)
    }
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn behaves_like_a_disk(spool: &dyn Spool) {
        let name = "pages/one.jsonl";
        assert!(spool.list("pages").await.unwrap().is_empty());
        assert!(spool.append(name, 3, Bytes::from_static(b"x")).await.is_err(), "no hole");
        spool.append(name, 0, Bytes::from_static(b"abcdef")).await.unwrap();
        spool.append(name, 3, Bytes::from_static(b"DE")).await.unwrap();
        assert_eq!(spool.read(name, 0, 99).await.unwrap(), "abcDE");
        assert_eq!(spool.read(name, 4, 1).await.unwrap(), "E");
        assert_eq!(spool.read(name, 9, 1).await.unwrap(), "");
        assert!(spool.append(name, 9, Bytes::from_static(b"x")).await.is_err(), "no hole");
        spool.truncate(name, 2).await.unwrap();
        spool.rename(name, "other/two").await.unwrap();
        assert_eq!(spool.list("other").await.unwrap(), [("other/two".to_owned(), 2)]);
        assert!(spool.list("pages").await.unwrap().is_empty());
        assert_eq!(spool.read(name, 0, 1).await.unwrap_err().kind(), io::ErrorKind::NotFound);
        spool.remove("other/two").await.unwrap();
        assert!(spool.list("other").await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn a_directory_is_a_spool() {
        let place = tempfile::tempdir().unwrap();
        behaves_like_a_disk(&DirectorySpool::new(place.path().join("new"))).await;
    }

    #[tokio::test]
    async fn memory_is_a_spool() {
        behaves_like_a_disk(&MemorySpool::new()).await;
    }

    #[tokio::test]
    async fn a_failed_append_is_repaired_by_the_next() {
        let spool = MemorySpool::new();
        spool.append("a/b", 0, Bytes::from_static(b"one")).await.unwrap();
        spool.set_fault(Some("disk full"));
        let error = spool.append("a/b", 3, Bytes::from_static(b"twotwo")).await.unwrap_err();
        assert_eq!(error.to_string(), "disk full");
        assert_eq!(spool.content("a/b").unwrap(), b"onetwo");
        spool.set_fault(None);
        spool.append("a/b", 3, Bytes::from_static(b"three")).await.unwrap();
        assert_eq!(spool.content("a/b").unwrap(), b"onethree");
    }
}
