//! One row a situation: facts in, verdict, time, sentence and steps out.

use super::*;
use crate::types::{
    ArchivePointer, CrawlUrl, DelaySource, ExclusionRecord, Hindrance, HostId, HostKey, LeaseId,
    Outcome, QueueEntry, UrlRecord, UrlVersion,
};

pub(super) fn at(seconds: i64) -> Timestamp {
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
        unreachable: None,
        egress: None,
        robots: Decision::Allow { line: Some(3) },
        allowed_by: Some("Allow: /x".to_owned()),
        view: Some(UrlView { id: id(1), record: row, visit: None, lease: None, held: None }),
        host: Some(HostFacts {
            record,
            budget: 100,
            min_delay: Duration::from_secs(1),
            domain: None,
            waits_for: None,
        }),
        place: Some(Place { before: 3, found: true }),
        crawl: None,
        site: SiteUsage::default(),
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

/// One that was fetched fifty seconds ago, and lies in the archive.
pub(super) fn stored() -> Facts {
    let mut facts = queued();
    facts.place = None;
    let pointer = ArchivePointer { file: "a".into(), offset: 1, length: 2 };
    visited(&mut facts, UrlStatus::Fetched).archive = Some(pointer);
    facts
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
    let scope = Some(Reason::OutOfScope { rule: "no seed".to_owned() });
    Judged { scope, ..Judged::default() }
}

fn step<'a>(why: &'a Why, name: &str) -> &'a Step {
    why.trace.iter().find(|step| step.step == name).unwrap()
}

type Change = fn(&mut Facts);

struct Case(&'static str, Change, Verdict, Option<i64>, &'static str);

fn hold(cases: &[Case]) {
    for Case(name, change, verdict, expected, said) in cases {
        let mut facts = queued();
        change(&mut facts);
        let why = explain(&url(), &Judged::default(), &facts, None);
        let wanted = (*verdict, expected.map(at));
        assert_eq!((why.verdict, why.expected_at), wanted, "{name}: {why:#?}");
        assert!(why.reason.contains(said), "{name}: {}", why.reason);
    }
}

fn stands(before: u64, found: bool) -> Option<Place> {
    Some(Place { before, found })
}

fn next_and_free(facts: &mut Facts) {
    facts.place = stands(0, true);
    host(facts).record.next_allowed_at = at(-1);
}

fn in_flight(facts: &mut Facts) {
    facts.view.as_mut().unwrap().lease = Some(LeaseId(1));
}

#[test]
fn a_queued_url_is_expected_one_delay_for_each_before_it() {
    use Verdict::{Queued, Waiting};
    hold(&[
        Case("three before", |_| {}, Queued, Some(38), "3 URLs of its host come first"),
        Case("one before", |f| f.place = stands(1, true), Queued, Some(18), "one URL of its host"),
        Case("far behind", |f| f.place = stands(4000, false), Queued, None, "more than 4000"),
        Case("its clock", |f| f.place = stands(0, true), Waiting, Some(8), "site's Crawl-delay"),
        Case("free", next_and_free, Queued, Some(0), "next of its host"),
        Case("robots first", |f| f.robots = Decision::NeedsFetch, Queued, Some(48), "come first"),
        Case("in flight", in_flight, Queued, None, "granted"),
        Case("budget", |f| host(f).record.requests_today = 98, Queued, None, "come first"),
    ]);
}

fn asleep(facts: &mut Facts) {
    facts.robots = disallowed();
    visited(facts, UrlStatus::Sleeping);
}

#[test]
fn rules_refuse_also_what_is_queued() {
    use Verdict::Refused;
    hold(&[
        Case("robots", |f| f.robots = disallowed(), Refused, None, "robots.txt line 7 refuses it"),
        Case("excluded", |f| f.exclusion = Some(excluded()), Refused, None, "exclusion e1"),
        Case("asleep", asleep, Refused, None, "line 7"),
    ]);
}

fn parked(facts: &mut Facts) {
    host(facts).record.parked = Some(Reason::HostParked { failures: 3 });
}

