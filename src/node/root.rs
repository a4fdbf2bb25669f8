//! RootActor: the supervision tree of a node (A1).
//!
//! - R-1 Actors start in the order of the flow, and each can be made again from the plan.
//! - R-2 A shard and its outputs come back together: the outputs are cut to what the shard has
//!   committed, so no page appears twice (B6).
//! - R-3 A discovery that fails had pages under way whose rows the shards think of as being parsed;
//!   so the shards come back with it, and parse them again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use ractor::{Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::watch;
use tracing::{error, warn};

use super::error::{NodeError, failed};
use super::exclusions;
use super::part::Part;
use super::plan::{Plan, parsers};
use super::settings;
use super::shards;
use crate::archive::{ArchiveActor, ArchiveArgs};
use crate::discovery::{DiscoveryActor, DiscoveryArgs};
use crate::fetch::{FetchContext, Fetchers};
use crate::frontier::{AddressActor, AddressArgs, RegistryActor, RegistryArgs};
use crate::output::Turn;
use crate::parse::{ParseContext, Parsers};
use crate::protocol::root::ActorNode;
use crate::protocol::{
    Answer, ArchiveMsg, DiscoveryMsg, NodeActor, Owners, RegistryMsg, RootMsg, ShardMsg, ask,
};
use crate::supervise::{PoolActor, PoolSetup, WorkerKind};
use crate::types::{HostKey, ShardId, Timestamp};

/// The pool that is started when all else is.
pub(super) const STARTED_LAST: &str = "parse";
/// A shard or an archive that cannot be opened is tried again after this.
const REOPEN_AFTER: Duration = Duration::from_secs(1);
/// How often a long start says how far it is.
pub(super) const TELL_EVERY: Duration = Duration::from_secs(2);
/// Owners of address clocks: a few, so that one busy address does not hold up all.
pub(super) const ADDRESS_OWNERS: u16 = 4;

/// The actor.
#[derive(Debug)]
pub(super) struct RootActor;

/// The actor's state.
pub(super) struct RootState {
    pub(super) me: ActorRef<RootMsg>,
    pub(super) plan: Arc<Plan>,
    registry: Option<ActorRef<RegistryMsg>>,
    archive: Option<watch::Sender<ActorRef<ArchiveMsg>>>,
    discovery: Option<watch::Sender<ActorRef<DiscoveryMsg>>>,
    parts: BTreeMap<Part, ActorCell>,
    ids: BTreeMap<ActorId, Part>,
    restarts: BTreeMap<Part, u64>,
    /// The shards were open before: leases found in a store may still be in flight here.
    pub(super) reopening: bool,
    /// Whose turn it is to write the outputs of each shard.
    pub(super) turns: BTreeMap<ShardId, Turn>,
    /// Shards that are being opened again, and since when they are away.
    pub(super) away: BTreeMap<ShardId, Timestamp>,
}

type Handled = Result<(), ActorProcessingErr>;

impl Actor for RootActor {
    type Msg = RootMsg;
    type State = RootState;
    type Arguments = Arc<Plan>;

    async fn pre_start(
        &self,
        me: ActorRef<RootMsg>,
        plan: Arc<Plan>,
    ) -> Result<RootState, ActorProcessingErr> {
        let mut root = RootState {
            me,
            plan,
            registry: None,
            archive: None,
            discovery: None,
            parts: BTreeMap::new(),
            ids: BTreeMap::new(),
            restarts: BTreeMap::new(),
            reopening: false,
            turns: BTreeMap::new(),
            away: BTreeMap::new(),
        };
        root.start_all().await?;
        Ok(root)
    }

    async fn handle(&self, _me: ActorRef<RootMsg>, msg: RootMsg, root: &mut RootState) -> Handled {
        match msg {
            RootMsg::ReopenShard(shard) => root.reopen(shard).await,
            RootMsg::ReopenArchive => root.reopen_archive().await,
            RootMsg::Observe(answer) => root.observe(answer),
        }
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _me: ActorRef<RootMsg>,
        event: SupervisionEvent,
        root: &mut RootState,
    ) -> Handled {
        match event {
            SupervisionEvent::ActorFailed(cell, why) => {
                root.ended(cell.get_id(), &why.to_string()).await;
            }
            SupervisionEvent::ActorTerminated(cell, _, why) => {
                root.ended(cell.get_id(), why.as_deref().unwrap_or("stopped")).await;
            }
            SupervisionEvent::ActorStarted(_) | SupervisionEvent::ProcessGroupChanged(_) => {}
        }
        Ok(())
    }
}

