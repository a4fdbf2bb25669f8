//! What lies in a data directory, read as its users would.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The files of a folder, sorted; empty when there is none.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// All page records of a data directory.
pub(crate) fn pages(data: &Path) -> Vec<Value> {
    let mut pages = Vec::new();
    for file in files(&data.join("pages")) {
        let text = std::fs::read_to_string(&file).unwrap();
        assert!(text.is_empty() || text.ends_with('\n'), "{}: a line is cut", file.display());
        let parse = |line| {
            serde_json::from_str(line).unwrap_or_else(|why| panic!("{}: {why}", file.display()))
        };
        pages.extend(text.lines().map(parse));
    }
    pages
}

/// How many page records each URL has.
pub(crate) fn page_counts(data: &Path) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for page in pages(data) {
        *counts.entry(page["url"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    counts
}

/// A line of the index.
#[derive(Clone, Debug)]
pub(crate) struct CdxjLine {
    /// SURT key.
    pub(crate) key: String,
    /// 14 digits.
    pub(crate) timestamp: String,
    /// `url`, `mime`, `status`, `digest`, `length`, `offset`, `filename`.
    pub(crate) fields: Value,
}

/// All lines of the index.
pub(crate) fn index(data: &Path) -> Vec<CdxjLine> {
    let mut lines = Vec::new();
    for file in files(&data.join("index")) {
        let text = std::fs::read_to_string(&file).unwrap();
        let own: Vec<&str> = text.lines().collect();
        assert!(own.is_sorted(), "{} is not sorted", file.display());
        for line in own {
            let mut parts = line.splitn(3, ' ');
            let mut part = || parts.next().unwrap().to_owned();
            let (key, timestamp, fields) = (part(), part(), part());
            lines.push(CdxjLine { key, timestamp, fields: serde_json::from_str(&fields).unwrap() });
        }
    }
    lines
}

/// Every file below a folder with the digest of its bytes.
pub(crate) fn fingerprint(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    for path in files(folder) {
        if path.is_dir() {
            found.extend(fingerprint(&path));
        } else {
            let digest = blake3::hash(&std::fs::read(&path).unwrap()).to_hex().to_string();
            found.insert(path, digest);
        }
    }
    found
}

/// Runs `tests/data/warc/tools.py`, which reads archives with the tools people use.
pub(crate) fn tools(arguments: &[&str]) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let python = std::env::var_os("MEHMAN_TEST_PYTHON")
        .map_or_else(|| root.join(".venv/bin/python"), PathBuf::from);
    assert!(python.exists(), "{} is not there: run scripts/python-tools", python.display());
    let script = root.join("tests/data/warc/tools.py");
    let ran = std::process::Command::new(&python).arg(script).args(arguments).output().unwrap();
    let error = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "run scripts/python-tools if a module is missing\n{error}");
    serde_json::from_slice(&ran.stdout).unwrap_or_else(|why| panic!("{why}: {error}"))
}
