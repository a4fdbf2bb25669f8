//! Rows of hosts in, what is told of them out.

use super::*;
use crate::types::{DelaySource, Hindrance, HostKey};

fn now() -> Timestamp {
    Timestamp::from_secs(1_800_000_000)
}

fn later(seconds: i64) -> Timestamp {
    Timestamp::from_secs(1_800_000_000 + seconds)
}

fn hindered(record: &mut HostRecord, reason: Reason, at: i64) {
    let hindrance = Hindrance { retry_at: later(at), tries: 1, reason };
    record.hindered = Some(Box::new(hindrance));
}

fn unreachable() -> Reason {
    Reason::RobotsUnreachable { since: now(), why: "status 503".to_owned() }
}

fn used_up(record: &mut HostRecord) {
    (record.next_allowed_at, record.budget_day) = (now(), now().day());
    record.requests_today = 100;
}

type Change = fn(&mut HostRecord);

/// A name, what happened to a new host, its state, its next time in seconds, its reason.
struct Case(&'static str, Change, HostPhase, Option<i64>, Option<Reason>);

/// What waits by a clock, its own or the site's.
fn clocks() -> Vec<Case> {
    use HostPhase::{Ready, Waiting};
    let clock = Reason::HostClock { until: later(60), set_by: DelaySource::MinDelay };
    let asked = Reason::SiteAskedToWait { until: later(90) };
    let midnight = now().next_day();
    let budget = Reason::DailyBudget { max: 100, until: midnight };
    let rest = i64::try_from(midnight.since(now()).as_secs()).unwrap();
    vec![
        Case("never asked", |_| {}, Ready, None, None),
        Case("its time has come", |r| r.next_allowed_at = later(-1), Ready, Some(-1), None),
        Case("its clock", |r| r.next_allowed_at = later(60), Waiting, Some(60), Some(clock)),
        Case(
            "asked to wait",
            |r| (r.next_allowed_at, r.site_wait_until) = (later(60), Some(later(90))),
            Waiting,
            Some(90),
            Some(asked),
        ),
        Case("budget", used_up, Waiting, Some(rest), Some(budget)),
    ]
}

/// What waits for a robots.txt, or is stopped.
fn robots_and_stops() -> Vec<Case> {
    use HostPhase::{Parked, Ready, Waiting};
    let dead = Reason::HostParked { failures: 3 };
    vec![
        Case(
            "our side",
            |r| hindered(r, Reason::WorkerDied, 60),
            Waiting,
            Some(60),
            Some(Reason::WorkerDied),
        ),
        Case(
            "no robots.txt",
            |r| hindered(r, unreachable(), 60),
            Waiting,
            Some(60),
            Some(unreachable()),
        ),
        Case(
            "no robots.txt, and its refusals have set a longer clock",
            |r| {
                hindered(r, unreachable(), -5);
                (r.next_allowed_at, r.set_by) = (later(60), DelaySource::Backoff);
            },
            Waiting,
            Some(60),
            Some(unreachable()),
        ),
        Case(
            "no robots.txt, and the site asked to wait for longer",
            |r| {
                hindered(r, unreachable(), 30);
                r.site_wait_until = Some(later(90));
            },
            Waiting,
            Some(90),
            Some(unreachable()),
        ),
        Case(
            "our side, and a longer clock",
            |r| {
                hindered(r, Reason::WorkerDied, 30);
                r.next_allowed_at = later(60);
            },
            Waiting,
            Some(60),
            Some(Reason::HostClock { until: later(60), set_by: DelaySource::MinDelay }),
        ),
        Case("robots.txt is due", |r| hindered(r, unreachable(), -5), Ready, Some(-5), None),
        Case("paused", |r| r.overrides.paused = true, Parked, None, Some(Reason::Paused)),
        Case(
            "failed and paused",
            |r| {
                r.overrides.paused = true;
                r.parked = Some(Reason::HostParked { failures: 3 });
            },
            Parked,
            None,
            Some(dead),
        ),
    ]
}

#[test]
fn a_host_at_rest_says_what_holds_it_longest() {
    let counts = HostCounts { queued: 1, ..HostCounts::default() };
    for Case(name, change, state, next, reason) in clocks().into_iter().chain(robots_and_stops()) {
        let mut record = HostRecord::new(HostKey::parse("https://a.test").unwrap());
        change(&mut record);
        let told = HostSummary::at_rest(&record, counts, 100, now());
        let reason = reason.map(|reason| reason.to_string());
        let wanted = (state, next.map(later), reason);
        assert_eq!((told.state, told.next_allowed_at, told.reason), wanted, "{name}");
    }
}

#[test]
fn what_holds_the_crawl_holds_hosts_that_have_something_to_do() {
    let clock = |r: &mut HostRecord| r.next_allowed_at = later(60);
    let paused = |r: &mut HostRecord| r.parked = Some(Reason::HostParked { failures: 3 });
    let day = |at| Reason::DailyBudget { max: 9, until: later(at) };
    type Held = (Change, u64, Reason, HostPhase, Option<i64>, bool);
    let cases: [Held; 6] = [
        (|_| {}, 1, Reason::Paused, HostPhase::Parked, None, true),
        (clock, 1, Reason::PageCap { max: 9 }, HostPhase::Parked, Some(60), true),
        (clock, 1, day(90), HostPhase::Waiting, Some(90), true),
        (clock, 1, day(30), HostPhase::Waiting, Some(60), false),
        (clock, 0, Reason::Paused, HostPhase::Idle, Some(60), false),
        (paused, 1, Reason::Paused, HostPhase::Parked, None, false),
    ];
    for (change, queued, crawl, state, next, told) in cases {
        let mut record = HostRecord::new(HostKey::parse("https://a.test").unwrap());
        change(&mut record);
        let counts = HostCounts { queued, ..HostCounts::default() };
        let line = HostSummary::at_rest(&record, counts, 100, now()).held_by(Some(&crawl));
        let wanted = (state, next.map(later));
        assert_eq!((line.state, line.next_allowed_at), wanted, "{crawl}: {line:?}");
        assert_eq!(line.reason == Some(crawl.to_string()), told, "{line:?}");
        let free = HostSummary::at_rest(&record, counts, 100, now());
        assert_eq!(free.clone().held_by(None), free);
    }
}

#[test]
fn yesterdays_requests_are_not_todays_and_nothing_queued_is_idle() {
    let mut record = HostRecord::new(HostKey::parse("https://a.test").unwrap());
    (record.budget_day, record.requests_today) = (now().day() - 1, 7);
    let told = HostSummary::at_rest(&record, HostCounts::default(), 100, now());
    assert_eq!((told.state, told.pages_today, told.reason), (HostPhase::Idle, 0, None));
}
