//! From an admission to a published page.

use std::time::Duration;

use crate::frontier::testing::{Rig, Setting, assert_polite, open_web, published, secs};
use crate::protocol::shard::{Admission, PublishedBatch, PublishedPage};
use crate::protocol::{Answer, Credit, ShardMsg};
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
    let (rows, more) = rig.stores[0].ledger(Timestamp::EPOCH, None, 10).await.unwrap();
    assert!(rows.iter().any(|(_, row)| row.lease() == job.lease.id) && more.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_response_rides_along_to_the_parser_and_its_row_goes_when_published() {
    let rig = Rig::new(Setting::default()).await;
    let serving = rig.serve(open_web());
    rig.admit_paths("a.test", 1).await;
    let body = Credit::new(10);
    let job = tokio::time::timeout(secs(30), rig.pages.recv()).await.unwrap().unwrap();
    assert!(job.response.is_none(), "these fetchers keep no response");
    let shard = job.shard.clone();
    shard.send_message(published(job)).unwrap();
    rig.until_done(secs(30)).await;
    serving.abort();
    rig.admit(&["https://a.test/with-body".to_owned()]).await;
    let robots = rig.visits().len();
    rig.answer_next_with_body(body.try_take(4).unwrap()).await;
    let job = tokio::time::timeout(secs(30), rig.pages.recv()).await.unwrap().unwrap();
    assert_eq!(job.response.as_ref().unwrap().body, "body");
    assert_eq!((body.used(), rig.visits().len()), (4, robots));
    assert_eq!(rig.stores[0].to_parse(None, 9).await.unwrap().len(), 1, "P4: the row is there");
    let row = job.row.clone();
    drop(job);
    assert_eq!(body.used(), 0);
    let page = PublishedPage { row, links: 3, duplicate_of: None, parser_version: 1 };
    let (answer, committed) = Answer::channel();
    let outputs = vec![("pages".to_owned(), vec![1, 2])];
    let batch = PublishedBatch { pages: vec![page], outputs, answer };
    rig.shard().send_message(ShardMsg::Published(Box::new(batch))).unwrap();
    tokio::time::timeout(secs(30), committed).await.unwrap().unwrap();
    assert_eq!(rig.stores[0].to_parse(None, 9).await.unwrap().len(), 0);
    assert_eq!(rig.stores[0].output("pages").await.unwrap(), Some(vec![1, 2]));
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

#[tokio::test(start_paused = true)]
async fn seeds_are_answered_at_once_and_links_with_the_next_flush() {
    // Without credit nothing is granted, so nothing else hurries the store.
    let rig = Rig::crawling(Setting { credit: 0, ..Setting::default() }, open_web()).await;
    let taken = async |urls: &[&str], is_seed| {
        let urls: Vec<String> = urls.iter().map(|url| format!("https://a.test/{url}")).collect();
        let asked_at = rig.now();
        let results = rig.admit_as(&urls, is_seed).await;
        assert!(results.iter().all(|result| *result == Admission::Added));
        rig.now().since(asked_at)
    };
    let links = taken(&["1"], false).await;
    let seeds = taken(&["2"], true).await;
    assert!(links >= secs(1) && seeds < secs(1) / 4, "links {links:?}, seeds {seeds:?}");
}
