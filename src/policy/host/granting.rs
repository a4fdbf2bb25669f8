//! Offers: which request comes next, or why none does (F2, F5, I2).

use std::time::Duration;

use super::completing::failed_visit;
use super::effects::{Effects, Errand, Grant, OfferAnswer};
use super::machine::{ERRANDS_MAX, HostMachine, Reading, RobotsAsking};
use crate::policy::change::Change;
use crate::policy::exclusion;
use crate::policy::invariants;
use crate::policy::politeness::{Delay, Politeness, delay_after};
use crate::policy::robots::{Decision, LongUnreachable, RobotsState};
use crate::policy::{backoff, normalise};
use crate::types::{
    Completion, CrawlUrl, HostKey, Lease, LeaseId, LeaseKind, Moment, Outcome, QueueEntry, Reason,
    Timestamp, UrlId, UrlStatus, UrlVersion, VisitRecord,
};

impl HostMachine {
    /// Answers the offer, or asks for rows of the queue and answers when they have come.
    pub(super) fn answer_offer(&mut self, now: Moment, effects: &mut Effects) {
        let Some(lease) = self.offered else { return };
        if let Some(reason) = self.refusal(now) {
            return self.answer(OfferAnswer::Withheld(Some(reason)), effects);
        }
        if let Some(errand) = self.errands.front().cloned() {
            // It leaves the queue after its time was set: it does not wait for our own robots.txt.
            self.grant_robots(now, lease, errand, effects);
            self.errands.pop_front();
            return;
        }
        if self.go_on_asking(now, lease, effects) {
            return;
        }
        if self.window.is_empty() && !self.window.is_exhausted() {
            // Read first: a host with nothing queued is not even asked for its robots.txt.
            return self.read_queue(effects);
        }
        if self.ask_for_robots(now, lease, effects) {
            return;
        }
        match self.next_page(now, effects) {
            Next::Page(entry) if self.needs_reservations(self.departure(now)) => {
                self.window.put_back(*entry);
                self.ask_for_reservations(now, lease, effects);
            }
            Next::Page(entry) => {
                self.grant(now, lease, Asked { kind: LeaseKind::Page, entry: *entry }, effects);
            }
            Next::Wait(reason) => self.answer(OfferAnswer::Withheld(Some(reason)), effects),
            Next::Load => self.read_queue(effects),
            Next::Nothing => self.answer(OfferAnswer::Withheld(None), effects),
        }
    }

    /// Why nothing at all may be granted now.
    fn refusal(&self, now: Moment) -> Option<Reason> {
        let soon = now.at + self.settings.ahead;
        let record = &self.record;
        if let Some(reason) = &record.parked {
            return Some(reason.clone());
        }
        if record.overrides.paused {
            return Some(Reason::Paused);
        }
        if self.in_flight.len() >= self.allowed_in_flight() {
            return Some(Reason::InFlight);
        }
        self.waits_beyond(soon)
    }

    /// What keeps the host from being asked by `at`, if anything does: the last to end.
    pub fn waits_beyond(&self, at: Timestamp) -> Option<Reason> {
        let until = self.ready_at();
        if until <= at {
            return None;
        }
        let hindered = self.hindrance().filter(|hindered| hindered.retry_at == until);
        if let Some(hindered) = hindered {
            return Some(hindered.reason.clone());
        }
        let asked = self.record.site_wait_until == Some(until);
        let clock = self.record.next_allowed_at == until;
        let robots = self.robots_wait() == Some(until);
        if !(asked || clock || robots) {
            return Some(Reason::DailyBudget { max: self.daily_budget(), until });
        }
        // Whatever clock its refusals have set, what is waited for is a robots.txt.
        if let Some(reason) = self.robots.out_of_reach().filter(|_| self.needs_robots(until)) {
            return Some(reason);
        }
        if asked {
            return Some(Reason::SiteAskedToWait { until });
        }
        Some(Reason::HostClock { until, set_by: self.record.set_by })
    }

    /// R2: whether an unreachable robots.txt still stands in the way then.
    fn needs_robots(&self, at: Timestamp) -> bool {
        let RobotsState::Unreachable { since, .. } = &self.robots else { return false };
        // An errand for another host does not wait for it.
        self.errands.is_empty()
            && match self.settings.robots.long_unreachable {
                LongUnreachable::AllowAfter(span) => at < *since + span,
                LongUnreachable::Refuse => true,
            }
    }

    /// When a request granted now would be sent.
    fn departure(&self, now: Moment) -> Timestamp {
        self.ready_at().max(now.at)
    }

