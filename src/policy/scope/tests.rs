//! Modes, rules and their order.

use super::*;

fn url(text: &str) -> CrawlUrl {
    CrawlUrl::parse(text).unwrap()
}

fn rules(texts: &[&str]) -> Vec<ScopeRule> {
    texts.iter().map(|text| ScopeRule::parse(text).unwrap()).collect()
}

fn scope(mode: ScopeMode, include: &[&str], exclude: &[&str]) -> Scope {
    let settings = ScopeSettings {
        mode,
        include: Arc::new(RuleSet::new(rules(include)).unwrap()),
        exclude: Arc::new(RuleSet::new(rules(exclude)).unwrap()),
        ..ScopeSettings::default()
    };
    Scope::new(settings, [&url("https://www.example.co.uk/start?a=%7e")])
}

fn takes(scope: &Scope, text: &str) -> bool {
    scope.judge(&url(text), 1).is_ok()
}

#[test]
fn each_mode_takes_in_what_it_says() {
    for (text, host, domain, seeds) in [
        ("https://www.example.co.uk/start?a=~", true, true, true),
        ("https://www.example.co.uk/", true, true, false),
        ("http://www.example.co.uk/", true, true, false),
        ("https://www.example.co.uk./", true, true, false),
        ("https://www.example.co.uk:8443/", false, true, false),
        ("https://example.co.uk/", false, true, false),
        ("https://other.co.uk/", false, false, false),
        ("https://notexample.co.uk/", false, false, false),
    ] {
        assert_eq!(takes(&scope(ScopeMode::Host, &[], &[]), text), host, "host {text}");
        assert_eq!(takes(&scope(ScopeMode::Domain, &[], &[]), text), domain, "domain {text}");
        assert_eq!(takes(&scope(ScopeMode::Seeds, &[], &[]), text), seeds, "seeds {text}");
        assert!(takes(&scope(ScopeMode::Any, &[], &[]), text));
    }
}

#[test]
fn seeds_widen_the_scope_at_runtime() {
    let mut scope = scope(ScopeMode::Host, &[], &[]);
    assert!(!takes(&scope, "http://late.org/x"));
    scope.add_seed(&url("http://late.org/"));
    assert!(takes(&scope, "http://late.org/x"));
}

#[test]
fn inclusions_add_and_exclusions_win() {
    let include = ["domain:example.org", "surt:net,example)/a", "regex:/news/\\d+$", "host:h.net"];
    let exclude = ["surt:org,example,)/private", "regex:logout"];
    let scope = scope(ScopeMode::Domain, &include, &exclude);
    for text in [
        "http://example.org/",
        "http://a.b.example.org:81/",
        "http://example.net/abc",
        "http://any.where/news/12",
        "https://h.net:8443/",
        "https://example.co.uk/",
    ] {
        assert!(takes(&scope, text), "{text}");
    }
    for text in [
        "http://example.org/private/x",
        "http://example.org/logout",
        "http://myexample.org/",
        "http://example.net/b",
        "http://any.where/news/12x",
        "http://www.h.net/",
    ] {
        assert!(!takes(&scope, text), "{text}");
    }
}

#[test]
fn every_refusal_says_which_rule_it_was() {
    let scope = scope(ScopeMode::Host, &[], &["domain:Bad.Example."]);
    let why = |text: &str, depth| scope.judge(&url(text), depth).unwrap_err();
    assert_eq!(
        why("http://x.bad.example/", 0),
        Reason::ExcludedByScope { rule: "domain:bad.example".to_owned() }
    );
    assert_eq!(why("https://www.example.co.uk/", 21), Reason::TooDeep { depth: 21, max: 20 });
    let long = format!("https://www.example.co.uk/{}", "x".repeat(2000));
    assert_eq!(why(&long, 0), Reason::TooLong { length: 2026, max: 2000 });
    assert!(matches!(why("http://else.where/", 0), Reason::OutOfScope { .. }));
}

#[test]
fn rules_are_read_into_the_form_that_urls_have() {
    for (text, shown) in [
        ("domain:*.Example.COM", "domain:example.com"),
        ("domain:1.2.3", "domain:1.2.0.3"),
        ("domain:xn--bcher-kva.example", "domain:xn--bcher-kva.example"),
        ("domain:a1.b-c.example", "domain:a1.b-c.example"),
        ("domain:bücher.example", "domain:xn--bcher-kva.example"),
        ("host:EXAMPLE.com:80", "host:example.com"),
        ("host:example.com:443", "host:example.com"),
        ("host:example.com:8080", "host:example.com:8080"),
        ("host:https://Example.com:443", "host:https://example.com"),
        ("host:[::1]:8080", "host:[::1]:8080"),
        ("surt:http://(com,example,", "surt:com,example,"),
        ("regex:^https?://a:b", "regex:^https?://a:b"),
    ] {
        let rule = ScopeRule::parse(text).unwrap();
        assert_eq!(rule.to_string(), shown);
        assert_eq!(ScopeRule::parse(shown), Ok(rule));
    }
    for text in [
        "example.com",
        "",
        "domain:",
        "domain:a.b:80",
        "domain:a/b",
        "host:a b",
        "host:a.0x1f",
        "domain:a.1",
        "host:ftp://a.b",
        "host:http://a.b/c",
        "regex:(",
        "surt:",
        "file:x",
    ] {
        assert!(ScopeRule::parse(text).is_err(), "{text}");
    }
}

#[test]
fn a_host_rule_with_scheme_means_that_host_key_only() {
    let set = RuleSet::new(rules(&["host:https://example.com", "host:b.org:8080"])).unwrap();
    for (text, found) in [
        ("https://example.com/x", true),
        ("http://example.com/x", false),
        ("http://b.org:8080/", true),
        ("http://b.org/", false),
    ] {
        assert_eq!(set.find(&url(text)).is_some(), found, "{text}");
    }
}

#[test]
fn long_lists_are_looked_up() {
    let many = (0..100_000).flat_map(|n| {
        [ScopeRule::Domain(format!("d{n}.example")), ScopeRule::Surt(format!("com,s{n},"))]
    });
    let set = RuleSet::new(many).unwrap();
    for n in (0..100_000).step_by(7) {
        assert!(set.find(&url(&format!("http://a.d{n}.example/"))).is_some());
        assert!(set.find(&url(&format!("http://a.s{n}.com/"))).is_some());
        assert!(set.find(&url(&format!("http://a.x{n}.com/"))).is_none());
    }
}

#[test]
fn what_is_wrong_with_a_regular_expression_is_one_line_with_its_place() {
    for (pattern, said) in [
        ("(", "unclosed group, at its character 1"),
        ("a/b[", "unclosed character class, at its character 4"),
        ("é*{", "unclosed counted repetition, at its character 3"),
        ("x{2000000000}", "size limit"),
        ("a\n(", "unclosed group"),
    ] {
        let Err(why) = ScopeRule::parse(&format!("regex:{pattern}")) else {
            panic!("{pattern} is taken");
        };
        let cause = why.split_once("expression: ").unwrap().1;
        assert!(cause.contains(said) && !cause.contains('\n'), "{pattern}: {why}");
    }
}
