//! Whether a URL becomes a candidate, and where it will stand in its host's queue.

use super::settings::DiscoverySettings;
use super::steps::{LISTS_MAX, Steps};
use crate::policy::normalise;
use crate::policy::scope::Scope;
use crate::policy::traps::trap;
use crate::protocol::discovery::{FoundLink, Seed};
use crate::protocol::shard::Candidate;
use crate::types::{CrawlUrl, HostKey, LinkKind, Reason, Timestamp, ToParse, UrlRecord};

/// Bands of seeds by their priority: the first for 0.75 and more, the last below 0.25.
const SEED_BAND: u8 = 0;
/// Where every host has its rules.
const ROBOTS_PATH: &str = "/robots.txt";
/// A sitemap is no seed: what it redirects to does not widen the scope.
const SITEMAP_DEPTH: u16 = 1;
/// The last band.
const LAST_BAND: u8 = 3;

/// F3: the band of a link, by its distance from a seed.
fn band_of_depth(depth: u16) -> u8 {
    match depth {
        0 => SEED_BAND,
        1 => 1,
        2 | 3 => 2,
        _ => LAST_BAND,
    }
}

/// The band of a seed, by the value its operator gave it.
fn band_of_priority(priority: Option<f32>) -> u8 {
    match priority {
        None => SEED_BAND,
        Some(value) if value >= 0.75 => SEED_BAND,
        Some(value) if value >= 0.5 => 1,
        Some(value) if value >= 0.25 => 2,
        Some(_) => LAST_BAND,
    }
}

/// The place in a band: nearer pages first, and among them those found first.
fn order(depth: u16, at: Timestamp) -> u64 {
    let millis = u64::try_from(at.as_millis()).unwrap_or(0) & ((1 << 48) - 1);
    u64::from(depth) << 48 | millis
}

/// Judges a seed. Scope does not bind it: it widens the scope.
pub(super) fn seed(
    seed: &Seed,
    scope: &mut Scope,
    settings: &DiscoverySettings,
    now: Timestamp,
) -> Result<Candidate, Reason> {
    let url = CrawlUrl::parse(&seed.url)?;
    scope.add_seed(&url);
    let depth = seed.depth.unwrap_or(0);
    scope.judge(&url, depth)?;
    refuse_trap(&url, settings)?;
    let record = UrlRecord {
        depth,
        band: band_of_priority(seed.priority),
        order: order(depth, now),
        redirects: 0,
        discovered_from: None,
        discovered_at: now,
        url,
    };
    Ok(candidate(record, true))
}

/// R3: judges a Sitemap line of a host's robots.txt. The host that names it must belong to the
/// crawl. The file may lie on another host of the same domain; elsewhere only as far as the scope
/// goes, so that no robots.txt can send the crawler to others.
pub(super) fn sitemap(
    line: &str,
    host: &HostKey,
    scope: &mut Scope,
    settings: &DiscoverySettings,
    now: Timestamp,
) -> Result<Candidate, Reason> {
    let robots = CrawlUrl::parse(&format!("{host}{ROBOTS_PATH}"))?;
    let url = robots.join(line)?;
    scope.judge(&robots, SITEMAP_DEPTH)?;
    match scope.judge(&url, SITEMAP_DEPTH) {
        Err(Reason::OutOfScope { .. }) if url.host_key().domain() == host.domain() => {}
        judged => judged?,
    }
    refuse_trap(&url, settings)?;
    let record = UrlRecord {
        url,
        depth: SITEMAP_DEPTH,
        band: band_of_depth(SITEMAP_DEPTH),
        order: order(SITEMAP_DEPTH, now),
        redirects: 0,
        discovered_from: Some(robots),
        discovered_at: now,
    };
    Ok(candidate(record, false))
}

/// P3: an entry is of the sitemap's own host, or of the host whose robots.txt names the sitemap.
fn is_own_entry(entry: &CrawlUrl, sitemap: &ToParse) -> bool {
    let name = |url: &CrawlUrl| {
        let key = url.host_key();
        key.host().strip_prefix("www.").unwrap_or(key.host()).to_owned()
    };
    let named_by = sitemap.discovered_from.as_ref();
    let named_by = named_by.filter(|from| from.path_and_query() == ROBOTS_PATH);
    let entry = name(entry);
    entry == name(&sitemap.url) || named_by.is_some_and(|from| entry == name(from))
}

