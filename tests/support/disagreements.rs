//! Vectors of other projects, and the document that lists those on which we differ.
//!
//! A document has a section `## SET` for each set, in it how many vectors are run and how many
//! differ, and a table of the different ones: input, ours, theirs, key of the reason. A difference
//! that is not listed fails, and so does a listed one that has gone.

#![allow(dead_code, reason = "each test file uses its part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde_json::Value;

/// A longer text is cut in the list.
const CELL_BYTES_MAX: usize = 160;

/// A file of the repository.
pub(crate) fn read(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// One vector that was run.
pub(crate) struct Vector {
    pub(crate) input: String,
    pub(crate) ours: String,
    pub(crate) theirs: String,
}

impl Vector {
    pub(crate) fn new(
        input: impl Into<String>,
        ours: impl Into<String>,
        theirs: impl Into<String>,
    ) -> Self {
        Self { input: input.into(), ours: ours.into(), theirs: theirs.into() }
    }

    fn cells(&self) -> [String; 3] {
        [cell(&self.input), cell(&self.ours), cell(&self.theirs)]
    }
}

/// As a cell of a table in Markdown: one line, no bar, no backtick.
fn cell(text: &str) -> String {
    let json = Value::from(text).to_string();
    let inside = json.get(1..json.len() - 1).unwrap();
    let plain = |c: char| c != '|' && c != '`' && (c.is_ascii_graphic() || c == ' ');
    let mut shown = String::new();
    for c in inside.chars() {
        if plain(c) { shown.push(c) } else { shown.extend(c.escape_unicode()) }
    }
    match shown.get(..CELL_BYTES_MAX) {
        Some(begin) if shown.len() > CELL_BYTES_MAX => format!("{begin}... ({} bytes)", text.len()),
        Some(_) | None => shown,
    }
}

/// The lines of a section.
fn section<'t>(text: &'t str, set: &str) -> Vec<&'t str> {
    let lines = text.lines().skip_while(|line| *line != format!("## {set}")).skip(1);
    lines.take_while(|line| !line.starts_with("## ")).collect()
}

/// The rows of a section: cells, and the key of the reason.
pub(crate) fn listed(text: &str, set: &str) -> BTreeMap<[String; 3], String> {
    let cells = |row: &&str| {
        let cells: Vec<_> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [input, ours, theirs, reason] = cells.try_into().ok()?;
        let quoted = |cell: &str| Some(cell.strip_prefix("` ")?.strip_suffix(" `")?.to_owned());
        let row = [quoted(input)?, quoted(ours)?, quoted(theirs)?];
        Some((row, reason.trim_matches('`').to_owned()))
    };
    section(text, set).iter().filter_map(cells).collect()
}

/// The rows of those on which we differ.
fn differing(vectors: &[Vector]) -> BTreeSet<[String; 3]> {
    let differ = vectors.iter().filter(|vector| vector.ours != vector.theirs);
    differ.map(Vector::cells).collect()
}

/// How many are run, and on how many of them we differ.
pub(crate) fn count(vectors: &[Vector]) -> (usize, usize) {
    (vectors.len(), differing(vectors).len())
}

/// What is new in a set, and what is listed and gone; `None` where the list is right.
pub(crate) fn difference(document: &str, set: &str, vectors: &[Vector]) -> Option<String> {
    let text = String::from_utf8(read(document)).unwrap();
    let found = differing(vectors);
    let known: BTreeSet<[String; 3]> = listed(&text, set).into_keys().collect();
    let show = |rows: Vec<&[String; 3]>| {
        let row = |[input, ours, theirs]: &[String; 3]| {
            format!("| ` {input} ` | ` {ours} ` | ` {theirs} ` | `` |\n")
        };
        rows.into_iter().map(row).collect::<String>()
    };
    let new = show(found.difference(&known).collect());
    let gone = show(known.difference(&found).collect());
    let is_right = new.is_empty() && gone.is_empty();
    (!is_right).then(|| format!("\n## {set}\n\n{new}gone:\n{gone}"))
}

/// Every difference is listed, everything listed is one and has a reason that is explained, and
/// the numbers are right.
pub(crate) fn agree(document: &str, set: &str, vectors: &[Vector]) {
    let text = String::from_utf8(read(document)).unwrap();
    let (run, differ) = count(vectors);
    let numbers = format!("{run} are run, {differ} differ.");
    let is_counted = section(&text, set).iter().any(|line| line.contains(&numbers));
    let wrong = difference(document, set, vectors);
    assert!(wrong.is_none() && is_counted, "{numbers}\n{}", wrong.unwrap_or_default());
    let reasons: Vec<String> = section(&text, "Reasons").iter().map(|l| (*l).to_owned()).collect();
    for reason in listed(&text, set).values() {
        let row = format!("| `{reason}` |");
        assert!(reasons.iter().any(|line| line.starts_with(&row)), "{set}: {reason}");
    }
}
