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
    for secret in [0, 1, u64::MAX] {
        let lower_half = fingerprint("x", secret) & u128::from(u64::MAX);
        assert_ne!(u128::from(url_hash("x")), lower_half);
    }
    assert_ne!(fingerprint("x", 1), fingerprint("x", 2));
    assert_eq!(url_hash("http://example.com/"), url_hash("http://example.com/"));
}

/// The WHATWG parser's tests, where the result is an http(s) URL or must be refused.
#[test]
fn urls_are_parsed_as_the_standard_says() {
    // Names that only look like Punycode are refused by the `url` crate, and three slashes against
    // a base are an empty host to it.
    let known = [
        "http://a.b.c.xn--pokxncvks",
        "http://10.0.0.xn--pokxncvks",
        "http://a.b.c.XN--pokxncvks",
        "http://a.b.c.Xn--pokxncvks",
        "http://10.0.0.XN--pokxncvks",
        "http://10.0.0.xN--pokxncvks",
        "https://xn--/",
        "///test",
        "///\\//\\//test",
        "///example.org/path",
        "///example.org/../path",
        "///example.org/../../",
        "///example.org/../path/../../",
        "///example.org/../path/../../path",
    ];
    let cases = data("wpt/urltestdata.json");
    let (mut checked, mut differing) = (0, Vec::new());
    for case in cases.as_array().unwrap() {
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
            differing.push(input);
        }
    }
    assert!(checked > 600, "{checked}");
    assert_eq!(differing, known);
}

/// crawler-commons claims the same form for a path; queries it sorts, and it folds slashes.
#[test]
fn paths_are_those_of_another_normaliser() {
    let otherwise = [
        ("https://www.last.fm/music/Prefuse+73/_/90%+of+My+Mind+Is+With+You", "escapes a stray %"),
        ("http://www.example.com/p%zz%77%v", "the same"),
        ("http://[::ffff:127.0.0.1]/", "keeps an IPv6 address as written, the standard does not"),
        ("http://example.com/[x]", "escapes what the standard leaves as it is"),
    ];
    let (mut checked, mut differing) = (0, Vec::new());
    for case in data("crawler_commons_normalizer.json").as_array().unwrap() {
        let (Some(input), Some(expected)) = (case["input"].as_str(), case["expected"].as_str())
        else {
            continue;
        };
        let Ok(url) = CrawlUrl::parse(input) else { continue };
        let folded = url.path_and_query().contains("//") || expected.contains("//xn--");
        if url.as_url().query().is_some() || folded || !expected.is_ascii() {
            continue;
        }
        checked += 1;
        if recognised(&url) != expected {
            differing.push(input.to_owned());
        }
    }
    assert!(checked > 50, "{checked}");
    assert_eq!(differing, otherwise.map(|(input, _)| input));
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
