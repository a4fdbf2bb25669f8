//! A clean stop: granting ends, what is in flight gets a moment, then stage by stage in the order
//! of the flow everything is synced and closed. What did not fit in the time is in the stores, and
//! goes on at the next start.

use std::sync::Arc;
use std::time::Duration;

use tracing::debug;

use super::Node;
use super::error::NodeError;
use super::progress::{look, within};
use crate::admin::Status;
use crate::protocol::{ArchiveMsg, DiscoveryMsg, OutputMsg, PoolMsg, Routes, ShardMsg, ask};

/// How often a stage is asked whether it is done.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What stores get, beyond the limit, to become durable.
const STORES_WITHIN: Duration = Duration::from_secs(15);

impl Node {
    /// Stops within about `limit`: exchanges in flight get half of it to end by themselves. Gives
    /// how the node stood when nothing was in flight any more, so that every page is in it.
    ///
    /// # Errors
    /// Something could not be made durable in time; it goes on from the last durable state.
    pub async fn stop(mut self, limit: Duration) -> Result<Status, NodeError> {
        self.plan.begin_stop();
        let routes = Arc::clone(&self.plan.routes.borrow());
        for route in routes.all() {
            // A shard that is restarting grants nothing.
            route.shard.send_message(ShardMsg::Drain).ok();
        }
        self.end_fetching(&routes, limit / 2).await;
        self.end_parsing(&routes, limit / 2).await;
        let status = self.status().await;
        // What a purge does with a file it does to the end, or leaves the file as it was.
        within(limit.max(STORES_WITHIN), async { Some(self.plan.purge_turn.lock().await) }).await;
        let closed = close_outputs(&routes, limit).await;
        let stores = close_shards(&routes).await;
        self.admin_stop.send_replace(true);
        for task in std::mem::take(&mut self.admin_tasks) {
            tokio::time::timeout(limit, task).await.ok();
        }
        self.orders.abort();
        self.root.stop(None);
        tokio::time::timeout(STORES_WITHIN, self.root_task).await.ok();
        if let Some(snapshots) = self.snapshots.take()
            && let Err(error) = snapshots.flush()
        {
            debug!(%error, "snapshots not flushed: hosts wake from their rows");
        }
        drop(self.directory.take());
        match (closed, stores) {
            (true, Ok(())) => Ok(status),
            (false, Ok(())) => Err(NodeError::Unclean("an output did not close".to_owned())),
            (_, Err(why)) => Err(NodeError::Unclean(why)),
        }
    }

    /// What is in flight may end by itself; then the workers stop, and the archive closes its file.
    async fn end_fetching(&self, routes: &Routes, limit: Duration) {
        let pool = routes.pools.iter().find(|(name, _)| *name == "fetch");
        if let Some((_, pool)) = pool {
            let until = self.plan.world.clock.now() + limit;
            while self.plan.world.clock.now() < until {
                if look(pool, PoolMsg::Observe).await.is_none_or(|view| view.busy == 0) {
                    break;
                }
                self.plan.world.clock.sleep(LOOK_EVERY).await;
            }
            look(pool, PoolMsg::Kill).await;
        }
        if let Some(archive) = &routes.archive {
            within(limit.max(STORES_WITHIN), ask(archive, ArchiveMsg::Close)).await;
        }
    }

    /// Pages that are with the parsers are parsed and published, while there is time.
    async fn end_parsing(&self, routes: &Routes, limit: Duration) {
        let until = self.plan.world.clock.now() + limit;
        while self.plan.world.clock.now() < until {
            let mut busy = false;
            for route in routes.all() {
                let view = look(&route.shard, ShardMsg::Observe).await;
                busy |= view.is_some_and(|view| view.being_parsed > 0);
            }
            if let Some(discovery) = &routes.discovery {
                let view = look(discovery, DiscoveryMsg::Observe).await;
                busy |= view.is_some_and(|view| view.waiting > 0);
            }
            if !busy {
                break;
            }
            self.plan.world.clock.sleep(LOOK_EVERY).await;
        }
        if let Some((_, pool)) = routes.pools.iter().find(|(name, _)| *name == "parse") {
            look(pool, PoolMsg::Kill).await;
        }
    }
}

/// Outputs sync and commit what they have.
async fn close_outputs(routes: &Routes, limit: Duration) -> bool {
    let mut closed = true;
    for route in routes.all() {
        let limit = limit.max(STORES_WITHIN);
        closed &= within(limit, ask(&route.output, OutputMsg::Close)).await.is_some();
    }
    closed
}

/// Hosts go to rest, all becomes durable, the stores close.
async fn close_shards(routes: &Routes) -> Result<(), String> {
    let closing =
        routes.all().map(|route| within(STORES_WITHIN, ask(&route.shard, ShardMsg::Close)));
    let closed = futures::future::join_all(closing).await;
    closed.into_iter().try_for_each(|closed| {
        closed.unwrap_or_else(|| Err("a shard did not close in time".to_owned()))
    })
}
