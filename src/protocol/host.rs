//! To a HostActor: what its shard tells it. Nobody else sends to a host.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::Answer;
use crate::policy::exclusion::Exclusions;
use crate::policy::host::{Errand, HostSettings};
use crate::policy::window::{WindowRequest, WindowRows};
use crate::types::{
    BackoffState, Completion, DelaySource, HostCounts, HostKey, HostOverrides, LeaseId, QueueEntry,
    Reason, Timestamp,
};

/// The mailbox of a HostActor; bounded by the credit of its shard.
#[derive(Debug)]
pub enum HostMsg {
    /// Credit for one grant under this lease id.
    Offer(LeaseId),
    /// Entries put into its queue while it is resident, once per batch.
    Admitted(Vec<QueueEntry>),
    /// Rows of its queue that it asked for.
    WindowLoaded(Box<WindowRequest>, Box<WindowRows>),
    /// The clock of its address moved a lease of its to a later time.
    Moved {
        /// Which.
        lease: LeaseId,
        /// Never sent before.
        not_before: Timestamp,
        /// Comes back then.
        expires_at: Timestamp,
    },
    /// An exchange of one of its leases ended.
    Ended(Box<Completion>),
    /// Another host's robots.txt redirects here.
    RunErrand(Errand),
    /// The answer to an errand it sent out.
    ErrandEnded(Box<Completion>),
    /// A lease or an errand of its may have run out.
    Wake,
    /// An operator set these overrides.
    Order(HostOverrides),
    /// It failed too often in a row: grant nothing until an operator resumes it.
    Park(Reason),
    /// Other exclusions are in force (R5).
    Exclude(Arc<Exclusions>),
    /// The configuration was reloaded.
    Reload(Arc<HostSettings>),
    /// Write a snapshot with these counts and stop, if it is still idle.
    Retire(HostCounts),
    /// Say how it stands.
    Observe(Answer<Box<HostView>>),
}

/// What a host is doing, for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HostPhase {
    /// May be asked now.
    Ready,
    /// A request is in flight.
    InFlight,
    /// Its clock runs.
    Waiting,
    /// Parked: for long, by the site's wish, by an operator or by failures.
    Parked,
    /// Nothing is queued.
    Idle,
}

/// R2 as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RobotsView {
    /// `unfetched`, `obey`, `allow_all`, `unreachable`.
    pub state: &'static str,
    /// When the answer came.
    pub fetched_at: Option<Timestamp>,
    /// When it is asked for again.
    pub expires_at: Option<Timestamp>,
    /// Rules that apply to us.
    pub rules: u32,
    /// In seconds.
    #[serde(serialize_with = "seconds")]
    pub crawl_delay: Option<Duration>,
    /// Sitemap lines.
    pub sitemaps: Vec<String>,
}

/// The state of a HostActor: what `GET /v1/hosts/{host_key}` shows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostView {
    /// The host.
    pub host_key: HostKey,
    /// What it is doing.
    pub state: HostPhase,
    /// Why it waits.
    pub reason: Option<String>,
    /// I2: no request before.
    pub next_allowed_at: Option<Timestamp>,
    /// The delay in force, in seconds.
    #[serde(serialize_with = "some_seconds")]
    pub delay_seconds: Duration,
    /// What set it.
    pub delay_set_by: DelaySource,
    /// Requests in flight.
    pub in_flight: u32,
    /// Requests today.
    pub pages_today: u64,
    /// The daily budget.
    pub budget: u64,
    /// Rules.
    pub robots: RobotsView,
    /// Refusals and failures in a row.
    pub backoff: BackoffState,
    /// What the operator set.
    pub allowance: HostOverrides,
    /// Entries of its queue in memory.
    pub window: u32,
    /// The owner's term.
    pub epoch: u32,
}

fn some_seconds<S: serde::Serializer>(span: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(span.as_secs_f64())
}

fn seconds<S: serde::Serializer>(
    span: &Option<Duration>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match span {
        Some(span) => serializer.serialize_some(&span.as_secs_f64()),
        None => serializer.serialize_none(),
    }
}
