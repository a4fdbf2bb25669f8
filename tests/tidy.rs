//! The house rules, read off the source tree: who may import whom, what stays pure, how long a
//! file may be, and that `actors.md` says what the protocol says.
//!
//! The scanning is plain text, with comments and literals blanked where only code counts. What the
//! compiler or clippy can check is not here.

#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

use std::collections::BTreeSet;
use std::fs;

use source::{Source, code_of, files, has_word, is_of_word, read, root, sources, word_at};

#[path = "tidy/source.rs"]
mod source;

/// The folders of `src` in reading order. A module may use what stands in the rows above its own,
/// never what stands beside it or below.
const LAYERS: &[&[&str]] = &[
    &["types"],
    &["policy"],
    &["config", "world", "telemetry"],
    &["protocol"],
    &["storage", "supervise"],
    &["discovery", "frontier", "fetch", "archive", "parse", "output"],
    &["cluster", "admin"],
    &["node"],
    &["sandbox", "simulation", "load"],
    &["cli"],
];

/// Where nothing happens: what goes in alone decides what comes out.
const PURE: &[&str] = &["src/types/", "src/policy/"];

/// What has no place in pure code: clocks, I/O, tasks, logs, randomness.
const IMPURE: &[&str] = &[
    "async",
    "await",
    "tokio",
    "ractor",
    "tracing",
    "rand",
    "Instant",
    "SystemTime",
    "std::fs",
    "std::io",
    "std::env",
    "std::thread",
    "std::process",
    "TcpStream",
    "TcpListener",
    "UdpSocket",
    "ToSocketAddrs",
    "thread_local",
];

/// Lines of a file, its inline tests not counted.
const LINES_MAX: usize = 500;
/// Lines of an inline tests module; longer ones have a file of their own.
const TEST_LINES_MAX: usize = 150;
/// Characters of a line.
const COLUMNS_MAX: usize = 100;

/// Put together so that this file does not contain them.
const UNFINISHED: &[&str] = &[
    concat!("to", "do"),
    concat!("fix", "me"),
    concat!("xx", "x"),
    concat!("un", "implemented"),
    concat!("place", "holder"),
    concat!("for", " now"),
];

/// Places of the machines this is written on.
const MACHINE_PATHS: &[&str] =
    &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tm", "p/wt")];

#[test]
fn modules_stand_in_the_order_of_the_layers() {
    let map = code_of(&read("src/lib.rs"));
    let declared = map.lines().filter_map(|line| line.strip_prefix("pub mod "));
    let declared: Vec<&str> = declared.map(|name| name.trim_end_matches(';')).collect();
    assert_eq!(declared, LAYERS.concat(), "src/lib.rs and the layers in tests/tidy.rs differ");
}

/// Tests are held to it as well, but for what they are set up with: the tests of the frontier run
/// in a cluster of one.
#[test]
fn modules_import_only_from_layers_above() {
    let mut faults = Vec::new();
    for source in sources(&["src"]) {
        let Some((home, _)) = source.path.strip_prefix("src/").and_then(|p| p.split_once('/'))
        else {
            continue;
        };
        let height = height_of(home).unwrap_or_else(|| panic!("src/{home} is in no layer"));
        for (line, used) in imports(&source) {
            let allowed = used == home
                || height_of(&used).is_none_or(|other| other < height)
                || (source.is_test() && used == "cluster");
            if !allowed {
                faults.push(format!("{}:{line}: {home} may not use {used}", source.path));
            }
        }
    }
    none(&faults);
}

/// So that the layers can be read off the word `crate` alone.
#[test]
fn no_path_climbs_to_the_root_by_super() {
    let mut faults = Vec::new();
    for source in sources(&["src"]) {
        let name = source.path.trim_end_matches("/mod.rs");
        let depth = name.matches('/').count();
        for (number, line) in source.code.lines().enumerate() {
            let inside = usize::from(source.is_inline_test(number));
            let climbs = line.split("super::").count() - 1;
            if climbs > 0 && line.contains(&"super::".repeat(depth + inside)) {
                faults.push(format!("{}:{}: begin at `crate`", source.path, number + 1));
            }
        }
    }
    none(&faults);
}

