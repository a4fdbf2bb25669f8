//! The simulated web: sites from a seed, and what they answer.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::draw::{below, draw};
use super::rules::SiteRules;
use super::site::{Addresses, RULES_OF, Robots, Site, private_address, public_address};
use crate::types::{CrawlUrl, Headers, HostKey, Timestamp};

/// What comes back, and after how long.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) reply: Reply,
    pub(super) took: Duration,
}

/// What comes back.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Reply {
    /// A response.
    Response { status: u16, headers: Headers, body: Bytes, rules: Option<SiteRules> },
    /// Nothing, ever.
    Silent,
    /// No connection.
    Refused,
}

impl Reply {
    /// A status and nothing else.
    pub(super) fn status(status: u16) -> Self {
        Self::Response { status, headers: Vec::new(), body: Bytes::new(), rules: None }
    }

    /// A page.
    pub(super) fn html(page: String) -> Self {
        let headers = vec![("content-type".to_owned(), Bytes::from_static(b"text/html"))];
        Self::Response { status: 200, headers, body: page.into(), rules: None }
    }

    /// A robots.txt.
    pub(super) fn rules(rules: &SiteRules) -> Self {
        let headers = vec![("content-type".to_owned(), Bytes::from_static(b"text/plain"))];
        let body = rules.text().into();
        Self::Response { status: 200, headers, body, rules: Some(rules.clone()) }
    }

    /// With one more header.
    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        if let Self::Response { headers, .. } = &mut self {
            headers.push((name.to_ascii_lowercase(), Bytes::from(value.to_owned())));
        }
        self
    }
}

/// The web.
#[derive(Debug)]
pub(super) struct Web {
    pub(super) start: Timestamp,
    sites: BTreeMap<HostKey, Site>,
    names: BTreeMap<String, HostKey>,
    seeds: Vec<String>,
}

impl Web {
    /// So many sites, known to the world from `start` on.
    pub(super) fn new(seed: u64, hosts: u16, start: Timestamp) -> Self {
        let hosts = u64::from(hosts.max(3));
        let keys: Vec<HostKey> = (0..hosts).filter_map(key).collect();
        let mut sites = BTreeMap::new();
        for (number, key) in (0..).zip(&keys) {
            sites.insert(key.clone(), site(seed, number, &keys, start));
        }
        let seeds = keys.iter().step_by(3).map(|key| format!("{key}/")).collect();
        let names = keys.iter().map(|key| (key.host().to_owned(), key.clone())).collect();
        Self { start, sites, names, seeds }
    }

    /// Where the crawl begins: every third site.
    pub(super) fn seeds(&self) -> &[String] {
        &self.seeds
    }

    /// The sites.
    pub(super) fn sites(&self) -> impl Iterator<Item = &Site> {
        self.sites.values()
    }

    /// A site.
    pub(super) fn site(&self, key: &HostKey) -> Option<&Site> {
        self.sites.get(key)
    }

    /// The site with this name.
    pub(super) fn named(&self, name: &str) -> Option<&Site> {
        self.site(self.names.get(name)?)
    }

    /// The site whose robots.txt a request is for; `None` for a page.
    pub(super) fn rules_of(&self, url: &CrawlUrl) -> Option<&Site> {
        let path = url.path_and_query();
        match path.strip_prefix(RULES_OF) {
            Some(name) => self.named(name),
            None if path == "/robots.txt" || path == "/rules/robots.txt" => {
                self.site(&url.host_key())
            }
            None => None,
        }
    }

    /// What is answered to a request that comes at this time.
    pub(super) fn answer(&self, url: &CrawlUrl, at: Timestamp) -> Answer {
        let path = url.path_and_query();
        let Some(site) = self.site(&url.host_key()) else {
            return Answer { reply: Reply::Refused, took: Duration::from_millis(1) };
        };
        match path.strip_prefix(RULES_OF).and_then(|name| self.named(name)) {
            Some(other) => Answer { reply: Reply::rules(&other.own_rules(at)), took: site.latency },
            None => site.answer(path, at),
        }
    }
}

/// Sites share domains by threes; every fifth speaks plain HTTP.
fn key(number: u64) -> Option<HostKey> {
    let scheme = if number % 5 == 4 { "http" } else { "https" };
    HostKey::parse(&format!("{scheme}://h{number}.d{}.example", number / 3))
}

fn site(seed: u64, number: u64, keys: &[HostKey], start: Timestamp) -> Site {
    let own = draw(seed, format_args!("site {number}"));
    let of = |what: &str, bound: u64| below(bound, own, what);
    let at = |index: u64| {
        let index = usize::try_from(index).unwrap_or(0) % keys.len();
        keys[index].clone()
    };
    let latency = match of("latency", 12) {
        // At times too slow for anybody.
        0 if number >= 3 => 8_000,
        1 | 2 => 2_500,
        3 | 4 => 700,
        _ => 15 + of("latency ms", 120),
    };
    let trouble = match of("trouble", 4) {
        0 => 0,
        1 => 150,
        _ => 40,
    };
    let pages = match (number % 11, latency) {
        (_, 8_000) => 3 + of("few pages", 4),
        (5, _) => 60,
        _ => 3 + of("pages", 18),
    };
    Site {
        key: at(number),
        seed: own,
        pages,
        latency: Duration::from_millis(latency),
        trouble: if number == 2 { 150 } else { trouble },
        addresses: addresses(number, own),
        robots: robots(number, own, at(number + 7), start),
        outage: outage(number, own, start),
        neighbours: vec![at(number + 1), at(number + 2), at(of("neighbour", 1_000))],
    }
}

