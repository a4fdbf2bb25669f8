//! What the frontier follows, as values: made from the configuration by the wiring, replaced by a
//! reload.

use std::fmt;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::policy::domain_clock::DomainRules;
use crate::policy::host::HostSettings;
use crate::policy::quota::Quota;
use crate::types::{HostKey, Reason};

/// The policy of a host, its allowance applied.
pub type HostPolicy = Arc<dyn Fn(&HostKey) -> Arc<HostSettings> + Send + Sync>;

/// Settings of every shard of a node.
#[derive(Clone)]
pub struct FrontierSettings {
    /// The policy of a host, its allowance applied.
    pub host: HostPolicy,
    /// `politeness.per_domain_min_delay`, `domain_daily_pages`.
    pub domain: DomainRules,
    /// `politeness.host_max_urls`.
    pub host_max_urls: u64,
    /// `politeness.domain_max_urls`.
    pub domain_max_urls: u64,
    /// H4: whether an address may be connected to.
    pub may_connect: Arc<dyn Fn(IpAddr) -> Result<(), Reason> + Send + Sync>,
    /// `politeness.per_address_exempt`.
    pub address_exempt: Arc<dyn Fn(IpAddr) -> bool + Send + Sync>,
    /// `data.flush_interval`.
    pub flush_interval: Duration,
    /// `frontier.resident_hosts`, this shard's part.
    pub resident_hosts: usize,
    /// Leases granted and not ended, this shard's part of what fetchers can take.
    pub credit: usize,
    /// URLs of which the fingerprint is kept, this shard's part of the memory.
    pub fingerprints: usize,
}

impl fmt::Debug for FrontierSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrontierSettings").field("credit", &self.credit).finish_non_exhaustive()
    }
}

/// The caps on the whole crawl, shared by the shards of a node.
#[derive(Clone, Debug, Default)]
pub struct SharedQuota(Arc<Mutex<Quota>>);

impl SharedQuota {
    /// Shares a quota.
    pub fn new(quota: Quota) -> Self {
        Self(Arc::new(Mutex::new(quota)))
    }

    /// The quota; held for one call only.
    pub fn lock(&self) -> MutexGuard<'_, Quota> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
