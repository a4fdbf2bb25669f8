//! R5: rows of what is being removed.

use std::sync::Arc;

use crate::frontier::testing::{Reply, Rig, Setting, Web, completion, published, secs};
use crate::policy::exclusion::{id_of, parse_rule};
use crate::protocol::shard::EndedReport;
use crate::protocol::{Answer, FetchJob, Permit, ShardMsg};
use crate::types::{
    ArchivePointer, ContentRecord, CrawlUrl, ExclusionRecord, Happening, HostKey, LeaseKind,
    Outcome, PurgeRecord, Reason, Removed, UrlStatus, UrlView,
};
use crate::world::SnapshotStore as _;

/// Every page is there, and every robots.txt says something.
fn web() -> Web {
    Arc::new(|lease| match lease.kind {
        LeaseKind::Page => Reply::of(Outcome::Ok),
        LeaseKind::Robots { .. } => {
            Reply { robots: Some("User-agent: *\nDisallow: /closed"), ..Reply::of(Outcome::Ok) }
        }
    })
}

async fn order(rig: &Rig, rule: &str) -> PurgeRecord {
    let parsed = parse_rule(rule).unwrap();
    let (id, rule, made_at) = (id_of(&parsed), parsed.to_string(), rig.now());
    let purge = PurgeRecord::new(id.clone(), rule.clone(), made_at);
    let record = ExclusionRecord { id, rule, reason: None, until: None, made_at };
    rig.ask(|answer| ShardMsg::Exclude(Box::new(record), answer)).await;
    put(rig, &purge).await;
    purge
}

async fn put(rig: &Rig, purge: &PurgeRecord) {
    rig.ask(|answer| ShardMsg::PutPurge(Box::new(purge.clone()), answer)).await;
}

async fn forget(rig: &Rig, purge: &PurgeRecord) -> u64 {
    rig.ask(|answer| ShardMsg::Forget(purge.id.clone(), answer)).await
}

async fn url(rig: &Rig, url: &str) -> UrlView {
    let url = CrawlUrl::parse(url).unwrap();
    *rig.ask(|answer| ShardMsg::LookUpUrl(url, answer)).await.unwrap().unwrap()
}

/// What the index of content knows of a page.
fn content(url: &str) -> Box<ContentRecord> {
    let archive = ArchivePointer { file: "a.warc.gz".into(), offset: 0, length: 300 };
    let url = CrawlUrl::parse(url).unwrap();
    Box::new(ContentRecord { url, fetched_at: crate::types::Timestamp::EPOCH, archive })
}

async fn know(rig: &Rig, url: &str, number: u128) {
    let payload = ShardMsg::KnowPayload(format!("sha1:{number}"), content(url));
    rig.shard().send_message(payload).unwrap();
    rig.ask(|answer| ShardMsg::ClaimText(number, content(url), answer)).await;
}

async fn is_known(rig: &Rig, number: u128) -> (bool, bool) {
    let digest = format!("sha1:{number}");
    let payload = rig.ask(|answer| ShardMsg::LookUpPayload(digest, answer)).await;
    let text = rig.stores[0].text(number).await.unwrap();
    (payload.is_some(), text.is_some())
}

#[tokio::test(start_paused = true)]
async fn rows_lose_what_visits_brought_and_those_of_others_stay() {
    let mut rig = Rig::crawling(Setting::default(), web()).await;
    rig.admit_paths("a.test", 5).await;
    rig.admit_paths("b.test", 3).await;
    rig.until_done(secs(120)).await;
    know(&rig, "https://a.test/1", 1).await;
    know(&rig, "https://b.test/1", 2).await;
    // Hosts that want nothing more go to rest, and leave a snapshot.
    rig.pass(secs(30)).await;
    let hosts = ["https://a.test", "https://b.test"].map(|key| HostKey::parse(key).unwrap().id());
    assert!(hosts.iter().all(|host| rig.snapshots.get(*host).is_some()));
    let purge = order(&rig, "host:a.test").await;
    assert_eq!(forget(&rig, &purge).await, 5);
    for _ in 0..2 {
        let gone = url(&rig, "https://a.test/1").await.visit.unwrap();
        assert_eq!((gone.status, gone.version.0), (UrlStatus::Fetched, 1));
        assert_eq!((&gone.archive, &gone.digest, &gone.validators), (&None, &None, &None));
        assert_eq!((gone.outcome, gone.status_code, gone.last_fetched_at), (None, None, None));
        assert_eq!(gone.reason, Some(Reason::Purged { id: purge.id.clone() }));
        let kept = url(&rig, "https://b.test/1").await.visit.unwrap();
        assert!(kept.archive.is_some() && kept.outcome == Some(Outcome::Ok));
        assert_eq!(
            (is_known(&rig, 1).await, is_known(&rig, 2).await),
            ((false, false), (true, true))
        );
        assert!(rig.snapshots.get(hosts[0]).is_none() && rig.snapshots.get(hosts[1]).is_some());
        let mut robots = Vec::new();
        for host in hosts {
            robots.push(rig.stores[0].robots(host).await.unwrap().is_some());
        }
        assert_eq!(robots, [false, true]);
        rig.kill().await;
        rig.open().await;
        assert_eq!(rig.ask(ShardMsg::ListPurges).await, std::slice::from_ref(&purge));
    }
    assert_eq!(forget(&rig, &purge).await, 5, "counted alike when it is done again");
    let before = rig.events().await.len();
    let removed = Removed { records: 10, bytes: 3000, index_lines: 5, page_records: 5 };
    let done = PurgeRecord { done_at: Some(rig.now()), removed, urls: 5, ..purge };
    put(&rig, &done).await;
    put(&rig, &done).await;
    let events = rig.events().await;
    assert_eq!(events.len(), before + 1, "one event, however often it is told");
    let told = &events[before].1.happening;
    assert!(matches!(told, Happening::Purged { urls: 5, removed: told, .. } if *told == removed));
}

