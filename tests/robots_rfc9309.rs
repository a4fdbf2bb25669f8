//! R1–R3: the verdicts of RFC 9309, of other projects' tests and of real files, as data.
//!
//! Where we differ from a verdict of the data, it stands in `docs/robots-disagreements.md` with the
//! reason; a case that no longer differs fails the test too, so the lists stay true.

use std::collections::{BTreeMap, BTreeSet};
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
    /// What other parsers say.
    #[serde(default)]
    oracles: BTreeMap<String, bool>,
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

    fn allows(&self) -> bool {
        self.rules().verdict(&path_of(&self.url)).is_allowed()
    }
}

fn cases(name: &str) -> Vec<Case> {
    serde_json::from_slice(&data(name)).expect("the data is JSON")
}

/// What a verdict is called in the lists.
fn word(allowed: bool) -> String {
    if allowed { "allowed" } else { "refused" }.to_owned()
}

/// The rows of the table that follows a heading of the list of disagreements, cell by cell.
fn listed(heading: &str) -> Vec<Vec<String>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/robots-disagreements.md");
    let text = std::fs::read_to_string(path).expect("the list of disagreements");
    let (_, part) = text.split_once(&format!("## {heading}\n")).expect("the heading is there");
    let part = part.split("\n## ").next().unwrap_or_default();
    let rows = part.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim_start_matches("| ").trim_end_matches('|');
        inner.split(" | ").map(|cell| cell.trim().trim_matches('`').to_owned()).collect()
    };
    rows.skip(1).map(cells).collect()
}

/// Every reason that a row gives is explained, and every one that is explained is given.
#[test]
fn every_disagreement_has_its_reason() {
    let reasons: BTreeSet<String> =
        listed("Reasons").into_iter().map(|row| row[0].clone()).collect();
    let verdicts = listed("Verdicts of other projects").into_iter().map(|row| row[4].clone());
    let real = listed("Real files on which the checkers differ").into_iter();
    let given: BTreeSet<String> = verdicts.chain(real.map(|row| row[5].clone())).collect();
    assert_eq!(given, reasons);
}

/// Verdicts on which sources and all checkers agree.
#[test]
fn core_verdicts_are_ours() {
    let core: Vec<Case> =
        cases("verdicts.json").into_iter().filter(|case| case.level == "core").collect();
    assert_eq!(core.len(), 993);
    for case in core {
        assert_eq!(Some(case.allows()), case.allow, "{} {}", case.id, case.note);
    }
}

/// Verdicts on which a checker differs, or projects do: as listed, no more and no fewer.
#[test]
fn other_verdicts_are_ours_but_for_the_list() {
    let list = listed("Verdicts of other projects").into_iter();
    let list: BTreeSet<Vec<String>> = list.map(|row| row[..4].to_vec()).collect();
    let (mut agreed, mut found) = (0, BTreeSet::new());
    for case in cases("verdicts.json").into_iter().filter(|case| case.level != "core") {
        let ours = case.allows();
        if case.allow == Some(ours) {
            agreed += 1;
        } else {
            let theirs = case.allow.map_or_else(|| "both".to_owned(), word);
            found.insert(vec![case.id, case.level, word(ours), theirs]);
        }
    }
    assert_eq!(found, list);
    assert_eq!((agreed, found.len()), (171, 47));
}

/// What each checker says, by the names of the list.
fn differing(case: &Case, ours: bool) -> String {
    let checkers = ["google", "texting_robots", "protego", "robots_parser"];
    let differ = checkers.into_iter().filter(|name| case.oracles.get(*name) != Some(&ours));
    differ.map(|name| name.replace("robots_parser", "robots-parser")).collect::<Vec<_>>().join(", ")
}

#[test]
fn real_files_on_which_checkers_differ_are_judged_as_listed() {
    let list = listed("Real files on which the checkers differ").into_iter();
    let list: BTreeSet<Vec<String>> = list.map(|row| row[..5].to_vec()).collect();
    let found: BTreeSet<Vec<String>> = cases("real_contested.json")
        .into_iter()
        .map(|case| {
            let ours = case.allows();
            let file = case.robots_file.as_deref().unwrap_or_default();
            let file = file.trim_start_matches("real/").trim_end_matches(".robots.txt");
            let differing = differing(&case, ours);
            let path = path_of(&case.url);
            vec![file.to_owned(), case.agent, path, word(ours), differing]
        })
        .collect();
    assert_eq!(found, list);
    assert_eq!(found.len(), 48);
}

/// No real file makes the parser fail, whoever asks; the largest of them is kept whole.
#[test]
fn every_real_file_is_read_whole() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/robots/real");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).expect("the real files") {
        let text = Bytes::from(std::fs::read(entry.expect("an entry").path()).expect("a file"));
        for product in ["mehman", "Googlebot"] {
            let rules = Rules::parse(&text, product);
            assert_eq!((rules.skipped().rules, rules.skipped().long_patterns), (0, 0));
            rules.verdict("/a/b?c=d");
        }
        read += 1;
    }
    assert_eq!(read, 152);
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
    let otherwise: Vec<String> =
        listed("Crawl-delay").into_iter().map(|row| row[0].clone()).collect();
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
    assert_eq!(differing, otherwise);
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
