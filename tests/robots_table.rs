//! `docs/robots.md` names for each of its rows the tests that hold it: they are there.

#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::fs;

use rows::{is_there, missing, root, rows};

#[path = "tables/rows.rs"]
mod rows;

#[test]
fn every_row_names_tests_that_are_there() {
    assert_eq!(missing("docs/robots.md", 100), Vec::<String>::new());
}

#[test]
fn a_test_that_is_not_there_is_missed() {
    assert!(is_there("robots_table::a_test_that_is_not_there_is_missed"));
    assert!(is_there("policy::robots::parse::tests::keys_are_exact"));
    for gone in [
        "robots_table::no_such_test",
        "robots_http::keys_are_exact",
        "policy::robots::state::tests::keys_are_exact",
        "robots_table::is_there",
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
