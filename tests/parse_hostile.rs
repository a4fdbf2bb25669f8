//! P2: documents that are made to cost more than they are, and what they cost.
//!
//! Memory is what a counting allocator sees while a document is parsed and its record made, and
//! must stay below `parse.max_memory`. Time is bounded by construction: a document on which work
//! grows faster than its length would not end here. docs/parsing.md has what comes out as a table.

#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::collections::BTreeMap;
use std::io::Write;

use bytes::Bytes;
use mehman::parse::Limits;
use mehman::parse::decode::DecodeLimits;
use mehman::parse::memory::Memory;
use mehman::parse::select::Extractor;

#[path = "support/document.rs"]
mod document;

use document::{Case, LARGE, MEMORY, begin, fill, gzip, limits, page};

const BEFORE: &str = "<title>t</title><a href=/before>x</a>";
const FIRST: &str = "http://a.example/before";

#[test]
fn nesting_is_no_cost_of_its_own() {
    for open in [
        "<div>",
        "<b><i><font color=a>",
        "<svg>",
        "<svg><foreignObject>",
        "<math><mi>",
        "<svg><desc><math><mtext>",
        "<table><tr><td>",
        "<select><option>",
        "<a href=/x>",
    ] {
        let done = page(format!("{BEFORE}{}<a href=/last>y", open.repeat(200_000)));
        assert_eq!(done.urls().first(), Some(&FIRST), "{open}");
        assert_eq!(done.urls().last(), Some(&"http://a.example/last"), "{open}");
        assert_eq!(done.reasons(), Vec::<String>::new(), "{open}");
    }
    let hidden = page(format!("{BEFORE}{}<a href=/in>", "<template>".repeat(200_000)));
    assert_eq!(hidden.urls(), [FIRST]);
}

#[test]
fn what_has_no_end_ends_with_the_document() {
    let rest = fill("<a href=/inside> word ", 1 << 20);
    for (open, inside_is_text) in [
        ("<!--", false),
        ("<!doctype", false),
        ("<a href=\"", false),
        ("<a href='", false),
        ("<img alt=\"", false),
        ("<script>", false),
        ("<script><!--<script>", false),
        ("<style>", false),
        ("<title>", false),
        ("<noframes>", false),
        ("<textarea>", true),
        ("<xmp>", true),
        ("<plaintext>", true),
        ("<svg><![CDATA[", true),
    ] {
        let done = page(format!("<a href=/before>x</a>{open}{rest}"));
        let links: Vec<_> = done.urls().into_iter().filter(|url| *url != FIRST).collect();
        // The first `>` ends a doctype, and markup goes on.
        let expected: &[&str] =
            if open == "<!doctype" { &["http://a.example/inside"] } else { &[] };
        assert_eq!(links, expected, "{open}");
        if open != "<!doctype" {
            assert_eq!(done.parsed.text.contains("word"), inside_is_text, "{open}");
        }
    }
    let tag = page(format!("{BEFORE}<a {}", fill("a=b ", LARGE / 2)));
    assert_eq!(tag.urls(), [FIRST]);
}

#[test]
fn attributes_are_read_once_however_many_and_however_long() {
    let many: String = (0..1_000_000).map(|n| format!(" a{n}")).collect();
    let done = page(format!("{BEFORE}<a {many} href=/last>"));
    assert_eq!(done.urls(), [FIRST, "http://a.example/last"]);
    let long = fill("x", 3 << 20);
    let spaces = fill(" ", 3 << 20);
    for (markup, reason) in [
        (format!("<a href='{long}'>"), Some("65536 bytes of a reference")),
        (format!("<a href='{}'>", fill("x", 60_000)), Some("8192 bytes of a link")),
        (format!("<a href='?{}'>", fill("é", 10_000)), Some("8192 bytes of a link")),
        (format!("<link rel=canonical href='{long}'>"), Some("65536 bytes of a reference")),
        (format!("<base href='{long}'>"), None),
        (format!("<base href='&amp;{long}'>"), None),
        (format!("<img srcset='{long} 2x, &amp;{long} 1x'>"), Some("65536 bytes of a reference")),
        (format!("<img alt='&amp;{long}'>"), Some("bytes of text")),
        (format!("<title>&amp;{long}</title>"), None),
        (format!("<meta name=description content='&amp;{long}'>"), None),
        (format!("<meta name='{long}&amp;' content=x>"), None),
        (format!("<meta http-equiv=refresh content='1;{long}'>"), Some("65536 bytes")),
        (format!("<meta http-equiv=refresh content='{spaces}1;x'>"), Some("65536 bytes")),
        (format!("<html lang='{long}'>"), None),
        (format!("<a rel='{long}' href=/last>"), None),
    ] {
        let done = page(format!("<a href=/before>x</a>{markup}"));
        let reasons = done.reasons();
        let shown = begin(&markup);
        assert_eq!(done.urls().first(), Some(&FIRST), "{shown}");
        match reason {
            Some(reason) => assert!(reasons.iter().any(|r| r.contains(reason)), "{reasons:?}"),
            None => assert_eq!(reasons, Vec::<String>::new(), "{shown}"),
        }
        for field in [&done.parsed.title, &done.parsed.description, &done.parsed.language] {
            assert!(field.as_ref().is_none_or(|field| field.len() <= 4096), "{shown}");
        }
        assert_eq!(done.parsed.canonical, None);
    }
}

