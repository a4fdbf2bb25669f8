//! The data itself, read when no daemon has it: the same answers, from the rows.
//!
//! The directory is locked while it is read, so a daemon that starts meanwhile is told so.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;

use super::failure::WrongUse;
use crate::config::Config;
use crate::frontier::{InMemory, facts, is_paused, robots_view};
use crate::node;
use crate::policy::exclusion::Exclusions;
use crate::policy::normalise::{recognised, url_hash};
use crate::policy::placement;
use crate::policy::robots::RobotsState;
use crate::policy::why::{Judged, Why, explain, stored_page};
use crate::protocol::shard::{HostDetail, HostSummary};
use crate::protocol::{HostPhase, HostView};
use crate::storage::{DataDir, DirectoryError, MadeShards, ShardStore, StoreOptions};
use crate::types::{
    CrawlUrl, DeadLetter, HostCounts, HostId, HostKey, HostRecord, Reason, RobotsRecord, ShardId,
    Timestamp, UrlId, UrlView,
};
use crate::world::{Clock, Dice, Objects, SeededDice, TokioClock};

/// Rows read at a time.
const ROWS: usize = 1000;

/// What a store may hold in memory: it is read only.
const MEMORY_BYTES_MAX: u64 = 16 << 20;

/// Closing a store takes no longer.
const CLOSE_DEADLINE: Duration = Duration::from_secs(10);

/// A data directory that nobody else has.
pub(super) struct Offline {
    directory: DataDir,
    objects: Objects,
    shards: u16,
    clock: Arc<dyn Clock>,
    config: Config,
}

impl Offline {
    /// Locks the directory; it is not made where there is none.
    pub(super) async fn open(path: &Path, config: &Config) -> anyhow::Result<Self> {
        if !path.join("VERSION").is_file() {
            let told = format!("{} is not a data directory of mehman", path.display());
            return Err(WrongUse(told).into());
        }
        if let Some(store) = config.data.store.as_ref().filter(|url| !url.starts_with("file://")) {
            let told = format!("the shards are in {store}, which only its daemon may open; ask it");
            return Err(WrongUse(told).into());
        }
        let directory = DataDir::open(path).map_err(told)?;
        let objects = match &config.data.store {
            Some(url) => Objects::open(url)?,
            None => Objects::open_directory(&directory.shards())?,
        };
        MadeShards::check(directory.path(), config.data.store.as_deref(), &objects).await?;
        let root = match &config.data.store {
            Some(url) => url::Url::parse(url)?.to_file_path().unwrap_or_default(),
            None => directory.shards(),
        };
        let shards = count_shards(&root)?;
        let clock = Arc::new(TokioClock::system());
        Ok(Self { directory, objects, shards, clock, config: config.clone() })
    }

    /// Hosts in the order of shards and ids.
    pub(super) async fn hosts(
        &self,
        wanted: &HostWish<'_>,
        max: usize,
    ) -> anyhow::Result<Vec<(ShardId, HostId, HostSummary)>> {
        let mut found = Vec::new();
        for shard in self.shards() {
            let store = self.store(shard).await?;
            let above = Above::read(&store).await?;
            let mut after = None;
            loop {
                let rows = store.hosts(after, ROWS).await?;
                after = rows.last().map(|(id, ..)| *id);
                let exhausted = rows.len() < ROWS;
                let lines = rows
                    .into_iter()
                    .map(|(id, record, counts)| (shard, id, self.summary(&record, counts, &above)));
                let lines = lines.filter(|(_, _, line)| wanted.fits(line));
                found.extend(lines.take(max - found.len()));
                if exhausted || found.len() == max {
                    break;
                }
            }
            self.close(store).await;
            if found.len() == max {
                break;
            }
        }
        Ok(found)
    }

    /// One host by its key or its bare name.
    pub(super) async fn host(&self, text: &str) -> anyhow::Result<Option<HostDetail>> {
        for key in candidates(text) {
            if self.shards == 0 {
                return Ok(None);
            }
            let shard = placement::shard_of(key.domain(), usize::from(self.shards));
            let store = self.store(shard).await?;
            let row = store.host(key.id()).await?;
            let robots = store.robots(key.id()).await?;
            let above = Above::read(&store).await?;
            self.close(store).await;
            if let Some(row) = row {
                let line = self.summary(&row.0, row.1, &above);
                return Ok(Some(self.detail(shard, &row, line, robots.as_ref())));
            }
        }
        Ok(None)
    }

