//! Probes: is the process alive, and may it be given work (A4).

use axum::Json;
use axum::response::IntoResponse as _;
use serde_json::json;

use super::problem::{Kind, Problem};
use super::router::{Call, Handled};
use super::state::CrawlPhase;

/// `GET /healthz`: it answers.
pub(super) async fn alive(_call: Call) -> Handled {
    Ok(Json(json!({ "status": "ok" })).into_response())
}

/// `GET /readyz`: every shard is up and the node is not on its way out. Asks nobody: it is open to
/// all, so it must cost nothing.
pub(super) async fn ready(call: Call) -> Handled {
    let draining = *call.state.phase.borrow() == CrawlPhase::Draining;
    let shards = call.state.shards();
    let up = shards.iter().filter(|(_, mailbox)| mailbox.is_some()).count();
    if draining {
        return Err(Problem::new(Kind::Unavailable, "the node is draining"));
    }
    if up == 0 || up < shards.len() {
        let detail = format!("{up} of {} shards are up", shards.len());
        return Err(Problem::new(Kind::Unavailable, detail));
    }
    Ok(Json(json!({ "status": "ready" })).into_response())
}