    /// Asks for rows of the queue; the offer waits for them.
    fn read_queue(&mut self, effects: &mut Effects) {
        if self.reading.is_some() {
            return;
        }
        if let Some(request) = self.window.wants(self.settings.window) {
            let granted = self.in_flight.values().map(|lease| lease.entry.id).collect();
            self.reading = Some(Reading { request: request.clone(), granted, late: Vec::new() });
            effects.load = Some(request);
        }
    }

    /// A robots.txt exchange goes on: its next hop, or the wait for its end. True when it does.
    fn go_on_asking(&mut self, now: Moment, lease: LeaseId, effects: &mut Effects) -> bool {
        match std::mem::replace(&mut self.asking, RobotsAsking::No) {
            RobotsAsking::Hop(errand) => {
                self.grant_robots(now, lease, errand, effects);
                return true;
            }
            asking @ (RobotsAsking::InFlight | RobotsAsking::Away { .. }) => {
                self.asking = asking;
                self.answer(OfferAnswer::Withheld(Some(Reason::RobotsNeeded)), effects);
                return true;
            }
            RobotsAsking::No => {}
        }
        false
    }

    /// R2: robots.txt comes first. True when it is asked for here.
    fn ask_for_robots(&mut self, now: Moment, lease: LeaseId, effects: &mut Effects) -> bool {
        let departure = self.departure(now);
        if self.robots_unused && self.robots.is_due(departure) {
            // Its turn came late, as on a crawl with more hosts than it can visit in the time that
            // answers last: asked again each time, no page would ever go.
            self.robots.hold_for(departure);
        }
        let needed = !self.window.is_exhausted() && self.robots.is_due(departure);
        if needed && let Ok(url) = CrawlUrl::parse(&format!("{}/robots.txt", self.record.key)) {
            let errand = Errand { for_host: self.record.key.clone(), url, hops: 0 };
            self.grant_robots(now, lease, errand, effects);
            return true;
        }
        false
    }

    pub(super) fn grant_robots(
        &mut self,
        now: Moment,
        lease: LeaseId,
        errand: Errand,
        effects: &mut Effects,
    ) {
        let entry = self.robots_entry(errand.url);
        let kind = LeaseKind::Robots { for_host: errand.for_host, hops: errand.hops };
        self.grant(now, lease, Asked { kind, entry }, effects);
        if self.in_flight.get(&lease).is_some_and(|lease| self.is_own_robots(lease)) {
            self.asking = RobotsAsking::InFlight;
        }
    }

    /// robots.txt is no URL of the queue: version 0, and no row of its own.
    fn robots_entry(&self, url: CrawlUrl) -> QueueEntry {
        let hash = normalise::url_hash(&normalise::recognised(&url));
        QueueEntry {
            id: UrlId { host: self.id, hash, disambiguator: 0 },
            version: UrlVersion(0),
            url,
            depth: 0,
            band: 0,
            order: 0,
            attempts: 0,
            redirects: 0,
            validators: None,
            discovered_from: None,
        }
    }

    /// The next URL that the rules allow; those that they or an exclusion refuse go to sleep on the
    /// way (R2, R5).
    fn next_page(&mut self, now: Moment, effects: &mut Effects) -> Next {
        let departure = self.departure(now);
        while let Some(mut entry) = self.window.pop(&self.settings.bands) {
            if entry.validators.is_some() && self.exclusions.forgets(&entry.url) {
                // R5: what they stand for may be gone, so a 304 would say nothing.
                entry.validators = None;
            }
            if let Some(found) = self.exclusions.find(&entry.url, now.at) {
                self.put_to_sleep(entry, exclusion::reason(found), effects);
                continue;
            }
            let path = entry.url.path_and_query();
            match self.robots.decide(departure, path, &self.settings.robots) {
                Decision::Allow { .. } => return Next::Page(Box::new(entry)),
                Decision::Refuse(reason) => self.put_to_sleep(entry, reason, effects),
                Decision::NeedsFetch => {
                    self.window.put_back(entry);
                    return Next::Wait(Reason::RobotsNeeded);
                }
                Decision::Wait { reason, .. } => {
                    self.window.put_back(entry);
                    return Next::Wait(reason);
                }
            }
        }
        if self.window.is_exhausted() { Next::Nothing } else { Next::Load }
    }

    pub(super) fn put_to_sleep(&self, entry: QueueEntry, reason: Reason, effects: &mut Effects) {
        let excluded = matches!(reason, Reason::Excluded { .. });
        let visit = VisitRecord {
            version: entry.version,
            status: UrlStatus::Sleeping,
            outcome: (!excluded).then_some(Outcome::RobotsRefused),
            status_code: None,
            attempts: entry.attempts,
            last_fetched_at: None,
            next_fetch_at: None,
            digest: None,
            archive: None,
            validators: entry.validators.clone(),
            reason: Some(reason.clone()),
        };
        effects.changes.push(failed_visit(entry.id, visit));
        effects.changes.push(Change::dequeue(&entry));
        effects.changes.push(Change::Sleep { entry: Box::new(entry), reason });
        effects.dequeued += 1;
        effects.slept += 1;
    }

