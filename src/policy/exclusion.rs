//! R5: exclusions made at runtime. What one covers is asked for no more from the moment it is
//! made, until it ends or is lifted.
//!
//! - E-1 A rule has one id, made from the rule: the same rule again replaces the one before.
//! - E-2 A rule counts from when it is made to before its `until`, whoever has noticed its end.
//! - E-3 robots.txt belongs to its whole host: a rule for a part of the host leaves it alone,
//!   since the rest of the host needs it.
//! - E-4 An order to remove what is stored goes by the same rules, and by E-3: what a host's files
//!   say goes with the whole host only. It is done once, and outlives the exclusion, since entries
//!   of the queue may still know of content that is gone.
//!
//! Rules are looked up, never walked: names in hash maps, SURT prefixes by their lengths.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::normalise::url_hash;
use super::scope::{self, ScopeRule};
use super::surt;
use crate::types::{
    CrawlUrl, ExclusionRecord, HostKey, Lease, LeaseKind, PurgeRecord, Reason, Timestamp,
};

/// Exclusions that are kept at once.
pub const EXCLUSIONS_MAX: usize = 10_000;
/// Orders to remove what is stored that are kept at once, those that are done too.
pub const PURGES_MAX: usize = 10_000;

/// E-3: what is asked for because of the host, whatever page is wanted.
const OF_THE_HOST: [&str; 2] = ["/robots.txt", "/.well-known/tdmrep.json"];

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

/// Rules by what they name, each with the id that is made from it.
#[derive(Clone, Debug, Default)]
struct Rules {
    hosts: HashMap<Box<str>, String>,
    domains: HashMap<Box<str>, String>,
    surts: HashMap<Box<str>, String>,
    /// The lengths of the SURT prefixes, in bytes.
    lengths: BTreeSet<usize>,
}

impl Rules {
    fn insert(&mut self, rule: &str, id: &str) {
        let id = id.to_owned();
        match parse_rule(rule) {
            Ok(ScopeRule::Host(name)) => drop(self.hosts.insert(name.into(), id)),
            Ok(ScopeRule::Domain(name)) => drop(self.domains.insert(name.into(), id)),
            Ok(ScopeRule::Surt(prefix)) => {
                self.lengths.insert(prefix.len());
                self.surts.insert(prefix.into(), id);
            }
            Ok(ScopeRule::Regex(_)) | Err(_) => {}
        }
    }

    fn remove(&mut self, rule: &str) {
        match parse_rule(rule) {
            Ok(ScopeRule::Host(name)) => drop(self.hosts.remove(name.as_str())),
            Ok(ScopeRule::Domain(name)) => drop(self.domains.remove(name.as_str())),
            Ok(ScopeRule::Surt(prefix)) => drop(self.surts.remove(prefix.as_str())),
            Ok(ScopeRule::Regex(_)) | Err(_) => {}
        }
    }

    /// What `take` makes of the first rule that covers the URL and that it makes anything of.
    fn find<'r, T>(
        &'r self,
        url: &CrawlUrl,
        take: impl Fn(&'r String) -> Option<T> + Copy,
    ) -> Option<T> {
        let named = [scope::host_key(url), scope::site(url), scope::host(url)];
        let by_host = named.into_iter().filter_map(|name| self.hosts.get(name));
        let by_domain = parents(scope::host(url)).filter_map(|name| self.domains.get(name));
        by_host.chain(by_domain).find_map(take).or_else(|| self.by_surt(url, take))
    }

    fn by_surt<'r, T>(
        &'r self,
        url: &CrawlUrl,
        take: impl Fn(&'r String) -> Option<T> + Copy,
    ) -> Option<T> {
        if self.surts.is_empty() {
            return None;
        }
        surt::scope_forms(url).find_map(|form| {
            let prefixes = self.lengths.iter().map_while(|length| form.get(..*length));
            prefixes.filter_map(|prefix| self.surts.get(prefix)).find_map(take)
        })
    }
}

/// All exclusions, looked up together, and the orders to remove what is stored.
#[derive(Clone, Debug, Default)]
pub struct Exclusions {
    /// By id.
    records: BTreeMap<String, ExclusionRecord>,
    rules: Rules,
    /// Orders by the id of their exclusion; they outlive it.
    purges: BTreeMap<String, PurgeRecord>,
    purged: Rules,
}

