//! Rules as tables.

use super::*;
use crate::types::Timestamp;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_secs(seconds)
}

fn record(rule: &str, until: Option<i64>) -> ExclusionRecord {
    let rule = parse_rule(rule).unwrap();
    ExclusionRecord {
        id: id_of(&rule),
        rule: rule.to_string(),
        reason: None,
        until: until.map(at),
        made_at: at(0),
    }
}

fn url(text: &str) -> CrawlUrl {
    CrawlUrl::parse(text).unwrap()
}

fn host(text: &str) -> HostKey {
    HostKey::parse(text).unwrap()
}

fn of(rules: &[&str]) -> Exclusions {
    Exclusions::new(rules.iter().map(|rule| record(rule, None)))
}

#[test]
fn a_rule_covers_what_it_names_and_nothing_else() {
    for (rule, covered, free) in [
        ("host:a.test", "http://a.test:81/x", "http://b.a.test/"),
        ("host:A.Test", "https://a.test/", "https://aa.test/"),
        ("host:a.test:81", "https://a.test:81/", "https://a.test/"),
        ("host:https://a.test", "https://a.test/", "http://a.test/"),
        ("domain:a.test", "https://x.y.a.test/p?q", "https://ba.test/"),
        ("surt:test,a,", "https://b.a.test/", "https://ab.test/"),
        ("surt:test,a)/Private", "http://www.a.test/Private/x", "http://a.test/private"),
        ("surt:test,a,:81)/x", "http://a.test:81/xy", "http://a.test/xy"),
        ("host:127.0.0.1:9000", "http://127.0.0.1:9000/", "http://127.0.0.1:9001/"),
        ("surt:127.0.0.1,:9000)/a", "http://127.0.0.1:9000/a/b", "http://127.0.0.1:9000/b"),
    ] {
        let set = of(&[rule, "host:other.test"]);
        assert!(set.find(&url(covered), at(1)).is_some(), "{rule} covers {covered}");
        assert!(set.find(&url(free), at(1)).is_none(), "{rule} leaves {free}");
        assert!(
            touches(&parse_rule(rule).unwrap(), &url(covered).host_key()),
            "{rule} touches {covered}"
        );
    }
    assert!(!touches(&parse_rule("surt:test,a)/x").unwrap(), &host("http://b.test")));
    assert!(Exclusions::default().find(&url("http://a.test/"), at(1)).is_none());
}

#[test]
fn a_whole_host_is_covered_by_names_and_by_prefixes_above_its_paths() {
    for (rule, whole) in [
        ("host:a.test", true),
        ("domain:test", true),
        ("surt:test,a,", true),
        ("surt:test,a)", true),
        ("surt:test,a)/", true),
        ("surt:test,a)/x", false),
        ("surt:test,b,", false),
    ] {
        let found = of(&[rule]).whole_host(&host("https://a.test"), at(1)).is_some();
        assert_eq!(found, whole, "{rule}");
    }
    let part = parse_rule("surt:test,a)/x").unwrap();
    assert!(touches(&part, &host("https://a.test")));
}

#[test]
fn a_rule_counts_until_its_end_to_the_millisecond() {
    let set = Exclusions::new([record("host:a.test", Some(10)), record("host:b.test", None)]);
    let last = Timestamp::from_millis(9_999);
    assert!(set.find(&url("http://a.test/"), last).is_some());
    assert!(set.find(&url("http://a.test/"), at(10)).is_none());
    assert!(set.find(&url("http://b.test/"), at(10)).is_some());
    assert_eq!(set.next_end(), Some(at(10)));
    assert_eq!(set.ended(last), Vec::<String>::new());
    assert_eq!(set.ended(at(10)), [record("host:a.test", None).id]);
    assert_eq!(set.in_force(at(10)).count(), 1);
}

#[test]
fn a_longer_rule_still_counts_when_a_shorter_one_has_ended() {
    let set = Exclusions::new([
        record("surt:test,a)/", Some(5)),
        record("surt:test,a)/x", None),
        record("domain:test", Some(7)),
    ]);
    assert!(set.find(&url("http://a.test/x"), at(8)).is_some());
    assert!(set.find(&url("http://a.test/y"), at(6)).is_some());
    assert!(set.find(&url("http://a.test/y"), at(8)).is_none());
}

