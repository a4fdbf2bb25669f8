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
use super::state::{AdminState, Control};
use crate::policy::exclusion::{EXCLUSIONS_MAX, id_of, parse_rule};
use crate::types::{ExclusionRecord, Timestamp};

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
    let record = record(wanted, state.clock.now())?;
    let known = all(&state).await?;
    if known.len() >= EXCLUSIONS_MAX && known.iter().all(|other| other.id != record.id) {
        let detail = format!("{EXCLUSIONS_MAX} exclusions are kept at once; lift some first");
        return Err(Problem::new(Kind::BadBody, detail));
    }
    let boxed = Box::new(record.clone());
    let made = state.order(ORDER_DEADLINE, |port| Control::Exclude(boxed, port)).await;
    let made = made.map_err(|silence| Problem::silent("the node", silence))?;
    made.map_err(|why| Problem::new(Kind::Unavailable, why))?;
    Ok((StatusCode::CREATED, Json(shown(&record))).into_response())
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
    let mut rest = found.iter().filter(|record| record.id.as_str() > after);
    let items: Vec<&ExclusionRecord> = rest.by_ref().take(limit).collect();
    let next = items.last().filter(|_| rest.next().is_some()).map(|last| &last.id);
    let items: Vec<Value> = items.iter().map(|record| shown(record)).collect();
    Ok(Json(json!({ "items": items, "next": next })).into_response())
}

/// `DELETE /v1/exclusions/{id}`.
pub(super) async fn lift(call: Call) -> Handled {
    let id = call.argument().to_owned();
    let asked = id.clone();
    let lifted = call.state.order(ORDER_DEADLINE, |port| Control::Lift(asked, port)).await;
    let lifted = lifted.map_err(|silence| Problem::silent("the node", silence))?;
    let lifted = lifted.map_err(|why| Problem::new(Kind::Unavailable, why))?;
    let lifted = lifted.ok_or_else(|| {
        Problem::new(Kind::NotFound, format!("no exclusion has the id `{id}`")).at_key("id")
    })?;
    Ok(Json(shown(&lifted)).into_response())
}

async fn all(state: &AdminState) -> Result<Vec<ExclusionRecord>, Problem> {
    let asked = state.order(ORDER_DEADLINE, Control::Exclusions).await;
    asked.map_err(|silence| Problem::silent("the node", silence))
}

/// An exclusion as it is shown.
fn shown(record: &ExclusionRecord) -> Value {
    json!({
        "id": record.id,
        "rule": record.rule,
        "reason": record.reason,
        "until": record.until,
        "made_at": record.made_at,
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
    if wanted.purge == Some(true) {
        let why = "stored content is not removed by this version; make the exclusion without \
            `purge`, and nothing more is fetched";
        return Err(bad("purge", why.to_owned()));
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
            (Wanted { purge: Some(true), ..wanted("host:a.test") }, "not removed"),
            (Wanted { reason: Some("x".repeat(2000)), ..wanted("host:a.test") }, "at most 1000"),
        ] {
            let problem = record(wrong, now).unwrap_err();
            assert!(problem.detail().contains(said), "{said}: {}", problem.detail());
        }
    }
}