/// Each candidate of a `srcset` would look through all of `rel`.
#[test]
fn candidates_of_a_srcset_do_not_multiply_what_else_their_tag_holds() {
    let candidates: String = (0..200_000).map(|n| format!("/{n} 1x, ")).collect();
    let rel = fill("word ", 4 << 20);
    let done = page(format!("<img srcset='{candidates}' rel='{rel}'>"));
    assert_eq!(done.urls().len(), MEMORY / 4096);
    assert_eq!(done.reasons(), ["the page has more links than are taken"]);
}

#[test]
fn floods_of_entities_are_decoded_in_place() {
    for entity in ["&amp;", "&#65;", "&nGt;", "&CounterClockwiseContourIntegral;", "&#x110000;"] {
        let text = page(format!("{BEFORE}{}", fill(entity, LARGE / 2)));
        assert!(text.parsed.text.len() <= MEMORY / 64, "{entity}");
        let is_cut = entity.len() < 20;
        assert_eq!(text.reasons().len(), usize::from(is_cut), "{entity}");
        let links: String =
            (0..100).map(|n| format!("<a href='{n}{}'>", fill(entity, 60_000))).collect();
        let links = page(links);
        let is_full = links.reasons().iter().any(|reason| reason.contains("references"));
        // The one that becomes longer than it is written.
        assert_eq!(is_full, entity == "&nGt;", "{entity}");
    }
    let cut = page(format!("{BEFORE}{}", fill("&#", LARGE / 2) + &fill("9", 1 << 20)));
    assert_eq!(cut.urls(), [FIRST]);
}

#[test]
fn links_are_kept_up_to_their_number_and_their_bytes() {
    let links: String = (0..100_000).map(|n| format!("<a href={n}>n</a>")).collect();
    let most = Limits { memory: Memory::new(256 << 20), ..limits() };
    let done = Case { limits: most, ..Case::default() }.run(gzip(links.as_bytes()));
    assert!(done.peak <= MEMORY, "{}", done.peak);
    assert_eq!(done.parsed.links.len(), 10_000);
    assert_eq!(done.reasons(), ["the page has more links than are taken"]);
    // More than memory allows, however many are configured.
    let limits = Limits { links_max: 10_000_000, ..limits() };
    let done = Case { limits, ..Case::default() }.read(&links);
    assert_eq!(done.parsed.links.len(), MEMORY / 4096);
    let base = format!("<base href='/{}/'>", fill("b", 8000));
    let done = Case { limits, ..Case::default() }.read(format!("{base}{links}"));
    let reason = format!("parsing stopped at {} bytes of links (parse.max_memory)", MEMORY / 16);
    assert!(done.reasons().contains(&reason), "{:?}", done.reasons());
}

#[test]
fn text_is_cut_where_it_is_full() {
    let text = fill("word and word, ", 50_000_000);
    let limits = Limits { memory: Memory::new(256 << 20), ..limits() };
    for (content_type, before) in [("text/html", BEFORE), ("text/plain", "")] {
        let case = Case { content_type, coding: "identity", limits, ..Case::default() };
        let done = case.run(format!("{before}{text}").into());
        assert!(done.peak <= 3 * MEMORY, "{content_type} {}", done.peak);
        assert!(done.parsed.text.len() <= 4 << 20 && done.parsed.text.len() > (4 << 20) - 20);
        assert_eq!(done.reasons(), ["parsing stopped at 4194304 bytes of text"]);
    }
}

