//! One URL: what is known of it.

use axum::Json;
use axum::response::IntoResponse as _;
use serde::{Deserialize, Serialize};

use super::hosts::{READ_DEADLINE, ask_owner};
use super::problem::{Kind, Problem};
use super::query::Query;
use super::router::{Call, Handled};
use crate::protocol::ShardMsg;
use crate::types::{
    ArchivePointer, CrawlUrl, HostKey, Outcome, Timestamp, UrlId, UrlStatus, UrlVersion, UrlView,
};

/// A URL as `GET /v1/urls` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlState {
    /// As it is requested.
    pub url: CrawlUrl,
    /// Its identity.
    pub url_id: UrlId,
    /// Its host.
    pub host_key: HostKey,
    /// `queued`, `in_flight`, `retrying`, `sleeping`, `fetched`, `dead` or `gone`.
    pub state: String,
    /// Raised by every revisit.
    pub version: UrlVersion,
    /// The last status code.
    pub status: Option<u16>,
    /// How the last exchange ended.
    pub outcome: Option<Outcome>,
    /// Why it stands there, in one sentence.
    pub reason: Option<String>,
    /// Links away from a seed.
    pub depth: u16,
    /// Its band, 0 first.
    pub priority: u8,
    /// The page that named it; null for a seed.
    pub discovered_from: Option<CrawlUrl>,
    /// When it became known.
    pub discovered_at: Timestamp,
    /// When the last exchange ended.
    pub last_fetched_at: Option<Timestamp>,
    /// When it is due again.
    pub next_fetch_at: Option<Timestamp>,
    /// Tries in this version.
    pub attempts: u8,
    /// SHA-1 of the payload.
    pub digest: Option<String>,
    /// Where the response lies.
    pub archive: Option<ArchivePointer>,
}

impl UrlState {
    /// A URL as it stands now.
    pub fn new(view: UrlView, now: Timestamp) -> Self {
        let reason = view.reason(now);
        let standing = view.visit.as_ref().map_or(UrlStatus::Queued, |visit| visit.status);
        let state = if view.lease.is_some() { "in_flight" } else { name(standing) };
        let record = view.record;
        let host_key = record.url.host_key();
        let visit = view.visit;
        let last = visit.as_ref();
        Self {
            url_id: view.id,
            host_key,
            state: state.to_owned(),
            version: last.map(|visit| visit.version).unwrap_or_default(),
            status: last.and_then(|visit| visit.status_code),
            outcome: last.and_then(|visit| visit.outcome),
            reason,
            depth: record.depth,
            priority: record.band,
            discovered_from: record.discovered_from,
            discovered_at: record.discovered_at,
            last_fetched_at: last.and_then(|visit| visit.last_fetched_at),
            next_fetch_at: last.and_then(|visit| visit.next_fetch_at),
            attempts: last.map_or(0, |visit| visit.attempts),
            url: record.url,
            digest: last.and_then(|visit| visit.digest.clone()),
            archive: visit.and_then(|visit| visit.archive),
        }
    }
}

fn name(status: UrlStatus) -> &'static str {
    match status {
        UrlStatus::Queued => "queued",
        UrlStatus::Retrying => "retrying",
        UrlStatus::Sleeping => "sleeping",
        UrlStatus::Fetched => "fetched",
        UrlStatus::Dead => "dead",
        UrlStatus::Gone => "gone",
    }
}

/// `GET /v1/urls`.
pub(super) async fn show(call: Call) -> Handled {
    let url = url_of(&call.query)?;
    let (asked, host) = (url.clone(), url.host_key());
    let found =
        ask_owner(&call.state, &host, READ_DEADLINE, |port| ShardMsg::LookUpUrl(asked, port));
    let found = found.await?.map_err(|why| Problem::new(Kind::Unavailable, why))?;
    let view = found.ok_or_else(|| {
        Problem::new(Kind::NotFound, format!("`{url}` is not known")).at_key("url")
    })?;
    Ok(Json(UrlState::new(*view, call.state.clock.now())).into_response())
}

/// The parameter `url`.
fn url_of(query: &Query) -> Result<CrawlUrl, Problem> {
    let text = query.text("url").unwrap_or_default();
    CrawlUrl::parse(text)
        .map_err(|reason| Problem::new(Kind::BadParameter, reason.to_string()).at_key("url"))
}
