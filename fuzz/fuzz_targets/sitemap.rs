//! P3: any bytes as a sitemap or a feed of every kind.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mehman::parse::{Input, Limits, parse};
use mehman::types::{CrawlUrl, LinkKind};

const TYPES: [&str; 5] =
    ["text/xml", "application/gzip", "application/feed+json", "text/plain", "text/html"];

fuzz_target!(|data: &[u8]| {
    let Some((kind, body)) = data.split_first() else { return };
    let content_type = TYPES[usize::from(*kind) % TYPES.len()];
    let url = CrawlUrl::parse("https://a.example/dir/sitemap.xml").expect("it is one");
    let headers = vec![("Content-Type".to_owned(), Bytes::from_static(content_type.as_bytes()))];
    let input = Input {
        url: &url,
        headers: &headers,
        body: &Bytes::copy_from_slice(body),
        product: "mehman",
        extractors: &[],
        out_of_time: &|| false,
    };
    let parsed = parse(&input, &Limits::default());
    let is_entry = |kind| matches!(kind, LinkKind::Sitemap | LinkKind::Feed);
    let entries = parsed.links.iter().filter(|link| is_entry(link.kind));
    assert!(parsed.links.len() <= 50_000);
    for entry in entries {
        assert!(entry.url.starts_with("http://") || entry.url.starts_with("https://"));
        assert!(entry.url.len() <= 8192);
    }
});
