//! RegistryActor: knows which shard is up and where, and publishes the map.

use std::sync::Arc;

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::watch;

use crate::protocol::registry::RegistryView;
use crate::protocol::{NodeActor, RegistryMsg, Routes, ShardRoute};
use crate::types::{ShardId, tally};

/// The actor.
#[derive(Debug)]
pub struct RegistryActor;

/// What it starts with.
#[derive(Debug)]
pub struct RegistryArgs {
    /// Where the map is published.
    pub routes: watch::Sender<Arc<Routes>>,
    /// The number of shards, fixed.
    pub shards: u16,
}

impl Actor for RegistryActor {
    type Msg = RegistryMsg;
    type State = watch::Sender<Arc<Routes>>;
    type Arguments = RegistryArgs;

    async fn pre_start(
        &self,
        _me: ActorRef<RegistryMsg>,
        args: RegistryArgs,
    ) -> Result<Self::State, ActorProcessingErr> {
        args.routes.send_modify(|routes| {
            let mut shards = routes.shards.clone();
            shards.resize(usize::from(args.shards), None);
            *routes = Arc::new(Routes { shards, ..Routes::clone(routes) });
        });
        Ok(args.routes)
    }

    async fn handle(
        &self,
        _me: ActorRef<RegistryMsg>,
        msg: RegistryMsg,
        routes: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        match msg {
            RegistryMsg::ShardUp(shard, route) => publish(routes, shard, Some(route)),
            RegistryMsg::ShardDown(shard) => publish(routes, shard, None),
            RegistryMsg::Started(actor) => started(routes, &actor),
            RegistryMsg::Locate(host, answer) => {
                answer.send(routes.borrow().route(&host).map(|route| route.shard.clone()));
            }
            RegistryMsg::Observe(answer) => answer.send(view(&routes.borrow())),
        }
        Ok(())
    }
}

fn publish(routes: &watch::Sender<Arc<Routes>>, shard: ShardId, route: Option<ShardRoute>) {
    routes.send_modify(|routes| {
        let mut next = Routes::clone(routes);
        if let Some(place) = next.shards.get_mut(usize::from(shard.0)) {
            *place = route;
        }
        *routes = Arc::new(next);
    });
}

fn started(routes: &watch::Sender<Arc<Routes>>, actor: &NodeActor) {
    routes.send_modify(|routes| {
        let mut next = Routes::clone(routes);
        match actor {
            NodeActor::Address(at, owner) => match next.addresses.get_mut(usize::from(*at)) {
                Some(place) => *place = owner.clone(),
                None => next.addresses.push(owner.clone()),
            },
            NodeActor::Discovery(actor) => next.discovery = Some(actor.clone()),
            NodeActor::Archive(actor) => next.archive = Some(actor.clone()),
            NodeActor::Purge(actor) => next.purge = Some(actor.clone()),
            NodeActor::Pool(name, pool) => {
                next.pools.retain(|(found, _)| found != name);
                next.pools.push((name, pool.clone()));
                next.pools.sort_by_key(|(name, _)| *name);
            }
        }
        *routes = Arc::new(next);
    });
}

fn view(routes: &Routes) -> RegistryView {
    RegistryView { shards: tally(routes.shards.len()), up: tally(routes.all().count()) }
}
