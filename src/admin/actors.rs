//! The tree of actors, and the node in its cluster (U2).

use std::time::Duration;

use axum::Json;
use axum::response::IntoResponse as _;
use serde_json::{Value, json};

use super::problem::Problem;
use super::router::{Call, Handled};
use super::status::{sum_up, survey};
use crate::protocol::RootMsg;

/// The tree must have come by then.
const TREE_DEADLINE: Duration = Duration::from_secs(5);

/// `GET /v1/actors`.
pub(super) async fn tree(call: Call) -> Handled {
    let asked = call.state.ask(&call.state.root, TREE_DEADLINE, RootMsg::Observe).await;
    let tree = asked.map_err(|silence| Problem::silent("the root", silence))?;
    Ok(Json(tree).into_response())
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
