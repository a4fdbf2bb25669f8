//! Questions to data that no daemon has.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::run;
use crate::cli::failure::Exit;
use crate::cli::output::Form;
use crate::policy::change::Change;
use crate::policy::normalise::{recognised, url_hash};
use crate::policy::placement;
use crate::storage::{Batch, DataDir, ShardStore, StoreOptions};
use crate::types::{
    CrawlUrl, DeadLetter, ExclusionRecord, Hindrance, HostCounts, HostKey, HostRecord, Outcome,
    QueueEntry, Reason, RobotsKept, RobotsRecord, Timestamp, UrlId, UrlRecord, UrlVersion,
};
use crate::world::{Clock as _, Objects, TokioClock};

const SHARDS: u16 = 2;

/// A crawl that knows one URL of each host, waiting, and one dead letter of the first.
async fn crawled(path: &Path, hosts: &[&str]) {
    let now = TokioClock::system().now();
    let urls = hosts.iter().enumerate().map(|(nth, host)| {
        let url = CrawlUrl::parse(&format!("{host}/page?x=1")).unwrap();
        let changes = rows(&url, now, nth == 0);
        (url.host_key(), changes)
    });
    stored(path, urls.collect()).await;
}

/// Data with these rows of hosts.
async fn stored(path: &Path, hosts: Vec<(HostKey, Vec<Change>)>) {
    let directory = DataDir::open(path).unwrap();
    let clock = Arc::new(TokioClock::system());
    for shard in 0..SHARDS {
        let options = StoreOptions {
            objects: Objects::open_directory(&directory.shards()).unwrap(),
            path: shard.to_string(),
            clock: Arc::<TokioClock>::clone(&clock),
            seed: u64::from(shard),
            memory_bytes_max: 16 << 20,
            cache: None,
            shard: crate::types::ShardId(shard),
        };
        let store = ShardStore::open(options).await.unwrap();
        let mut batch = Batch::new();
        let its = |key: &HostKey| placement::shard_of(key.domain(), usize::from(SHARDS)).0 == shard;
        for (_, changes) in hosts.iter().filter(|(key, _)| its(key)) {
            changes.iter().for_each(|row| batch.push(row));
        }
        store.write(batch).await.unwrap();
        store.close(Duration::from_secs(10)).await.unwrap();
    }
}

fn rows(url: &CrawlUrl, now: Timestamp, dead: bool) -> Vec<Change> {
    let key = url.host_key();
    let id = UrlId { host: key.id(), hash: url_hash(&recognised(url)), disambiguator: 0 };
    let record = UrlRecord {
        url: url.clone(),
        depth: 1,
        band: 0,
        order: 1,
        redirects: 0,
        discovered_from: None,
        discovered_at: now,
    };
    let mut host = HostRecord::new(key.clone());
    host.next_allowed_at = now + Duration::from_secs(3600);
    host.delay = Duration::from_secs(2);
    host.budget_day = now.day();
    host.requests_today = 5;
    let counts = HostCounts { known: 1, queued: 1, dead: u64::from(dead), ..HostCounts::default() };
    let robots = RobotsRecord {
        fetched_at: now,
        expires_at: now + Duration::from_secs(86_400),
        answer: RobotsKept::Rules("User-agent: *\nDisallow: /x\nCrawl-delay: 2\n".into()),
        reservations: None,
    };
    let mut changes = vec![
        Change::PutUrl(id, Box::new(record)),
        Change::PutHost(key.id(), Box::new(host)),
        Change::PutCounts(key.id(), counts),
        Change::PutRobots(key.id(), Box::new(robots)),
    ];
    if dead {
        let reason = Reason::TriedTooOften { outcome: Outcome::Timeout, attempts: 5 };
        let entry = QueueEntry {
            id,
            version: UrlVersion(1),
            url: url.clone(),
            depth: 1,
            band: 0,
            order: 1,
            redirects: 0,
            attempts: 5,
            validators: None,
            discovered_from: None,
        };
        changes.push(Change::PutDead(Box::new(DeadLetter {
            entry,
            reason,
            attempts: 5,
            last_at: now,
        })));
    }
    changes
}

