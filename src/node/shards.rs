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
use crate::policy::normalise::FORM_VERSION;
use crate::protocol::{OutputMsg, ShardMsg};
use crate::storage::{Batch, ShardStore, StoreError, StoreOptions};
use crate::types::{Epoch, ShardId};

/// The row that keeps it.
const SHARDS_ROW: &str = "shards";
/// The form by which its URLs are recognised (D1).
const FORM_ROW: &str = "url form";
/// The form of stores that do not say it.
const FIRST_FORM: u16 = 1;
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

/// Refuses a store that was made with another number of shards, or that recognises URLs by another
/// form (D1); a new store keeps both.
async fn agree(store: &ShardStore, shards: u16) -> Result<(), NodeError> {
    let failed = |source| NodeError::Store { shard: store.shard(), source: Box::new(source) };
    let mut missing = Vec::new();
    match number(store, SHARDS_ROW).await.map_err(failed)? {
        None => missing.push(Change::PutMeta(SHARDS_ROW, shards.to_be_bytes().to_vec())),
        Some(found) if found == shards => {}
        Some(found) => return Err(NodeError::Shards { wanted: shards, found }),
    }
    match number(store, FORM_ROW).await.map_err(failed)? {
        // Stores without it were made when there was the first form only.
        None if missing.is_empty() && FORM_VERSION != FIRST_FORM => {
            return Err(NodeError::Form { known: FORM_VERSION, found: FIRST_FORM });
        }
        None => missing.push(Change::PutMeta(FORM_ROW, FORM_VERSION.to_be_bytes().to_vec())),
        Some(FORM_VERSION) => {}
        Some(found) => return Err(NodeError::Form { known: FORM_VERSION, found }),
    }
    if missing.is_empty() { Ok(()) } else { keep(store, missing).await.map_err(failed) }
}

async fn number(store: &ShardStore, row: &'static str) -> Result<Option<u16>, StoreError> {
    let Some(value) = store.meta(row).await? else { return Ok(None) };
    let number = <[u8; 2]>::try_from(value).map(u16::from_be_bytes);
    number.map(Some).map_err(|_| StoreError::Damaged { what: "a number that it keeps is none" })
}

async fn keep(store: &ShardStore, rows: Vec<Change>) -> Result<(), StoreError> {
    let mut batch = Batch::new();
    for row in &rows {
        batch.push(row);
    }
    store.write(batch).await?;
    store.flush(KEPT_WITHIN).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Timestamp;
    use crate::world::{Objects, TokioClock};

    async fn store(objects: &Objects) -> ShardStore {
        let options = StoreOptions {
            objects: objects.clone(),
            path: "0".to_owned(),
            clock: Arc::new(TokioClock::starting_at(Timestamp::from_secs(4_000_000_000))),
            seed: 7,
            memory_bytes_max: 16 << 20,
            cache: None,
            shard: ShardId(0),
        };
        ShardStore::open(options).await.unwrap()
    }

    /// D1: URLs that another form recognised would be fetched again as new ones.
    #[tokio::test]
    async fn a_store_keeps_its_form_of_urls_and_another_one_is_refused() {
        let objects = Objects::memory();
        let store = store(&objects).await;
        agree(&store, 4).await.unwrap();
        assert_eq!(number(&store, FORM_ROW).await.unwrap(), Some(FORM_VERSION));
        agree(&store, 4).await.unwrap();
        let other = FORM_VERSION + 1;
        let row = Change::PutMeta(FORM_ROW, other.to_be_bytes().to_vec());
        keep(&store, vec![row]).await.unwrap();
        let refused = agree(&store, 4).await.unwrap_err();
        assert!(matches!(refused, NodeError::Form { found, .. } if found == other), "{refused}");
    }

    #[tokio::test]
    async fn a_store_from_before_there_were_versions_has_the_first() {
        let objects = Objects::memory();
        let store = store(&objects).await;
        let shards = Change::PutMeta(SHARDS_ROW, 4u16.to_be_bytes().to_vec());
        keep(&store, vec![shards]).await.unwrap();
        agree(&store, 4).await.unwrap();
        assert_eq!(number(&store, FORM_ROW).await.unwrap(), Some(FIRST_FORM));
        let refused = agree(&store, 5).await.unwrap_err();
        assert!(matches!(refused, NodeError::Shards { wanted: 5, found: 4 }), "{refused}");
    }
}
