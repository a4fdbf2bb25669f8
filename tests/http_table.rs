//! `docs/http.md` names for each of its rows the tests that hold it: they are there.

#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use rows::{is_there, missing};

#[path = "tables/rows.rs"]
mod rows;

#[test]
fn every_row_names_tests_that_are_there() {
    assert_eq!(missing("docs/http.md", 60), Vec::<String>::new());
}

#[test]
fn a_test_that_is_not_there_is_missed() {
    assert!(is_there("http_table::a_test_that_is_not_there_is_missed"));
    assert!(!is_there("fetch::client::tests::answers::no_such_test"));
}
