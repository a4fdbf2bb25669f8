//! What operators are shown of a host without an actor, from its row alone.

use super::HostPhase;
use super::shard::HostSummary;
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
    if let Some(hindrance) = record.hindered.as_ref().filter(|one| one.retry_at == until) {
        return Some(hindrance.reason.clone());
    }
    if record.site_wait_until == Some(until) {
        return Some(Reason::SiteAskedToWait { until });
    }
    if record.next_allowed_at == until {
        return Some(Reason::HostClock { until, set_by: record.set_by });
    }
    Some(Reason::DailyBudget { max: budget, until })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{DelaySource, Hindrance, HostKey};

    fn now() -> Timestamp {
        Timestamp::from_secs(1_800_000_000)
    }

    fn later(seconds: i64) -> Timestamp {
        Timestamp::from_secs(1_800_000_000 + seconds)
    }

    fn hindered(record: &mut HostRecord, reason: Reason, at: i64) {
        let hindrance = Hindrance { retry_at: later(at), tries: 1, reason };
        record.hindered = Some(Box::new(hindrance));
    }

    fn unreachable() -> Reason {
        Reason::RobotsUnreachable { since: now(), why: "status 503".to_owned() }
    }

    fn used_up(record: &mut HostRecord) {
        (record.next_allowed_at, record.budget_day) = (now(), now().day());
        record.requests_today = 100;
    }

    /// A name, what happened to a new host, its state, its next time in seconds, its reason.
    struct Case(&'static str, fn(&mut HostRecord), HostPhase, Option<i64>, Option<Reason>);

    #[test]
    fn a_host_at_rest_says_what_holds_it_longest() {
        use HostPhase::{Parked, Ready, Waiting};
        let clock = Reason::HostClock { until: later(60), set_by: DelaySource::MinDelay };
        let asked = Reason::SiteAskedToWait { until: later(90) };
        let midnight = now().next_day();
        let budget = Reason::DailyBudget { max: 100, until: midnight };
        let rest = i64::try_from(midnight.since(now()).as_secs()).unwrap();
        let dead = Reason::HostParked { failures: 3 };
        let cases = [
            Case("never asked", |_| {}, Ready, None, None),
            Case("its time has come", |r| r.next_allowed_at = later(-1), Ready, Some(-1), None),
            Case("its clock", |r| r.next_allowed_at = later(60), Waiting, Some(60), Some(clock)),
            Case(
                "asked to wait",
                |r| (r.next_allowed_at, r.site_wait_until) = (later(60), Some(later(90))),
                Waiting,
                Some(90),
                Some(asked),
            ),
            Case(
                "our side",
                |r| hindered(r, Reason::WorkerDied, 60),
                Waiting,
                Some(60),
                Some(Reason::WorkerDied),
            ),
            Case(
                "no robots.txt",
                |r| hindered(r, unreachable(), 60),
                Waiting,
                Some(60),
                Some(unreachable()),
            ),
            Case("robots.txt is due", |r| hindered(r, unreachable(), -5), Ready, Some(-5), None),
            Case("budget", used_up, Waiting, Some(rest), Some(budget)),
            Case("paused", |r| r.overrides.paused = true, Parked, None, Some(Reason::Paused)),
            Case(
                "failed and paused",
                |r| {
                    r.overrides.paused = true;
                    r.parked = Some(Reason::HostParked { failures: 3 });
                },
                Parked,
                None,
                Some(dead),
            ),
        ];
        let counts = HostCounts { queued: 1, ..HostCounts::default() };
        for Case(name, change, state, next, reason) in cases {
            let mut record = HostRecord::new(HostKey::parse("https://a.test").unwrap());
            change(&mut record);
            let told = HostSummary::at_rest(&record, counts, 100, now());
            let reason = reason.map(|reason| reason.to_string());
            let wanted = (state, next.map(later), reason);
            assert_eq!((told.state, told.next_allowed_at, told.reason), wanted, "{name}");
        }
    }

    #[test]
    fn yesterdays_requests_are_not_todays_and_nothing_queued_is_idle() {
        let mut record = HostRecord::new(HostKey::parse("https://a.test").unwrap());
        (record.budget_day, record.requests_today) = (now().day() - 1, 7);
        let told = HostSummary::at_rest(&record, HostCounts::default(), 100, now());
        assert_eq!((told.state, told.pages_today, told.reason), (HostPhase::Idle, 0, None));
    }
}
