//! P1, P2: any bytes as a page, with links, text, wishes, fields.
#![no_main]

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use mehman::parse::memory::Memory;
use mehman::parse::select::Extractor;
use mehman::parse::{Input, Limits, parse};
use mehman::types::CrawlUrl;

const TYPES: [&str; 4] = [
    "text/html",
    "text/html; charset=utf-16le",
    "application/xhtml+xml",
    "application/octet-stream",
];

static EXTRACTORS: LazyLock<Vec<Extractor>> = LazyLock::new(|| {
    let fields = [
        ("child", "p > b, td:nth-child(2)"),
        ("near", "a ~ i:not(:has(b))"),
        ("attribute", "[href]::attr(href)"),
    ];
    let fields = fields.map(|(name, selector)| (name.to_owned(), selector.to_owned()));
    vec![Extractor::new("", &BTreeMap::from(fields)).expect("the selectors can be read")]
});

fuzz_target!(|data: &[u8]| {
    let Some((kind, body)) = data.split_first() else { return };
    let content_type = TYPES[usize::from(*kind) % TYPES.len()];
    let url = CrawlUrl::parse("https://a.example/dir/page?q").expect("it is one");
    let headers = vec![("Content-Type".to_owned(), Bytes::from_static(content_type.as_bytes()))];
    let input = Input {
        url: &url,
        headers: &headers,
        body: &Bytes::copy_from_slice(body),
        product: "mehman",
        extractors: &EXTRACTORS,
        out_of_time: &|| false,
    };
    let limits = Limits {
        memory: Memory::new(1 << 20),
        links_max: 20,
        text_bytes_max: 1000,
        ..Limits::default()
    };
    let parsed = parse(&input, &limits);
    assert!(parsed.text.len() <= 1000);
    assert!(!parsed.text.starts_with(' ') && !parsed.text.ends_with(' '));
    for link in parsed.links.iter() {
        assert!(link.url.len() <= 8192 && link.text.len() <= 1024);
        assert!(url::Url::parse(link.url).is_ok_and(|url| url.as_str() == link.url));
    }
    assert!(parsed.canonical.is_none_or(|url| url.len() <= 8192));
    assert!(parsed.title.is_none_or(|title| title.len() <= 4096));
    assert!(parsed.wishes.directives.len() <= 64);
});
