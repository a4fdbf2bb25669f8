//! The machine of one host, with plain numbers for times; its laws are in `laws`.

use crate::policy::host::{Errand, HostEvent, OfferAnswer};
use crate::policy::robots::{LongUnreachable, RobotsSettings, RobotsState};
use crate::types::{
    CrawlUrl, DelaySource, HostKey, HostOverrides, LeaseKind, Outcome, Reason, UrlStatus,
};

mod bench;
mod laws;
mod revisits;

use bench::{Bench, at, secs, settings};

const ALLOW: &str = "User-agent: *\nAllow: /\n";

fn robots_of(lease: &crate::types::Lease) -> (String, u8) {
    match &lease.kind {
        LeaseKind::Robots { hops, .. } => (lease.entry.url.to_string(), *hops),
        LeaseKind::Page => panic!("a page: {}", lease.entry.url),
    }
}

#[test]
fn robots_come_first_and_count_as_a_request() {
    let mut bench = Bench::new(settings());
    bench.admit(&["/1", "/2"]);
    let robots = bench.granted();
    assert_eq!(robots_of(&robots), ("https://a.test/robots.txt".to_owned(), 0));
    assert_eq!(robots.not_before, at(0));
    assert_eq!(bench.withheld(), Some(Reason::InFlight));
    bench.answer_robots(&robots, ALLOW);
    let page = bench.next_lease();
    assert_eq!(page.kind, LeaseKind::Page);
    assert_eq!(page.not_before, at(1_100), "the delay runs from the end of the robots exchange");
    assert_eq!(bench.machine.record().requests_today, 2);
}

#[test]
fn a_delay_runs_from_the_end_of_an_exchange() {
    let mut bench = Bench::with_rules(settings(), ALLOW, &["/1", "/2", "/3"]);
    let first = bench.granted();
    let sent = first.not_before;
    bench.answer(&first, 500, Outcome::Ok);
    let second = bench.next_lease();
    assert_eq!(second.not_before, sent + secs(5) + std::time::Duration::from_millis(500));
    assert_eq!(bench.machine.record().set_by, DelaySource::MinDelay);
}

#[test]
fn a_crawl_delay_holds_from_the_robots_answer_on() {
    let rules = "User-agent: *\nCrawl-delay: 7\n";
    let mut bench = Bench::with_rules(settings(), rules, &["/1", "/2"]);
    let first = bench.granted();
    bench.answer(&first, 0, Outcome::Ok);
    let second = bench.next_lease();
    assert_eq!(second.not_before, first.not_before + secs(7));
    assert!(first.not_before >= at(7_100), "R3: also between robots.txt and the first page");
}

#[test]
fn a_retry_after_is_kept_and_is_urgent() {
    for status in [429, 503] {
        let mut bench = Bench::with_rules(settings(), ALLOW, &["/1"]);
        let lease = bench.granted();
        let mut completion = bench.completion(&lease, 0, Outcome::RateLimited);
        completion.status = Some(status);
        completion.retry_after = Some(secs(3600));
        let until = completion.ended_at + secs(3600);
        let effects = bench.ended(completion);
        assert!(effects.urgent, "I3");
        assert_eq!(bench.row.site_wait_until, Some(until));
        assert_eq!(bench.row.next_allowed_at, until);
        bench.now = until - secs(2);
        bench.move_due();
        assert_eq!(bench.withheld(), Some(Reason::SiteAskedToWait { until }));
        bench.now = until;
        bench.move_due();
        assert!(bench.granted().not_before >= until);
    }
}

#[test]
fn a_refusal_without_retry_after_backs_off() {
    let mut bench = Bench::with_rules(settings(), ALLOW, &["/1", "/2", "/3"]);
    let lease = bench.granted();
    bench.answer(&lease, 0, Outcome::RateLimited);
    let second = bench.next_lease();
    assert_eq!(second.not_before, lease.not_before + secs(30));
    bench.answer(&second, 0, Outcome::RateLimited);
    let third = bench.next_lease();
    assert_eq!(third.not_before, second.not_before + secs(60));
    bench.answer(&third, 0, Outcome::Ok);
    let pace = bench.machine.record().backoff.slowdown;
    assert!(pace > 3.0 && bench.machine.record().delay > secs(3), "the pace recovers slowly");
}

