//! What the actors of a node are made from: kept by the root, so that each can be made again.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::error::NodeError;
use super::memory::MemoryPlan;
use super::settings;
use crate::archive::ArchiveReader;
use crate::config::Config;
use crate::discovery::DiscoverySettings;
use crate::fetch::FetchSettings;
use crate::frontier::{FrontierSettings, SharedQuota};
use crate::parse::ParseSettings;
use crate::policy::exclusion::Exclusions;
use crate::policy::quota::Quota;
use crate::protocol::{Credit, FetchJob, ParseJob, Routes};
use crate::storage::{BlockCache, block_cache};
use crate::telemetry::Metrics;
use crate::types::ExclusionRecord;
use crate::world::{Records, World};

/// Pages between parser and output at once.
const PAGES_UNDER_WAY: u32 = 1024;
/// Pages that wait for a parser in the channel, for each parser: some seconds of work. What does
/// not fit is read back from the archive, which costs more than to wait here.
const PAGES_PER_PARSER: usize = 512;

/// A channel whose both ends outlive the actors at them.
#[derive(Clone, Debug)]
pub(super) struct Channel<T> {
    pub(super) sender: async_channel::Sender<T>,
    pub(super) receiver: async_channel::Receiver<T>,
}

impl<T> Channel<T> {
    fn new(bound: usize) -> Self {
        let (sender, receiver) = async_channel::bounded(bound.max(1));
        Self { sender, receiver }
    }

    /// Whatever is sent comes out at the tap, and only what the tap passes on is received.
    pub(super) fn tap(&mut self, tap: Tap<T>) {
        let (passed, receiver) = async_channel::bounded(1);
        tap(std::mem::replace(&mut self.receiver, receiver), passed);
    }
}

/// Takes what one side sends, and passes it on to the other.
pub(crate) type Tap<T> =
    Box<dyn FnOnce(async_channel::Receiver<T>, async_channel::Sender<T>) + Send>;

/// What stands between the shards and the workers of a node, for a simulation.
pub(crate) struct Taps {
    /// Between shards and fetchers.
    pub(crate) fetch: Tap<FetchJob>,
    /// Between shards and parsers.
    pub(crate) parse: Tap<ParseJob>,
}

/// The newest settings of each stage.
#[derive(Debug)]
pub(super) struct SettingsWatch {
    pub(super) frontier: watch::Sender<Arc<FrontierSettings>>,
    pub(super) discovery: watch::Sender<Arc<DiscoverySettings>>,
    pub(super) fetch: watch::Sender<Arc<FetchSettings>>,
    pub(super) parse: watch::Sender<Arc<ParseSettings>>,
}

impl SettingsWatch {
    fn new(config: &Config, memory: &MemoryPlan) -> Result<Self, NodeError> {
        Ok(Self {
            frontier: watch::Sender::new(Arc::new(settings::frontier(config, memory))),
            discovery: watch::Sender::new(Arc::new(settings::discovery(config)?)),
            fetch: watch::Sender::new(Arc::new(settings::fetch(config))),
            parse: watch::Sender::new(Arc::new(settings::parse(config)?)),
        })
    }

    /// Other settings from here on; nothing changes where one of them is wrong.
    pub(super) fn replace(&self, config: &Config, memory: &MemoryPlan) -> Result<(), NodeError> {
        let discovery = Arc::new(settings::discovery(config)?);
        let parse = Arc::new(settings::parse(config)?);
        self.discovery.send_replace(discovery);
        self.parse.send_replace(parse);
        self.frontier.send_replace(Arc::new(settings::frontier(config, memory)));
        self.fetch.send_replace(Arc::new(settings::fetch(config)));
        Ok(())
    }
}

/// Everything that outlives the actors.
pub(super) struct Plan {
    config: Mutex<Arc<Config>>,
    stopping: AtomicBool,
    draining: AtomicBool,
    /// `None` until somebody says so: then the stores know.
    paused: Mutex<Option<bool>>,
    /// R5: those of the node, once its stores have said which they are.
    exclusions: watch::Sender<Arc<Exclusions>>,
    exclusions_known: AtomicBool,
    /// Held while a purge is at work on files: one that its actor left behind ends before the
    /// next begins.
    pub(super) purge_turn: tokio::sync::Mutex<()>,
    pub(super) world: World,
    pub(super) metrics: Arc<Metrics>,
    pub(super) memory: MemoryPlan,
    pub(super) settings: SettingsWatch,
    pub(super) routes: watch::Sender<Arc<Routes>>,
    pub(super) quota: SharedQuota,
    pub(super) fetch_jobs: Channel<FetchJob>,
    pub(super) parse_jobs: Channel<ParseJob>,
    pub(super) bodies: Credit,
    pub(super) pages: Credit,
    pub(super) records: Arc<dyn Records>,
    /// None where the objects are in memory anyway.
    pub(super) cache: Option<BlockCache>,
}

