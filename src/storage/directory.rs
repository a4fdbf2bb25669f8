//! The data directory: whose it is, what it holds, and that one process uses it.
//!
//! Nothing is adopted and nothing is touched on an error: a directory with other content, a newer
//! version or another owner stays as it is. The lock is the operating system's, so it ends with its
//! process, however that ends; the process id in it only helps the error message.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// The layout this build writes, and the newest it reads.
pub const DIRECTORY_VERSION: u32 = 1;

const VERSION_FILE: &str = "VERSION";
const LOCK_FILE: &str = "LOCK";
const ADMIN_FILE: &str = "admin.addr";
const PARTS: [&str; 5] = ["archive", "index", "pages", "shards", "snapshots"];
/// May stand in a directory that is new: our own lock, and what a file system puts into its root.
const NEW_ENTRIES: [&str; 3] = [LOCK_FILE, "VERSION.new", "lost+found"];

/// The data directory of a node, locked until it is dropped.
#[derive(Debug)]
pub struct DataDir {
    path: PathBuf,
    _lock: File,
}

/// Why a data directory cannot be used.
#[derive(Debug, Error)]
pub enum DirectoryError {
    /// It is locked.
    #[error("{} is in use by another process{}", path.display(), of(*pid))]
    InUse {
        /// Which.
        path: PathBuf,
        /// By whom, if the lock says so.
        pid: Option<u32>,
    },
    /// A newer mehman wrote it.
    #[error("{} has version {found}; this build reads up to {DIRECTORY_VERSION}", path.display())]
    NewerVersion {
        /// Which.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
    /// VERSION is not a version.
    #[error("{} is unreadable: `{found}` is not a version", path.display())]
    UnreadableVersion {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: String,
    },
    /// There is something else in it.
    #[error("{} is not a data directory: it has no VERSION, but `{entry}`", path.display())]
    Foreign {
        /// Which.
        path: PathBuf,
        /// What was found in it.
        entry: String,
    },
    /// The file system refuses.
    #[error("failed to {doing} {}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl DataDir {
    /// Opens a data directory, made when it is missing or empty, and locks it.
    ///
    /// # Errors
    /// In use, newer, unreadable, somebody else's, or refused by the file system.
    pub fn open(path: &Path) -> Result<Self, DirectoryError> {
        check(path)?;
        fs::create_dir_all(path).map_err(failed("create", path))?;
        let lock = lock(path)?;
        // Looked at again: another process may have been here before the lock was ours.
        if check(path)? == Found::New {
            write_version(path)?;
        }
        for part in PARTS {
            let part = path.join(part);
            fs::create_dir_all(&part).map_err(failed("create", &part))?;
        }
        let directory = Self { path: path.to_owned(), _lock: lock };
        directory.forget_admin_address()?;
        Ok(directory)
    }

    /// Whether this build may read what lies at `path`, also while another process has it open.
    ///
    /// # Errors
    /// Newer, unreadable, somebody else's, or refused by the file system.
    pub fn readable(path: &Path) -> Result<(), DirectoryError> {
        check(path).map(drop)
    }

    /// Whether a process has it open.
    pub fn is_in_use(path: &Path) -> bool {
        let lock = File::open(path.join(LOCK_FILE));
        lock.is_ok_and(|lock| matches!(lock.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// The directory itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// WARC files.
    pub fn archive(&self) -> PathBuf {
        self.path.join("archive")
    }

    /// CDXJ files.
    pub fn index(&self) -> PathBuf {
        self.path.join("index")
    }

    /// Page records.
    pub fn pages(&self) -> PathBuf {
        self.path.join("pages")
    }

    /// The shards' stores.
    pub fn shards(&self) -> PathBuf {
        self.path.join("shards")
    }

    /// Snapshots of sleeping hosts.
    pub fn snapshots(&self) -> PathBuf {
        self.path.join("snapshots")
    }

    /// Where the daemon writes the address it listens on.
    pub fn admin_address(&self) -> PathBuf {
        self.path.join(ADMIN_FILE)
    }

    /// Removes the address of a daemon that is gone.
    fn forget_admin_address(&self) -> Result<(), DirectoryError> {
        let path = self.admin_address();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(failed("remove", &path)(error))
            }
            _ => Ok(()),
        }
    }
}

/// What stands at a path.
#[derive(PartialEq, Eq)]
enum Found {
    /// Nothing yet.
    New,
    /// A data directory of a version we know.
    Ours,
}

fn check(path: &Path) -> Result<Found, DirectoryError> {
    let version = path.join(VERSION_FILE);
    match fs::read(&version) {
        Ok(text) => known_version(path, &version, &text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => nothing_else(path),
        Err(error) => Err(failed("read", &version)(error)),
    }
}

fn known_version(path: &Path, file: &Path, text: &[u8]) -> Result<Found, DirectoryError> {
    let text = String::from_utf8_lossy(text);
    match text.trim().parse::<u32>() {
        Ok(found) if found > DIRECTORY_VERSION => {
            Err(DirectoryError::NewerVersion { path: path.to_owned(), found })
        }
        Ok(DIRECTORY_VERSION) => Ok(Found::Ours),
        Ok(_) | Err(_) => Err(DirectoryError::UnreadableVersion {
            path: file.to_owned(),
            found: text.trim().chars().take(40).collect(),
        }),
    }
}

fn nothing_else(path: &Path) -> Result<Found, DirectoryError> {
    let entries = match fs::read_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::New),
        entries => entries.map_err(failed("read", path))?,
    };
    let mut foreign = Vec::new();
    for entry in entries {
        let name = entry.map_err(failed("read", path))?.file_name();
        if !NEW_ENTRIES.iter().any(|ours| name == OsStr::new(ours)) {
            foreign.push(name.to_string_lossy().into_owned());
        }
    }
    match foreign.into_iter().min() {
        Some(entry) => Err(DirectoryError::Foreign { path: path.to_owned(), entry }),
        None => Ok(Found::New),
    }
}

fn lock(path: &Path) -> Result<File, DirectoryError> {
    let name = path.join(LOCK_FILE);
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(&name)
        .map_err(failed("open", &name))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            let pid = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
            return Err(DirectoryError::InUse { path: path.to_owned(), pid });
        }
        Err(TryLockError::Error(error)) => return Err(failed("lock", &name)(error)),
    }
    let note = |file: &mut File| {
        file.set_len(0)?;
        file.rewind()?;
        writeln!(file, "{}", std::process::id())
    };
    note(&mut file).map_err(failed("write", &name))?;
    Ok(file)
}

