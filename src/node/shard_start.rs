//! How the root starts its shards: all stores are opened, then all shards read what they need, then
//! all of them are told to grant.

use std::pin::pin;
use std::sync::Arc;

use futures::StreamExt as _;
use ractor::{Actor, ActorRef};
use tracing::info;

use super::error::{NodeError, failed};
use super::part::Part;
use super::root::{RootState, TELL_EVERY};
use super::shards::{self, BegunShard, OpenShard, StartingShard};
use crate::output::{OutputActor, OutputArgs};
use crate::protocol::{RegistryMsg, ShardMsg, ShardRoute};
use crate::telemetry::ShardReopened;
use crate::types::ShardId;

impl RootState {
    /// All shards of this node, whose stores are opened side by side.
    pub(super) async fn start_shards(&mut self, owned: Vec<ShardId>) -> Result<(), NodeError> {
        let (clock, all) = (Arc::clone(&self.plan.world.clock), owned.len());
        let mut told = clock.now();
        info!(shards = all, "opening shards");
        let mut opened = pin!(shards::open_all(&self.plan, owned).enumerate());
        let (mut starting, mut failure) = (Vec::new(), None);
        while let Some((number, open)) = opened.next().await {
            match open {
                Ok(open) if failure.is_none() => match self.begin_shard(open).await {
                    Ok(begun) => starting.push(begun),
                    Err(error) => failure = Some(error),
                },
                Ok(_) => {}
                Err(error) => failure = failure.or(Some(error)),
            }
            if clock.now().since(told) >= TELL_EVERY {
                told = clock.now();
                info!(opened = number + 1, of = all, "opening shards");
            }
        }
        let mut started = Vec::new();
        for begun in starting {
            match self.finish_shard(begun).await {
                Ok(actor) => started.push(actor),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        failure.map_or(Ok(()), Err)?;
        shards::begin(started.iter());
        Ok(())
    }

    /// its store is open, the outputs are cut to what it has committed, then it may start.
    pub(super) async fn begin_shard(&mut self, open: OpenShard) -> Result<BegunShard, NodeError> {
        let plan = Arc::clone(&self.plan);
        let OpenShard { shard, store, outputs, committed } = open;
        let args = OutputArgs {
            shard,
            spool: Arc::clone(&plan.world.spool),
            clock: Arc::clone(&plan.world.clock),
            exclusions: plan.exclusions(),
            outputs,
            committed,
            metrics: Arc::clone(&plan.metrics),
            turn: Arc::clone(self.turns.entry(shard).or_default()),
        };
        let started = Actor::spawn_linked(None, OutputActor, args, self.me.get_cell()).await;
        let (output, _) = started.map_err(failed("outputs"))?;
        self.note(Part::Output(shard), output.get_cell());
        let epoch = store.epoch();
        let args = shards::shard_args(&plan, store, self.reopening);
        let starting = StartingShard::begin(args, Some(self.me.get_cell()));
        Ok(BegunShard { shard, epoch, output, starting })
    }

    /// It has read what it needs of its store, and takes messages.
    pub(super) async fn finish_shard(
        &mut self,
        begun: BegunShard,
    ) -> Result<ActorRef<ShardMsg>, NodeError> {
        let BegunShard { shard, epoch, output, starting } = begun;
        let actor = starting.started().await?;
        self.note(Part::Shard(shard), actor.get_cell());
        let route = ShardRoute { shard: actor.clone(), output };
        self.tell_registry(RegistryMsg::ShardUp(shard, route));
        if let Some(since) = self.away.remove(&shard) {
            let away = self.plan.world.clock.now().since(since);
            ShardReopened { shard, epoch, away }.emit(&self.plan.metrics);
        }
        Ok(actor)
    }
}
