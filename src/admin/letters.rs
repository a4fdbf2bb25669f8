//! Dead letters: listed, and put back into their queues (F8).

use axum::Json;
use axum::response::IntoResponse as _;
use futures::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::body;
use super::hosts::{READ_DEADLINE, WRITE_DEADLINE, find};
use super::problem::{Kind, Problem};
use super::query::Query;
use super::router::{Call, Handled};
use super::state::{AdminState, Silence};
use crate::protocol::ShardMsg;
use crate::protocol::shard::DeadSelection;
use crate::types::{CrawlUrl, DeadLetter, ShardId, Timestamp, UrlId};

/// A dead letter as it is listed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LetterItem {
    /// The URL.
    pub url: CrawlUrl,
    /// Why it was given up, in one sentence.
    pub reason: String,
    /// Tries made.
    pub attempts: u8,
    /// When the last one ended.
    pub last_at: Timestamp,
}

impl From<DeadLetter> for LetterItem {
    fn from(letter: DeadLetter) -> Self {
        Self {
            url: letter.entry.url,
            reason: letter.reason.to_string(),
            attempts: letter.attempts,
            last_at: letter.last_at,
        }
    }
}

/// `GET /v1/dead-letters`.
pub(super) async fn list(call: Call) -> Handled {
    let limit = usize::from(call.query.limit()?);
    let (first, mut after) = cursor(&call.query)?.unwrap_or_default();
    let (mut items, mut next): (Vec<LetterItem>, _) = (Vec::new(), None);
    for (shard, mailbox) in call.state.shards().into_iter().filter(|(shard, _)| *shard >= first) {
        if shard != first {
            after = None;
        }
        let missing = limit.saturating_sub(items.len());
        if missing == 0 {
            next = Some(format!("{shard}-"));
            break;
        }
        let silent = |silence| Problem::silent(&format!("shard {shard}"), silence);
        let mailbox = mailbox.ok_or_else(|| silent(Silence::Gone))?;
        // One more than fits tells whether there are more.
        let wanted = u16::try_from(missing + 1).unwrap_or(u16::MAX);
        let found: Result<Vec<DeadLetter>, String> = call
            .state
            .ask(&mailbox, READ_DEADLINE, |port| ShardMsg::ListDead(after, wanted, port))
            .await
            .map_err(silent)?;
        let found = found.map_err(|why| Problem::new(Kind::Unavailable, why))?;
        if found.len() > missing {
            let last = missing.checked_sub(1).and_then(|place| found.get(place));
            next = last.map(|letter| format!("{shard}-{}", letter.entry.id));
        }
        items.extend(found.into_iter().take(missing).map(LetterItem::from));
        if next.is_some() {
            break;
        }
    }
    Ok(Json(json!({ "items": items, "next": next })).into_response())
}

fn cursor(query: &Query) -> Result<Option<(ShardId, Option<UrlId>)>, Problem> {
    let Some(text) = query.text("cursor") else { return Ok(None) };
    let parsed = text.split_once('-').and_then(|(shard, id)| {
        let id = if id.is_empty() { None } else { Some(id.parse().ok()?) };
        Some((ShardId(shard.parse().ok()?), id))
    });
    let bad = || Problem::new(Kind::BadCursor, format!("`{text}` is not a cursor of this list"));
    parsed.map(Some).ok_or_else(|| bad().at_key("cursor"))
}

/// The body of a retry: exactly one of the three.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Retry {
    urls: Option<Vec<String>>,
    host: Option<String>,
    all: Option<bool>,
}

/// `POST /v1/dead-letters/retry`.
pub(super) async fn retry(call: Call) -> Handled {
    let Call { state, body, .. } = call;
    let wanted: Retry = body::order(&state, body).await?;
    let chosen = match wanted {
        Retry { urls: Some(urls), host: None, all: None } => by_url(&state, &urls)?,
        Retry { urls: None, host: Some(host), all: None } => {
            let host = find(&state, &host).await?.host_key;
            let shard = state.routes.borrow().shard_of(&host);
            vec![(shard, DeadSelection::Host(host))]
        }
        Retry { urls: None, host: None, all: Some(true) } => {
            state.shards().into_iter().map(|(shard, _)| (shard, DeadSelection::All)).collect()
        }
        Retry { .. } => {
            let detail = "exactly one is taken: `urls`, a list; `host`, a key; `all`, true";
            return Err(Problem::new(Kind::BadBody, detail));
        }
    };
    let asked = chosen.into_iter().map(|(shard, which)| requeue(&state, shard, which));
    let mut requeued = 0;
    for count in join_all(asked).await {
        requeued += count?;
    }
    Ok(Json(json!({ "requeued": requeued })).into_response())
}

/// Sorts URLs by the shard that owns them.
fn by_url(state: &AdminState, urls: &[String]) -> Result<Vec<(ShardId, DeadSelection)>, Problem> {
    let routes = state.routes.borrow();
    let mut sorted = std::collections::BTreeMap::<ShardId, Vec<CrawlUrl>>::new();
    for (place, text) in urls.iter().enumerate() {
        let url = CrawlUrl::parse(text).map_err(|reason| {
            Problem::new(Kind::BadBody, reason.to_string()).at_key(format!("urls[{place}]"))
        })?;
        sorted.entry(routes.shard_of(&url.host_key())).or_default().push(url);
    }
    Ok(sorted.into_iter().map(|(shard, urls)| (shard, DeadSelection::Urls(urls))).collect())
}

async fn requeue(state: &AdminState, shard: ShardId, which: DeadSelection) -> Result<u64, Problem> {
    let mailbox = state.routes.borrow().shard(shard).map(|route| route.shard.clone());
    let silent = |silence| Problem::silent(&format!("shard {shard}"), silence);
    let mailbox = mailbox.ok_or_else(|| silent(Silence::Gone))?;
    let asked = state.ask(&mailbox, WRITE_DEADLINE, |port| ShardMsg::RetryDead(which, port));
    asked.await.map_err(silent)?.map_err(|why| Problem::new(Kind::Unavailable, why))
}
