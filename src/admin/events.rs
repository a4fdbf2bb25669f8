//! The feed of events over HTTP: at least once, ordered within a host, from a cursor (O5).
//!
//! Every shard numbers its events without a gap. A cursor is the place in each shard's outbox, and
//! every line carries the cursor that follows it. Lines of several shards are merged by time, equal
//! times by shard. Where the number after a place is no longer there, it has aged out, and the
//! cursor with it.

use std::collections::VecDeque;
use std::time::Duration;

use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures::future::join_all;
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};

use super::hosts::READ_DEADLINE;
use super::problem::{Kind, Problem};
use super::router::{Call, Handled};
use super::state::AdminState;
use crate::protocol::ShardMsg;
use crate::types::{CrawlEvent, EventSeq, Happening, Subject};

/// The longest poll, in seconds.
const WAIT_SECONDS_MAX: u16 = 60;

/// How often a long poll looks.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// Events held in memory for one answer, over all shards.
const HELD_MAX: usize = 16_000;

/// The version of the cursor's form.
const CURSOR_FORM: &str = "1";

/// The media type of the feed.
pub(super) const NDJSON: &str = "application/x-ndjson";

/// `GET /v1/events`.
pub(super) async fn feed(call: Call) -> Handled {
    let limit = usize::from(call.query.limit()?);
    let wait = call.query.number("wait", 0, 0..=WAIT_SECONDS_MAX)?;
    let shards = call.state.routes.borrow().shards.len();
    let given = call.query.text("after").map(|text| Cursor::parse(text, shards)).transpose()?;
    let until = call.state.clock.now() + Duration::from_secs(wait.into());
    loop {
        let lines = read(&call.state, given.as_ref(), limit).await?;
        let left = until.since(call.state.clock.now());
        if !lines.is_empty() || left.is_zero() {
            return Ok(answer(&lines));
        }
        call.state.clock.sleep(POLL_INTERVAL.min(left)).await;
    }
}

fn answer(lines: &[String]) -> Response {
    let body: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    ([(header::CONTENT_TYPE, HeaderValue::from_static(NDJSON))], body).into_response()
}

/// The place in each shard's outbox, by shard number.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cursor(Vec<EventSeq>);

impl Cursor {
    fn parse(text: &str, shards: usize) -> Result<Self, Problem> {
        let (form, places) = text.split_once('.').unwrap_or_default();
        let parsed: Option<Vec<EventSeq>> = places
            .split('.')
            .map(|place| u64::from_str_radix(place, 16).ok().map(EventSeq))
            .collect();
        parsed.filter(|places| form == CURSOR_FORM && places.len() == shards).map(Self).ok_or_else(
            || {
                let shown: String = text.chars().take(80).collect();
                let detail = format!("`{shown}` is not a cursor of this crawl");
                Problem::new(Kind::BadCursor, detail).at_key("after")
            },
        )
    }

    fn text(&self) -> String {
        let places = self.0.iter().map(|place| format!(".{:x}", place.0));
        std::iter::once(CURSOR_FORM.to_owned()).chain(places).collect()
    }

    fn of(&self, shard: usize) -> EventSeq {
        self.0.get(shard).copied().unwrap_or_default()
    }

    fn set(&mut self, shard: usize, place: EventSeq) {
        if let Some(held) = self.0.get_mut(shard) {
            *held = place;
        }
    }
}

type Read = VecDeque<(EventSeq, CrawlEvent)>;

/// The next lines after a cursor, or from the oldest event there is.
async fn read(
    state: &AdminState,
    given: Option<&Cursor>,
    limit: usize,
) -> Result<Vec<String>, Problem> {
    let shards = state.shards();
    let share = limit.min((HELD_MAX / shards.len().max(1)).max(1));
    let wanted = u16::try_from(share).unwrap_or(u16::MAX);
    let begin = given.cloned().unwrap_or_else(|| Cursor(vec![EventSeq(0); shards.len()]));
    let asked = shards.iter().enumerate().map(async |(place, (_, mailbox))| {
        let mailbox = mailbox.as_ref()?;
        let after = begin.of(place);
        let asked =
            state.ask(mailbox, READ_DEADLINE, |port| ShardMsg::ReadEvents(after, wanted, port));
        // A shard that is away keeps its place in the cursor; the others go on.
        Some(Read::from(asked.await.ok()?.ok()?))
    });
    let mut reads: Vec<Read> =
        join_all(asked).await.into_iter().map(Option::unwrap_or_default).collect();
    let mut cursor = begin;
    for (shard, read) in reads.iter().enumerate() {
        let Some((first, _)) = read.front() else { continue };
        let before = EventSeq(first.0.saturating_sub(1));
        if given.is_some() && cursor.of(shard) < before {
            let detail = "events after the cursor have aged out; read again without `after`";
            return Err(Problem::new(Kind::Expired, detail).at_key("after"));
        }
        cursor.set(shard, before);
    }
    Ok(merge(&mut reads, cursor, Bounds { limit, share }))
}

/// How many lines an answer has, and how many of them one shard was asked for.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    limit: usize,
    share: usize,
}

