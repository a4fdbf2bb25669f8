//! The frontier of a node and its stores, without the stages around it: what it costs alone.
//!
//! The same plan, settings, actors and stores as in a node. Whoever starts it stands in for
//! discovery, fetchers, archive and parsers.

use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt as _;
use ractor::{Actor, ActorRef};

use super::error::{NodeError, failed};
use super::plan::Plan;
use super::root::ADDRESS_OWNERS;
use super::settings;
use super::shards::{self, BegunShard, StartingShard};
use crate::config::Config;
use crate::frontier::{AddressActor, AddressArgs, RegistryActor, RegistryArgs};
use crate::output::{OutputActor, OutputArgs};
use crate::protocol::shard::ShardView;
use crate::protocol::{
    Answer, FetchJob, NodeActor, ParseJob, RegistryMsg, Routes, ShardMsg, ShardRoute, ask,
};
use crate::storage::ShardStore;
use crate::types::ShardId;
use crate::world::World;

/// A running frontier.
pub struct FrontierAlone {
    plan: Arc<Plan>,
    registry: ActorRef<RegistryMsg>,
}

impl FrontierAlone {
    /// Opens the stores and starts shards, owners of addresses, and outputs that write nothing.
    ///
    /// # Errors
    /// A store cannot be opened, or an actor does not start.
    pub async fn start(config: Arc<Config>, world: World) -> Result<Self, NodeError> {
        let plan = Arc::new(Plan::new(config, world)?);
        let shards = plan.config().frontier.shards;
        let args = RegistryArgs { routes: plan.routes.clone(), shards };
        let started = Actor::spawn(None, RegistryActor, args).await;
        let (registry, _) = started.map_err(failed("registry"))?;
        let frontier = Self { plan, registry };
        for at in 0..ADDRESS_OWNERS {
            frontier.start_addresses(at).await?;
        }
        frontier.published().await;
        let mut opened = pin!(shards::open_all(&frontier.plan, (0..shards).map(ShardId).collect()));
        let mut starting = Vec::new();
        while let Some(open) = opened.next().await {
            starting.push(frontier.begin_shard(open?.store).await?);
        }
        for BegunShard { shard, output, starting, .. } in starting {
            let route = ShardRoute { shard: starting.started().await?, output };
            frontier.tell_registry(RegistryMsg::ShardUp(shard, route));
        }
        frontier.published().await;
        shards::begin(frontier.routes().all().map(|route| &route.shard));
        Ok(frontier)
    }

    async fn start_addresses(&self, at: u16) -> Result<(), NodeError> {
        let rules = settings::addresses(&self.plan.config());
        let args = AddressArgs { rules, world: self.plan.world.clone() };
        let started = Actor::spawn(None, AddressActor, args).await;
        let (owner, _) = started.map_err(failed("addresses"))?;
        self.tell_registry(RegistryMsg::Started(NodeActor::Address(at, owner)));
        Ok(())
    }

    async fn begin_shard(&self, store: ShardStore) -> Result<BegunShard, NodeError> {
        let (plan, shard, epoch) = (&self.plan, store.shard(), store.epoch());
        let args = OutputArgs {
            shard,
            spool: Arc::clone(&plan.world.spool),
            clock: Arc::clone(&plan.world.clock),
            exclusions: plan.exclusions(),
            outputs: Vec::new(),
            committed: Vec::new(),
            metrics: Arc::clone(&plan.metrics),
            turn: Arc::default(),
        };
        let started = Actor::spawn(None, OutputActor, args).await;
        let (output, _) = started.map_err(failed("outputs"))?;
        let starting = StartingShard::begin(shards::shard_args(plan, store, false), None);
        Ok(BegunShard { shard, epoch, output, starting })
    }

    fn tell_registry(&self, msg: RegistryMsg) {
        // Nothing stops it before the frontier is dropped.
        self.registry.send_message(msg).ok();
    }

    async fn published(&self) {
        let (answer, waiting) = Answer::channel();
        self.tell_registry(RegistryMsg::Observe(answer));
        waiting.await.ok();
    }

    /// Where its actors are.
    pub fn routes(&self) -> Arc<Routes> {
        Arc::clone(&self.plan.routes.borrow())
    }

    /// The leases that leave it: whoever takes one makes the exchange and reports its end.
    pub fn leases(&self) -> async_channel::Receiver<FetchJob> {
        self.plan.fetch_jobs.receiver.clone()
    }

    /// The pages that are to be parsed: whoever takes one publishes it.
    pub fn pages(&self) -> async_channel::Receiver<ParseJob> {
        self.plan.parse_jobs.receiver.clone()
    }

    /// How each shard stands.
    pub async fn views(&self) -> Vec<ShardView> {
        let mut views = Vec::new();
        for route in self.routes().all() {
            views.extend(ask(&route.shard, ShardMsg::Observe).await.map(|view| *view));
        }
        views
    }

    /// Grants nothing any more; what is in flight goes on.
    pub fn drain(&self) {
        for route in self.routes().all() {
            // A shard that is gone grants nothing.
            route.shard.send_message(ShardMsg::Drain).ok();
        }
    }

    /// Makes all durable, puts hosts to rest, closes the stores.
    ///
    /// # Errors
    /// A shard did not close, and why.
    pub async fn close(self) -> Result<(), NodeError> {
        let routes = self.routes();
        let closing = routes.all().map(|route| ask(&route.shard, ShardMsg::Close));
        let closed = futures::future::join_all(closing).await;
        // All of them hold the world: when this returns, nobody does.
        let shards = routes.all().map(|route| route.shard.get_cell());
        let outputs = routes.all().map(|route| route.output.get_cell());
        let addresses = routes.addresses.iter().map(ActorRef::get_cell);
        for cell in shards.chain(outputs).chain(addresses).chain([self.registry.get_cell()]) {
            // One that is gone already has nothing to wait for.
            cell.stop_and_wait(None, None).await.ok();
        }
        closed.into_iter().try_for_each(|closed| match closed {
            Some(Ok(())) => Ok(()),
            Some(Err(why)) => Err(NodeError::Unclean(why)),
            None => Err(NodeError::Silent("a shard")),
        })
    }
}