#[test]
fn binary_data_and_nuls_are_read_as_what_their_type_says() {
    let mut noise = Vec::with_capacity(LARGE / 2);
    let mut state = 1_u32;
    while noise.len() < LARGE / 2 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        noise.extend_from_slice(&state.to_be_bytes());
    }
    for content_type in ["text/html", "text/plain", "text/xml", "application/feed+json"] {
        let done = Case { content_type, ..Case::default() }.read(&noise);
        assert!(done.parsed.text.len() <= MEMORY / 64, "{content_type} {}", done.parsed.text.len());
        assert!(!done.reasons().is_empty(), "{content_type} {:?}", done.parsed.charset);
    }
    let nuls = [BEFORE.as_bytes(), &vec![0; LARGE / 2], b"<a href=/l\0ast>y"].concat();
    let done = page(nuls);
    assert_eq!(done.urls(), [FIRST, "http://a.example/l%EF%BF%BDast"]);
}

#[test]
fn only_the_first_of_its_kind_counts_however_many_follow() {
    let number = 1_000_000;
    for (markup, found) in [
        ("<base href=/b/>", "http://a.example/b/x"),
        ("<meta name=robots content=noindex>", "http://a.example/dir/x"),
        ("<meta http-equiv=refresh content=9>", "http://a.example/dir/x"),
        ("<title>t</title>", "http://a.example/dir/x"),
    ] {
        let body = fill(markup, (number * markup.len()).min(LARGE / 2));
        let done = page(format!("<a href=x>x</a>{body}"));
        assert_eq!(done.urls(), [found], "{markup}");
        assert_eq!(done.reasons(), Vec::<String>::new(), "{markup}");
    }
    let metas: String = (0..100_000).map(|n| format!("<meta name=robots content=w{n}>")).collect();
    assert!(page(metas).parsed.wishes.directives.len() <= 64);
}

#[test]
fn wrong_bytes_and_charsets_that_lie_grow_within_their_share() {
    let cut = format!("{} bytes of text of the body", MEMORY / 4);
    for (content_type, body, is_cut) in [
        // Each byte becomes U+FFFD, three bytes long.
        ("text/html; charset=utf-8", vec![0xff; LARGE / 2], true),
        ("text/html; charset=windows-1252", vec![0x80; LARGE / 2], true),
        ("text/html; charset=utf-16le", vec![0xd8; LARGE / 2], false),
        ("text/html; charset=utf-16be", fill("<a href=x>", LARGE / 2).into_bytes(), false),
        ("text/html; charset=iso-2022-jp", vec![0x1b; LARGE / 2], true),
        ("text/html; charset=gb18030", vec![0x81; LARGE / 2], false),
        ("text/html; charset=replacement", vec![b'a'; LARGE / 2], false),
        ("text/html", vec![0xfe; LARGE / 2], false),
        ("text/plain; charset=utf-8", vec![0xff; LARGE / 2], true),
    ] {
        let done = Case { content_type, ..Case::default() }.read(body);
        let said = done.reasons().iter().any(|reason| reason.contains(&cut));
        assert_eq!(said, is_cut, "{content_type} {:?}", done.reasons());
    }
    // A mark wins over the header, and the header over what the markup says.
    let marked = Case { content_type: "text/html; charset=koi8-r", ..Case::default() }
        .read("\u{feff}<meta charset=shift_jis><title>é</title>");
    assert_eq!(marked.parsed.title.as_deref(), Some("é"));
}