    /// What is known of a URL.
    pub(super) async fn url(&self, url: &CrawlUrl) -> anyhow::Result<Option<UrlView>> {
        if self.shards == 0 {
            return Ok(None);
        }
        let host = url.host_key();
        let store =
            self.store(placement::shard_of(host.domain(), usize::from(self.shards))).await?;
        let row = store.host(host.id()).await?.filter(|(record, _)| record.key == host);
        let above = Above::read(&store).await?;
        let held = row.and_then(|(record, counts)| self.summary(&record, counts, &above).reason);
        let form = recognised(url);
        let mut id = UrlId { host: host.id(), hash: url_hash(&form), disambiguator: 0 };
        let found = loop {
            match store.url(id).await? {
                None => break None,
                // Another URL may have the same hash; the record says whose it is (D2).
                Some(record) if recognised(&record.url) == form => {
                    let visit = store.visit(id).await?;
                    break Some(UrlView { id, record, visit, lease: None, held });
                }
                Some(_) => match id.disambiguator.checked_add(1) {
                    Some(next) => id.disambiguator = next,
                    None => break None,
                },
            }
        };
        self.close(store).await;
        Ok(found)
    }

    /// Why a URL was, will be or will not be fetched (B1), as far as rows tell.
    pub(super) async fn why(&self, url: &CrawlUrl) -> anyhow::Result<Why> {
        let host = url.host_key();
        let now = self.now();
        let owner = placement::shard_of(host.domain(), usize::from(self.shards.max(1)));
        let (mut seeded, mut found) = (BTreeSet::new(), None);
        for shard in self.shards() {
            let store = self.store(shard).await?;
            seeded.extend(store.seeded_hosts().await?);
            if shard == owner {
                let above = Above::read(&store).await?;
                let memory = InMemory {
                    now,
                    host: host.id(),
                    settings: node::host_settings(&self.config, &host),
                    egress: node::egress(&self.config, url),
                    exclusion: above.exclusions.find(url, now).cloned(),
                    record: None,
                    opened_at: Timestamp::EPOCH,
                    waits_for: None,
                    leases: BTreeMap::new(),
                    domain: None,
                    crawl: above.crawl,
                };
                found = Some(facts(&store, url, memory).await?);
            }
            self.close(store).await;
        }
        let facts = found.context("there is no shard that could know it")?;
        let depth = facts.view.as_ref().map_or(0, |view| view.record.depth);
        let judged = node::judged(&self.config, &seeded, url, depth)?;
        // Data remembers its seeds, not how they were to be followed.
        let by = format!("scope.mode {}, as configured now", self.config.scope.mode.as_str());
        let judged = Judged { scope_by: Some(by), ..judged };
        let page = match stored_page(&facts) {
            Some((pointer, fetched_at)) => {
                let clock = Arc::clone(&self.clock);
                let reader = node::page_reader(&self.config, self.directory.path(), clock)?;
                reader.asks(url, pointer, fetched_at).await.transpose()
            }
            None => None,
        };
        Ok(explain(url, &judged, &facts, page.as_ref()))
    }

    /// Dead letters in the order of shards and ids.
    pub(super) async fn dead(&self, max: usize) -> anyhow::Result<Vec<(ShardId, DeadLetter)>> {
        let mut found = Vec::new();
        for shard in self.shards() {
            let store = self.store(shard).await?;
            let mut after = None;
            while found.len() < max {
                let wanted = ROWS.min(max - found.len());
                let rows = store.dead(after, wanted).await?;
                after = rows.last().map(|letter| letter.entry.id);
                let exhausted = rows.len() < wanted;
                found.extend(rows.into_iter().map(|letter| (shard, letter)));
                if exhausted {
                    break;
                }
            }
            self.close(store).await;
        }
        Ok(found)
    }

    /// The time.
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    fn shards(&self) -> impl Iterator<Item = ShardId> + use<> {
        (0..self.shards).map(ShardId)
    }

    async fn store(&self, shard: ShardId) -> anyhow::Result<ShardStore> {
        let options = StoreOptions {
            objects: self.objects.clone(),
            path: shard.to_string(),
            clock: Arc::clone(&self.clock),
            seed: SeededDice::from_system().throw(),
            memory_bytes_max: MEMORY_BYTES_MAX,
            cache: None,
            shard,
        };
        ShardStore::open(options).await.with_context(|| format!("failed to open shard {shard}"))
    }