#[test]
fn types_and_policy_are_pure() {
    let mut faults = Vec::new();
    for source in sources(PURE) {
        for (number, line) in source.lines_without_tests() {
            for word in IMPURE.iter().filter(|word| has_word(line, word)) {
                faults.push(format!("{}:{number}: `{word}` in pure code", source.path));
            }
        }
    }
    none(&faults);
}

#[test]
fn every_file_opens_with_what_it_is() {
    let without = |source: &Source| !source.text.starts_with("//! ");
    let faults = sources(&["src", "tests", "examples"]).into_iter().filter(without);
    let faults = faults.map(|source| format!("{}: does not open with `//!`", source.path));
    none(&faults.collect::<Vec<String>>());
}

#[test]
fn files_and_lines_are_short() {
    let mut faults = Vec::new();
    for source in sources(&["src", "tests", "examples"]) {
        let tests = source.inline_tests.iter().map(|part| part.end - part.start).sum::<usize>();
        let lines = source.text.lines().count() - tests;
        if lines > LINES_MAX {
            faults.push(format!("{}: {lines} lines, at most {LINES_MAX}", source.path));
        }
        if tests > TEST_LINES_MAX {
            faults.push(format!("{}: {tests} lines of inline tests", source.path));
        }
        for (number, (line, code)) in source.text.lines().zip(source.code.lines()).enumerate() {
            let columns = line.chars().count();
            // What begins within a literal cannot be wrapped.
            let (line, code) = (line.trim_start(), code.trim_start());
            let is_text =
                !line.starts_with(['/', '"']) && line.chars().next() != code.chars().next();
            if columns > COLUMNS_MAX && !is_text {
                faults.push(format!("{}:{}: {columns} columns", source.path, number + 1));
            }
        }
    }
    none(&faults);
}

#[test]
fn nothing_is_left_unfinished() {
    let mut faults = Vec::new();
    for source in sources(&["src", "tests", "examples"]) {
        for (number, line) in source.text.to_lowercase().lines().enumerate() {
            for word in UNFINISHED.iter().filter(|word| has_word(line, word)) {
                faults.push(format!("{}:{}: {word}", source.path, number + 1));
            }
        }
    }
    none(&faults);
}

/// I8: ractor's names are global to the process, and its groups too; two nodes in one process
/// would meet. A queue without a bound is a leak that waits.
#[test]
fn no_actor_has_a_global_name_and_no_queue_is_endless() {
    let mut faults = Vec::new();
    for source in sources(&["src"]) {
        let squeezed: String = source.code.split_whitespace().collect();
        let named = ["spawn(Some(", "spawn_linked(Some(", "spawn_instant(Some("];
        let global = ["ractor::registry", "ractor::pg", "registry::where_is", "pg::join("];
        for part in named.iter().chain(&global).filter(|part| squeezed.contains(**part)) {
            faults.push(format!("{}: {part}", source.path));
        }
        for part in ["unbounded", "Unbounded"].iter().filter(|part| source.code.contains(**part)) {
            faults.push(format!("{}: {part}", source.path));
        }
    }
    none(&faults);
}

/// A lint is expected with a reason, and the expectation is reported once it is not needed. Only
/// what the tests share is not used by each of them.
#[test]
fn no_lint_is_allowed() {
    let mut faults = Vec::new();
    for source in sources(&["src", "tests", "examples"]) {
        for (number, line) in source.code.lines().enumerate() {
            let is_shared = line.starts_with("#![allow(dead_code,") && source.is_test();
            if line.contains("[allow(") && !is_shared {
                faults.push(format!("{}:{}: expect it instead", source.path, number + 1));
            }
        }
    }
    none(&faults);
}

