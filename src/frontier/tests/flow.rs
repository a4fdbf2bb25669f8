//! From an admission to a published page.

use std::time::Duration;

use crate::frontier::testing::{Rig, Setting, assert_polite, open_web, secs};
use crate::protocol::ShardMsg;
use crate::protocol::shard::Admission;
use crate::types::Timestamp;

#[tokio::test(start_paused = true)]
async fn a_url_is_admitted_once_and_served() {
    let rig = Rig::crawling(Setting::default(), open_web()).await;
    let urls = ["https://a.test/1".to_owned(), "https://a.test/2".to_owned()];
    assert_eq!(rig.admit(&urls).await, [Admission::Added, Admission::Added]);
    assert_eq!(rig.admit(&urls).await, [Admission::Known, Admission::Known]);
    rig.until_done(secs(60)).await;
    let visits = rig.visits();
    assert_eq!(visits.len(), 3);
    assert!(!visits[0].is_page(), "robots.txt comes first");
    assert_polite(&visits, secs(1));
    let view = rig.view().await;
    assert_eq!((view.urls.known, view.pages, view.violations), (2, 2, 0));
    assert_eq!(rig.parsed.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn events_come_in_order_without_gaps() {
    let rig = Rig::crawling(Setting::default(), open_web()).await;
    rig.admit_paths("a.test", 3).await;
    rig.until_done(secs(60)).await;
    rig.pass(secs(2)).await;
    let events = rig.events().await;
    let numbers: Vec<u64> = events.iter().map(|(seq, _)| *seq).collect();
    let expected: Vec<u64> = (1..=9).collect();
    assert_eq!(numbers, expected);
    let kinds: Vec<&str> = events.iter().map(|(_, event)| event.happening.kind()).collect();
    assert_eq!(kinds[..4], ["discovered", "discovered", "discovered", "fetched"]);
    assert_eq!(kinds.iter().filter(|kind| **kind == "parsed").count(), 3);
    assert_eq!(rig.view().await.last_event, 9);
}

#[tokio::test(start_paused = true)]
async fn only_durable_leases_leave() {
    let mut rig = Rig::new(Setting::default()).await;
    rig.admit_paths("a.test", 1).await;
    let job = tokio::time::timeout(secs(10), rig.jobs.recv()).await.unwrap().unwrap();
    rig.kill().await;
    rig.open().await;
    let (from, to) = (Timestamp::EPOCH, Timestamp::NEVER);
    let granted = rig.stores[0].ledger(from, to, None, 10).await.unwrap();
    assert!(granted.iter().any(|(place, _)| place.lease == job.lease.id));
}

#[tokio::test(start_paused = true)]
async fn many_urls_pass_a_bounded_window_exactly_once() {
    let mut setting = Setting::default();
    setting.host.politeness.min_delay = Duration::from_millis(10);
    setting.host.politeness.delay_factor = 0.0;
    let rig = Rig::crawling(setting, open_web()).await;
    rig.admit_paths("a.test", 2_000).await;
    rig.until_done(secs(600)).await;
    let mut paths = rig.paths();
    assert_eq!(paths.len(), 2_000);
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), 2_000);
    assert_polite(&rig.visits(), Duration::from_millis(10));
    let window = rig
        .ask(|answer| {
            let host = crate::types::HostKey::parse("https://a.test").unwrap();
            ShardMsg::LookUpHost(host, answer)
        })
        .await;
    assert!(window.unwrap().unwrap().view.window <= 64);
}
