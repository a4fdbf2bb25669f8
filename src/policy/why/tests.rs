//! One row a situation: facts in, verdict, time, sentence and steps out.

use super::*;
use crate::types::{
    CrawlUrl, DelaySource, ExclusionRecord, HostId, HostKey, LeaseId, Outcome, QueueEntry,
    UrlRecord, UrlVersion,
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_secs(1_767_225_600 + seconds)
}

fn url() -> CrawlUrl {
    CrawlUrl::parse("https://a.test/x/%7Ey?q").unwrap()
}

fn id(hash: u64) -> UrlId {
    UrlId { host: HostId(1), hash, disambiguator: 0 }
}

/// A URL that is queued with three before it; its host has been asked two seconds before.
fn queued() -> Facts {
    let mut record = HostRecord::new(HostKey::parse("https://a.test").unwrap());
    record.next_allowed_at = at(8);
    record.delay = Duration::from_secs(10);
    record.set_by = DelaySource::CrawlDelay;
    record.budget_day = at(0).day();
    record.requests_today = 5;
    let row = UrlRecord {
        url: url(),
        depth: 1,
        band: 1,
        order: 1,
        redirects: 0,
        discovered_from: None,
        discovered_at: at(0),
    };
    Facts {
        now: at(0),
        exclusion: None,
        robots: Decision::Allow { line: Some(3) },
        allowed_by: Some("Allow: /x".to_owned()),
        view: Some(UrlView { id: id(1), record: row, visit: None, lease: None }),
        host: Some(HostFacts {
            record,
            budget: 100,
            min_delay: Duration::from_secs(1),
            domain: None,
            waits_for: None,
        }),
        place: Some(Place { before: 3, found: true }),
        crawl: None,
    }
}

fn visited(facts: &mut Facts, status: UrlStatus) -> &mut VisitRecord {
    let view = facts.view.as_mut().unwrap();
    view.visit.insert(VisitRecord {
        version: UrlVersion(1),
        status,
        outcome: Some(Outcome::Ok),
        status_code: Some(200),
        attempts: 1,
        last_fetched_at: Some(at(-50)),
        next_fetch_at: None,
        digest: None,
        archive: None,
        validators: None,
        reason: None,
    })
}

fn host(facts: &mut Facts) -> &mut HostFacts {
    facts.host.as_mut().unwrap()
}

fn disallowed() -> Decision {
    Decision::Refuse(Reason::RobotsDisallow { line: 7, rule: "Disallow: /x".to_owned() })
}

fn excluded() -> ExclusionRecord {
    ExclusionRecord {
        id: "e1".to_owned(),
        rule: "host:a.test".to_owned(),
        reason: Some("they wrote".to_owned()),
        until: None,
        made_at: at(-9),
    }
}

fn out_of_scope() -> Judged {
    Judged { scope: Some(Reason::OutOfScope { rule: "no seed".to_owned() }), trap: None }
}

fn step<'a>(why: &'a Why, name: &str) -> &'a Step {
    why.trace.iter().find(|step| step.step == name).unwrap()
}

type Case = (&'static str, fn(&mut Facts), Verdict, Option<i64>, &'static str);

