//! Hosts by state, one host, and what an operator sets for it (U2, F11).

use std::fmt;
use std::time::Duration;

use axum::Json;
use axum::response::IntoResponse as _;
use serde::{Deserialize, Deserializer, de};
use serde_json::json;

use super::body;
use super::host_state::HostState;
use super::problem::{Kind, Problem};
use super::query::{Query, fault};
use super::router::{Call, Handled};
use super::state::{AdminState, Silence};
use crate::policy::placement;
use crate::protocol::shard::{HostFilter, HostOrder, HostPage, HostSummary};
use crate::protocol::{HostPhase, ShardMsg};
use crate::types::{HostId, HostKey, ShardId};

/// A read of a shard's store must have come by then.
pub(super) const READ_DEADLINE: Duration = Duration::from_secs(10);

/// A change must be durable by then.
pub(super) const WRITE_DEADLINE: Duration = Duration::from_secs(30);

/// Pages asked of the shards for one answer: a rare state among many hosts must not hold it up.
const READS_MAX: u32 = 32;

/// The longest `min_delay`, in seconds: thirty days.
const MIN_DELAY_SECONDS_MAX: f64 = 2_592_000.0;

/// What each state is called.
const PHASES: [(&str, HostPhase); 5] = [
    ("ready", HostPhase::Ready),
    ("in_flight", HostPhase::InFlight),
    ("waiting", HostPhase::Waiting),
    ("parked", HostPhase::Parked),
    ("idle", HostPhase::Idle),
];

/// `GET /v1/hosts`.
pub(super) async fn list(call: Call) -> Handled {
    let filter = filter(&call.query)?;
    let (items, next) = pages(&call.state, filter, cursor(&call.query)?).await?;
    Ok(Json(json!({ "items": items, "next": next })).into_response())
}

/// `GET /v1/hosts/{host_key}`.
pub(super) async fn show(call: Call) -> Handled {
    let state = find(&call.state, call.argument()).await?;
    Ok(Json(state).into_response())
}

/// `PATCH /v1/hosts/{host_key}`.
pub(super) async fn change(call: Call) -> Handled {
    let Call { state, argument, body, .. } = call;
    let patch: Patch = body::order(&state, body).await?;
    patch.check()?;
    let host = find(&state, &argument.unwrap_or_default()).await?.host_key;
    if !patch.is_empty() {
        order(&state, patch.order_for(host.clone())).await?;
    }
    Ok(Json(look_up(&state, host.clone()).await?.ok_or_else(|| unknown(host.as_str()))?)
        .into_response())
}

/// Sets something for a host; durable when it returns.
pub(super) async fn order(state: &AdminState, order: HostOrder) -> Result<(), Problem> {
    let host = order.host.clone();
    let asked = ask_owner(state, &host, WRITE_DEADLINE, |port| ShardMsg::Order(order, port));
    asked.await?.map(drop).ok_or_else(|| unknown(host.as_str()))
}

/// A host by its key or by its bare name, which is tried as https, then http.
pub(super) async fn find(state: &AdminState, text: &str) -> Result<HostState, Problem> {
    let candidates = candidates(text);
    if candidates.is_empty() {
        let detail = format!("`{text}` is neither scheme://host[:port] nor a host name");
        return Err(Problem::new(Kind::NotFound, detail).at_key("host_key"));
    }
    for candidate in candidates {
        if let Some(found) = look_up(state, candidate).await? {
            return Ok(found);
        }
    }
    Err(unknown(text))
}

/// The keys that a text may mean, in the order in which they are tried.
fn candidates(text: &str) -> Vec<HostKey> {
    if text.contains("://") {
        return HostKey::parse(text).into_iter().collect();
    }
    ["https", "http"]
        .into_iter()
        .filter_map(|scheme| HostKey::parse(&format!("{scheme}://{text}")))
        .collect()
}

async fn look_up(state: &AdminState, host: HostKey) -> Result<Option<HostState>, Problem> {
    let asked = host.clone();
    let found =
        ask_owner(state, &host, READ_DEADLINE, |port| ShardMsg::LookUpHost(asked, port)).await?;
    let found = found.map_err(|why| Problem::new(Kind::Unavailable, why))?;
    Ok(found.map(|detail| HostState::from(*detail)))
}

