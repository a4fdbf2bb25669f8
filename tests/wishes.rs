//! Wishes on use, from a site's words to what each output has got (R6): the real binary, one site
//! that says it in every way, an output for each purpose, and `export` over what is stored.

#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

mod support;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};
use support::data;
use support::node::{Home, LOCAL};
use support::site::{Reply, Request, Site};

/// An output for each purpose; the first has everything.
const OUTPUTS: &str = r#"
[[output]]
kind = "jsonl"
purpose = "archive"
[[output]]
kind = "jsonl"
purpose = "ai-train"
[[output]]
kind = "jsonl"
purpose = "search"
[[output]]
kind = "jsonl"
purpose = "ai-input"
"#;

const ROBOTS: &str = "User-agent: *\nAllow: /\nContent-Usage: /closed/ train-ai=n\n\
     Content-Usage: /closed/open train-ai=y\nContent-Signal: /signal search=no, ai-input=no\n\n\
     User-agent: GPTBot\nDisallow: /gpt\n";

const RESERVED: &str = r#"[{"location": "/reserved", "tdm-reservation": 1}]"#;

const PATHS: [&str; 10] = [
    "/free",
    "/closed/a",
    "/closed/open",
    "/signal",
    "/gpt",
    "/header",
    "/mining",
    "/noai",
    "/hidden",
    "/reserved",
];

/// What each purpose leaves out.
const NO_TRAINING: [&str; 6] = ["/closed/a", "/gpt", "/header", "/mining", "/noai", "/reserved"];
const NO_SEARCH: [&str; 2] = ["/signal", "/hidden"];
const NO_INPUT: [&str; 4] = ["/signal", "/mining", "/noai", "/reserved"];

fn site(request: &Request) -> Reply {
    let page = |head: &str| Reply::html(format!("<!doctype html>{head}<p>Of {}.", request.path));
    match request.path.as_str() {
        "/robots.txt" => Reply::text(ROBOTS),
        "/.well-known/tdmrep.json" => Reply::text(RESERVED),
        "/" => Reply::html(PATHS.map(|path| format!("<a href=\"{path}\">x</a>")).concat()),
        "/header" => page("").header("Content-Usage", "train-ai=n, search=y"),
        "/mining" => page("").header("TDM-Reservation", "1"),
        "/noai" => page("<meta name=robots content=noai>"),
        "/hidden" => page("<meta name=robots content=noindex>"),
        path if PATHS.contains(&path) => page(""),
        _ => Reply::status(404),
    }
}

fn all_but(left_out: &[&str]) -> BTreeSet<String> {
    let paths = PATHS.iter().chain(&["/"]).filter(|path| !left_out.contains(path));
    paths.map(|path| (*path).to_owned()).collect()
}

/// The records of lines, by path.
fn records(text: &str) -> Vec<(String, Value)> {
    let record = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    let path = |page: &Value| {
        let url = url::Url::parse(page["url"].as_str().unwrap()).unwrap();
        url.path().to_owned()
    };
    text.lines().map(record).map(|page| (path(&page), page)).collect()
}

fn paths(text: &str) -> BTreeSet<String> {
    records(text).into_iter().map(|(path, _)| path).collect()
}

