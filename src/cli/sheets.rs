//! How the answers about a crawl look to people.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize as _;
use serde_json::{Result, Value};

use super::shapes::{HostLine, HostSheet};
use super::text::{Side, Table, count, counted, moment, relative, size, without_times};
use crate::admin::{LetterItem, RunState, Status, UrlState};
use crate::protocol::shard::ParkedHost;
use crate::types::{Outcome, Timestamp, span};

/// How the daemon at this place stands.
pub(super) fn status(status: &Status, place: &str, now: Timestamp) -> String {
    let state = match status.state {
        RunState::Running => "running",
        RunState::Paused => "paused",
        RunState::Draining => "draining",
        RunState::Degraded => "degraded",
    };
    let mut table = Table::of_pairs();
    let up = span(now.since(status.started_at));
    table.pair("state", format!("{state}, up {up}, mehman {}", status.version));
    for reason in &status.reasons {
        table.pair("", format!("! {reason}"));
    }
    table.pair("daemon", place);
    let (pages, rate) = (count(status.pages), status.pages_per_second);
    table.pair("pages", format!("{pages} in the life of its data, {rate:.1} a second now"));
    table.pair("since the start", outcomes(&status.outcomes));
    table.pair("", format!("{} of bodies", size(status.bytes)));
    for line in left_out(status) {
        table.pair("", line);
    }
    table.pair("urls", urls_line(status));
    table.pair("hosts", hosts_line(status));
    let queues = status.queues.iter().filter(|(_, queue)| queue.waiting + queue.busy > 0);
    let queues: Vec<String> = queues
        .map(|(name, queue)| match queue.capacity {
            Some(capacity) => {
                let (busy, waiting) = (count(queue.busy), count(queue.waiting));
                format!("{name} {busy} of {} busy, {waiting} wait", count(capacity))
            }
            None => format!("{name} {}", count(queue.waiting)),
        })
        .collect();
    table.pair("queues", if queues.is_empty() { "empty".to_owned() } else { queues.join(" · ") });
    table.pair("lag", format!("{:.1} s", status.lag_seconds));
    // A crawl that is paused or ends asks for nothing, whatever falls due meanwhile.
    let grants = matches!(status.state, RunState::Running | RunState::Degraded);
    if let Some(at) = status.next_wake.filter(|_| grants) {
        table.pair("next request", relative(at, now));
    }
    let mut text = table.render();
    if !status.parked.is_empty() {
        text.push_str("\n\n");
        text.push_str(&waiting(&status.parked, now));
    }
    text
}

/// Requests that ended by outcome, the most frequent first.
pub(super) fn outcomes(outcomes: &BTreeMap<Outcome, u64>) -> String {
    let mut counts: Vec<_> = outcomes.iter().filter(|(_, number)| **number > 0).collect();
    counts.sort_by_key(|(_, number)| std::cmp::Reverse(**number));
    let shown: Vec<String> =
        counts.iter().map(|(outcome, number)| format!("{outcome} {}", count(**number))).collect();
    if shown.is_empty() {
        "no requests yet".to_owned()
    } else {
        let all = counted(counts.iter().map(|(_, number)| **number).sum(), "request");
        format!("{all}, robots.txt included: {}", shown.join(" · "))
    }
}

/// R6: the pages that the purpose of an output left out, a line each output that left out any.
pub(super) fn left_out(status: &Status) -> Vec<String> {
    let outputs = status.outputs.iter().filter(|output| !output.left_out.is_empty());
    let lines = outputs.map(|output| {
        let pages = counted(output.left_out.values().sum(), "page");
        let why = output.left_out.iter().map(|(why, pages)| format!("{why} {}", count(*pages)));
        let why: Vec<String> = why.collect();
        format!("{pages} left out of {} for {}: {}", output.name, output.purpose, why.join(" · "))
    });
    lines.collect()
}

/// URLs by state: what is named adds up to the known ones.
pub(super) fn urls_line(status: &Status) -> String {
    let urls = &status.urls;
    let parts = [
        (urls.queued, "queued"),
        (urls.pages_in_flight, "in flight"),
        (urls.deferred, "due later"),
        (urls.sleeping, "refused by robots.txt or an exclusion"),
        (urls.dead, "dead"),
    ];
    summed(urls.known, &parts, "done")
}

