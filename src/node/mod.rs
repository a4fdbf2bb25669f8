//! Builds everything in the order of the flow; the only wiring.
//!
//! In: a configuration, and a world where a test brings its own. Out: a running node that can be
//! asked, told and stopped. Nothing here is global: many nodes live in one process.

mod error;
mod memory;
mod rules;
mod settings;
mod plan;
mod part;
mod shards;
mod effect;
mod root;
mod shard_start;
mod exclusions;
mod purge;
mod orders;
mod progress;
mod why;
mod shutdown;
mod frontier;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorRef};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::admin::{
    self, AdminShared, AdminState, Control, CrawlPhase, PageReader, ReloadReport, Status,
};
use crate::config::{Config, ConfigFaults, Fault};
use crate::fetch::{HickoryResolver, HttpExchange};
use crate::protocol::discovery::{Seed, SeedAnswer};
use crate::protocol::{DiscoveryMsg, RootMsg, RoutesWatch, ask};
use crate::storage::{DataDir, MadeShards, SledSnapshots};
use crate::types::{ShardId, Timestamp};
use crate::world::{Clock, DirectorySpool, Objects, SeededDice, TokioClock, World};

use memory::MemoryPlan;
use plan::Plan;
use root::RootActor;

pub use effect::without_effect;
pub use error::NodeError;
pub use frontier::FrontierAlone;
pub use orders::Reloader;
pub(crate) use plan::Taps;
pub use progress::Progress;
pub use why::{egress, host_settings, judged, page_reader};

/// Orders of the admin interface that wait.
const ORDERS_MAX: usize = 16;

/// What the node is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// One crawl that ends: nothing is visited again.
    Crawl,
    /// A daemon.
    Serve,
}

/// What a node starts with.
pub struct NodeOptions {
    /// The configuration.
    pub config: Arc<Config>,
    /// A crawl or a daemon.
    pub purpose: Purpose,
    /// Reads the configuration again; `None` where there is nothing to read.
    pub reloader: Option<Reloader>,
}

/// Everything in a configuration that this build cannot do, or that a file it names makes wrong, in
/// the order of `config/default.toml`.
pub fn check(config: &Config) -> Vec<Fault> {
    let of = |faults: Option<ConfigFaults>| faults.into_iter().flat_map(|faults| faults.faults);
    let mut faults: Vec<Fault> = settings::store(config).into_iter().collect();
    faults.extend(settings::root_faults(config));
    faults.extend(rules::scope_rules(config).err().into_iter().flatten());
    faults.extend(of(settings::archive(config).err()));
    faults.extend(of(settings::coordinator(config).err()));
    faults.extend(settings::output_faults(config));
    faults.extend(settings::extractors(config).flat_map(|extractor| of(extractor.err())));
    faults
}

/// A running node.
pub struct Node {
    plan: Arc<Plan>,
    root: ActorRef<RootMsg>,
    root_task: JoinHandle<()>,
    started_at: Timestamp,
    control: mpsc::Sender<Control>,
    phase: watch::Receiver<CrawlPhase>,
    orders: JoinHandle<()>,
    shared: Arc<AdminShared>,
    admin_stop: watch::Sender<bool>,
    admin_tasks: Vec<JoinHandle<()>>,
    snapshots: Option<Arc<SledSnapshots>>,
    /// Held last: the directory's lock is free when everything else is gone.
    directory: Option<DataDir>,
}