impl RootState {
    /// in the order of the flow.
    async fn start_all(&mut self) -> Result<(), NodeError> {
        self.start_registry().await?;
        for at in 0..ADDRESS_OWNERS {
            self.start_addresses(at).await?;
        }
        self.published().await;
        let shards = self.plan.config().frontier.shards;
        let coordinator = Arc::clone(&self.plan.world.coordinator);
        let owned = coordinator.own(shards).await.map_err(NodeError::Coordinator)?;
        self.start_shards(owned.iter().map(|ownership| ownership.shard).collect()).await?;
        self.reopening = true;
        exclusions::gather(&self.plan, &self.shard_actors()).await;
        self.start_discovery().await?;
        self.start_archive().await?;
        self.start_purge().await?;
        self.start_fetchers().await?;
        self.start_parsers().await?;
        self.published().await;
        Ok(())
    }

    /// Everything that has started is on the map: the node is not told to be there before it is.
    async fn published(&self) {
        let (answer, waiting) = Answer::channel();
        self.tell_registry(RegistryMsg::Observe(answer));
        // A registry that has failed publishes when it is back.
        waiting.await.ok();
    }

    pub(super) fn note(&mut self, part: Part, cell: ActorCell) {
        self.ids.insert(cell.get_id(), part);
        self.parts.insert(part, cell);
    }

    pub(super) fn tell_registry(&self, msg: RegistryMsg) {
        if let Some(registry) = &self.registry {
            // A registry that has failed is told again when it is back: the map outlives it.
            registry.send_message(msg).ok();
        }
    }

    async fn start_registry(&mut self) -> Result<(), NodeError> {
        let args = RegistryArgs {
            routes: self.plan.routes.clone(),
            shards: self.plan.config().frontier.shards,
        };
        let started = Actor::spawn_linked(None, RegistryActor, args, self.me.get_cell()).await;
        let (registry, _) = started.map_err(failed("registry"))?;
        self.note(Part::Registry, registry.get_cell());
        self.registry = Some(registry);
        Ok(())
    }

    async fn start_addresses(&mut self, at: u16) -> Result<(), NodeError> {
        let rules = settings::addresses(&self.plan.config());
        let args = AddressArgs { rules, world: self.plan.world.clone() };
        let started = Actor::spawn_linked(None, AddressActor, args, self.me.get_cell()).await;
        let (owner, _) = started.map_err(failed("addresses"))?;
        self.note(Part::Address(at), owner.get_cell());
        self.tell_registry(RegistryMsg::Started(NodeActor::Address(at, owner)));
        Ok(())
    }

    async fn start_discovery(&mut self) -> Result<(), NodeError> {
        let seeded = self.seeded_hosts().await;
        let args = DiscoveryArgs {
            settings: self.plan.settings.discovery.subscribe(),
            routes: self.plan.routes.subscribe(),
            world: self.plan.world.clone(),
            seeded,
        };
        let started = Actor::spawn_linked(None, DiscoveryActor, args, self.me.get_cell()).await;
        let (discovery, _) = started.map_err(failed("discovery"))?;
        self.note(Part::Discovery, discovery.get_cell());
        publish(&mut self.discovery, discovery.clone());
        self.tell_registry(RegistryMsg::Started(NodeActor::Discovery(discovery)));
        Ok(())
    }

    /// Hosts that had seeds in earlier runs.
    async fn seeded_hosts(&self) -> BTreeSet<HostKey> {
        let mut seeded = BTreeSet::new();
        for shard in self.shard_actors() {
            if let Some(Ok(hosts)) = ask(&shard, ShardMsg::ListSeeded).await {
                seeded.extend(hosts);
            }
        }
        seeded
    }