#[test]
fn failures_are_tried_again_and_then_given_up() {
    let mut bench = Bench::with_rules(settings(), ALLOW, &["/1"]);
    let mut waits = Vec::new();
    for _ in 0..5 {
        let lease = bench.next_lease();
        bench.answer(&lease, 0, Outcome::Timeout);
        if let Some((due, _)) = bench.deferred.values().next() {
            waits.push(due.since(lease.not_before).as_secs());
            bench.now = *due;
            bench.move_due();
        }
    }
    assert_eq!(waits, [30, 120, 480, 1920]);
    assert_eq!(bench.event_kinds(), ["fetched", "dead"]);
    let letter = bench.dead.values().next().unwrap();
    assert_eq!((letter.attempts, letter.entry.attempts), (5, 5));
    assert_eq!(bench.counts.dead, 1);
    assert_eq!((bench.counts.queued, bench.counts.deferred), (0, 0));
    let reason = Reason::TriedTooOften { outcome: Outcome::Timeout, attempts: 5 };
    assert_eq!(letter.reason, reason);
}

#[test]
fn gone_pages_leave_a_tombstone() {
    for status in [404, 410] {
        let mut bench = Bench::with_rules(settings(), ALLOW, &["/1"]);
        let lease = bench.granted();
        let mut completion = bench.completion(&lease, 0, Outcome::ClientError);
        completion.status = Some(status);
        bench.ended(completion);
        assert_eq!(bench.event_kinds(), ["fetched", "tombstone"]);
        assert_eq!(bench.tombstones(), 1);
        assert_eq!(bench.visits[&lease.entry.id].status, UrlStatus::Gone);
        assert!(bench.to_parse.is_empty());
    }
}

#[test]
fn a_second_completion_changes_nothing() {
    let mut bench = Bench::with_rules(settings(), ALLOW, &["/1", "/2"]);
    let lease = bench.granted();
    bench.answer(&lease, 0, Outcome::Ok);
    let (row, events) = (bench.row.clone(), bench.events.clone());
    let effects = bench.answer(&lease, 0, Outcome::ClientError);
    assert!(effects.repeated && effects.changes.is_empty());
    assert_eq!((bench.row.clone(), bench.events.clone()), (row, events));
}

#[test]
fn an_expired_lease_comes_back_and_its_late_answer_counts_no_more() {
    let mut bench = Bench::with_rules(settings(), ALLOW, &["/1"]);
    let lease = bench.granted();
    bench.now = lease.expires_at;
    assert_eq!(bench.machine.next_wake(), Some(lease.expires_at));
    bench.step(HostEvent::TimerRang);
    assert_eq!(bench.machine.in_flight(), 0);
    assert_eq!(bench.place_of(lease.entry.id), ["deferred"]);
    assert!(bench.answer(&lease, 0, Outcome::Ok).repeated);
    bench.now = bench.now + secs(40);
    bench.move_due();
    assert_eq!(bench.next_lease().entry.attempts, 1);
}

#[test]
fn refused_urls_sleep_until_the_rules_change() {
    let rules = "User-agent: *\nDisallow: /private\n";
    let mut bench = Bench::with_rules(settings(), rules, &["/private/1", "/2"]);
    let page = bench.granted();
    assert_eq!(page.entry.url.path_and_query(), "/2");
    bench.answer(&page, 0, Outcome::Ok);
    bench.now = bench.now + secs(10);
    if bench.sleeping.is_empty() {
        assert_eq!(bench.withheld(), None);
    }
    assert_eq!(bench.sleeping.len(), 1);
    let visit = bench.visits.values().find(|visit| visit.status == UrlStatus::Sleeping);
    assert!(matches!(visit.unwrap().reason, Some(Reason::RobotsDisallow { line: 2, .. })));
    bench.now = bench.now + secs(86_400);
    bench.admit(&["/3"]);
    let robots = bench.next_lease();
    let effects = bench.answer_robots(&robots, ALLOW);
    assert!(effects.wake_sleepers);
    let woken: Vec<_> = std::mem::take(&mut bench.sleeping).into_values().collect();
    bench.counts.sleeping = 0;
    bench.enqueue(woken);
    let mut served = Vec::new();
    for _ in 0..2 {
        let lease = bench.next_lease();
        served.push(lease.entry.url.path_and_query().to_owned());
        bench.answer(&lease, 0, Outcome::Ok);
    }
    served.sort();
    assert_eq!(served, ["/3", "/private/1"]);
}

