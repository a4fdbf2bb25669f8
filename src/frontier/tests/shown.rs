//! Hosts as operators are shown them: a list and one host say the same, with an actor, at rest, and
//! from the row alone, which is all that there is without a daemon.

use std::sync::Arc;

use crate::frontier::testing::{Reply, Rig, Setting, Web, open_web, secs};
use crate::policy::exclusion::{id_of, parse_rule};
use crate::protocol::shard::{HostDetail, HostFilter, HostOrder, HostSummary};
use crate::protocol::{Answer, HostPhase, ShardMsg};
use crate::types::{CrawlUrl, ExclusionRecord, HostKey, LeaseKind, Outcome, Timestamp};

fn key() -> HostKey {
    HostKey::parse("https://a.test").unwrap()
}

async fn listed(rig: &Rig) -> HostSummary {
    let filter = HostFilter { limit: 10, ..HostFilter::default() };
    let page = rig.ask(|answer| ShardMsg::ListHosts(filter, answer)).await.unwrap();
    page.hosts.into_iter().find(|host| host.host_key == key()).unwrap()
}

async fn one(rig: &Rig) -> HostDetail {
    *rig.ask(|answer| ShardMsg::LookUpHost(key(), answer)).await.unwrap().unwrap()
}

/// What the list says, once it is sure that one host says the same and a queued URL its reason.
async fn shown(rig: &Rig, case: &str) -> HostSummary {
    let (line, detail) = (listed(rig).await, one(rig).await);
    let of_one = HostSummary {
        host_key: detail.view.host_key,
        state: detail.view.state,
        reason: detail.view.reason,
        next_allowed_at: detail.view.next_allowed_at,
        in_flight: detail.view.in_flight,
        queued: detail.queued,
        pages_today: detail.view.pages_today,
    };
    assert_eq!(line, of_one, "{case}");
    let filter = HostFilter { limit: 10, phase: Some(line.state), ..HostFilter::default() };
    let page = rig.ask(|answer| ShardMsg::ListHosts(filter, answer)).await.unwrap();
    assert!(page.hosts.contains(&line), "{case}: found under its state");
    if line.queued > 0 && line.in_flight == 0 {
        let url = CrawlUrl::parse("https://a.test/1").unwrap();
        let view = rig.ask(|answer| ShardMsg::LookUpUrl(url, answer)).await.unwrap().unwrap();
        assert_eq!(view.reason(rig.now()), line.reason, "{case}: of a URL that waits");
    }
    line
}

/// A web whose robots.txt answers so, and whose pages take this long.
fn web(robots: fn() -> Reply, page: fn() -> Reply) -> Web {
    Arc::new(move |lease| match lease.kind {
        LeaseKind::Robots { .. } => robots(),
        LeaseKind::Page => page(),
    })
}

fn found() -> Reply {
    Reply { robots: Some(""), ..Reply::of(Outcome::Ok) }
}

fn slow() -> Reply {
    Reply { robots: Some("User-agent: *\nCrawl-delay: 600\n"), ..Reply::of(Outcome::Ok) }
}

fn away() -> Reply {
    Reply { status: Some(503), ..Reply::of(Outcome::ServerError) }
}

fn refused() -> Reply {
    Reply { status: Some(429), ..asks_to_wait() }
}

fn asks_to_wait() -> Reply {
    Reply { retry_after: Some(secs(900)), ..Reply::of(Outcome::RateLimited) }
}

fn page() -> Reply {
    Reply::of(Outcome::Ok)
}

async fn pause(rig: &Rig) {
    let order = HostOrder {
        host: key(),
        paused: Some(true),
        min_delay: None,
        max_in_flight: None,
        daily_pages: None,
    };
    rig.ask(|answer| ShardMsg::Order(order, answer)).await.unwrap();
}

async fn exclude(rig: &Rig) {
    let rule = parse_rule("host:a.test").unwrap();
    let record = ExclusionRecord {
        id: id_of(&rule),
        rule: rule.to_string(),
        reason: None,
        until: None,
        made_at: rig.now(),
    };
    rig.ask(|answer| ShardMsg::Exclude(Box::new(record), answer)).await;
}

