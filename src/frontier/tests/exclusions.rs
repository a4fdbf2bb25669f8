//! R5: exclusions made while the crawl runs.

use std::sync::Arc;

use crate::frontier::testing::{Reply, Rig, Setting, Web, open_web, secs};
use crate::policy::exclusion::{id_of, parse_rule};
use crate::protocol::shard::{Admission, HostFilter};
use crate::protocol::{Answer, HostPhase, ShardMsg};
use crate::types::{ExclusionRecord, Happening, LeaseKind, Outcome, Reason, Timestamp};

fn id(rule: &str) -> String {
    id_of(&parse_rule(rule).unwrap())
}

async fn exclude(rig: &Rig, rule: &str, until: Option<Timestamp>) {
    let record = ExclusionRecord {
        id: id(rule),
        rule: parse_rule(rule).unwrap().to_string(),
        reason: None,
        until,
        made_at: rig.now(),
    };
    rig.ask(|answer| ShardMsg::Exclude(Box::new(record), answer)).await;
}

async fn lift(rig: &Rig, rule: &str) {
    rig.ask(|answer| ShardMsg::LiftExclusion(id(rule), answer)).await;
}

/// Requests of a host so far, robots.txt included.
fn asked(rig: &Rig, host: &str) -> usize {
    rig.visits().iter().filter(|visit| visit.lease.host.host() == host).count()
}

async fn hosts(rig: &Rig) -> Vec<(String, HostPhase, Option<String>)> {
    let filter = HostFilter { limit: 10, ..HostFilter::default() };
    let page = rig.ask(|answer| ShardMsg::ListHosts(filter, answer)).await.unwrap();
    let lines = page.hosts.into_iter();
    lines.map(|host| (host.host_key.to_string(), host.state, host.reason)).collect()
}

#[tokio::test(start_paused = true)]
async fn an_excluded_host_is_asked_nothing_over_a_kill_until_the_exclusion_is_lifted() {
    let mut rig = Rig::crawling(Setting::default(), open_web()).await;
    rig.admit_paths("a.test", 8).await;
    rig.admit_paths("b.test", 8).await;
    rig.until_visits(6, secs(60)).await;
    exclude(&rig, "host:a.test", None).await;
    // What was with the fetchers already ends here: only workers cut.
    rig.pass(secs(2)).await;
    let before = asked(&rig, "a.test");
    assert!((1..9).contains(&before), "{before}");
    rig.pass(secs(60)).await;
    assert_eq!((asked(&rig, "a.test"), asked(&rig, "b.test")), (before, 9));
    let view = rig.view().await;
    assert_eq!((view.next_wake, view.hosts_ready, view.hosts_resident), (None, 0, 0), "{view:?}");
    assert!(view.parked.iter().any(|host| host.reason.contains("exclusion")), "{view:?}");
    let shown = hosts(&rig).await;
    let a = shown.iter().find(|host| host.0 == "https://a.test").unwrap();
    assert_eq!(a.1, HostPhase::Parked, "{shown:?}");
    assert!(a.2.as_ref().unwrap().contains(&id("host:a.test")), "{shown:?}");
    rig.kill().await;
    rig.open().await;
    rig.pass(secs(60)).await;
    assert_eq!(asked(&rig, "a.test"), before);
    assert!(rig.view().await.parked.iter().any(|host| host.reason.contains("exclusion")));
    let refused = rig.admit(&["https://a.test/new".to_owned()]).await;
    assert!(matches!(refused[0], Admission::Refused(Reason::Excluded { .. })), "{refused:?}");
    lift(&rig, "host:a.test").await;
    rig.until_done(secs(120)).await;
    let mut paths = rig.paths();
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), 8);
    assert_eq!(rig.paths().len(), 16, "each page of both hosts once");
    assert_eq!(rig.ask(ShardMsg::ListExclusions).await, []);
}

