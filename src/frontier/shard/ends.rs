//! Ends of exchanges: reported to the host that granted them, then counted and passed on.

use super::state::{Shard, Stage};
use crate::policy::change::Change;
use crate::policy::invariants;
use crate::protocol::shard::EndedReport;
use crate::types::{LeaseId, LeaseKind, LedgerRow, Outcome, Timestamp, ToParse};

/// What the changes of a step say about leases.
#[derive(Debug, Default)]
pub(super) struct Told {
    ended: Option<End>,
    to_parse: Option<ToParse>,
}

/// The end of one lease, as its host recorded it.
#[derive(Clone, Copy, Debug)]
struct End {
    lease: LeaseId,
    outcome: Outcome,
    sent_at: Option<Timestamp>,
    ended_at: Timestamp,
}

impl Told {
    /// Reads the changes of one step; a host ends at most one lease in a step but for expiries.
    pub(super) fn read(changes: &[Change]) -> Vec<Self> {
        let mut told: Vec<Self> = Vec::new();
        for change in changes {
            if let Change::Record { row, .. } = change
                && let LedgerRow::Ended { lease, outcome, sent_at, ended_at, .. } = **row
            {
                let ended = Some(End { lease, outcome, sent_at, ended_at });
                told.push(Self { ended, to_parse: None });
            }
            if let Change::PutToParse(row) = change
                && let Some(last) = told.last_mut()
            {
                last.to_parse = Some((**row).clone());
            }
        }
        told
    }
}

impl Shard {
    /// An exchange ended: its host decides what that means.
    pub(super) fn ended(&mut self, report: EndedReport) {
        let EndedReport { completion, response, permit } = self.without_removed(report);
        let lease = completion.lease;
        let Some(granted) = self.leases.get(&lease) else {
            // It ran out before, or is reported twice: the first end stands (F6).
            self.totals.repeated += 1;
            return;
        };
        let host = granted.host;
        self.totals.bytes += completion.bytes;
        let sent_at = completion.sent_at;
        let in_time = sent_at.is_none_or(|at| invariants::may_be_sent(&granted.lease, at));
        let own_address = invariants::kept_to_its_address(&completion);
        if !in_time || !own_address {
            self.totals.violations += 1;
            let reason = &completion.reason;
            tracing::error!(%lease, in_time, own_address, ?sent_at, ?reason, "policy violated");
        }
        if let Some(response) = response {
            self.arriving.insert(lease, (response, permit));
        }
        self.end(host, completion);
    }

    /// Leases that their host has ended: places are given back, figures move, pages go to parsers.
    pub(super) fn leases_ended(&mut self, told: Vec<Told>) {
        for Told { ended, to_parse } in told {
            let Some(end) = ended else { continue };
            self.unmarked = true;
            let arrived = self.arriving.remove(&end.lease);
            self.ends.remove(&end.lease);
            let Some(granted) = self.leases.remove(&end.lease) else { continue };
            let domain = granted.lease.host.domain().to_owned();
            self.domains.ended(&domain, end.ended_at);
            if granted.stage != Stage::Resolving {
                self.leave_address(&granted.lease, end.sent_at.map(|_| end.ended_at));
            }
            let page = granted.lease.kind == LeaseKind::Page && end.outcome.is_exchange();
            self.quota.lock().ended(page);
            *self.totals.outcomes.entry(end.outcome).or_default() += 1;
            if page {
                self.totals.pages += 1;
                self.commit.count_pages(self.totals.pages);
            }
            if let Some(row) = to_parse {
                self.parse_next(row, arrived);
            }
        }
    }
}