#[test]
fn the_same_rule_again_replaces_the_one_before() {
    let first = of(&["host:a.test"]);
    let again = first.with(record("host:A.test", Some(9)));
    assert_eq!(again.all().count(), 1);
    assert_eq!(again.next_end(), Some(at(9)));
    assert!(!first.is_lifted_for(&host("http://a.test"), &again));
    let lifted = again.without(&record("host:a.test", None).id);
    assert!(again.is_lifted_for(&host("http://a.test"), &lifted));
    assert!(!again.is_lifted_for(&host("http://b.test"), &lifted));
    assert_eq!(lifted.all().count(), 0);
}

#[test]
fn a_rule_made_again_without_words_keeps_those_in_force() {
    let worded = |reason: Option<&str>, until| ExclusionRecord {
        reason: reason.map(str::to_owned),
        ..record("host:a.test", until)
    };
    let before = |until| Exclusions::new([worded(Some("they wrote"), until)]);
    for (set, again, kept) in [
        (before(None), worded(None, Some(90)), Some("they wrote")),
        (before(Some(60)), worded(None, None), Some("they wrote")),
        (before(Some(50)), worded(None, None), None),
        (before(None), worded(Some("a court says so"), None), Some("a court says so")),
        (of(&["host:b.test"]), worded(None, None), None),
    ] {
        let made = set.renewed(again.clone(), at(50));
        assert_eq!(made.reason.as_deref(), kept, "{set:?}");
        assert_eq!((made.until, made.made_at), (again.until, again.made_at));
    }
}

#[test]
fn bad_rules_are_refused_with_what_would_do() {
    for (rule, said) in [
        ("regex:.*", "regular expression"),
        ("a.test", "begins with none of host:, domain: and surt:"),
        ("host:", "is not a host name"),
        ("host:http://", "is not scheme://host[:port]"),
        ("domain:a.test:80", "is not a host name"),
        ("surt:/x", "is not a SURT prefix"),
    ] {
        let why = parse_rule(rule).unwrap_err();
        assert!(why.contains(said), "{rule}: {why}");
    }
}

fn order(rule: &str, done: Option<i64>) -> PurgeRecord {
    let record = record(rule, None);
    PurgeRecord { done_at: done.map(at), ..PurgeRecord::new(record.id, record.rule, at(0)) }
}

#[test]
fn a_purge_goes_by_the_rule_and_takes_what_belongs_to_a_host_with_the_whole_host_only() {
    for (rule, stored, covered) in [
        ("host:a.test", "http://a.test/x", true),
        ("host:a.test", "http://a.test/robots.txt", true),
        ("host:a.test", "http://b.test/x", false),
        ("domain:a.test", "https://x.a.test/.well-known/tdmrep.json", true),
        ("surt:test,a)/", "http://a.test/robots.txt", true),
        ("surt:test,a)/x", "http://a.test/xy", true),
        ("surt:test,a)/x", "http://a.test/robots.txt", false),
        ("surt:test,a)/robots", "http://a.test/robots.txt", false),
        ("surt:test,a)/robots", "http://a.test/robots.txt.html", true),
        ("surt:test,a)/.well-known", "http://a.test/.well-known/tdmrep.json", false),
    ] {
        let all = Exclusions::default().with_purge(order(rule, None));
        assert_eq!(all.purging(&url(stored)).is_some(), covered, "{rule} and {stored}");
        let rule = parse_rule(rule).unwrap();
        assert_eq!(covers_stored(&rule, &url(stored)), covered, "{rule} alone and {stored}");
    }
}

#[test]
fn a_purge_that_is_done_adds_nothing_and_is_not_forgotten_with_its_exclusion() {
    let page = url("http://a.test/x");
    let ordered = of(&["host:a.test"]).with_purge(order("host:a.test", None));
    assert!(ordered.purging(&page).is_some() && ordered.forgets(&page));
    assert!(ordered.purging_host(&host("http://a.test")).is_some());
    let done = ordered.with_purge(order("host:a.test", Some(5)));
    assert!(done.purging(&page).is_none() && done.forgets(&page));
    let lifted = done.without(&record("host:a.test", None).id);
    assert!(lifted.find(&page, at(9)).is_none() && lifted.forgets(&page));
    assert!(!lifted.forgets(&url("http://b.test/x")));
    // A wider one that is at work counts, whatever a narrower one has done.
    let wider = done.with_purge(order("domain:test", None));
    assert!(wider.purging(&page).is_some());
}
