//! Probes: is the process alive, and may it be given work (A4).

use std::time::Duration;

use axum::Json;
use axum::response::IntoResponse as _;
use serde_json::json;

use super::problem::{Kind, Problem};
use super::router::{Call, Handled};
use super::state::CrawlPhase;
use super::status;

/// `GET /healthz`: it answers.
pub(super) async fn alive(_call: Call) -> Handled {
    Ok(Json(json!({ "status": "ok" })).into_response())
}

/// What was found counts for so long: the probe is open to all, so it must cost little.
pub(super) const FOUND_FOR: Duration = Duration::from_secs(1);

/// `GET /readyz`: every shard is up, nothing fails, and the node is not on its way out.
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
    let reasons = status::reasons(&call.state).await;
    if !reasons.is_empty() {
        let detail = format!("degraded: {}", reasons.join("; "));
        return Err(Problem::new(Kind::Unavailable, detail));
    }
    Ok(Json(json!({ "status": "ready" })).into_response())
}
