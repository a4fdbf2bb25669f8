//! The short way gives what the `url` crate gives; limits hold.

use encoding_rs::{UTF_8, WINDOWS_1252};
use proptest::prelude::*;

use super::*;

/// What the links of a page may take.
const MAX: usize = 16 << 20;

fn base(url: &str) -> Base {
    Base::new(&Url::parse(url).unwrap(), None, UTF_8)
}

fn raw(url: &str, kind: LinkKind) -> RawLink<'_> {
    RawLink { url: Cow::Borrowed(url), text: (0, 0), rel: Cow::Borrowed(""), kind, nofollow: false }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_short_way_is_the_long_way(
        reference in "(https?://|//|/)?([a-zA-Z0-9~]{0,3}|\\.|\\.\\.|xn--|%2[eE]|%|:|\
            \\?|#|/|-|_|=|&|\\+|'|\\||\\\\| |é|;|@|127|\\[){0,8}",
        base_url in prop::sample::select(vec![
            "http://example.com/", "https://example.com:8080/a/b/c.html?q=/x#f",
            "http://[::1]/a", "http://example.com/a//b/", "http://example.com/?/x",
        ]),
    ) {
        let mut expected = Url::parse(base_url).unwrap().join(&reference).ok();
        if let Some(url) = &mut expected {
            url.set_fragment(None);
        }
        let found = base(base_url).resolve(&reference);
        prop_assert_eq!(found.as_deref(), expected.as_ref().map(Url::as_str), "{}", reference);
    }
}

#[test]
fn plain_references_take_the_short_way() {
    for (reference, is_short) in [
        ("/a/b.html?x=1&y=./../%20", true),
        ("a-b_c/d", true),
        ("https://www.example.com/a:b", true),
        ("https://www.example.com", false),
        ("http://example.com:80/", false),
        ("http://10.0.0.1/", false),
        ("http://Example.com/", false),
        ("http://xn--a.example/", false),
        ("//example.com/", false),
        ("/a/../b", false),
        ("/a/%2e/b", false),
        ("a:b", false),
        ("?x", false),
        ("", false),
    ] {
        assert_eq!(shape(reference) != Shape::Other, is_short, "{reference}");
    }
}

#[test]
fn queries_are_written_in_the_pages_encoding() {
    let url = Url::parse("http://example.com/").unwrap();
    let latin1 = Base::new(&url, None, WINDOWS_1252);
    assert_eq!(latin1.resolve("/é?é").as_deref(), Some("http://example.com/%C3%A9?%E9"));
    assert_eq!(base("http://example.com/").resolve("?é").unwrap(), "http://example.com/?%C3%A9");
}

#[test]
fn unusable_bases_are_passed_over() {
    let url = Url::parse("http://example.com/a/").unwrap();
    for href in ["data:,x", "javascript:1", "http://[", &format!("/{}/", "x".repeat(9000))] {
        assert_eq!(Base::new(&url, Some(href), UTF_8).as_url(), &url, "{href}");
    }
    let other = Base::new(&url, Some("../b/"), UTF_8);
    assert_eq!(other.resolve("c").unwrap(), "http://example.com/b/c");
}

#[test]
fn targets_are_kept_once_a_kind() {
    let found = [
        raw("/x", LinkKind::A),
        raw("http://example.com/x#a", LinkKind::A),
        raw("/x", LinkKind::Image),
        raw("java\nscript:x", LinkKind::A),
    ];
    let (links, reasons) = resolve_links(&found, "", &base("http://example.com/"), MAX, &|| false);
    let kinds: Vec<_> = links.iter().map(|link| link.kind).collect();
    assert_eq!((kinds, reasons), (vec![LinkKind::A, LinkKind::Image], vec![]));
}

#[test]
fn a_link_that_is_there_already_adds_its_text_and_that_it_may_be_followed() {
    let first = RawLink { nofollow: true, ..raw("/x", LinkKind::A) };
    let later = RawLink { text: (0, 4), ..raw("http://example.com/x", LinkKind::A) };
    let last = RawLink { text: (5, 9), ..raw("x", LinkKind::A) };
    let base = base("http://example.com/");
    let (links, _) = resolve_links(&[first, later, last], "some text", &base, MAX, &|| false);
    let found: Vec<_> = links.iter().map(|link| (link.url, link.text, link.nofollow)).collect();
    assert_eq!(found, [("http://example.com/x", "some", false)]);
}

#[test]
fn long_bases_are_not_multiplied_without_bound() {
    let long = format!("http://example.com/{}/", "x".repeat(8100));
    let names: Vec<String> = (0..10_000).map(|n| format!("n{n}")).collect();
    let found: Vec<_> = names.iter().map(|name| raw(name, LinkKind::A)).collect();
    let (links, reasons) = resolve_links(&found, "", &base(&long), MAX, &|| false);
    assert!(links.arena.capacity() <= MAX);
    assert_eq!(reasons, [Memory::reason(MAX, "links")]);
    let too_long = "y".repeat(URL_BYTES_MAX);
    let (links, reasons) =
        resolve_links(&[raw(&too_long, LinkKind::A)], "", &base(&long), MAX, &|| false);
    assert_eq!((links.len(), reasons.len()), (0, 1));
    let (links, reasons) = resolve_links(&found, "", &base("http://example.com/"), MAX, &|| true);
    assert_eq!((links.len(), reasons.len()), (LINKS_PER_CHECK - 1, 1));
}
