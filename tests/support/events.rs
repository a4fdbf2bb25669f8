//! The feed of events, read to its end.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::http::Client;

/// Lines asked for at once: few, so that the cursor has to carry.
const AT_ONCE: usize = 37;

/// Everything in the feed, from the first event on.
pub(crate) async fn read_all(client: &Client) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    loop {
        let after = events.last().map_or(String::new(), |event: &Value| {
            format!("&after={}", event["cursor"].as_str().expect("a cursor"))
        });
        let answer = client.get(&format!("/v1/events?limit={AT_ONCE}{after}")).await;
        assert_eq!((answer.status, &*answer.media), (200, "application/x-ndjson"), "{answer:?}");
        let lines = answer.lines();
        if lines.is_empty() {
            return events;
        }
        events.extend(lines);
    }
}

/// Waits until a long poll hears nothing, and says where the feed ends then.
pub(crate) async fn silence(client: &Client) -> String {
    let mut cursor = read_all(client).await.last().expect("an event")["cursor"].clone();
    loop {
        let after = cursor.as_str().expect("a cursor");
        let lines = client.get(&format!("/v1/events?after={after}&wait=2")).await.lines();
        match lines.last() {
            Some(last) => cursor = last["cursor"].clone(),
            None => return after.to_owned(),
        }
    }
}

/// O5: each key once, in order within a host, and each URL's life in its order.
pub(crate) fn check(events: &[Value]) {
    let mut keys = BTreeSet::new();
    let mut last_at: BTreeMap<String, String> = BTreeMap::new();
    let mut lives: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for event in events {
        let kind = event["type"].as_str().expect("a type");
        let subject = event.get("url_id").unwrap_or(&event["host_key"]);
        let parser = event.get("parser_version").cloned().unwrap_or_default();
        let key = format!("{kind} {subject} {} {parser}", event["version"]);
        assert!(keys.insert(key), "twice: {event}");
        // Each kind has its own moment: an exchange's end, a row's beginning.
        let host = format!("{kind} {}", host_of(event));
        let at = event["at"].as_str().expect("a time").to_owned();
        let before = last_at.insert(host, at.clone()).unwrap_or_default();
        assert!(before <= at, "out of order: {event}");
        if kind != "host" {
            lives.entry(subject.to_string()).or_default().push(kind);
        }
    }
    for (url, life) in lives {
        let order = ["discovered", "fetched", "parsed", "tombstone", "dead"];
        let rank = |kind: &&str| order.iter().position(|found| found == kind);
        assert!(life.iter().map(rank).is_sorted(), "{url}: {life:?}");
    }
}

/// How many events of a type a URL has.
pub(crate) fn count(events: &[Value], kind: &str, url: &str) -> usize {
    events.iter().filter(|event| event["type"] == kind && event["url"] == url).count()
}

fn host_of(event: &Value) -> String {
    if let Some(key) = event["host_key"].as_str() {
        return key.to_owned();
    }
    let url = event["url"].as_str().expect("a URL");
    url.splitn(4, '/').take(3).collect::<Vec<_>>().join("/")
}
