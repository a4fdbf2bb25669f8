//! What the sites saw, and whether it was right: judged at every request, from the sites' side.
//!
//! - I2 At most one request of a host at a time, none sooner than its delay after the end of the
//!   last one; no page before robots.txt has decided, none that the rules refuse which were served
//!   last.
//! - I3 No request before the end of a wait that the site asked for, over crashes too. What a
//!   site asked for in the last moments before a crash may not have been heard; nothing else may be
//!   lost.
//! - I6 No address but the public ones of the site, and no more of an address than is allowed.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::asked::Asked;
use super::rules::SiteRules;
use super::site::Robots;
use super::trace::Trace;
use super::web::Web;
use crate::config::Config;
use crate::types::{CrawlUrl, HostKey, Timestamp};

/// A page may be sent so long after its robots decision has ended: the lease was granted before, or
/// the crawler failed to ask again by a fault of its own, and the last copy served on meanwhile.
const DECISION_SLACK: Duration = Duration::from_secs(900);
/// What a site was seen to want in the last moments before a crash may not have become durable: the
/// archive syncs, and the shard flushes once a second.
const GRACE: Duration = Duration::from_secs(2);
/// A wait that a site asked for is flushed at once (I3).
const GRACE_OF_WAITS: Duration = Duration::from_millis(300);
/// Redirects that are followed from a robots.txt.
const REDIRECTS_MAX: usize = 5;
/// Violations that are kept in words.
const VIOLATIONS_KEPT: usize = 20;

/// How a request ended, as the site saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// A response went out.
    Answered {
        /// Its status.
        status: u16,
    },
    /// No response, and the crawler hung up.
    HungUp,
    /// The site took no connection.
    Refused,
    /// The crawler's worker died.
    Died,
    /// The whole crawler died.
    Crashed,
}

/// One request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    pub(super) url: CrawlUrl,
    pub(super) address: IpAddr,
    pub(super) at: Timestamp,
    pub(super) end: Option<(Timestamp, End)>,
}

/// What a response tells about the wishes of a site.
#[derive(Clone, Debug, Default)]
pub(super) struct Told {
    /// Until when the site wants to be left alone.
    pub(super) wait_until: Option<Timestamp>,
    /// The rules in a robots.txt.
    pub(super) rules: Option<SiteRules>,
    /// How long they are good for.
    pub(super) max_age: Option<Duration>,
}

/// What has happened, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Seen {
    /// Requests that came.
    pub(super) requests: usize,
    /// Waits that sites asked for.
    pub(super) waits: usize,
}

/// The record of a run; clones are the same record.
#[derive(Clone)]
pub(super) struct History {
    web: Arc<Web>,
    limits: Limits,
    state: Arc<Mutex<State>>,
    seen: watch::Sender<Seen>,
}

/// What the operator promised.
#[derive(Clone, Copy, Debug)]
struct Limits {
    min_delay: Duration,
    max_delay: Duration,
    delay_factor: f64,
    address_delay: Duration,
    address_in_flight: usize,
    robots_cache: Duration,
}

#[derive(Default)]
struct State {
    trace: Trace,
    requests: Vec<Request>,
    /// Numbers of the requests that have not ended.
    open: Vec<usize>,
    sites: BTreeMap<HostKey, SiteView>,
    addresses: BTreeMap<IpAddr, AddressView>,
    violations: Vec<String>,
    violation_count: u64,
}

/// A site's own view of the crawler.
#[derive(Clone, Debug, Default)]
struct SiteView {
    in_flight: usize,
    ended: Option<Timestamp>,
    took: Duration,
    /// Its Crawl-delay.
    delay: Asked<Duration>,
    /// The end of the wait it asked for.
    wait_until: Asked<Timestamp>,
    decision: Decision,
    /// Redirects of robots.txt in a row.
    hops: usize,
}

/// What the site's robots.txt said last.
#[derive(Clone, Debug, Default)]
struct Decision {
    /// `None`: nothing is allowed.
    rules: Option<SiteRules>,
    /// They came from a file, and may serve on where the file cannot be had.
    is_copy: bool,
    until: Timestamp,
}

#[derive(Clone, Debug, Default)]
struct AddressView {
    in_flight: usize,
    begun: Option<Timestamp>,
    ended: Option<Timestamp>,
}

impl SiteView {
    /// What it was seen to want in the last moments, or since store or disk fail, need not have
    /// become durable.
    fn forget_since(&mut self, at: Timestamp, trouble_since: Timestamp) {
        let trouble = at.since(trouble_since);
        self.wait_until.forget_since(at, GRACE_OF_WAITS + trouble);
        self.delay.forget_since(at, GRACE + trouble);
        if self.ended.is_some_and(|ended| at.since(ended) <= GRACE + trouble) {
            self.took = Duration::ZERO;
        }
    }
}

