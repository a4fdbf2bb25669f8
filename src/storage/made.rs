//! Which shards a data directory has, and in which object store: its own record of them.
//!
//! A shard that was made and is not there any more would open as an empty one: what it knew, and
//! the waits that sites asked for, would be forgotten without a word (I3, I4). So the record is
//! compared with the store before anything is opened.
//!
//! - M-1 A shard that is in the record has objects in the store; else nothing is opened or touched.
//! - M-2 Without a record a directory is new, or older than the record. Where it has page records
//!   and the store has no shard at all it is neither, and outputs would be cut to nothing.
//! - M-3 The record is written when all shards are open, so it never names one that was not made.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use futures::StreamExt as _;
use object_store::path::Path as ObjectPath;
use thiserror::Error;

use super::directory::replace;
use crate::types::ShardId;
use crate::world::Objects;

/// The record, beside VERSION.
const FILE: &str = "SHARDS";
/// `data.store` where it is not given.
const OWN: &str = "auto";
/// Shards that a message names.
const NAMED_MAX: usize = 5;

/// The shards of a data directory as its record has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeShards {
    path: PathBuf,
    store: String,
    made: BTreeSet<u16>,
}

/// Why the shards of a directory are not opened.
#[derive(Debug, Error)]
pub enum MadeShardsError {
    /// Some are gone.
    #[error(
        "{shards} of this data directory {} in {}: put back the missing folder from a backup, or \
         begin anew with an empty data directory; what it knew (URLs, waits that sites asked for) \
         would be forgotten without a word",
        is_not(*.number), place(.store)
    )]
    Missing {
        /// Which.
        shards: String,
        /// How many.
        number: usize,
        /// `data.store`, or `auto`.
        store: String,
    },
    /// The directory belongs to another store.
    #[error(
        "this data directory was made with `data.store` {}, and {shards} {} in {}: set \
         `data.store` as it was, or copy the shards over, or take an empty data directory",
        quoted(.made_with), is_not(*.number), place(.store)
    )]
    OtherStore {
        /// Which are not there.
        shards: String,
        /// How many.
        number: usize,
        /// `data.store` now.
        store: String,
        /// `data.store` then.
        made_with: String,
    },
    /// Page records lie here, and nothing of the shards that they belong to.
    #[error(
        "{} has page records, and there is no shard in {}: put back `shards` and `SHARDS` from a \
         backup, or begin anew with an empty data directory; the records would be cut away",
        path.display(), place(.store)
    )]
    Orphans {
        /// The data directory.
        path: PathBuf,
        /// `data.store`, or `auto`.
        store: String,
    },
    /// The record cannot be read.
    #[error("{} is damaged: wanted `store …` and `made 0 1 2 …`, found `{found}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The first line that is wrong.
        found: String,
    },
    /// The disk refuses.
    #[error("failed to {doing} {}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The object store refuses.
    #[error("failed to list the shards in {}", place(.store))]
    Store {
        /// `data.store`, or `auto`.
        store: String,
        /// Why.
        #[source]
        source: object_store::Error,
    },
}

impl MadeShards {
    /// Reads the record of a data directory, and compares it with the store that is configured.
    ///
    /// # Errors
    /// Shards are missing, or the directory was made for another store that has them.
    pub async fn check(
        directory: &Path,
        configured: Option<&str>,
        objects: &Objects,
    ) -> Result<Self, MadeShardsError> {
        let path = directory.join(FILE);
        let store = configured.unwrap_or(OWN).to_owned();
        let Some(record) = read(&path)? else {
            let is_old = has_page_records(directory)? && !objects.is_in_memory();
            if is_old && !has_any(objects, &store).await? {
                return Err(MadeShardsError::Orphans { path: directory.to_owned(), store });
            }
            return Ok(Self { path, store, made: BTreeSet::new() });
        };
        let mut missing = Vec::new();
        for shard in record.made.iter().filter(|_| !objects.is_in_memory()) {
            if !is_there(objects, *shard, &store).await? {
                missing.push(*shard);
            }
        }
        let (shards, number) = (named(&missing), missing.len());
        if missing.is_empty() {
            // Shards that were moved with all they have are as good as before.
            Ok(Self { store, ..record })
        } else if record.store == store {
            Err(MadeShardsError::Missing { shards, number, store })
        } else {
            Err(MadeShardsError::OtherStore { shards, number, store, made_with: record.store })
        }
    }

