//! The parse stage against the corpora in `tests/data/html` (P1, R4); their sources stand there.
//!
//! Every vector that says something of what we claim is run. Where ours is another, it stands in
//! `docs/html-disagreements.md` with both and the reason.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use bytes::Bytes;
use mehman::parse::charset::to_text;
use mehman::parse::html::{Scan, ScanOptions, candidates, parse_refresh, scan};
use mehman::parse::mime::Mime;
use mehman::parse::robots_meta::page_wishes;
use mehman::parse::{Input, Limits, Parsed, parse};
use mehman::types::{CrawlUrl, Headers, LinkKind};
use serde_json::Value;

#[path = "support/disagreements.rs"]
mod disagreements;

use disagreements::{Vector, agree};

const LIST: &str = "docs/html-disagreements.md";
/// What both sides say of what is not there.
const NONE: &str = "none";

fn file(name: &str) -> Vec<u8> {
    disagreements::read(&format!("tests/data/html/{name}"))
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

/// The body of a case as text, to be told from others by.
fn label(case: &Value) -> String {
    let body = html(case).unwrap_or_default();
    String::from_utf8_lossy(&body).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn or_none(text: Option<impl Into<String>>) -> String {
    text.map_or_else(|| NONE.to_owned(), Into::into)
}

#[test]
fn links_are_those_of_other_crawlers() {
    let mut vectors = Vec::new();
    for case in cases("links.json") {
        let Some(expected) = case["links"].as_array() else { continue };
        let body = match case["file"].as_str() {
            Some(name) if name.starts_with("files/scrapy") => file(name),
            // The pages of wpull's tests are under a licence of their own, and not here.
            Some(_) => continue,
            None => html(&case).unwrap(),
        };
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
        let note = case["note"].as_str().unwrap();
        vectors.push(Vector::new(
            format!("{note}: {}", label(&case)),
            found.join(" "),
            expected.join(" "),
        ));
    }
    agree(LIST, "links", &vectors);
}

#[test]
fn the_base_is_the_first_usable_one() {
    let mut vectors = Vec::new();
    for case in cases("base_href.json") {
        let body = html(&case).unwrap();
        let base = case["base"].as_str().filter(|base| !base.is_empty());
        let expected = case["expected_base"].as_str().filter(|base| !base.is_empty());
        let base = base.unwrap_or("http://none.example/");
        let expected = normal(expected.unwrap_or(base), "x");
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
        let found = parsed.links.iter().next().unwrap().url.to_owned();
        vectors.push(Vector::new(label(&case), found, expected));
    }
    agree(LIST, "base_href", &vectors);
}

/// The vectors say which candidate a browser takes: it must be among ours.
#[test]
fn srcset_gives_what_browsers_may_choose() {
    let mut vectors = Vec::new();
    for case in cases("srcset.json") {
        let (srcset, chosen) = (case["srcset"].as_str().unwrap(), case["chosen"].as_str().unwrap());
        let found: Vec<&str> = candidates(srcset).collect();
        let ours = if found.contains(&chosen) { chosen.to_owned() } else { found.join(" ") };
        vectors.push(Vector::new(srcset, ours, chosen));
    }
    agree(LIST, "srcset", &vectors);
}

#[test]
fn refresh_is_read_by_the_standards_steps() {
    let mut vectors = Vec::new();
    for case in cases("meta_refresh.json") {
        let url = case["url"].as_str();
        if let Some(content) = case["content"].as_str() {
            let show = |(delay, url): (u64, String)| format!("{delay} {url}");
            let found = parse_refresh(content)
                .map(|(delay, url)| (delay, url.replace(['\t', '\n', '\r'], "")));
            let expected = case["delay"].as_u64().zip(url.map(str::to_owned));
            vectors.push(Vector::new(
                content,
                or_none(found.map(show)),
                or_none(expected.map(show)),
            ));
            continue;
        }
        let Some(body) = html(&case) else { continue };
        let charset = case["charset"].as_str().unwrap_or("utf-8");
        let base = case["base"].as_str().unwrap();
        let parsed = read(base, &body, &format!("text/html; charset={charset}"), "mehman");
        let link = parsed.links.iter().find(|link| link.kind == LinkKind::MetaRefresh);
        let expected = url.map(|url| normal(base, url));
        let note = case["note"].as_str().unwrap();
        let label = format!("{note}: {}", label(&case));
        vectors.push(Vector::new(label, or_none(link.map(|link| link.url)), or_none(expected)));
    }
    agree(LIST, "meta_refresh", &vectors);
}

#[test]
fn page_level_rules_are_obeyed() {
    let mut vectors = Vec::new();
    for case in cases("meta_robots.json") {
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
                let label = format!("{name} for {agent}: {} {:?}", label(&case), tags);
                vectors.push(Vector::new(label, found.to_string(), expected.to_string()));
            }
        }
    }
    agree(LIST, "meta_robots", &vectors);
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
    let mut vectors = Vec::new();
    for case in cases("encoding_sniff.json") {
        let body = base64(case["data_b64"].as_str().unwrap());
        let found = to_text(&body, None, true, usize::MAX).encoding.name().to_ascii_lowercase();
        let expected = case["encoding"].as_str().unwrap().to_ascii_lowercase();
        // Nothing is declared and all is ASCII: the same text by any of the two names.
        let is_same = expected == "windows-1252" && found == "utf-8" && body.is_ascii();
        let found = if is_same { expected.clone() } else { found };
        let text = String::from_utf8_lossy(&body).split_whitespace().collect::<Vec<_>>().join(" ");
        vectors.push(Vector::new(text, found, expected));
    }
    agree(LIST, "encoding_sniff", &vectors);
}