/// Of each coding a stream that becomes a thousand times as long, and streams of streams.
#[test]
fn bombs_stop_at_their_bound() {
    let zeros = vec![b' '; 60 << 20];
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    zlib.write_all(&zeros).unwrap();
    let mut raw = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    raw.write_all(&zeros).unwrap();
    let once = gzip(&zeros);
    let zstd: Bytes = zstd::encode_all(&zeros[..], 1).unwrap().into();
    let share = format!("parsing stopped at {} bytes of a decoded body", MEMORY / 4);
    for (coding, received) in [
        ("gzip", once.clone()),
        ("deflate", zlib.finish().unwrap().into()),
        ("deflate", raw.finish().unwrap().into()),
        ("zstd", zstd.clone()),
        ("gzip, gzip", gzip(&once)),
        ("zstd, gzip", gzip(&zstd)),
        ("gzip, gzip, gzip", gzip(&gzip(&once))),
    ] {
        let done = Case { coding, ..Case::default() }.run(received.clone());
        assert!(done.peak <= MEMORY, "{coding} {}", done.peak);
        assert!(done.reasons()[0].starts_with(&share), "{coding} {:?}", done.reasons());
        // As it is configured: so many times the bytes received, or 64 KiB.
        let decode = DecodeLimits { decoded_bytes_max: 20 << 20, ratio_max: 10 };
        let limits = Limits { decode, ..limits() };
        let most = 3 * 10 * received.len() + (2 << 20);
        let done = Case { coding, limits, ..Case::default() }.run(received);
        assert!(done.peak <= most, "{coding} {}", done.peak);
        assert_eq!(done.reasons()[0], "the compression ratio limit of 10 passed", "{coding}");
    }
    // Its window alone is 16 MiB.
    let brotli = Bytes::from_static(include_bytes!("data/http/compressed/bomb-br.bin"));
    let decode = DecodeLimits { decoded_bytes_max: 10_000_000, ratio_max: 1 << 20 };
    let limits = Limits { memory: Memory::new(256 << 20), decode, ..limits() };
    let done = Case { coding: "br", limits, ..Case::default() }.run(brotli);
    assert!(done.peak <= 64 << 20, "{}", done.peak);
    assert_eq!(done.reasons()[0], "the decoded size limit of 10000000 passed");
    let case = Case { coding: "gzip, gzip, gzip, gzip", ..Case::default() };
    assert!(case.run(once.clone()).reasons()[0].contains("more than 3 content encodings"));
    let members = gzip(b"").repeat(20_000);
    let done = Case::default().run(members.into());
    assert!(done.reasons()[0].contains("more than 10000 members"), "{:?}", done.reasons());
}

/// A window that its stream asks for is memory before a byte of it is text.
#[test]
fn windows_larger_than_their_share_are_refused() {
    let small = Limits { memory: Memory::new(1 << 20), ..limits() };
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).unwrap();
    encoder.window_log(23).unwrap();
    encoder.write_all(&vec![b'x'; 100_000]).unwrap();
    let zstd: Bytes = encoder.finish().unwrap().into();
    let brotli = Bytes::from_static(include_bytes!("data/http/compressed/html-br.bin"));
    for (coding, received) in [("zstd", zstd), ("br", brotli)] {
        let done = Case { coding, limits: small, ..Case::default() }.run(received.clone());
        assert!(done.peak <= 1 << 20, "{coding} {}", done.peak);
        assert!(done.reasons()[0].starts_with("the content encoding is broken"), "{coding}");
        let usual = Limits { memory: Memory::new(256 << 20), ..limits() };
        let done = Case { coding, limits: usual, ..Case::default() }.run(received);
        assert!(!done.parsed.text.is_empty(), "{coding} {:?}", done.reasons());
    }
}

fn extractors(selector: &str) -> Vec<Extractor> {
    let fields = BTreeMap::from([("field".to_owned(), selector.to_owned())]);
    vec![Extractor::new("", &fields).unwrap()]
}

#[test]
fn extractors_cost_a_bounded_tree_and_the_time_that_is_left() {
    let largest = MEMORY / 64;
    let fonts: String = (0..200).map(|n| format!("<font n={n}>")).collect();
    let classes: String = (0..50_000).map(|n| format!("c{n} ")).collect();
    let selectors = extractors(".c1 p");
    for (body, reason) in [
        (fill("<p>x", largest), "bytes of extract: a tree (parse.max_memory)"),
        (format!("<p>{fonts}{}", fill("<p>x", 100_000)), "bytes of extract: a tree"),
        (format!("<p class='{classes}'>x"), ""),
        (fill("<i class='a b c d e f g h i'>", 20_000), "nested elements"),
        (fill("<br>", largest + 4), "bytes of extract: markup (parse.max_memory)"),
        (fill("<div>", largest), "256 nested elements"),
        (fill("<select><option>", largest), "256 nested elements"),
        (format!("<p {}>", fill(" a=b", 10_000)), "1000 attributes"),
    ] {
        let done = Case { extractors: &selectors, ..Case::default() }.read(&body);
        let shown = begin(&body);
        let found = done.reasons().into_iter().find(|found| found.contains("extract"));
        match found {
            Some(found) => assert!(found.contains(reason) && !reason.is_empty(), "{shown} {found}"),
            None => assert_eq!(reason, "", "{shown}"),
        }
        assert!(done.parsed.fields.is_empty(), "{shown}");
    }
    // For each of the thousands of elements this looks at all before it.
    let selectors = extractors("p ~ b ~ p:nth-last-child(2n+1):not(:has(i))");
    let body = fill("<p>x</p>", largest / 16);
    let case = Case { extractors: &selectors, asks_max: 200, ..Case::default() };
    let done = case.read(&body);
    assert_eq!(done.reasons(), ["parsing stopped at parse.max_time"]);
}