    fn shard_actors(&self) -> Vec<ActorRef<ShardMsg>> {
        let shards = self.parts.iter().filter(|(part, _)| matches!(part, Part::Shard(_)));
        shards.map(|(_, cell)| cell.clone().into()).collect()
    }

    async fn start_archive(&mut self) -> Result<(), NodeError> {
        let plan = &self.plan;
        let args = ArchiveArgs {
            spool: Arc::clone(&plan.world.spool),
            clock: Arc::clone(&plan.world.clock),
            dice: Arc::clone(&plan.world.dice),
            routes: plan.routes.subscribe(),
            exclusions: plan.exclusions(),
            metrics: Arc::clone(&plan.metrics),
            settings: settings::archive(&plan.config())?,
        };
        let started = Actor::spawn_linked(None, ArchiveActor, args, self.me.get_cell()).await;
        let (archive, _) = started.map_err(failed("archive"))?;
        self.note(Part::Archive, archive.get_cell());
        publish(&mut self.archive, archive.clone());
        self.tell_registry(RegistryMsg::Started(NodeActor::Archive(archive)));
        Ok(())
    }

    async fn start_fetchers(&mut self) -> Result<(), NodeError> {
        let plan = Arc::clone(&self.plan);
        let Some(archive) = &self.archive else { return Err(NodeError::Silent("the archive")) };
        let context = FetchContext {
            clock: Arc::clone(&plan.world.clock),
            exchange: Arc::clone(&plan.world.exchange),
            settings: plan.settings.fetch.subscribe(),
            exclusions: plan.exclusions(),
            archive: archive.subscribe(),
            owners: Owners {
                routes: plan.routes.subscribe(),
                clock: Arc::clone(&plan.world.clock),
            },
            bodies: plan.bodies.clone(),
            body_place_kib: plan.body_place_kib(),
        };
        let setup = PoolSetup {
            name: "fetch",
            kind: Arc::new(Fetchers { context: Arc::new(context) }),
            workers: plan.config().fetch.workers,
            jobs: plan.fetch_jobs.receiver.clone(),
            clock: Arc::clone(&plan.world.clock),
            metrics: Arc::clone(&plan.metrics),
        };
        self.start_pool(Part::Fetchers, setup).await
    }

    async fn start_parsers(&mut self) -> Result<(), NodeError> {
        let plan = Arc::clone(&self.plan);
        let Some(discovery) = &self.discovery else { return Err(NodeError::Silent("discovery")) };
        let context = ParseContext {
            clock: Arc::clone(&plan.world.clock),
            settings: plan.settings.parse.subscribe(),
            records: Arc::clone(&plan.records),
            discovery: discovery.subscribe(),
            routes: plan.routes.subscribe(),
            pages: plan.pages.clone(),
        };
        let setup = PoolSetup {
            name: "parse",
            kind: Arc::new(Parsers { context: Arc::new(context) }),
            workers: u32::try_from(parsers(&plan.config())).unwrap_or(1),
            jobs: plan.parse_jobs.receiver.clone(),
            clock: Arc::clone(&plan.world.clock),
            metrics: Arc::clone(&plan.metrics),
        };
        self.start_pool(Part::Parsers, setup).await
    }

    async fn start_pool<K: WorkerKind>(
        &mut self,
        part: Part,
        setup: PoolSetup<K>,
    ) -> Result<(), NodeError> {
        let name = setup.name;
        let pool = PoolActor::<K>::default();
        let started = Actor::spawn_linked(None, pool, setup, self.me.get_cell()).await;
        let (pool, _) = started.map_err(failed(name))?;
        self.note(part, pool.get_cell());
        self.tell_registry(RegistryMsg::Started(NodeActor::Pool(name, pool)));
        Ok(())
    }

