//! A1: hosts whose actor failed: started again from snapshot and row, told again what went with
//! their mailbox, parked when it happens again and again.

use std::time::Duration;

use ractor::{ActorId, SpawnErr};
use tokio::task::JoinHandle;
use tracing::warn;

use super::state::{Shard, Waking};
use crate::protocol::{HostMsg, ShardMsg};
use crate::telemetry::HostParked;
use crate::types::{HostId, Reason};

/// An actor that fails this often in a row has its host parked (A1).
const FAILURES_MAX: u32 = 3;

/// The start of an actor that is under way.
pub(super) type Starting = JoinHandle<Result<JoinHandle<()>, SpawnErr>>;

impl Shard {
    /// ractor tells nobody of an actor that fails before it is started.
    pub(super) fn watch_start(&self, actor: ActorId, starting: Starting) {
        let me = self.me.clone();
        tokio::spawn(async move {
            let why = match starting.await {
                Ok(Ok(_)) => return,
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            me.send_message(ShardMsg::NotStarted { actor, why }).ok();
        });
    }

    /// A1: a HostActor failed. It comes back from its snapshot and row; one that fails again and
    /// again is parked.
    pub(super) fn host_failed(&mut self, actor: ActorId, error: &str) {
        let Some(host) = self.actors.remove(&actor) else { return };
        let Some(resident) = self.residents.remove(&host) else { return };
        let failures = self.failures.entry(host).or_default();
        *failures += 1;
        let failures = *failures;
        warn!(host = %resident.record.key, error, failures, "host actor failed, restarted");
        if failures == FAILURES_MAX {
            HostParked { host: &resident.record.key, failures }.emit(&self.metrics);
        }
        self.totals.restarts += 1;
        self.admissions.note_retired(host, &resident.record, resident.counts);
        if let Some(lease) = resident.offer {
            self.offers.remove(&lease);
            self.quota.lock().give_back();
        }
        self.ready.set(host, None);
        if failures > 1 {
            // It may be the snapshot that it fails over; the row is enough.
            self.world.snapshots.remove(host);
        }
        let messages = self.told_again(host, failures, resident.retiring.unwrap_or_default());
        let wakes_sleepers = resident.sleepers_after.is_some() || resident.sleepers_again;
        self.waking.insert(host, Waking { messages, wakes_sleepers, ..Waking::default() });
        let times = failures.saturating_sub(FAILURES_MAX).min(10);
        let wait = if times == 0 { Duration::ZERO } else { Duration::from_secs(1 << times) };
        self.read_host_after(host, wait);
    }

    /// What a host that failed has to hear once more: its mailbox went with it.
    fn told_again(&self, host: HostId, failures: u32, held: Vec<HostMsg>) -> Vec<HostMsg> {
        let mut messages = Vec::new();
        if failures >= FAILURES_MAX {
            messages.push(HostMsg::Park(Reason::HostParked { failures }));
        } else {
            // One that it may have failed over comes back when its lease runs out.
            let ends = self.ends.iter().filter(|(lease, _)| {
                self.leases.get(lease).is_some_and(|granted| granted.host == host)
            });
            messages.extend(ends.map(|(_, completion)| HostMsg::Ended(completion.clone())));
        }
        let is_new = |msg: &HostMsg| !matches!(msg, HostMsg::Ended(_) | HostMsg::Order(_));
        messages.extend(held.into_iter().filter(is_new));
        let orders = self.ordered.iter().filter(|(of, ..)| *of == host);
        messages.extend(orders.map(|(_, overrides, _)| HostMsg::Order(overrides.clone())));
        messages
    }
}
