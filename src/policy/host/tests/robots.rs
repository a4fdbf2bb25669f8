//! R2, R3: what comes for robots.txt, and what follows from it.

use super::bench::{Bench, at, secs, settings};
use super::{ALLOW, robots_of};
use crate::policy::host::{Errand, HostEvent};
use crate::policy::robots::{LongUnreachable, RobotsSettings, RobotsState};
use crate::types::{
    Completion, CrawlUrl, HostKey, Lease, LeaseKind, Outcome, Reason, Timestamp, UrlStatus,
};

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
    for outcome in [
        Outcome::ServerError,
        Outcome::Timeout,
        Outcome::Dns,
        Outcome::Connect,
        Outcome::Tls,
        Outcome::Protocol,
        Outcome::Decode,
        Outcome::TooLarge,
    ] {
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

const DAY: u64 = 86_400;

/// Forty pages of a host whose rules were good once, and how many requests of each kind are made
/// until they are fetched when robots.txt is answered by `refuse` from the second day on.
fn pages_served(rules: &str, refuse: impl Fn(&mut Completion)) -> (usize, usize) {
    let mut bench = Bench::with_rules(settings(), rules, &["/private/0"]);
    assert_eq!(bench.withheld(), None);
    bench.now = bench.now + secs(DAY);
    let paths: Vec<String> = (0..40).map(|page| format!("/{page}")).collect();
    bench.admit(&paths.iter().map(String::as_str).collect::<Vec<_>>());
    let (mut pages, mut files) = (0, 0);
    while pages < 40 {
        let lease = bench.next_lease();
        match lease.kind {
            LeaseKind::Page => {
                pages += 1;
                bench.answer(&lease, 0, Outcome::Ok);
            }
            LeaseKind::Robots { .. } => {
                files += 1;
                assert!(files <= 60, "{pages} pages only");
                let mut completion = bench.completion(&lease, 0, Outcome::RateLimited);
                refuse(&mut completion);
                bench.ended(completion);
                let last_good = match bench.machine.robots() {
                    RobotsState::Unreachable { last_good, .. } => last_good.is_some(),
                    RobotsState::Unfetched | RobotsState::Fresh { .. } => false,
                };
                assert!(last_good, "the old rules serve on");
            }
        }
    }
    assert_eq!(bench.sleeping.len(), 1, "what they refused stays refused");
    (pages, files)
}

#[test]
fn the_last_good_copy_serves_pages_between_the_tries() {
    const RULES: &str = "User-agent: *\nDisallow: /private\n";
    for (status, asked) in
        [(429, None), (503, None), (503, Some(secs(600))), (429, Some(secs(7200)))]
    {
        let (pages, files) = pages_served(RULES, |completion| {
            completion.status = Some(status);
            completion.retry_after = asked;
        });
        assert!(files > 0 && files <= pages, "{status} {asked:?}: {files} files, {pages} pages");
    }
    let slow = "User-agent: *\nDisallow: /private\nCrawl-delay: 7200\n";
    let (pages, files) = pages_served(slow, |completion| completion.status = Some(500));
    assert!(files <= pages, "a page at least for every try: {files}");
}

#[test]
fn an_answer_lasts_for_the_next_request_however_long_the_host_waits() {
    let mut bench = Bench::new(settings());
    bench.admit(&["/1", "/2", "/3"]);
    let mut kinds = String::new();
    for _ in 0..6 {
        let lease = bench.next_lease();
        let robots = matches!(lease.kind, LeaseKind::Robots { .. });
        kinds.push(if robots { 'r' } else { 'p' });
        let mut completion = bench.completion(&lease, 0, Outcome::Ok);
        if robots {
            completion.robots_body = Some("User-agent: *\nCrawl-delay: 3600\n".into());
            completion.max_age = Some(secs(60));
        }
        bench.ended(completion);
    }
    assert_eq!(kinds, "rprprp", "a page for every file, not files alone");
}

/// Ends the lease of a robots.txt by a failure of our own.
fn fail(bench: &mut Bench, lease: &Lease, outcome: Outcome, reason: Reason, sent: bool) {
    let sent_at = sent.then_some(lease.not_before);
    let failed = Completion::failed(lease, bench.now.max(lease.not_before), outcome, reason);
    bench.ended(Completion { sent_at, ..failed });
}

fn retry_at(bench: &Bench) -> Timestamp {
    bench.machine.ready_at()
}

#[test]
fn a_failure_of_ours_says_nothing_of_the_rules() {
    let failures = [
        (Outcome::Cancelled, Reason::WorkerDied, true, 30),
        (Outcome::Cancelled, Reason::WorkerDied, false, 1),
        (Outcome::Cancelled, Reason::Stopping, false, 1),
        (Outcome::Timeout, Reason::LeaseExpired, false, 30),
    ];
    for (outcome, reason, sent, wait) in failures {
        let mut bench = Bench::new(settings());
        bench.admit(&["/1"]);
        let lease = bench.granted();
        fail(&mut bench, &lease, outcome, reason.clone(), sent);
        assert_eq!(bench.machine.robots(), &RobotsState::Unfetched, "{reason}");
        assert!(bench.robots_row.is_none(), "{reason}: nothing is written of it");
        assert!(bench.machine.is_idle(), "{reason}: it may sleep until then");
        assert_eq!(retry_at(&bench), bench.now + secs(wait), "{reason} {sent}");
        bench.now = bench.now + secs(wait) - secs(1) - std::time::Duration::from_millis(1);
        if wait > 1 {
            assert_eq!(bench.withheld(), Some(reason.clone()), "no page meanwhile");
        }
        let again = bench.next_lease();
        assert_eq!(robots_of(&again).1, 0);
        fail(&mut bench, &again, outcome, reason.clone(), sent);
        assert_eq!(retry_at(&bench), bench.now.max(again.not_before) + secs(2 * wait), "{reason}");
        let third = bench.next_lease();
        bench.answer_robots(&third, ALLOW);
        assert_eq!(bench.next_lease().kind, LeaseKind::Page);
    }
}

#[test]
fn a_failure_of_ours_leaves_rules_that_are_due_as_they_were() {
    let mut bench = Bench::with_rules(settings(), ALLOW, &["/1"]);
    bench.now = bench.now + secs(DAY);
    let before = bench.machine.robots().clone();
    let lease = bench.granted();
    fail(&mut bench, &lease, Outcome::Cancelled, Reason::WorkerDied, true);
    assert_eq!(bench.machine.robots(), &before);
    let again = bench.next_lease();
    assert_eq!(robots_of(&again).1, 0, "I2: rules of yesterday let no page out");
}

#[test]
fn an_address_that_we_refuse_is_not_the_sites_failure() {
    let mut bench = Bench::new(settings());
    bench.admit(&["/1"]);
    let refused = Reason::EgressRefused { address: "10.1.2.3 (private)".to_owned() };
    for wait in [300, 600, 1_200] {
        let lease = bench.next_lease();
        assert_eq!(robots_of(&lease).1, 0);
        fail(&mut bench, &lease, Outcome::EgressRefused, refused.clone(), false);
        assert_eq!(bench.machine.robots(), &RobotsState::Unfetched);
        assert_eq!(bench.withheld(), Some(refused.clone()), "it is said as what it is");
        assert_eq!(retry_at(&bench), bench.now.max(lease.not_before) + secs(wait));
    }
    assert_eq!(bench.counts.queued, 1, "what is queued waits");
}

#[test]
fn an_errand_is_run_also_while_the_hosts_own_file_is_unreachable() {
    let errand = || Errand {
        for_host: HostKey::parse("https://c.test").unwrap(),
        url: CrawlUrl::parse("https://a.test/robots.txt").unwrap(),
        hops: 1,
    };
    let refused = Reason::EgressRefused { address: "10.1.2.3 (private)".to_owned() };
    let failures = [
        (Outcome::Connect, Reason::Connect { why: "refused".to_owned() }),
        (Outcome::EgressRefused, refused),
    ];
    for (outcome, reason) in failures {
        for early in [true, false] {
            let mut bench = Bench::new(settings());
            bench.admit(&["/1"]);
            let own = bench.granted();
            if early {
                bench.step(HostEvent::ErrandCame(errand()));
            }
            fail(&mut bench, &own, outcome, reason.clone(), false);
            if !early {
                bench.step(HostEvent::ErrandCame(errand()));
            }
            let lease = bench.next_lease();
            assert_eq!(robots_of(&lease).1, 1, "{outcome} {early}");
            let waited = lease.not_before.since(own.not_before);
            assert!(waited <= secs(1), "{outcome} {early}: its own clock only, not {waited:?}");
        }
    }
}

#[test]
fn a_host_that_asks_for_days_is_asked_for_its_file_alone() {
    let mut bench = Bench::new(settings());
    bench.admit(&["/1"]);
    let mut last = None;
    for _ in 0..3 {
        let lease = bench.next_lease();
        assert_eq!(robots_of(&lease).1, 0, "I2: yesterday's rules let nothing out");
        let waited = last.map(|last| lease.not_before.since(last));
        assert!(waited.is_none_or(|waited| waited >= secs(2 * DAY)), "R3: never cut down");
        last = Some(lease.not_before);
        bench.answer_robots(&lease, "User-agent: *\nCrawl-delay: 172800\n");
    }
}

#[test]
fn a_page_follows_every_file_however_late_the_hosts_turn_comes() {
    let mut bench = Bench::new(settings());
    bench.admit(&["/1", "/2", "/3"]);
    let mut kinds = String::new();
    for turn in 0..6 {
        let lease = bench.next_lease();
        let robots = matches!(lease.kind, LeaseKind::Robots { .. });
        kinds.push(if robots { 'r' } else { 'p' });
        let mut completion = bench.completion(&lease, 0, Outcome::Ok);
        if robots {
            completion.robots_body = Some(ALLOW.into());
            completion.max_age = Some(secs(0));
        }
        bench.ended(completion);
        // More hosts are ahead of it than are visited while the answer lasts.
        bench.now = bench.now + secs(2_000);
        if turn % 2 == 0 {
            bench.rest_and_wake();
        }
    }
    assert_eq!(kinds, "rprprp", "a page for every file, not files alone");
}

#[test]
fn tries_after_our_own_failures_grow_also_over_the_rest_of_the_host() {
    let mut bench = Bench::new(settings());
    bench.admit(&["/1"]);
    for wait in [30, 60, 120] {
        let lease = bench.next_lease();
        fail(&mut bench, &lease, Outcome::Cancelled, Reason::WorkerDied, true);
        bench.rest_and_wake();
        assert_eq!(retry_at(&bench), bench.now.max(lease.not_before) + secs(wait));
        assert_eq!(bench.row.rests_until(), retry_at(&bench), "a new link does not wake it before");
        assert_eq!(bench.withheld(), Some(Reason::WorkerDied));
    }
    let lease = bench.next_lease();
    bench.answer_robots(&lease, ALLOW);
    assert_eq!(bench.row.hindered, None);
}

#[test]
fn a_crawl_delay_is_durable_at_once() {
    let mut bench = Bench::new(settings());
    bench.admit(&["/1"]);
    let lease = bench.granted();
    assert!(bench.answer_robots(&lease, "User-agent: *\nCrawl-delay: 30\n").urgent, "I3");
    let mut bench = Bench::new(settings());
    bench.admit(&["/1"]);
    let lease = bench.granted();
    assert!(!bench.answer_robots(&lease, ALLOW).urgent);
}