    /// All these are open now, and durable.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn opened(
        &mut self,
        shards: impl IntoIterator<Item = ShardId>,
    ) -> Result<(), MadeShardsError> {
        self.made.extend(shards.into_iter().map(|shard| shard.0));
        let numbers: Vec<String> = self.made.iter().map(u16::to_string).collect();
        let text = format!("store {}\nmade {}\n", self.store, numbers.join(" "));
        if fs::read_to_string(&self.path).is_ok_and(|before| before == text) {
            return Ok(());
        }
        let failed =
            |source| MadeShardsError::Io { doing: "write", path: self.path.clone(), source };
        replace(&self.path, &text).map_err(failed)
    }
}

fn read(path: &Path) -> Result<Option<MadeShards>, MadeShardsError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(MadeShardsError::Io { doing: "read", path: path.to_owned(), source });
        }
    };
    let mut record = MadeShards { path: path.to_owned(), store: String::new(), made: [].into() };
    for line in text.lines() {
        let unreadable =
            || MadeShardsError::Unreadable { path: path.to_owned(), found: line.to_owned() };
        match line.split_once(' ') {
            Some(("store", store)) => record.store = store.to_owned(),
            Some(("made", numbers)) => {
                let numbers: Result<_, _> = numbers.split_whitespace().map(str::parse).collect();
                record.made = numbers.map_err(|_| unreadable())?;
            }
            _ => return Err(unreadable()),
        }
    }
    if record.store.is_empty() || record.made.is_empty() {
        let found = text.lines().last().unwrap_or_default().to_owned();
        return Err(MadeShardsError::Unreadable { path: path.to_owned(), found });
    }
    Ok(Some(record))
}

/// Some output has written records here.
fn has_page_records(directory: &Path) -> Result<bool, MadeShardsError> {
    let path = directory.join("pages");
    let files = match fs::read_dir(&path) {
        Ok(files) => files,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(source) => return Err(MadeShardsError::Io { doing: "read", path, source }),
    };
    let sizes = files.filter_map(|file| file.and_then(|file| file.metadata()).ok());
    Ok(sizes.into_iter().any(|found| found.is_file() && found.len() > 0))
}

/// Whether anything lies in the store.
async fn has_any(objects: &Objects, store: &str) -> Result<bool, MadeShardsError> {
    let found = objects.store().list(None).next().await.transpose();
    let failed = |source| MadeShardsError::Store { store: store.to_owned(), source };
    found.map(|found| found.is_some()).map_err(failed)
}

/// Whether a shard has its manifest, which every open of it writes.
async fn is_there(objects: &Objects, shard: u16, store: &str) -> Result<bool, MadeShardsError> {
    let prefix = ObjectPath::from(format!("{shard}/manifest"));
    let found = objects.store().list(Some(&prefix)).next().await;
    let found = found.transpose();
    let failed = |source| MadeShardsError::Store { store: store.to_owned(), source };
    found.map(|found| found.is_some()).map_err(failed)
}

fn named(shards: &[u16]) -> String {
    let mut names: Vec<String> = shards.iter().take(NAMED_MAX).map(u16::to_string).collect();
    if shards.len() > NAMED_MAX {
        names.push(format!("{} more", shards.len() - NAMED_MAX));
    }
    let word = if shards.len() == 1 { "shard" } else { "shards" };
    format!("{word} {}", names.join(", "))
}

fn is_not(number: usize) -> &'static str {
    if number == 1 { "is not" } else { "are not" }
}

fn place(store: &str) -> String {
    if store == OWN { "its folder `shards`".to_owned() } else { store.to_owned() }
}

