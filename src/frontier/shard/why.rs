//! B1: what a shard knows of a URL: what it has in memory, and the rows of its store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::operators::find_url;
use super::state::Shard;
use crate::policy::address::literal;
use crate::policy::host::HostSettings;
use crate::policy::robots::{RobotsState, Verdict};
use crate::policy::why::{Facts, HostFacts, PLACES_LOOKED_AT, Place, SiteUsage, place};
use crate::policy::window::{BANDS, WindowRequest};
use crate::protocol::Answer;
use crate::storage::{ShardStore, StoreError};
use crate::types::{
    CrawlUrl, ExclusionRecord, HostId, HostRecord, LeaseId, Reason, Timestamp, UrlId, in_full,
};

/// What bears on a URL and stands in no store.
#[derive(Clone, Debug)]
pub struct InMemory {
    /// Now.
    pub now: Timestamp,
    /// The id of its host.
    pub host: HostId,
    /// The policy in force for it.
    pub settings: Arc<HostSettings>,
    /// That the address in the URL may not be connected to.
    pub egress: Option<Reason>,
    /// The exclusion that covers the URL.
    pub exclusion: Option<ExclusionRecord>,
    /// The host's row as its actor has it, where it has one.
    pub record: Option<HostRecord>,
    /// I3: when the shard was opened; a host at rest counts as just visited then.
    pub opened_at: Timestamp,
    /// What its actor waits for.
    pub waits_for: Option<Reason>,
    /// Leases of the host.
    pub leases: BTreeMap<UrlId, LeaseId>,
    /// What its domain says.
    pub domain: Option<Reason>,
    /// What holds the whole crawl.
    pub crawl: Option<Reason>,
}

impl Shard {
    /// Everything that bears on a URL, known or not.
    pub(super) fn why(&self, url: CrawlUrl, answer: Answer<Result<Box<Facts>, String>>) {
        let (key, now) = (url.host_key(), self.now());
        let host = self.host_id(&key);
        let resident = self.residents.get(&host).filter(|resident| resident.record.key == key);
        let departure = resident.map_or(now, |resident| resident.record.next_allowed_at.max(now));
        let granted = self.leases.values().filter(|granted| granted.host == host);
        let settings = self.settings();
        let memory = InMemory {
            now,
            host,
            settings: (settings.host)(&key),
            egress: literal(&url).and_then(|address| (settings.may_connect)(address).err()),
            exclusion: self.exclusions.find(&url, now).cloned(),
            record: resident.map(|resident| resident.record.clone()),
            opened_at: self.opened_at,
            waits_for: resident.and_then(|resident| resident.reason.clone()),
            leases: granted.map(|it| (it.lease.entry.id, it.lease.id)).collect(),
            domain: self.domains.refusal(key.domain(), departure),
            crawl: self.held(now),
        };
        let store = self.store.clone();
        tokio::spawn(async move {
            let facts = facts(&store, &url, memory).await;
            answer.send(facts.map(Box::new).map_err(|error| in_full(&error)));
        });
    }

    /// What holds every host, as operators are shown it; a crawl that stops keeps them as they are.
    pub(super) fn hosts_held(&self, now: Timestamp) -> Option<Reason> {
        self.held(now).filter(|reason| !matches!(reason, Reason::Stopping))
    }

    /// What holds the whole crawl.
    pub(super) fn held(&self, now: Timestamp) -> Option<Reason> {
        let paused = self.paused.then_some(Reason::Paused);
        let stopping = self.draining.then_some(Reason::Stopping);
        paused.or(stopping).or_else(|| self.quota.lock().refusal(now))
    }
}

/// What memory and store together say of a URL.
///
/// # Errors
/// The store cannot be read.
pub async fn facts(
    store: &ShardStore,
    url: &CrawlUrl,
    memory: InMemory,
) -> Result<Facts, StoreError> {
    let InMemory { now, host, settings, egress, exclusion, record, leases, domain, .. } = memory;
    let mut view = find_url(store, host, url).await?;
    if let Some(view) = &mut view {
        view.lease = leases.get(&view.id).copied();
    }
    let row = store.host(host).await?.map(|(mut record, _)| {
        record.visit_at(memory.opened_at);
        record
    });
    let row = record.or(row).filter(|record| record.key == url.host_key());
    let robots = match &row {
        Some(_) => store.robots(host).await?,
        None => None,
    };
    let product = settings.robots.product.as_str();
    let reservations = robots.as_ref().and_then(|row| row.reservations.clone());
    let robots =
        robots.map(|robots| RobotsState::from_record(&robots, product)).unwrap_or_default();
    let path = url.path_and_query();
    let place = match &view {
        Some(view) => place_of(store, view.id, &settings.bands, &leases).await?,
        None => None,
    };
    let configured = settings.politeness;
    let host = row.map(|record| HostFacts {
        budget: record.overrides.daily_pages.unwrap_or(configured.daily_pages),
        min_delay: record.overrides.min_delay.unwrap_or(configured.min_delay),
        record,
        domain,
        waits_for: memory.waits_for,
    });
    Ok(Facts {
        now,
        exclusion,
        egress,
        unreachable: robots.out_of_reach(),
        robots: robots.decide(now, path, &settings.robots),
        allowed_by: robots.rules().and_then(|rules| match rules.verdict(path) {
            Verdict::Allowed { rule, .. } => rule.map(str::to_owned),
            Verdict::Disallowed { .. } => None,
        }),
        view,
        host,
        place,
        crawl: memory.crawl,
        site: SiteUsage::read(url, &robots, reservations.as_deref(), product),
    })
}

/// The place of a URL in its host's queue; a bounded read.
async fn place_of(
    store: &ShardStore,
    id: UrlId,
    bands: &[u8; BANDS],
    leases: &BTreeMap<UrlId, LeaseId>,
) -> Result<Option<Place>, StoreError> {
    let request = WindowRequest::of_each(PLACES_LOOKED_AT);
    let rows = store.queue_windows(id.host, &request).await?;
    let granted: BTreeSet<UrlId> = leases.keys().copied().collect();
    Ok(place(id, rows, bands, &granted))
}