/// Judges a link of a page.
pub(super) fn link(
    link: FoundLink,
    page: &ToParse,
    scope: &mut Scope,
    settings: &DiscoverySettings,
    now: Timestamp,
) -> Result<Candidate, Reason> {
    if !settings.follow.contains(&link.kind) {
        return Err(Reason::LinkKind);
    }
    if link.nofollow {
        return Err(Reason::NoFollow);
    }
    // H2: a redirect is no step deeper, but one more in its chain.
    let came = Steps::of(page.redirects);
    let (depth, steps) = match link.kind {
        LinkKind::Redirect => (page.depth, came.redirected()),
        LinkKind::A
        | LinkKind::Area
        | LinkKind::Frame
        | LinkKind::Iframe
        | LinkKind::MetaRefresh
        | LinkKind::LinkRel
        | LinkKind::LinkResource
        | LinkKind::Image
        | LinkKind::Script
        | LinkKind::Media
        | LinkKind::Form
        | LinkKind::Cite
        | LinkKind::Feed => (page.depth.saturating_add(1), Steps::default()),
        // An index and its sitemaps are one list: what they name is one step away, no more.
        LinkKind::Sitemap => (page.depth.max(SITEMAP_DEPTH), came.listed()),
    };
    if link.kind == LinkKind::Sitemap && !is_own_entry(&link.url, page) {
        return Err(Reason::ForeignEntry);
    }
    if steps.lists > LISTS_MAX {
        return Err(Reason::NestedSitemaps { max: LISTS_MAX });
    }
    if steps.redirects > settings.max_redirects {
        return Err(Reason::TooManyRedirects { max: settings.max_redirects });
    }
    // A seed that redirects has moved: where it leads belongs to the crawl like the seed itself.
    let is_seed = page.depth == 0 && link.kind == LinkKind::Redirect;
    if is_seed {
        scope.add_seed(&link.url);
    }
    scope.judge(&link.url, depth)?;
    refuse_trap(&link.url, settings)?;
    let record = UrlRecord {
        url: link.url,
        depth,
        band: band_of_depth(depth),
        order: order(depth, now),
        redirects: steps.byte(),
        discovered_from: Some(page.url.clone()),
        discovered_at: now,
    };
    Ok(candidate(record, is_seed))
}

fn refuse_trap(url: &CrawlUrl, settings: &DiscoverySettings) -> Result<(), Reason> {
    trap(url, &settings.traps).map_or(Ok(()), Err)
}

