//! The machine of one host, with plain numbers for times; its laws are in `laws`.

use crate::policy::host::{HostEvent, OfferAnswer};
use crate::types::{DelaySource, HostOverrides, LeaseKind, Outcome, Reason, UrlStatus};

mod bench;
mod exclusions;
mod laws;
mod revisits;
mod robots;
mod wishes;

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
fn a_grant_that_wrote_no_row_is_counted_after_a_crash() {
    let mut bench = Bench::with_rules(settings(), ALLOW, &["/1", "/2"]);
    let before = bench.row.clone();
    let lease = bench.granted();
    assert_eq!(bench.row, before, "the row before is as good");
    assert_eq!(bench.machine.record().requests_today, 2);
    bench.now = lease.not_before;
    bench.reopen();
    assert_eq!(bench.machine.record().requests_today, 2, "F11");
    assert_eq!(bench.machine.ready_at(), lease.not_before + secs(1), "I3");
    let again = bench.next_lease();
    bench.answer(&again, 0, Outcome::Ok);
    assert_eq!(bench.row.requests_today, 3);
}

#[test]
fn a_grant_that_needs_a_longer_delay_writes_its_row() {
    let mut bench = Bench::with_rules(settings(), ALLOW, &["/1", "/2"]);
    let mut slower = settings();
    slower.politeness.min_delay = secs(10);
    bench.machine.set_settings(std::sync::Arc::new(slower));
    let lease = bench.granted();
    assert_eq!((bench.row.delay, bench.row.requests_today), (secs(10), 1), "it is in flight");
    bench.now = lease.not_before;
    bench.reopen();
    assert!(bench.machine.ready_at() >= lease.not_before + secs(10), "I3");
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
    let effects =
        fresh.step(HostEvent::WindowLoaded { request: Box::new(request), rows: Box::new(rows) });
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
    let effects =
        bench.step(HostEvent::WindowLoaded { request: Box::new(request), rows: Box::new(rows) });
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