#[tokio::test(start_paused = true)]
async fn a_part_of_a_host_sleeps_and_the_rest_goes_on() {
    let mut rig = Rig::crawling(Setting::default(), open_web()).await;
    exclude(&rig, "surt:test,a)/1", None).await;
    rig.admit_paths("b.test", 1).await;
    let urls: Vec<String> = (2..5).map(|n| format!("https://a.test/{n}")).collect();
    rig.admit(&urls).await;
    rig.until_done(secs(60)).await;
    assert_eq!(asked(&rig, "a.test"), 4);
    lift(&rig, "surt:test,a)/1").await;
    exclude(&rig, "surt:test,a)/7", None).await;
    lift(&rig, "surt:test,a)/7").await;
    // Queued, then excluded: it sleeps, also over a kill.
    rig.shard().send_message(ShardMsg::Pause(true, Answer::ignored())).unwrap();
    rig.admit(&["https://a.test/1".to_owned(), "https://a.test/9".to_owned()]).await;
    exclude(&rig, "surt:test,a)/1", None).await;
    rig.shard().send_message(ShardMsg::Pause(false, Answer::ignored())).unwrap();
    rig.until_done(secs(60)).await;
    assert_eq!((asked(&rig, "a.test"), rig.view().await.urls.sleeping), (5, 1));
    // A kill right behind the order: it is in force or gone, and nothing is forgotten.
    let order = ShardMsg::LiftExclusion(id("surt:test,a)/1"), Answer::ignored());
    rig.shard().send_message(order).unwrap();
    tokio::task::yield_now().await;
    rig.kill().await;
    rig.open().await;
    rig.pass(secs(30)).await;
    lift(&rig, "surt:test,a)/1").await;
    rig.pass(secs(5)).await;
    rig.until_done(secs(60)).await;
    assert_eq!((asked(&rig, "a.test"), rig.view().await.urls.sleeping), (6, 0));
}

#[tokio::test(start_paused = true)]
async fn an_exclusion_ends_at_its_time_by_itself() {
    let mut rig = Rig::crawling(Setting::default(), open_web()).await;
    let end = rig.now() + secs(600);
    exclude(&rig, "domain:a.test", None).await;
    rig.admit_paths("b.test", 1).await;
    lift(&rig, "domain:a.test").await;
    rig.shard().send_message(ShardMsg::Pause(true, Answer::ignored())).unwrap();
    rig.admit_paths("a.test", 2).await;
    exclude(&rig, "domain:a.test", Some(end)).await;
    rig.shard().send_message(ShardMsg::Pause(false, Answer::ignored())).unwrap();
    rig.pass(secs(300)).await;
    rig.kill().await;
    rig.open().await;
    rig.pass(end.since(rig.now()) - secs(1)).await;
    assert_eq!(asked(&rig, "a.test"), 0);
    rig.pass(secs(3)).await;
    assert!(asked(&rig, "a.test") > 0, "{:?}", rig.view().await);
    rig.until_done(secs(60)).await;
    assert_eq!(asked(&rig, "a.test"), 3);
    assert_eq!(rig.ask(ShardMsg::ListExclusions).await, []);
}

#[tokio::test(start_paused = true)]
async fn no_redirect_of_a_robots_txt_leads_to_an_excluded_host() {
    let web: Web = Arc::new(|lease| match &lease.kind {
        LeaseKind::Robots { .. } if lease.host.host() == "a.test" => Reply {
            location: Some("https://b.test/rules".to_owned()),
            ..Reply::of(Outcome::Redirect)
        },
        LeaseKind::Robots { .. } => Reply::of(Outcome::ClientError),
        LeaseKind::Page => Reply::of(Outcome::Ok),
    });
    let rig = Rig::crawling(Setting::default(), web).await;
    exclude(&rig, "host:b.test", None).await;
    rig.admit_paths("a.test", 1).await;
    rig.pass(secs(240)).await;
    assert_eq!((asked(&rig, "b.test"), rig.paths().len()), (0, 0));
    assert!((1..6).contains(&asked(&rig, "a.test")), "{}", asked(&rig, "a.test"));
    let shown = hosts(&rig).await;
    assert!(shown[0].2.as_ref().unwrap().contains("excluded"), "{shown:?}");
    lift(&rig, "host:b.test").await;
    rig.until_done(secs(7200)).await;
    assert_eq!((asked(&rig, "b.test"), rig.paths().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn one_event_tells_of_an_exclusion_however_often_the_order_comes() {
    let rig = Rig::new(Setting::default()).await;
    let record = ExclusionRecord {
        id: id("host:a.test"),
        rule: "host:a.test".to_owned(),
        reason: None,
        until: None,
        made_at: rig.now(),
    };
    for _ in 0..3 {
        let record = Box::new(record.clone());
        rig.ask(|answer| ShardMsg::Exclude(record, answer)).await;
    }
    let told: Vec<Happening> =
        rig.events().await.into_iter().map(|(_, event)| event.happening).collect();
    assert_eq!(told, [Happening::Excluded { id: id("host:a.test") }]);
}