/// Takes the earliest of the shards' first events until there are enough; stops where a shard that
/// may have more has been used up, since its next event may be the earliest.
fn merge(reads: &mut [Read], mut cursor: Cursor, bounds: Bounds) -> Vec<String> {
    let cut: Vec<bool> = reads.iter().map(|read| read.len() >= bounds.share).collect();
    let mut lines = Vec::new();
    while lines.len() < bounds.limit {
        let heads = reads.iter().enumerate();
        let heads = heads.filter_map(|(shard, read)| Some((read.front()?.1.at, shard)));
        let Some((_, shard)) = heads.min() else { break };
        let Some(read) = reads.get_mut(shard) else { break };
        let Some((place, event)) = read.pop_front() else { break };
        cursor.set(shard, place);
        lines.push(event_line(cursor.text(), &event));
        if read.is_empty() && cut.get(shard).is_some_and(|cut| *cut) {
            break;
        }
    }
    lines
}

/// One line of the feed, without its end.
pub fn event_line(cursor: String, event: &CrawlEvent) -> String {
    serde_json::to_string(&EventLine { cursor, event })
        .expect("maps with text as keys and plain values always become JSON")
}

/// An event in the shape that docs/interface.md gives.
#[derive(Clone, Debug)]
pub struct EventLine<'a> {
    /// Where to go on.
    pub cursor: String,
    /// What happened.
    pub event: &'a CrawlEvent,
}

impl Serialize for EventLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let CrawlEvent { at, subject, happening } = self.event;
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("cursor", &self.cursor)?;
        line.serialize_entry("type", happening.kind())?;
        line.serialize_entry("at", at)?;
        match subject {
            Subject::Url { url, url_id, version } => {
                line.serialize_entry("url", url)?;
                line.serialize_entry("url_id", url_id)?;
                line.serialize_entry("version", version)?;
            }
            Subject::Host { host_key, version } => {
                line.serialize_entry("host_key", host_key)?;
                line.serialize_entry("version", version)?;
            }
            Subject::Rule { rule, version } => {
                line.serialize_entry("rule", rule)?;
                line.serialize_entry("version", version)?;
            }
        }
        match happening {
            Happening::Discovered => {}
            Happening::Fetched { status, outcome, bytes, digest, archive, changed } => {
                line.serialize_entry("status", status)?;
                line.serialize_entry("outcome", outcome)?;
                line.serialize_entry("bytes", bytes)?;
                line.serialize_entry("digest", digest)?;
                line.serialize_entry("archive", archive)?;
                line.serialize_entry("changed", changed)?;
            }
            Happening::Parsed { parser_version, links, duplicate_of } => {
                line.serialize_entry("parser_version", parser_version)?;
                line.serialize_entry("links", links)?;
                line.serialize_entry("duplicate_of", duplicate_of)?;
            }
            Happening::Tombstone { status } => line.serialize_entry("status", status)?,
            Happening::Dead { reason } => line.serialize_entry("reason", reason)?,
            Happening::Excluded { id } => line.serialize_entry("exclusion", id)?,
            Happening::HostState { state, reason } => {
                line.serialize_entry("state", state)?;
                line.serialize_entry("reason", reason)?;
            }
            Happening::Purged { id, removed, urls, unreadable } => {
                line.serialize_entry("exclusion", id)?;
                line.serialize_entry("records", &removed.records)?;
                line.serialize_entry("bytes", &removed.bytes)?;
                line.serialize_entry("index_lines", &removed.index_lines)?;
                line.serialize_entry("page_records", &removed.page_records)?;
                line.serialize_entry("urls", urls)?;
                line.serialize_entry("unreadable", unreadable)?;
            }
        }
        line.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{HostKey, Timestamp};

    fn event(seconds: i64) -> CrawlEvent {
        CrawlEvent {
            at: Timestamp::from_secs(seconds),
            subject: Subject::Host {
                host_key: HostKey::parse("http://a.test").unwrap(),
                version: 1,
            },
            happening: Happening::HostState { state: "parked".into(), reason: None },
        }
    }

    fn read(events: &[(u64, i64)]) -> Read {
        events.iter().map(|(place, seconds)| (EventSeq(*place), event(*seconds))).collect()
    }

    #[test]
    fn cursors_survive_their_text() {
        let cursor = Cursor(vec![EventSeq(0), EventSeq(255)]);
        assert_eq!(cursor.text(), "1.0.ff");
        assert_eq!(Cursor::parse("1.0.ff", 2).unwrap(), cursor);
        for wrong in ["", "1", "1.", "1.0", "1.0.ff.2", "2.0.ff", "1.0.xx", "1.0.-1", "1.0.+1x"] {
            assert!(Cursor::parse(wrong, 2).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shards_are_merged_by_time_and_each_line_has_its_cursor() {
        let mut reads = [read(&[(1, 10), (2, 30)]), read(&[(7, 20), (8, 30)])];
        let start = Cursor(vec![EventSeq(0), EventSeq(6)]);
        let lines = merge(&mut reads, start, Bounds { limit: 3, share: 3 });
        let cursors: Vec<String> = lines
            .iter()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
            .map(|line| line["cursor"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(cursors, ["1.1.6", "1.1.7", "1.2.7"]);
    }

    #[test]
    fn a_shard_that_was_cut_ends_the_answer() {
        let mut reads = [read(&[(1, 10), (2, 11)]), read(&[(1, 90), (2, 91)])];
        let start = Cursor(vec![EventSeq(0), EventSeq(0)]);
        assert_eq!(merge(&mut reads, start, Bounds { limit: 9, share: 2 }).len(), 2);
    }

    #[test]
    fn a_line_has_the_shape_of_the_interface() {
        assert_eq!(
            event_line("1.5".into(), &event(0)),
            "{\"cursor\":\"1.5\",\"type\":\"host\",\"at\":\"1970-01-01T00:00:00.000Z\",\
             \"host_key\":\"http://a.test\",\"version\":1,\"state\":\"parked\",\"reason\":null}"
        );
    }
}