#[test]
fn no_file_names_the_machine_it_was_written_on() {
    let mut faults = Vec::new();
    let is_ours = |path: &str| !path.starts_with("tests/data/") || path.ends_with("SOURCE.txt");
    for path in files("").into_iter().filter(|path| is_ours(path)) {
        // What is not text names nothing.
        let Ok(text) = fs::read_to_string(root().join(&path)) else { continue };
        for (number, line) in text.lines().enumerate() {
            for place in MACHINE_PATHS.iter().filter(|place| line.contains(**place)) {
                faults.push(format!("{path}:{}: {place}", number + 1));
            }
        }
    }
    none(&faults);
}

/// `actors.md` has a heading `## HostActor` for `HostMsg`, and under it one line for each message:
/// "- `Admit` …".
#[test]
fn actors_md_lists_every_message() {
    let written = messages_written(&read("actors.md"));
    let mut spoken = BTreeSet::new();
    for source in sources(&["src/protocol"]) {
        spoken.extend(messages_spoken(&source.code));
    }
    assert!(spoken.len() > 50, "the scan finds no messages: {spoken:?}");
    let missing = spoken.difference(&written).map(|m| format!("actors.md lacks {m}"));
    let extra = written.difference(&spoken).map(|m| format!("actors.md has {m}, protocol not"));
    none(&missing.chain(extra).collect::<Vec<String>>());
}

/// From one document to another, or to a folder; what is behind `#` is not looked at.
#[test]
fn links_between_documents_lead_somewhere() {
    let mut faults = Vec::new();
    let mut seen = 0;
    for path in documents() {
        let home = root().join(&path);
        let home = home.parent().unwrap();
        for link in links_written(&read(&path)) {
            let target = link.split('#').next().unwrap_or_default();
            seen += 1;
            if !target.is_empty() && !home.join(target).exists() {
                faults.push(format!("{path}: {link}"));
            }
        }
    }
    assert!(seen > 20, "the scan finds no links: {seen}");
    none(&faults);
}

/// A requirement has a row in `docs/requirements.md`, or nobody knows what its id asks for.
#[test]
fn every_id_of_a_requirement_is_explained() {
    let explained = read("docs/requirements.md");
    let mut faults = Vec::new();
    let mut seen = 0;
    for source in sources(&["src", "tests", "examples"]) {
        for (number, (line, code)) in source.text.lines().zip(source.code.lines()).enumerate() {
            let comment = line.trim_start().strip_prefix("//").filter(|_| code.trim().is_empty());
            for id in ids_cited(comment.unwrap_or_default()) {
                seen += 1;
                if !explained.contains(&format!("\n| {id} |")) {
                    faults.push(format!("{}:{}: {id}", source.path, number + 1));
                }
            }
        }
    }
    assert!(seen > 100, "the scan finds no ids: {seen}");
    none(&faults);
}

#[test]
fn the_scan_sees_links_and_ids() {
    let text = "[a](b.md) [c](https://d.test/) `[[e]]`\n```\n[f](g)\n```\n[h](i#j)";
    assert_eq!(links_written(text), ["b.md", "i#j"]);
    assert_eq!(ids_cited("/ F4: as asked (R1, H2); see U1 alone"), ["F4", "R1", "H2"]);
    assert!(ids_cited("! I8: 4 (I3). H-2: (S-1), (UTF8) (C1 controls)").is_empty());
}

#[test]
fn the_scan_sees_code_and_nothing_else() {
    let text = "let a = \"// no\"; // crate::cli\nlet b = 'x'; /* pg:: */ fn c<'a>() {}\n";
    let code = code_of(text);
    assert_eq!(code.lines().count(), 2);
    assert!(code.contains("let a =") && code.contains("fn c<'a>()"), "{code}");
    assert!(!code.contains("cli") && !code.contains("no") && !code.contains("pg"), "{code}");
    assert!(!code_of("r#\"say \"tokio\" \"#; '\\''; b\"rand\"").contains(['k', 'd']));
    let groups = "use crate::{types::{A, B}, world::C};\nlet d = crate::cli::run();";
    let source = Source::new("src/policy/a.rs".to_owned(), groups.to_owned());
    let used: Vec<String> = imports(&source).into_iter().map(|(_, used)| used).collect();
    assert_eq!(used, ["types", "world", "cli"]);
    let spoken = messages_spoken("pub enum HostMsg { A(X<B>), #[c] D { e: F }, G, } enum H { I }");
    assert_eq!(
        spoken.into_iter().collect::<Vec<_>>(),
        ["HostActor A", "HostActor D", "HostActor G"]
    );
}

