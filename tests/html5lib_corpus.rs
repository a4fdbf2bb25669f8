//! P1: the scanner against the tests of html5lib: tokens, and trees.
//!
//! It builds no tree, so what is compared of one is what a crawler reads: links, title, text. The
//! order of text is left out, because a tree moves what stands wrongly in a table before it.

#![expect(clippy::unwrap_used, reason = "a helper of a test fails the test")]

use mehman::parse::html::entities::{Place, decode};
use mehman::parse::html::{Scan, ScanOptions, candidates, fold, scan};
use mehman::types::LinkKind;
use serde_json::Value;

#[path = "support/disagreements.rs"]
mod disagreements;

use disagreements::{Vector, agree, read};

const LIST: &str = "docs/html-disagreements.md";

fn scanned(html: &str) -> Scan<'_> {
    let options = ScanOptions {
        links_max: 1000,
        text_bytes_max: 1 << 20,
        references_bytes_max: usize::MAX,
        meta_names: &[],
        measures_depth: false,
        is_xml: false,
        out_of_time: &|| false,
    };
    scan(html, &options)
}

fn tokenizer(name: &str) -> Vec<Value> {
    let file = read(&format!("tests/data/html/html5lib/tokenizer/{name}.test"));
    let parsed: Value = serde_json::from_slice(&file).unwrap();
    let tests = [&parsed["tests"], &parsed["xmlViolationTests"]];
    tests.into_iter().filter_map(Value::as_array).flatten().cloned().collect()
}

/// The text of a tokenizer test, if that is all it gives.
fn characters(case: &Value) -> Option<String> {
    let tokens = case["output"].as_array()?.iter();
    tokens.map(|token| (token[0] == "Character").then(|| token[1].as_str())?).collect()
}

/// Some tests have their characters escaped once more; `None` for half a surrogate pair.
fn unescaped(text: &str) -> Option<String> {
    serde_json::from_str(&format!("\"{}\"", text.replace('"', "\\\""))).ok()
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
        let page = scanned(&tag);
        attributes += 1;
        assert_eq!(page.links[0].url, expected, "{case}");
    }
    assert!(texts > 4000 && attributes > 8, "{texts} {attributes}");
}

/// White space and controls separate words for us, whatever they are.
fn bare(text: &str) -> String {
    let mut text = fold(text, 1 << 20).0;
    text.retain(|c| c != ' ');
    text
}

/// The state that a test begins in, as the start tag that leads there.
fn entered(case: &Value) -> Option<String> {
    let last = case["lastStartTag"].as_str();
    let states = case["initialStates"].as_array();
    let begins = |state: &str| states.is_some_and(|states| states.iter().any(|s| s == state));
    match last {
        _ if states.is_none() || begins("Data state") => Some(String::new()),
        Some("textarea") if begins("RCDATA state") => Some("<textarea>".to_owned()),
        Some("xmp") if begins("RAWTEXT state") => Some("<xmp>".to_owned()),
        None if begins("PLAINTEXT state") => Some("<plaintext>".to_owned()),
        Some(_) | None => None,
    }
}

#[test]
fn markup_is_cut_as_html5lib_cuts_it() {
    let files = [
        "contentModelFlags",
        "domjs",
        "escapeFlag",
        "pendingSpecChanges",
        "test1",
        "test2",
        "test3",
        "test4",
        "unicodeChars",
        "unicodeCharsProblematic",
        "xmlViolation",
    ];
    let mut vectors = Vec::new();
    for case in files.into_iter().flat_map(tokenizer) {
        let Some(entered) = entered(&case) else { continue };
        let tokens = case["output"].as_array().unwrap().iter();
        let text: String = tokens
            .filter(|token| token[0] == "Character")
            .map(|token| token[1].as_str().unwrap())
            .collect();
        let input = case["input"].as_str().unwrap();
        let (input, text) = match case["doubleEscaped"] == true {
            true => match unescaped(input).zip(unescaped(&text)) {
                Some(both) => both,
                None => continue,
            },
            false => (input.to_owned(), text),
        };
        let input = format!("{entered}{input}");
        let ours = bare(&scanned(&input).text);
        vectors.push(Vector::new(&input, ours, bare(&text)));
    }
    agree(LIST, "tokenizer", &vectors);
}

/// What a crawler reads of a tree: links, title, the characters of its text in any order.
fn shown(mut links: Vec<String>, title: Option<String>, text: &str) -> String {
    links.sort();
    links.dedup();
    let mut text: Vec<char> = text.chars().filter(|c| !c.is_whitespace() && *c > ' ').collect();
    text.sort_unstable();
    let text = String::from_iter(text);
    let title = title.filter(|title| !title.is_empty()).unwrap_or_default();
    format!("{} [{title}] {text}", links.join(" ")).trim_start().to_owned()
}

fn by_scan(html: &str) -> String {
    let page = scanned(html);
    let line = |kind: LinkKind, url: &str| format!("{}:{url}", kind.as_str());
    let links = page.links.iter().map(|link| line(link.kind, &link.url)).collect();
    shown(links, page.title, &page.text)
}