#[test]
fn sitemap_lines_are_named_whenever_the_file_comes() {
    let mut bench = Bench::new(settings());
    bench.admit(&["/1"]);
    let robots = bench.granted();
    let effects = bench.answer_robots(&robots, "Sitemap: /a.xml\nSitemap: https://b.test/c\n");
    assert_eq!(effects.sitemaps, ["/a.xml", "https://b.test/c"]);
    let page = bench.next_lease();
    assert!(bench.answer(&page, 0, Outcome::Ok).sitemaps.is_empty());
    bench.now = bench.now + secs(86_400);
    bench.admit(&["/2"]);
    let robots = bench.next_lease();
    assert!(bench.answer_robots_status(&robots, 503).sitemaps.is_empty(), "the copy is known");
}

#[test]
fn a_missing_robots_allows_everything() {
    let mut bench = Bench::new(settings());
    bench.admit(&["/1"]);
    let robots = bench.granted();
    bench.answer_robots_status(&robots, 404);
    assert_eq!(bench.next_lease().kind, LeaseKind::Page);
}

#[test]
fn an_unreachable_robots_is_asked_for_again_and_nothing_else() {
    for outcome in [Outcome::ServerError, Outcome::Timeout, Outcome::Dns] {
        let mut bench = Bench::new(settings());
        bench.admit(&["/1"]);
        let mut robots = bench.granted();
        for wait in [30, 60, 120] {
            let effects = bench.answer(&robots, 0, outcome);
            assert!(!effects.wake_sleepers);
            let retry_at = bench.now + secs(wait);
            bench.now = bench.machine.next_wake().unwrap();
            assert_eq!(bench.now, retry_at - secs(1), "{outcome}: granted ahead of its time");
            robots = bench.granted();
            assert_eq!(robots_of(&robots).1, 0);
            assert!(robots.not_before >= retry_at, "{outcome}: not before its time");
        }
    }
}

#[test]
fn long_unreachable_robots_allow_when_the_operator_says_so() {
    let mut settings = settings();
    let after = LongUnreachable::AllowAfter(secs(60));
    settings.robots = RobotsSettings { long_unreachable: after, ..Default::default() }.into();
    let mut bench = Bench::new(settings);
    bench.admit(&["/1"]);
    let mut kinds = Vec::new();
    for _ in 0..6 {
        let lease = bench.next_lease();
        kinds.push(matches!(lease.kind, LeaseKind::Page));
        let outcome = if kinds.ends_with(&[true]) { Outcome::Ok } else { Outcome::Timeout };
        bench.answer(&lease, 0, outcome);
        if kinds.ends_with(&[true]) {
            assert!(bench.now >= at(60_000));
            return;
        }
    }
    panic!("the page never came");
}

#[test]
fn a_robots_redirect_within_the_host_is_the_next_lease() {
    let mut bench = Bench::new(settings());
    bench.admit(&["/1"]);
    let mut lease = bench.granted();
    for hop in 1..=5 {
        let mut completion = bench.completion(&lease, 0, Outcome::Redirect);
        completion.location = Some(format!("/robots-{hop}.txt"));
        bench.ended(completion);
        lease = bench.next_lease();
        assert_eq!(robots_of(&lease), (format!("https://a.test/robots-{hop}.txt"), hop));
    }
    let mut completion = bench.completion(&lease, 0, Outcome::Redirect);
    completion.location = Some("/robots-6.txt".to_owned());
    bench.ended(completion);
    assert_eq!(bench.next_lease().kind, LeaseKind::Page, "too many redirects: unavailable");
}

#[test]
fn a_robots_redirect_without_a_target_is_unavailable() {
    for location in [None, Some("mailto:x@y.z".to_owned())] {
        let mut bench = Bench::new(settings());
        bench.admit(&["/1"]);
        let lease = bench.granted();
        let mut completion = bench.completion(&lease, 0, Outcome::Redirect);
        completion.location = location;
        bench.ended(completion);
        assert_eq!(bench.next_lease().kind, LeaseKind::Page);
    }
}

