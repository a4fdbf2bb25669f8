//! Exclusions at runtime: made, listed, lifted (R5).

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::body;
use super::problem::{Kind, Problem};
use super::router::{Call, Handled};
use super::state::{AdminState, Control, ListedExclusion, PurgeStanding, Refused};
use crate::policy::exclusion::{EXCLUSIONS_MAX, id_of, parse_rule};
use crate::types::{ExclusionRecord, PurgeRecord, Timestamp};

/// An order must be durable in all shards by then.
const ORDER_DEADLINE: Duration = Duration::from_secs(30);
/// Bytes of a rule.
const RULE_BYTES_MAX: usize = 2000;
/// Bytes of the operator's words.
const REASON_BYTES_MAX: usize = 1000;

/// The body that makes one.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Wanted {
    rule: Option<String>,
    reason: Option<String>,
    until: Option<String>,
    purge: Option<bool>,
}

/// `POST /v1/exclusions`.
pub(super) async fn add(call: Call) -> Handled {
    let Call { state, body, .. } = call;
    let wanted: Wanted = body::order(&state, body).await?;
    let purge = wanted.purge == Some(true);
    let record = record(wanted, state.clock.now())?;
    let known = all(&state).await?;
    let is_new = known.iter().all(|other| other.record.id != record.id);
    if known.len() >= EXCLUSIONS_MAX && is_new {
        let detail = format!("{EXCLUSIONS_MAX} exclusions are kept at once; lift some first");
        return Err(Problem::new(Kind::BadBody, detail));
    }
    let record = Box::new(record);
    let made = state.order(ORDER_DEADLINE, |port| Control::Exclude(record, purge, port)).await;
    let made = made.map_err(|silence| Problem::silent("the node", silence))?;
    let (made, order) = made.map_err(refused)?;
    let purge = order.as_ref().map(PurgeStanding::of);
    Ok((StatusCode::CREATED, Json(shown(&made, purge.as_ref()))).into_response())
}

/// `GET /v1/exclusions`.
pub(super) async fn list(call: Call) -> Handled {
    let limit = usize::from(call.query.limit()?);
    let after = call.query.text("cursor").unwrap_or_default();
    if after.chars().any(|letter| !letter.is_ascii_hexdigit()) {
        let detail = format!("`{after}` is not a cursor of this list");
        return Err(Problem::new(Kind::BadCursor, detail).at_key("cursor"));
    }
    let found = all(&call.state).await?;
    let mut rest = found.iter().filter(|listed| listed.record.id.as_str() > after);
    let items: Vec<&ListedExclusion> = rest.by_ref().take(limit).collect();
    let next = items.last().filter(|_| rest.next().is_some()).map(|last| &last.record.id);
    let shown = |listed: &&ListedExclusion| shown(&listed.record, listed.purge.as_ref());
    let items: Vec<Value> = items.iter().map(shown).collect();
    Ok(Json(json!({ "items": items, "next": next })).into_response())
}

/// `DELETE /v1/exclusions/{id}`.
pub(super) async fn lift(call: Call) -> Handled {
    let id = call.argument().to_owned();
    let asked = id.clone();
    let lifted = call.state.order(ORDER_DEADLINE, |port| Control::Lift(asked, port)).await;
    let lifted = lifted.map_err(|silence| Problem::silent("the node", silence))?;
    let (lifted, purge) = lifted.map_err(refused)?.ok_or_else(|| {
        Problem::new(Kind::NotFound, format!("no exclusion has the id `{id}`")).at_key("id")
    })?;
    Ok(Json(shown(&lifted, purge.as_ref().map(PurgeStanding::of).as_ref())).into_response())
}

async fn all(state: &AdminState) -> Result<Vec<ListedExclusion>, Problem> {
    let asked = state.order(ORDER_DEADLINE, Control::Exclusions).await;
    asked.map_err(|silence| Problem::silent("the node", silence))
}

fn refused(why: Refused) -> Problem {
    match why {
        Refused::Conflict(why) => Problem::new(Kind::Conflict, why),
        Refused::Unavailable(why) => Problem::new(Kind::Unavailable, why),
    }
}

