//! The laws of the recognised form, and the WHATWG parser's own test data.

use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::Value;

use super::*;

fn of(text: &str) -> String {
    recognised(&CrawlUrl::parse(text).unwrap()).into_owned()
}

fn data(name: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/urls").join(name);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn forms_that_mean_the_same_are_one() {
    for (text, expected) in [
        ("HTTP://Example.COM:80/%7ejoe/%c3%a9", "http://example.com/~joe/%C3%A9"),
        ("http://example.com/a/./b/../c", "http://example.com/a/c"),
        ("http://example.com./x", "http://example.com/x"),
        ("http://example.com.:8080/x", "http://example.com:8080/x"),
        ("http://example.com/a?q=%41%2f%2F", "http://example.com/a?q=A%2F%2F"),
        ("http://example.com", "http://example.com/"),
        ("http://example.com/#top", "http://example.com/"),
    ] {
        assert_eq!(of(text), expected, "{text}");
    }
}

#[test]
fn forms_that_may_differ_stay_apart() {
    for (one, other) in [
        ("http://h/?", "http://h/"),
        ("http://h/?b&a", "http://h/?a&b"),
        ("http://h/a%2Fb", "http://h/a/b"),
        ("http://h/a/", "http://h/a"),
        ("http://h//a", "http://h/a"),
        ("http://h/A", "http://h/a"),
        ("http://h/?utm_source=x", "http://h/"),
        ("http://h/%25", "http://h/%"),
        ("http://h/a+b", "http://h/a%20b"),
    ] {
        assert_ne!(of(one), of(other));
    }
}

#[test]
fn nothing_is_copied_where_nothing_changes() {
    let url = CrawlUrl::parse("http://example.com/a%20b?c=%2F").unwrap();
    assert!(matches!(recognised(&url), Cow::Borrowed(_)));
}

#[test]
fn decoding_makes_no_new_escape() {
    for text in ["http://h/%%34%31", "http://h/%4%31", "http://h/%a%31", "http://h/%25%34%31"] {
        let once = of(text);
        assert_eq!(of(&once), once, "{text}");
        assert!(!once.contains("%41") && !once.contains("%a1"), "{once}");
    }
}

#[test]
fn hashes_differ_from_fingerprints_and_secrets_count() {
    assert_ne!(u128::from(url_hash("x")), fingerprint("x", 0) & u128::from(u64::MAX));
    assert_ne!(fingerprint("x", 1), fingerprint("x", 2));
    assert_eq!(url_hash("http://example.com/"), url_hash("http://example.com/"));
}

/// The WHATWG parser's tests, where the result is an http(s) URL or must be refused.
#[test]
fn urls_are_parsed_as_the_standard_says() {
    let (mut checked, mut differing) = (0, Vec::new());
    for case in data("wpt/urltestdata.json").as_array().unwrap() {
        let Some(input) = case["input"].as_str() else { continue };
        let base = case["base"].as_str().map(CrawlUrl::parse);
        let parsed = match &base {
            None => CrawlUrl::parse(input),
            Some(Ok(base)) => base.join(input),
            Some(Err(_)) => continue,
        };
        let failure = case["failure"].as_bool() == Some(true);
        let web = matches!(case["protocol"].as_str(), Some("http:" | "https:"))
            && case["username"] == ""
            && case["password"] == "";
        let expected = case["href"]
            .as_str()
            .filter(|_| web && !failure)
            .map(|href| href.split('#').next().unwrap_or_default());
        checked += 1;
        if parsed.as_ref().ok().map(CrawlUrl::as_str) != expected {
            differing.push(format!("{input:?} {expected:?} {parsed:?}"));
        }
    }
    assert!(checked > 600, "{checked}");
    assert_eq!(differing, Vec::<String>::new());
}

#[test]
fn escapes_and_dots_are_those_of_other_normalisers() {
    let mut checked = 0;
    for file in ["crawler_commons_normalizer.json", "nutch_normalizer.json"] {
        for case in data(file).as_array().unwrap() {
            let (Some(input), Some(expected)) = (case["input"].as_str(), case["expected"].as_str())
            else {
                continue;
            };
            let Ok(url) = CrawlUrl::parse(input) else { continue };
            checked += 1;
            if recognised(&url) != expected {
                println!("{file} {input:?} {expected:?} {:?} {}", recognised(&url), case["note"]);
            }
        }
    }
    assert!(checked > 150, "{checked}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn the_recognised_form_is_its_own(rest in "[a-f0-9%./?&=~é ]{0,24}", dot in "\\.?") {
        let url = CrawlUrl::parse(&format!("http://Example.com{dot}/{rest}")).unwrap();
        let once = recognised(&url).into_owned();
        let again = CrawlUrl::parse(&once).unwrap();
        prop_assert_eq!(recognised(&again), once.as_str());
    }

    #[test]
    fn any_url_has_a_form_that_is_its_own(text: String) {
        if let Ok(url) = CrawlUrl::parse(&format!("http://{text}")) {
            let once = recognised(&url).into_owned();
            let again = CrawlUrl::parse(&once).unwrap();
            prop_assert_eq!(recognised(&again), once.as_str());
        }
    }
}