/// Hosts by state, likewise.
pub(super) fn hosts_line(status: &Status) -> String {
    let hosts = &status.hosts;
    let parts = [
        (hosts.in_flight, "in flight"),
        (hosts.ready, "ready"),
        (hosts.waiting, "waiting"),
        (hosts.parked, "parked"),
    ];
    summed(hosts.known, &parts, "with nothing to do")
}

/// How many there are, and the parts of which there are any; what is in none of them comes last.
fn summed(known: u64, parts: &[(u64, &str)], rest: &str) -> String {
    let others = known.saturating_sub(parts.iter().map(|(number, _)| number).sum());
    let others = [(others, rest)];
    let parts = parts.iter().chain(&others);
    let parts = parts.filter(|(number, _)| *number > 0);
    let shown: Vec<String> =
        parts.map(|(number, what)| format!("{} {what}", count(*number))).collect();
    let known = count(known);
    if shown.is_empty() {
        format!("{known} known")
    } else {
        format!("{known} known: {}", shown.join(", "))
    }
}

/// Hosts that wait for long, with reason and time.
pub(super) fn waiting(hosts: &[ParkedHost], now: Timestamp) -> String {
    let columns = [
        ("WAITING HOST", Side::Left),
        ("QUEUED", Side::Right),
        ("UNTIL", Side::Left),
        ("REASON", Side::Left),
    ];
    let mut table = Table::with_heading(&columns);
    for host in hosts {
        let until = host.until.map_or_else(|| "-".to_owned(), |at| relative(at, now));
        let key = host.host_key.to_string();
        table.row([key, count(host.queued), until, without_times(&host.reason)]);
    }
    table.render()
}

/// A list of hosts.
pub(super) fn hosts(items: &[Value], now: Timestamp) -> Result<String> {
    if items.is_empty() {
        return Ok("no hosts".to_owned());
    }
    let columns = [
        ("HOST", Side::Left),
        ("STATE", Side::Left),
        ("QUEUED", Side::Right),
        ("TODAY", Side::Right),
        ("NEXT", Side::Left),
        ("REASON", Side::Left),
    ];
    let mut table = Table::with_heading(&columns);
    let hosts = items.iter().map(HostLine::deserialize);
    let mut hosts: Vec<HostLine> = hosts.collect::<Result<_>>()?;
    // Those that do something, or would, before the many that have nothing to do.
    hosts.sort_by_key(|host| host.state == "idle");
    for host in hosts {
        let next = host.next_request().map_or_else(|| "-".to_owned(), |at| relative(at, now));
        let (queued, today) = (count(host.queued), count(host.pages_today));
        table.row([
            host.host_key,
            host.state,
            queued,
            today,
            next,
            without_times(&host.reason.unwrap_or_default()),
        ]);
    }
    Ok(table.render())
}

/// One host.
pub(super) fn host(found: &Value, now: Timestamp) -> Result<String> {
    let host = HostSheet::deserialize(found)?;
    let line = &host.line;
    let mut table = Table::of_pairs();
    table.pair("host", line.host_key.as_str());
    table.pair("state", line.state.as_str());
    if let Some(reason) = &line.reason {
        table.pair("reason", reason.as_str());
    }
    match (line.next_request(), line.next_allowed_at) {
        (Some(at), _) => table.pair("next request", moment(at, now)),
        // Its clock runs on, and is not what it waits for.
        (None, Some(at)) if at > now => table.pair("not before", moment(at, now)),
        (None, _) => {}
    }
    let set_by = host.delay_set_by.replace('_', " ");
    table.pair("delay", format!("{}, set by {set_by}", seconds(host.delay_seconds)));
    let today = format!("{} of {}", count(line.pages_today), count(host.budget));
    table.pair("requests today", today);
    let urls = &host.urls;
    let parts = [
        (urls.queued, "queued or in flight"),
        (urls.deferred, "due later"),
        (urls.sleeping, "refused by robots.txt or an exclusion"),
        (urls.dead, "dead"),
    ];
    table.pair("urls", summed(urls.known, &parts, "done"));
    if line.in_flight > 0 {
        table.pair("in flight", counted(line.in_flight, "request"));
    }
    table.pair("robots.txt", robots(&host, now));
    for sitemap in &host.robots.sitemaps {
        table.pair("sitemap", sitemap.as_str());
    }
    if host.backoff.refusals + host.backoff.failures > 0 || host.backoff.slowdown > 1.0 {
        let refused = counted(host.backoff.refusals, "refusal");
        let failed = counted(host.backoff.failures, "failure");
        let slow = host.backoff.slowdown.max(1.0);
        table.pair("backoff", format!("{refused}, {failed} in a row, {slow:.1} times slower"));
    }
    if let Some(set) = allowance(&host) {
        table.pair("set by operator", set);
    }
    if !host.address.is_empty() {
        table.pair("addresses", host.address.join(", "));
    }
    let place = format!("shard {}, epoch {}", host.shard, host.epoch);
    let rest = if host.resident { "in memory" } else { "at rest" };
    table.pair("actor", format!("{place}, {rest}, {}", counted(host.restarts, "restart")));
    Ok(table.render())
}

