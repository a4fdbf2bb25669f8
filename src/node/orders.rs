//! Orders of operators to the whole node: pause, resume, drain, reload.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tracing::warn;

use super::error::NodeError;
use super::exclusions;
use super::plan::Plan;
use super::progress::look;
use super::settings;
use crate::admin::{Control, CrawlPhase, ReloadReport};
use crate::config::{Config, ConfigFaults, Effect};
use crate::protocol::{AddressMsg, DiscoveryMsg, ShardMsg};
use crate::telemetry::ConfigReloaded;

/// Reads the configuration again, from where it came.
pub type Reloader = Arc<dyn Fn() -> Result<Config, ConfigFaults> + Send + Sync>;

/// Obeys until nobody can give orders any more.
pub(super) async fn obey(
    plan: Arc<Plan>,
    mut orders: mpsc::Receiver<Control>,
    phase: watch::Sender<CrawlPhase>,
    reloader: Option<Reloader>,
) {
    while let Some(order) = orders.recv().await {
        match order {
            Control::Pause(answer) => {
                pause_shards(&plan, true).await;
                phase.send_replace(CrawlPhase::Paused);
                answer.send(());
            }
            Control::Resume(answer) => {
                pause_shards(&plan, false).await;
                phase.send_replace(CrawlPhase::Running);
                answer.send(());
            }
            Control::Drain(answer) => {
                plan.begin_drain();
                tell_shards(&plan, || ShardMsg::Drain);
                phase.send_replace(CrawlPhase::Draining);
                answer.send(());
            }
            Control::Exclude(record, purge, answer) => {
                answer.send(exclusions::exclude(&plan, *record, purge).await);
            }
            Control::Lift(id, answer) => answer.send(exclusions::lift(&plan, &id).await),
            Control::Exclusions(answer) => answer.send(exclusions::list(&plan).await),
            Control::Reload(answer) => answer.send(read_again(&plan, reloader.as_ref())),
        }
    }
}

fn tell_shards(plan: &Plan, message: impl Fn() -> ShardMsg) {
    for route in plan.routes.borrow().all() {
        if route.shard.send_message(message()).is_err() {
            warn!("an order did not reach a shard that is restarting");
        }
    }
}

/// Durable in every shard that is up when it returns.
pub(super) async fn pause_shards(plan: &Plan, paused: bool) {
    // A shard that is down hears of it when it comes back.
    plan.set_paused(paused);
    let routes = Arc::clone(&plan.routes.borrow());
    let told = routes.all().map(|route| look(&route.shard, |port| ShardMsg::Pause(paused, port)));
    if futures::future::join_all(told).await.iter().any(Option::is_none) {
        warn!("an order did not reach a shard that is restarting");
    }
}

/// Whether an earlier run left the crawl paused.
pub(super) async fn is_paused(plan: &Plan) -> bool {
    let routes = Arc::clone(&plan.routes.borrow());
    for route in routes.all() {
        let view = look(&route.shard, ShardMsg::Observe).await;
        if view.is_some_and(|view| view.paused) {
            return true;
        }
    }
    false
}

fn read_again(plan: &Plan, reloader: Option<&Reloader>) -> Result<ReloadReport, Vec<String>> {
    let Some(reloader) = reloader else {
        return Err(vec!["this node was started without a file to read again".to_owned()]);
    };
    let new = reloader()
        .map_err(|faults| faults.faults.iter().map(ToString::to_string).collect::<Vec<String>>())?;
    reload(plan, &new).map_err(|error| vec![error.to_string()])
}

/// What is safe changes at once; the rest is named and waits for a restart.
pub(super) fn reload(plan: &Plan, new: &Config) -> Result<ReloadReport, NodeError> {
    let old = plan.config();
    let changes = old.changes(new);
    let config = old.reloaded(new);
    plan.settings.replace(&config, &plan.memory)?;
    plan.quota.lock().set_rules(settings::quota(&config));
    let rules = settings::addresses(&config);
    plan.set_config(config);
    tell_shards(plan, || ShardMsg::Reload);
    let routes = plan.routes.borrow();
    for owner in &routes.addresses {
        // An owner that is restarting starts with the new rules.
        owner.send_message(AddressMsg::Reload(rules)).ok();
    }
    if let Some(discovery) = &routes.discovery {
        discovery.send_message(DiscoveryMsg::Reload).ok();
    }
    let keys = |effect: Effect| -> Vec<String> {
        let wanted = changes.iter().filter(|change| change.effect == effect);
        wanted.map(|change| change.key.clone()).collect()
    };
    let (applied, needs_restart) = (keys(Effect::Live), keys(Effect::Restart));
    ConfigReloaded { applied: &applied, needs_restart: &needs_restart }.emit(&plan.metrics);
    Ok(ReloadReport { applied, needs_restart })
}
