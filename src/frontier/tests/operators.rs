//! What operators order and what caps hold.

use std::sync::Arc;
use std::time::Duration;

use crate::frontier::testing::{Reply, Rig, Setting, Web, open_web, secs};
use crate::protocol::ShardMsg;
use crate::protocol::shard::{Admission, HostFilter, HostOrder};
use crate::types::{HostKey, LeaseKind, Outcome, Reason};

fn order(paused: Option<bool>) -> HostOrder {
    HostOrder {
        host: HostKey::parse("https://a.test").unwrap(),
        paused,
        min_delay: None,
        max_in_flight: None,
        daily_pages: None,
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_shard_grants_nothing_until_it_goes_on() {
    let rig = Rig::crawling(Setting::default(), open_web()).await;
    rig.shard().send_message(ShardMsg::Pause(true, crate::protocol::Answer::ignored())).unwrap();
    rig.admit_paths("a.test", 2).await;
    rig.pass(secs(30)).await;
    assert_eq!(rig.visits().len(), 0);
    rig.shard().send_message(ShardMsg::Pause(false, crate::protocol::Answer::ignored())).unwrap();
    rig.until_done(secs(60)).await;
    assert_eq!(rig.visits().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_paused_host_waits_for_its_resume_also_over_a_restart() {
    let mut rig = Rig::crawling(Setting::default(), open_web()).await;
    rig.admit_paths("a.test", 6).await;
    rig.until_visits(2, secs(60)).await;
    let set = rig.ask(|answer| ShardMsg::Order(order(Some(true)), answer)).await.unwrap();
    assert!(set.paused);
    rig.pass(secs(2)).await;
    let before = rig.visits().len();
    rig.pass(secs(30)).await;
    rig.kill().await;
    rig.open().await;
    rig.pass(secs(30)).await;
    assert_eq!(rig.visits().len(), before);
    let hosts = rig.ask(|answer| {
        ShardMsg::ListHosts(HostFilter { limit: 10, ..HostFilter::default() }, answer)
    });
    assert_eq!(hosts.await.unwrap().hosts.len(), 1);
    let set = rig.ask(|answer| ShardMsg::Order(order(Some(false)), answer)).await.unwrap();
    assert!(!set.paused);
    rig.until_done(secs(60)).await;
    assert_eq!(rig.paths().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn two_orders_at_once_both_hold() {
    for resting in [false, true] {
        let rig = Rig::crawling(Setting::default(), open_web()).await;
        rig.admit_paths("a.test", 1).await;
        if resting {
            rig.until_done(secs(60)).await;
            rig.pass(secs(20)).await;
            assert_eq!(rig.view().await.hosts_resident, 0);
        }
        let delay = HostOrder { min_delay: Some(Some(secs(9))), ..order(None) };
        let (one, two) = tokio::join!(
            rig.ask(|answer| ShardMsg::Order(order(Some(true)), answer)),
            rig.ask(|answer| ShardMsg::Order(delay, answer)),
        );
        let (one, two) = (one.unwrap(), two.unwrap());
        assert!(one.paused && one.min_delay.is_none(), "{one:?}");
        assert_eq!((two.paused, two.min_delay, two.version), (true, Some(secs(9)), 2));
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_to_a_host_that_panics_is_answered() {
    let rig = Rig::crawling(Setting::default(), open_web()).await;
    rig.admit_paths("a.test", 3).await;
    rig.until_visits(2, secs(60)).await;
    rig.pass(Duration::from_millis(100)).await;
    rig.dice.load(1);
    let set = rig.ask(|answer| ShardMsg::Order(order(Some(true)), answer)).await.unwrap();
    assert!(set.paused);
    assert_eq!(rig.view().await.restarts, 1);
}

#[tokio::test(start_paused = true)]
async fn an_order_for_a_host_that_nobody_knows_is_answered() {
    let rig = Rig::new(Setting::default()).await;
    assert_eq!(rig.ask(|answer| ShardMsg::Order(order(Some(true)), answer)).await, None);
}

#[tokio::test(start_paused = true)]
async fn a_crawl_stops_at_exactly_its_cap_on_pages() {
    let mut setting = Setting::default();
    setting.quota.max_pages = Some(7);
    let rig = Rig::crawling(setting, open_web()).await;
    for host in 0..5 {
        rig.admit_paths(&format!("h{host}.test"), 5).await;
    }
    rig.pass(secs(120)).await;
    let view = rig.view().await;
    assert_eq!((view.pages, rig.paths().len(), view.in_flight), (7, 7, 0));
    assert_eq!((view.offers, view.urls.queued), (0, 18));
}

#[tokio::test(start_paused = true)]
async fn a_daily_cap_on_requests_holds_until_midnight() {
    let mut setting = Setting::default();
    setting.quota.daily_fetches = Some(4);
    let rig = Rig::crawling(setting, open_web()).await;
    rig.admit_paths("a.test", 5).await;
    let midnight = rig.now().next_day();
    rig.pass(secs(60)).await;
    assert_eq!(rig.visits().len(), 4);
    assert_eq!(rig.view().await.next_wake, Some(midnight));
    rig.until_done(midnight.since(rig.now()) + secs(60)).await;
    assert_eq!(rig.paths().len(), 5);
}

#[tokio::test(start_paused = true)]
async fn a_cap_on_urls_refuses_and_says_why() {
    let setting = Setting { host_max_urls: 2, ..Setting::default() };
    let rig = Rig::crawling(setting, open_web()).await;
    let urls: Vec<String> = (0..3).map(|n| format!("https://a.test/{n}")).collect();
    let refused = Admission::Refused(Reason::UrlCap { max: 2 });
    assert_eq!(rig.admit(&urls).await, [Admission::Added, Admission::Added, refused]);
    rig.until_done(secs(60)).await;
    assert_eq!(rig.view().await.urls.known, 2);
}

#[tokio::test(start_paused = true)]
async fn refused_urls_are_judged_again_when_the_rules_change() {
    let web: Web = Arc::new(|lease| match lease.kind {
        LeaseKind::Robots { .. } => {
            let first = lease.granted_at < crate::frontier::testing::at(80_000_000);
            let rules = if first { "User-agent: *\nDisallow: /\n" } else { "" };
            Reply { robots: Some(rules), ..Reply::of(Outcome::Ok) }
        }
        LeaseKind::Page => Reply::of(Outcome::Ok),
    });
    let rig = Rig::crawling(Setting::default(), web).await;
    rig.admit_paths("a.test", 40).await;
    rig.until_done(secs(60)).await;
    let view = rig.view().await;
    assert_eq!((view.urls.sleeping, view.urls.queued, rig.paths().len()), (40, 0, 0));
    rig.pass(secs(86_400)).await;
    rig.admit(&["https://a.test/new".to_owned()]).await;
    rig.until_done(secs(600)).await;
    let view = rig.view().await;
    assert_eq!((view.urls.sleeping, rig.paths().len()), (0, 41));
    rig.pass(secs(20)).await;
    assert_eq!(rig.view().await.hosts_resident, 0);
}

#[tokio::test(start_paused = true)]
async fn a_drained_shard_comes_to_rest() {
    let rig = Rig::crawling(Setting::default(), open_web()).await;
    rig.admit_paths("a.test", 50).await;
    rig.until_visits(5, secs(60)).await;
    rig.shard().send_message(ShardMsg::Drain).unwrap();
    rig.pass(secs(60)).await;
    let view = rig.view().await;
    assert_eq!((view.in_flight, view.unwritten, view.offers), (0, 0, 0));
    assert_eq!(view.urls.queued + view.urls.deferred + view.pages, 50);
}

#[tokio::test(start_paused = true)]
async fn what_is_said_of_hosts_adds_up_while_a_request_is_in_flight() {
    let web: Web = Arc::new(|lease| match lease.kind {
        LeaseKind::Robots { .. } => Reply { robots: Some(""), ..Reply::of(Outcome::Ok) },
        LeaseKind::Page => Reply::lost(),
    });
    let rig = Rig::crawling(Setting::default(), web).await;
    rig.admit_paths("a.test", 5).await;
    rig.until_visits(2, secs(60)).await;
    rig.pass(secs(1)).await;
    let view = rig.view().await;
    assert_eq!((view.in_flight, view.pages_in_flight), (1, 1), "{view:#?}");
    assert_eq!((view.urls.queued, view.queued()), (5, 4));
    let next = view.next_wake.unwrap();
    assert!(next <= rig.now() + secs(10), "the end of the lease is no request: {next}");
    assert_eq!((view.hosts_ready, view.hosts_waiting, view.hosts_parked), (0, 0, 0));
    let waiting = HostFilter {
        limit: 10,
        phase: Some(crate::protocol::HostPhase::Waiting),
        ..HostFilter::default()
    };
    let listed = rig.ask(|answer| ShardMsg::ListHosts(waiting, answer)).await.unwrap();
    assert_eq!(listed.hosts, []);
}