/// Asks the shard that owns a host.
pub(super) async fn ask_owner<T: Send + 'static>(
    state: &AdminState,
    host: &HostKey,
    deadline: Duration,
    question: impl FnOnce(crate::protocol::Answer<T>) -> ShardMsg,
) -> Result<T, Problem> {
    let (shard, route) = {
        let routes = state.routes.borrow();
        (routes.shard_of(host), routes.route(host).map(|route| route.shard.clone()))
    };
    let silent = |silence| Problem::silent(&format!("shard {shard}"), silence);
    let mailbox = route.ok_or_else(|| silent(Silence::Gone))?;
    state.ask(&mailbox, deadline, question).await.map_err(silent)
}

fn unknown(text: &str) -> Problem {
    Problem::new(Kind::NotFound, format!("no URL of `{text}` is known")).at_key("host_key")
}

fn filter(query: &Query) -> Result<HostFilter, Problem> {
    let phase = match query.text("state") {
        None => None,
        Some(text) => {
            let found = PHASES.iter().find(|(name, _)| *name == text);
            let (_, phase) = found.ok_or_else(|| {
                let names = PHASES.map(|(name, _)| name).join(", ");
                fault("state", format!("`{text}` is not a state: {names}"))
            })?;
            Some(*phase)
        }
    };
    let domain = query.text("domain").map(str::to_ascii_lowercase);
    Ok(HostFilter { after: None, limit: query.limit()?, phase, domain })
}

/// Where a list goes on: in a shard, after a host.
fn cursor(query: &Query) -> Result<Option<(ShardId, Option<HostId>)>, Problem> {
    let Some(text) = query.text("cursor") else { return Ok(None) };
    let parsed = text.split_once('-').and_then(|(shard, host)| {
        let digits = host.len() == 16;
        let host = if host.is_empty() {
            None
        } else {
            Some(HostId(u64::from_str_radix(host, 16).ok().filter(|_| digits)?))
        };
        Some((ShardId(shard.parse().ok()?), host))
    });
    let bad = || Problem::new(Kind::BadCursor, format!("`{text}` is not a cursor of this list"));
    parsed.map(Some).ok_or_else(|| bad().at_key("cursor"))
}

/// Goes through the shards in order until there are enough.
async fn pages(
    state: &AdminState,
    filter: HostFilter,
    from: Option<(ShardId, Option<HostId>)>,
) -> Result<(Vec<HostSummary>, Option<String>), Problem> {
    let mut shards = state.shards();
    if let Some(domain) = &filter.domain {
        let owner = placement::shard_of(domain, shards.len());
        shards.retain(|(shard, _)| *shard == owner);
    }
    let (first, mut after) = from.unwrap_or_default();
    let (mut items, mut reads) = (Vec::new(), 0);
    for (shard, mailbox) in shards.into_iter().filter(|(shard, _)| *shard >= first) {
        if shard != first {
            after = None;
        }
        loop {
            let missing = usize::from(filter.limit).saturating_sub(items.len());
            if missing == 0 || reads == READS_MAX {
                let host = after.map_or_else(String::new, |host| host.to_string());
                return Ok((items, Some(format!("{shard}-{host}"))));
            }
            reads += 1;
            let silent = |silence| Problem::silent(&format!("shard {shard}"), silence);
            let mailbox = mailbox.as_ref().ok_or_else(|| silent(Silence::Gone))?;
            let limit = u16::try_from(missing).unwrap_or(u16::MAX);
            let wanted = HostFilter { after, limit, ..filter.clone() };
            let page: Result<HostPage, String> = state
                .ask(mailbox, READ_DEADLINE, |port| ShardMsg::ListHosts(wanted, port))
                .await
                .map_err(silent)?;
            let page = page.map_err(|why| Problem::new(Kind::Unavailable, why))?;
            items.extend(page.hosts);
            match page.next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
    }
    Ok((items, None))
}

/// The body of `PATCH`: absent fields stay, null returns to the configuration.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Patch {
    #[serde(deserialize_with = "present")]
    paused: Option<Option<bool>>,
    #[serde(deserialize_with = "present")]
    min_delay: Option<Option<Seconds>>,
    #[serde(deserialize_with = "present")]
    max_in_flight: Option<Option<u16>>,
    #[serde(deserialize_with = "present")]
    daily_pages: Option<Option<u64>>,
}