/// One site in six has a bad time.
fn outage(number: u64, own: u64, start: Timestamp) -> Option<(Timestamp, Timestamp)> {
    let of = |what: &str, bound: u64| below(bound, own, what);
    if number < 3 || of("outage", 6) != 0 {
        return None;
    }
    let from = start + Duration::from_secs(60 + of("outage from", 1_200));
    Some((from, from + Duration::from_secs(20 + of("outage for", 900))))
}

/// The first three are well; so the smallest web has something to crawl.
fn addresses(number: u64, own: u64) -> Addresses {
    let public = public_address(below(40, own, "address"));
    let private = private_address(draw(own, "private"));
    match below(14, own, "addresses") {
        _ if number < 3 => Addresses::Public(public),
        0 => Addresses::Private(private),
        1 => Addresses::Mixed(public, private),
        2 => Addresses::Turning(public, private),
        3 => Addresses::Nothing,
        _ => Addresses::Public(public),
    }
}

/// The first three differ in what they ask for: a Crawl-delay, nothing, rules.
fn robots(number: u64, own: u64, other: HostKey, start: Timestamp) -> Robots {
    let later = |minutes: u64| start + Duration::from_secs(60 * minutes);
    let mut rules = SiteRules::refusing(&["/private"]);
    rules.allow.push("/private/open");
    if below(3, own, "crawl-delay") == 0 {
        rules.crawl_delay = Some(2 + below(9, own, "crawl-delay seconds"));
    }
    let until = later(2 + below(25, own, "robots until"));
    match (number, below(16, own, "robots")) {
        (3.., 14) => Robots::Vanishing(until, rules),
        (3.., 15) => Robots::Appearing(until, rules),
        (0, _) => Robots::Rules(SiteRules { crawl_delay: Some(3), ..rules }),
        (1, _) | (_, 0 | 1) => Robots::Missing,
        (2, _) | (_, 2..=4) => Robots::Rules(rules),
        (_, 5) => Robots::Forbidden,
        (_, 6) => Robots::DownUntil(until, rules),
        (_, 7) => Robots::SilentUntil(until, rules),
        (_, 8) => Robots::BusyUntil(until, rules),
        (_, 9 | 10) => {
            let mut before = rules.clone();
            before.disallow.push("/late");
            Robots::Changing(until, before, rules)
        }
        (_, 11) => Robots::DownFrom(until, rules),
        (_, 12) => Robots::Moved(rules),
        _ if below(8, own, "loop") == 0 => Robots::Loop,
        _ => Robots::Away(other, rules),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp::EPOCH;

    #[test]
    fn a_seed_makes_the_same_web_twice_and_another_seed_another_web() {
        let shown = |seed| format!("{:?}", Web::new(seed, 30, START));
        assert_eq!(shown(1), shown(1));
        assert_ne!(shown(1), shown(2));
        assert_eq!(Web::new(1, 30, START).sites().count(), 30);
    }

    #[test]
    fn many_webs_together_have_every_kind_of_robots_and_of_address() {
        let kind = |robots: &Robots| std::mem::discriminant(robots);
        let webs: Vec<Web> = (0..20).map(|seed| Web::new(seed, 30, START)).collect();
        let mut robots: Vec<_> =
            webs.iter().flat_map(|web| web.sites().map(|site| kind(&site.robots))).collect();
        robots.sort_by_key(|kind| format!("{kind:?}"));
        robots.dedup();
        assert_eq!(robots.len(), 13);
        let closed =
            webs.iter().flat_map(Web::sites).filter(|site| !site.stays_reachable()).count();
        assert!(closed > 20, "{closed}");
    }

    #[test]
    fn redirects_lead_along_chains_in_circles_and_to_other_sites() {
        let web = Web::new(3, 3, START);
        let site = web.sites().next().unwrap();
        let along = |path: &str| {
            let mut paths = vec![path.to_owned()];
            while let Some(next) = site.redirect(paths.last().unwrap()) {
                let seen = paths.contains(&next);
                paths.push(next);
                if seen {
                    break;
                }
            }
            paths
        };
        assert_eq!(along("/hops/2"), ["/hops/2", "/hops/1", "/hops/0", "/p/1"]);
        assert_eq!(along("/circle"), ["/circle", "/circle/back", "/circle"]);
        assert_eq!(along("/self"), ["/self", "/self"]);
        for path in ["/away", "/round"] {
            let target = CrawlUrl::parse(&site.redirect(path).unwrap()).unwrap();
            assert_ne!(target.host_key(), site.key);
        }
    }

    #[test]
    fn a_page_is_html_with_the_links_it_names() {
        let web = Web::new(3, 3, START);
        let site = web.sites().next().unwrap();
        let links = site.links("/").unwrap();
        assert!(links.iter().any(|link| link == "/p/1"), "{links:?}");
        assert_eq!(site.links("/p/99999"), None);
        let url = CrawlUrl::parse(&format!("{}/robots.txt", site.key)).unwrap();
        assert_eq!(web.rules_of(&url).map(|site| &site.key), Some(&site.key));
    }
}