/// An open element of a tree as it is written down.
struct Open {
    depth: usize,
    name: String,
    attributes: Vec<(String, String)>,
}

/// What the written tree of a test holds.
#[derive(Default)]
struct Tree {
    open: Vec<Open>,
    links: Vec<String>,
    title: Option<String>,
    text: String,
}

impl Tree {
    fn of(dump: &str) -> Self {
        let mut tree = Self::default();
        // A text may have several lines; each thing begins with a bar.
        let mut lines = dump.split("\n| ").map(str::to_owned).collect::<Vec<_>>();
        if let Some(first) = lines.first_mut() {
            *first = first.trim_start_matches("| ").to_owned();
        }
        for line in &lines {
            tree.take(line.trim_end_matches('\n'));
        }
        tree.close_to(0);
        tree
    }

    fn take(&mut self, line: &str) {
        let item = line.trim_start_matches(' ');
        let depth = (line.len() - item.len()) / 2;
        if let Some(text) = item.strip_prefix('"') {
            self.close_to(depth);
            self.show(text.strip_suffix('"').unwrap_or(text));
        } else if item.starts_with("<!") || item == "content" {
            self.close_to(depth);
            if item == "content" {
                self.open.push(Open { depth, name: item.to_owned(), attributes: Vec::new() });
            }
        } else if let Some(name) = item.strip_prefix('<') {
            self.close_to(depth);
            let name = name.trim_end_matches('>').to_owned();
            if name == "title" {
                self.title.get_or_insert_default();
            }
            self.open.push(Open { depth, name, attributes: Vec::new() });
        } else if let Some((name, value)) = item.split_once("=\"") {
            let value = value.strip_suffix('"').unwrap_or(value).to_owned();
            if let Some(open) = self.open.last_mut() {
                open.attributes.push((name.to_owned(), value));
            }
        }
    }

    fn is_inside(&self, names: &[&str]) -> bool {
        self.open.iter().any(|open| names.contains(&open.name.as_str()))
    }

    fn show(&mut self, text: &str) {
        if self.is_inside(&["content"]) {
            return;
        }
        let hides = ["script", "style", "iframe", "noembed", "noframes", "svg script", "svg style"];
        match self.open.last().map(|open| open.name.as_str()) {
            Some("title") => {
                let title = self.title.get_or_insert_default();
                if title.is_empty() {
                    *title = fold(text, 4096).0;
                }
            }
            Some(name) if hides.contains(&name) => {}
            Some(_) | None => self.text.push_str(text),
        }
    }

    /// Elements at this depth and below are complete, with their attributes.
    fn close_to(&mut self, depth: usize) {
        while self.open.last().is_some_and(|open| open.depth >= depth) {
            let open = self.open.pop().unwrap();
            if !self.is_inside(&["content"]) {
                self.element(&open);
            }
        }
    }

    fn element(&mut self, open: &Open) {
        let get = |name: &str| {
            open.attributes.iter().find(|(found, _)| found == name).map(|(_, value)| value.trim())
        };
        let mut add = |kind: LinkKind, url: Option<&str>| {
            let url = url.filter(|url| !url.is_empty() || kind == LinkKind::A);
            self.links.extend(url.map(|url| format!("{}:{url}", kind.as_str())));
        };
        match open.name.as_str() {
            "a" => add(LinkKind::A, get("href")),
            "svg a" => add(LinkKind::A, get("href").or(get("xlink href"))),
            "area" => add(LinkKind::Area, get("href")),
            "frame" => add(LinkKind::Frame, get("src")),
            "iframe" => add(LinkKind::Iframe, get("src")),
            "script" => add(LinkKind::Script, get("src")),
            "img" => {
                add(LinkKind::Image, get("src"));
                get("srcset").into_iter().flat_map(candidates).for_each(|url| {
                    add(LinkKind::Image, Some(url));
                });
                self.text.push_str(get("alt").unwrap_or_default());
            }
            "form" => add(LinkKind::Form, get("action")),
            "video" | "audio" | "embed" | "source" => add(LinkKind::Media, get("src")),
            _ => {}
        }
    }
}

#[test]
fn pages_hold_what_html5libs_trees_hold() {
    let mut vectors = Vec::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/html/html5lib/tree-construction");
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    for file in files {
        let text = String::from_utf8(std::fs::read(&file).unwrap()).unwrap();
        for case in text.split("#data\n").skip(1) {
            let is_run = !["#document-fragment", "#script-on"].iter().any(|no| case.contains(no));
            let Some((data, rest)) = case.split_once("\n#errors").filter(|_| is_run) else {
                continue;
            };
            let Some((_, dump)) = rest.split_once("#document\n") else { continue };
            let tree = Tree::of(dump.trim_end_matches('\n'));
            vectors.push(Vector::new(
                data,
                by_scan(data),
                shown(tree.links, tree.title, &tree.text),
            ));
        }
    }
    agree(LIST, "tree-construction", &vectors);
}
