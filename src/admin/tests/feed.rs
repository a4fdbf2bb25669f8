//! The feed: cursors, pages, waiting, what has aged out.

use std::time::Duration;

use serde_json::Value;

use super::fakes::Stage;
use crate::types::{
    CrawlEvent, EventSeq, Happening, HostId, Subject, Timestamp, UrlId, UrlVersion,
};

/// An event comes to be in a shard's outbox.
pub(super) fn happen(stage: &Stage, shard: usize, place: u64, seconds: i64) {
    let event = CrawlEvent {
        at: Timestamp::from_secs(seconds),
        subject: Subject::Url {
            url: format!("http://s{shard}.test/{place}"),
            url_id: UrlId { host: HostId(1), hash: place, disambiguator: 0 },
            version: UrlVersion(0),
        },
        happening: Happening::Discovered,
    };
    stage.shards[shard].lock().unwrap().events.push((EventSeq(place), event));
}

fn urls(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["url"].as_str().unwrap()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_reader_goes_on_from_any_line() {
    let stage = Stage::set().await;
    for place in 1..=4 {
        let seconds = i64::try_from(place).unwrap();
        happen(&stage, 0, place, 10 * seconds);
        happen(&stage, 1, place, 10 * seconds + 5);
    }
    let all = stage.get("/v1/events").await.lines();
    assert_eq!(all.len(), 8);
    assert_eq!(urls(&all)[..3], ["http://s0.test/1", "http://s1.test/1", "http://s0.test/2"]);
    for (place, line) in all.iter().enumerate() {
        let cursor = line["cursor"].as_str().unwrap();
        let rest = stage.get(&format!("/v1/events?after={cursor}")).await.lines();
        assert_eq!(urls(&rest), urls(&all)[place + 1..]);
    }
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let told = stage.get(&format!("/v1/events?limit=3&after={after}")).await.lines();
        let Some(last) = told.last() else { break };
        after = last["cursor"].as_str().unwrap().to_owned();
        seen.extend(told);
    }
    assert_eq!(urls(&seen), urls(&all));
}

#[tokio::test(start_paused = true)]
async fn a_poll_waits_for_the_next_line() {
    let stage = Stage::set().await;
    let begun = stage.state.clock.now();
    let told = stage.get("/v1/events?wait=5").await;
    assert_eq!((told.status, told.text.as_str()), (200, ""));
    assert_eq!(told.media(), "application/x-ndjson");
    assert_eq!(stage.state.clock.now().since(begun), Duration::from_secs(5));

    let begun = stage.state.clock.now();
    let (told, ()) = tokio::join!(stage.get("/v1/events?wait=30"), async {
        stage.state.clock.sleep(Duration::from_secs(7)).await;
        happen(&stage, 1, 1, 10);
    });
    assert_eq!(told.lines().len(), 1);
    let waited = stage.state.clock.now().since(begun);
    assert!((7.0..7.5).contains(&waited.as_secs_f64()), "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn cursors_are_checked() {
    let stage = Stage::set().await;
    for cursor in ["x", "1.0", "1.0.0.0", "2.0.0", "1.0.-1", "1.0.g"] {
        let told = stage.get(&format!("/v1/events?after={cursor}")).await;
        assert_eq!((told.status, told.json()["key"].as_str()), (400, Some("after")), "{cursor}");
    }
    for wrong in ["limit=0", "limit=1001", "wait=61", "wait=-1"] {
        assert_eq!(stage.get(&format!("/v1/events?{wrong}")).await.status, 400, "{wrong}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_has_aged_out_is_gone() {
    let stage = Stage::set().await;
    happen(&stage, 0, 8, 10);
    happen(&stage, 1, 5, 11);
    let told = stage.get("/v1/events?after=1.6.4").await;
    assert_eq!((told.status, told.json()["key"].as_str()), (410, Some("after")));
    assert_eq!(stage.get("/v1/events?after=1.7.4").await.lines().len(), 2);
    assert_eq!(stage.get("/v1/events?after=1.8.4").await.lines().len(), 1);
    // Who has no cursor begins with the oldest there is, and goes on from there.
    let first = stage.get("/v1/events?limit=1").await.lines();
    assert_eq!(first[0]["cursor"], "1.8.4");
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_is_away_keeps_its_place() {
    let stage = Stage::set().await;
    happen(&stage, 0, 1, 10);
    happen(&stage, 1, 1, 11);
    stage.lose(1);
    let told = stage.get("/v1/events").await.lines();
    assert_eq!(urls(&told), ["http://s0.test/1"]);
    assert_eq!(told[0]["cursor"], "1.1.0");
}
