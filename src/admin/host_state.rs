//! One host as `GET /v1/hosts/{host_key}` shows it; durations in seconds.

use std::net::IpAddr;
use std::time::Duration;

use serde::Serialize;

use crate::protocol::HostPhase;
use crate::protocol::host::RobotsView;
use crate::protocol::shard::HostDetail;
use crate::types::{DelaySource, HostCounts, HostKey, HostOverrides, ShardId, Timestamp};

/// The state of a host: its actor's own, with what its shard knows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostState {
    /// The host.
    pub host_key: HostKey,
    /// What it is doing.
    pub state: HostPhase,
    /// Why it waits, in one sentence.
    pub reason: Option<String>,
    /// I2: no request before.
    pub next_allowed_at: Option<Timestamp>,
    /// Requests in flight.
    pub in_flight: u32,
    /// URLs queued.
    pub queued: u64,
    /// Requests today.
    pub pages_today: u64,
    /// Rules.
    pub robots: RobotsView,
    /// The delay in force.
    pub delay_seconds: f64,
    /// What set it.
    pub delay_set_by: DelaySource,
    /// Failures in a row and what they cost.
    pub backoff: BackoffView,
    /// What an operator set.
    pub allowance: AllowanceState,
    /// Requests a day.
    pub budget: u64,
    /// Entries of its queue in memory.
    pub window: u32,
    /// The addresses its name resolves to, where known.
    pub address: Vec<IpAddr>,
    /// Its shard.
    pub shard: ShardId,
    /// The owner's term.
    pub epoch: u32,
    /// Restarts of its actor.
    pub restarts: u32,
    /// An actor is resident.
    pub resident: bool,
    /// All its counts.
    pub urls: HostCounts,
}

/// F7: failures in a row and what they cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BackoffView {
    /// 429 and 503 in a row.
    pub refusals: u16,
    /// Connection failures in a row.
    pub failures: u16,
    /// How much slower than configured.
    pub slowdown: f32,
}

/// F11: what an operator set; null where the configuration holds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AllowanceState {
    /// Nothing is granted.
    pub paused: bool,
    /// Seconds.
    pub min_delay: Option<f64>,
    /// Requests at once.
    pub max_in_flight: Option<u16>,
    /// Requests a day.
    pub daily_pages: Option<u64>,
    /// Raised by every change.
    pub version: u32,
}

impl From<&HostOverrides> for AllowanceState {
    fn from(set: &HostOverrides) -> Self {
        Self {
            paused: set.paused,
            min_delay: set.min_delay.as_ref().map(Duration::as_secs_f64),
            max_in_flight: set.max_in_flight,
            daily_pages: set.daily_pages,
            version: set.version,
        }
    }
}

impl From<HostDetail> for HostState {
    fn from(detail: HostDetail) -> Self {
        let view = detail.view;
        Self {
            allowance: AllowanceState::from(&view.allowance),
            backoff: BackoffView {
                refusals: view.backoff.refusals,
                failures: view.backoff.failures,
                slowdown: view.backoff.slowdown,
            },
            host_key: view.host_key,
            state: view.state,
            reason: view.reason,
            next_allowed_at: view.next_allowed_at,
            in_flight: view.in_flight,
            queued: detail.queued,
            pages_today: view.pages_today,
            robots: view.robots,
            delay_seconds: view.delay_seconds.as_secs_f64(),
            delay_set_by: view.delay_set_by,
            budget: view.budget,
            window: view.window,
            address: detail.address,
            shard: detail.shard,
            epoch: view.epoch,
            restarts: detail.restarts,
            resident: detail.resident,
            urls: detail.urls,
        }
    }
}