fn candidate(record: UrlRecord, is_seed: bool) -> Candidate {
    let hash = normalise::url_hash(&normalise::recognised(&record.url));
    Candidate { host: record.url.host_key(), hash, record, is_seed }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use super::*;
    use crate::policy::scope::{ScopeMode, ScopeSettings};
    use crate::types::{ArchivePointer, HostId, UrlId, UrlVersion};

    mod chains;

    fn settings() -> DiscoverySettings {
        DiscoverySettings {
            scope: ScopeSettings {
                mode: ScopeMode::Host,
                include: Arc::default(),
                exclude: Arc::default(),
                max_depth: 3,
                max_url_length: 200,
            },
            traps: crate::policy::traps::TrapSettings::default(),
            follow: BTreeSet::from([LinkKind::A, LinkKind::Redirect]),
            max_redirects: 5,
        }
    }

    fn page(depth: u16, redirects: u8) -> ToParse {
        ToParse {
            id: UrlId { host: HostId(1), hash: 1, disambiguator: 0 },
            version: UrlVersion(1),
            url: CrawlUrl::parse("http://a.test/").unwrap(),
            depth,
            redirects,
            status: 200,
            fetched_at: Timestamp::EPOCH,
            archive: ArchivePointer { file: "a".into(), offset: 0, length: 1 },
            discovered_from: None,
            reason: None,
            attempts: 0,
            usage: Vec::new(),
        }
    }

    fn scope(settings: &DiscoverySettings) -> Scope {
        let seeds = [CrawlUrl::parse("http://a.test/").unwrap()];
        Scope::new(settings.scope.clone(), &seeds)
    }

    fn found(target: &str, kind: LinkKind, nofollow: bool) -> FoundLink {
        FoundLink { url: CrawlUrl::parse(target).unwrap(), kind, nofollow }
    }

    fn judge(target: &str, kind: LinkKind, nofollow: bool, page: &ToParse) -> Result<u16, Reason> {
        let settings = settings();
        let mut scope = scope(&settings);
        let found = found(target, kind, nofollow);
        let judged = link(found, page, &mut scope, &settings, Timestamp::EPOCH);
        judged.map(|candidate| candidate.record.depth)
    }

    #[test]
    fn links_go_one_deeper_and_redirects_do_not() {
        assert_eq!(judge("http://a.test/b", LinkKind::A, false, &page(1, 0)), Ok(2));
        assert_eq!(judge("http://a.test/b", LinkKind::Redirect, false, &page(1, 0)), Ok(1));
    }

    #[test]
    fn every_refusal_says_why() {
        let why = |target, kind, nofollow, page: &ToParse| {
            judge(target, kind, nofollow, page).unwrap_err()
        };
        let here = page(1, 0);
        assert_eq!(why("http://a.test/i.png", LinkKind::Image, false, &here), Reason::LinkKind);
        assert_eq!(why("http://a.test/b", LinkKind::A, true, &here), Reason::NoFollow);
        assert!(matches!(
            why("http://b.test/", LinkKind::A, false, &here),
            Reason::OutOfScope { .. }
        ));
        assert!(matches!(
            why("http://a.test/b", LinkKind::A, false, &page(3, 0)),
            Reason::TooDeep { depth: 4, max: 3 }
        ));
        assert_eq!(
            why("http://a.test/b", LinkKind::Redirect, false, &page(0, 5)),
            Reason::TooManyRedirects { max: 5 }
        );
    }

    #[test]
    fn a_sitemap_line_counts_where_its_host_belongs_to_the_crawl() {
        let settings = settings();
        let host = HostKey::parse("http://a.test").unwrap();
        let judge = |line: &str, host: &HostKey| {
            let mut scope = scope(&settings);
            sitemap(line, host, &mut scope, &settings, Timestamp::EPOCH)
        };
        for line in ["http://a.test/map.xml", "/map.xml", "https://cdn.a.test/map.xml.gz"] {
            let found = judge(line, &host).unwrap();
            assert_eq!((found.record.depth, found.is_seed), (1, false));
            let from = found.record.discovered_from.unwrap();
            assert_eq!(from.as_str(), "http://a.test/robots.txt");
        }
        let other = HostKey::parse("http://b.test").unwrap();
        assert!(matches!(judge("/map.xml", &other), Err(Reason::OutOfScope { .. })));
        let elsewhere = judge("https://victim.test/map.xml", &host);
        assert!(matches!(elsewhere, Err(Reason::OutOfScope { .. })), "{elsewhere:?}");
        let mut by_address = scope(&settings);
        by_address.add_seed(&CrawlUrl::parse("http://127.0.0.5/").unwrap());
        let other = HostKey::parse("http://127.0.0.5").unwrap();
        let line = "http://127.0.0.1:9000/x";
        let judged = sitemap(line, &other, &mut by_address, &settings, Timestamp::EPOCH);
        assert!(matches!(judged, Err(Reason::OutOfScope { .. })), "{judged:?}");
        let long = judge(&format!("/{}.xml", "m".repeat(300)), &host);
        assert!(matches!(long, Err(Reason::TooLong { .. })), "{long:?}");
        assert!(judge("ftp://a.test/map.xml", &host).is_err());
    }

    #[test]
    fn a_sitemap_names_its_own_host_and_the_host_that_names_it() {
        let mut settings = settings();
        settings.follow = BTreeSet::from([LinkKind::Sitemap, LinkKind::Feed]);
        let mut scope = scope(&settings);
        scope.add_seed(&CrawlUrl::parse("http://b.test/").unwrap());
        let mut map = page(1, 0);
        let mut judge = |target: &str, kind, map: &ToParse| {
            link(found(target, kind, false), map, &mut scope, &settings, Timestamp::EPOCH)
                .map(|candidate| candidate.record.depth)
        };
        for own in ["http://a.test/1", "https://www.a.test/1"] {
            let judged = judge(own, LinkKind::Sitemap, &map);
            assert!(!matches!(judged, Err(Reason::ForeignEntry)), "{own}");
        }
        assert_eq!(judge("http://a.test/1", LinkKind::Sitemap, &map), Ok(1), "one step away");
        assert_eq!(judge("http://b.test/1", LinkKind::Sitemap, &map), Err(Reason::ForeignEntry));
        assert_eq!(judge("http://b.test/1", LinkKind::Feed, &map), Ok(2), "a feed may link");
        map.discovered_from = Some(CrawlUrl::parse("http://b.test/robots.txt").unwrap());
        assert_eq!(judge("http://b.test/1", LinkKind::Sitemap, &map), Ok(1));
        map.discovered_from = Some(CrawlUrl::parse("http://b.test/page").unwrap());
        assert_eq!(judge("http://b.test/1", LinkKind::Sitemap, &map), Err(Reason::ForeignEntry));
    }

    #[test]
    fn nearer_pages_stand_before_deeper_ones() {
        assert!(order(1, Timestamp::from_secs(9)) < order(2, Timestamp::from_secs(1)));
        assert!(order(1, Timestamp::from_secs(1)) < order(1, Timestamp::from_secs(2)));
        assert_eq!(band_of_priority(Some(0.1)), LAST_BAND);
        assert_eq!(band_of_depth(9), LAST_BAND);
    }
}
