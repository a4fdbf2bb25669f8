//! Opening the stores of shards, many at once, and their number: chosen at the first start, and
//! kept in every store. With another number hosts would lie elsewhere, so what is known of them
//! would be forgotten (I3, I4).

use std::sync::Arc;
use std::time::Duration;

use futures::{Stream, StreamExt as _, stream};
use ractor::{Actor, ActorCell, ActorRef, SpawnErr};
use tokio::task::JoinHandle;

use super::error::{NodeError, failed};
use super::plan::Plan;
use super::settings;
use crate::frontier::{ShardActor, ShardArgs};
use crate::output::OutputSettings;
use crate::policy::change::Change;
use crate::protocol::{OutputMsg, ShardMsg};
use crate::storage::{Batch, ShardStore, StoreError, StoreOptions};
use crate::types::{Epoch, ShardId};

/// The row that keeps it.
const SHARDS_ROW: &str = "shards";
/// The first row must be durable by then.
const KEPT_WITHIN: Duration = Duration::from_secs(10);

/// Stores that are opened at once: each waits for the disk most of the time.
const OPENED_AT_ONCE: usize = 16;

/// A store that is open, and what its outputs have committed.
pub(super) struct OpenShard {
    pub(super) shard: ShardId,
    pub(super) store: ShardStore,
    pub(super) outputs: Vec<OutputSettings>,
    pub(super) committed: Vec<(String, Vec<u8>)>,
}

/// Opens these, some at a time; they come in the order in which they are given. Whoever stops at a
/// failure takes the others first, so that nothing is left behind that opens.
pub(super) fn open_all(
    plan: &Arc<Plan>,
    shards: Vec<ShardId>,
) -> impl Stream<Item = Result<OpenShard, NodeError>> + use<> {
    let plan = Arc::clone(plan);
    let opening = stream::iter(shards).map(move |shard| {
        let plan = Arc::clone(&plan);
        // On threads of their own: each may have a log to replay first.
        let opening = tokio::spawn(async move { open(&plan, shard).await });
        async move { opening.await.unwrap_or(Err(NodeError::Silent("the store"))) }
    });
    opening.buffered(OPENED_AT_ONCE)
}

/// Opens one.
pub(super) async fn open(plan: &Plan, shard: ShardId) -> Result<OpenShard, NodeError> {
    let failed = |source| NodeError::Store { shard, source: Box::new(source) };
    let store = ShardStore::open(options(plan, shard)).await.map_err(failed)?;
    agree(&store, plan.config().frontier.shards).await?;
    let outputs = settings::outputs(&plan.config())?;
    let mut committed = Vec::new();
    for output in &outputs {
        if let Some(state) = store.output(&output.name).await.map_err(failed)? {
            committed.push((output.name.clone(), state));
        }
    }
    Ok(OpenShard { shard, store, outputs, committed })
}

fn options(plan: &Plan, shard: ShardId) -> StoreOptions {
    let shards = u64::from(plan.config().frontier.shards.max(1));
    StoreOptions {
        objects: plan.world.objects.clone(),
        path: shard.to_string(),
        clock: Arc::clone(&plan.world.clock),
        seed: plan.world.dice.throw(),
        memory_bytes_max: plan.memory.unflushed / shards,
        cache: plan.cache.clone(),
        shard,
    }
}

/// A shard whose output is up and whose actor is starting.
pub(super) struct BegunShard {
    pub(super) shard: ShardId,
    pub(super) epoch: Epoch,
    pub(super) output: ActorRef<OutputMsg>,
    pub(super) starting: StartingShard,
}

/// A shard whose actor reads what it needs of its store before it takes messages. Shards do so side
/// by side, and none grants before all are told to begin: the hosts that it wakes would take the
/// processor from those that still open.
pub(super) struct StartingShard(JoinHandle<Result<ActorRef<ShardMsg>, SpawnErr>>);

impl StartingShard {
    /// Starts the actor, linked to its supervisor if it has one.
    pub(super) fn begin(args: ShardArgs, supervisor: Option<ActorCell>) -> Self {
        Self(tokio::spawn(async move {
            let (actor, _) = match supervisor {
                Some(cell) => Actor::spawn_linked(None, ShardActor, args, cell).await?,
                None => Actor::spawn(None, ShardActor, args).await?,
            };
            Ok(actor)
        }))
    }

    /// The actor, once it takes messages.
    pub(super) async fn started(self) -> Result<ActorRef<ShardMsg>, NodeError> {
        let started = self.0.await.map_err(|_| NodeError::Silent("a shard"))?;
        started.map_err(failed("shard"))
    }
}

/// All shards are open: they may grant.
pub(super) fn begin<'a>(started: impl Iterator<Item = &'a ActorRef<ShardMsg>>) {
    for shard in started {
        // One that has failed since begins when it is opened again.
        shard.send_message(ShardMsg::Begin).ok();
    }
}

/// What a shard starts with, its store open.
pub(super) fn shard_args(plan: &Plan, store: ShardStore, reopened: bool) -> ShardArgs {
    ShardArgs {
        shard: store.shard(),
        store,
        world: plan.world.clone(),
        routes: plan.routes.subscribe(),
        settings: plan.settings.frontier.subscribe(),
        quota: plan.quota.clone(),
        fetch: plan.fetch_jobs.sender.clone(),
        parse: plan.parse_jobs.sender.clone(),
        metrics: Arc::clone(&plan.metrics),
        reopened,
        paused: plan.paused(),
        exclusions: plan.agreed_exclusions(),
        draining: plan.is_draining(),
        // One that is opened again has nobody to wait for.
        waits: !reopened,
    }
}

/// Refuses another number than the one this store was made with; a new store keeps it.
async fn agree(store: &ShardStore, wanted: u16) -> Result<(), NodeError> {
    let failed = |source| NodeError::Store { shard: store.shard(), source: Box::new(source) };
    match store.meta(SHARDS_ROW).await.map_err(failed)? {
        None => keep(store, wanted).await.map_err(failed),
        Some(row) => match <[u8; 2]>::try_from(row).map(u16::from_be_bytes) {
            Ok(found) if found == wanted => Ok(()),
            Ok(found) => Err(NodeError::Shards { wanted, found }),
            Err(_) => Err(failed(StoreError::Damaged { what: "its number of shards is none" })),
        },
    }
}

async fn keep(store: &ShardStore, wanted: u16) -> Result<(), StoreError> {
    let mut batch = Batch::new();
    batch.push(&Change::PutMeta(SHARDS_ROW, wanted.to_be_bytes().to_vec()));
    store.write(batch).await?;
    store.flush(KEPT_WITHIN).await
}
