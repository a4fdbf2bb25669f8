//! B1: why a URL was, will be or will not be fetched, from plain facts.
//!
//! The steps are those a URL passes on its way, in their order; each says what it looked at and how
//! it came out. The verdict is that of the first step that decides. A time is only expected where
//! nothing holds the URL whose end nobody knows.

mod steps;
mod asks;

use std::collections::BTreeSet;
use std::time::Duration;

pub use asks::{PageAsks, SiteUsage, stored_page};

use serde::{Deserialize, Serialize};

use super::exclusion;
use super::normalise::recognised;
use super::robots::Decision;
use super::window::{BANDS, Window, WindowRequest, WindowRows};
use crate::types::{
    CrawlUrl, ExclusionRecord, HostRecord, Reason, Timestamp, UrlId, UrlStatus, UrlView,
    VisitRecord,
};

/// Rows of each band that are looked at for a place in the queue.
pub const PLACES_LOOKED_AT: u16 = 1000;

/// How a URL stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It was, and may be again.
    Fetched,
    /// It will be when its turn comes, or its request is on the way.
    Queued,
    /// Something holds it that ends.
    Waiting,
    /// It will not be while that rule holds.
    Refused,
    /// Given up after too many tries.
    Dead,
    /// Nothing has named it, and nothing would refuse it.
    Unknown,
}

/// How one step came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StepResult {
    /// Nothing stands in the way here.
    Pass,
    /// It has to wait.
    Wait,
    /// It is refused.
    Refuse,
}

/// One step of the trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Its name.
    pub step: String,
    /// The rule that decided, as written where it is written somewhere.
    pub rule: Option<String>,
    /// What was looked at.
    pub value: Option<String>,
    /// How it came out.
    pub result: StepResult,
    /// One phrase.
    pub reason: Option<String>,
}

/// The answer to `GET /v1/why`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    /// As asked.
    pub url: String,
    /// The form by which it is recognised; `None` where it is no URL that can be fetched.
    pub normalised: Option<String>,
    /// How it stands.
    pub verdict: Verdict,
    /// When it will probably be sent; `None` where nobody can say.
    pub expected_at: Option<Timestamp>,
    /// One sentence.
    pub reason: String,
    /// The steps in their order.
    pub trace: Vec<Step>,
}

/// What the scope and the trap rules say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Why it does not belong to the crawl.
    pub scope: Option<Reason>,
    /// Why its form looks like a trap.
    pub trap: Option<Reason>,
    /// What the scope was taken from, where that need not be what the crawl follows.
    pub scope_by: Option<String>,
}

/// What its shard knows.
#[derive(Clone, Debug)]
pub struct Facts {
    /// When it was asked.
    pub now: Timestamp,
    /// The exclusion that covers it.
    pub exclusion: Option<ExclusionRecord>,
    /// What robots.txt says now.
    pub robots: Decision,
    /// R2: that robots.txt cannot be had, also when it is to be asked for again.
    pub unreachable: Option<Reason>,
    /// H4: that the address in the URL may not be connected to.
    pub egress: Option<Reason>,
    /// The line of robots.txt that allows it, as written.
    pub allowed_by: Option<String>,
    /// The URL and its last visit, where it is known.
    pub view: Option<UrlView>,
    /// Its host, where it is known.
    pub host: Option<HostFacts>,
    /// Its place in its host's queue, where it stands there.
    pub place: Option<Place>,
    /// What holds the whole crawl: paused, stopping, its caps.
    pub crawl: Option<Reason>,
    /// R6: what the files of its host say on the use of it, as they are known now.
    pub site: SiteUsage,
}

/// What is known of a host.
#[derive(Clone, Debug)]
pub struct HostFacts {
    /// Its row, as its actor has it.
    pub record: HostRecord,
    /// Requests a day.
    pub budget: u64,
    /// The least delay between two requests.
    pub min_delay: Duration,
    /// What its domain says of a request at the host's time.
    pub domain: Option<Reason>,
    /// What its actor waits for, where it has one.
    pub waits_for: Option<Reason>,
}

/// A place in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// So many URLs come before it; at least so many where it was not found among those looked at.
    pub before: u64,
    /// It was found.
    pub found: bool,
}

/// The place of an entry, by the turns of the bands; `None` where it is not in the queue.
pub fn place(
    id: UrlId,
    rows: WindowRows,
    weights: &[u8; BANDS],
    granted: &BTreeSet<UrlId>,
) -> Option<Place> {
    let request = WindowRequest::of_each(PLACES_LOOKED_AT);
    let all = rows.exhausted.iter().all(|exhausted| *exhausted);
    let mut window = Window::default();
    window.load(&request, rows, |entry| granted.contains(&entry));
    let mut before = 0;
    while let Some(entry) = window.pop(weights) {
        if entry.id == id {
            return Some(Place { before, found: true });
        }
        before += 1;
    }
    (!all).then_some(Place { before, found: false })
}