fn asked_to_wait(facts: &mut Facts) {
    host(facts).record.site_wait_until = Some(at(100));
}

fn robots_away(facts: &mut Facts) {
    let reason = Reason::RobotsUnreachable { since: at(-5), why: "status 503".to_owned() };
    facts.robots = Decision::Wait { until: at(60), reason };
}

fn robots_due_again(facts: &mut Facts) {
    robots_away(facts);
    let Decision::Wait { reason, .. } = std::mem::replace(&mut facts.robots, Decision::NeedsFetch)
    else {
        unreachable!("robots_away says that it waits")
    };
    facts.unreachable = Some(reason);
}

fn robots_due_and_asked_to_wait(facts: &mut Facts) {
    robots_due_again(facts);
    asked_to_wait(facts);
}

fn hindered(facts: &mut Facts) {
    facts.robots = Decision::NeedsFetch;
    host(facts).waits_for = Some(Reason::EgressRefused { address: "10.0.0.1".to_owned() });
}

fn hindered_at_rest(facts: &mut Facts) {
    facts.robots = Decision::NeedsFetch;
    let hindrance = Hindrance { retry_at: at(60), tries: 1, reason: Reason::WorkerDied };
    host(facts).record.hindered = Some(Box::new(hindrance));
}

#[test]
fn what_holds_a_url_says_when_it_ends_if_anybody_knows() {
    use Verdict::Waiting;
    hold(&[
        Case("crawl", |f| f.crawl = Some(Reason::Paused), Waiting, None, "paused"),
        Case("host", |f| host(f).record.overrides.paused = true, Waiting, None, "paused"),
        Case("parked", parked, Waiting, None, "parked"),
        Case("asked", asked_to_wait, Waiting, Some(130), "the site asked to wait"),
        Case("day", |f| host(f).record.requests_today = 100, Waiting, Some(86_430), "used up"),
        Case("robots", robots_away, Waiting, None, "status 503"),
        Case("robots are due again", robots_due_again, Waiting, None, "status 503"),
        Case("and ask", robots_due_and_asked_to_wait, Waiting, None, "status 503"),
        Case("our side, at rest", hindered_at_rest, Waiting, None, "the worker died"),
        Case("our side", hindered, Waiting, None, "10.0.0.1 may not be connected to"),
    ]);
}

fn retrying(facts: &mut Facts) {
    facts.place = None;
    let visit = visited(facts, UrlStatus::Retrying);
    (visit.outcome, visit.next_fetch_at) = (Some(Outcome::Timeout), Some(at(30)));
}

fn dead(facts: &mut Facts) {
    facts.place = None;
    let reason = Reason::TriedTooOften { outcome: Outcome::Timeout, attempts: 5 };
    visited(facts, UrlStatus::Dead).reason = Some(reason);
}

fn fetched_before(facts: &mut Facts) {
    facts.place = None;
    visited(facts, UrlStatus::Fetched).next_fetch_at = Some(at(500));
}

fn fetched_and_refused_by_now(facts: &mut Facts) {
    fetched_before(facts);
    facts.robots = disallowed();
}

#[test]
fn a_url_that_was_visited_says_how_and_when_again() {
    use Verdict::{Dead, Fetched, Waiting};
    hold(&[
        Case("retry", retrying, Waiting, Some(30), "ended with timeout after 1 attempt,"),
        Case("dead", dead, Dead, None, "given up after 5 attempts"),
        Case("fetched", fetched_before, Fetched, Some(500), "with status 200"),
        Case("refused", fetched_and_refused_by_now, Fetched, None, "with status 200"),
    ]);
}

fn unknown(facts: &mut Facts) {
    (facts.view, facts.place) = (None, None);
}

#[test]
fn an_unknown_url_that_nothing_refuses_is_unknown() {
    hold(&[Case("unknown", unknown, Verdict::Unknown, None, "nothing has named it")]);
}

fn known_to_a_stopped_crawl(facts: &mut Facts) {
    facts.crawl = Some(Reason::Stopping);
}

