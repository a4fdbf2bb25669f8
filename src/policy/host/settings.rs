//! The policy in force for one host, as values.

use std::sync::Arc;
use std::time::Duration;

use xxhash_rust::xxh3::Xxh3;

use crate::policy::politeness::Politeness;
use crate::policy::retry::Retries;
use crate::policy::robots::RobotsSettings;
use crate::policy::window::BANDS;

/// Everything the machine of a host follows; a reload gives it another one.
#[derive(Clone, Debug, PartialEq)]
pub struct HostSettings {
    /// `[politeness]` with the host's allowance applied.
    pub politeness: Politeness,
    /// `[retry]`.
    pub retries: Retries,
    /// `retry.lease`: how long a grant may stay unanswered.
    pub lease: Duration,
    /// `[robots]`.
    pub robots: Arc<RobotsSettings>,
    /// `frontier.window`.
    pub window: u16,
    /// `frontier.bands`.
    pub bands: [u8; BANDS],
    /// How far ahead of its time a host is granted (I7: the grant is durable when the time comes).
    pub ahead: Duration,
    /// `recrawl.enabled` and its shortest interval; `None` where nothing is visited again.
    pub revisit_after: Option<Duration>,
}

impl HostSettings {
    /// The version of the policy that the ledger notes: equal settings, equal number.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Xxh3::new();
        hash.update(format!("{:?}{:?}{:?}", self.politeness, self.retries, self.robots).as_bytes());
        hash.digest()
    }
}
