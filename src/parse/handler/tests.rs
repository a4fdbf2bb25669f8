//! Whole responses: coding, type, charset, links, wishes, fingerprints together.

use std::collections::BTreeMap;
use std::io::Write;

use super::*;
use crate::parse::redirect_link;
use crate::types::{LinkKind, SizeLimit};

fn run(headers: &[(&str, &str)], body: &[u8]) -> Parsed {
    run_with(headers, body, &[], &Limits::default())
}

fn run_with(
    headers: &[(&str, &str)],
    body: &[u8],
    extractors: &[Extractor],
    limits: &Limits,
) -> Parsed {
    let pair = |(name, value): &(&str, &str)| {
        ((*name).to_owned(), Bytes::copy_from_slice(value.as_bytes()))
    };
    let input = Input {
        url: &CrawlUrl::parse("http://example.com/dir/page?q").unwrap(),
        headers: &headers.iter().map(pair).collect(),
        body: &Bytes::copy_from_slice(body),
        product: "mehman",
        extractors,
        out_of_time: &|| false,
    };
    parse(&input, limits)
}

fn urls(parsed: &Parsed) -> Vec<&str> {
    parsed.links.iter().map(|link| link.url).collect()
}

fn gzip(body: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(body).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_page_becomes_its_document() {
    let html = "<html lang=fr><title>T\u{e9}</title><meta name=robots content=nofollow>\
        <link rel=canonical href='/c'><base href='/base/'><p>one two three four five six seven \
        <a href='x?a=1#top' rel=nofollow>eight</a> <a href='x?a=1'>again</a> \
        <a href='mailto:a@b.example'>mail</a> <a href='http://[bad'>bad</a>";
    let latin1: Vec<u8> = html.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    let headers = [
        ("content-type", "text/html; charset=latin1"),
        ("content-encoding", "gzip"),
        ("X-Robots-Tag", "noindex"),
    ];
    let parsed = run(&headers, &gzip(&latin1));
    assert_eq!(parsed.content_type.as_deref(), Some("text/html"));
    assert_eq!(parsed.charset, Some("windows-1252"));
    assert_eq!(parsed.language.as_deref(), Some("fr"));
    assert_eq!(parsed.title.as_deref(), Some("Té"));
    assert_eq!(parsed.canonical.as_deref(), Some("http://example.com/c"));
    assert_eq!(
        urls(&parsed),
        ["http://example.com/c", "http://example.com/base/x?a=1", "mailto:a@b.example"]
    );
    let record = parsed.links.to_record();
    assert_eq!((record[1].text.as_str(), record[1].kind), ("eight", LinkKind::A));
    assert!(!parsed.links.iter().nth(1).unwrap().nofollow, "one of them may be followed");
    assert_eq!(parsed.wishes.directives, ["noindex", "nofollow"]);
    assert_eq!(parsed.text, "one two three four five six seven eight again mail bad");
    assert!(parsed.simhash.is_some() && parsed.text_fingerprint.is_some());
    assert_eq!(parsed.digest, blake3::hash(&latin1).to_hex().as_str());
    assert_eq!(parsed.reasons, []);
}

#[test]
fn types_decide_and_their_lack_is_made_up_for() {
    let html = b"<!doctype html><a href=/x>t</a>";
    for headers in [
        &[][..],
        &[("Content-Type", "text/html")],
        &[("Content-Type", "nonsense")],
        &[("Content-Type", "application/octet-stream")],
        &[("Content-Type", "application/xhtml+xml;charset=utf-8")],
    ] {
        assert_eq!(urls(&run(headers, html)), ["http://example.com/x"], "{headers:?}");
    }
    let plain = run(&[("Content-Type", "text/plain"), ("Content-Language", "de")], html);
    assert!(plain.links.is_empty());
    assert_eq!(plain.text, "<!doctype html><a href=/x>t</a>");
    assert_eq!(plain.language.as_deref(), Some("de"));
    assert_eq!(run(&[], b"words").content_type.as_deref(), Some("text/plain"));
    let xhtml = b"<?xml version='1.0'?><html><script src='/s'/><a href='/x'/></html>";
    let xml = run(&[("Content-Type", "application/xml")], xhtml);
    assert_eq!(urls(&xml), ["http://example.com/s", "http://example.com/x"]);
}

#[test]
fn what_nobody_reads_has_a_reason() {
    for (headers, body, named) in [
        (&[("Content-Type", "image/png")][..], &b"\x89PNG"[..], "image/png"),
        (&[], b"\0\0", "an unknown binary type"),
        (&[("Content-Type", "application/octet-stream")], b"\0", "application/octet-stream"),
    ] {
        let parsed = run(headers, body);
        let content_type = named.to_owned();
        assert_eq!(parsed.reasons, [Reason::UnwantedType { content_type }]);
        assert_eq!(parsed.digest, blake3::hash(body).to_hex().as_str());
    }
    let tagged = run(&[("Content-Type", "image/png"), ("X-Robots-Tag", "noai")], b"");
    assert_eq!(tagged.wishes.usage.len(), 1);
}

#[test]
fn cut_documents_are_read_as_far_as_they_go() {
    let page = format!("<a href=/first>{}<a href=/last>", " word".repeat(100_000));
    let decode = DecodeLimits { decoded_bytes_max: 100_000, ratio_max: 1 << 20 };
    let limits = Limits { decode, ..Limits::default() };
    let parsed = run_with(
        &[("content-type", "text/html"), ("content-encoding", "gzip")],
        &gzip(page.as_bytes()),
        &[],
        &limits,
    );
    assert_eq!(urls(&parsed), ["http://example.com/first"]);
    assert_eq!(parsed.reasons, [Reason::TooLarge { limit: SizeLimit::Decoded, max: 100_000 }]);
}

#[test]
fn extractors_keep_away_from_what_no_tree_should_hold() {
    let fields = BTreeMap::from([("all".to_owned(), "p".to_owned())]);
    let extractors = [Extractor::new("", &fields).unwrap()];
    let html = |body: &str| {
        run_with(&[("content-type", "text/html")], body.as_bytes(), &extractors, &Limits::default())
    };
    assert_eq!(html("<p>one<p>two").fields["all"], ["one", "two"]);
    let deep = html(&"<div>".repeat(200_000));
    assert!(deep.fields.is_empty());
    assert!(
        matches!(&deep.reasons[..], [Reason::ParseLimit { limit }] if limit.contains("nested"))
    );
    let wide: String = (0..100_000).map(|n| format!(" a{n}")).collect();
    let wide = html(&format!("<p {wide}>x"));
    assert!(
        matches!(&wide.reasons[..], [Reason::ParseLimit { limit }] if limit.contains("attrib"))
    );
}

#[test]
fn redirects_are_followed_as_browsers_read_them() {
    let base = CrawlUrl::parse("https://example.com/a/b?c").unwrap();
    for (location, target) in [
        (&b"/x"[..], "https://example.com/x"),
        (b"x y#frag", "https://example.com/a/x%20y"),
        (b"//other.example/p", "https://other.example/p"),
        (b" http://example.com \t", "http://example.com/"),
        (b"?d", "https://example.com/a/b?d"),
        ("/\u{e9}".as_bytes(), "https://example.com/%C3%A9"),
        (b"/\xe9", "https://example.com/%E9"),
        ("http://b\u{fc}cher.example/".as_bytes(), "http://xn--bcher-kva.example/"),
    ] {
        assert_eq!(redirect_link(&base, location).unwrap().as_str(), target);
    }
    assert_eq!(redirect_link(&base, b"  "), Err(Reason::NoLocation));
    assert!(matches!(redirect_link(&base, b"http://"), Err(Reason::NotAUrl { .. })));
    assert!(matches!(redirect_link(&base, b"ftp://x/"), Err(Reason::NotHttp { .. })));
}