/// All lines of one output.
fn lines(data: &Path, output: &str) -> String {
    let is_its = |file: &Path| {
        file.file_name().unwrap().to_str().unwrap().starts_with(&format!("{output}-"))
    };
    let files = data::files(&data.join("pages")).into_iter().filter(|file| is_its(file));
    files.map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

/// B1: what `why` says of a stored page is what its outputs did.
async fn why_closes_what_outputs_leave_out(home: &Home, site: &Site) {
    for path in PATHS {
        let told = home.run(&["why", &site.url(path), "--json"], 60).await.expect(0).json();
        let steps = told["trace"].as_array().unwrap().iter().filter(|step| step["step"] == "use");
        let closed: Vec<&str> = steps
            .filter(|step| step["result"] == "refuse")
            .map(|step| step["value"].as_str().unwrap())
            .collect();
        let left_out =
            [("search", &NO_SEARCH[..]), ("ai-train", &NO_TRAINING), ("ai-input", &NO_INPUT)];
        let wanted = left_out.iter().filter(|(_, paths)| paths.contains(&path));
        assert_eq!(closed, wanted.map(|(name, _)| *name).collect::<Vec<_>>(), "{path}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_output_has_what_its_purpose_may_have() {
    let site = Site::start(site).await;
    let home = Home::new(&format!("{LOCAL}{OUTPUTS}"));
    let ended = home.run(&["crawl", &site.url("/"), "--json"], 60).await.expect(0);
    assert_eq!(ended.json()["ended"], "done");
    assert_eq!(ended.json()["pages"], 11, "neither of the host's files is a page");
    assert_eq!(site.counts()["/.well-known/tdmrep.json"], 1);

    let data = home.data();
    assert_eq!(paths(&lines(&data, "pages")), all_but(&[]), "purpose archive");
    why_closes_what_outputs_leave_out(&home, &site).await;
    assert_eq!(paths(&lines(&data, "pages1")), all_but(&NO_TRAINING), "purpose ai-train");
    assert_eq!(paths(&lines(&data, "pages2")), all_but(&NO_SEARCH), "purpose search");
    assert_eq!(paths(&lines(&data, "pages3")), all_but(&NO_INPUT), "purpose ai-input");

    let told = ended.json();
    let expected = [
        json!({"name": "pages", "purpose": "archive", "documents": 11, "left_out": {}}),
        json!({"name": "pages1", "purpose": "ai-train", "documents": 5, "left_out":
            {"agent-group": 1, "content-usage": 2, "noai": 1, "tdmrep": 2}}),
        json!({"name": "pages2", "purpose": "search", "documents": 9, "left_out":
            {"content-signal": 1, "noindex": 1}}),
        json!({"name": "pages3", "purpose": "ai-input", "documents": 7, "left_out":
            {"content-signal": 1, "noai": 1, "tdmrep": 2}}),
    ];
    assert_eq!(told["outputs"], json!(expected));
    check_evidence(&lines(&data, "pages"), &site.url("/robots.txt"), &data);
    check_exports(&home, told["outputs"].as_array().unwrap()).await;
}

/// The records say who said what, and when: that of robots.txt at a time that finds its capture.
fn check_evidence(text: &str, robots: &str, data: &Path) {
    let records = records(text);
    let usage = |path: &str| {
        let (_, page) = records.iter().find(|(found, _)| found == path).unwrap();
        page["usage"].as_array().unwrap().clone()
    };
    let said = |path: &str| {
        let wishes = usage(path).into_iter();
        wishes.map(|wish| (wish["source"].clone(), wish["text"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(said("/free"), []);
    let rule = |text: &str| ("robots.txt".into(), text.into());
    assert_eq!(said("/closed/a"), [rule("Content-Usage: /closed/ train-ai=n")]);
    assert_eq!(said("/gpt"), [rule("User-agent: GPTBot\nDisallow: /gpt")]);
    assert_eq!(said("/header"), [("header".into(), "content-usage: train-ai=n, search=y".into())]);
    let rule = RESERVED.trim_matches(['[', ']']);
    assert_eq!(said("/reserved"), [("tdmrep.json".into(), rule.into())]);
    let at = |path: &str| usage(path)[0]["at"].as_str().unwrap().to_owned();
    let (_, page) = records.iter().find(|(path, _)| path == "/header").unwrap();
    assert_eq!(at("/header"), page["fetched_at"].as_str().unwrap());
    let digits =
        |time: &str| -> String { time.chars().filter(char::is_ascii_digit).take(14).collect() };
    let index = data::index(data);
    let capture = index.iter().find(|line| line.fields["url"] == robots).unwrap();
    assert!(capture.timestamp <= digits(&at("/gpt")), "its robots.txt was archived before");
}

/// What is stored is judged as it was when it was written.
async fn check_exports(home: &Home, outputs: &[Value]) {
    for output in &outputs[1..] {
        let purpose = output["purpose"].as_str().unwrap();
        let exported = home.run(&["export", "--purpose", purpose], 30).await.expect(0);
        let written = lines(&home.data(), output["name"].as_str().unwrap());
        let sorted = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
        assert_eq!(sorted(&exported.out), sorted(&written), "{purpose}");

        let arguments = ["export", "--purpose", purpose, "--json", "--out", "out.jsonl"];
        let told = home.run(&arguments, 30).await.expect(0).json();
        assert_eq!(std::fs::read_to_string(home.path("out.jsonl")).unwrap(), exported.out);
        assert_eq!((&told["left_out"], &told["read"]), (&output["left_out"], &json!(11)));
        assert_eq!(told["written"], output["documents"]);
    }
    let all = home.run(&["export", "--purpose", "archive", "--out", "-"], 30).await.expect(0);
    assert_eq!(paths(&all.out), all_but(&[]));
    let wrong = home.run(&["export", "--purpose", "ai-training"], 30).await.expect(2);
    assert!(wrong.err.contains("ai-train"), "{}", wrong.err);
}

/// docs/wishes.md: each row names its test.
#[test]
fn every_row_of_the_document_has_its_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).unwrap();
    let tests = ["src/policy/wishes/tests.rs", "src/policy/why/asks.rs", "tests/wishes.rs"];
    let tests = tests.map(read).concat();
    let document = read("docs/wishes.md");
    let rows = document.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |"));
    let mut named = BTreeSet::new();
    for row in rows {
        let test = row.trim_end_matches("` |").rsplit('`').next().unwrap();
        assert!(tests.contains(&format!("fn {test}(")), "no such test: {row}");
        named.insert(test.to_owned());
    }
    assert!(named.len() > 10, "{named:?}");
    for label in ["train-ai", "ai-use", "GPTBot", "Google-Extended", "CCBot", "noimageai"] {
        assert!(document.contains(label), "{label}");
    }
}
