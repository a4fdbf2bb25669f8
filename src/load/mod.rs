//! The frontier and its store under load, with nothing around them: what a candidate link, a grant
//! and a start cost.
//!
//! In: how many URLs on how many hosts. Out: counts, to be set against the CPU time and the disk
//! space that [`Usage`] and [`Space`] read. Shards, hosts, address clocks and stores are those of a
//! node, on a real disk, with its settings; pages come from a formula, and exchanges, archive,
//! parsers and outputs answer at once. It judges nothing: `examples/frontier_load.rs` prints.

mod web;
mod standins;
mod usage;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::{StreamExt, stream};

pub use standins::Served;
pub use usage::{Space, Usage};
use web::Web;

use crate::cluster::SingleNode;
use crate::config::{Config, ConfigFaults};
use crate::node::{FrontierAlone, NodeError};
use crate::protocol::shard::{Admission, AdmitBatch, ShardView};
use crate::protocol::{Answer, ShardMsg, ask};
use crate::storage::{SledSnapshots, SnapshotsError};
use crate::types::HostCounts;
use crate::world::{Clock, MemorySpool, Objects, ObjectsError, SeededDice, TokioClock, World};

/// Pages whose links are admitted at once: as many as a node has under way.
const PAGES_UNDER_WAY: usize = 1024;

/// What is put on the frontier.
#[derive(Clone, Debug)]
pub struct LoadOptions {
    /// Where its data goes; nothing else may lie there.
    pub data: PathBuf,
    /// Hosts, each a registered domain with an address of its own.
    pub hosts: u64,
    /// Links of a page.
    pub links: u64,
    /// Configuration keys and values, over the defaults.
    pub set: Vec<(String, String)>,
}

