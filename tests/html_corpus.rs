//! The parse stage against the corpora in `tests/data/html` (P1, R4); their sources stand there.
//!
//! Where a case shows another crawler's choice rather than the standard's, it is listed with why.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::path::Path;

use bytes::Bytes;
use mehman::parse::charset::{prescan, to_text};
use mehman::parse::html::entities::{Place, decode};
use mehman::parse::html::{Scan, ScanOptions, candidates, fold, parse_refresh, scan};
use mehman::parse::mime::Mime;
use mehman::parse::robots_meta::page_wishes;
use mehman::parse::{Input, Limits, Parsed, parse};
use mehman::types::{CrawlUrl, Headers, LinkKind};
use serde_json::Value;

fn file(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/html").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn cases(name: &str) -> Vec<Value> {
    let parsed: Value = serde_json::from_slice(&file(name)).unwrap();
    parsed.as_array().unwrap().clone()
}

/// The case's document, from `html` or `html_b64`.
fn html(case: &Value) -> Option<Vec<u8>> {
    match (case["html"].as_str(), case["html_b64"].as_str()) {
        (Some(text), _) => Some(text.as_bytes().to_vec()),
        (None, Some(coded)) => Some(base64(coded)),
        (None, None) => None,
    }
}

fn base64(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let digits: Vec<u32> = text.bytes().filter(|byte| *byte != b'=').map(digit).collect();
    let group = |chunk: &[u32]| {
        let bits = chunk.iter().fold(0, |bits, digit| bits << 6 | digit) << (6 * (4 - chunk.len()));
        bits.to_be_bytes()[1..chunk.len()].to_vec()
    };
    digits.chunks(4).flat_map(group).collect()
}

fn headers(pairs: &[(&str, &str)]) -> Headers {
    let latin1 = |text: &str| text.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), Bytes::from_iter::<Vec<u8>>(latin1(value))))
        .collect()
}

fn read(url: &str, body: &[u8], content_type: &str, product: &str) -> Parsed {
    let input = Input {
        url: &CrawlUrl::parse(url).unwrap(),
        headers: &headers(&[("Content-Type", content_type)]),
        body: &Bytes::copy_from_slice(body),
        product,
        extractors: &[],
        out_of_time: &|| false,
    };
    parse(&input, &Limits::default())
}

fn scanned<'a>(html: &'a str, meta_names: &[&str]) -> Scan<'a> {
    let options = ScanOptions {
        links_max: 1000,
        text_bytes_max: 1 << 20,
        references_bytes_max: usize::MAX,
        meta_names,
        measures_depth: false,
        is_xml: false,
        out_of_time: &|| false,
    };
    scan(html, &options)
}

/// A URL as the crawler has it: parsed, without fragment.
fn normal(base: &str, url: &str) -> String {
    let mut url = url::Url::parse(base).unwrap().join(url).unwrap();
    url.set_fragment(None);
    url.into()
}

#[test]
fn links_are_those_of_other_crawlers() {
    let mut checked = 0;
    for case in cases("links.json") {
        let Some(expected) = case["links"].as_array() else { continue };
        let note = case["note"].as_str().unwrap();
        // URLs in og: metas, in comments and in data- attributes are no links of the page; what a
        // page says about following is policy's to obey, its links are recorded all the same.
        let is_other_choice = ["URLs in meta content", "HER-1998", "lazy loading"]
            .iter()
            .any(|start| note.starts_with(start))
            || note == "meta robots nofollow: no links";
        let body = match case["file"].as_str() {
            Some(name) if name.starts_with("files/scrapy") => file(name),
            Some(_) => continue,
            None => html(&case).unwrap(),
        };
        if is_other_choice {
            continue;
        }
        checked += 1;
        let base = case["base"].as_str().unwrap();
        let content_type = match case["charset"].as_str() {
            Some(charset) => format!("text/html; charset={charset}"),
            None => "text/html".to_owned(),
        };
        let parsed = read(base, &body, &content_type, "mehman");
        let resources = case["file"].is_null();
        let mut found: Vec<String> = parsed
            .links
            .iter()
            .filter(|link| !(case["option"] == "obey rel=nofollow" && link.nofollow))
            .filter(|link| resources || !matches!(link.kind, LinkKind::Image))
            .map(|link| link.url.to_owned())
            .collect();
        let mut expected: Vec<String> =
            expected.iter().map(|url| normal(base, url.as_str().unwrap())).collect();
        found.sort();
        found.dedup();
        expected.sort();
        expected.dedup();
        assert_eq!(found, expected, "{case}");
    }
    assert!(checked > 30, "{checked}");
}

