//! Rows of hosts at rest that pages have lately linked to, so that their next links need no read.
//!
//! A row of a host at rest changes in one place only, where its new URLs are admitted; from the
//! moment a host wakes its actor speaks for it, and what is remembered here is forgotten.

use std::collections::BTreeMap;

use crate::types::{HostCounts, HostId, HostRecord};

/// Hosts remembered; when there are more, all are forgotten and read again as they come.
const REMEMBERED_MAX: usize = 20_000;

/// What is remembered.
#[derive(Debug, Default)]
pub(super) struct Asleep {
    hosts: BTreeMap<HostId, (HostRecord, HostCounts)>,
}

impl Asleep {
    /// The row and counts of a host at rest, if they are remembered.
    pub(super) fn get(&self, host: HostId) -> Option<&(HostRecord, HostCounts)> {
        self.hosts.get(&host)
    }

    /// What the store has, or will have with the next write, of a host at rest.
    pub(super) fn remember(&mut self, host: HostId, record: HostRecord, counts: HostCounts) {
        if self.hosts.len() >= REMEMBERED_MAX && !self.hosts.contains_key(&host) {
            self.hosts.clear();
        }
        self.hosts.insert(host, (record, counts));
    }

    /// The host is about to wake.
    pub(super) fn forget(&mut self, host: HostId) {
        self.hosts.remove(&host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::HostKey;

    #[test]
    fn it_is_bounded_and_forgets_who_wakes() {
        let record = HostRecord::new(HostKey::parse("https://a.test").unwrap());
        let mut asleep = Asleep::default();
        let hosts = u64::try_from(REMEMBERED_MAX).unwrap() + 10;
        for host in 0..hosts {
            asleep.remember(HostId(host), record.clone(), HostCounts::default());
        }
        assert!(asleep.hosts.len() <= REMEMBERED_MAX);
        let last = HostId(hosts - 1);
        assert!(asleep.get(last).is_some());
        asleep.forget(last);
        assert!(asleep.get(last).is_none());
    }
}
