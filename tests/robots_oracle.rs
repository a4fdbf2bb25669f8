//! R1: whole generated files and paths, judged by us and by the `robotstxt` crate.
//!
//! The crate is no oracle for everything; what the generators leave out is the list of where we
//! differ by design, each with its reason in `docs/robots-disagreements.md`:
//!
//! - wildcards but for one at the end: its matcher misses matches behind a `*`;
//! - escapes, and octets beyond ASCII: it compares them more literally than RFC 9309;
//! - a byte order mark, UTF-16, lines beyond 16 KiB: it loses or cuts what we read;
//! - lines that RFC 9309 does not define between `User-agent` lines and their rules: it ends the
//!   group there, which 2.2.4 forbids;
//! - keys that begin like a key (`Allowlist`): it takes them for the key;
//! - `Allow` of `index.htm`, which it takes for the folder as well.

use mehman::policy::robots::Rules;
use proptest::prelude::*;

/// Lines of a file, most of them of use.
fn line() -> impl Strategy<Value = String> {
    let key = |key: &'static str| {
        let spellings = vec![key.to_owned(), key.to_lowercase(), key.to_uppercase()];
        (prop::sample::select(spellings), " ?", " ?")
            .prop_map(|(key, a, b)| format!("{key}{a}:{b}"))
    };
    let agents = vec![
        "mehman",
        "MEHMAN",
        "mehman/2.0",
        "mehman bot",
        "Mehman*",
        "mehmaniac",
        "meh",
        "other",
        "other mehman",
        "*",
        "* x",
        "**",
        "m",
        "",
        "mehman-news",
        "mehman_x",
    ];
    let pattern = prop_oneof![
        8 => "/[ab/]{0,4}[*$]?",
        1 => "[ab]{0,2}",
        1 => Just(String::new()),
        1 => Just("/".to_owned()),
        1 => "/[ab?=&;,+]{0,5}",
    ];
    let silent = vec!["", "   ", "# disallow: /", "just some words", "<html>", "-"];
    let extension = vec![
        "Sitemap: http://h/s.xml",
        "Host: h",
        "Crawl-delay: 2",
        "Noindex: /a",
        "a:b:c",
        "Clean-param: a /b",
        "# none",
    ];
    prop_oneof![
        3 => (key("User-agent"), prop::sample::select(agents)).prop_map(|(k, v)| format!("{k}{v}")),
        5 => (key("Disallow"), pattern.clone()).prop_map(|(k, v)| format!("{k}{v}")),
        4 => (key("Allow"), pattern, "( # [a-z]{0,4})?").prop_map(|(k, v, c)| format!("{k}{v}{c}")),
        1 => prop::sample::select(extension).prop_map(|line| format!("Disallow:\n{line}")),
        2 => prop::sample::select(silent).prop_map(str::to_owned),
    ]
}

fn file() -> impl Strategy<Value = String> {
    let end = prop::sample::select(vec!["\n", "\r\n", "\r", "\n\n", " \n", "\t\r\n"]);
    let lines = prop::collection::vec((line(), end), 0..24);
    lines.prop_map(|lines| lines.into_iter().map(|(line, end)| line + end).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    #[test]
    fn files_are_read_and_judged_as_robotstxt_does(
        file in file(),
        paths in prop::collection::vec("/[ab/?=]{0,6}", 1..6),
        product in prop::sample::select(vec!["mehman", "Mehman", "other", "absent"]),
    ) {
        let rules = Rules::parse(&bytes::Bytes::from(file.clone()), product);
        for path in paths {
            let url = format!("http://h{path}");
            let theirs = robotstxt::DefaultMatcher::default()
                .one_agent_allowed_by_robots(&file, product, &url);
            prop_assert_eq!(rules.verdict(&path).is_allowed(), theirs, "{} {:?}", path, &file);
        }
    }
}