#[tokio::test]
async fn data_that_no_daemon_has_answers_in_the_same_shapes() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().to_str().unwrap();
    crawled(root.path(), &["http://a.test", "https://b.test", "http://c.test:81"]).await;

    let hosts = run(Form::Json, &["hosts", "--data", data]).await;
    assert_eq!(hosts.exit, Exit::Done, "{}", hosts.notes);
    let page: Value = serde_json::from_str(&hosts.results).unwrap();
    assert_eq!(page["items"].as_array().unwrap().len(), 3, "{page}");
    assert_eq!(page["next"], Value::Null);
    assert_eq!(page["items"][0]["state"], "waiting");
    assert_eq!(page["items"][0]["pages_today"], 5);

    let some = run(Form::Text, &["hosts", "--limit", "2", "--data", data]).await;
    assert_eq!(some.results.lines().count(), 3, "{}", some.results);
    assert!(some.notes.contains("--all"));
    let first = run(Form::Json, &["hosts", "--limit", "1", "--data", data]).await;
    let first: Value = serde_json::from_str(&first.results).unwrap();
    let cursor = first["next"].as_str().unwrap().split_once('-').unwrap();
    assert!(cursor.0.parse::<u16>().is_ok() && cursor.1.len() == 16, "{first}");
    let near = run(Form::Text, &["host", "c.test", "--data", data]).await;
    assert!(near.notes.ends_with("of this name are known: http://c.test:81\n"), "{}", near.notes);
    let one = run(Form::Json, &["hosts", "--domain", "b.test", "--data", data]).await;
    assert!(one.results.contains("https://b.test") && !one.results.contains("a.test"));
    let none = run(Form::Text, &["hosts", "--state", "ready", "--data", data]).await;
    assert_eq!(none.results, "no hosts\n");

    let host = run(Form::Json, &["host", "b.test", "--data", data]).await;
    let host: Value = serde_json::from_str(&host.results).unwrap();
    assert_eq!(host["host_key"], "https://b.test");
    assert_eq!(host["robots"]["state"], "obey");
    assert_eq!((&host["robots"]["rules"], &host["delay_seconds"]), (&1.into(), &2.0.into()));
    assert_eq!(host["budget"], 100_000);

    let url = run(Form::Json, &["urls", "http://a.test/page?x=1#top", "--data", data]).await;
    let url: Value = serde_json::from_str(&url.results).unwrap();
    assert_eq!((&url["state"], &url["depth"]), (&"queued".into(), &1.into()));
    let unknown = run(Form::Text, &["urls", "http://a.test/other", "--data", data]).await;
    assert_eq!(unknown.exit, Exit::Failed);

    let dead = run(Form::Text, &["dead", "list", "--data", data]).await;
    assert!(dead.results.contains("given up after 5 attempts"), "{}", dead.results);
    let status = run(Form::Text, &["status", "--data", data]).await;
    assert!(status.notes.contains("no daemon serves"), "{}", status.notes);
}

fn unreachable(host: &mut HostRecord, now: Timestamp) {
    let reason = Reason::RobotsUnreachable { since: now, why: "status 503".to_owned() };
    let retry_at = now + Duration::from_secs(7200);
    host.hindered = Some(Box::new(Hindrance { retry_at, tries: 3, reason }));
}

fn never_asked(host: &mut HostRecord, _now: Timestamp) {
    host.next_allowed_at = Timestamp::EPOCH;
}

fn used_up(host: &mut HostRecord, now: Timestamp) {
    (host.budget_day, host.next_allowed_at) = (now.day(), now);
    host.overrides.daily_pages = Some(5);
}