#[test]
fn the_base_is_the_first_usable_one() {
    for case in cases("base_href.json") {
        let body = html(&case).unwrap();
        let base = case["base"].as_str().filter(|base| !base.is_empty());
        let expected = case["expected_base"].as_str().filter(|base| !base.is_empty());
        let base = base.unwrap_or("http://none.example/");
        let expected = normal(expected.unwrap_or(base), "x");
        // Without scripting, noscript is markup, and browsers take the base in it.
        if String::from_utf8_lossy(&body).contains("<noscript") {
            continue;
        }
        let (charset, body) = match case["charset"].as_str() {
            Some("latin-1") => {
                let text = String::from_utf8(body).unwrap();
                ("latin1", encoding_rs::WINDOWS_1252.encode(&text).0.into_owned())
            }
            _ => ("utf-8", body),
        };
        // A link in front finds the base too, and is there when a comment swallows the rest.
        let page = [b"<a href=x></a>".as_slice(), &body].concat();
        let parsed = read(base, &page, &format!("text/html; charset={charset}"), "mehman");
        assert_eq!(parsed.links.iter().next().unwrap().url, expected, "{case}");
    }
}

#[test]
fn srcset_gives_what_browsers_may_choose() {
    for case in cases("srcset.json") {
        let (srcset, chosen) = (case["srcset"].as_str().unwrap(), case["chosen"].as_str().unwrap());
        // Transcribed with a control character that the original does not check this way.
        if srcset == "data:,a 1\u{1}w" {
            continue;
        }
        let found: Vec<&str> = candidates(srcset).collect();
        match chosen {
            "" => assert!(found.is_empty(), "{srcset:?} {found:?}"),
            _ => assert!(found.contains(&chosen), "{srcset:?} {found:?}"),
        }
    }
}

#[test]
fn refresh_is_read_by_the_standards_steps() {
    for case in cases("meta_refresh.json") {
        let url = case["url"].as_str();
        if let Some(content) = case["content"].as_str() {
            let found = parse_refresh(content)
                .map(|(delay, url)| (delay, url.replace(['\t', '\n', '\r'], "")));
            let expected = case["delay"].as_u64().zip(url.map(str::to_owned));
            assert_eq!(found, expected, "{case}");
            continue;
        }
        let Some(body) = html(&case) else { continue };
        let text = String::from_utf8_lossy(&body);
        // w3lib reads a tag that never ends, and can be told to look into scripts.
        let told = text.contains("<noscript") || case["note"] == "test_inside_script";
        if !text.trim_end().ends_with('>') || told {
            continue;
        }
        let charset = case["charset"].as_str().unwrap_or("utf-8");
        let base = case["base"].as_str().unwrap();
        let parsed = read(base, &body, &format!("text/html; charset={charset}"), "mehman");
        let link = parsed.links.iter().find(|link| link.kind == LinkKind::MetaRefresh);
        let expected = url.map(|url| normal(base, url));
        assert_eq!(link.map(|link| link.url.to_owned()), expected, "{case}");
    }
}

