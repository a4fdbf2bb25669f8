//! Clocks beyond the host's own: domains, addresses; robots.txt on other hosts.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::frontier::testing::{Reply, Rig, Setting, Visit, Web, assert_polite, open_web, secs};
use crate::protocol::{AddressMsg, Answer};
use crate::types::{LeaseKind, Outcome, Timestamp};

#[tokio::test(start_paused = true)]
async fn a_domain_with_a_clock_is_asked_once_at_a_time() {
    let mut setting = Setting::default();
    setting.domain.min_delay = secs(7);
    let rig = Rig::crawling(setting, open_web()).await;
    for host in ["one", "two", "three"] {
        rig.admit_paths(&format!("{host}.example.com"), 2).await;
    }
    rig.until_done(secs(600)).await;
    let mut visits = rig.visits();
    visits.sort_by_key(|visit| visit.sent_at);
    assert_eq!(visits.len(), 9);
    for pair in visits.windows(2) {
        let allowed = pair[0].ended_at + secs(7);
        assert!(pair[1].sent_at >= allowed, "{} at {}", pair[1].url(), pair[1].sent_at);
    }
}

#[tokio::test(start_paused = true)]
async fn an_address_has_a_clock_and_places_of_its_own() {
    let mut setting = Setting::default();
    setting.address.min_delay = Duration::from_millis(100);
    setting.address.max_in_flight = 2;
    let rig = Rig::crawling(setting, open_web()).await;
    let shared: IpAddr = "10.9.9.9".parse().unwrap();
    for host in 0..12 {
        rig.resolve(&format!("h{host}.test"), shared);
        rig.admit_paths(&format!("h{host}.test"), 2).await;
    }
    rig.until_done(secs(600)).await;
    let mut visits = rig.visits();
    visits.sort_by_key(|visit| visit.sent_at);
    assert_eq!(visits.len(), 36);
    for pair in visits.windows(2) {
        assert!(pair[1].sent_at >= pair[0].sent_at + Duration::from_millis(100), "A-2");
    }
    for visit in &visits {
        let others = visits.iter().filter(|other| flying(other, visit.sent_at)).count();
        assert!(others <= 2, "A-1");
    }
    assert_polite(&visits, secs(1));
    let (answer, view) = Answer::channel();
    rig.addresses.send_message(AddressMsg::Observe(answer)).unwrap();
    let view = view.await.unwrap();
    assert_eq!((view.in_flight, view.waiting), (0, 0), "every place is given back");
    rig.pass(secs(200)).await;
    let (answer, view) = Answer::channel();
    rig.addresses.send_message(AddressMsg::Observe(answer)).unwrap();
    assert_eq!(view.await.unwrap().addresses, 0, "addresses that nobody uses are forgotten");
}

fn flying(visit: &Visit, at: Timestamp) -> bool {
    visit.sent_at <= at && at < visit.ended_at
}

#[tokio::test(start_paused = true)]
async fn a_crowded_address_makes_no_lease_run_out_twice() {
    let mut setting = Setting::default();
    setting.address.min_delay = secs(2);
    setting.address.max_in_flight = 1;
    setting.host.lease = secs(30);
    let rig = Rig::crawling(setting, open_web()).await;
    for host in 0..10 {
        rig.admit_paths(&format!("h{host}.test"), 2).await;
    }
    rig.until_done(secs(1200)).await;
    let mut pages: BTreeMap<String, u32> = BTreeMap::new();
    for visit in rig.visits().iter().filter(|visit| visit.is_page()) {
        *pages.entry(visit.url().to_owned()).or_default() += 1;
    }
    assert_eq!(pages.len(), 20);
    assert!(pages.values().all(|times| *times == 1), "{pages:?}");
    assert_eq!(rig.view().await.violations, 0);
}

#[tokio::test(start_paused = true)]
async fn a_robots_redirect_runs_on_the_other_hosts_clock() {
    let web: Web = Arc::new(|lease| match &lease.kind {
        LeaseKind::Robots { for_host, hops: 0 } if for_host.host() == "a.test" => Reply {
            location: Some("https://b.example/robots.txt".to_owned()),
            ..Reply::of(Outcome::Redirect)
        },
        LeaseKind::Robots { for_host, .. } if for_host.host() == "a.test" => {
            Reply { robots: Some("User-agent: *\nDisallow: /1\n"), ..Reply::of(Outcome::Ok) }
        }
        LeaseKind::Robots { .. } => Reply::of(Outcome::ClientError),
        LeaseKind::Page => Reply::of(Outcome::Ok),
    });
    for shards in [1, 2, 3] {
        let mut rig =
            Rig::crawling(Setting { shards, ..Setting::default() }, Arc::clone(&web)).await;
        let urls: Vec<String> = (0..3).map(|n| format!("https://a.test/{n}")).collect();
        rig.admit(&urls).await;
        rig.pass(secs(30)).await;
        let mut paths = rig.paths();
        paths.sort();
        assert_eq!(paths, ["/0", "/2"], "{shards} shards");
        let hosts: Vec<String> =
            rig.visits().iter().map(|visit| visit.lease.host.host().to_owned()).collect();
        assert_eq!(hosts[..2], ["a.test", "b.example"]);
        assert_eq!(hosts.iter().filter(|host| *host == "b.example").count(), 1);
        rig.close().await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_errand_to_a_host_that_does_not_resolve_is_answered() {
    let web: Web = Arc::new(|lease| match lease.kind {
        LeaseKind::Robots { .. } => Reply {
            location: Some("https://b.gone/robots.txt".to_owned()),
            ..Reply::of(Outcome::Redirect)
        },
        LeaseKind::Page => Reply::of(Outcome::Ok),
    });
    let rig = Rig::crawling(Setting::default(), web).await;
    rig.admit_paths("a.test", 1).await;
    rig.pass(secs(100)).await;
    let view = rig.view().await;
    assert_eq!((view.in_flight, rig.paths().len()), (0, 0));
    assert!(view.parked.iter().any(|host| host.reason.contains("robots")), "{view:#?}");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_does_not_resolve_uses_no_place() {
    let rig = Rig::crawling(Setting { credit: 2, ..Setting::default() }, open_web()).await;
    for host in 0..5 {
        rig.admit_paths(&format!("h{host}.gone"), 2).await;
    }
    rig.admit_paths("a.test", 3).await;
    rig.until_visits(4, secs(60)).await;
    let view = rig.view().await;
    assert!(view.in_flight <= 2 && view.offers <= 2, "{view:#?}");
}