impl History {
    /// Nothing has happened yet.
    pub(super) fn new(web: Arc<Web>, config: &Config) -> Self {
        let everyone = config.politeness.for_everyone();
        let limits = Limits {
            min_delay: everyone.min_delay,
            max_delay: everyone.max_delay,
            delay_factor: everyone.delay_factor,
            address_delay: everyone.per_address_min_delay,
            address_in_flight: usize::from(everyone.per_address_max_in_flight),
            robots_cache: config.robots.cache,
        };
        Self { web, limits, state: Arc::default(), seen: watch::Sender::default() }
    }

    /// A request comes in; its number.
    pub(super) fn begin(&self, url: &CrawlUrl, address: SocketAddr, at: Timestamp) -> usize {
        let mut state = self.lock();
        let state = &mut *state;
        let number = state.requests.len();
        state.trace.note(format_args!("{at} > {number} {url} {address}"));
        let key = url.host_key();
        let mut faults = Vec::new();
        let site = self.web.site(&key);
        if !site.is_some_and(|site| site.is_at(address.ip())) || address.port() != key.port() {
            faults.push("I6: not a public address of this site".to_owned());
        }
        let place = state.addresses.entry(address.ip()).or_default();
        self.judge_address(place, at, &mut faults);
        let view = state.sites.entry(key).or_default();
        self.judge_clock(view, at, &mut faults);
        if self.web.rules_of(url).is_none() {
            judge_rules(view, url.path_and_query(), at, &mut faults);
        }
        view.in_flight += 1;
        let place = state.addresses.entry(address.ip()).or_default();
        place.in_flight += 1;
        place.begun = Some(at);
        for fault in faults {
            state.violate(format_args!("{at} {url} at {address}: {fault}"));
        }
        state.open.push(number);
        state.requests.push(Request { url: url.clone(), address: address.ip(), at, end: None });
        self.seen.send_modify(|seen| seen.requests += 1);
        number
    }

    /// A request has ended; only the first end counts.
    pub(super) fn end(&self, number: usize, at: Timestamp, end: End, told: Told) {
        let mut state = self.lock();
        let state = &mut *state;
        let Some(place) = state.open.iter().position(|open| *open == number) else { return };
        state.open.remove(place);
        state.trace.note(format_args!("{at} < {number} {end}"));
        let request = &mut state.requests[number];
        request.end = Some((at, end.clone()));
        let request = request.clone();
        if let Some(view) = state.addresses.get_mut(&request.address) {
            view.in_flight = view.in_flight.saturating_sub(1);
            view.ended = Some(at);
        }
        let view = state.sites.entry(request.url.host_key()).or_default();
        view.in_flight = view.in_flight.saturating_sub(1);
        view.ended = Some(at);
        view.took = at.since(request.at);
        if let Some(until) = told.wait_until {
            view.wait_until.ask(at, until.max(view.wait_until.last()));
            self.seen.send_modify(|seen| seen.waits += 1);
        }
        if let Some(site) = self.web.rules_of(&request.url) {
            let view = state.sites.entry(site.key.clone()).or_default();
            let circles = site.robots == Robots::Loop;
            self.note_robots(view, (at, &end), told, circles);
        }
    }

    /// What came for a robots.txt.
    fn note_robots(&self, view: &mut SiteView, end: (Timestamp, &End), told: Told, circles: bool) {
        let (at, end) = end;
        let cache = self.limits.robots_cache;
        let good_for = told.max_age.unwrap_or(cache).max(Duration::from_secs(300)).min(cache);
        let status = match end {
            End::Answered { status } => *status,
            // Whoever died may not have heard of its own request: what was known stays.
            End::Crashed => return,
            End::HungUp | End::Refused | End::Died => 0,
        };
        if (300..400).contains(&status) {
            // Where it leads to is asked next; one that leads in a circle allows all in the end.
            view.hops += 1;
            if !circles || view.hops <= REDIRECTS_MAX {
                return;
            }
        }
        view.hops = 0;
        match (status, told.rules) {
            (_, Some(rules)) => {
                view.delay.ask(at, rules.delay());
                view.decision =
                    Decision { rules: Some(rules), is_copy: true, until: at + good_for };
            }
            (300..=428 | 430..=499, None) => {
                view.delay.ask(at, Duration::ZERO);
                let rules = Some(SiteRules::open());
                view.decision = Decision { rules, is_copy: false, until: at + good_for };
            }
            (_, None) => {
                if !view.decision.is_copy {
                    view.decision.rules = None;
                }
                view.decision.until = at + cache;
            }
        }
    }

    fn judge_address(&self, view: &AddressView, at: Timestamp, faults: &mut Vec<String>) {
        if view.in_flight >= self.limits.address_in_flight {
            faults.push(format!("I2: {} others at its address", view.in_flight));
        }
        let delay = self.limits.address_delay;
        let begun = view.begun.is_some_and(|begun| at < begun + delay);
        // An end in the same moment may not have been heard of yet.
        let ended = view.ended.is_some_and(|ended| ended < at && at < ended + delay);
        if begun || ended {
            faults.push(format!("I2: sooner than {delay:?} after another at its address"));
        }
    }