    /// Nothing was written that anybody waits for, so a late end is no failure.
    async fn close(&self, store: ShardStore) {
        if let Err(error) = store.close(CLOSE_DEADLINE).await {
            tracing::warn!(shard = %store.shard(), %error, "store not closed in order");
        }
    }

    /// How a host stands by its row and what stands above it.
    fn summary(&self, record: &HostRecord, counts: HostCounts, above: &Above) -> HostSummary {
        let now = self.now();
        let line = HostSummary::at_rest(record, counts, self.budget(record), now);
        line.held_by(above.crawl.as_ref()).excluded(&above.exclusions, now)
    }

    /// Requests a day.
    fn budget(&self, record: &HostRecord) -> u64 {
        let configured = || self.config.politeness.for_host(&record.key).host_daily_pages;
        record.overrides.daily_pages.unwrap_or_else(configured)
    }

    fn detail(
        &self,
        shard: ShardId,
        (record, counts): &(HostRecord, HostCounts),
        line: HostSummary,
        robots: Option<&RobotsRecord>,
    ) -> HostDetail {
        let product = self.config.identity.product.as_str();
        let robots = robots.map(|row| RobotsState::from_record(row, product)).unwrap_or_default();
        let view = HostView {
            host_key: record.key.clone(),
            state: line.state,
            reason: line.reason,
            next_allowed_at: line.next_allowed_at,
            delay_seconds: record.delay,
            delay_set_by: record.set_by,
            in_flight: 0,
            pages_today: line.pages_today,
            budget: self.budget(record),
            robots: robots_view(&robots),
            backoff: record.backoff,
            allowance: record.overrides.clone(),
            window: 0,
            epoch: 0,
        };
        HostDetail {
            view,
            queued: counts.queued,
            urls: *counts,
            resident: false,
            restarts: 0,
            shard,
            address: Vec::new(),
        }
    }
}

/// What a shard keeps that stands above its hosts.
struct Above {
    exclusions: Exclusions,
    /// An operator paused the crawl.
    crawl: Option<Reason>,
}

impl Above {
    async fn read(store: &ShardStore) -> anyhow::Result<Self> {
        let exclusions = Exclusions::new(store.exclusions().await?);
        let crawl = is_paused(store).await?.then_some(Reason::Paused);
        Ok(Self { exclusions, crawl })
    }
}

/// Which hosts are wanted.
pub(super) struct HostWish<'a> {
    /// In this state.
    pub(super) state: Option<&'a str>,
    /// Of this registered domain.
    pub(super) domain: Option<String>,
}

impl HostWish<'_> {
    fn fits(&self, line: &HostSummary) -> bool {
        self.state.is_none_or(|state| state == phase_name(line.state))
            && self.domain.as_ref().is_none_or(|domain| domain == line.host_key.domain())
    }
}

fn phase_name(phase: HostPhase) -> &'static str {
    match phase {
        HostPhase::Ready => "ready",
        HostPhase::InFlight => "in_flight",
        HostPhase::Waiting => "waiting",
        HostPhase::Parked => "parked",
        HostPhase::Idle => "idle",
    }
}

/// Why a directory cannot be read, and what would do where a process has it.
fn told(error: DirectoryError) -> anyhow::Error {
    if !matches!(error, DirectoryError::InUse { .. }) {
        return error.into();
    }
    anyhow::anyhow!(
        "{error}, which serves no admin interface to ask instead; `crawl` serves one with \
         --admin-listen 127.0.0.1:0"
    )
}

/// The shards that stand under a directory: `0` to `n - 1`.
fn count_shards(root: &Path) -> anyhow::Result<u16> {
    let mut shards = 0;
    let failed = || format!("failed to read {}", root.display());
    for entry in std::fs::read_dir(root).with_context(failed)? {
        let name = entry.with_context(failed)?.file_name();
        let number = name.to_str().and_then(|name| name.parse::<u16>().ok());
        shards = shards.max(number.map_or(0, |number| number.saturating_add(1)));
    }
    Ok(shards)
}

/// The keys that a text may mean, in the order in which they are tried.
fn candidates(text: &str) -> Vec<HostKey> {
    if text.contains("://") {
        return HostKey::parse(text).into_iter().collect();
    }
    let schemes = ["https", "http"].into_iter();
    schemes.filter_map(|scheme| HostKey::parse(&format!("{scheme}://{text}"))).collect()
}
