//! The laws of the recognised form. The vectors of others are in `tests/url_corpus.rs`.

use proptest::prelude::*;

use super::*;

fn of(text: &str) -> String {
    recognised(&CrawlUrl::parse(text).unwrap()).into_owned()
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