    fn judge_clock(&self, view: &SiteView, at: Timestamp, faults: &mut Vec<String>) {
        if view.in_flight > 0 {
            faults.push("I2: another request of this host is in flight".to_owned());
        }
        let until = view.wait_until.last();
        if at < until {
            faults.push(format!("I3: the site asked to wait until {until}"));
        }
        let Some(ended) = view.ended else { return };
        let ours = view.took.mul_f64(self.limits.delay_factor).min(self.limits.max_delay);
        let delay = self.limits.min_delay.max(view.delay.last()).max(ours);
        if at < ended + delay {
            faults.push(format!("I2: sooner than {delay:?} after the end of the last, at {ended}"));
        }
    }

    /// The whole crawler dies: its requests end, and what it was told in the last moments may not
    /// have become durable.
    pub(super) fn crash(&self, at: Timestamp, trouble_since: Timestamp) {
        let open = self.lock().open.clone();
        for number in open {
            self.end(number, at, End::Crashed, Told::default());
        }
        let mut state = self.lock();
        state.trace.note(format_args!("{at} crash"));
        state.sites.values_mut().for_each(|view| view.forget_since(at, trouble_since));
    }

    /// The node starts with a clock that is otherwise than before. What ends at a point in time,
    /// a wait or a robots decision, ends sooner where the clock was set forward, later where it
    /// was set back; the node cannot know.
    pub(super) fn clock_was_set(&self, at: Timestamp, before_ms: i64, after_ms: i64) {
        let by = Duration::from_millis(before_ms.abs_diff(after_ms));
        if after_ms < before_ms {
            self.lock()
                .sites
                .values_mut()
                .for_each(|view| view.decision.until = view.decision.until + by);
            return;
        }
        let forward = by;
        let sooner = |until: Timestamp| if until > at { until - forward } else { until };
        for view in self.lock().sites.values_mut() {
            view.wait_until.change(sooner);
        }
    }

    /// The actor of a shard dies with what it was told in the last moments.
    pub(super) fn shard_died(&self, at: Timestamp, trouble_since: Timestamp) {
        for view in self.lock().sites.values_mut() {
            view.forget_since(at, trouble_since);
        }
    }

    /// Something is wrong that is not about one request.
    pub(super) fn violate(&self, what: impl fmt::Display) {
        self.lock().violate(what);
    }

    /// A line of the trace.
    pub(super) fn note(&self, line: impl fmt::Display) {
        self.lock().trace.note(line);
    }

    /// How many requests came so far.
    pub(super) fn count(&self) -> usize {
        self.lock().requests.len()
    }

    /// What was seen so far.
    pub(super) fn seen(&self) -> Seen {
        *self.seen.borrow()
    }

    /// Returns when at least this was seen.
    pub(super) async fn until_seen(&self, wanted: Seen) {
        let enough = |seen: &Seen| seen.requests >= wanted.requests && seen.waits >= wanted.waits;
        // It holds the other end itself, so it is never closed.
        self.seen.subscribe().wait_for(enough).await.ok();
    }

    /// All requests.
    pub(super) fn requests(&self) -> Vec<Request> {
        self.lock().requests.clone()
    }

    /// The rules that a site served last; `None` where nothing of it may be asked for.
    pub(super) fn rules_served(&self, key: &HostKey) -> Option<SiteRules> {
        self.lock().sites.get(key).and_then(|view| view.decision.rules.clone())
    }

    /// Violations in words, with their number.
    pub(super) fn violations(&self) -> (u64, Vec<String>) {
        let state = self.lock();
        (state.violation_count, state.violations.clone())
    }

    /// The hash of the trace, and its last lines.
    pub(super) fn trace(&self) -> (u64, Vec<String>) {
        let state = self.lock();
        (state.trace.hash(), state.trace.last_lines())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// I2: no page without a decision, none that the rules refuse.
fn judge_rules(view: &SiteView, path: &str, at: Timestamp, faults: &mut Vec<String>) {
    match &view.decision.rules {
        None => faults.push("I2: robots.txt has not decided".to_owned()),
        Some(rules) if !rules.allows(path) => {
            faults.push("I2: the rules served last refuse it".to_owned());
        }
        Some(_) if at > view.decision.until + DECISION_SLACK => {
            faults.push(format!("I2: the robots decision ended at {}", view.decision.until));
        }
        Some(_) => {}
    }
}

impl State {
    fn violate(&mut self, what: impl fmt::Display) {
        self.violation_count += 1;
        self.trace.note(format_args!("violation {what}"));
        if self.violations.len() < VIOLATIONS_KEPT {
            self.violations.push(what.to_string());
        }
    }
}

impl fmt::Debug for History {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "History({} requests)", self.count())
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Answered { status } => write!(f, "{status}"),
            Self::HungUp => f.write_str("hung up"),
            Self::Refused => f.write_str("refused"),
            Self::Died => f.write_str("worker died"),
            Self::Crashed => f.write_str("crashed"),
        }
    }
}

#[cfg(test)]
mod tests;