    /// H-3: the grant, the clock, the allowance and the day's count move in this one step.
    fn grant(&mut self, now: Moment, id: LeaseId, asked: Asked, effects: &mut Effects) {
        let Asked { kind, entry } = asked;
        let not_before = self.departure(now);
        debug_assert!(
            invariants::may_depart(
                not_before,
                &self.record,
                self.in_flight.len(),
                self.allowed_in_flight()
            ),
            "H-2: a grant before its time or above the allowance"
        );
        let lease = Lease {
            id,
            kind,
            host: self.record.key.clone(),
            entry,
            epoch: self.epoch,
            granted_at: now.at,
            not_before,
            expires_at: not_before + self.settings.lease,
            address: None,
        };
        let set_by = self.record.set_by;
        let delay = self.delay_of_grant(self.politeness(), now);
        self.record.next_allowed_at = not_before + delay.wait;
        self.record.set_by = delay.set_by;
        self.record.delay = delay.wait;
        if self.record.budget_day != not_before.day() {
            self.record.budget_day = not_before.day();
            self.record.requests_today = 0;
        }
        self.record.requests_today += 1;
        if lease.kind == LeaseKind::Page {
            (self.robots_unused, self.reservations_unused) = (false, false);
        }
        self.in_flight.insert(id, Box::new(lease.clone()));
        let policy = self.policy ^ u64::from(self.record.overrides.version);
        effects.grant = Some(Grant { lease, set_by, policy });
        self.answer(OfferAnswer::Granted, effects);
    }

    /// The delay after a request of which only the beginning is known.
    fn delay_of_grant(&self, politeness: Politeness, now: Moment) -> Delay {
        let pace = backoff::pace(&self.record.backoff);
        delay_after(&politeness, self.robots.crawl_delay(), Duration::ZERO, pace, now)
    }

    /// The same without jitter, which only adds: what a crash must not make shorter.
    pub(super) fn least_delay(&self) -> Duration {
        let politeness = Politeness { jitter: 0.0, ..self.politeness() };
        self.delay_of_grant(politeness, Moment::new(Timestamp::EPOCH, 0)).wait
    }

    /// The politeness in force: the settings with the operator's overrides.
    pub(super) fn politeness(&self) -> Politeness {
        let mut politeness = self.settings.politeness;
        if let Some(min_delay) = self.record.overrides.min_delay {
            politeness.min_delay = min_delay;
        }
        politeness
    }

    /// H2: another host's robots.txt redirects here; it is fetched on this host's clock.
    pub(super) fn errand_came(&mut self, now: Moment, errand: Errand, effects: &mut Effects) {
        if self.errands.len() < ERRANDS_MAX {
            self.errands.push_back(errand);
        } else {
            let for_host = errand.for_host.clone();
            let completion = self.refused_errand(now, errand);
            effects.errand_ended = Some((for_host, Box::new(completion)));
        }
    }

    /// The host that sent it asks again later.
    fn refused_errand(&self, now: Moment, errand: Errand) -> Completion {
        let kind = LeaseKind::Robots { for_host: errand.for_host, hops: errand.hops };
        let entry = self.robots_entry(errand.url);
        let lease = Lease {
            id: LeaseId(0),
            kind,
            host: self.record.key.clone(),
            entry,
            epoch: self.epoch,
            granted_at: now.at,
            not_before: now.at,
            expires_at: now.at,
            address: None,
        };
        Completion::failed(&lease, now.at, Outcome::Cancelled, Reason::InFlight)
    }

    /// The target of a robots.txt redirect: on this host the next lease, else another's errand.
    pub(super) fn follow_robots(&mut self, now: Moment, errand: Errand, effects: &mut Effects) {
        let target: HostKey = errand.url.host_key();
        if target == self.record.key {
            self.asking = RobotsAsking::Hop(errand);
        } else {
            let deadline = now.at + self.settings.lease;
            self.asking = RobotsAsking::Away { hops: errand.hops, deadline };
            effects.errand = Some(errand);
        }
    }
}

/// What a lease is for.
struct Asked {
    kind: LeaseKind,
    entry: QueueEntry,
}

enum Next {
    Page(Box<QueueEntry>),
    Wait(Reason),
    Load,
    Nothing,
}