fn of_paused_host(facts: &mut Facts) {
    host(facts).record.overrides.paused = true;
}

/// Whatever the URL is, what stopped the crawl or its host is told, stands in one row, and leaves
/// no time to expect.
#[test]
fn what_an_operator_stopped_is_told_of_every_url() {
    use Verdict::{Fetched, Queued, Unknown, Waiting};
    let stops: [(Change, &str, &str); 4] = [
        (|f| f.crawl = Some(Reason::Paused), "the crawl", "paused by an operator"),
        (known_to_a_stopped_crawl, "the crawl", "the crawl is stopping"),
        (of_paused_host, "the host", "paused by an operator"),
        (parked, "the host", "failed 3 times"),
    ];
    let urls: [(Change, Verdict); 5] = [
        (|_| {}, Waiting),
        (unknown, Unknown),
        (fetched_before, Fetched),
        (retrying, Waiting),
        (next_and_free, Waiting),
    ];
    for ((stop, whom, said), (of_url, verdict)) in
        stops.iter().flat_map(|stop| urls.iter().map(move |url| (stop, url)))
    {
        let mut facts = queued();
        of_url(&mut facts);
        stop(&mut facts);
        let why = explain(&url(), &Judged::default(), &facts, None);
        assert_eq!((why.verdict, why.expected_at), (*verdict, None), "{whom} {said}: {why:#?}");
        assert!(why.reason.contains(said), "{whom}: {}", why.reason);
        let row = step(&why, "pause");
        assert_eq!((row.result, row.value.as_deref()), (StepResult::Wait, Some(*whom)));
        assert!(row.reason.as_ref().unwrap().contains(said), "{row:?}");
        assert_eq!(step(&why, "budget").result, StepResult::Pass, "{why:#?}");
    }
    let mut facts = queued();
    in_flight(&mut facts);
    of_paused_host(&mut facts);
    assert_eq!(explain(&url(), &Judged::default(), &facts, None).verdict, Queued);
    facts.crawl = Some(Reason::PageCap { max: 7 });
    of_paused_host(&mut facts);
    let why = explain(&url(), &Judged::default(), &facts, None);
    let budget = step(&why, "budget");
    assert_eq!(budget.reason.as_deref(), Some("the crawl's 7 pages are used up"));
    assert_eq!(step(&why, "pause").value.as_deref(), Some("the host"));
}

#[test]
fn an_address_that_may_not_be_connected_to_refuses_its_url() {
    let address = "10.0.0.1 (private)".to_owned();
    let refused = Reason::EgressRefused { address };
    let url = CrawlUrl::parse("http://10.0.0.1/x").unwrap();
    let urls: [(Change, Verdict); 3] = [
        (|_| {}, Verdict::Refused),
        (unknown, Verdict::Refused),
        (fetched_before, Verdict::Fetched),
    ];
    for (of_url, verdict) in urls {
        let mut facts = queued();
        of_url(&mut facts);
        facts.egress = Some(refused.clone());
        let why = explain(&url, &Judged::default(), &facts, None);
        assert_eq!((why.verdict, why.expected_at), (verdict, None), "{why:#?}");
        let row = step(&why, "address");
        assert_eq!((row.result, row.value.as_deref()), (StepResult::Refuse, Some("10.0.0.1")));
        assert_eq!(row.reason.as_deref(), Some(refused.to_string().as_str()));
    }
    let mut facts = queued();
    hindered(&mut facts);
    let why = explain(&url, &Judged::default(), &facts, None);
    assert_eq!((why.verdict, step(&why, "address").result), (Verdict::Waiting, StepResult::Wait));
    let why = explain(&url, &Judged::default(), &queued(), None);
    assert_eq!(step(&why, "address").result, StepResult::Pass);
}

