//! Shards that are closed, killed and opened again; hosts that rest and wake.

use std::sync::Arc;
use std::time::Duration;

use crate::frontier::testing::{Reply, Rig, Setting, Web, assert_polite, at, open_web, secs};
use crate::policy::change::Change;
use crate::protocol::shard::Admission;
use crate::types::{LeaseKind, Outcome};

fn assert_each_once(rig: &Rig, count: usize) {
    let pages = rig.visits().into_iter().filter(crate::frontier::testing::Visit::is_page);
    let mut pages: Vec<String> = pages.map(|visit| visit.url().to_owned()).collect();
    assert_eq!(pages.len(), count, "{pages:?}");
    pages.sort();
    pages.dedup();
    assert_eq!(pages.len(), count, "a page was fetched twice");
}

#[tokio::test(start_paused = true)]
async fn a_closed_shard_goes_on_where_it_stopped() {
    let mut rig = Rig::crawling(Setting::default(), open_web()).await;
    rig.admit_paths("a.test", 10).await;
    rig.admit_paths("b.test", 10).await;
    rig.until_visits(8, secs(60)).await;
    let before = rig.view().await;
    rig.close().await;
    rig.open().await;
    let after = rig.view().await;
    assert_eq!((after.urls.known, after.hosts_known), (before.urls.known, before.hosts_known));
    assert!(after.epoch > before.epoch);
    let again = rig.admit(&["https://a.test/3".to_owned()]).await;
    assert_eq!(again, [Admission::Known]);
    rig.until_done(secs(120)).await;
    assert_each_once(&rig, 20);
    assert_polite(&rig.visits(), secs(1));
    let view = rig.view().await;
    assert_eq!((view.pages, view.urls.queued), (20, 0));
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_opens_goes_on_by_itself() {
    let mut rig = Rig::crawling(Setting::default(), open_web()).await;
    rig.admit_paths("a.test", 5).await;
    rig.until_visits(3, secs(60)).await;
    rig.close().await;
    rig.open().await;
    rig.pass(secs(60)).await;
    assert_each_once(&rig, 5);
}

#[tokio::test(start_paused = true)]
async fn a_killed_shard_loses_nothing_it_acknowledged() {
    for after in [1, 2, 3, 5, 8] {
        let mut rig = Rig::crawling(Setting::default(), open_web()).await;
        rig.admit_paths("a.test", 8).await;
        rig.until_visits(after, secs(60)).await;
        rig.kill().await;
        let killed_at = rig.now();
        rig.open().await;
        rig.until_done(secs(900)).await;
        let mut paths = rig.paths();
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), 8, "killed after {after}");
        let later: Vec<_> =
            rig.visits().into_iter().filter(|visit| visit.sent_at > killed_at).collect();
        assert!(later.iter().all(|visit| visit.sent_at >= killed_at + secs(1)), "I3");
        let mut fetched = std::collections::BTreeMap::new();
        for (_, event) in rig.events().await {
            *fetched
                .entry(format!("{:?}{}", event.subject, event.happening.kind()))
                .or_insert(0) += 1;
        }
        assert!(fetched.values().all(|times| *times == 1), "O5: {fetched:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_hung_when_its_shard_was_killed_is_taken_back_once() {
    let web: Web = Arc::new(|lease| match (&lease.kind, lease.host.host()) {
        (LeaseKind::Robots { .. }, _) => Reply::of(Outcome::ClientError),
        (LeaseKind::Page, "slow.test") => Reply { took: secs(200), ..Reply::of(Outcome::Ok) },
        (LeaseKind::Page, _) => Reply::of(Outcome::Ok),
    });
    let mut rig = Rig::crawling(Setting::default(), web).await;
    rig.admit_paths("slow.test", 1).await;
    rig.admit_paths("a.test", 20).await;
    rig.until_visits(15, secs(60)).await;
    rig.kill().await;
    let store = rig.store(0).await;
    let open = store.open_leases().await.unwrap();
    let hung: Vec<&str> = open.iter().map(|open| open.lease.host.host()).collect();
    assert!(hung.contains(&"slow.test"), "its grant is older than many others: {hung:?}");
    store.close(secs(10)).await.unwrap();
    rig.open().await;
    rig.until_visits(16, secs(60)).await;
    rig.pass(secs(3)).await;
    rig.kill().await;
    let rows = async |rig: &Rig| {
        let store = rig.store(0).await;
        let (rows, _) = store.ledger(at(0), None, 1000).await.unwrap();
        store.close(secs(10)).await.unwrap();
        let ended = |lease| rows.iter().filter(|(_, row)| row.lease() == lease).count();
        open.iter().map(|open| ended(open.lease.id)).collect::<Vec<_>>()
    };
    assert!(rows(&rig).await.iter().all(|rows| *rows == 2), "granted once, ended once");
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_a_site_asked_for_survives_a_kill() {
    let web: Web = Arc::new(|lease| match lease.kind {
        LeaseKind::Robots { .. } => Reply::of(Outcome::ClientError),
        LeaseKind::Page => Reply {
            retry_after: Some(secs(600)),
            status: Some(503),
            ..Reply::of(Outcome::RateLimited)
        },
    });
    let mut rig = Rig::crawling(Setting::default(), web).await;
    rig.admit_paths("a.test", 3).await;
    rig.until_visits(2, secs(60)).await;
    let asked_at = rig.visits()[1].ended_at;
    rig.pass(Duration::from_millis(100)).await;
    rig.kill().await;
    rig.open().await;
    rig.until_visits(3, secs(1200)).await;
    assert!(rig.visits()[2].sent_at >= asked_at + secs(600), "I3");
}

#[tokio::test(start_paused = true)]
async fn sleepers_are_judged_though_a_kill_came_before_new_rules_could_wake_them() {
    let web: Web = Arc::new(|lease| match lease.kind {
        LeaseKind::Robots { .. } => {
            Reply { robots: Some("User-agent: *\nDisallow: /\n"), ..Reply::of(Outcome::Ok) }
        }
        LeaseKind::Page => Reply::of(Outcome::Ok),
    });
    let mut rig = Rig::crawling(Setting::default(), web).await;
    rig.admit_paths("a.test", 5).await;
    rig.until_done(secs(60)).await;
    assert_eq!((rig.view().await.urls.sleeping, rig.paths().len()), (5, 0));
    rig.pass(secs(3)).await;
    rig.kill().await;
    // What a kill leaves that comes between new rules and the waking of the sleepers.
    let host = crate::types::HostKey::parse("https://a.test").unwrap().id();
    let (fetched_at, expires_at) = (rig.now(), rig.now() + secs(86_400));
    let answer = crate::types::RobotsKept::AllowAll;
    let robots = crate::types::RobotsRecord { fetched_at, expires_at, answer, reservations: None };
    rig.world.snapshots.remove(host);
    let store = rig.store(0).await;
    let changes = vec![Change::PutRobots(host, Box::new(robots)), Change::PutUnjudged(host)];
    store.write(changes.into()).await.unwrap();
    store.close(secs(10)).await.unwrap();
    rig.open().await;
    rig.pass(secs(60)).await;
    assert_eq!((rig.view().await.urls.sleeping, rig.paths().len()), (0, 5));
    assert_eq!(rig.stores[0].unjudged().await.unwrap(), [], "judged once");
}

#[tokio::test(start_paused = true)]
async fn a_page_that_nobody_parsed_is_parsed_after_a_restart() {
    let mut rig = Rig::new(Setting::default()).await;
    rig.serve(open_web());
    rig.admit_paths("a.test", 3).await;
    rig.until_visits(4, secs(60)).await;
    rig.pass(secs(3)).await;
    rig.kill().await;
    rig.publish();
    rig.open().await;
    rig.until_done(secs(60)).await;
    assert_eq!(rig.parsed.lock().unwrap().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn pages_that_parsers_have_no_room_for_are_parsed_later() {
    let setting = Setting { parse_room: 2, ..Setting::default() };
    let mut rig = Rig::new(setting).await;
    rig.serve(open_web());
    for host in 0..150 {
        rig.admit_paths(&format!("h{host}.test"), 1).await;
    }
    rig.pass(secs(60)).await;
    assert!(rig.view().await.parsing > 2);
    rig.publish();
    rig.until_done(secs(600)).await;
    let mut parsed = rig.parsed.lock().unwrap().clone();
    parsed.sort();
    parsed.dedup();
    assert_eq!(parsed.len(), 150);
    rig.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_host_rests_and_wakes_from_its_snapshot() {
    let web: Web = Arc::new(|lease| match lease.kind {
        LeaseKind::Robots { .. } => {
            Reply { robots: Some("User-agent: *\nCrawl-delay: 60\n"), ..Reply::of(Outcome::Ok) }
        }
        LeaseKind::Page => Reply::of(Outcome::Ok),
    });
    let rig = Rig::crawling(Setting::default(), web).await;
    rig.admit_paths("a.test", 4).await;
    rig.until_visits(2, secs(200)).await;
    rig.pass(secs(5)).await;
    assert_eq!(rig.view().await.hosts_resident, 0, "it rests while its clock runs");
    let parked = rig.view().await.parked;
    assert_eq!(parked.len(), 1, "and is shown to operators");
    rig.admit(&["https://a.test/late".to_owned()]).await;
    rig.until_done(secs(900)).await;
    assert_each_once(&rig, 5);
    assert_polite(&rig.visits(), secs(60));
    assert_eq!(rig.visits().iter().filter(|visit| !visit.is_page()).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn resident_hosts_are_bounded() {
    let setting = Setting { resident_hosts: 5, credit: 4, ..Setting::default() };
    let rig = Rig::crawling(setting, open_web()).await;
    for host in 0..40 {
        rig.admit_paths(&format!("h{host}.test"), 3).await;
    }
    let mut most = 0;
    for _ in 0..100 {
        most = most.max(rig.view().await.hosts_resident);
        rig.pass(Duration::from_millis(200)).await;
    }
    assert!(most <= 5 + 4 + 1, "{most} residents");
    rig.until_done(secs(600)).await;
    assert_eq!(rig.visits().len(), 40 * 4);
    assert_polite(&rig.visits(), secs(1));
}
