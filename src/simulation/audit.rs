//! What is looked at when a run is over: the stores, the outputs and the archive against what the
//! sites saw.
//!
//! - I4, I5 A URL is known once, and each of its versions has one `fetched` event.
//! - I7 Every request had a grant that was durable before; every response that an event names can
//!   be read back.
//! - B6 Every fetched page is in the outputs exactly once.
//! - When all is done nothing waits: no lease, no page to be parsed, no URL without an end; and
//!   every link of every fetched page is known.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::sync::Arc;

use super::SimulationError;
use super::inside::key_of;
use super::ledger::Ledger;
use super::site::Site;
use super::world::Kept;
use crate::archive::ArchiveReader;
use crate::storage::{ShardStore, StoreError, StoreOptions};
use crate::types::{
    CrawlEvent, CrawlUrl, EventSeq, Happening, HostKey, Outcome, ShardId, Subject, Timestamp,
};
use crate::world::{Spool, World};

/// Rows asked for at a time.
const ROWS: usize = 10_000;
/// `fetch.max_redirects`.
const REDIRECTS_MAX: u8 = 5;
/// Memory of a store that is only read.
const STORE_BYTES: u64 = 16 << 20;

/// What lies in the stores and the outputs.
#[derive(Default)]
pub(super) struct Found {
    events: Vec<CrawlEvent>,
    /// The names of the events by shard and number.
    feeds: BTreeMap<ShardId, BTreeMap<EventSeq, String>>,
    known: Vec<String>,
    /// URLs that the rules refuse.
    sleeping: BTreeSet<String>,
    leases: usize,
    to_parse: usize,
    /// URLs that were tried too often.
    dead: BTreeSet<String>,
    /// Redirects that led to a URL in a row.
    redirects: BTreeMap<String, u8>,
    /// Hosts whose actor failed again and again (A1).
    parked: BTreeSet<HostKey>,
    ledger: Ledger,
    /// URL and version of each record of a page.
    pages: Vec<(String, u64)>,
    spool: Option<Arc<dyn Spool>>,
}

/// Reads everything, as the next owner of the shards.
pub(super) async fn collect(world: &World, shards: u16) -> Result<Found, SimulationError> {
    let mut found = Found { spool: Some(Arc::clone(&world.spool)), ..Found::default() };
    for shard in 0..shards {
        let store = ShardStore::open(StoreOptions {
            objects: world.objects.clone(),
            path: ShardId(shard).to_string(),
            clock: Arc::clone(&world.clock),
            seed: world.dice.throw(),
            memory_bytes_max: STORE_BYTES,
            cache: None,
            shard: ShardId(shard),
        })
        .await?;
        found.add(&store).await?;
    }
    found.pages = pages(world.spool.as_ref()).await;
    Ok(found)
}

impl Found {
    async fn add(&mut self, store: &ShardStore) -> Result<(), StoreError> {
        let mut after = EventSeq(0);
        let feed = self.feeds.entry(store.shard()).or_default();
        loop {
            let events = store.events(after, ROWS).await?;
            let Some((last, _)) = events.last() else { break };
            after = *last;
            feed.extend(events.iter().map(|(seq, event)| (*seq, key_of(event))));
            self.events.extend(events.into_iter().map(|(_, event)| event));
        }
        for (host, record, _) in store.hosts(None, ROWS).await? {
            if record.parked.is_some() {
                self.parked.insert(record.key);
            }
            for (_, record) in store.host_urls(host, None, ROWS).await? {
                self.redirects.insert(record.url.to_string(), record.redirects);
                self.known.push(record.url.to_string());
            }
            let sleepers = store.sleepers(host, None, ROWS).await?;
            self.sleeping.extend(sleepers.into_iter().map(|(entry, _)| entry.url.to_string()));
        }
        let dead = store.dead(None, ROWS).await?;
        self.dead.extend(dead.into_iter().map(|letter| letter.entry.url.to_string()));
        self.leases += store.open_leases().await?.len();
        self.to_parse += store.to_parse(None, ROWS).await?.len();
        let mut after = None;
        loop {
            let (entries, more) = store.ledger(Timestamp::EPOCH, after, ROWS).await?;
            for (_, row) in entries {
                self.ledger.add(store.shard(), row);
            }
            if more.is_none() {
                break;
            }
            after = more;
        }
        Ok(())
    }

