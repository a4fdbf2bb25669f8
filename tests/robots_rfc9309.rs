//! R1–R3: the verdicts of RFC 9309, of other projects' tests and of real files, as data.
//!
//! Where we differ from a verdict of the data, it stands in a list below with the reason; a case
//! that no longer differs fails the test too, so the lists stay true.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bytes::Bytes;
use mehman::policy::robots::Rules;
use mehman::types::CrawlUrl;
use serde::Deserialize;

fn data(name: &str) -> Vec<u8> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/robots").join(name);
    std::fs::read(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// `/path?query` of a case's URL; some cases give only that, some a URL that is not ours to crawl.
fn path_of(url: &str) -> String {
    match url::Url::parse(url) {
        Ok(url) => {
            let query = url.query().map(|query| format!("?{query}"));
            format!("{}{}", url.path(), query.unwrap_or_default())
        }
        Err(_) if url.starts_with('/') => url.to_owned(),
        Err(_) => "/".to_owned(),
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0_u32, 0);
    for digit in text.bytes().filter(|byte| *byte != b'=') {
        let value = ALPHABET.iter().position(|known| *known == digit).expect("Base64");
        bits = (bits << 6) | u32::try_from(value).expect("below 64");
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push(u8::try_from((bits >> held) & 0xFF).expect("masked"));
        }
    }
    bytes
}

#[derive(Deserialize)]
struct Case {
    robots: Option<String>,
    robots_b64: Option<String>,
    robots_file: Option<String>,
    agent: String,
    #[serde(default)]
    url: String,
    #[serde(default)]
    allow: Option<bool>,
    #[serde(default)]
    level: String,
    #[serde(default)]
    id: String,
    #[serde(default)]
    note: String,
    #[serde(default)]
    source: OneOrMore,
    #[serde(default)]
    crawl_delay_ms: Option<u128>,
    #[serde(default)]
    sitemaps: Option<Vec<String>>,
}

/// The data has one source as text, several as a list.
#[derive(Default, Deserialize)]
#[serde(from = "serde_json::Value")]
struct OneOrMore(Vec<String>);

impl From<serde_json::Value> for OneOrMore {
    fn from(value: serde_json::Value) -> Self {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        Self(
            value
                .as_array()
                .map_or_else(|| vec![text(&value)], |list| list.iter().map(text).collect()),
        )
    }
}

impl std::ops::Deref for OneOrMore {
    type Target = [String];
    fn deref(&self) -> &[String] {
        &self.0
    }
}

impl Case {
    fn rules(&self) -> Rules {
        let text = match (&self.robots, &self.robots_b64, &self.robots_file) {
            (Some(text), ..) => text.clone().into_bytes(),
            (_, Some(text), _) => from_base64(text),
            (_, _, Some(file)) => data(file),
            (None, None, None) => panic!("a case without a file"),
        };
        Rules::parse(&Bytes::from(text), &self.agent)
    }
}

fn cases(name: &str) -> Vec<Case> {
    serde_json::from_slice(&data(name)).expect("the data is JSON")
}

/// Verdicts on which the sources and all checkers agree, or a source and Google's parser.
#[test]
fn verdicts_that_are_agreed_on_are_ours() {
    let stricter: BTreeMap<&str, &str> = BTreeMap::from([
        ("rv-17a75aa85f", "Google reads Allow: …/index.html as …/ too, RFC 9309 does not"),
        ("rv-93fb72047b", "the same file in another project's tests"),
        ("rv-5f4e335ad8", "the same reading, as /index.html against /*"),
        ("rv-2d647d0740", "Google cuts lines at 16 KiB and so allows more; we read 32 KiB"),
        ("rv-bff9791141", "Google cuts lines at 16 KiB and so refuses more; we read 32 KiB"),
    ]);
    let ours = |case: &Case| case.rules().verdict(&path_of(&case.url)).is_allowed();
    let checked = cases("verdicts.json").into_iter().filter(|case| case.level != "contested");
    let (mut agreed, mut differing) = (0, Vec::new());
    for case in checked {
        if Some(ours(&case)) == case.allow {
            agreed += 1;
        } else {
            differing.push(case.id);
        }
    }
    differing.sort();
    assert_eq!(differing, stricter.into_keys().collect::<Vec<_>>());
    assert_eq!(agreed, 1041);
}

#[test]
fn contested_cases_get_a_verdict_too() {
    for case in cases("verdicts.json").iter().filter(|case| case.level == "contested") {
        case.rules().verdict(&path_of(&case.url));
    }
}

/// What RFC 9309 itself shows is ours, also where the checkers do not follow it.
#[test]
fn the_figures_of_the_rfc_are_ours() {
    let shown: Vec<_> = cases("verdicts.json")
        .into_iter()
        .filter(|case| case.source.iter().any(|source| source.starts_with("RFC 9309")))
        .collect();
    assert!(shown.len() >= 8, "{}", shown.len());
    for case in shown.into_iter().filter(|case| case.allow.is_some()) {
        let allowed = case.rules().verdict(&path_of(&case.url)).is_allowed();
        assert_eq!(Some(allowed), case.allow, "{} {}", case.id, case.note);
    }
}

#[test]
fn verdicts_on_real_files_are_those_of_four_other_parsers() {
    let cases = cases("real_verdicts.json");
    for case in &cases {
        let allowed = case.rules().verdict(&path_of(&case.url)).is_allowed();
        assert_eq!(Some(allowed), case.allow, "{:?} {}", case.robots_file, case.url);
    }
    assert_eq!(cases.len(), 756);
}

#[test]
fn crawl_delays_are_those_of_other_projects() {
    let otherwise: BTreeMap<&str, &str> = BTreeMap::from([
        ("testHeritrixCases", "finds the token inside a whole User-Agent; RFC 9309 compares it"),
        ("DifferentAgentTest", "the same"),
        ("test_robot_starts_with_crawl_delay", "a delay before any group is nobody's"),
        ("test_reppy_no_leading_user_agent", "the same"),
        ("test_reppy_separates_agents", "takes the delay of another agent"),
    ]);
    let mut differing = Vec::new();
    // Cases on Sitemap lines say nothing of a delay, and leave the field out.
    let silent = |case: &Case| case.crawl_delay_ms.is_none() && case.sitemaps.is_some();
    for case in cases("crawl_delay_and_sitemaps.json").iter().filter(|case| !silent(case)) {
        let found = case.rules().crawl_delay().map(|delay| delay.as_millis());
        if found != case.crawl_delay_ms {
            differing.push(case.note.clone());
        }
    }
    differing.sort();
    assert_eq!(differing, otherwise.into_keys().collect::<Vec<_>>());
}

#[test]
fn sitemap_lines_are_those_of_other_projects() {
    let cases = cases("crawl_delay_and_sitemaps.json");
    let site = CrawlUrl::parse("http://domain.com/robots.txt").expect("a URL");
    for (case, sitemaps) in cases.iter().filter_map(|case| Some((case, case.sitemaps.as_ref()?))) {
        let resolve = |sitemap: &String| site.join(sitemap).expect("a URL").as_str().to_owned();
        let found: Vec<_> = case.rules().sitemaps().iter().map(resolve).collect();
        assert_eq!(found, sitemaps.iter().map(resolve).collect::<Vec<_>>(), "{}", case.note);
    }
}
