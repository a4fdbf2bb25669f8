//! Keys as the replay tools make them, and prefixes as operators write them.

use std::path::PathBuf;

use super::*;

fn url(text: &str) -> CrawlUrl {
    CrawlUrl::parse(text).unwrap()
}

#[test]
fn keys_are_those_of_the_replay_tools() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/urls/surt_vectors.json");
    let cases: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let cases = cases.as_array().unwrap();
    for case in cases {
        let input = case["input"].as_str().unwrap();
        assert_eq!(surt_key(&url(input)), case["expected"].as_str().unwrap(), "{input}");
    }
    assert!(cases.len() > 800, "{}", cases.len());
}

#[test]
fn addresses_and_ports_have_keys_too() {
    for (text, key) in [
        ("https://[2600:1f18::150a]/robots.txt", "2600:1f18::150a)/robots.txt"),
        ("http://[::1]:8080/x", "::1:8080)/x"),
        ("http://127.0.0.1:8080/", "1,0,0,127:8080)/"),
        ("http://localhost/", "localhost)/"),
        ("https://...foo...bar.org.../", "org,bar,,foo)/"),
    ] {
        assert_eq!(surt_key(&url(text)), key);
    }
}

fn finds(rule: &str, text: &str) -> bool {
    SurtPrefixes::new(vec![parse_prefix(rule).unwrap().into()]).find(&url(text)).is_some()
}

#[test]
fn prefixes_match_between_labels_and_within_paths() {
    for (rule, text, expected) in [
        ("http://(com,example,", "http://example.com/", true),
        ("http://(com,example,", "https://a.b.example.com:8080/x", true),
        ("http://(com,example,", "http://examples.com/", false),
        ("com,example", "http://examples.com/", false),
        ("com,example", "http://sub.example.com/", true),
        ("com,example)", "http://sub.example.com/", false),
        ("com,example)/", "http://www.example.com/", true),
        ("com,example,www)/", "http://www.example.com/", true),
        ("com,example,www)/", "http://example.com/", false),
        ("http://(com,example,)/Path/", "http://example.com/Path/", true),
        ("http://(com,example,)/Path/", "http://example.com/path/x", false),
        ("com,example)/a?b", "http://example.com/a?b=c", true),
        ("COM,Example,:8080)/", "http://example.com:8080/", true),
        ("com,example:8080)/", "http://example.com:8080/", true),
        ("com,example)/", "http://example.com:8080/", false),
        ("127.0.0.1:8080)/", "http://127.0.0.1:8080/x", true),
        ("http://([::1]:8080)/", "http://[::1]:8080/x", true),
        ("[::1])/", "http://[::1]/x", true),
        ("com,", "http://example.com/", true),
    ] {
        assert_eq!(finds(rule, text), expected, "{rule} {text}");
    }
    for rule in ["", "http://", ")/x", "example.com/path", "http://example.com/"] {
        assert!(parse_prefix(rule).is_err(), "{rule}");
    }
}

#[test]
fn prefixes_that_can_match_nothing_are_refused() {
    for (rule, said) in [
        ("example.org", "in reverse order"),
        ("example.org)/private", "in reverse order"),
        (",", "in reverse order"),
        ("org,example)private", "a path, which begins with `/`"),
        ("org,example)?q", "a path, which begins with `/`"),
        ("org,example,:http)/", "the number of a port"),
        ("org,example,:70000)/", "the number of a port"),
        ("xx", "no name is known to end in `xx`, so `domain:xx` is meant?"),
        ("xx,", "no name is known to end in `xx`"),
        ("", "is not a SURT prefix"),
        ("org example", "is not a SURT prefix"),
    ] {
        let why = parse_prefix(rule).unwrap_err();
        assert!(why.contains(said), "{rule}: {why}");
    }
    for (rule, text) in [
        ("org", "http://a.org/"),
        ("uk,co", "http://a.co.uk/"),
        ("xx)/", "http://xx/"),
        ("xx:8080", "http://xx:8080/"),
        ("xx,a", "http://a.xx/"),
        ("10.0.0.1", "http://10.0.0.1/x"),
    ] {
        assert!(finds(rule, text), "{rule}");
    }
}

#[test]
fn of_nested_prefixes_the_shortest_is_kept() {
    let rules = ["com,example)/a/b", "com,example)/a", "com,example)/ab", "org,"];
    let rules = rules.map(|rule| parse_prefix(rule).unwrap().into()).to_vec();
    let prefixes = SurtPrefixes::new(rules);
    assert_eq!(prefixes.prefixes, ["com,example,)/a", "org,"].map(Box::from));
    assert_eq!(prefixes.find(&url("http://example.com/a/b/c")), Some("com,example,)/a"));
    assert_eq!(prefixes.find(&url("http://example.net/")), None);
}