/// Seconds; a length of time with a unit is for the configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Seconds(f64);

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Number;
        impl de::Visitor<'_> for Number {
            type Value = Seconds;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("seconds as a number, such as 2.5")
            }

            fn visit_f64<E>(self, seconds: f64) -> Result<Seconds, E> {
                Ok(Seconds(seconds))
            }

            fn visit_u64<E>(self, seconds: u64) -> Result<Seconds, E> {
                // Beyond the numbers that are whole the bound refuses it anyway.
                Ok(Seconds(u32::try_from(seconds).map_or(f64::MAX, f64::from)))
            }

            fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Seconds, E> {
                Ok(Seconds(i32::try_from(seconds).map_or(f64::MIN, f64::from)))
            }
        }
        deserializer.deserialize_f64(Number)
    }
}

fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl Patch {
    fn check(&self) -> Result<(), Problem> {
        let delay = self.min_delay.flatten();
        if delay.is_some_and(|Seconds(seconds)| !(0.0..=MIN_DELAY_SECONDS_MAX).contains(&seconds)) {
            let detail = format!("wanted seconds from 0 to {MIN_DELAY_SECONDS_MAX}");
            return Err(Problem::new(Kind::BadBody, detail).at_key("min_delay"));
        }
        if self.max_in_flight.flatten() == Some(0) {
            let detail = "wanted at least 1; `paused` stops a host";
            return Err(Problem::new(Kind::BadBody, detail).at_key("max_in_flight"));
        }
        Ok(())
    }

    fn is_empty(&self) -> bool {
        self.paused.is_none()
            && self.min_delay.is_none()
            && self.max_in_flight.is_none()
            && self.daily_pages.is_none()
    }

    fn order_for(self, host: HostKey) -> HostOrder {
        HostOrder {
            host,
            paused: self.paused.map(Option::unwrap_or_default),
            min_delay: self.min_delay.map(|delay| delay.map(|it| Duration::from_secs_f64(it.0))),
            max_in_flight: self.max_in_flight,
            daily_pages: self.daily_pages,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_tried_as_https_then_http() {
        let keys = |text| candidates(text).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(keys("Example.com"), ["https://example.com", "http://example.com"]);
        assert_eq!(keys("a.test:81"), ["https://a.test:81", "http://a.test:81"]);
        assert_eq!(keys("http://a.test"), ["http://a.test"]);
        assert!(keys("http://a.test/path").is_empty());
        assert!(keys("a b").is_empty());
    }

    #[test]
    fn a_patch_tells_null_from_absent() {
        let patch: Patch = body::json(br#"{"paused":null,"min_delay":2.5}"#).unwrap();
        let order = patch.order_for(HostKey::parse("http://a.test").unwrap());
        assert_eq!(order.paused, Some(false));
        assert_eq!(order.min_delay, Some(Some(Duration::from_millis(2500))));
        assert_eq!(order.max_in_flight, None);
        let back: Patch = body::json(br#"{"min_delay":null}"#).unwrap();
        assert_eq!(back.min_delay, Some(None));
    }

    #[test]
    fn a_patch_is_checked() {
        for wrong in [r#"{"min_delay":-1}"#, r#"{"min_delay":1e300}"#, r#"{"max_in_flight":0}"#] {
            let patch: Patch = body::json(wrong.as_bytes()).unwrap();
            assert!(patch.check().is_err(), "{wrong}");
        }
        assert!(body::json::<Patch>(br#"{"delay":1}"#).is_err());
        let unit = body::json::<Patch>(br#"{"min_delay":"5s"}"#).unwrap_err();
        let said = r#"wanted seconds as a number, such as 2.5, found the text "5s""#;
        assert_eq!(unit, Problem::new(Kind::BadBody, said).at_key("min_delay").at_line(1));
        for (number, seconds) in [("3", 3.0), ("2.5", 2.5), ("-1", -1.0)] {
            let given = format!(r#"{{"min_delay":{number}}}"#);
            let patch: Patch = body::json(given.as_bytes()).unwrap();
            assert_eq!(patch.min_delay, Some(Some(Seconds(seconds))), "{number}");
        }
    }
}