fn quoted(store: &str) -> String {
    if store == OWN {
        "left out (its own folder `shards`)".to_owned()
    } else {
        format!("\"{store}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store in which these shards are.
    fn with_shards(shards: &[u16]) -> (tempfile::TempDir, Objects) {
        let root = tempfile::tempdir().unwrap();
        for shard in shards {
            let manifest = root.path().join(format!("{shard}/manifest"));
            fs::create_dir_all(&manifest).unwrap();
            fs::write(manifest.join("1.manifest"), "x").unwrap();
        }
        let objects = Objects::open_directory(root.path()).unwrap();
        (root, objects)
    }

    #[tokio::test]
    async fn a_shard_that_was_made_and_is_gone_is_an_error() {
        let data = tempfile::tempdir().unwrap();
        let (store, objects) = with_shards(&[0, 1, 2]);
        let mut made = MadeShards::check(data.path(), None, &objects).await.unwrap();
        made.opened((0..3).map(ShardId)).unwrap();
        let text = fs::read_to_string(data.path().join(FILE)).unwrap();
        assert_eq!(text, "store auto\nmade 0 1 2\n");
        assert_eq!(MadeShards::check(data.path(), None, &objects).await.unwrap(), made);
        fs::remove_dir_all(store.path().join("1")).unwrap();
        fs::create_dir_all(store.path().join("1/manifest")).unwrap();
        let error = MadeShards::check(data.path(), None, &objects).await.unwrap_err().to_string();
        assert!(error.contains("shard 1 of this data directory is not in its folder"), "{error}");
        assert_eq!(fs::read_to_string(data.path().join(FILE)).unwrap(), text);
    }

    #[tokio::test]
    async fn another_store_is_an_error_unless_it_has_every_shard() {
        let data = tempfile::tempdir().unwrap();
        let (_here, objects) = with_shards(&[0, 1]);
        let mut made = MadeShards::check(data.path(), None, &objects).await.unwrap();
        made.opened([ShardId(0), ShardId(1)]).unwrap();
        let (_there, empty) = with_shards(&[]);
        let url = Some("file:///elsewhere");
        let error = MadeShards::check(data.path(), url, &empty).await.unwrap_err().to_string();
        let expected = "made with `data.store` left out (its own folder `shards`), and shards 0, 1 \
                        are not in file:///elsewhere";
        assert!(error.contains(expected), "{error}");
        let (_copy, copied) = with_shards(&[0, 1]);
        let mut made = MadeShards::check(data.path(), url, &copied).await.unwrap();
        made.opened([ShardId(0)]).unwrap();
        let text = fs::read_to_string(data.path().join(FILE)).unwrap();
        assert_eq!(text, "store file:///elsewhere\nmade 0 1\n");
    }

    #[tokio::test]
    async fn a_damaged_record_and_a_store_in_memory() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join(FILE);
        fs::write(&path, "store auto\nmade 0 one\n").unwrap();
        let (_store, objects) = with_shards(&[0]);
        let error = MadeShards::check(data.path(), None, &objects).await.unwrap_err().to_string();
        assert!(error.contains("is damaged") && error.contains("`made 0 one`"), "{error}");
        fs::write(&path, "store memory://\nmade 0\n").unwrap();
        let memory = MadeShards::check(data.path(), Some("memory://"), &Objects::memory()).await;
        assert_eq!(memory.unwrap().made, [0].into());
    }

    #[tokio::test]
    async fn an_emptied_record_is_damaged_and_page_records_without_shards_are_not_cut_away() {
        let data = tempfile::tempdir().unwrap();
        let (_none, empty) = with_shards(&[]);
        assert!(MadeShards::check(data.path(), None, &empty).await.is_ok(), "a new directory");
        let pages = data.path().join("pages");
        fs::create_dir_all(&pages).unwrap();
        fs::write(pages.join("pages-0-0.jsonl"), "{}\n").unwrap();
        let error = MadeShards::check(data.path(), None, &empty).await.unwrap_err().to_string();
        assert!(error.contains("the records would be cut away"), "{error}");
        let (_old, objects) = with_shards(&[0]);
        assert!(MadeShards::check(data.path(), None, &objects).await.is_ok(), "before the record");
        fs::write(data.path().join(FILE), "").unwrap();
        let error = MadeShards::check(data.path(), None, &objects).await.unwrap_err().to_string();
        assert!(error.contains("is damaged"), "{error}");
    }

    #[test]
    fn many_shards_are_named_briefly() {
        assert_eq!(named(&[7]), "shard 7");
        assert_eq!(named(&[1, 2, 3, 4, 5, 6, 7]), "shards 1, 2, 3, 4, 5, 2 more");
    }
}