    /// A part is gone: it is made again.
    async fn ended(&mut self, id: ActorId, why: &str) {
        let Some(part) = self.ids.remove(&id) else { return };
        self.parts.remove(&part);
        if self.plan.is_stopping() {
            return;
        }
        *self.restarts.entry(part).or_default() += 1;
        warn!(?part, why, "actor ended, started again");
        let started = match part {
            Part::Registry => self.start_registry().await,
            Part::Address(at) => self.start_addresses(at).await,
            Part::Shard(shard) | Part::Output(shard) => {
                self.reopen(shard).await;
                Ok(())
            }
            Part::Discovery => {
                let restarted = self.start_discovery().await;
                for shard in 0..self.plan.config().frontier.shards {
                    self.reopen(ShardId(shard)).await;
                }
                restarted
            }
            Part::Archive => {
                self.reopen_archive().await;
                Ok(())
            }
            Part::Purge => self.start_purge().await,
            Part::Fetchers => self.start_fetchers().await,
            Part::Parsers => self.start_parsers().await,
        };
        if let Err(failure) = started {
            error!(?part, %failure, "actor cannot be started again, so the node ends");
            self.me.stop(Some(failure.to_string()));
        }
    }

    /// both halves of a shard end, and come back together.
    async fn reopen(&mut self, shard: ShardId) {
        self.tell_registry(RegistryMsg::ShardDown(shard));
        self.away.entry(shard).or_insert_with(|| self.plan.world.clock.now());
        for part in [Part::Shard(shard), Part::Output(shard)] {
            if let Some(cell) = self.parts.remove(&part) {
                self.ids.remove(&cell.get_id());
                cell.kill();
            }
        }
        let plan = Arc::clone(&self.plan);
        let started = match shards::open(&plan, shard).await {
            Ok(open) => match self.begin_shard(open).await {
                Ok(begun) => self.finish_shard(begun).await.map(drop),
                Err(failure) => Err(failure),
            },
            Err(failure) => Err(failure),
        };
        if let Err(failure) = started {
            warn!(%shard, %failure, "shard cannot be opened, tried again");
            self.try_again(RootMsg::ReopenShard(shard));
        }
    }

    /// A4: an archive whose disk fails comes back when the disk does.
    async fn reopen_archive(&mut self) {
        if let Err(failure) = self.start_archive().await {
            warn!(%failure, "archive cannot be opened, tried again");
            self.try_again(RootMsg::ReopenArchive);
        }
    }

    fn try_again(&self, msg: RootMsg) {
        let (clock, me) = (Arc::clone(&self.plan.world.clock), self.me.clone());
        tokio::spawn(async move {
            clock.sleep(REOPEN_AFTER).await;
            // A root that has stopped opens nothing.
            me.send_message(msg).ok();
        });
    }

    fn observe(&self, answer: Answer<ActorNode>) {
        let children = self.parts.iter().map(|(part, cell)| ActorNode {
            name: part.name(),
            kind: part.kind().to_owned(),
            mailbox: None,
            restarts: self.restarts.get(part).copied().unwrap_or(0),
            children: children_of(*part, cell),
        });
        answer.send(ActorNode {
            name: "root".to_owned(),
            kind: "root".to_owned(),
            mailbox: None,
            restarts: 0,
            children: children.collect(),
        });
    }
}

/// Children shown of one actor.
const CHILDREN_SHOWN: usize = 1000;

fn children_of(part: Part, cell: &ActorCell) -> Vec<ActorNode> {
    let children = cell.get_children().into_iter().take(CHILDREN_SHOWN);
    let nodes = children.map(|child| ActorNode {
        name: child.get_id().to_string(),
        kind: part.child_kind().to_owned(),
        mailbox: None,
        restarts: 0,
        children: Vec::new(),
    });
    nodes.collect()
}

/// The newest actor of a kind, for those that hold a watch.
fn publish<M>(watched: &mut Option<watch::Sender<ActorRef<M>>>, actor: ActorRef<M>) {
    match watched {
        Some(watched) => drop(watched.send_replace(actor)),
        None => *watched = Some(watch::Sender::new(actor)),
    }
}

/// Why the root, and so the node, did not start.
pub(super) fn why_not_started(why: ractor::SpawnErr) -> NodeError {
    match why {
        ractor::SpawnErr::StartupFailed(why) => match why.downcast::<NodeError>() {
            Ok(error) => *error,
            Err(why) => NodeError::Start { actor: "root".to_owned(), why: why.to_string() },
        },
        why @ (ractor::SpawnErr::ActorAlreadyStarted
        | ractor::SpawnErr::ActorAlreadyRegistered(_)) => failed("root")(why),
    }
}