impl Node {
    /// Takes the data directory, opens the stores and starts all actors. Does not listen.
    ///
    /// # Errors
    /// The directory is in use, newer or damaged; a store, the resolver or the client cannot be
    /// made; a setting is wrong.
    pub async fn start(options: NodeOptions) -> Result<Self, NodeError> {
        let config = &options.config;
        ConfigFaults::refuse(check(config))?;
        let coordinator = settings::coordinator(config)?;
        let directory = DataDir::open(&config.data.dir)?;
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::system());
        let path = directory.snapshots();
        let snapshots = Arc::new(SledSnapshots::open_once_free(&path, clock.as_ref()).await?);
        let objects = match &config.data.store {
            Some(url) => Objects::open(url)?,
            None => Objects::open_directory(&directory.shards())?,
        };
        let store = config.data.store.as_deref();
        let mut made = MadeShards::check(directory.path(), store, &objects).await?;
        let egress = settings::egress(config);
        let connect = settings::connect(config, &MemoryPlan::of(config));
        let exchange = HttpExchange::new(connect, egress, Arc::clone(&clock))?;
        let world = World {
            dice: Arc::new(SeededDice::from_system()),
            exchange: Arc::new(exchange),
            resolver: Arc::new(HickoryResolver::new(settings::dns(config), Arc::clone(&clock))?),
            snapshots: Arc::clone(&snapshots) as _,
            spool: Arc::new(DirectorySpool::new(directory.path())),
            objects,
            coordinator,
            clock,
        };
        let mut node = Self::start_in(options, world).await?;
        let opened = made.opened((0..node.plan.config().frontier.shards).map(ShardId));
        node.snapshots = Some(snapshots);
        node.directory = Some(directory);
        match opened {
            Ok(()) => Ok(node),
            Err(failure) => {
                // What is told is why it does not start, however it stopped.
                node.stop(Duration::ZERO).await.ok();
                Err(failure.into())
            }
        }
    }

    /// Starts a node in a world of the caller's: for tests and simulations.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub async fn start_in(options: NodeOptions, world: World) -> Result<Self, NodeError> {
        Self::start_tapped(options, world, None).await
    }

    /// As [`Node::start_in`], with somebody between its shards and its workers.
    ///
    /// # Errors
    /// As [`Node::start`].
    pub(crate) async fn start_tapped(
        options: NodeOptions,
        world: World,
        taps: Option<Taps>,
    ) -> Result<Self, NodeError> {
        let NodeOptions { config, purpose, reloader } = options;
        let config = match purpose {
            Purpose::Serve => config,
            Purpose::Crawl => {
                let mut config = Config::clone(&config);
                config.recrawl.enabled = false;
                Arc::new(config)
            }
        };
        let mut plan = Plan::new(config, world)?;
        if let Some(taps) = taps {
            plan.fetch_jobs.tap(taps.fetch);
            plan.parse_jobs.tap(taps.parse);
        }
        let plan = Arc::new(plan);
        let (root, root_task) = Actor::spawn(None, RootActor, Arc::clone(&plan))
            .await
            .map_err(root::why_not_started)?;
        // The registry hears of the actors in the order they start: with the last it knows all.
        let mut routes = plan.routes.subscribe();
        routes
            .wait_for(|routes| routes.pools.iter().any(|(name, _)| *name == root::STARTED_LAST))
            .await
            .map_err(|_| NodeError::Silent("the registry"))?;
        let (control, orders) = mpsc::channel(ORDERS_MAX);
        // A crawl is meant to run; a daemon goes on as its operator left it.
        let paused = match purpose {
            Purpose::Crawl => {
                orders::pause_shards(&plan, false).await;
                false
            }
            Purpose::Serve => orders::is_paused(&plan).await,
        };
        let begins = if paused { CrawlPhase::Paused } else { CrawlPhase::Running };
        let (phase_sender, phase) = watch::channel(begins);
        let orders = orders::obey(Arc::clone(&plan), orders, phase_sender, reloader);
        Ok(Self {
            started_at: plan.world.clock.now(),
            plan,
            root,
            root_task,
            control,
            phase,
            orders: tokio::spawn(orders),
            shared: Arc::new(AdminShared::default()),
            admin_stop: watch::Sender::new(false),
            admin_tasks: Vec::new(),
            snapshots: None,
            directory: None,
        })
    }

    /// What the admin interface needs of the node.
    pub fn admin(&self) -> AdminState {
        AdminState {
            routes: self.plan.routes.subscribe(),
            root: self.root.clone(),
            clock: Arc::clone(&self.plan.world.clock),
            started_at: self.started_at,
            settings: Arc::new(settings::admin(&self.plan.config())),
            metrics: Arc::clone(&self.plan.metrics),
            control: self.control.clone(),
            phase: self.phase.clone(),
            pages: PageReader {
                records: Arc::clone(&self.plan.records),
                settings: self.plan.settings.parse.subscribe(),
                clock: Arc::clone(&self.plan.world.clock),
            },
            shared: Arc::clone(&self.shared),
        }
    }

    /// Serves the admin interface on this listener until the node stops.
    pub fn serve_admin(&mut self, listener: TcpListener) {
        let mut stop = self.admin_stop.subscribe();
        let state = self.admin();
        self.admin_tasks.push(tokio::spawn(async move {
            let stopped = async move {
                // A node that is gone stops its admin interface too.
                stop.wait_for(|stop| *stop).await.ok();
            };
            if let Err(error) = admin::serve(listener, state, stopped).await {
                tracing::error!(%error, "admin interface ended");
            }
        }));
    }

    /// Where its actors are.
    pub(crate) fn routes(&self) -> RoutesWatch {
        self.plan.routes.subscribe()
    }

    /// Gives seeds to the crawl; durable when it answers.
    ///
    /// # Errors
    /// Discovery does not answer.
    pub async fn seed(&self, seeds: Vec<Seed>) -> Result<Vec<SeedAnswer>, NodeError> {
        let discovery = self.plan.routes.borrow().discovery.clone();
        let discovery = discovery.ok_or(NodeError::Silent("discovery"))?;
        let answers = ask(&discovery, |answer| DiscoveryMsg::Seeds(seeds, answer)).await;
        answers.ok_or(NodeError::Silent("discovery"))
    }

    /// How the node stands, in the shape that docs/interface.md gives.
    pub async fn status(&self) -> Status {
        admin::collect(&self.admin()).await
    }

    /// How far the crawl is, to know whether it is over.
    pub async fn progress(&self) -> Progress {
        progress::collect(&self.plan).await
    }

    /// The term of each shard, for the log.
    pub async fn epochs(&self) -> Vec<u32> {
        progress::epochs(&self.plan).await
    }

    /// Whether an operator asked it to end (`POST /v1/drain`); returns when one does.
    pub async fn drained(&self) {
        let mut phase = self.phase.clone();
        // A node whose orders are no longer obeyed is ending anyway.
        phase.wait_for(|phase| *phase == CrawlPhase::Draining).await.ok();
    }

    /// Whether the root has ended by itself: something could not be started again.
    pub async fn failed(&mut self) {
        // The task ends with its actor; how is in the log.
        (&mut self.root_task).await.ok();
    }

    /// Where the data lies, when it lies on a disk.
    pub fn data_dir(&self) -> Option<PathBuf> {
        self.directory.as_ref().map(|directory| directory.path().to_owned())
    }

    /// Another configuration: what is safe is in force at once (U1).
    ///
    /// # Errors
    /// A setting is wrong; then nothing changes.
    pub fn reload(&self, new: &Config) -> Result<ReloadReport, NodeError> {
        orders::reload(&self.plan, new)
    }
}

#[cfg(test)]
mod tests;