impl Exclusions {
    /// Takes any number of them; one whose rule cannot be read is kept and covers nothing.
    pub fn new(records: impl IntoIterator<Item = ExclusionRecord>) -> Self {
        let mut all = Self::default();
        records.into_iter().for_each(|record| all.insert(record));
        all
    }

    fn insert(&mut self, record: ExclusionRecord) {
        self.rules.insert(&record.rule, &record.id);
        self.records.insert(record.id.clone(), record);
    }

    /// With one more, or in place of the one of the same id.
    #[must_use]
    pub fn with(&self, record: ExclusionRecord) -> Self {
        let mut all = self.clone();
        all.insert(record);
        all
    }

    /// With an order to remove what is stored, or with how far it is.
    #[must_use]
    pub fn with_purge(&self, order: PurgeRecord) -> Self {
        let mut all = self.clone();
        all.purged.insert(&order.rule, &order.id);
        all.purges.insert(order.id.clone(), order);
        all
    }

    /// E-1: as it counts when it is made: without words of its own it keeps those that the same
    /// rule has in force.
    #[must_use]
    pub fn renewed(&self, record: ExclusionRecord, now: Timestamp) -> ExclusionRecord {
        let before = self.counts(&record.id, now).and_then(|before| before.reason.clone());
        ExclusionRecord { reason: record.reason.clone().or(before), ..record }
    }

    /// Without this one. An order that went with it stays.
    #[must_use]
    pub fn without(&self, id: &str) -> Self {
        let mut all = self.clone();
        if let Some(record) = all.records.remove(id) {
            all.rules.remove(&record.rule);
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
        self.rules.find(url, |id| self.counts(id, now))
    }

    fn counts(&self, id: &str, now: Timestamp) -> Option<&ExclusionRecord> {
        self.records.get(id).filter(|record| is_in_force(record, now))
    }

    /// The order of the exclusion with this id.
    pub fn purge(&self, id: &str) -> Option<&PurgeRecord> {
        self.purges.get(id)
    }

    /// All orders by the id of their exclusion, those that are done as well.
    pub fn purges(&self) -> impl Iterator<Item = &PurgeRecord> {
        self.purges.values()
    }

    /// E-4: the order that is at work on what is stored of this URL: nothing of it may be added.
    pub fn purging(&self, url: &CrawlUrl) -> Option<&PurgeRecord> {
        self.ordered(url, |order| order.done_at.is_none())
    }

    /// E-4: an order covers this URL, done or not: what was known of its content before may be
    /// gone.
    pub fn forgets(&self, url: &CrawlUrl) -> bool {
        self.ordered(url, |_| true).is_some()
    }

    /// The order that is at work on all of a host.
    pub fn purging_host(&self, host: &HostKey) -> Option<&PurgeRecord> {
        if self.purges.is_empty() {
            return None;
        }
        self.purging(&root(host)?)
    }

    fn ordered(
        &self,
        url: &CrawlUrl,
        wanted: impl Fn(&PurgeRecord) -> bool + Copy,
    ) -> Option<&PurgeRecord> {
        if self.purges.is_empty() {
            return None;
        }
        let take = |id: &String| self.purges.get(id).filter(|order| wanted(order));
        if is_of_the_host(url) {
            self.purged.find(&root(&url.host_key())?, take)
        } else {
            self.purged.find(url, take)
        }
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

/// E-4: whether a rule covers what is stored of a URL.
pub fn covers_stored(rule: &ScopeRule, url: &CrawlUrl) -> bool {
    if is_of_the_host(url) {
        return root(&url.host_key()).is_some_and(|root| covers(rule, &root));
    }
    covers(rule, url)
}

/// Whether a rule covers a URL.
fn covers(rule: &ScopeRule, url: &CrawlUrl) -> bool {
    match rule {
        ScopeRule::Host(name) => {
            [scope::host_key(url), scope::site(url), scope::host(url)].contains(&name.as_str())
        }
        ScopeRule::Domain(name) => parents(scope::host(url)).any(|parent| parent == name),
        ScopeRule::Surt(prefix) => {
            surt::scope_forms(url).any(|form| form.starts_with(prefix.as_str()))
        }
        ScopeRule::Regex(_) => false,
    }
}

/// Whether a rule covers all of a host.
pub fn covers_host(rule: &ScopeRule, host: &HostKey) -> bool {
    root(host).is_some_and(|root| covers(rule, &root))
}

/// E-3: what belongs to its whole host, and not to a part of it.
fn is_of_the_host(url: &CrawlUrl) -> bool {
    OF_THE_HOST.contains(&url.path_and_query())
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
mod tests;
