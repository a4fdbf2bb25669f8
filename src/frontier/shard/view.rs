//! How a shard stands, for operators and for the end of a crawl.

use std::time::Duration;

use super::hosts::REST_AFTER;
use super::state::{Resident, Shard};
use crate::protocol::HostPhase;
use crate::protocol::shard::{ParkedHost, ShardView};
use crate::types::{HostId, HostRecord, Reason, Timestamp, tally};

/// Hosts that wait for long, shown at once.
const PARKED_SHOWN: usize = 100;

/// Hosts that wait for long, kept for operators.
const LONG_WAITS_MAX: usize = 100;
/// How long is long: what has not gone to rest is seen anyway, so between the two nothing is lost.
const LONG_WAIT: Duration = REST_AFTER;

impl Shard {
    /// The state of the shard.
    pub(super) fn view(&self) -> ShardView {
        let now = self.now();
        let parked = self.residents.values().filter(|host| host.phase == HostPhase::Parked).count();
        let ready = self.ready.due(now);
        let lag = self.ready.next().filter(|_| !self.paused).map(|at| now.since(at));
        let granting = if self.paused { None } else { self.next_grant() };
        ShardView {
            shard: self.id,
            epoch: self.store.epoch().0,
            paused: self.paused,
            degraded: self.commit.failure.iter().chain(&self.unreadable).cloned().collect(),
            urls: self.totals.counts,
            in_flight: tally(self.leases.len()),
            hosts_known: self.totals.hosts,
            hosts_resident: tally(self.residents.len()),
            hosts_ready: tally(ready),
            hosts_waiting: tally(self.ready.len() - ready),
            hosts_parked: tally(parked),
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

    fn waiting_for_long(&self) -> Vec<ParkedHost> {
        let resident = self.residents.values().filter(|host| {
            host.counts.queued > 0 && matches!(host.phase, HostPhase::Waiting | HostPhase::Parked)
        });
        let resident = resident.map(|host| ParkedHost {
            host_key: host.record.key.clone(),
            reason: host.reason.as_ref().map_or_else(String::new, ToString::to_string),
            until: host.next_wake,
            queued: host.counts.queued,
        });
        self.long_waits.values().cloned().chain(resident).take(PARKED_SHOWN).collect()
    }

    /// A host went to rest; one that will rest for long is shown.
    pub(super) fn note_long_wait(
        &mut self,
        host: HostId,
        resident: &Resident,
        wake: Option<Timestamp>,
    ) {
        let long = wake.is_some_and(|at| at > self.now() + LONG_WAIT)
            || (wake.is_none() && resident.counts.queued > 0);
        if long {
            let reason = resident.reason.as_ref().map_or_else(String::new, ToString::to_string);
            let host_key = resident.record.key.clone();
            let queued = resident.counts.queued;
            self.show_wait(host, ParkedHost { host_key, reason, until: wake, queued });
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
            let reason = match record.site_wait_until {
                Some(asked) if asked >= until => Reason::SiteAskedToWait { until: asked },
                _ => Reason::HostClock { until, set_by: record.set_by },
            };
            let (host_key, reason) = (record.key.clone(), reason.to_string());
            self.show_wait(host, ParkedHost { host_key, reason, until: Some(until), queued });
        }
    }

    fn show_wait(&mut self, host: HostId, parked: ParkedHost) {
        if self.long_waits.len() < LONG_WAITS_MAX {
            self.long_waits.insert(host, parked);
        }
    }
}