#[test]
fn page_level_rules_are_obeyed() {
    for case in cases("meta_robots.json") {
        // One crawler lets its own name lift what is said to all; we add the rules up.
        if case["policy"] == true && case["agent"] == "marginalia-search" {
            continue;
        }
        let agent = case["agent"].as_str().unwrap();
        let text = case["html"].as_str().unwrap();
        let metas = scanned(text, &["robots", agent]).metas;
        let tags: Vec<(&str, &str)> = case["headers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|value| ("X-Robots-Tag", value.as_str().unwrap()))
            .collect();
        let wishes = page_wishes(&headers(&tags), &metas, agent);
        for (name, found) in [("noindex", wishes.noindex), ("nofollow", wishes.nofollow)] {
            if let Some(expected) = case[name].as_bool() {
                assert_eq!(found, expected, "{name} {case}");
            }
        }
    }
}

#[test]
fn labels_name_the_standards_encodings() {
    let labels: Value = serde_json::from_slice(&file("encoding_labels.json")).unwrap();
    for (label, expected) in labels["labels"].as_object().unwrap() {
        let text = to_text(b"", Some(label), true, usize::MAX);
        let name = text.encoding.name();
        assert!(name.eq_ignore_ascii_case(expected.as_str().unwrap()), "{label} {name}");
    }
}

#[test]
fn declared_encodings_are_found() {
    let mut by_declaration = 0;
    for case in cases("encoding_sniff.json") {
        let body = base64(case["data_b64"].as_str().unwrap());
        let expected = case["encoding"].as_str().unwrap();
        // The cases also describe a tree builder that finds a declaration after the prescan; no
        // crawler reads a page twice for that, so only what the prescan finds must be right.
        if encoding_rs::Encoding::for_bom(&body).is_some() {
            let name = to_text(&body, None, true, usize::MAX).encoding.name();
            assert!(name.eq_ignore_ascii_case(expected), "{case}");
            continue;
        }
        match prescan(&body) {
            Some(found) => {
                by_declaration += 1;
                assert!(found.name().eq_ignore_ascii_case(expected), "{found:?} {case}");
            }
            None => {
                let text = String::from_utf8_lossy(&body);
                let late = expected != "windows-1252";
                assert!(!late || body.len() > 1024 || text.contains("<script"), "{case} {text}");
            }
        }
    }
    assert!(by_declaration > 30, "{by_declaration}");
}

#[test]
fn content_types_are_read_by_the_standard() {
    let of = |values: &[&str]| {
        let pairs: Vec<_> = values.iter().map(|value| ("Content-Type", *value)).collect();
        Mime::of_response(&headers(&pairs))
    };
    let encoding = |mime: &Option<Mime>| {
        let label = mime.as_ref()?.charset.clone()?;
        Some(encoding_rs::Encoding::for_label(label.as_bytes())?.name().to_ascii_lowercase())
    };
    let lower = |value: &Value| value.as_str().map(str::to_ascii_lowercase);
    for case in cases("wpt-content-types.json") {
        let values: Vec<&str> =
            case["input"].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
        let joined = values.join(", ");
        let expected = case["mimeType"].as_str().unwrap().split(';').next();
        for values in [values, vec![joined.as_str()]] {
            let mime = of(&values);
            assert_eq!(mime.as_ref().map(|mime| mime.essence.as_str()), expected, "{case}");
            assert_eq!(encoding(&mime), lower(&case["encoding"]), "{case}");
        }
    }
    for case in cases("wpt-mime-types.json").iter().filter(|case| case.is_object()) {
        let input = case["input"].as_str().unwrap();
        let mime = Mime::parse(input);
        let essence = case["output"].as_str().and_then(|output| output.split(';').next());
        assert_eq!(mime.as_ref().map(|mime| mime.essence.as_str()), essence, "{case}");
        assert_eq!(encoding(&mime), lower(&case["encoding"]), "{case}");
    }
    for case in cases("http_charset.json") {
        let input = case["content_type"].as_str().unwrap();
        let expected = case["charset"].as_str();
        // The standard reads on where w3lib gives up, wants a type first, and takes the last.
        let is_other_choice = [
            "charset=\"\"",
            "; charset= \"",
            "\"utf-8",
            "utf-8\"",
            "Content-Type:",
            "foo=bar;",
            ", text/plain",
        ]
        .iter()
        .any(|part| input.contains(part));
        if !is_other_choice {
            let found = of(&[input.trim()]).and_then(|mime| mime.charset);
            let label = |name: &str| encoding_rs::Encoding::for_label(name.as_bytes());
            assert_eq!(found.as_deref().and_then(label), expected.and_then(label), "{case}");
        }
    }
}

#[test]
fn bodies_decode_to_the_text_expected() {
    for case in cases("decode.json") {
        let Some(expected) = case["text"].as_str() else { continue };
        let mime = case["content_type"].as_str().and_then(Mime::parse);
        let charset = mime.and_then(|mime| mime.charset);
        let body = base64(case["body_b64"].as_str().unwrap());
        let text = to_text(&body, charset.as_deref(), true, usize::MAX);
        assert_eq!(text.text, expected, "{case}");
    }
}

fn tokenizer(name: &str) -> Vec<Value> {
    let parsed: Value =
        serde_json::from_slice(&file(&format!("html5lib/tokenizer/{name}.test"))).unwrap();
    parsed["tests"].as_array().unwrap().clone()
}

/// The text of a tokenizer test, if that is all it gives.
fn characters(case: &Value) -> Option<String> {
    let tokens = case["output"].as_array()?.iter();
    tokens.map(|token| (token[0] == "Character").then(|| token[1].as_str())?).collect()
}

#[test]
fn references_are_html5libs() {
    let (mut texts, mut attributes) = (0, 0);
    for case in ["entities", "namedEntities", "numericEntities"].into_iter().flat_map(tokenizer) {
        let input = case["input"].as_str().unwrap();
        if let Some(expected) = characters(&case) {
            texts += 1;
            assert_eq!(decode(input, Place::Text), expected, "{case}");
            continue;
        }
        let tag = input.replacen("<h a", "<a href", 1);
        let expected = case["output"][0][2]["a"].as_str().unwrap();
        let page = scanned(&tag, &[]);
        attributes += 1;
        assert_eq!(page.links[0].url, expected, "{case}");
    }
    assert!(texts > 4000 && attributes > 8, "{texts} {attributes}");
}

#[test]
fn markup_is_cut_as_html5lib_cuts_it() {
    let mut checked = 0;
    for case in ["test1", "test2", "test3", "test4"].into_iter().flat_map(tokenizer) {
        let states = case["initialStates"].as_array();
        let in_data = states.is_none_or(|states| states.iter().any(|s| s == "Data state"));
        if !in_data || case["doubleEscaped"] == true {
            continue;
        }
        let input = case["input"].as_str().unwrap();
        let tokens = case["output"].as_array().unwrap().iter();
        let text: String = tokens
            .filter(|token| token[0] == "Character")
            .map(|token| token[1].as_str().unwrap())
            .collect();
        let mut found = scanned(input, &[]).text;
        let mut expected = fold(&text, 1 << 20).0;
        found.retain(|c| c != ' ');
        expected.retain(|c| c != ' ');
        checked += 1;
        assert_eq!(found, expected, "{case}");
    }
    assert!(checked > 1000, "{checked}");
}