#[test]
fn a_robots_redirect_to_another_host_is_an_errand() {
    let mut bench = Bench::new(settings());
    bench.admit(&["/1"]);
    let lease = bench.granted();
    let mut completion = bench.completion(&lease, 0, Outcome::Redirect);
    completion.location = Some("https://b.test/robots.txt".to_owned());
    let effects = bench.ended(completion);
    let errand = effects.errand.unwrap();
    assert_eq!((errand.url.as_str(), errand.hops), ("https://b.test/robots.txt", 1));
    bench.now = bench.now + secs(5);
    assert_eq!(bench.withheld(), Some(Reason::RobotsNeeded));
    let mut answer = bench.completion(&lease, 0, Outcome::Ok);
    answer.url = errand.url.clone();
    answer.robots_body = Some("User-agent: *\nDisallow: /1\n".into());
    bench.step(HostEvent::ErrandEnded(Box::new(answer)));
    assert_eq!(bench.withheld(), None);
    assert_eq!(bench.sleeping.len(), 1);
}

#[test]
fn an_errand_that_nobody_answers_is_given_up() {
    let mut bench = Bench::new(settings());
    bench.admit(&["/1"]);
    let lease = bench.granted();
    let mut completion = bench.completion(&lease, 0, Outcome::Redirect);
    completion.location = Some("https://b.test/robots.txt".to_owned());
    bench.ended(completion);
    assert!(!bench.machine.is_idle(), "it waits for an answer");
    bench.now = bench.machine.next_wake().unwrap();
    assert_eq!(bench.now, lease.not_before + secs(300));
    bench.step(HostEvent::TimerRang);
    assert!(matches!(bench.machine.robots(), RobotsState::Unreachable { .. }));
    assert!(bench.machine.is_idle());
}

#[test]
fn an_errand_for_another_host_obeys_this_hosts_clock() {
    let mut bench = Bench::with_rules(settings(), "User-agent: *\nDisallow: /\n", &["/1"]);
    let for_host = HostKey::parse("https://c.test").unwrap();
    let url = CrawlUrl::parse("https://a.test/robots.txt").unwrap();
    let errand = Errand { for_host: for_host.clone(), url, hops: 2 };
    let allowed = bench.machine.record().next_allowed_at;
    bench.step(HostEvent::ErrandCame(errand));
    let lease = bench.next_lease();
    assert!(lease.not_before >= allowed);
    assert_eq!(robots_of(&lease).1, 2);
    let effects = bench.answer(&lease, 0, Outcome::Ok);
    let (who, completion) = effects.errand_ended.unwrap();
    assert_eq!((who, completion.lease), (for_host, lease.id));
    assert!(bench.machine.record().next_allowed_at >= lease.not_before + secs(1));
}

#[test]
fn the_daily_budget_holds_until_midnight() {
    let mut settings = settings();
    settings.politeness.daily_pages = 2;
    let mut bench = Bench::with_rules(settings, ALLOW, &["/1", "/2"]);
    let lease = bench.granted();
    bench.answer(&lease, 0, Outcome::Ok);
    bench.now = bench.now + secs(10);
    let until = bench.now.next_day();
    assert_eq!(bench.withheld(), Some(Reason::DailyBudget { max: 2, until }));
    let page = bench.next_lease();
    assert!(page.not_before >= until);
    assert_eq!(bench.machine.record().requests_today, 1);
}

#[test]
fn a_paused_host_grants_nothing_and_goes_on_when_resumed() {
    let mut bench = Bench::with_rules(settings(), ALLOW, &["/1"]);
    let paused = HostOverrides { paused: true, ..HostOverrides::default() };
    bench.step(HostEvent::Ordered(paused.clone()));
    assert_eq!(bench.row.overrides.version, 1);
    assert_eq!(bench.withheld(), Some(Reason::Paused));
    assert_eq!(bench.machine.next_wake(), None);
    bench.step(HostEvent::Ordered(HostOverrides { paused: false, ..paused }));
    assert_eq!(bench.next_lease().kind, LeaseKind::Page);
}

#[test]
fn a_parked_host_waits_for_an_operator() {
    let mut bench = Bench::with_rules(settings(), ALLOW, &["/1"]);
    let parked = Reason::HostParked { failures: 3 };
    bench.step(HostEvent::Parked(parked.clone()));
    assert_eq!(bench.withheld(), Some(parked.clone()));
    bench.reopen();
    assert_eq!(bench.withheld(), Some(parked), "also after a restart");
    bench.step(HostEvent::Ordered(HostOverrides::default()));
    assert_eq!(bench.next_lease().kind, LeaseKind::Page);
}