impl Plan {
    /// Plans a node; everything that can be wrong with the configuration shows here.
    pub(super) fn new(config: Arc<Config>, world: World) -> Result<Self, NodeError> {
        settings::archive(&config)?;
        settings::outputs(&config)?;
        let memory = MemoryPlan::of(&config);
        let settings = SettingsWatch::new(&config, &memory)?;
        let credit = settings.frontier.borrow().credit * usize::from(config.frontier.shards);
        let kilobytes = u32::try_from(memory.bodies / 1024).unwrap_or(u32::MAX);
        Ok(Self {
            quota: SharedQuota::new(Quota::new(settings::quota(&config), 0)),
            fetch_jobs: Channel::new(credit),
            parse_jobs: Channel::new(parsers(&config) * PAGES_PER_PARSER),
            bodies: Credit::new(kilobytes),
            pages: Credit::new(PAGES_UNDER_WAY),
            records: Arc::new(ArchiveReader::new(Arc::clone(&world.spool))),
            cache: (!world.objects.is_in_memory()).then(|| block_cache(memory.block_cache)),
            routes: watch::Sender::new(Arc::new(Routes::default())),
            memory,
            settings,
            world,
            metrics: Arc::new(Metrics::new()),
            stopping: AtomicBool::new(false),
            draining: AtomicBool::new(false),
            paused: Mutex::new(None),
            exclusions: watch::Sender::new(Arc::default()),
            exclusions_known: AtomicBool::new(false),
            purge_turn: tokio::sync::Mutex::default(),
            config: Mutex::new(config),
        })
    }

    /// What a body takes of the credit for bodies at least, in KiB: a full credit is a full channel
    /// to the parsers, so whoever fetches waits before pages have to be read back.
    pub(super) fn body_place_kib(&self) -> u32 {
        let places = self.parse_jobs.sender.capacity().and_then(|bound| u32::try_from(bound).ok());
        self.bodies.total().div_ceil(places.unwrap_or(1).max(1))
    }

    /// The configuration in force.
    pub(super) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Another configuration is in force.
    pub(super) fn set_config(&self, config: Config) {
        *self.config.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
    }

    /// An operator paused the crawl, or let it go on: shards that come back do the same.
    pub(super) fn set_paused(&self, paused: bool) {
        *self.paused.lock().unwrap_or_else(PoisonError::into_inner) = Some(paused);
    }

    /// Whether the crawl is paused, if anybody has said so since the start.
    pub(super) fn paused(&self) -> Option<bool> {
        *self.paused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Other exclusions are in force: exchanges that they cover are cut, and shards that come back
    /// have the same.
    pub(super) fn change_exclusions(&self, change: impl FnOnce(&Exclusions) -> Exclusions) {
        self.exclusions.send_modify(|exclusions| *exclusions = Arc::new(change(exclusions)));
        self.exclusions_known.store(true, Ordering::Release);
    }

    /// The exclusions, as they change.
    pub(super) fn exclusions(&self) -> watch::Receiver<Arc<Exclusions>> {
        self.exclusions.subscribe()
    }

    /// What a shard that opens has to agree to; `None` before the stores have been asked.
    pub(super) fn agreed_exclusions(&self) -> Option<Vec<ExclusionRecord>> {
        let known = self.exclusions_known.load(Ordering::Acquire);
        let now = self.world.clock.now();
        known.then(|| self.exclusions.borrow().in_force(now).cloned().collect())
    }

    /// The crawl comes to its end: shards that come back grant nothing.
    pub(super) fn begin_drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// The crawl comes to its end.
    pub(super) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// From here on actors that end are not started again.
    pub(super) fn begin_stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// The node is stopping.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }
}

/// `parse.workers`, or one for each core.
pub(super) fn parsers(config: &Config) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    config.parse.workers.map_or(cores, |workers| usize::try_from(workers).unwrap_or(cores))
}