enum Order {
    Nothing,
    Pause,
    PauseCrawl,
    Exclude,
}

/// What its web does, what an operator orders after so many visits; how the host is then shown: its
/// state, words of its reason, whether it has a next time, whether all of that stands in its row.
struct Case {
    name: &'static str,
    web: Web,
    order: Order,
    state: HostPhase,
    reason: &'static str,
    has_time: bool,
    visits: usize,
    daily_pages: u64,
    in_row: bool,
}

fn case(name: &'static str, web: Web, reason: &'static str) -> Case {
    Case {
        name,
        web,
        order: Order::Nothing,
        state: HostPhase::Waiting,
        reason,
        has_time: true,
        visits: 1,
        daily_pages: 100,
        in_row: true,
    }
}

/// What waits by itself.
fn waiting() -> Vec<Case> {
    let day = case("the day is used up", web(found, page), "today's 2 requests are used up");
    let asked = case("asked", web(found, asks_to_wait), "the site asked to wait until");
    vec![
        case("robots.txt is unreachable", web(away, page), "robots.txt unreachable since"),
        case("and asks to wait", web(refused, page), "robots.txt unreachable since"),
        case("a Crawl-delay runs", web(slow, page), "the host may be asked again at"),
        Case { visits: 2, ..asked },
        Case { visits: 2, daily_pages: 2, ..day },
    ]
}

/// What an operator stopped.
fn stopped() -> Vec<Case> {
    let paused = |name, robots: fn() -> Reply| Case {
        order: Order::Pause,
        state: HostPhase::Parked,
        ..case(name, web(robots, page), "paused by an operator")
    };
    let crawl = Case { order: Order::PauseCrawl, in_row: false, ..paused("crawl paused", found) };
    let excluded = case("excluded", web(found, page), "excluded at runtime");
    vec![
        paused("paused", found),
        paused("paused while robots.txt is unreachable", away),
        crawl,
        Case { visits: 0, has_time: false, ..paused("never asked, and paused", found) },
        Case { order: Order::Exclude, state: HostPhase::Parked, in_row: false, ..excluded },
    ]
}

fn check(case: &Case, line: &HostSummary, place: &str) {
    let Case { name, state, reason, has_time, .. } = case;
    assert_eq!(line.state, *state, "{name} {place}: {line:?}");
    let told = line.reason.as_deref().unwrap_or_default();
    assert!(told.contains(reason), "{name} {place}: {line:?}");
    assert_eq!(line.next_allowed_at.is_some(), *has_time, "{name} {place}: {line:?}");
    let before_all = line.next_allowed_at.is_some_and(|at| at <= Timestamp::from_secs(1));
    assert!(!before_all, "{name} {place}: {line:?}");
    assert!(line.queued > 0, "{name} {place}: {line:?}");
}