fn none(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

fn documents() -> Vec<String> {
    let is_ours = |path: &String| path.ends_with(".md") && !path.starts_with("tests/data/");
    files("").into_iter().filter(is_ours).collect()
}

/// The targets of links that do not leave the repository; what stands between fences is no link.
fn links_written(text: &str) -> Vec<String> {
    let prose = text.split("```").step_by(2).collect::<String>();
    let targets = prose.split("](").skip(1).filter_map(|after| after.split(')').next());
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

/// Ids of requirements where a comment names them: at its beginning with a colon, or in brackets
/// with nothing else. Invariants (I1 to I8) have a table of their own.
fn ids_cited(comment: &str) -> Vec<&str> {
    let head = comment.trim_start_matches(['/', '!']).split_once(':').map_or("", |(head, _)| head);
    let inside = comment.split('(').skip(1).filter_map(|after| after.split_once(')'));
    let groups = std::iter::once(head).chain(inside.map(|(inside, _)| inside));
    let lists = groups.map(|group| group.split([',', '\u{2013}']).map(str::trim));
    let lists = lists.map(Iterator::collect::<Vec<&str>>);
    lists.filter(|list| list.iter().all(|word| is_id(word))).flatten().filter(is_required).collect()
}

fn is_id(word: &str) -> bool {
    let is_letter = |letter: char| "FRDHOPCTAUBSI".contains(letter);
    let number = word.strip_prefix(is_letter).unwrap_or_default();
    (1..3).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_required(id: &&str) -> bool {
    !id.starts_with('I')
}

fn height_of(module: &str) -> Option<usize> {
    LAYERS.iter().position(|row| row.contains(&module))
}

/// The first module of every path that begins at `crate`, with the number of its line.
fn imports(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, prefix) in source.code.match_indices("crate::") {
        let (before, after) = source.code.split_at(at);
        let line = before.matches('\n').count() + 1;
        let after = after.strip_prefix(prefix).unwrap();
        let names = match after.strip_prefix('{') {
            Some(group) => heads(group),
            None => vec![word_at(after)],
        };
        found.extend(names.into_iter().map(|name| (line, name)));
    }
    found
}

/// The first word of each part of a group, up to its closing brace.
fn heads(group: &str) -> Vec<String> {
    let mut heads = Vec::new();
    let (mut depth, mut is_head) = (0, true);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => is_head = true,
            letter if is_head && is_of_word(letter) => {
                heads.push(word_at(group.split_at(at).1));
                is_head = false;
            }
            _ => {}
        }
    }
    heads
}

/// "HostActor Admit" for each message under a heading of `actors.md`.
fn messages_written(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut actor = None;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            actor = heading.split_whitespace().next().filter(|name| name.ends_with("Actor"));
        }
        if let (Some(actor), Some(message)) = (actor, line.strip_prefix("- `")) {
            found.insert(format!("{actor} {}", word_at(message)));
        }
    }
    found
}

/// "HostActor Admit" for each variant of each mailbox.
fn messages_spoken(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("enum ") {
        let after = code.split_at(at).1.strip_prefix("enum ").unwrap();
        let name = word_at(after);
        let (Some(actor), Some((_, body))) = (name.strip_suffix("Msg"), after.split_once('{'))
        else {
            continue;
        };
        // What stands in brackets of any kind belongs to a variant, it names none.
        let (mut depth, mut flat) = (0, String::new());
        for letter in body.chars() {
            match letter {
                '{' | '(' | '[' => depth += 1,
                '}' if depth == 0 => break,
                '}' | ')' | ']' => depth -= 1,
                '#' => {}
                letter if depth == 0 => flat.push(letter),
                _ => {}
            }
        }
        let variants = flat.split(',').map(str::trim).filter(|variant| !variant.is_empty());
        found.extend(variants.map(|variant| format!("{actor}Actor {variant}")));
    }
    found
}