/// The name of the encoding that a label means.
fn encoding(label: Option<&str>) -> String {
    let encoding = label.and_then(|label| encoding_rs::Encoding::for_label(label.as_bytes()));
    or_none(encoding.map(encoding_rs::Encoding::name)).to_ascii_lowercase()
}

fn type_and_encoding(mime: Option<&Mime>) -> String {
    let charset = mime.and_then(|mime| mime.charset.as_deref());
    format!("{} {}", or_none(mime.map(|mime| mime.essence.as_str())), encoding(charset))
}

#[test]
fn content_types_are_read_by_the_standard() {
    let of = |values: &[&str]| {
        let pairs: Vec<_> = values.iter().map(|value| ("Content-Type", *value)).collect();
        Mime::of_response(&headers(&pairs))
    };
    let expected = |output: &Value, charset: &Value| {
        let essence = output.as_str().and_then(|output| output.split(';').next());
        let charset = or_none(charset.as_str()).to_ascii_lowercase();
        format!("{} {charset}", or_none(essence))
    };
    let mut vectors = Vec::new();
    for case in cases("wpt-content-types.json") {
        let values: Vec<&str> =
            case["input"].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect();
        let joined = values.join(", ");
        for values in [values, vec![joined.as_str()]] {
            let theirs = expected(&case["mimeType"], &case["encoding"]);
            vectors.push(Vector::new(
                values.join(" + "),
                type_and_encoding(of(&values).as_ref()),
                theirs,
            ));
        }
    }
    agree(LIST, "content-types", &vectors);
    let mut vectors = Vec::new();
    for case in cases("wpt-mime-types.json").iter().filter(|case| case.is_object()) {
        let input = case["input"].as_str().unwrap();
        let theirs = expected(&case["output"], &case["encoding"]);
        vectors.push(Vector::new(input, type_and_encoding(Mime::parse(input).as_ref()), theirs));
    }
    agree(LIST, "mime-types", &vectors);
    let mut vectors = Vec::new();
    for case in cases("wpt-generated-mime-types.json").iter().filter(|case| case.is_object()) {
        let input = case["input"].as_str().unwrap();
        let essence = case["output"].as_str().and_then(|output| output.split(';').next());
        let found = Mime::parse(input).map(|mime| mime.essence);
        vectors.push(Vector::new(input, or_none(found), or_none(essence)));
    }
    agree(LIST, "generated-mime-types", &vectors);
    let mut vectors = Vec::new();
    for case in cases("http_charset.json") {
        let input = case["content_type"].as_str().unwrap();
        let found = of(&[input.trim()]).and_then(|mime| mime.charset);
        vectors.push(Vector::new(
            input,
            encoding(found.as_deref()),
            encoding(case["charset"].as_str()),
        ));
    }
    agree(LIST, "http_charset", &vectors);
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
