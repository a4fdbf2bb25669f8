//! R5: exclusions of the whole node: every shard has all of them, and so do the workers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use ractor::ActorRef;

use super::plan::Plan;
use super::progress::within;
use crate::policy::exclusion::Exclusions;
use crate::protocol::{Answer, ShardMsg, ask};
use crate::types::ExclusionRecord;

/// An order must be durable in every shard by then.
const DURABLE_WITHIN: Duration = Duration::from_secs(25);

/// At the start: what any shard has, all get. One that only some have was never answered.
pub(super) async fn gather(plan: &Plan, shards: &[ActorRef<ShardMsg>]) {
    let mut found: BTreeMap<String, ExclusionRecord> = BTreeMap::new();
    for shard in shards {
        for record in ask(shard, ShardMsg::ListExclusions).await.unwrap_or_default() {
            match found.get(&record.id) {
                Some(other) if other.made_at >= record.made_at => {}
                Some(_) | None => drop(found.insert(record.id.clone(), record)),
            }
        }
    }
    for record in found.values() {
        for shard in shards {
            let order = ShardMsg::Exclude(Box::new(record.clone()), Answer::ignored());
            // A shard that has failed meanwhile gets them when it is opened again.
            shard.send_message(order).ok();
        }
    }
    plan.set_exclusions(Exclusions::new(found.into_values()));
}

/// In force at once: exchanges are cut, nothing is granted. Answered when durable everywhere.
///
/// # Errors
/// Which shards did not answer; the exclusion is in force all the same, as long as the node runs.
pub(super) async fn exclude(plan: &Plan, record: ExclusionRecord) -> Result<(), String> {
    let before = Arc::clone(&plan.exclusions().borrow());
    plan.set_exclusions(before.with(record.clone()));
    let told = |answer| ShardMsg::Exclude(Box::new(record.clone()), answer);
    tell_all(plan, told).await.map_err(|silent| {
        format!("the exclusion is in force, but not durable in {silent}; make it once more")
    })
}

/// The exclusion is gone; `None` where there is none.
///
/// # Errors
/// Which shards did not answer.
pub(super) async fn lift(plan: &Plan, id: &str) -> Result<Option<ExclusionRecord>, String> {
    let now = plan.world.clock.now();
    let exclusions = Arc::clone(&plan.exclusions().borrow());
    let Some(record) = exclusions.in_force(now).find(|record| record.id == id) else {
        return Ok(None);
    };
    tell_all(plan, |answer| ShardMsg::LiftExclusion(id.to_owned(), answer))
        .await
        .map_err(|silent| format!("the exclusion still holds in {silent}; lift it once more"))?;
    plan.set_exclusions(exclusions.without(id));
    Ok(Some(record.clone()))
}

/// Tells every shard; the error names those that have not answered.
async fn tell_all(plan: &Plan, order: impl Fn(Answer<()>) -> ShardMsg) -> Result<(), String> {
    let routes = Arc::clone(&plan.routes.borrow());
    let told = routes.shards.iter().enumerate().map(|(number, route)| {
        let asked = route.as_ref().map(|route| ask(&route.shard, &order));
        async move {
            let answered = match asked {
                Some(asked) => within(DURABLE_WITHIN, asked).await,
                None => None,
            };
            answered.is_none().then(|| format!("shard {number}"))
        }
    });
    let silent: Vec<String> = join_all(told).await.into_iter().flatten().collect();
    if silent.is_empty() { Ok(()) } else { Err(silent.join(", ")) }
}
