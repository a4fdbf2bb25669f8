//! The object store of a node, and the clock that SlateDB is given.
//!
//! A store is named by a URL (`file:///…`, `memory://`) or by a directory. Files are synced before
//! a write returns, so what the object store has taken survives a power cut.

use std::fmt;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use slatedb_common::clock::{SystemClock, SystemClockTicker};
use thiserror::Error;
use url::Url;

use super::Clock;
use crate::types::Timestamp;

/// An object store that is open.
#[derive(Clone)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    name: String,
    overwrites_conditionally: bool,
}

/// Why an object store cannot be opened.
#[derive(Debug, Error)]
pub enum ObjectsError {
    /// Neither a URL nor a directory.
    #[error("`{url}` is not the URL of an object store: {why}")]
    NotAStore {
        /// As given.
        url: String,
        /// One phrase.
        why: String,
    },
    /// A scheme that this build does not speak.
    #[error("`{url}`: this build has no `{scheme}` object store, only file:// and memory://")]
    SchemeMissing {
        /// As given.
        url: String,
        /// Its scheme.
        scheme: String,
    },
    /// The directory could not be made.
    #[error("failed to create {}", path.display())]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The directory could not be opened.
    #[error("failed to open the object store at {}", path.display())]
    Open {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: object_store::Error,
    },
}

impl Objects {
    /// Opens the store that a URL names, or the directory when it is no URL.
    ///
    /// # Errors
    /// The scheme is not built in, or the directory cannot be used.
    pub fn open(name: &str) -> Result<Self, ObjectsError> {
        Self::check(name)?;
        match name.split_once("://") {
            None => Self::open_directory(Path::new(name)),
            Some(("memory", _)) => Ok(Self::memory()),
            Some(_) => Self::open_directory(&Self::path_of(name)?),
        }
    }

    /// Whether a URL names a store of a kind that can be opened; nothing is touched.
    ///
    /// # Errors
    /// The scheme is not one of this build, or the path is none.
    pub fn check(name: &str) -> Result<(), ObjectsError> {
        match name.split_once("://") {
            None | Some(("memory", _)) => Ok(()),
            Some(("file", _)) => Self::path_of(name).map(drop),
            Some((scheme, _)) => {
                Err(ObjectsError::SchemeMissing { url: name.to_owned(), scheme: scheme.to_owned() })
            }
        }
    }

    /// Opens a local directory, made when it is missing.
    ///
    /// # Errors
    /// It cannot be made or opened.
    pub fn open_directory(path: &Path) -> Result<Self, ObjectsError> {
        std::fs::create_dir_all(path)
            .map_err(|source| ObjectsError::Directory { path: path.to_owned(), source })?;
        let store = LocalFileSystem::new_with_prefix(path)
            .map_err(|source| ObjectsError::Open { path: path.to_owned(), source })?
            .with_fsync(true);
        Ok(Self {
            store: Arc::new(store),
            name: format!("file://{}", path.display()),
            overwrites_conditionally: false,
        })
    }

    /// A new, empty store in memory: for tests.
    pub fn memory() -> Self {
        Self::from_store(Arc::new(InMemory::new()), "memory://")
    }

    /// Takes a store that overwrites conditionally (`If-Match`), under the name it is reported by.
    pub fn from_store(store: Arc<dyn ObjectStore>, name: &str) -> Self {
        Self { store, name: name.to_owned(), overwrites_conditionally: true }
    }

    /// The store itself.
    pub fn store(&self) -> Arc<dyn ObjectStore> {
        Arc::clone(&self.store)
    }

    /// What it is reported as.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether an object can be overwritten on the condition that it has not changed. The local
    /// file system cannot; there the lock of the data directory keeps a second writer away.
    pub fn overwrites_conditionally(&self) -> bool {
        self.overwrites_conditionally
    }

    /// Whether its objects lie in this process: then a cache of them would only double them.
    pub fn is_in_memory(&self) -> bool {
        self.name.starts_with("memory:")
    }

    fn path_of(url: &str) -> Result<PathBuf, ObjectsError> {
        let no = |why: &str| ObjectsError::NotAStore { url: url.to_owned(), why: why.to_owned() };
        let parsed = Url::parse(url).map_err(|why| no(&why.to_string()))?;
        parsed.to_file_path().map_err(|()| no("a file URL needs an absolute path: file:///path"))
    }
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Objects({})", self.name)
    }
}

/// Our clock as SlateDB asks it, never behind what a store has already written.
///
/// A clock behind the last write makes SlateDB wait and then fail. After [`SlateClock::raise`] it
/// runs on from the floor at the normal pace, however far the machine's clock was set back.
#[derive(Debug)]
pub struct SlateClock {
    clock: Arc<dyn Clock>,
    ahead_ms: AtomicI64,
}

impl SlateClock {
    /// Starts from our clock, and not before `floor`.
    pub fn new(clock: Arc<dyn Clock>, floor: Timestamp) -> Self {
        let slate = Self { clock, ahead_ms: AtomicI64::new(0) };
        slate.raise(floor);
        slate
    }

    /// From now on it is `floor` or later.
    pub fn raise(&self, floor: Timestamp) {
        let behind = floor.as_millis().saturating_sub(self.clock.now().as_millis());
        self.ahead_ms.fetch_max(behind, Ordering::SeqCst);
    }

    /// The time now, as SlateDB sees it.
    pub fn timestamp(&self) -> Timestamp {
        let ahead = self.ahead_ms.load(Ordering::SeqCst);
        Timestamp::from_millis(self.clock.now().as_millis().saturating_add(ahead))
    }
}

impl SystemClock for SlateClock {
    fn now(&self) -> DateTime<Utc> {
        DateTime::from_timestamp_millis(self.timestamp().as_millis()).unwrap_or_default()
    }

    fn sleep<'a>(&'a self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        Box::pin(self.clock.sleep(duration))
    }

    fn ticker<'a>(&'a self, duration: Duration) -> SystemClockTicker<'a> {
        SystemClockTicker::new(self, duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::world::TokioClock;

    #[test]
    fn unknown_schemes_are_named() {
        let error = Objects::open("s3://bucket/x").unwrap_err().to_string();
        assert!(error.contains("no `s3` object store"), "{error}");
        let error = Objects::open("file://relative").unwrap_err().to_string();
        assert!(error.contains("absolute path"), "{error}");
    }

    #[test]
    fn directories_and_file_urls_are_the_same_store() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a b");
        let by_path = Objects::open(path.to_str().unwrap()).unwrap();
        let url = Url::from_directory_path(&path).unwrap();
        let by_url = Objects::open(url.as_str()).unwrap();
        assert!(by_path.name().ends_with("a b") && by_url.name().contains("a b"));
        assert!(!by_path.overwrites_conditionally());
        assert!(Objects::open("memory://").unwrap().overwrites_conditionally());
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_is_never_below_its_floor_and_runs_on() {
        let machine = Arc::new(TokioClock::starting_at(Timestamp::from_secs(1_000)));
        let slate = SlateClock::new(machine, Timestamp::from_secs(5_000));
        assert_eq!(SystemClock::now(&slate).timestamp(), 5_000);
        slate.raise(Timestamp::from_secs(4_000));
        SystemClock::sleep(&slate, Duration::from_secs(7)).await;
        assert_eq!(slate.timestamp(), Timestamp::from_secs(5_007));
    }
}
