//! What fails: hosts, fetchers, parsers, the store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::frontier::testing::{Reply, Rig, Setting, Web, assert_polite, open_web, secs};
use crate::protocol::ShardMsg;
use crate::protocol::shard::{Admission, DeadSelection};
use crate::telemetry::Counter;
use crate::types::{LeaseKind, Outcome};

#[tokio::test(start_paused = true)]
async fn a_host_that_panics_once_comes_back_and_its_lease_is_answered() {
    for throws in [1, 2] {
        let rig = Rig::crawling(Setting::default(), open_web()).await;
        rig.admit_paths("a.test", 4).await;
        rig.until_visits(2, secs(60)).await;
        rig.dice.load(throws);
        rig.until_done(secs(120)).await;
        let view = rig.view().await;
        assert_eq!(view.restarts, u64::from(throws));
        assert_eq!((rig.paths().len(), view.pages), (4, 4), "nothing is fetched twice");
        assert_polite(&rig.visits(), secs(1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_panics_at_the_end_of_an_exchange_hears_of_it_again() {
    let armed = Arc::new(AtomicBool::new(true));
    let rig = Rig::new(Setting::default()).await;
    let (dice, once) = (Arc::clone(&rig.dice), Arc::clone(&armed));
    let web: Web = Arc::new(move |lease| {
        if lease.kind == LeaseKind::Page && once.swap(false, Ordering::SeqCst) {
            dice.load(1);
        }
        match lease.kind {
            LeaseKind::Page => Reply::of(Outcome::Ok),
            LeaseKind::Robots { .. } => Reply::of(Outcome::ClientError),
        }
    });
    rig.serve(web);
    rig.publish();
    rig.admit_paths("a.test", 2).await;
    rig.until_done(secs(60)).await;
    assert_eq!((rig.paths().len(), rig.view().await.restarts), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn a_host_that_panics_again_and_again_is_parked() {
    let rig = Rig::crawling(Setting::default(), open_web()).await;
    rig.admit_paths("a.test", 4).await;
    rig.admit_paths("b.test", 1).await;
    rig.until_visits(3, secs(60)).await;
    rig.snapshots.panics.store(3, Ordering::SeqCst);
    rig.dice.load(1);
    rig.pass(secs(30)).await;
    let view = rig.view().await;
    assert_eq!(view.hosts_parked, 1, "{view:#?}");
    let parked: Vec<_> = view.parked.iter().map(|parked| parked.reason.clone()).collect();
    assert!(parked[0].contains("failed"), "{parked:?}");
    assert_eq!(rig.metrics.count(Counter::HostsParked), 1);
    let before = rig.visits().len();
    rig.pass(secs(60)).await;
    assert_eq!(rig.visits().len(), before);
}

#[tokio::test(start_paused = true)]
async fn a_host_that_cannot_start_does_not_turn_round_on_the_spot() {
    let rig = Rig::crawling(Setting::default(), open_web()).await;
    rig.snapshots.panics.store(u32::MAX, Ordering::SeqCst);
    rig.admit_paths("a.test", 1).await;
    rig.pass(secs(300)).await;
    let restarts = rig.view().await.restarts;
    assert!((3..20).contains(&restarts), "{restarts} restarts");
    assert_eq!(rig.metrics.count(Counter::HostsParked), 1, "parked once, however often it fails");
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_comes_back_even_without_credit() {
    let lost = Arc::new(AtomicBool::new(true));
    let once = Arc::clone(&lost);
    let web: Web = Arc::new(move |lease| match lease.kind {
        LeaseKind::Robots { .. } => Reply::of(Outcome::ClientError),
        LeaseKind::Page if once.swap(false, Ordering::SeqCst) => Reply::lost(),
        LeaseKind::Page => Reply::of(Outcome::Ok),
    });
    let setting = Setting { credit: 1, ..Setting::default() };
    let rig = Rig::crawling(setting, web).await;
    rig.admit_paths("a.test", 2).await;
    rig.admit_paths("b.test", 2).await;
    rig.until_done(secs(900)).await;
    assert_eq!(rig.paths().len(), 5);
    assert_eq!(rig.view().await.in_flight, 0);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_kills_parsers_is_given_up() {
    let rig = Rig::new(Setting::default()).await;
    rig.serve(open_web());
    rig.admit_paths("a.test", 1).await;
    for death in 0..3 {
        let job = tokio::time::timeout(secs(60), rig.pages.recv()).await.unwrap().unwrap();
        assert_eq!(job.row.attempts, death);
        let (id, version) = (job.row.id, job.row.version);
        rig.shard().send_message(ShardMsg::ParserDied { id, version }).unwrap();
    }
    rig.until_done(secs(60)).await;
    rig.pass(secs(2)).await;
    let events = rig.events().await;
    assert_eq!(events.last().unwrap().1.happening.kind(), "parsed");
    assert_eq!(rig.stores[0].to_parse(None, 10).await.unwrap().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn failing_pages_become_dead_letters_and_can_be_retried() {
    let works = Arc::new(AtomicBool::new(false));
    let fixed = Arc::clone(&works);
    let web: Web = Arc::new(move |lease| match lease.kind {
        LeaseKind::Robots { .. } => Reply::of(Outcome::ClientError),
        LeaseKind::Page if fixed.load(Ordering::SeqCst) => Reply::of(Outcome::Ok),
        LeaseKind::Page => Reply::of(Outcome::Timeout),
    });
    let rig = Rig::crawling(Setting::default(), web).await;
    rig.admit_paths("a.test", 2).await;
    rig.until_done(secs(7200)).await;
    let view = rig.view().await;
    assert_eq!((view.urls.dead, rig.paths().len()), (2, 10));
    works.store(true, Ordering::SeqCst);
    let (one, two) = tokio::join!(
        rig.ask(|answer| ShardMsg::RetryDead(DeadSelection::All, answer)),
        rig.ask(|answer| ShardMsg::RetryDead(DeadSelection::All, answer)),
    );
    assert_eq!((one.unwrap(), two.unwrap()), (2, 0));
    rig.until_done(secs(600)).await;
    assert_eq!((rig.view().await.urls.dead, rig.paths().len()), (0, 12));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_fails_is_tried_again_and_loses_nothing() {
    let rig = Rig::crawling(Setting::default(), open_web()).await;
    rig.admit_paths("a.test", 6).await;
    rig.until_visits(3, secs(60)).await;
    rig.flaky.fails.store(true, Ordering::SeqCst);
    rig.pass(secs(120)).await;
    let view = rig.view().await;
    assert!(!view.degraded.is_empty(), "A4: it says so: {view:#?}");
    assert!(rig.metrics.count(Counter::StoreFailures) > 0);
    rig.flaky.fails.store(false, Ordering::SeqCst);
    rig.until_done(secs(600)).await;
    assert!(rig.view().await.degraded.is_empty());
    assert_eq!(rig.paths().len(), 6);
    assert_polite(&rig.visits(), secs(1));
    let again = rig.admit(&["https://a.test/0".to_owned()]).await;
    assert_eq!(again, [Admission::Known]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_store_changes_no_order_and_no_count() {
    let rig = Rig::crawling(Setting::default(), open_web()).await;
    rig.flaky.slow_ms.store(700, Ordering::SeqCst);
    rig.admit_paths("a.test", 5).await;
    rig.admit_paths("b.test", 5).await;
    rig.until_done(secs(600)).await;
    assert_eq!(rig.paths().len(), 10);
    assert_polite(&rig.visits(), secs(1));
    let view = rig.view().await;
    assert_eq!((view.urls.known, view.urls.queued, view.pages), (10, 0, 10));
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_fails_gives_its_places_back() {
    let mut setting = Setting::default();
    setting.quota.max_pages = Some(6);
    setting.address.max_in_flight = 1;
    let mut rig = Rig::crawling(setting, open_web()).await;
    rig.admit_paths("a.test", 10).await;
    rig.until_visits(4, secs(60)).await;
    let quota = rig.quota.clone();
    rig.kill().await;
    rig.quota = quota;
    rig.open().await;
    rig.pass(secs(600)).await;
    assert_eq!(rig.quota.lock().pages(), 6);
    assert_eq!(rig.view().await.pages, 6);
}

#[tokio::test(start_paused = true)]
async fn an_answer_from_another_address_is_a_violation() {
    let web: Web = Arc::new(|lease| match lease.kind {
        LeaseKind::Robots { .. } => Reply::of(Outcome::ClientError),
        LeaseKind::Page => Reply::of(Outcome::EgressRefused),
    });
    let rig = Rig::crawling(Setting::default(), web).await;
    rig.admit_paths("a.test", 1).await;
    rig.until_visits(2, secs(60)).await;
    rig.pass(secs(1)).await;
    assert_eq!(rig.view().await.violations, 1, "I6");
}