fn robots(host: &HostSheet, now: Timestamp) -> String {
    let robots = &host.robots;
    let mut text = match robots.state.as_str() {
        "unfetched" => "not yet asked for".to_owned(),
        "obey" => format!("obeyed, {}", counted(robots.rules, "rule")),
        "allow_all" => "there is none, everything is allowed".to_owned(),
        "unreachable" => "unreachable, nothing is fetched".to_owned(),
        other => other.to_owned(),
    };
    if let Some(delay) = robots.crawl_delay {
        text.push_str(&format!(", Crawl-delay {}", seconds(delay)));
    }
    if let Some(at) = robots.fetched_at {
        text.push_str(&format!(", asked {}", relative(at, now)));
    }
    if let Some(at) = robots.expires_at {
        // A host whose clock runs is asked for nothing, its robots.txt included.
        match at.max(host.line.next_allowed_at.unwrap_or(at)) {
            at if at > now => text.push_str(&format!(", again {}", relative(at, now))),
            _ => text.push_str(", again before its next page"),
        }
    }
    text
}

fn allowance(host: &HostSheet) -> Option<String> {
    let set = &host.allowance;
    let mut parts = Vec::new();
    parts.extend(set.paused.then(|| "paused".to_owned()));
    parts.extend(set.min_delay.map(|delay| format!("at least {} between", seconds(delay))));
    parts.extend(set.max_in_flight.map(|number| format!("{} at once", count(number))));
    parts.extend(set.daily_pages.map(|number| format!("{} a day", count(number))));
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn seconds(seconds: f64) -> String {
    Duration::try_from_secs_f64(seconds).map_or_else(|_| format!("{seconds} s"), span)
}

/// One URL.
pub(super) fn url(found: &Value, now: Timestamp) -> Result<String> {
    let url = UrlState::deserialize(found)?;
    let mut table = Table::of_pairs();
    table.pair("url", url.url.to_string());
    table.pair("id", format!("{}, version {}", url.url_id, url.version));
    table.pair("state", url.state.replace('_', " "));
    if let Some(reason) = &url.reason {
        table.pair("reason", reason.as_str());
    }
    if let Some(outcome) = url.outcome {
        let code = url.status.map_or_else(String::new, |code| format!(", status {code}"));
        let tries = match url.attempts {
            1 => "1 try".to_owned(),
            many => format!("{many} tries"),
        };
        table.pair("outcome", format!("{outcome}{code}, {tries}"));
    }
    if let Some(at) = url.last_fetched_at {
        table.pair("fetched", moment(at, now));
    }
    if let Some(at) = url.next_fetch_at {
        table.pair("due", moment(at, now));
    }
    table.pair("depth", format!("{}, band {}", url.depth, url.priority));
    let from = url.discovered_from.map_or_else(|| "a seed".to_owned(), |from| from.to_string());
    table.pair("found on", format!("{from}, {}", relative(url.discovered_at, now)));
    if let Some(digest) = &url.digest {
        table.pair("digest", digest.as_str());
    }
    if let Some(pointer) = &url.archive {
        let place = format!("at {}, {}", count(pointer.offset), size(pointer.length));
        table.pair("archive", format!("{} {place}", pointer.file));
    }
    Ok(table.render())
}

/// A list of dead letters.
pub(super) fn letters(items: &[Value], now: Timestamp) -> Result<String> {
    if items.is_empty() {
        return Ok("no dead letters".to_owned());
    }
    let columns =
        [("URL", Side::Left), ("TRIES", Side::Right), ("LAST", Side::Left), ("REASON", Side::Left)];
    let mut table = Table::with_heading(&columns);
    for item in items {
        let letter = LetterItem::deserialize(item)?;
        let last = relative(letter.last_at, now);
        table.row([letter.url.to_string(), count(letter.attempts.into()), last, letter.reason]);
    }
    Ok(table.render())
}