#[tokio::test(start_paused = true)]
async fn a_list_and_one_host_say_the_same_resident_at_rest_and_after_a_start() {
    for case in waiting().into_iter().chain(stopped()) {
        let mut setting = Setting::default();
        setting.host.politeness.daily_pages = case.daily_pages;
        let mut rig = Rig::new(setting).await;
        rig.publish();
        if case.visits == 0 {
            rig.shard().send_message(ShardMsg::Pause(true, Answer::ignored())).unwrap();
        } else {
            rig.serve(Arc::clone(&case.web));
        }
        rig.admit_paths("a.test", 6).await;
        rig.until_visits(case.visits, secs(60)).await;
        match case.order {
            Order::Nothing => {}
            Order::Pause => pause(&rig).await,
            Order::PauseCrawl => rig.ask(|answer| ShardMsg::Pause(true, answer)).await,
            Order::Exclude => exclude(&rig).await,
        }
        rig.pass(secs(2)).await;
        let first = shown(&rig, case.name).await;
        check(&case, &first, "in memory");
        rig.pass(secs(15)).await;
        // One whose time comes while the crawl is paused stays, and waits for its offer.
        let rests = !matches!(case.order, Order::PauseCrawl);
        assert_eq!(!one(&rig).await.resident, rests, "{}: it has gone to rest", case.name);
        let rested = shown(&rig, case.name).await;
        check(&case, &rested, "at rest");
        let view = rig.view().await;
        let counted = [view.hosts_ready, view.hosts_waiting, view.hosts_parked];
        let parked = case.state == HostPhase::Parked;
        assert_eq!(counted, [0, u32::from(!parked), u32::from(parked)], "{}", case.name);
        assert_eq!((rested.state, &rested.reason), (first.state, &first.reason), "{}", case.name);
        rig.kill().await;
        if case.in_row {
            let store = rig.store(0).await;
            let (record, counts) = store.host(key().id()).await.unwrap().unwrap();
            store.close(secs(10)).await.unwrap();
            let line = HostSummary::at_rest(&record, counts, case.daily_pages, rig.now());
            check(&case, &line, "in its row");
        }
        rig.open().await;
        for parked in rig.view().await.parked {
            assert!(parked.reason.contains(case.reason), "{}: {parked:?}", case.name);
        }
        rig.pass(secs(15)).await;
        check(&case, &shown(&rig, case.name).await, "after a start");
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_that_rests_for_long_and_is_excluded_waits_for_nothing_else() {
    let rig = Rig::new(Setting::default()).await;
    rig.publish();
    rig.serve(web(away, page));
    rig.admit_paths("a.test", 6).await;
    rig.until_visits(1, secs(60)).await;
    rig.pass(secs(15)).await;
    let waits = |reason: &'static str| {
        let parked = rig.view();
        async move {
            let parked = parked.await.parked;
            let told: Vec<&str> = parked.iter().map(|parked| parked.reason.as_str()).collect();
            assert!(told.len() == 1 && told[0].contains(reason), "{told:?}");
        }
    };
    waits("robots.txt unreachable since").await;
    exclude(&rig).await;
    waits("excluded at runtime").await;
}

#[tokio::test(start_paused = true)]
async fn a_host_that_never_was_asked_has_no_time_and_one_in_flight_is_counted() {
    let rig = Rig::new(Setting::default()).await;
    rig.publish();
    rig.admit_paths("a.test", 3).await;
    let line = shown(&rig, "new").await;
    assert!(line.next_allowed_at.is_none_or(|at| at >= rig.now()), "no time of 1970: {line:?}");
    rig.serve(web(found, || Reply { took: secs(60), ..page() }));
    rig.until_visits(1, secs(60)).await;
    rig.pass(secs(5)).await;
    let line = shown(&rig, "in flight").await;
    assert_eq!((line.state, line.in_flight, line.reason), (HostPhase::InFlight, 1, None));
    pause(&rig).await;
    let line = shown(&rig, "in flight, and paused").await;
    assert_eq!((line.state, line.in_flight), (HostPhase::Parked, 1));
    assert_eq!(line.reason.as_deref(), Some("paused by an operator"));
}

#[tokio::test(start_paused = true)]
async fn what_a_domain_holds_back_is_told_of_its_hosts() {
    let mut setting = Setting::default();
    setting.domain.daily_pages = 2;
    let mut rig = Rig::crawling(setting, open_web()).await;
    rig.admit_paths("a.test", 6).await;
    rig.until_visits(2, secs(60)).await;
    for restarted in [false, true] {
        if restarted {
            rig.kill().await;
            rig.open().await;
        }
        rig.pass(secs(20)).await;
        let line = shown(&rig, "its domain's day").await;
        assert_eq!(line.state, HostPhase::Waiting, "{line:?}");
        assert_eq!(line.next_allowed_at, Some(rig.now().next_day()), "{line:?}");
        assert!(line.reason.unwrap().contains("today's 2 requests are used up"));
    }
}
