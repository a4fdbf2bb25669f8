//! What operators are shown of a host without an actor, from its row alone.

use super::HostPhase;
use super::shard::HostSummary;
use crate::policy::exclusion::{self, Exclusions};
use crate::types::{HostCounts, HostRecord, Reason, Timestamp};

impl HostSummary {
    /// A host at rest: parked, waiting for what holds it longest, or with nothing to do. `budget`
    /// is its requests a day.
    pub fn at_rest(record: &HostRecord, counts: HostCounts, budget: u64, now: Timestamp) -> Self {
        let (state, reason) = standing(record, counts, budget, now);
        Self {
            host_key: record.key.clone(),
            state,
            reason: reason.map(|reason| reason.to_string()),
            next_allowed_at: next_request(record, budget),
            in_flight: 0,
            queued: counts.queued,
            pages_today: record.requests_on(now.day()),
        }
    }
}

impl HostSummary {
    /// What holds the whole crawl holds every host that has something to do and is not stopped
    /// itself; what has no end of its own parks it.
    #[must_use]
    pub fn held_by(self, crawl: Option<&Reason>) -> Self {
        let waits = self.queued > 0 && matches!(self.state, HostPhase::Ready | HostPhase::Waiting);
        let Some(held) = crawl.filter(|_| waits) else { return self };
        let until = held.until();
        if until.is_some() && until <= self.next_allowed_at {
            return self;
        }
        let state = if until.is_some() { HostPhase::Waiting } else { HostPhase::Parked };
        let next_allowed_at = self.next_allowed_at.max(until);
        Self { state, reason: Some(held.to_string()), next_allowed_at, ..self }
    }

    /// R5: a host that is excluded whole waits for nothing else, also where nothing is queued: what
    /// is found is refused.
    #[must_use]
    pub fn excluded(self, exclusions: &Exclusions, now: Timestamp) -> Self {
        let shut = exclusions.whole_host(&self.host_key, now).map(exclusion::reason);
        match shut.filter(|_| self.state != HostPhase::InFlight) {
            Some(shut) => Self { state: HostPhase::Parked, reason: Some(shut.to_string()), ..self },
            None => self,
        }
    }
}

/// When a host may be asked at the earliest, by its row; one that never was asked has no such time.
pub fn next_request(record: &HostRecord, budget: u64) -> Option<Timestamp> {
    let until = Some(record.rests_until()).filter(|at| *at > Timestamp::EPOCH);
    until.max(record.used_up_until(budget))
}

fn standing(
    record: &HostRecord,
    counts: HostCounts,
    budget: u64,
    now: Timestamp,
) -> (HostPhase, Option<Reason>) {
    if let Some(reason) = record.stopped() {
        return (HostPhase::Parked, Some(reason));
    }
    if counts.queued == 0 {
        return (HostPhase::Idle, None);
    }
    match longest_wait(record, budget, now) {
        Some(reason) => (HostPhase::Waiting, Some(reason)),
        None => (HostPhase::Ready, None),
    }
}

/// What keeps it from being asked now, if anything does: the last to end, as its actor says it.
pub fn longest_wait(record: &HostRecord, budget: u64, now: Timestamp) -> Option<Reason> {
    let until = next_request(record, budget).filter(|until| *until > now)?;
    if until > record.rests_until() {
        return Some(Reason::DailyBudget { max: budget, until });
    }
    // Whatever clock its refusals have set, what is waited for is a robots.txt.
    let robots = |reason: &Reason| matches!(reason, Reason::RobotsUnreachable { .. });
    let hindered = record.hindered.as_ref();
    let decides = hindered.filter(|one| one.retry_at == until || robots(&one.reason));
    if let Some(hindrance) = decides {
        return Some(hindrance.reason.clone());
    }
    if record.site_wait_until == Some(until) {
        return Some(Reason::SiteAskedToWait { until });
    }
    Some(Reason::HostClock { until, set_by: record.set_by })
}

#[cfg(test)]
mod tests;
