//! What goes into a host's machine and what comes out of it.

use std::sync::Arc;

use crate::policy::change::Change;
use crate::policy::exclusion::Exclusions;
use crate::policy::window::{WindowRequest, WindowRows};
use crate::types::{
    Completion, CrawlUrl, DelaySource, HostKey, HostOverrides, Lease, LeaseId, QueueEntry, Reason,
    Timestamp,
};

/// What a host's machine is told.
#[derive(Clone, Debug)]
pub enum HostEvent {
    /// Credit for one grant under this name; answered by `Effects::offer`, now or after a read.
    Offered(LeaseId),
    /// Entries that were put into the host's queue while it is resident; once per batch.
    Admitted(Vec<QueueEntry>),
    /// Rows of the queue that it asked for.
    WindowLoaded {
        /// What was asked.
        request: Box<WindowRequest>,
        /// What was found.
        rows: Box<WindowRows>,
    },
    /// The clock of its address moved a lease to a later time (I2).
    Moved {
        /// Which.
        lease: LeaseId,
        /// Never sent before.
        not_before: Timestamp,
        /// Comes back then.
        expires_at: Timestamp,
    },
    /// An exchange ended (F6).
    Ended(Box<Completion>),
    /// The robots.txt of another host redirects here: fetch it on this host's clock (H2).
    ErrandCame(Errand),
    /// The answer to an errand that this host sent out.
    ErrandEnded(Box<Completion>),
    /// Time has passed: leases and errands may have run out.
    TimerRang,
    /// An operator's order.
    Ordered(HostOverrides),
    /// The host's actor failed too often in a row (A1).
    Parked(Reason),
    /// Other exclusions are in force (R5).
    Excluded(Arc<Exclusions>),
}

/// A robots.txt hop that must obey another host's clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Errand {
    /// Whose rules are asked for.
    pub for_host: HostKey,
    /// What to fetch.
    pub url: CrawlUrl,
    /// Redirects followed so far.
    pub hops: u8,
}

/// A lease that leaves the machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Grant {
    /// The lease, not yet bound to an address.
    pub lease: Lease,
    /// What set its `not_before`.
    pub set_by: DelaySource,
    /// The version of the policy in force.
    pub policy: u64,
}

/// The answer to an offer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OfferAnswer {
    /// A grant is among the effects.
    Granted,
    /// None, and why; `None` when nothing is queued.
    Withheld(Option<Reason>),
}

/// Everything one step wants done.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Effects {
    /// Rows, in one batch.
    pub changes: Vec<Change>,
    /// At most one, since offers come one at a time.
    pub grant: Option<Grant>,
    /// The answer to the offer, once it is known.
    pub offer: Option<OfferAnswer>,
    /// Rows of the queue to read.
    pub load: Option<WindowRequest>,
    /// A robots.txt hop to another host.
    pub errand: Option<Errand>,
    /// The end of an errand that was run for another host.
    pub errand_ended: Option<(HostKey, Box<Completion>)>,
    /// I3: a site asked to wait; durable at once.
    pub urgent: bool,
    /// The rules changed: those they refused are judged again (R2).
    pub wake_sleepers: bool,
    /// R3: the Sitemap lines of a robots.txt that has just come.
    pub sitemaps: Vec<String>,
    /// A second completion of a lease: answered, changed nothing (I5).
    pub repeated: bool,
    /// How many entries of the queue the step took out.
    pub dequeued: u32,
    /// How many it deferred, put to sleep, buried.
    pub deferred: u32,
    /// Entries put to sleep.
    pub slept: u32,
    /// Dead letters.
    pub buried: u32,
}