#[test]
fn a_robots_txt_that_cannot_be_had_is_asked_for_again_when_its_host_may_be_asked() {
    let said = |change: fn(&mut Facts)| {
        let mut facts = queued();
        change(&mut facts);
        step(&explain(&url(), &Judged::default(), &facts, None), "robots").reason.clone().unwrap()
    };
    let cases: [(Change, String); 4] = [
        (robots_away, format!("asked for again at {}", at(60))),
        (robots_due_again, format!("asked for again at {}", at(8))),
        (robots_due_and_asked_to_wait, format!("asked for again at {}", at(100))),
        (
            |f| {
                robots_due_again(f);
                host(f).record.next_allowed_at = at(-1);
            },
            "asked for again next".to_owned(),
        ),
    ];
    for (change, wanted) in cases {
        let told = said(change);
        assert!(told.starts_with("robots.txt unreachable since"), "{told}");
        assert!(told.ends_with(&wanted), "{told}, wanted {wanted}");
    }
}

#[test]
fn the_steps_stand_in_their_order_and_say_what_they_looked_at() {
    let mut facts = queued();
    let why = explain(&url(), &Judged::default(), &facts, None);
    let names: Vec<&str> = why.trace.iter().map(|step| step.step.as_str()).collect();
    let wanted = [
        "normalise",
        "scope",
        "exclusion",
        "robots",
        "template",
        "pause",
        "budget",
        "retry",
        "queue_position",
        "host_clock",
        "address",
    ];
    assert_eq!(names, wanted);
    assert_eq!(why.normalised.as_deref(), Some("https://a.test/x/~y?q"));
    let robots = step(&why, "robots");
    assert_eq!(robots.rule.as_deref(), Some("line 3: Allow: /x"));
    assert_eq!(robots.value.as_deref(), Some("/x/%7Ey?q"));
    assert_eq!(step(&why, "budget").value.as_deref(), Some("5 of 100 requests today"));
    assert_eq!(step(&why, "queue_position").result, StepResult::Wait);
    let clock = step(&why, "host_clock");
    assert_eq!(clock.rule.as_deref(), Some("10 s between requests, set by the site's Crawl-delay"));
    facts.robots = disallowed();
    facts.exclusion = Some(excluded());
    let why = explain(&url(), &Judged::default(), &facts, None);
    assert_eq!(step(&why, "robots").rule.as_deref(), Some("line 7: Disallow: /x"));
    let exclusion = step(&why, "exclusion");
    assert_eq!(exclusion.rule.as_deref(), Some("host:a.test"));
    assert_eq!(exclusion.reason.as_deref(), Some("excluded: they wrote"));
    assert!(why.reason.contains("exclusion"), "it stands before robots: {}", why.reason);
}

#[test]
fn the_steps_of_a_stored_page_stand_behind_those_of_its_way() {
    let facts = stored();
    let page = Ok(PageAsks { directives: vec!["noindex".to_owned()], ..PageAsks::default() });
    let why = explain(&url(), &Judged::default(), &facts, Some(&page));
    let names: Vec<&str> = why.trace.iter().map(|step| step.step.as_str()).collect();
    assert_eq!(names[10..], ["address", "directives", "use", "use", "use"]);
    assert_eq!(why.verdict, Verdict::Fetched, "they hold back no request");
    assert_eq!(stored_page(&facts).map(|(_, at)| at), Some(at(-50)));
    assert_eq!(stored_page(&queued()), None);
}

#[test]
fn scope_and_traps_bind_only_what_is_not_known() {
    let mut facts = queued();
    let why = explain(&url(), &out_of_scope(), &facts, None);
    assert_eq!((why.verdict, step(&why, "scope").result), (Verdict::Queued, StepResult::Pass));
    assert!(step(&why, "scope").reason.as_ref().unwrap().contains("admitted before"));
    (facts.view, facts.place) = (None, None);
    let why = explain(&url(), &out_of_scope(), &facts, None);
    assert_eq!((why.verdict, step(&why, "scope").result), (Verdict::Refused, StepResult::Refuse));
    let trap = Some(Reason::Trap { rule: "deep".to_owned() });
    let trap = Judged { trap, ..Judged::default() };
    let why = explain(&url(), &trap, &facts, None);
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
