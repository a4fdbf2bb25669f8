//! How far a crawl is: whether anything is under way, and when something wakes next.

use std::time::Duration;

use ractor::{ActorRef, Message};

use super::plan::Plan;
use crate::protocol::shard::{ParkedHost, ShardView};
use crate::protocol::{Answer, ArchiveMsg, DiscoveryMsg, OutputMsg, PurgeMsg, ShardMsg, ask};
use crate::types::Timestamp;

/// An actor that takes longer to say how it stands counts as busy.
const OBSERVE_WITHIN: Duration = Duration::from_secs(2);

/// Where a crawl stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Progress {
    /// Leases granted and not ended.
    pub in_flight: u32,
    /// When a host may next be asked, or a deferred URL falls due; `None` when nothing is left to
    /// do but what is in flight.
    pub next_wake: Option<Timestamp>,
    /// Something is under way in some stage.
    pub busy: bool,
    /// Hosts that wait for long, with their reasons.
    pub waiting: Vec<ParkedHost>,
    /// `scope.max_pages` is reached.
    pub page_cap_reached: bool,
}

/// Asks every stage.
pub(super) async fn collect(plan: &Plan) -> Progress {
    let routes = std::sync::Arc::clone(&plan.routes.borrow());
    // A shard that is down has something to do: to come back.
    let busy = routes.shards.iter().any(Option::is_none) || routes.shards.is_empty();
    let mut progress = Progress { busy, ..Progress::default() };
    if let Some(discovery) = &routes.discovery {
        let view = look(discovery, DiscoveryMsg::Observe).await;
        progress.busy |= view.is_none_or(|view| view.waiting > 0);
    }
    for route in routes.all() {
        match look(&route.shard, ShardMsg::Observe).await {
            Some(view) => progress.add(&view),
            None => progress.busy = true,
        }
        let view = look(&route.output, OutputMsg::Observe).await;
        progress.busy |= view.is_none_or(|view| view.waiting > 0);
    }
    if let Some(archive) = &routes.archive {
        let view = look(archive, ArchiveMsg::Observe).await;
        progress.busy |= view.is_none_or(|view| view.waiting > 0);
    }
    if let Some(purge) = &routes.purge {
        // One that does not get on goes on at the next start.
        let view = look(purge, PurgeMsg::Observe).await;
        progress.busy |= view.is_none_or(|view| view.undone > 0 && view.failure.is_none());
    }
    progress.page_cap_reached = plan.quota.lock().is_used_up();
    progress
}

/// The terms of the shards that say so, in order.
pub(super) async fn epochs(plan: &Plan) -> Vec<u32> {
    let routes = std::sync::Arc::clone(&plan.routes.borrow());
    let views = routes.all().map(|route| look(&route.shard, ShardMsg::Observe));
    let views = futures::future::join_all(views).await;
    views.into_iter().flatten().map(|view| view.epoch).collect()
}

impl Progress {
    fn add(&mut self, view: &ShardView) {
        let at_work = view.in_flight + view.offers + view.admitting + view.parsing;
        self.in_flight += view.in_flight;
        self.busy |= at_work > 0;
        self.next_wake = [self.next_wake, view.next_wake].into_iter().flatten().min();
        self.waiting.extend(view.parked.iter().cloned());
    }
}

/// How an actor stands, if it says so soon.
pub(super) async fn look<M: Message, T: Send + 'static>(
    actor: &ActorRef<M>,
    question: impl FnOnce(Answer<T>) -> M,
) -> Option<T> {
    within(OBSERVE_WITHIN, ask(actor, question)).await
}

/// The answer, if it comes in time.
pub(super) async fn within<T>(
    limit: Duration,
    answer: impl Future<Output = Option<T>>,
) -> Option<T> {
    tokio::time::timeout(limit, answer).await.ok().flatten()
}
