//! Sitemaps and feeds against the corpora in `tests/data/sitemaps` (P3); their sources stand there.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use std::path::Path;

use bytes::Bytes;
use mehman::parse::{Input, Limits, Parsed, parse};
use mehman::types::{CrawlUrl, Headers, LinkKind, Timestamp};
use serde_json::Value;

/// Cases whose expectation is another crawler's choice, with ours.
const DIFFERENT: &[(&str, &str)] = &[];

fn file(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sitemaps").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read(url: &str, content_type: Option<&str>, body: Vec<u8>) -> Parsed {
    let content_type = content_type.map(|value| Bytes::from(value.to_owned()));
    let headers: Headers =
        content_type.into_iter().map(|value| ("content-type".to_owned(), value)).collect();
    let input = Input {
        url: &CrawlUrl::parse(url).unwrap(),
        headers: &headers,
        body: &Bytes::from(body),
        product: "mehman",
        extractors: &[],
        out_of_time: &|| false,
    };
    parse(&input, &Limits::default())
}

/// The pages and sitemaps named, with their dates.
fn named(parsed: &Parsed) -> Vec<(String, Option<Timestamp>)> {
    let links = parsed.links.iter();
    let links = links.filter(|link| matches!(link.kind, LinkKind::Sitemap | LinkKind::Feed));
    links.map(|link| (link.url.to_owned(), link.lastmod)).collect()
}

fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items.iter().map(|item| item.as_str().unwrap().to_owned()).collect()
}

fn text<'c>(case: &'c Value, field: &str) -> &'c str {
    case[field].as_str().unwrap()
}

fn time(text: &str) -> Timestamp {
    let text = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
    Timestamp::parse_rfc3339(&text).unwrap()
}

/// A URL as the URL standard writes it.
fn written(url: &str) -> String {
    CrawlUrl::parse(url).map_or_else(|_| url.to_owned(), |url| url.to_string())
}

/// What is wrong, if anything.
fn judge(case: &Value) -> Option<String> {
    let name = text(case, "file");
    let url = text(case, "sitemap_url");
    let parsed = read(url, case["content_type"].as_str(), file(name));
    let found = named(&parsed);
    let urls: Vec<String> = found.iter().map(|(url, _)| written(url)).collect();
    let count = case["count"].as_u64().or_else(|| case["loc_count"].as_u64());
    if let Some(count) = count
        && u64::try_from(found.len()).unwrap() != count
    {
        return Some(format!("{name}: {} instead of {count}", found.len()));
    }
    let mut accepted = vec![strings(&case["locs"])];
    accepted.extend(case["alternatives"].as_array().into_iter().flatten().map(strings));
    let is_right = accepted.iter().any(|locs| match count {
        // Of long files only the first and the last are listed.
        Some(count) if count != u64::try_from(locs.len()).unwrap() => {
            locs.iter().all(|loc| urls.contains(&written(loc)))
        }
        Some(_) | None => {
            let mut locs: Vec<String> = locs.iter().map(|loc| written(loc)).collect();
            let mut urls = urls.clone();
            locs.sort();
            urls.sort();
            locs == urls
        }
    });
    if !is_right {
        return Some(format!("{name}: {urls:?} instead of one of {accepted:?}"));
    }
    let dates = case["lastmod"].as_array().map(Vec::as_slice).unwrap_or_default();
    let wrong = dates
        .iter()
        .zip(&found)
        .find(|(expected, (_, found))| expected.as_str().map(time) != *found);
    wrong.map(|(expected, (url, found))| format!("{name}: {url} at {found:?}, not {expected}"))
}

#[test]
fn every_file_names_what_is_expected_of_it() {
    let cases: Value = serde_json::from_slice(&file("cases.json")).unwrap();
    let cases = cases.as_array().unwrap();
    assert!(cases.len() > 60);
    let is_ours = |case: &&Value| {
        let name = case["file"].as_str().unwrap();
        DIFFERENT.iter().any(|(different, _)| name.ends_with(different))
    };
    let wrong: Vec<String> = cases.iter().filter(|case| !is_ours(case)).filter_map(judge).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

#[test]
fn every_date_is_read_as_it_is_meant() {
    let dates: Value = serde_json::from_slice(&file("lastmod_dates.json")).unwrap();
    for date in dates.as_array().unwrap() {
        let (text, is_feed) = (date["input"].as_str().unwrap(), date["kind"] == "rss");
        let body = if is_feed {
            format!("<rss><item><link>http://a.test/</link><pubDate>{text}</pubDate></item></rss>")
        } else {
            let url = format!("<loc>http://a.test/</loc><lastmod>{text}</lastmod>");
            format!("<urlset><url>{url}</url></urlset>")
        };
        let parsed = read("http://a.test/x", Some("text/xml"), body.into_bytes());
        let expected = date["expected"].as_str().map(time);
        assert_eq!(named(&parsed), [("http://a.test/".to_owned(), expected)], "{text}");
    }
}