/// The answer for text that is no URL.
pub fn no_url(given: &str, reason: &Reason) -> Why {
    let told = reason.to_string();
    let refused = steps::refuses("normalise", None, told.clone());
    let step = Step { value: Some(given.to_owned()), ..refused };
    Why {
        url: given.to_owned(),
        normalised: None,
        verdict: Verdict::Refused,
        expected_at: None,
        reason: told,
        trace: vec![step],
    }
}

/// The answer for a URL; `page` is what its stored page asks for, where it has one, or why that
/// cannot be read.
pub fn explain(
    url: &CrawlUrl,
    judged: &Judged,
    facts: &Facts,
    page: Option<&Result<PageAsks, String>>,
) -> Why {
    let (verdict, reason, expected_at) = verdict(judged, facts);
    let form = recognised(url).into_owned();
    let mut trace = steps::of_way(url, form.clone(), judged, facts);
    trace.extend(page.iter().flat_map(|page| asks::steps(page, facts)));
    Why { url: url.to_string(), normalised: Some(form), verdict, expected_at, reason, trace }
}

type Decided = (Verdict, String, Option<Timestamp>);

fn verdict(judged: &Judged, facts: &Facts) -> Decided {
    let Some(view) = &facts.view else { return of_unknown(judged, facts) };
    if view.lease.is_some() {
        let told = "its request is granted, on the way or being answered".to_owned();
        return (Verdict::Queued, told, None);
    }
    let refused = refusal(facts);
    let Some(visit) = &view.visit else { return of_queued(facts, refused) };
    let due = visit.next_fetch_at;
    let stopped = stopped(facts).map(|(_, reason)| reason);
    let again = due.filter(|at| *at > facts.now).or_else(|| expected(facts));
    let again = again.filter(|_| stopped.is_none());
    match (visit.status, refused) {
        (UrlStatus::Dead, _) => (Verdict::Dead, said(visit, "given up"), None),
        (UrlStatus::Fetched | UrlStatus::Gone, refused) => {
            let told = with_stop(fetched(visit), stopped);
            (Verdict::Fetched, told, again.filter(|_| refused.is_none()))
        }
        (UrlStatus::Sleeping, Some(refused)) => (Verdict::Refused, refused.to_string(), None),
        (UrlStatus::Sleeping, None) => (Verdict::Refused, said(visit, "refused"), None),
        (UrlStatus::Retrying, None) if due.is_some_and(|at| at > facts.now) => {
            (Verdict::Waiting, with_stop(retried(visit), stopped), again)
        }
        (UrlStatus::Retrying | UrlStatus::Queued, refused) => of_queued(facts, refused),
    }
}

fn of_unknown(judged: &Judged, facts: &Facts) -> Decided {
    let scope = judged.scope.clone();
    match scope.or_else(|| refusal(facts)).or_else(|| judged.trap.clone()) {
        Some(reason) => (Verdict::Refused, reason.to_string(), None),
        None => {
            let told = "nothing has named it so far; it belongs to the crawl and would be taken";
            let stopped = stopped(facts).map(|(_, reason)| reason);
            (Verdict::Unknown, with_stop(told.to_owned(), stopped), None)
        }
    }
}

/// What refuses a URL whether it is known or not.
fn refusal(facts: &Facts) -> Option<Reason> {
    let excluded = facts.exclusion.as_ref().map(exclusion::reason);
    let robots = match &facts.robots {
        Decision::Refuse(reason) => Some(reason.clone()),
        Decision::Allow { .. } | Decision::NeedsFetch | Decision::Wait { .. } => None,
    };
    excluded.or(robots).or_else(|| facts.egress.clone())
}

fn of_queued(facts: &Facts, refused: Option<Reason>) -> Decided {
    if let Some(reason) = refused {
        return (Verdict::Refused, reason.to_string(), None);
    }
    if let Some(reason) = hold(facts) {
        let expected = ends_by_itself(&reason).then(|| expected(facts)).flatten();
        return (Verdict::Waiting, reason.to_string(), expected);
    }
    let expected = expected(facts);
    match facts.place {
        Some(Place { before: 0, found: true }) | None => match clock(facts) {
            Some(reason) => (Verdict::Waiting, reason.to_string(), expected),
            None => (Verdict::Queued, "it is next of its host".to_owned(), expected),
        },
        Some(place) => (Verdict::Queued, before(place), expected),
    }
}

/// What holds a queued URL beside its host's own clock and queue.
fn hold(facts: &Facts) -> Option<Reason> {
    let asked = facts.host.as_ref().and_then(|host| host.record.site_wait_until);
    let asked = asked.filter(|until| *until > facts.now);
    let asked = asked.map(|until| Reason::SiteAskedToWait { until });
    let stopped = stopped(facts).map(|(_, reason)| reason);
    let own = stopped.or_else(|| facts.crawl.clone());
    // What a site asks for with a robots.txt that it does not give has that as its cause.
    own.or_else(|| no_robots(facts))
        .or(asked)
        .or_else(|| hindrance(facts))
        .or_else(|| budget(facts))
}

