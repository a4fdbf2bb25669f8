//! What is shown of answers of the admin interface: fields that are missing stay empty, fields that
//! are new are left out, so that a daemon of another version can be asked.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::types::{HostCounts, Timestamp};

/// A page of a list.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct Page {
    /// As the daemon gave them.
    pub(super) items: Vec<Value>,
    /// Where the next page begins.
    #[serde(default)]
    pub(super) next: Option<String>,
}

/// A line of the list of hosts.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct HostLine {
    pub(super) host_key: String,
    pub(super) state: String,
    pub(super) reason: Option<String>,
    pub(super) next_allowed_at: Option<Timestamp>,
    pub(super) in_flight: u64,
    pub(super) queued: u64,
    pub(super) pages_today: u64,
}

impl HostLine {
    /// When it may be asked; a host that is parked is not, whatever its clock says.
    pub(super) fn next_request(&self) -> Option<Timestamp> {
        self.next_allowed_at.filter(|_| self.state != "parked")
    }
}

/// One host.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct HostSheet {
    #[serde(flatten)]
    pub(super) line: HostLine,
    pub(super) robots: RobotsLine,
    pub(super) delay_seconds: f64,
    pub(super) delay_set_by: String,
    pub(super) backoff: BackoffLine,
    pub(super) allowance: AllowanceLine,
    pub(super) budget: u64,
    pub(super) address: Vec<String>,
    pub(super) shard: u64,
    pub(super) epoch: u64,
    pub(super) restarts: u64,
    pub(super) resident: bool,
    pub(super) urls: HostCounts,
}

/// What is known of its robots.txt.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct RobotsLine {
    pub(super) state: String,
    pub(super) fetched_at: Option<Timestamp>,
    pub(super) expires_at: Option<Timestamp>,
    pub(super) rules: u64,
    pub(super) crawl_delay: Option<f64>,
    pub(super) sitemaps: Vec<String>,
}

/// Failures in a row.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct BackoffLine {
    pub(super) refusals: u64,
    pub(super) failures: u64,
    pub(super) slowdown: f64,
}

/// What an operator set.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct AllowanceLine {
    pub(super) paused: bool,
    pub(super) min_delay: Option<f64>,
    pub(super) max_in_flight: Option<u64>,
    pub(super) daily_pages: Option<u64>,
}