fn write_version(path: &Path) -> Result<(), DirectoryError> {
    let name = path.join(VERSION_FILE);
    replace(&name, &format!("{DIRECTORY_VERSION}\n")).map_err(failed("write", &name))
}

/// Whole or not at all: a half-written file would lock its owner out.
pub(super) fn replace(name: &Path, text: &str) -> io::Result<()> {
    let new = name.with_extension("new");
    let mut file = File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&new, name)?;
    name.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> DirectoryError {
    let path = path.to_owned();
    move |source| DirectoryError::Io { doing, path, source }
}

fn of(pid: Option<u32>) -> String {
    pid.map_or_else(String::new, |pid| format!(" (pid {pid})"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn contents(path: &Path) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
        let read = |path: PathBuf| fs::read(path).unwrap_or_default();
        entries
            .map(|entry| (entry.file_name().into_string().unwrap(), read(entry.path())))
            .collect()
    }

    #[test]
    fn a_new_directory_gets_its_layout_and_opens_again() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("new/data");
        let directory = DataDir::open(&path).unwrap();
        assert!(directory.shards().is_dir() && directory.archive().is_dir());
        assert!(directory.index().is_dir() && directory.snapshots().is_dir());
        assert_eq!(fs::read_to_string(path.join(VERSION_FILE)).unwrap(), "1\n");
        fs::write(directory.admin_address(), "127.0.0.1:1").unwrap();
        drop(directory);
        let directory = DataDir::open(&path).unwrap();
        assert!(!directory.admin_address().exists());
        assert!(directory.pages().is_dir() && directory.index().is_dir());
    }

    #[test]
    fn a_directory_in_use_says_by_whom() {
        let root = tempfile::tempdir().unwrap();
        let held = DataDir::open(root.path()).unwrap();
        let before = contents(root.path());
        assert!(DataDir::is_in_use(root.path()));
        let error = DataDir::open(root.path()).unwrap_err();
        let expected = format!("in use by another process (pid {})", std::process::id());
        assert!(error.to_string().ends_with(&expected), "{error}");
        assert_eq!(contents(root.path()), before);
        drop(held);
        assert!(!DataDir::is_in_use(root.path()));
        assert!(!DataDir::is_in_use(&root.path().join("none")));
    }

    #[test]
    fn directories_that_are_not_ours_stay_untouched() {
        let cases: [(&str, &str, &str); 5] = [
            ("VERSION", "2\n", "has version 2; this build reads up to 1"),
            ("VERSION", "", "`` is not a version"),
            ("VERSION", "banana", "`banana` is not a version"),
            ("VERSION", "0", "`0` is not a version"),
            ("thesis.tex", "x", "it has no VERSION, but `thesis.tex`"),
        ];
        for (file, text, expected) in cases {
            let root = tempfile::tempdir().unwrap();
            fs::write(root.path().join(file), text).unwrap();
            let before = contents(root.path());
            let error = DataDir::open(root.path()).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
            assert_eq!(contents(root.path()), before, "{expected}");
        }
    }

    #[test]
    fn a_start_that_was_cut_short_is_finished() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join(LOCK_FILE), "12").unwrap();
        fs::write(root.path().join("VERSION.new"), "").unwrap();
        assert!(DataDir::open(root.path()).is_ok());
        assert!(!root.path().join("VERSION.new").exists());
    }

    #[test]
    fn a_file_is_no_directory() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        fs::write(&path, "x").unwrap();
        assert!(matches!(DataDir::open(&path), Err(DirectoryError::Io { .. })));
    }
}