/// An exclusion as it is shown.
fn shown(record: &ExclusionRecord, purge: Option<&PurgeStanding>) -> Value {
    json!({
        "id": record.id,
        "rule": record.rule,
        "reason": record.reason,
        "until": record.until,
        "made_at": record.made_at,
        "purge": purge.map(purge_shown),
    })
}

/// How far the removal of what is stored is: what is written down, and what is gone for sure.
fn purge_shown(standing: &PurgeStanding) -> Value {
    let PurgeStanding { record, is_running, failure } = standing;
    let PurgeRecord { ordered_at, done_at, removed, urls, unreadable, .. } = record;
    let state = match (done_at, is_running) {
        (Some(_), _) => "done",
        (None, true) => "running",
        (None, false) => "waiting",
    };
    json!({
        "state": state,
        "ordered_at": ordered_at,
        "done_at": done_at,
        "records": removed.records,
        "bytes": removed.bytes,
        "index_lines": removed.index_lines,
        "page_records": removed.page_records,
        "urls": urls,
        "unreadable": unreadable,
        "failure": failure,
    })
}

/// What is wanted, with everything that can be wrong with it named.
fn record(wanted: Wanted, now: Timestamp) -> Result<ExclusionRecord, Problem> {
    let bad = |key: &str, why: String| Problem::new(Kind::BadBody, why).at_key(key);
    let text = wanted.rule.ok_or_else(|| bad("rule", "a rule is wanted".to_owned()))?;
    if text.len() > RULE_BYTES_MAX {
        return Err(bad("rule", format!("a rule has at most {RULE_BYTES_MAX} bytes")));
    }
    let rule = parse_rule(text.trim()).map_err(|why| bad("rule", why))?;
    if wanted.purge == Some(true) && wanted.until.is_some() {
        let why = "an exclusion that removes what is stored has no end of its own; lift it when \
            that is done, or give it an end then";
        return Err(bad("until", why.to_owned()));
    }
    let until = match wanted.until {
        None => None,
        Some(text) => Some(Timestamp::parse_rfc3339(&text).ok_or_else(|| {
            bad("until", format!("`{text}` is no time such as 2026-12-24T18:00:00Z"))
        })?),
    };
    if let Some(until) = until.filter(|until| *until <= now) {
        return Err(bad("until", format!("{until} is past; it is {now}")));
    }
    let reason = wanted.reason.filter(|words| !words.trim().is_empty());
    if reason.as_ref().is_some_and(|words| words.len() > REASON_BYTES_MAX) {
        return Err(bad("reason", format!("a reason has at most {REASON_BYTES_MAX} bytes")));
    }
    Ok(ExclusionRecord { id: id_of(&rule), rule: rule.to_string(), reason, until, made_at: now })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(rule: &str) -> Wanted {
        Wanted { rule: Some(rule.to_owned()), ..Wanted::default() }
    }

    #[test]
    fn a_rule_is_kept_in_its_one_form() {
        let now = Timestamp::from_secs(100);
        let made = record(wanted(" host:A.Test:443 "), now).unwrap();
        assert_eq!((made.rule.as_str(), made.made_at), ("host:a.test", now));
        assert_eq!(made.id, record(wanted("host:a.test"), now).unwrap().id);
        assert_eq!(made.id.len(), 16);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let now = Timestamp::from_secs(100);
        let until = |text: &str| Wanted { until: Some(text.to_owned()), ..wanted("host:a.test") };
        for (wrong, said) in [
            (Wanted::default(), "a rule is wanted"),
            (wanted("regex:x"), "regular expression"),
            (wanted("a.test"), "begins with none of host:, domain: and surt:"),
            (until("tomorrow"), "2026-12-24T18:00:00Z"),
            (until("1970-01-01T00:01:40Z"), "is past"),
            (Wanted { purge: Some(true), ..until("2999-01-01T00:00:00Z") }, "no end of its own"),
            (Wanted { reason: Some("x".repeat(2000)), ..wanted("host:a.test") }, "at most 1000"),
        ] {
            let problem = record(wrong, now).unwrap_err();
            assert!(problem.detail().contains(said), "{said}: {}", problem.detail());
        }
    }
}