/// What has stopped the crawl or the host until somebody says otherwise, and which of the two.
fn stopped(facts: &Facts) -> Option<(&'static str, Reason)> {
    let crawl = facts.crawl.clone().filter(|reason| !is_cap(reason));
    let host = || facts.host.as_ref().and_then(|host| host.record.stopped());
    crawl.map(|reason| ("the crawl", reason)).or_else(|| Some(("the host", host()?)))
}

/// A cap on the crawl is used up.
fn is_cap(reason: &Reason) -> bool {
    matches!(reason, Reason::PageCap { .. } | Reason::DailyBudget { .. })
}

/// R2: everything waits for a robots.txt that was asked for and did not come.
fn no_robots(facts: &Facts) -> Option<Reason> {
    match &facts.robots {
        Decision::Wait { reason, .. } => Some(reason.clone()),
        Decision::NeedsFetch => facts.unreachable.clone(),
        Decision::Allow { .. } | Decision::Refuse(_) => None,
    }
}

/// Why robots.txt could not be asked for, though nothing is known to be wrong with the site.
fn hindrance(facts: &Facts) -> Option<Reason> {
    let host = facts.host.as_ref().filter(|_| matches!(facts.robots, Decision::NeedsFetch))?;
    let kept = host.record.hindered.as_ref().filter(|one| one.retry_at > facts.now);
    let waits = host.waits_for.clone().or_else(|| kept.map(|one| one.reason.clone()))?;
    let ordinary = waits.until().is_some()
        || matches!(waits, Reason::RobotsNeeded | Reason::InFlight | Reason::PageCap { .. });
    (!ordinary).then_some(waits)
}

/// Whether the end of a hold is known, and the URL goes on then.
fn ends_by_itself(reason: &Reason) -> bool {
    matches!(reason, Reason::SiteAskedToWait { .. } | Reason::DailyBudget { .. })
}

/// The host's clock or its domain's, where it still runs.
fn clock(facts: &Facts) -> Option<Reason> {
    let host = facts.host.as_ref()?;
    let (until, set_by) = (host.record.next_allowed_at, host.record.set_by);
    let own = (until > facts.now).then_some(Reason::HostClock { until, set_by });
    own.or_else(|| host.domain.clone())
}

fn budget(facts: &Facts) -> Option<Reason> {
    let host = facts.host.as_ref()?;
    let used = used_today(host, facts.now) >= host.budget;
    let until = facts.now.next_day();
    let own = used.then_some(Reason::DailyBudget { max: host.budget, until });
    let domain = host.domain.clone();
    own.or(domain.filter(|reason| matches!(reason, Reason::DailyBudget { .. })))
}

fn used_today(host: &HostFacts, now: Timestamp) -> u64 {
    if host.record.budget_day == now.day() { host.record.requests_today } else { 0 }
}

/// The host's next time, and one delay for each that comes before; `None` where the place is not
/// known or the day's budget ends before.
fn expected(facts: &Facts) -> Option<Timestamp> {
    let (host, place) = (facts.host.as_ref()?, facts.place.filter(|place| place.found)?);
    let robots = u64::from(matches!(facts.robots, Decision::NeedsFetch));
    let before = place.before + robots;
    let used_up = budget(facts);
    let left = host.budget.saturating_sub(used_today(host, facts.now));
    if used_up.is_none() && before >= left {
        return None;
    }
    let delay = host.record.delay.max(host.min_delay);
    let held = hold(facts).and_then(|reason| reason.until());
    let clock = clock(facts).and_then(|reason| reason.until());
    let first = facts.now.max(held.unwrap_or_default()).max(clock.unwrap_or_default());
    let span = delay.saturating_mul(u32::try_from(before).unwrap_or(u32::MAX));
    Some(first + span)
}

// Phrases.

/// What is told of a URL that is not waiting, and that nothing is asked now.
fn with_stop(told: String, stopped: Option<Reason>) -> String {
    match stopped {
        Some(reason) => format!("{told}; nothing is asked now: {reason}"),
        None => told,
    }
}

fn before(place: Place) -> String {
    match place {
        Place { before: 0, found: true } => "it is next of its host".to_owned(),
        Place { before: 1, found: true } => "one URL of its host comes first".to_owned(),
        Place { before, found: true } => format!("{before} URLs of its host come first"),
        Place { before, found: false } => format!("more than {before} URLs of its host come first"),
    }
}

fn fetched(visit: &VisitRecord) -> String {
    let at = visit.last_fetched_at.map(|at| format!(" at {at}")).unwrap_or_default();
    let status = visit.status_code.map(|code| format!(" with status {code}")).unwrap_or_default();
    let due = visit.next_fetch_at.map(|due| format!(", due again at {due}")).unwrap_or_default();
    let why = visit.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("fetched{at}{status}{due}{why}")
}

fn retried(visit: &VisitRecord) -> String {
    let until = visit.next_fetch_at.unwrap_or_default();
    let (outcome, attempts) = (visit.outcome, visit.attempts);
    match outcome {
        Some(outcome) => Reason::Retry { until, outcome, attempts }.to_string(),
        None => format!("tried again at {until}"),
    }
}

fn said(visit: &VisitRecord, otherwise: &str) -> String {
    visit.reason.as_ref().map_or_else(|| otherwise.to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests;
