//! The numbered invariants as predicates: used by `debug_assert!`, by the checkers of the
//! simulation and by the audit of the ledger.
//!
//! | no. | invariant |
//! | --- | --- |
//! | I1 | a host has at most one live owner; a grant carries the owner's epoch |
//! | I2 | nothing is sent before its time, above the allowance, or against the rules |
//! | I3 | nothing ever shortens a wait that a site asked for |
//! | I4 | a URL is known exactly once; a Bloom filter never decides that it is |
//! | I5 | a completion counts only at the version its lease carried, and once |
//! | I6 | no address outside the allowed networks is connected to |
//! | I7 | grant before request, archive before completion, links before the row goes |
//! | I8 | every queue has a bound, and nothing that was accepted is dropped |

use crate::types::{Completion, Epoch, HostRecord, Lease, Outcome, Timestamp};

/// I2: a request may depart at `at` from a host with this row and this much in flight.
pub fn may_depart(at: Timestamp, record: &HostRecord, in_flight: usize, allowed: usize) -> bool {
    let asked = record.site_wait_until.unwrap_or(Timestamp::EPOCH);
    at >= record.next_allowed_at && at >= asked && in_flight < allowed
}

/// I2, judged when the request is sent: not before its time, not after its lease has run out.
pub fn may_be_sent(lease: &Lease, at: Timestamp) -> bool {
    at >= lease.not_before && at < lease.expires_at
}

/// I6, judged when the exchange has ended: an address is refused before anything is sent to it, so
/// one that is refused afterwards is another than the pinned one.
pub fn kept_to_its_address(end: &Completion) -> bool {
    end.outcome != Outcome::EgressRefused || end.sent_at.is_none()
}

/// I3: waits only grow.
pub fn waits_only_grow(before: &HostRecord, after: &HostRecord) -> bool {
    after.next_allowed_at >= before.next_allowed_at
        && after.site_wait_until >= before.site_wait_until
}

/// I1: a new owner's term is higher than every one before.
pub fn terms_rise(before: Epoch, after: Epoch) -> bool {
    after > before
}

/// I8: what is under way is within its bound.
pub fn within_bound(count: u32, bound: u32) -> bool {
    count <= bound
}
