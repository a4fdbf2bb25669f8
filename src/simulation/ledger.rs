//! The ledger of all requests, looked at when a run is over.
//!
//! - I1, F5 No lease was granted twice, and none by an owner whose term was over.
//! - I2 Nothing was sent before its lease's time or after its end, as the node's clock had it.
//! - I5 A lease has one end: whoever told of it again changed nothing.
//! - I7 Every request that a site saw had a grant that was durable before.

use std::collections::BTreeMap;

use super::checkers::History;
use super::world::Kept;
use crate::policy::invariants;
use crate::types::{Lease, LeaseId, LedgerRow, Outcome, ShardId, Timestamp};

/// What the ledgers of all shards say.
#[derive(Default)]
pub(super) struct Ledger {
    granted: BTreeMap<LeaseId, (ShardId, Lease)>,
    ended: BTreeMap<LeaseId, (Option<Timestamp>, Outcome)>,
    /// What is wrong with the rows themselves.
    wrong: Vec<String>,
}

impl Ledger {
    /// One more row.
    pub(super) fn add(&mut self, shard: ShardId, row: LedgerRow) {
        match row {
            LedgerRow::Granted { lease, .. } => {
                let id = lease.id;
                if self.granted.insert(id, (shard, *lease)).is_some() {
                    self.wrong.push(format!("I1: lease {id} was granted twice"));
                }
            }
            LedgerRow::Ended { lease, sent_at, outcome, .. } => {
                if let Some((_, before)) = self.ended.insert(lease, (sent_at, outcome)) {
                    self.wrong.push(format!("I5: lease {lease} ended twice: {before}, {outcome}"));
                }
            }
        }
    }

    /// Judges it all.
    pub(super) fn check(&self, kept: &Kept) {
        self.wrong.iter().for_each(|wrong| kept.history.violate(wrong));
        self.check_ends(&kept.history);
        self.check_requests(&kept.history);
    }

    fn check_ends(&self, history: &History) {
        for (id, (sent_at, outcome)) in &self.ended {
            let Some((_, lease)) = self.granted.get(id) else {
                // A grant that was given up before it was durable was never sent.
                if sent_at.is_some() {
                    history
                        .violate(format_args!("I7: lease {id} ended {outcome} and has no grant"));
                }
                continue;
            };
            if let Some(at) = sent_at.filter(|at| !invariants::may_be_sent(lease, *at)) {
                let (from, until) = (lease.not_before, lease.expires_at);
                history.violate(format_args!("I2: lease {id} of {from} to {until}: sent at {at}"));
            }
        }
    }

    /// I7: no request without a grant.
    fn check_requests(&self, history: &History) {
        let mut granted: BTreeMap<&str, usize> = BTreeMap::new();
        for (_, lease) in self.granted.values() {
            *granted.entry(lease.entry.url.as_str()).or_default() += 1;
        }
        let mut requested: BTreeMap<String, usize> = BTreeMap::new();
        for request in history.requests() {
            *requested.entry(request.url.to_string()).or_default() += 1;
        }
        for (url, times) in requested {
            let granted = granted.get(url.as_str()).copied().unwrap_or(0);
            if granted < times {
                history.violate(format_args!("I7: {url}: {times} requests, {granted} grants"));
            }
        }
    }
}