    /// The last `fetched` event of each URL.
    fn outcomes(&self) -> BTreeMap<&str, Outcome> {
        let mut outcomes = BTreeMap::new();
        for event in &self.events {
            if let (Subject::Url { url, .. }, Happening::Fetched { outcome, .. }) =
                (&event.subject, &event.happening)
            {
                outcomes.insert(url.as_str(), *outcome);
            }
        }
        outcomes
    }
}

/// URL and version of each record in the outputs.
async fn pages(spool: &dyn Spool) -> Vec<(String, u64)> {
    let mut pages = Vec::new();
    for (name, size) in spool.list("pages").await.unwrap_or_default() {
        let content = spool.read(&name, 0, size).await.unwrap_or_default();
        for line in content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let record: serde_json::Value = serde_json::from_slice(line).unwrap_or_default();
            let url = record["url"].as_str().unwrap_or("not a record").to_owned();
            pages.push((url, record["version"].as_u64().unwrap_or(0)));
        }
    }
    pages
}

/// Compares what lies there with what the sites saw.
pub(super) async fn check(kept: &Kept, found: &Found, is_done: bool) {
    let violate = |what: &dyn Display| kept.history.violate(what);
    note(kept, found);
    for doubled in doubled(found.known.iter()) {
        violate(&format_args!("I4: known twice: {doubled}"));
    }
    for doubled in doubled(found.events.iter().map(key_of)) {
        violate(&format_args!("I5: two events: {doubled}"));
    }
    for doubled in doubled(found.pages.iter().map(|(url, version)| format!("{url} {version}"))) {
        violate(&format_args!("B6: twice in the outputs: {doubled}"));
    }
    for (shard, feed) in &found.feeds {
        kept.inside.compare(*shard, feed);
    }
    found.ledger.check(kept);
    check_archive(kept, found).await;
    if is_done {
        check_nothing_waits(kept, found);
        check_pages(kept, found);
        check_links(kept, found);
        check_redirects(kept, found);
    }
}

/// What was found belongs to the trace: the same seed leaves the same data.
fn note(kept: &Kept, found: &Found) {
    for event in &found.events {
        let happening = serde_json::to_string(&event.happening).unwrap_or_default();
        kept.history.note(format_args!("{} event {} {happening}", event.at, key_of(event)));
    }
    for (url, version) in &found.pages {
        kept.history.note(format_args!("page {url} {version}"));
    }
}

fn doubled<T: Ord>(items: impl Iterator<Item = T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    let mut doubled = Vec::new();
    for item in items {
        match seen.contains(&item) {
            true => doubled.push(item),
            false => drop(seen.insert(item)),
        }
    }
    doubled
}

/// I7: what an event names can be read back.
async fn check_archive(kept: &Kept, found: &Found) {
    let Some(spool) = &found.spool else { return };
    let reader = ArchiveReader::new(Arc::clone(spool));
    for event in &found.events {
        let Happening::Fetched { archive: Some(pointer), status, .. } = &event.happening else {
            continue;
        };
        match reader.read(pointer).await {
            Ok(stored) if Some(stored.status) == *status => {}
            Ok(stored) => {
                let (there, said) = (stored.status, status.unwrap_or(0));
                let key = key_of(event);
                kept.history.violate(format_args!("I7: {key}: {said} is stored as {there}"));
            }
            Err(error) => {
                let key = key_of(event);
                kept.history.violate(format_args!("I7: {key}: not in the archive: {error}"));
            }
        }
    }
}

