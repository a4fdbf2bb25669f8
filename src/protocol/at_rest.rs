//! What operators are shown of a host without an actor, from its row alone.

use super::HostPhase;
use super::shard::HostSummary;
use crate::types::{HostCounts, HostRecord, Reason, Timestamp};

impl HostSummary {
    /// A host at rest: parked, waiting for its clock, or with nothing to do.
    pub fn at_rest(record: &HostRecord, counts: HostCounts, now: Timestamp) -> Self {
        let (state, reason) = standing(record, counts, now);
        Self {
            host_key: record.key.clone(),
            state,
            reason: reason.map(|reason| reason.to_string()),
            // One that never was asked has no such time.
            next_allowed_at: Some(record.rests_until()).filter(|at| *at > Timestamp::EPOCH),
            in_flight: 0,
            queued: counts.queued,
            pages_today: if record.budget_day == now.day() { record.requests_today } else { 0 },
        }
    }
}

fn standing(
    record: &HostRecord,
    counts: HostCounts,
    now: Timestamp,
) -> (HostPhase, Option<Reason>) {
    if record.overrides.paused {
        return (HostPhase::Parked, Some(Reason::Paused));
    }
    if let Some(reason) = &record.parked {
        return (HostPhase::Parked, Some(reason.clone()));
    }
    if counts.queued == 0 {
        return (HostPhase::Idle, None);
    }
    if let Some(hindrance) = record.hindered.as_ref().filter(|one| one.retry_at > now) {
        return (HostPhase::Waiting, Some(hindrance.reason.clone()));
    }
    if let Some(until) = record.site_wait_until.filter(|until| *until > now) {
        return (HostPhase::Waiting, Some(Reason::SiteAskedToWait { until }));
    }
    let until = record.next_allowed_at;
    if until > now {
        return (HostPhase::Waiting, Some(Reason::HostClock { until, set_by: record.set_by }));
    }
    (HostPhase::Ready, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{Hindrance, HostKey};

    #[test]
    fn a_host_at_rest_says_what_it_waits_for() {
        let now = Timestamp::from_secs(1_800_000_000);
        let later = Timestamp::from_secs(1_800_000_060);
        let counts = HostCounts { queued: 1, ..HostCounts::default() };
        let new = HostRecord::new(HostKey::parse("https://a.test").unwrap());
        let told = |record: &HostRecord| HostSummary::at_rest(record, counts, now);
        assert_eq!((told(&new).state, told(&new).next_allowed_at), (HostPhase::Ready, None));
        let hindrance = Hindrance { retry_at: later, tries: 1, reason: Reason::WorkerDied };
        let hindered = HostRecord { hindered: Some(Box::new(hindrance)), ..new.clone() };
        assert_eq!(told(&hindered).state, HostPhase::Waiting);
        assert_eq!(told(&hindered).next_allowed_at, Some(later));
        assert_eq!(told(&hindered).reason, Some(Reason::WorkerDied.to_string()));
        let mut paused = hindered;
        paused.overrides.paused = true;
        assert_eq!(told(&paused).reason, Some(Reason::Paused.to_string()));
        assert_eq!(told(&paused).state, HostPhase::Parked);
    }
}
