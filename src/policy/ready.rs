//! Which host is due next (F2): every host that has something to do, by the time it wants credit.
//!
//! Fairness between hosts is the order of time itself: a host that was served goes to the back by
//! at least its delay, so none starves another (F10).

use std::collections::{BTreeMap, BTreeSet};

use crate::types::{HostId, Timestamp};

/// Hosts by the time they want credit; each at most once.
#[derive(Clone, Debug, Default)]
pub struct ReadyQueue {
    by_time: BTreeSet<(Timestamp, HostId)>,
    by_host: BTreeMap<HostId, Timestamp>,
}

impl ReadyQueue {
    /// A host wants credit at `at`, or none.
    pub fn set(&mut self, host: HostId, at: Option<Timestamp>) {
        if let Some(before) = self.by_host.remove(&host) {
            self.by_time.remove(&(before, host));
        }
        if let Some(at) = at {
            self.by_host.insert(host, at);
            self.by_time.insert((at, host));
        }
    }

    /// A host wants credit no later than `at`.
    pub fn hasten(&mut self, host: HostId, at: Timestamp) {
        if self.by_host.get(&host).is_none_or(|found| *found > at) {
            self.set(host, Some(at));
        }
    }

    /// When the first host wants credit.
    pub fn next(&self) -> Option<Timestamp> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// The first host whose time has come.
    pub fn pop_due(&mut self, now: Timestamp) -> Option<HostId> {
        let (at, host) = *self.by_time.first()?;
        if at > now {
            return None;
        }
        self.set(host, None);
        Some(host)
    }

    /// All hosts that want credit, in the order of their times.
    pub fn in_order(&self) -> impl Iterator<Item = (Timestamp, HostId)> + '_ {
        self.by_time.iter().copied()
    }

    /// When a host wants credit.
    pub fn at(&self, host: HostId) -> Option<Timestamp> {
        self.by_host.get(&host).copied()
    }

    /// Hosts that want credit.
    pub fn len(&self) -> usize {
        self.by_host.len()
    }

    /// No host wants credit.
    pub fn is_empty(&self) -> bool {
        self.by_host.is_empty()
    }

    /// Hosts whose time has come.
    pub fn due(&self, now: Timestamp) -> usize {
        self.by_time.range(..=(now, HostId(u64::MAX))).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Timestamp {
        Timestamp::from_secs(secs)
    }

    #[test]
    fn hosts_come_in_the_order_of_their_times() {
        let mut ready = ReadyQueue::default();
        ready.set(HostId(1), Some(at(5)));
        ready.set(HostId(2), Some(at(3)));
        ready.set(HostId(1), Some(at(1)));
        assert_eq!(ready.len(), 2);
        assert_eq!(ready.pop_due(at(4)), Some(HostId(1)));
        assert_eq!(ready.pop_due(at(4)), Some(HostId(2)));
        assert_eq!(ready.pop_due(at(4)), None);
    }

    #[test]
    fn hastening_never_delays() {
        let mut ready = ReadyQueue::default();
        ready.set(HostId(1), Some(at(5)));
        ready.hasten(HostId(1), at(9));
        assert_eq!(ready.at(HostId(1)), Some(at(5)));
        ready.hasten(HostId(1), at(2));
        assert_eq!(ready.next(), Some(at(2)));
        assert_eq!(ready.due(at(2)), 1);
        ready.set(HostId(1), None);
        assert!(ready.is_empty());
    }
}