#[test]
fn what_extractors_find_is_bounded_too() {
    let rows = format!("<body>{}", "<div>".repeat(200) + &fill("<p>word</p>", 200_000));
    let all = extractors("div");
    let limits = Limits { memory: Memory::new(256 << 20), ..limits() };
    let done = Case { extractors: &all, limits, ..Case::default() }.read(&rows);
    let bytes: usize = done.parsed.fields["field"].iter().map(String::len).sum();
    assert!(bytes <= 4 << 20, "{bytes}");
    assert_eq!(
        done.reasons(),
        ["parsing stopped at 4194304 bytes of extracted fields (parse.max_memory)"]
    );
    let words = extractors("p");
    let done = Case { extractors: &words, limits, ..Case::default() }.read(&rows);
    assert_eq!(done.parsed.fields["field"].len(), 1000);
    assert_eq!(done.reasons(), ["parsing stopped at extract: 1000 values of a field"]);
}

#[test]
fn lists_of_urls_are_read_within_the_same_bounds() {
    let file = |body: &str| format!("<urlset>{body}");
    let sitemap = Case { url: "http://a.example/sitemap.xml", ..Case::default() };
    for (content_type, body, reason) in [
        ("text/xml", file(&fill("<url>", LARGE / 2)), "262144 elements without an end"),
        ("text/xml", file(&fill("<a>", LARGE / 2)), "64 nested elements"),
        (
            "text/xml",
            file(&format!("<url>{}", fill("<loc>/x</loc>", LARGE / 2))),
            "left out: a URL beyond 524288 bytes of one entry",
        ),
        (
            "text/xml",
            file(&format!("<url><loc>{}</loc>", fill("x", LARGE / 2))),
            "left out: a title, date or URL of over 16384 bytes",
        ),
        (
            "text/xml",
            format!("<feed><entry><link href='{}'/>", fill("&amp;", LARGE / 2)),
            "left out: a title, date or URL of over 16384 bytes",
        ),
        ("text/xml", format!("<rss><{}>", fill("x", LARGE / 2)), ""),
        (
            "text/xml",
            format!("<feed><entry><link {} href='/x'/></entry>", fill("a='b' ", LARGE / 2)),
            "",
        ),
        ("application/feed+json", format!("{{\"items\":[{}{{}}]}}", fill("{},", LARGE / 4)), ""),
        ("application/feed+json", fill("[", LARGE / 4), "broken JSON"),
        ("application/feed+json", fill("{\"items\":", LARGE / 4), "broken JSON"),
        ("application/feed+json", fill(" ", LARGE / 2), "bytes of JSON (parse.max_memory)"),
        (
            "application/feed+json",
            format!("{{\"title\":\"{}\"}}", fill("\\n", LARGE / 4)),
            "left out: a title, date or URL of over 16384 bytes",
        ),
        ("text/plain", fill("http://a.example/x\n", LARGE / 2), ""),
    ] {
        let done = Case { content_type, ..sitemap }.read(&body);
        let shown = begin(&body);
        match reason {
            "" => assert_eq!(done.reasons(), Vec::<String>::new(), "{shown}"),
            _ => assert!(done.reasons()[0].contains(reason), "{shown} {:?}", done.reasons()),
        }
    }
    let packed = gzip(fill("<urlset><url><loc>/x</loc></url>", 60 << 20).as_bytes());
    for coding in ["identity", "gzip"] {
        let body = if coding == "gzip" { gzip(&packed) } else { packed.clone() };
        let content_type = "application/gzip";
        let done = Case { content_type, coding, ..sitemap }.run(body);
        assert!(done.peak <= MEMORY, "{}", done.peak);
        assert!(done.reasons()[0].contains("bytes of a decoded body (parse.max_memory)"));
    }
}
