//! How a shard stands, for operators and for the end of a crawl.

use std::collections::BTreeMap;
use std::time::Duration;

use super::hosts::REST_AFTER;
use super::state::{Resident, Shard};
use crate::policy::exclusion;
use crate::protocol::HostPhase;
use crate::protocol::at_rest::longest_wait;
use crate::protocol::shard::{ParkedHost, ShardView};
use crate::types::{HostCounts, HostId, HostKey, HostRecord, LeaseKind, Reason, Timestamp, tally};

/// Hosts that wait for long, shown at once.
const PARKED_SHOWN: usize = 100;

/// Hosts that wait for long, kept for operators.
const LONG_WAITS_MAX: usize = 100;
/// How long is long: what has not gone to rest is seen anyway, so between the two nothing is lost.
const LONG_WAIT: Duration = REST_AFTER;

/// Hosts by what they are doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Phases {
    ready: usize,
    waiting: usize,
    parked: usize,
    in_flight: usize,
}

impl Phases {
    /// What holds the whole crawl holds every host that has something to do.
    fn held_by(self, crawl: Option<&Reason>) -> Self {
        let Self { ready, waiting, parked, .. } = self;
        match crawl.map(|reason| reason.until().is_some()) {
            None => self,
            Some(true) => Self { ready: 0, waiting: waiting + ready, ..self },
            Some(false) => Self { ready: 0, waiting: 0, parked: parked + waiting + ready, ..self },
        }
    }
}

impl Resident {
    /// What the host is doing: a clock that has run out since its last step holds it no longer, and
    /// one that an operator or its failures stopped is parked, whatever else holds it.
    pub(super) fn phase_at(&self, now: Timestamp) -> HostPhase {
        let until = self.reason.as_ref().and_then(Reason::until);
        match self.phase {
            _ if self.record.stopped().is_some() => HostPhase::Parked,
            HostPhase::Waiting if until.is_some_and(|until| until <= now) => HostPhase::Ready,
            phase @ (HostPhase::Ready
            | HostPhase::InFlight
            | HostPhase::Waiting
            | HostPhase::Parked
            | HostPhase::Idle) => phase,
        }
    }
}

impl Shard {
    /// The state of the shard.
    pub(super) fn view(&self) -> ShardView {
        let now = self.now();
        let phases = self.phases(now).held_by(self.hosts_held(now).as_ref());
        let lag = self.ready.next().filter(|_| !self.paused).map(|at| now.since(at));
        let granting = if self.paused { None } else { self.next_request() };
        let pages = self.leases.values().filter(|granted| granted.lease.kind == LeaseKind::Page);
        ShardView {
            shard: self.id,
            epoch: self.store.epoch().0,
            paused: self.paused,
            degraded: self.commit.failure.iter().chain(&self.unreadable).cloned().collect(),
            urls: self.totals.counts,
            in_flight: tally(self.leases.len()),
            pages_in_flight: tally(pages.count()),
            hosts_known: self.totals.hosts,
            hosts_resident: tally(self.residents.len()),
            hosts_ready: tally(phases.ready),
            hosts_waiting: tally(phases.waiting),
            hosts_parked: tally(phases.parked),
            hosts_in_flight: tally(phases.in_flight),
            pages: self.totals.pages,
            outcomes: self.totals.outcomes.clone(),
            bytes: self.totals.bytes,
            next_wake: [granting, self.next_due].into_iter().flatten().min(),
            admitting: tally(self.admissions.len()),
            parsing: tally(self.parsing.len()) + u32::from(self.has_backlog()),
            being_parsed: tally(self.parsing.len()),
            unwritten: tally(self.commit.waiting()),
            offers: tally(self.offers.len() + self.waking.len()),
            lag_seconds: lag.map_or(0.0, |lag| lag.as_secs_f64()),
            repeated: self.totals.repeated,
            restarts: self.totals.restarts,
            violations: self.totals.violations,
            parked: self.waiting_for_long(),
            last_event: self.commit.last_event.0,
        }
    }

    /// Hosts by what they are doing, as a list of them shows it: those with an actor by their last
    /// step, those at rest by what they rest for.
    fn phases(&self, now: Timestamp) -> Phases {
        let mut phases = Phases::default();
        for resident in self.residents.values() {
            match resident.phase_at(now) {
                HostPhase::Ready => phases.ready += 1,
                HostPhase::Waiting => phases.waiting += 1,
                HostPhase::Parked => phases.parked += 1,
                HostPhase::InFlight => phases.in_flight += 1,
                HostPhase::Idle => {}
            }
        }
        for (at, host) in self.ready.in_order() {
            if self.residents.contains_key(&host) {
                continue;
            }
            if at <= now {
                phases.ready += 1;
            } else {
                phases.waiting += 1;
            }
        }
        let resting = self
            .long_waits
            .iter()
            .filter(|(host, parked)| parked.until.is_none() && self.ready.at(**host).is_none());
        phases.parked += resting.count();
        phases
    }