/// The frontier cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// A key or value is wrong.
    #[error(transparent)]
    Config(#[from] ConfigFaults),
    /// The directory cannot be used.
    #[error(transparent)]
    Objects(#[from] ObjectsError),
    /// The snapshots cannot be opened.
    #[error(transparent)]
    Snapshots(#[from] SnapshotsError),
    /// The frontier does not start or stop.
    #[error(transparent)]
    Node(#[from] NodeError),
}

/// What became of candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Admitted {
    /// New ones, durable.
    pub added: u64,
    /// Known ones.
    pub known: u64,
    /// Refused ones, and those that nobody answered for.
    pub refused: u64,
}

/// A frontier under load.
pub struct Load {
    frontier: FrontierAlone,
    clock: Arc<dyn Clock>,
    snapshots: Arc<SledSnapshots>,
    web: Web,
}

impl Load {
    /// Opens the frontier of a data directory, made when it is not there.
    ///
    /// # Errors
    /// A wrong setting, or a directory that cannot be used.
    pub async fn open(options: &LoadOptions) -> Result<Self, LoadError> {
        let data = options.data.display().to_string();
        let own = [
            ("identity.contact_url", "https://example.org/bot"),
            ("data.dir", data.as_str()),
            // The stand-ins for the parsers take whatever comes.
            ("parse.workers", "1024"),
            // As in a crawl that ends.
            ("recrawl.enabled", "false"),
        ];
        let own = own.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let set: Vec<(String, String)> = own.into_iter().chain(options.set.clone()).collect();
        let config = Arc::new(Config::load(None, std::iter::empty(), &set)?);
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::system());
        let snapshots = Arc::new(SledSnapshots::open(&options.data.join("snapshots"))?);
        let web = Web::new(options.hosts, options.links);
        let world = World {
            dice: Arc::new(SeededDice::from_system()),
            exchange: Arc::new(standins::NoExchange),
            resolver: Arc::new(standins::Names(web)),
            snapshots: Arc::clone(&snapshots) as _,
            spool: Arc::new(MemorySpool::default()),
            objects: Objects::open_directory(&options.data.join("shards"))?,
            coordinator: Arc::new(SingleNode),
            clock: Arc::clone(&clock),
        };
        let frontier = FrontierAlone::start(config, world).await?;
        Ok(Self { frontier, clock, snapshots, web })
    }

    /// Time as the frontier sees it.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Grants nothing until it is let go on, over restarts too.
    pub async fn pause(&self, paused: bool) {
        for route in self.frontier.routes().all() {
            ask(&route.shard, |answer| ShardMsg::Pause(paused, answer)).await;
        }
    }

    /// Admits `count` URLs from `first` on, all of them new, by whole pages of links.
    pub async fn admit_new(&self, first: u64, count: u64) -> Admitted {
        let links = self.web.links();
        let pages = (first / links)..(first + count).div_ceil(links);
        self.admit(pages.map(move |page| Page { page, known: None })).await
    }

    /// Admits `pages` pages after the first `admitted` URLs; of their links nine in ten are known.
    pub async fn admit_mixed(&self, admitted: u64, pages: u64) -> Admitted {
        let links = self.web.links();
        let first = admitted / links;
        self.admit((first..first + pages).map(move |page| Page { page, known: Some(first) })).await
    }

    async fn admit(&self, pages: impl Iterator<Item = Page>) -> Admitted {
        let totals = [const { AtomicU64::new(0) }; 3];
        stream::iter(pages)
            .for_each_concurrent(PAGES_UNDER_WAY, |page| self.admit_page(page, &totals))
            .await;
        let [added, known, refused] = totals.map(AtomicU64::into_inner);
        Admitted { added, known, refused }
    }

    /// One batch for each shard that the page links to, as discovery sends them.
    async fn admit_page(&self, page: Page, totals: &[AtomicU64; 3]) {
        let routes = self.frontier.routes();
        let now = self.clock.now();
        let mut batches: Vec<Vec<_>> = routes.shards.iter().map(|_| Vec::new()).collect();
        for candidate in self.web.candidates(page.page, page.known, now) {
            let shard = routes.shard_of(&candidate.host);
            batches[usize::from(shard.0)].push(candidate);
        }
        let mut waiting = Vec::new();
        for (candidates, route) in batches.into_iter().zip(&routes.shards) {
            let Some(route) = route.as_ref().filter(|_| !candidates.is_empty()) else { continue };
            let (answer, answered) = Answer::channel();
            let batch = AdmitBatch { candidates, answer };
            // A shard that is gone drops the question, which counts as refused.
            route.shard.send_message(ShardMsg::Admit(batch)).ok();
            waiting.push(answered);
        }
        for answered in waiting {
            let results = answered.await.map_or_else(|_| Vec::new(), |answer| answer.results);
            for result in results {
                let total = match result {
                    Admission::Added => &totals[0],
                    Admission::Known => &totals[1],
                    Admission::Refused(_) => &totals[2],
                };
                total.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Makes the candidates of `pages` pages and drops them: what the load itself costs.
    pub fn make_only(&self, pages: u64) -> usize {
        let now = self.clock.now();
        let routes = self.frontier.routes();
        let made = (0..pages).flat_map(|page| self.web.candidates(page, None, now));
        made.filter(|candidate| usize::from(routes.shard_of(&candidate.host).0) < 1 << 15).count()
    }

    /// From here on every lease is answered at once, at its time, and every page is published.
    pub fn serve(&self, workers: usize) -> Served {
        standins::serve(&self.frontier, &self.clock, workers)
    }

    /// How each shard stands.
    pub async fn views(&self) -> Vec<ShardView> {
        self.frontier.views().await
    }

    /// All URLs, as the shards count them.
    pub async fn counts(&self) -> HostCounts {
        let mut total = HostCounts::default();
        for HostCounts { known, queued, deferred, sleeping, dead, seeds } in
            self.views().await.into_iter().map(|view| view.urls)
        {
            total.known += known;
            total.queued += queued;
            total.deferred += deferred;
            total.sleeping += sleeping;
            total.dead += dead;
            total.seeds += seeds;
        }
        total
    }

    /// Grants nothing any more, waits until nothing is in flight or to be parsed, and closes.
    ///
    /// # Errors
    /// A shard that did not close.
    pub async fn close(self) -> Result<(), LoadError> {
        self.frontier.drain();
        loop {
            let views = self.views().await;
            if views.iter().all(|view| view.in_flight + view.being_parsed == 0) {
                break;
            }
            self.clock.sleep(Duration::from_millis(100)).await;
        }
        self.frontier.close().await?;
        self.snapshots.flush()?;
        Ok(())
    }
}

/// One page of links.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// Its number; its links follow from it.
    page: u64,
    /// Where nine in ten of them are known: the pages that are.
    known: Option<u64>,
}

#[cfg(test)]
mod tests;
