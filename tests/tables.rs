//! Tables of documents name for each of their rows, in the last column, the tests that hold it:
//! they are there.

#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The rows of a document's tables, cell by cell, their heads left out.
fn rows(document: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(root().join(document)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let is_head = |at: usize| lines.get(at + 1).is_some_and(|next| next.starts_with("| ---"));
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim_start_matches("| ").trim_end_matches('|');
        inner.split(" | ").map(|cell| cell.trim().to_owned()).collect()
    };
    (0..lines.len())
        .filter(|at| lines[*at].starts_with("| ") && !lines[*at].starts_with("| ---"))
        .filter(|at| !is_head(*at))
        .map(|at| cells(lines[at]))
        .collect()
}

/// The names in backticks.
fn names(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Where a test of this path may stand.
fn places(path: &[&str]) -> Vec<PathBuf> {
    let (first, last) = (path[0], path[path.len() - 1]);
    if path.len() == 1 {
        return vec![root().join(format!("tests/{first}.rs"))];
    }
    let file = root().join("src").join(path.join("/")).with_extension("rs");
    match last {
        "tests" => vec![
            file,
            root().join("src").join(path[..path.len() - 1].join("/")).with_extension("rs"),
        ],
        _ => vec![file],
    }
}

/// Whether a function of this name is a test in one of the files that its path means.
fn is_there(test: &str) -> bool {
    let parts: Vec<&str> = test.split("::").collect();
    let Some((name, path)) = parts.split_last().filter(|(_, path)| !path.is_empty()) else {
        return false;
    };
    places(path).iter().filter_map(|file| fs::read_to_string(file).ok()).any(|text| {
        let head = format!("fn {name}(");
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let is_test = |line: &str| line == "#[test]" || line.starts_with("#[tokio::test");
        let named = |line: &str| {
            line.starts_with(&head)
                || line.strip_prefix("async ").is_some_and(|l| l.starts_with(&head))
        };
        lines.windows(2).any(|pair| is_test(pair[0]) && named(pair[1]))
    })
}

/// Names of tests that are not there, and rows that name none.
fn missing(document: &str, rows_min: usize) -> Vec<String> {
    let rows = rows(document);
    assert!(rows.len() > rows_min, "{document}: the scan finds no rows: {}", rows.len());
    let mut missing = Vec::new();
    for row in &rows {
        let tests = names(row.last().unwrap());
        if tests.is_empty() {
            missing.push(format!("{document}: {}: no test", row[0]));
        }
        missing.extend(tests.into_iter().filter(|test| !is_there(test)).map(str::to_owned));
    }
    missing
}

#[test]
fn every_row_names_tests_that_are_there() {
    let documents = [("docs/robots.md", 100), ("docs/http.md", 60), ("docs/parsing.md", 40)];
    let missing: Vec<String> =
        documents.iter().flat_map(|(document, rows)| missing(document, *rows)).collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn a_test_that_is_not_there_is_missed() {
    assert!(is_there("tables::a_test_that_is_not_there_is_missed"));
    assert!(is_there("policy::robots::parse::tests::keys_are_exact"));
    for gone in [
        "tables::no_such_test",
        "robots_http::keys_are_exact",
        "policy::robots::state::tests::keys_are_exact",
        "tables::is_there",
        "keys_are_exact",
    ] {
        assert!(!is_there(gone), "{gone}");
    }
}

/// Every case of the corpus has its row.
#[test]
fn every_case_of_the_corpus_of_statuses_has_a_row() {
    let data = fs::read(root().join("tests/data/robots/http_status_policy.json")).unwrap();
    let data: serde_json::Value = serde_json::from_slice(&data).unwrap();
    let rows = rows("docs/robots.md");
    let cases = data["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 23);
    for case in cases {
        let case = case["case"].as_str().unwrap();
        assert!(rows.iter().any(|row| row[0] == case), "{case}");
    }
}