    /// The earliest time at which a host may be asked. A host with a request in flight asks for
    /// attention at the end of its lease too: that is for the timer, and no request (F5).
    fn next_request(&self) -> Option<Timestamp> {
        let mut pages: BTreeMap<HostId, u64> = BTreeMap::new();
        for granted in self.leases.values() {
            let page = u64::from(granted.lease.kind == LeaseKind::Page);
            *pages.entry(granted.host).or_default() += page;
        }
        let mut idle = self.ready.in_order().filter(|(_, host)| !pages.contains_key(host));
        let idle = idle.next().map(|(at, _)| at);
        let asked = pages.iter().filter_map(|(host, pages)| {
            let resident = self.residents.get(host)?;
            let record = &resident.record;
            let shut = self.shut_out(&record.key).is_some();
            let stopped = record.parked.is_some() || record.overrides.paused || shut;
            (resident.counts.queued > *pages && !stopped)
                .then(|| record.next_allowed_at.max(record.site_wait_until.unwrap_or_default()))
        });
        let first = asked.chain(idle).min()?;
        Some(first.max(self.held_until.unwrap_or(first)))
    }

    fn waiting_for_long(&self) -> Vec<ParkedHost> {
        let now = self.now();
        let resident = self.residents.values().filter_map(|host| {
            let waits = matches!(host.phase, HostPhase::Waiting | HostPhase::Parked);
            let queued = host.counts.queued > 0 && waits;
            // It goes to rest in a moment, and is shown then as it is now.
            let asked = asked_to_wait(host).is_some_and(|until| until > now);
            (queued || asked).then(|| parked(host, host.next_wake))
        });
        // What only looks as if it waited: its time has come since its last step.
        let resident = resident.filter(|host| host.until.is_none_or(|until| until > now));
        let waiting = self.long_waits.values().cloned().chain(resident).take(PARKED_SHOWN);
        waiting.map(|parked| self.shut(parked, now)).collect()
    }

    /// R5: an excluded host waits for nothing else.
    fn shut(&self, parked: ParkedHost, now: Timestamp) -> ParkedHost {
        match self.exclusions.whole_host(&parked.host_key, now) {
            Some(record) => {
                let (reason, until) = (exclusion::reason(record).to_string(), record.until);
                ParkedHost { reason, until, needs_operator: until.is_none(), ..parked }
            }
            None => parked,
        }
    }

    /// A host went to rest; one that will rest for long is shown. One whose queue is empty waits
    /// too, when a URL is to be tried again and the site asked to be left alone.
    pub(super) fn note_long_wait(
        &mut self,
        host: HostId,
        resident: &Resident,
        wake: Option<Timestamp>,
    ) {
        let parked = parked(resident, wake);
        let long = parked.until.is_some_and(|at| at > self.now() + LONG_WAIT);
        if long || (parked.until.is_none() && parked.queued > 0) {
            self.show_wait(host, parked);
        }
    }

    /// A host that was found waiting in the store is shown as one that went to rest here.
    pub(super) fn note_found_waiting(
        &mut self,
        host: HostId,
        record: &HostRecord,
        queued: u64,
        until: Timestamp,
    ) {
        if until > self.now() + LONG_WAIT {
            let mut visited = record.clone();
            visited.visit_at(self.opened_at);
            let longest = || longest_wait(&visited, self.budget_of(record), self.now());
            let reason = visited.stopped().or_else(longest);
            self.show_wait(host, of_reason(&record.key, reason.as_ref(), Some(until), queued));
        }
    }

    /// More was admitted for a host at rest: where it is shown, it is shown with all it has.
    pub(super) fn note_counts(&mut self, host: HostId, counts: HostCounts) {
        if let Some(parked) = self.long_waits.get_mut(&host) {
            parked.queued = counts.queued;
        }
    }

    pub(super) fn show_wait(&mut self, host: HostId, parked: ParkedHost) {
        if self.long_waits.len() < LONG_WAITS_MAX {
            self.long_waits.insert(host, parked);
        }
    }
}

/// Until when the site asked to be left alone, where all that a host has is to be tried again.
fn asked_to_wait(resident: &Resident) -> Option<Timestamp> {
    let HostCounts { queued, deferred, .. } = resident.counts;
    resident.record.site_wait_until.filter(|_| queued == 0 && deferred > 0)
}

/// How a host that waits is shown.
fn parked(resident: &Resident, wake: Option<Timestamp>) -> ParkedHost {
    let asked = asked_to_wait(resident);
    let why = asked.map(|until| Reason::SiteAskedToWait { until });
    let reason = resident.reason.clone().or(why);
    // What is above the host, its domain or a day's budget, may hold it longer than its own clock.
    let held = reason.as_ref().and_then(Reason::until);
    let wake = wake.map(|at| held.map_or(at, |until| at.max(until)));
    let (key, queued) = (&resident.record.key, resident.counts.queued);
    of_reason(key, reason.as_ref(), wake.or(asked), queued)
}

/// A host that waits for this.
pub(super) fn of_reason(
    key: &HostKey,
    reason: Option<&Reason>,
    until: Option<Timestamp>,
    queued: u64,
) -> ParkedHost {
    ParkedHost {
        host_key: key.clone(),
        reason: reason.map_or_else(String::new, ToString::to_string),
        until,
        queued,
        needs_operator: reason.is_some_and(Reason::needs_operator),
    }
}