#[test]
fn every_situation_has_its_verdict_time_and_sentence() {
    let cases: [Case; 22] = [
        ("queued", |_| {}, Verdict::Queued, Some(38), "3 URLs of its host come first"),
        (
            "one before",
            |f| f.place = Some(Place { before: 1, found: true }),
            Verdict::Queued,
            Some(18),
            "one URL of its host comes first",
        ),
        (
            "far behind",
            |f| f.place = Some(Place { before: 4000, found: false }),
            Verdict::Queued,
            None,
            "more than 4000",
        ),
        (
            "next, clock runs",
            |f| f.place = Some(Place { before: 0, found: true }),
            Verdict::Waiting,
            Some(8),
            "set by the site's Crawl-delay",
        ),
        (
            "next, free",
            |f| {
                f.place = Some(Place { before: 0, found: true });
                host(f).record.next_allowed_at = at(-1);
            },
            Verdict::Queued,
            Some(0),
            "next of its host",
        ),
        (
            "robots first",
            |f| f.robots = Decision::NeedsFetch,
            Verdict::Queued,
            Some(48),
            "come first",
        ),
        (
            "in flight",
            |f| f.view.as_mut().unwrap().lease = Some(LeaseId(1)),
            Verdict::Queued,
            None,
            "granted",
        ),
        (
            "robots refuses",
            |f| f.robots = disallowed(),
            Verdict::Refused,
            None,
            "robots.txt line 7 refuses it",
        ),
        ("excluded", |f| f.exclusion = Some(excluded()), Verdict::Refused, None, "exclusion e1"),
        (
            "asleep",
            |f| {
                f.robots = disallowed();
                visited(f, UrlStatus::Sleeping);
            },
            Verdict::Refused,
            None,
            "line 7",
        ),
        ("paused crawl", |f| f.crawl = Some(Reason::Paused), Verdict::Waiting, None, "paused"),
        (
            "paused host",
            |f| host(f).record.overrides.paused = true,
            Verdict::Waiting,
            None,
            "paused",
        ),
        (
            "parked",
            |f| host(f).record.parked = Some(Reason::HostParked { failures: 3 }),
            Verdict::Waiting,
            None,
            "parked",
        ),
        (
            "site asked",
            |f| host(f).record.site_wait_until = Some(at(100)),
            Verdict::Waiting,
            Some(130),
            "the site asked to wait",
        ),
        (
            "budget",
            |f| host(f).record.requests_today = 100,
            Verdict::Waiting,
            Some(86_430),
            "used up",
        ),
        (
            "budget ends before",
            |f| host(f).record.requests_today = 98,
            Verdict::Queued,
            None,
            "come first",
        ),
        (
            "robots away",
            |f| {
                f.robots = Decision::Wait {
                    until: at(60),
                    reason: Reason::RobotsUnreachable {
                        since: at(-5),
                        why: "status 503".to_owned(),
                    },
                }
            },
            Verdict::Waiting,
            None,
            "status 503",
        ),
        (
            "retry",
            |f| {
                let v = visited(f, UrlStatus::Retrying);
                v.outcome = Some(Outcome::Timeout);
                v.next_fetch_at = Some(at(30));
                f.place = None;
            },
            Verdict::Waiting,
            Some(30),
            "ended with timeout after 1 attempts",
        ),
        (
            "dead",
            |f| {
                let reason = Reason::TriedTooOften { outcome: Outcome::Timeout, attempts: 5 };
                visited(f, UrlStatus::Dead).reason = Some(reason);
                f.place = None;
            },
            Verdict::Dead,
            None,
            "given up after 5 attempts",
        ),
        (
            "fetched",
            |f| {
                visited(f, UrlStatus::Fetched).next_fetch_at = Some(at(500));
                f.place = None;
            },
            Verdict::Fetched,
            Some(500),
            "with status 200",
        ),
        (
            "fetched, refused by now",
            |f| {
                visited(f, UrlStatus::Fetched).next_fetch_at = Some(at(500));
                f.robots = disallowed();
                f.place = None;
            },
            Verdict::Fetched,
            None,
            "with status 200",
        ),
        (
            "unknown",
            |f| {
                f.view = None;
                f.place = None;
            },
            Verdict::Unknown,
            None,
            "nothing has named it",
        ),
    ];
    for (name, change, verdict, expected, said) in cases {
        let mut facts = queued();
        change(&mut facts);
        let why = explain(&url(), &Judged::default(), &facts);
        assert_eq!((why.verdict, why.expected_at), (verdict, expected.map(at)), "{name}: {why:#?}");
        assert!(why.reason.contains(said), "{name}: {}", why.reason);
    }
}

