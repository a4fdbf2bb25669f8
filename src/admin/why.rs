//! `GET /v1/why`: why a URL was, will be or will not be fetched (B1).

use axum::Json;
use axum::response::IntoResponse as _;

use super::hosts::{READ_DEADLINE, ask_owner};
use super::problem::{Kind, Problem};
use super::router::{Call, Handled};
use super::state::{AdminState, Silence};
use crate::policy::why::{Facts, Judged, PageAsks, explain, no_url, stored_page};
use crate::protocol::{DiscoveryMsg, ShardMsg};
use crate::types::CrawlUrl;

/// `GET /v1/why`.
pub(super) async fn show(call: Call) -> Handled {
    let given = call.query.text("url").unwrap_or_default();
    let url = match CrawlUrl::parse(given) {
        Ok(url) => url,
        // It is a verdict like any other: the question was right.
        Err(reason) => return Ok(Json(no_url(given, &reason)).into_response()),
    };
    let (asked, host) = (url.clone(), url.host_key());
    let facts = ask_owner(&call.state, &host, READ_DEADLINE, |port| ShardMsg::Why(asked, port));
    let facts = facts.await?.map_err(|why| Problem::new(Kind::Unavailable, why))?;
    let depth = facts.view.as_ref().map_or(0, |view| view.record.depth);
    let silent = |silence| Problem::silent("discovery", silence);
    let discovery = call.state.discovery().ok_or_else(|| silent(Silence::Gone))?;
    let asked = url.clone();
    let judge = |port| DiscoveryMsg::Judge(asked, depth, port);
    let judged: Judged = call.state.ask(&discovery, READ_DEADLINE, judge).await.map_err(silent)?;
    let page = page(&call.state, &url, &facts).await;
    Ok(Json(explain(&url, &judged, &facts, page.as_ref())).into_response())
}

/// What its stored page asks for, where it has one, or why that cannot be read.
async fn page(
    state: &AdminState,
    url: &CrawlUrl,
    facts: &Facts,
) -> Option<Result<PageAsks, String>> {
    let (pointer, fetched_at) = stored_page(facts)?;
    let reading = async {
        let _place = state.shared.reading.take(1).await;
        state.pages.asks(url, pointer, fetched_at).await
    };
    match state.within(READ_DEADLINE, reading).await {
        Ok(read) => read.transpose(),
        Err(silence) => Some(Err(format!("the archive {}", silence.words()))),
    }
}
