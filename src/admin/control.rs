//! Orders: pause and resume the crawl or a host, drain, reload.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde::Deserialize;
use serde_json::json;

use super::body;
use super::hosts::{find, order};
use super::problem::{Kind, Problem};
use super::router::{Call, Handled};
use super::state::Control;
use crate::protocol::Answer;
use crate::protocol::shard::HostOrder;

/// The node must have obeyed by then.
const ORDER_DEADLINE: Duration = Duration::from_secs(30);

/// The body of pause and resume.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Whom {
    host: Option<String>,
}

/// `POST /v1/pause`.
pub(super) async fn pause(call: Call) -> Handled {
    switch(call, true, Control::Pause).await
}

/// `POST /v1/resume`.
pub(super) async fn resume(call: Call) -> Handled {
    switch(call, false, Control::Resume).await
}

async fn switch(call: Call, paused: bool, all: fn(Answer<()>) -> Control) -> Handled {
    let Call { state, body, .. } = call;
    let whom: Whom = body::order(&state, body).await?;
    let host = match whom.host {
        None => {
            state.order(ORDER_DEADLINE, all).await.map_err(node)?;
            None
        }
        Some(text) => {
            let host = find(&state, &text).await?.host_key;
            let wanted = HostOrder {
                host: host.clone(),
                paused: Some(paused),
                min_delay: None,
                max_in_flight: None,
                daily_pages: None,
            };
            order(&state, wanted).await?;
            Some(host)
        }
    };
    Ok(Json(json!({ "paused": paused, "host_key": host })).into_response())
}

/// `POST /v1/drain`.
pub(super) async fn drain(call: Call) -> Handled {
    let Call { state, body, .. } = call;
    let Nothing {} = body::order(&state, body).await?;
    state.order(ORDER_DEADLINE, Control::Drain).await.map_err(node)?;
    Ok((StatusCode::ACCEPTED, Json(json!({ "state": "draining" }))).into_response())
}

/// `POST /v1/reload`.
pub(super) async fn reload(call: Call) -> Handled {
    let Call { state, body, .. } = call;
    let Nothing {} = body::order(&state, body).await?;
    let report = state.order(ORDER_DEADLINE, Control::Reload).await.map_err(node)?;
    let report =
        report.map_err(|faults| Problem::new(Kind::BadConfiguration, faults.join("; ")))?;
    Ok(Json(report).into_response())
}

/// A body without fields.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Nothing {}

fn node(silence: super::state::Silence) -> Problem {
    Problem::silent("the node", silence)
}
