//! The tree of actors, and the node in its cluster (U2).

use std::time::Duration;

use axum::Json;
use axum::response::IntoResponse as _;
use serde_json::{Value, json};

use super::problem::Problem;
use super::router::{Call, Handled};
use super::status::{Survey, sum_up, survey};
use crate::protocol::RootMsg;

/// The tree must have come by then.
const TREE_DEADLINE: Duration = Duration::from_secs(5);

/// `GET /v1/actors`.
pub(super) async fn tree(call: Call) -> Handled {
    let state = &call.state;
    let asked = state.ask(&state.root, TREE_DEADLINE, RootMsg::Observe);
    let (asked, survey) = futures::join!(asked, survey(state));
    let mut tree = asked.map_err(|silence| Problem::silent("the root", silence))?;
    for child in &mut tree.children {
        child.restarts += restarts_below(&survey, &child.name);
    }
    Ok(Json(tree).into_response())
}

/// What a pool or a shard has started again below itself: the tree knows its children by number
/// only, and a number ends with its actor.
fn restarts_below(survey: &Survey, name: &str) -> u64 {
    let pools = survey.pools.iter().filter(|(pool, _)| pool == name);
    let pools = pools.filter_map(|(_, view)| Some(view.as_ref().ok()?.restarts));
    let shards = survey.shards.iter().filter(|(shard, _)| name == format!("shard-{shard}"));
    let shards = shards.filter_map(|(_, view)| Some(view.as_ref().ok()?.restarts));
    pools.chain(shards).sum()
}

/// `GET /v1/cluster`.
pub(super) async fn cluster(call: Call) -> Handled {
    let survey = survey(&call.state).await;
    let status = sum_up(&call.state, &survey);
    let node = &call.state.settings.node;
    let shards: Vec<Value> = survey
        .shards
        .iter()
        .map(|(shard, view)| match view {
            Ok(view) => json!({
                "shard": shard,
                "node": node,
                "state": if view.degraded.is_empty() { "up" } else { "degraded" },
                "reasons": view.degraded,
                "epoch": view.epoch,
                "hosts": view.hosts_known,
                "urls": view.urls.known,
            }),
            Err(silence) => json!({
                "shard": shard,
                "node": node,
                "state": "down",
                "reasons": [format!("shard {shard} {}", silence.words())],
                "epoch": null,
                "hosts": null,
                "urls": null,
            }),
        })
        .collect();
    let nodes = json!([{
        "node": node,
        "state": status.state,
        "started_at": status.started_at,
        "version": status.version,
        "shards": survey.shards.iter().map(|(shard, _)| shard).collect::<Vec<_>>(),
    }]);
    Ok(Json(json!({ "nodes": nodes, "shards": shards })).into_response())
}
