//! What the node of a test is set to.

use std::sync::Arc;
use std::time::Duration;

use super::secs;
use crate::frontier::FrontierSettings;
use crate::policy::address_clock::AddressRules;
use crate::policy::domain_clock::DomainRules;
use crate::policy::host::HostSettings;
use crate::policy::politeness::Politeness;
use crate::policy::quota::QuotaRules;
use crate::policy::retry::Retries;
use crate::policy::robots::RobotsSettings;

/// The politeness of every host in these tests, unless the test says otherwise.
pub(in crate::frontier) fn host_settings() -> HostSettings {
    HostSettings {
        politeness: Politeness {
            min_delay: secs(1),
            max_delay: secs(60),
            delay_factor: 10.0,
            jitter: 0.0,
            max_in_flight: 1,
            daily_pages: 100_000,
        },
        retries: Retries { base: secs(30), factor: 4.0, max_attempts: 5 },
        lease: secs(300),
        robots: Arc::new(RobotsSettings::default()),
        window: 16,
        bands: [8, 4, 2, 1],
        ahead: secs(1),
        revisit_after: None,
    }
}

/// What the node of a test is set to.
#[derive(Clone)]
pub(in crate::frontier) struct Setting {
    pub(in crate::frontier) host: HostSettings,
    pub(in crate::frontier) domain: DomainRules,
    pub(in crate::frontier) address: AddressRules,
    pub(in crate::frontier) quota: QuotaRules,
    pub(in crate::frontier) shards: u16,
    pub(in crate::frontier) credit: usize,
    pub(in crate::frontier) resident_hosts: usize,
    pub(in crate::frontier) host_max_urls: u64,
    pub(in crate::frontier) parse_room: usize,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            host: host_settings(),
            domain: DomainRules { min_delay: Duration::ZERO, daily_pages: 1_000_000 },
            address: AddressRules { min_delay: Duration::from_millis(1), max_in_flight: 1000 },
            quota: QuotaRules::default(),
            shards: 1,
            credit: 100,
            resident_hosts: 1000,
            host_max_urls: 1_000_000,
            parse_room: 64,
        }
    }
}

impl Setting {
    pub(in crate::frontier) fn frontier(&self) -> FrontierSettings {
        let host = Arc::new(self.host.clone());
        FrontierSettings {
            host: Arc::new(move |_| Arc::clone(&host)),
            domain: self.domain,
            host_max_urls: self.host_max_urls,
            domain_max_urls: 10_000_000,
            may_connect: Arc::new(|_| Ok(())),
            address_exempt: Arc::new(|_| false),
            flush_interval: secs(1),
            resident_hosts: self.resident_hosts,
            credit: self.credit,
            fingerprints: 1000,
        }
    }
}