#[tokio::test(start_paused = true)]
async fn a_part_of_a_host_loses_its_pages_and_not_what_belongs_to_the_host() {
    let rig = Rig::crawling(Setting::default(), web()).await;
    rig.admit_paths("a.test", 12).await;
    rig.until_done(secs(120)).await;
    rig.pass(secs(30)).await;
    let purge = order(&rig, "surt:test,a)/1").await;
    assert_eq!(forget(&rig, &purge).await, 3, "/1, /10 and /11");
    assert!(url(&rig, "https://a.test/10").await.visit.unwrap().archive.is_none());
    assert!(url(&rig, "https://a.test/2").await.visit.unwrap().archive.is_some());
    let host = HostKey::parse("https://a.test").unwrap().id();
    assert!(rig.stores[0].robots(host).await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn rows_are_cleared_when_no_parser_has_a_page_and_later_pages_are_dropped() {
    let rig = Rig::new(Setting::default()).await;
    let mut rig = rig;
    rig.open().await;
    rig.serve(web());
    rig.admit_paths("a.test", 2).await;
    rig.until_visits(3, secs(60)).await;
    rig.pass(secs(2)).await;
    let first = rig.pages.recv().await.unwrap();
    let second = rig.pages.recv().await.unwrap();
    let purge = order(&rig, "host:a.test").await;
    let (answer, mut forgotten) = Answer::channel();
    rig.shard().send_message(ShardMsg::Forget(purge.id.clone(), answer)).unwrap();
    rig.shard().send_message(published(first)).unwrap();
    rig.pass(secs(30)).await;
    assert!(forgotten.try_recv().is_err(), "a parser has the other page");
    rig.shard().send_message(published(second)).unwrap();
    rig.pass(secs(5)).await;
    assert_eq!(forgotten.try_recv().unwrap(), 2);
    assert!(rig.stores[0].to_parse(None, 9).await.unwrap().is_empty());
    let parsed = rig.events().await.into_iter();
    let parsed = parsed.filter(|(_, event)| matches!(event.happening, Happening::Parsed { .. }));
    assert_eq!(parsed.count(), 0, "their records are not out");
}

#[tokio::test(start_paused = true)]
async fn an_end_that_comes_with_a_record_after_the_order_counts_as_cut() {
    let mut rig = Rig::new(Setting::default()).await;
    rig.open().await;
    rig.admit_paths("a.test", 1).await;
    let robots = rig.jobs.recv().await.unwrap();
    let reply = Reply { robots: Some("User-agent: *\nAllow: /"), ..Reply::of(Outcome::Ok) };
    end(&rig, &robots, &reply);
    let page = rig.jobs.recv().await.unwrap();
    assert_eq!(page.lease.kind, LeaseKind::Page);
    let purge = order(&rig, "host:a.test").await;
    end(&rig, &page, &Reply::of(Outcome::Ok));
    assert_eq!(forget(&rig, &purge).await, 0, "nothing was brought");
    let visit = url(&rig, "https://a.test/0").await.visit.unwrap();
    assert_eq!((visit.status, visit.archive), (UrlStatus::Sleeping, None));
    let fetched = rig.events().await.into_iter();
    let fetched = fetched.filter(|(_, event)| matches!(event.happening, Happening::Fetched { .. }));
    assert_eq!(fetched.count(), 0);
    let host = HostKey::parse("https://a.test").unwrap().id();
    assert!(rig.stores[0].robots(host).await.unwrap().is_none());
    assert!(rig.snapshots.get(host).is_none());
}

/// The end of an exchange whose response is stored.
fn end(rig: &Rig, job: &FetchJob, reply: &Reply) {
    let now = rig.now();
    let completion = completion(&job.lease, now, now, reply);
    let report = EndedReport { completion, response: None, permit: Permit::free() };
    job.shard.send_message(ShardMsg::Ended(Box::new(report))).unwrap();
}