#[test]
fn the_steps_stand_in_their_order_and_say_what_they_looked_at() {
    let mut facts = queued();
    let why = explain(&url(), &Judged::default(), &facts);
    let names: Vec<&str> = why.trace.iter().map(|step| step.step.as_str()).collect();
    let wanted = [
        "normalise",
        "scope",
        "exclusion",
        "robots",
        "template",
        "budget",
        "retry",
        "queue_position",
        "host_clock",
    ];
    assert_eq!(names, wanted);
    assert_eq!(why.normalised.as_deref(), Some("https://a.test/x/~y?q"));
    let robots = step(&why, "robots");
    assert_eq!(robots.rule.as_deref(), Some("line 3: Allow: /x"));
    assert_eq!(robots.value.as_deref(), Some("/x/%7Ey?q"));
    assert_eq!(step(&why, "budget").value.as_deref(), Some("5 of 100 requests today"));
    assert_eq!(step(&why, "queue_position").result, StepResult::Wait);
    let clock = step(&why, "host_clock");
    assert_eq!(clock.rule.as_deref(), Some("10s between requests, set by the site's Crawl-delay"));
    facts.robots = disallowed();
    facts.exclusion = Some(excluded());
    let why = explain(&url(), &Judged::default(), &facts);
    assert_eq!(step(&why, "robots").rule.as_deref(), Some("line 7: Disallow: /x"));
    let exclusion = step(&why, "exclusion");
    assert_eq!(exclusion.rule.as_deref(), Some("host:a.test"));
    assert_eq!(exclusion.reason.as_deref(), Some("excluded: they wrote"));
    assert!(why.reason.contains("exclusion"), "it stands before robots: {}", why.reason);
}

#[test]
fn scope_and_traps_bind_only_what_is_not_known() {
    let mut facts = queued();
    let why = explain(&url(), &out_of_scope(), &facts);
    assert_eq!((why.verdict, step(&why, "scope").result), (Verdict::Queued, StepResult::Pass));
    assert!(step(&why, "scope").reason.as_ref().unwrap().contains("admitted before"));
    (facts.view, facts.place) = (None, None);
    let why = explain(&url(), &out_of_scope(), &facts);
    assert_eq!((why.verdict, step(&why, "scope").result), (Verdict::Refused, StepResult::Refuse));
    let trap = Judged { scope: None, trap: Some(Reason::Trap { rule: "deep".to_owned() }) };
    let why = explain(&url(), &trap, &facts);
    assert_eq!(
        (why.verdict, step(&why, "template").rule.as_deref()),
        (Verdict::Refused, Some("deep"))
    );
}

#[test]
fn text_that_is_no_url_gets_the_words_of_the_parser() {
    let reason = CrawlUrl::parse("ftp://a.test/").unwrap_err();
    let why = no_url("ftp://a.test/", &reason);
    assert_eq!(
        (why.verdict, why.normalised.as_ref(), why.trace.len()),
        (Verdict::Refused, None, 1)
    );
    assert!(why.reason.contains("`ftp`"), "{}", why.reason);
}

fn entry(band: u8, order: u64) -> QueueEntry {
    QueueEntry {
        id: id(u64::from(band) << 32 | order),
        version: UrlVersion(1),
        url: url(),
        depth: 0,
        band,
        order,
        attempts: 0,
        redirects: 0,
        validators: None,
        discovered_from: None,
    }
}

#[test]
fn a_place_counts_the_turns_of_all_bands_and_not_what_is_granted() {
    let weights = [8, 4, 2, 1];
    let mut rows = WindowRows { exhausted: [true; BANDS], ..WindowRows::default() };
    rows.rows[0] = (0..4).map(|order| entry(0, order)).collect();
    rows.rows[3] = (0..2).map(|order| entry(3, order)).collect();
    let found = |id, rows: &WindowRows, granted: &[UrlId]| {
        place(id, rows.clone(), &weights, &granted.iter().copied().collect())
    };
    let last = entry(3, 1).id;
    assert_eq!(found(last, &rows, &[]), Some(Place { before: 5, found: true }));
    let granted = [entry(0, 0).id, entry(0, 1).id];
    assert_eq!(found(last, &rows, &granted), Some(Place { before: 3, found: true }));
    assert_eq!(found(entry(2, 9).id, &rows, &[]), None);
    rows.exhausted[2] = false;
    assert_eq!(found(entry(2, 9).id, &rows, &[]), Some(Place { before: 6, found: false }));
}
