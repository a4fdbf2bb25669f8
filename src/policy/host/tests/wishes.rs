//! R6: what the host's files say reaches the page's row; the well-known file is asked for politely.

use super::bench::{Bench, secs, settings};
use super::{ALLOW, robots_of};
use crate::policy::change::Change;
use crate::policy::host::Effects;
use crate::policy::robots::RobotsSettings;
use crate::types::{Lease, LeaseKind, Outcome, UsageWish};

const FILE: &str = "https://a.test/.well-known/tdmrep.json";
const RULE: &str = r#"{"location": "/", "tdm-reservation": 1}"#;

fn asking() -> crate::policy::host::HostSettings {
    let robots = RobotsSettings { reservations: true, ..RobotsSettings::default() };
    crate::policy::host::HostSettings { robots: robots.into(), ..settings() }
}

fn usage(effects: &Effects) -> &[UsageWish] {
    for change in &effects.changes {
        if let Change::PutToParse(row) = change {
            return &row.usage;
        }
    }
    panic!("no page came: {effects:?}");
}

/// Serves the next lease, which must be for the well-known file.
fn file(bench: &mut Bench) -> Lease {
    let lease = bench.next_lease();
    assert_eq!(robots_of(&lease), (FILE.to_owned(), 0));
    lease
}

#[test]
fn a_page_has_what_the_robots_txt_of_its_time_said() {
    let rules = "User-agent: *\nContent-Usage: /1 train-ai=n\n";
    let mut bench = Bench::with_rules(settings(), rules, &["/1"]);
    let page = bench.granted();
    let said_at = bench.now;
    let effects = bench.answer(&page, 0, Outcome::Ok);
    let [wish] = usage(&effects) else { panic!("{:?}", usage(&effects)) };
    assert_eq!(
        (wish.source.as_str(), wish.text.as_str()),
        ("robots.txt", "Content-Usage: /1 train-ai=n")
    );
    assert!(wish.at.unwrap() <= said_at);
    // Another copy, another word.
    bench.now = bench.now + secs(86_400);
    bench.admit(&["/1/2", "/2"]);
    let robots = bench.next_lease();
    bench.answer_robots(&robots, "User-agent: *\nContent-Signal: ai-train=yes\n");
    for _ in 0..2 {
        let page = bench.next_lease();
        let effects = bench.answer(&page, 0, Outcome::Ok);
        assert_eq!(usage(&effects)[0].text, "Content-Signal: ai-train=yes");
    }
}

#[test]
fn the_well_known_file_is_asked_for_once_a_day_and_before_a_page() {
    let mut bench = Bench::with_rules(asking(), ALLOW, &["/1"]);
    let lease = file(&mut bench);
    bench.answer_robots(&lease, &format!("[{RULE}]"));
    let page = bench.next_lease();
    assert!(page.not_before >= lease.not_before + secs(1), "on the host's clock");
    let effects = bench.answer(&page, 0, Outcome::Ok);
    let [wish] = usage(&effects) else { panic!("{:?}", usage(&effects)) };
    assert_eq!((wish.source.as_str(), wish.text.as_str()), ("tdmrep.json", RULE));
    // It survives rest and crash.
    for (path, crash) in [("/2", false), ("/3", true)] {
        if crash {
            bench.reopen()
        } else {
            bench.rest_and_wake()
        }
        bench.admit(&[path]);
        let page = bench.next_lease();
        assert_eq!(page.kind, LeaseKind::Page, "{path}");
        assert_eq!(usage(&bench.answer(&page, 0, Outcome::Ok)).len(), 1);
    }
    bench.now = bench.now + secs(86_400);
    bench.admit(&["/4"]);
    let robots = bench.next_lease();
    bench.answer_robots(&robots, ALLOW);
    let lease = file(&mut bench);
    bench.answer_robots_status(&lease, 404);
    let page = bench.next_lease();
    assert!(usage(&bench.answer(&page, 0, Outcome::Ok)).is_empty(), "it was taken back");
}

#[test]
fn a_well_known_file_that_fails_leaves_the_copy_before() {
    let mut bench = Bench::with_rules(asking(), ALLOW, &["/1"]);
    let lease = file(&mut bench);
    bench.answer_robots(&lease, &format!("[{RULE}]"));
    let page = bench.next_lease();
    bench.answer(&page, 0, Outcome::Ok);
    bench.now = bench.now + secs(86_400);
    bench.admit(&["/2"]);
    let robots = bench.next_lease();
    bench.answer_robots(&robots, ALLOW);
    let lease = file(&mut bench);
    bench.answer(&lease, 0, Outcome::Timeout);
    let page = bench.next_lease();
    assert_eq!(usage(&bench.answer(&page, 0, Outcome::Ok)).len(), 1);
    bench.now = bench.now + secs(3_601);
    bench.admit(&["/3"]);
    let lease = file(&mut bench);
    // A redirect is not followed: there is none.
    bench.answer(&lease, 0, Outcome::Redirect);
    let page = bench.next_lease();
    assert!(usage(&bench.answer(&page, 0, Outcome::Ok)).is_empty());
}

