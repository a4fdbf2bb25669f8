//! R5: exclusions made at runtime. What one covers is asked for no more from the moment it is made,
//! until it ends or is lifted.
//!
//! - E-1 A rule has one id, made from the rule: the same rule again replaces the one before.
//! - E-2 A rule counts from when it is made to before its `until`, whoever has noticed its end.
//! - E-3 robots.txt belongs to its whole host: a rule for a part of the host leaves it alone, since
//!   the rest of the host needs it.
//!
//! Rules are looked up, never walked: names in hash maps, SURT prefixes by their lengths.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::normalise::url_hash;
use super::scope::{self, ScopeRule};
use super::surt;
use crate::types::{CrawlUrl, ExclusionRecord, HostKey, Lease, LeaseKind, Reason, Timestamp};

/// Exclusions that are kept at once.
pub const EXCLUSIONS_MAX: usize = 10_000;

/// Reads the rule of an exclusion.
///
/// # Errors
/// One sentence on what is wrong with it.
pub fn parse_rule(text: &str) -> Result<ScopeRule, String> {
    match text.split_once(':').map(|(kind, _)| kind) {
        Some("host" | "domain" | "surt") => ScopeRule::parse(text),
        Some("regex") => Err(format!(
            "`{text}` is a regular expression; an exclusion names hosts (host:), domains (domain:) \
             or SURT prefixes (surt:)"
        )),
        Some(_) | None => Err(format!("`{text}` begins with none of host:, domain: and surt:")),
    }
}

/// E-1: the id of a rule: 16 hex digits.
pub fn id_of(rule: &ScopeRule) -> String {
    format!("{:016x}", url_hash(&rule.to_string()))
}

/// All exclusions, looked up together.
#[derive(Clone, Debug, Default)]
pub struct Exclusions {
    /// By id.
    records: BTreeMap<String, ExclusionRecord>,
    hosts: HashMap<Box<str>, String>,
    domains: HashMap<Box<str>, String>,
    surts: HashMap<Box<str>, String>,
    /// The lengths of the SURT prefixes, in bytes.
    lengths: BTreeSet<usize>,
}

impl Exclusions {
    /// Takes any number of them; one whose rule cannot be read is kept and covers nothing.
    pub fn new(records: impl IntoIterator<Item = ExclusionRecord>) -> Self {
        let mut all = Self::default();
        records.into_iter().for_each(|record| all.insert(record));
        all
    }

    fn insert(&mut self, record: ExclusionRecord) {
        let id = record.id.clone();
        match parse_rule(&record.rule) {
            Ok(ScopeRule::Host(name)) => drop(self.hosts.insert(name.into(), id.clone())),
            Ok(ScopeRule::Domain(name)) => drop(self.domains.insert(name.into(), id.clone())),
            Ok(ScopeRule::Surt(prefix)) => {
                self.lengths.insert(prefix.len());
                self.surts.insert(prefix.into(), id.clone());
            }
            Ok(ScopeRule::Regex(_)) | Err(_) => {}
        }
        self.records.insert(id, record);
    }

    /// With one more, or in place of the one of the same id.
    #[must_use]
    pub fn with(&self, record: ExclusionRecord) -> Self {
        let mut all = self.clone();
        all.insert(record);
        all
    }

    /// Without this one.
    #[must_use]
    pub fn without(&self, id: &str) -> Self {
        let mut all = self.clone();
        match all.records.remove(id).map(|record| parse_rule(&record.rule)) {
            Some(Ok(ScopeRule::Host(name))) => drop(all.hosts.remove(name.as_str())),
            Some(Ok(ScopeRule::Domain(name))) => drop(all.domains.remove(name.as_str())),
            Some(Ok(ScopeRule::Surt(prefix))) => drop(all.surts.remove(prefix.as_str())),
            Some(Ok(ScopeRule::Regex(_)) | Err(_)) | None => {}
        }
        all
    }

    /// One by its id.
    pub fn get(&self, id: &str) -> Option<&ExclusionRecord> {
        self.records.get(id)
    }

    /// All by id, those that have ended as well.
    pub fn all(&self) -> impl Iterator<Item = &ExclusionRecord> {
        self.records.values()
    }