#[test]
fn after_a_restart_a_host_counts_as_just_visited() {
    let rules = "User-agent: *\nCrawl-delay: 20\n";
    let mut bench = Bench::with_rules(settings(), rules, &["/1", "/2"]);
    let lease = bench.granted();
    bench.now = lease.not_before + secs(100);
    bench.reopen();
    assert_eq!(bench.machine.ready_at(), bench.now + secs(20));
    assert_eq!(bench.machine.record().set_by, DelaySource::Start);
    let again = bench.next_lease();
    assert!(again.not_before >= lease.not_before + secs(120));
}

#[test]
fn two_in_flight_keep_their_distance() {
    let mut settings = settings();
    settings.politeness.max_in_flight = 2;
    let mut bench = Bench::with_rules(settings, ALLOW, &["/1", "/2", "/3"]);
    let first = bench.granted();
    let second = bench.next_lease();
    assert_eq!(second.not_before, first.not_before + secs(1));
    bench.now = bench.now + secs(30);
    assert_eq!(bench.withheld(), Some(Reason::InFlight));
    bench.answer(&first, 0, Outcome::Ok);
    assert_eq!(bench.next_lease().kind, LeaseKind::Page);
}

#[test]
fn an_entry_admitted_while_the_queue_is_read_is_not_lost() {
    let mut fresh = Bench::with_rules(settings(), ALLOW, &["/1"]);
    fresh.reopen();
    fresh.now = fresh.machine.next_wake().unwrap().max(fresh.now);
    let request = fresh.offer_until_load();
    let rows = fresh.rows(&request);
    fresh.admit(&["/2"]);
    let effects = fresh.step(HostEvent::WindowLoaded { request, rows });
    assert_eq!(effects.offer, Some(OfferAnswer::Granted));
    let first = effects.grant.unwrap().lease;
    fresh.answer(&first, 0, Outcome::Ok);
    let second = fresh.next_lease();
    let mut served = [first, second].map(|lease| lease.entry.url.path_and_query().to_owned());
    served.sort();
    assert_eq!(served, ["/1", "/2"]);
}

#[test]
fn rows_that_nobody_asked_for_are_not_taken() {
    let mut bench = Bench::with_rules(settings(), ALLOW, &["/1"]);
    bench.reopen();
    bench.now = bench.machine.next_wake().unwrap().max(bench.now);
    let request = bench.offer_until_load();
    let rows = bench.rows(&request);
    bench.reopen();
    let effects = bench.step(HostEvent::WindowLoaded { request, rows });
    assert_eq!((effects.offer, bench.machine.window_len()), (None, 0));
}

#[test]
fn a_host_with_nothing_queued_is_not_asked_for_its_robots() {
    let mut bench = Bench::new(settings());
    assert_eq!(bench.withheld(), None);
    assert_eq!(bench.machine.next_wake(), None);
    assert!(bench.machine.is_idle());
}

#[test]
fn a_lease_that_its_address_moved_moves_the_next_one() {
    let mut settings = settings();
    settings.politeness.max_in_flight = 2;
    let mut bench = Bench::with_rules(settings, ALLOW, &["/1", "/2"]);
    let first = bench.granted();
    let later = first.not_before + secs(20);
    let expires_at = first.expires_at + secs(20);
    bench.step(HostEvent::Moved { lease: first.id, not_before: later, expires_at });
    assert_eq!(bench.next_lease().not_before, later + secs(1));
    bench.now = first.expires_at;
    bench.step(HostEvent::TimerRang);
    assert_eq!(bench.machine.in_flight(), 2);
}

#[test]
fn a_robots_answer_decides_from_when_it_came_however_late_it_is_heard_of() {
    let mut bench = Bench::new(settings());
    bench.admit(&["/1"]);
    let robots = bench.granted();
    let mut completion = bench.completion(&robots, 100, Outcome::Ok);
    completion.robots_body = Some(ALLOW.into());
    let came = completion.ended_at;
    // The archive could not write it for five minutes.
    bench.now = bench.now + secs(300);
    bench.ended(completion);
    let due = bench.machine.robots().due_at();
    assert_eq!(due, Some(came + settings().robots.cache));
}