/// What happened to a host, its state, words of its reason, whether it has a next time.
struct Standing(&'static str, fn(&mut HostRecord, Timestamp), &'static str, &'static str, bool);

#[tokio::test]
async fn without_a_daemon_a_list_one_host_and_its_url_say_the_same() {
    let standings = [
        Standing("http://clock.test", |_, _| {}, "waiting", "the host may be asked again at", true),
        Standing(
            "http://robots.test",
            unreachable,
            "waiting",
            "robots.txt unreachable since",
            true,
        ),
        Standing("http://new.test", never_asked, "ready", "", false),
        Standing("http://paused.test", |h, _| h.overrides.paused = true, "parked", "paused", true),
        Standing("http://day.test", used_up, "waiting", "today's 5 requests are used up", true),
    ];
    let root = tempfile::tempdir().unwrap();
    let data = root.path().to_str().unwrap();
    let now = TokioClock::system().now();
    let hosts = standings.iter().map(|Standing(host, change, ..)| {
        let url = CrawlUrl::parse(&format!("{host}/page?x=1")).unwrap();
        let mut changes = rows(&url, now, false);
        for row in &mut changes {
            if let Change::PutHost(_, record) = row {
                change(record, now);
            }
        }
        (url.host_key(), changes)
    });
    stored(root.path(), hosts.collect()).await;
    check_standings(data, &standings).await;
}

async fn check_standings(data: &str, standings: &[Standing]) {
    let json = async |line: &[&str]| -> Value {
        let told = run(Form::Json, &[line, &["--data", data]].concat()).await;
        serde_json::from_str(&told.results).unwrap_or_else(|_| panic!("{line:?} {}", told.notes))
    };
    let list = json(&["hosts"]).await;
    for Standing(host, _, state, reason, has_time) in standings {
        let items = list["items"].as_array().unwrap();
        let line = items.iter().find(|line| line["host_key"] == *host).unwrap();
        assert_eq!(line["state"], *state, "{line}");
        assert!(line["reason"].as_str().unwrap_or_default().contains(reason), "{line}");
        assert_eq!(line["next_allowed_at"].is_string(), *has_time, "{line}");
        let one = json(&["host", host]).await;
        for (field, value) in line.as_object().unwrap() {
            assert_eq!(&one[field], value, "{host}: {field}");
        }
        let url = json(&["urls", &format!("{host}/page?x=1")]).await;
        assert_eq!(url["reason"], line["reason"], "{url}");
    }
}

/// What a shard keeps above its hosts counts without a daemon too.
#[tokio::test]
async fn without_a_daemon_exclusions_and_a_pause_of_the_crawl_count() {
    let rule = crate::policy::exclusion::parse_rule("domain:shut.test").unwrap();
    let shut = ExclusionRecord {
        id: crate::policy::exclusion::id_of(&rule),
        rule: rule.to_string(),
        reason: Some("they wrote".to_owned()),
        until: None,
        made_at: Timestamp::from_secs(1),
    };
    let exclusion = Change::PutExclusion(Box::new(shut));
    let paused = Change::PutMeta("paused", vec![1]);
    let shut_out = "excluded at runtime by exclusion";
    for (rows_above, standings, row) in [
        (
            vec![exclusion.clone()],
            [
                Standing("http://www.shut.test", |_, _| {}, "parked", shut_out, true),
                Standing("http://clock.test", |_, _| {}, "waiting", "the host may be asked", true),
            ],
            ("exclusion", "refuse", "excluded: they wrote"),
        ),
        (
            vec![exclusion, paused],
            [
                Standing("http://www.shut.test", |_, _| {}, "parked", shut_out, true),
                Standing("http://clock.test", |_, _| {}, "parked", "paused by an operator", true),
            ],
            ("pause", "wait", "paused by an operator"),
        ),
    ] {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().to_str().unwrap();
        let now = TokioClock::system().now();
        let hosts = standings.iter().map(|Standing(host, ..)| {
            let url = CrawlUrl::parse(&format!("{host}/page?x=1")).unwrap();
            (url.host_key(), [rows(&url, now, false), rows_above.clone()].concat())
        });
        stored(root.path(), hosts.collect()).await;
        check_standings(data, &standings).await;
        let url = "http://www.shut.test/page?x=1";
        let why = run(Form::Json, &["why", url, "--data", data]).await;
        let why: Value = serde_json::from_str(&why.results).unwrap();
        let trace = why["trace"].as_array().unwrap();
        let (step, result, reason) = row;
        let found = trace.iter().find(|found| found["step"] == step).unwrap();
        assert_eq!((&found["result"], &found["reason"]), (&result.into(), &reason.into()));
        let scope = trace.iter().find(|found| found["step"] == "scope").unwrap();
        assert_eq!(scope["value"], "scope.mode host, as configured now", "{why}");
    }
}

#[tokio::test]
async fn a_directory_that_is_none_stays_as_it_is() {
    let root = tempfile::tempdir().unwrap();
    let none = root.path().join("none");
    let asked = run(Form::Text, &["hosts", "--data", none.to_str().unwrap()]).await;
    assert_eq!(asked.exit, Exit::Wrong);
    assert!(asked.notes.contains("is not a data directory of mehman"), "{}", asked.notes);
    assert!(!none.exists());
}

#[tokio::test]
async fn data_in_use_says_by_whom() {
    let root = tempfile::tempdir().unwrap();
    let _held = DataDir::open(root.path()).unwrap();
    let asked = run(Form::Text, &["dead", "list", "--data", root.path().to_str().unwrap()]).await;
    assert_eq!(asked.exit, Exit::Failed);
    assert!(asked.notes.contains("is in use by another process"), "{}", asked.notes);
}