fn check_nothing_waits(kept: &Kept, found: &Found) {
    if found.leases + found.to_parse > 0 {
        let (leases, pages) = (found.leases, found.to_parse);
        kept.history.violate(format_args!("left over: {leases} leases, {pages} pages to parse"));
    }
    let outcomes = found.outcomes();
    let has_end = |url: &String| match outcomes.get(url.as_str()) {
        Some(outcome) => !is_passing(*outcome) || found.dead.contains(url),
        None => found.dead.contains(url),
    };
    for url in found.known.iter().filter(|url| !has_end(url)) {
        let Ok(parsed) = CrawlUrl::parse(url) else { continue };
        let key = parsed.host_key();
        if found.parked.contains(&key) {
            continue;
        }
        let Some(site) = kept.web.site(&key).filter(|site| site.stays_reachable()) else {
            continue;
        };
        // A site that never said what may be asked for keeps its URLs waiting.
        let Some(rules) = kept.history.rules_served(&site.key) else { continue };
        if rules.allows(parsed.path_and_query()) {
            kept.history.violate(format_args!("{url} was never fetched nor given up"));
        } else if !found.sleeping.contains(url) {
            kept.history.violate(format_args!("R2: {url} is refused and does not sleep"));
        }
    }
}

/// F8: a failure that is tried again, and in the end is a dead letter.
fn is_passing(outcome: Outcome) -> bool {
    match outcome {
        Outcome::ServerError
        | Outcome::RateLimited
        | Outcome::Timeout
        | Outcome::Dns
        | Outcome::Connect
        | Outcome::Tls
        | Outcome::Protocol
        | Outcome::EgressRefused
        | Outcome::Cancelled => true,
        Outcome::Ok
        | Outcome::NotModified
        | Outcome::Redirect
        | Outcome::ClientError
        | Outcome::RobotsRefused
        | Outcome::Truncated
        | Outcome::TooLarge
        | Outcome::UnwantedType
        | Outcome::Decode => false,
    }
}

/// B6: a record for each page, and no other.
fn check_pages(kept: &Kept, found: &Found) {
    let written: BTreeSet<&str> = found.pages.iter().map(|(url, _)| url.as_str()).collect();
    let outcomes = found.outcomes();
    for (url, outcome) in &outcomes {
        match (*outcome == Outcome::Ok, written.contains(url)) {
            (true, false) => kept.history.violate(format_args!("B6: {url} has no record")),
            (false, true) => {
                kept.history.violate(format_args!("B6: {url} has a record, and was {outcome}"));
            }
            (true, true) | (false, false) => {}
        }
    }
    for url in written.iter().filter(|url| !outcomes.contains_key(**url)) {
        kept.history.violate(format_args!("I7: {url} has a record and no event"));
    }
}

/// Every link of a page that has a record is known; so is every seed.
fn check_links(kept: &Kept, found: &Found) {
    let known: BTreeSet<&str> = found.known.iter().map(String::as_str).collect();
    for seed in kept.web.seeds().iter().filter(|seed| !known.contains(seed.as_str())) {
        kept.history.violate(format_args!("F12: the seed {seed} is not known"));
    }
    for (url, _) in &found.pages {
        let Ok(page) = CrawlUrl::parse(url) else { continue };
        let site = kept.web.site(&page.host_key());
        let links = site.and_then(|site: &Site| site.links(page.path_and_query()));
        for link in links.unwrap_or_default() {
            let target = page.join(&link).map(|target| target.to_string()).unwrap_or_default();
            if !known.contains(target.as_str()) {
                kept.history.violate(format_args!("I7: {target}, a link of {url}, is not known"));
            }
        }
    }
}

/// H2: where a redirect leads is known, unless too many led there in a row.
fn check_redirects(kept: &Kept, found: &Found) {
    let known: BTreeSet<&str> = found.known.iter().map(String::as_str).collect();
    for (url, _) in found.outcomes().iter().filter(|(_, outcome)| **outcome == Outcome::Redirect) {
        let Ok(page) = CrawlUrl::parse(url) else { continue };
        let site = kept.web.site(&page.host_key());
        let target = site.and_then(|site| site.redirect(page.path_and_query()));
        let Some(Ok(target)) = target.map(|target| page.join(&target)) else { continue };
        let hops = found.redirects.get(*url).copied().unwrap_or(0);
        if hops < REDIRECTS_MAX && !known.contains(target.as_str()) {
            let target = target.as_str();
            kept.history.violate(format_args!("H2: {target}, where {url} leads, is not known"));
        }
    }
}