    /// Those that count at `now`, by id.
    pub fn in_force(&self, now: Timestamp) -> impl Iterator<Item = &ExclusionRecord> {
        self.records.values().filter(move |record| is_in_force(record, now))
    }

    /// The exclusion that covers this URL.
    pub fn find(&self, url: &CrawlUrl, now: Timestamp) -> Option<&ExclusionRecord> {
        if self.records.is_empty() {
            return None;
        }
        let named = [scope::host_key(url), scope::site(url), scope::host(url)];
        let by_host = named.into_iter().filter_map(|name| self.hosts.get(name));
        let by_domain = parents(scope::host(url)).filter_map(|name| self.domains.get(name));
        let by_name = by_host.chain(by_domain).find_map(|id| self.counts(id, now));
        by_name.or_else(|| self.by_surt(url, now))
    }

    fn by_surt(&self, url: &CrawlUrl, now: Timestamp) -> Option<&ExclusionRecord> {
        if self.surts.is_empty() {
            return None;
        }
        surt::scope_forms(url).find_map(|form| {
            let prefixes = self.lengths.iter().map_while(|length| form.get(..*length));
            let found = prefixes.filter_map(|prefix| self.surts.get(prefix));
            found.filter_map(|id| self.counts(id, now)).next()
        })
    }

    fn counts(&self, id: &str, now: Timestamp) -> Option<&ExclusionRecord> {
        self.records.get(id).filter(|record| is_in_force(record, now))
    }

    /// The exclusion that covers all of a host.
    pub fn whole_host(&self, host: &HostKey, now: Timestamp) -> Option<&ExclusionRecord> {
        if self.records.is_empty() {
            return None;
        }
        // Whatever covers the root covers all below it: SURT rules are prefixes.
        self.find(&root(host)?, now)
    }

    /// Why a lease must not be sent, or go on.
    pub fn refuses(&self, lease: &Lease, now: Timestamp) -> Option<Reason> {
        let found = match &lease.kind {
            LeaseKind::Page => self.find(&lease.entry.url, now),
            LeaseKind::Robots { .. } => self.whole_host(&lease.host, now),
        };
        found.map(reason)
    }

    /// When the next one ends.
    pub fn next_end(&self) -> Option<Timestamp> {
        self.records.values().filter_map(|record| record.until).min()
    }

    /// Those that have ended.
    pub fn ended(&self, now: Timestamp) -> Vec<String> {
        let ended = self.records.values().filter(|record| !is_in_force(record, now));
        ended.map(|record| record.id.clone()).collect()
    }

    /// Whether `later` lacks a rule of these that touches the host.
    pub fn is_lifted_for(&self, host: &HostKey, later: &Self) -> bool {
        let mut gone = self.records.values().filter(|it| !later.records.contains_key(&it.id));
        gone.any(|record| parse_rule(&record.rule).is_ok_and(|rule| touches(&rule, host)))
    }
}

/// The reason of what an exclusion covers.
pub fn reason(record: &ExclusionRecord) -> Reason {
    Reason::Excluded { id: record.id.clone() }
}

/// Whether a rule may cover a URL of this host.
pub fn touches(rule: &ScopeRule, host: &HostKey) -> bool {
    let Some(root) = root(host) else { return false };
    let named = [scope::host_key(&root), scope::site(&root), scope::host(&root)];
    match rule {
        ScopeRule::Host(name) => named.contains(&name.as_str()),
        ScopeRule::Domain(name) => parents(scope::host(&root)).any(|parent| parent == name),
        ScopeRule::Surt(prefix) => surt::scope_forms(&root)
            .any(|form| form.starts_with(prefix) || prefix.starts_with(form.trim_end_matches('/'))),
        ScopeRule::Regex(_) => false,
    }
}

/// E-2.
fn is_in_force(record: &ExclusionRecord, now: Timestamp) -> bool {
    record.until.is_none_or(|until| now < until)
}

fn root(host: &HostKey) -> Option<CrawlUrl> {
    CrawlUrl::parse(&format!("{host}/")).ok()
}

/// A name and those above it.
fn parents(name: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(name), |name| name.split_once('.').map(|(_, above)| above))
}

#[cfg(test)]
mod tests {
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
}