#[test]
fn the_well_known_file_is_left_alone_unless_wanted_and_allowed() {
    let mut bench = Bench::with_rules(settings(), ALLOW, &["/1"]);
    assert_eq!(bench.next_lease().kind, LeaseKind::Page, "nobody wants it");
    let rules = "User-agent: *\nDisallow: /.well-known/\n";
    let mut bench = Bench::with_rules(asking(), rules, &["/1"]);
    assert_eq!(bench.next_lease().kind, LeaseKind::Page, "robots.txt refuses it");
    let mut bench = Bench::with_rules(asking(), "User-agent: *\nDisallow: /\n", &["/1"]);
    assert_eq!(bench.withheld(), None, "no page, no file");
}

#[test]
fn a_robots_txt_that_redirects_to_the_file_is_still_robots_txt() {
    let mut bench = Bench::new(asking());
    bench.admit(&["/1"]);
    let robots = bench.granted();
    let mut completion = bench.completion(&robots, 0, Outcome::Redirect);
    completion.location = Some("/.well-known/tdmrep.json".to_owned());
    bench.ended(completion);
    let hop = bench.next_lease();
    assert_eq!(robots_of(&hop), (FILE.to_owned(), 1));
    bench.answer_robots(&hop, "User-agent: *\nDisallow: /1\nAllow: /\n");
    assert_eq!(bench.withheld(), None, "its rules are obeyed");
    assert_eq!(bench.sleeping.len(), 1);
}

#[test]
fn a_page_follows_every_try_of_a_file_that_fails_on_a_slow_host() {
    let slow = "User-agent: *\nCrawl-delay: 7200\n";
    let mut bench = Bench::with_rules(asking(), slow, &["/1", "/2", "/3"]);
    let mut kinds = String::new();
    for _ in 0..6 {
        let lease = bench.next_lease();
        let page = lease.kind == LeaseKind::Page;
        kinds.push(if page { 'p' } else { 'f' });
        if page {
            bench.answer(&lease, 0, Outcome::Ok);
        } else {
            bench.answer_robots_status(&lease, 500);
        }
        bench.rest_and_wake();
    }
    assert_eq!(kinds, "fpfpfp");
}

#[test]
fn only_the_site_takes_a_reservation_back() {
    for (outcome, asked_after) in [
        (Outcome::Cancelled, 1),
        (Outcome::EgressRefused, 300),
        (Outcome::TooLarge, 3_600),
        (Outcome::UnwantedType, 3_600),
        (Outcome::Decode, 3_600),
    ] {
        let mut bench = Bench::with_rules(asking(), ALLOW, &["/1"]);
        let lease = file(&mut bench);
        bench.answer_robots(&lease, &format!("[{RULE}]"));
        let page = bench.next_lease();
        bench.answer(&page, 0, Outcome::Ok);
        bench.now = bench.now + secs(86_400);
        bench.admit(&["/2"]);
        let robots = bench.next_lease();
        bench.answer_robots(&robots, ALLOW);
        let lease = file(&mut bench);
        let mut completion = bench.completion(&lease, 0, outcome);
        if outcome == Outcome::Cancelled {
            completion.sent_at = None;
        }
        completion.status = None;
        bench.ended(completion);
        if asked_after < 3_600 {
            let again = file(&mut bench);
            assert!(again.not_before >= lease.not_before + secs(asked_after), "{outcome}");
            bench.answer(&again, 0, Outcome::Timeout);
        }
        let page = bench.next_lease();
        assert_eq!(usage(&bench.answer(&page, 0, Outcome::Ok)).len(), 1, "{outcome}");
    }
}

#[test]
fn a_list_that_was_cut_keeps_back_everything() {
    let mut bench = Bench::with_rules(asking(), ALLOW, &["/1"]);
    let lease = file(&mut bench);
    let mut completion = bench.completion(&lease, 0, Outcome::Truncated);
    completion.status = Some(200);
    completion.robots_body = Some(RULE.replace("{", "[{").into());
    bench.ended(completion);
    let page = bench.next_lease();
    let effects = bench.answer(&page, 0, Outcome::Ok);
    assert_eq!(usage(&effects)[0].source, "bound");
}
