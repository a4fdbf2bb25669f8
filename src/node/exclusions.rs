//! R5: exclusions of the whole node: every shard has all of them, and so do the workers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use ractor::ActorRef;

use super::plan::Plan;
use super::progress::{look, within};
use crate::admin::{ListedExclusion, PurgeStanding, Refused, WithPurge};
use crate::policy::exclusion::{Exclusions, PURGES_MAX};
use crate::protocol::{Answer, PurgeMsg, ShardMsg, ask};
use crate::types::{ExclusionRecord, PurgeRecord};

/// An order must be durable in every shard by then.
const DURABLE_WITHIN: Duration = Duration::from_secs(25);

/// At the start: what any shard has, all get. One that only some have was never answered. Of a
/// purge whoever is furthest says how far it is: one that is done anywhere is done.
pub(super) async fn gather(plan: &Plan, shards: &[ActorRef<ShardMsg>]) {
    let mut found: BTreeMap<String, ExclusionRecord> = BTreeMap::new();
    let mut purges: BTreeMap<String, PurgeRecord> = BTreeMap::new();
    for shard in shards {
        for record in ask(shard, ShardMsg::ListExclusions).await.unwrap_or_default() {
            match found.get(&record.id) {
                Some(other) if other.made_at >= record.made_at => {}
                Some(_) | None => drop(found.insert(record.id.clone(), record)),
            }
        }
        for record in ask(shard, ShardMsg::ListPurges).await.unwrap_or_default() {
            match purges.get(&record.id) {
                Some(other) if !record.replaces(other) => {}
                Some(_) | None => drop(purges.insert(record.id.clone(), record)),
            }
        }
    }
    for shard in shards {
        // A shard that has failed meanwhile gets them when it is opened again.
        for record in found.values() {
            let order = ShardMsg::Exclude(Box::new(record.clone()), Answer::ignored());
            shard.send_message(order).ok();
        }
        for record in purges.values() {
            let order = ShardMsg::PutPurge(Box::new(record.clone()), Answer::ignored());
            shard.send_message(order).ok();
        }
    }
    let exclusions = Exclusions::new(found.into_values());
    let exclusions = purges.into_values().fold(exclusions, |all, order| all.with_purge(order));
    plan.change_exclusions(|_| exclusions);
}

/// In force at once: exchanges are cut, nothing is granted. Answered with the exclusion as it
/// counts when it is durable everywhere, and with the order to remove what is stored, if that is
/// wanted.
///
/// # Errors
/// It would end before its purge has; or which shards did not answer: the exclusion is in force all
/// the same, as long as the node runs.
pub(super) async fn exclude(
    plan: &Plan,
    record: ExclusionRecord,
    purge: bool,
) -> Result<WithPurge, Refused> {
    let before = Arc::clone(&plan.exclusions().borrow());
    let record = before.renewed(record, plan.world.clock.now());
    let known = before.purge(&record.id);
    let undone = known.filter(|order| order.done_at.is_none());
    if undone.is_some() && record.until.is_some() {
        let why = "what is stored is still being removed; the exclusion can have an end when that \
            is done";
        return Err(Refused::Conflict(why.to_owned()));
    }
    if purge && known.is_none() && before.purges().count() >= PURGES_MAX {
        let why = format!("{PURGES_MAX} purges are remembered, and no more");
        return Err(Refused::Conflict(why));
    }
    // The same order again, while it is not done, is the one that there is.
    let made = || PurgeRecord::new(record.id.clone(), record.rule.clone(), record.made_at);
    let order = purge.then(|| undone.cloned().unwrap_or_else(made));
    plan.change_exclusions(|all| {
        let all = all.with(record.clone());
        order.clone().map_or_else(|| all.clone(), |order| all.with_purge(order))
    });
    let lasting = |silent| {
        let why = "the exclusion is in force, but not durable in";
        Refused::Unavailable(format!("{why} {silent}; make it once more"))
    };
    let told = |answer| ShardMsg::Exclude(Box::new(record.clone()), answer);
    tell_all(plan, told).await.map_err(lasting)?;
    if let Some(order) = &order {
        let told = |answer| ShardMsg::PutPurge(Box::new(order.clone()), answer);
        tell_all(plan, told).await.map_err(lasting)?;
        if let Some(purge) = &plan.routes.borrow().purge {
            // One that is being started looks by itself.
            purge.send_message(PurgeMsg::Look).ok();
        }
    }
    Ok((record, order.or(known.cloned())))
}

/// The exclusion is gone; `None` where there is none.
///
/// # Errors
/// Its purge is not done: what is removed would be fetched again meanwhile; or which shards did not
/// answer.
pub(super) async fn lift(
    plan: &Plan,
    id: &str,
) -> Result<Option<(ExclusionRecord, Option<PurgeRecord>)>, Refused> {
    let now = plan.world.clock.now();
    let exclusions = Arc::clone(&plan.exclusions().borrow());
    let Some(record) = exclusions.in_force(now).find(|record| record.id == id) else {
        return Ok(None);
    };
    let purge = exclusions.purge(id);
    if purge.is_some_and(|order| order.done_at.is_none()) {
        let why = "what is stored is still being removed; lift the exclusion when that is done";
        return Err(Refused::Conflict(why.to_owned()));
    }
    let told = |answer| ShardMsg::LiftExclusion(id.to_owned(), answer);
    tell_all(plan, told).await.map_err(|silent| {
        let why = "the exclusion still holds in";
        Refused::Unavailable(format!("{why} {silent}; lift it once more"))
    })?;
    plan.change_exclusions(|all| all.without(id));
    Ok(Some((record.clone(), purge.cloned())))
}

/// The exclusions in force, each with its purge as far as that is.
pub(super) async fn list(plan: &Plan) -> Vec<ListedExclusion> {
    let now = plan.world.clock.now();
    let exclusions = Arc::clone(&plan.exclusions().borrow());
    let actor = plan.routes.borrow().purge.clone();
    let view = match &actor {
        Some(actor) if exclusions.purges().any(|order| order.done_at.is_none()) => {
            look(actor, PurgeMsg::Observe).await
        }
        Some(_) | None => None,
    };
    let view = view.unwrap_or_default();
    let standing = |order: &PurgeRecord| match &view.current {
        Some(current) if current.id == order.id && order.done_at.is_none() => {
            PurgeStanding { failure: view.failure.clone(), ..PurgeStanding::running(current) }
        }
        Some(_) | None => PurgeStanding::of(order),
    };
    let listed = exclusions.in_force(now).map(|record| ListedExclusion {
        record: record.clone(),
        purge: exclusions.purge(&record.id).map(standing),
    });
    listed.collect()
}

/// Tells every shard; the error names those that have not answered.
pub(super) async fn tell_all(
    plan: &Plan,
    order: impl Fn(Answer<()>) -> ShardMsg,
) -> Result<(), String> {
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
