//! What a shard holds in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use ractor::{ActorId, ActorRef};
use tokio::sync::watch;

use super::admit::Admissions;
use super::asleep::Asleep;
use super::commit::{Commit, RETRY_AFTER};
use super::exclusions::Lifting;
use super::purge::Forgetting;
use crate::frontier::settings::{FrontierSettings, SharedQuota};
use crate::policy::change::Change;
use crate::policy::domain_clock::DomainBook;
use crate::policy::exclusion::Exclusions;
use crate::policy::ready::ReadyQueue;
use crate::protocol::shard::{DeadSelection, ParkedHost, StoreFault};
use crate::protocol::{
    Answer, FetchJob, HostMsg, HostPhase, ParseJob, Permit, RoutesWatch, ShardMsg,
};
use crate::storage::{Filter, Fingerprints, ShardStore, StoreError};
use crate::supervise::Alarm;
use crate::telemetry::Metrics;
use crate::types::{
    Completion, ContentRecord, ExclusionRecord, HostCounts, HostId, HostKey, HostOverrides,
    HostRecord, Lease, LeaseId, Outcome, QueueEntry, Reason, Response, ShardId, Timestamp, ToParse,
    UrlId, UrlVersion, in_full,
};
use crate::world::World;

/// What a shard starts with.
pub struct ShardArgs {
    /// Which.
    pub shard: ShardId,
    /// Its store, opened: this process owns it.
    pub store: ShardStore,
    /// The world.
    pub world: World,
    /// Where the other actors are.
    pub routes: RoutesWatch,
    /// The settings, always the newest.
    pub settings: watch::Receiver<Arc<FrontierSettings>>,
    /// The caps on the whole crawl.
    pub quota: SharedQuota,
    /// Leases for the fetchers. Its bound is at least the credit of all shards.
    pub fetch: async_channel::Sender<FetchJob>,
    /// Pages for the parsers.
    pub parse: async_channel::Sender<ParseJob>,
    /// The node's.
    pub metrics: Arc<Metrics>,
    /// This process had the shard open before: leases found may still be in flight in it.
    pub reopened: bool,
    /// An operator paused the crawl, or let it go on, since the node started: said while the shard
    /// was down, its store does not know.
    pub paused: Option<bool>,
    /// The exclusions of the node (R5); `None` before it knows them: then the store does.
    pub exclusions: Option<Vec<ExclusionRecord>>,
    /// An operator wants the crawl to come to its end.
    pub draining: bool,
    /// It grants when it is told to begin: waking hosts would slow the shards that still open.
    pub waits: bool,
}

/// The state of a ShardActor.
pub struct Shard {
    pub(super) me: ActorRef<ShardMsg>,
    pub(super) id: ShardId,
    pub(super) store: ShardStore,
    pub(super) world: World,
    pub(super) routes: RoutesWatch,
    pub(super) settings: watch::Receiver<Arc<FrontierSettings>>,
    pub(super) quota: SharedQuota,
    pub(super) fetch: async_channel::Sender<FetchJob>,
    pub(super) parse: async_channel::Sender<ParseJob>,
    pub(super) metrics: Arc<Metrics>,
    /// I3: every host counts as just visited at this time.
    pub(super) opened_at: Timestamp,
    pub(super) paused: bool,
    pub(super) draining: bool,
    /// Other shards of the node are still being opened.
    pub(super) waits: bool,
    /// R5: in force from the moment they are here.
    pub(super) exclusions: Arc<Exclusions>,
    /// Those that are gone, while their hosts are looked for; by number.
    pub(super) lifting: BTreeMap<u64, Lifting>,
    pub(super) lifted: u64,
    /// Rows being cleared, by the id of the order.
    pub(super) forgetting: BTreeMap<String, Forgetting>,
    /// When those that wait were looked at last.
    pub(super) forgetting_looked_at: Timestamp,
    pub(super) closing: Closing,
    pub(super) alarm: Alarm<ShardMsg>,
    /// Domains are swept and leases looked through at most this often.
    pub(super) looked_at: Timestamp,
    // Hosts.
    pub(super) ready: ReadyQueue,
    pub(super) residents: BTreeMap<HostId, Resident>,
    pub(super) waking: BTreeMap<HostId, Waking>,
    /// How many may be read at once to be offered credit.
    pub(super) waking_places: usize,
    pub(super) actors: BTreeMap<ActorId, HostId>,
    /// Hosts whose id is not the hash of their key, because another host has that one.
    pub(super) aliases: BTreeMap<HostKey, HostId>,
    pub(super) failures: BTreeMap<HostId, u32>,
    pub(super) long_waits: BTreeMap<HostId, ParkedHost>,
    pub(super) domains: DomainBook,
    pub(super) domain_urls: BTreeMap<Box<str>, u64>,
    // Leases.
    pub(super) leases: BTreeMap<LeaseId, Granted>,
    pub(super) offers: BTreeMap<LeaseId, HostId>,
    /// A cap on the whole crawl holds all hosts back until then (F11).
    pub(super) held_until: Option<Timestamp>,
    pub(super) next_lease: u32,
    /// When it was last written since when grants are open, and whether the ledger has grown since.
    pub(super) marked_at: Option<Timestamp>,
    pub(super) unmarked: bool,
    /// Responses whose completion is with their host.
    pub(super) arriving: BTreeMap<LeaseId, (Box<Response>, Permit)>,
    /// Completions that their hosts have not taken yet: told again to a host that failed (A1).
    pub(super) ends: BTreeMap<LeaseId, Box<Completion>>,
    // URLs.
    pub(super) fingerprints: Fingerprints,
    pub(super) filter: Filter,
    pub(super) admissions: Admissions,
    pub(super) asleep: Asleep,
    pub(super) next_due: Option<Timestamp>,
    /// The first deferral since the due index was last asked for: a read may have missed it.
    pub(super) late_due: Option<Timestamp>,
    /// A read of the due index is under way, or what it found is not moved yet.
    pub(super) due_reading: bool,
    pub(super) due_moves: usize,
    // The store.
    pub(super) commit: Commit,
    /// Why the last read failed, if it did: the next ones wait before they are tried.
    pub(super) unreadable: Option<String>,
    // Parsing.
    pub(super) parsing: BTreeMap<(UrlId, UrlVersion), ToParse>,
    /// Rows in the store that are not in `parsing`.
    pub(super) backlog: Backlog,
    /// Rows that are done: true once their end is written.
    pub(super) dropped: BTreeMap<(UrlId, UrlVersion), bool>,
    /// Texts claimed lately, in the order of their claims.
    pub(super) texts: BTreeMap<u128, Box<ContentRecord>>,
    pub(super) texts_in_order: VecDeque<u128>,
    /// Orders that their hosts have not taken yet, in the order given.
    pub(super) ordered: Vec<(HostId, HostOverrides, Answer<Option<HostOverrides>>)>,
    /// Retries of dead letters, one at a time, and whether one is under way.
    pub(super) retries: VecDeque<(DeadSelection, Answer<Result<u64, String>>)>,
    pub(super) retrying: bool,
    // Figures.
    pub(super) totals: Totals,
}

/// A resident host.
pub(super) struct Resident {
    pub(super) actor: ActorRef<HostMsg>,
    pub(super) record: HostRecord,
    pub(super) counts: HostCounts,
    pub(super) phase: HostPhase,
    pub(super) reason: Option<Reason>,
    pub(super) next_wake: Option<Timestamp>,
    /// Messages sent and not yet answered by a step.
    pub(super) outstanding: u32,
    /// The offer it has not answered.
    pub(super) offer: Option<LeaseId>,
    /// It was told to retire; what comes meanwhile is held.
    pub(super) retiring: Option<Vec<HostMsg>>,
    /// Sleepers are being read.
    pub(super) sleepers_after: Option<Option<UrlId>>,
    /// They are to be read once more, from the first on.
    pub(super) sleepers_again: bool,
}

impl Resident {
    /// One whose actor is starting, and will take a step then.
    pub(super) fn starting(
        actor: ActorRef<HostMsg>,
        record: HostRecord,
        counts: HostCounts,
    ) -> Self {
        Self {
            actor,
            record,
            counts,
            phase: HostPhase::Idle,
            reason: None,
            next_wake: None,
            outstanding: 1,
            offer: None,
            retiring: None,
            sleepers_after: None,
            sleepers_again: false,
        }
    }
}

/// A host whose row is being read.
#[derive(Default)]
pub(super) struct Waking {
    pub(super) messages: Vec<HostMsg>,
    /// Its counts were changed since the read began: it is read once more.
    pub(super) stale: bool,
    /// It wants credit once it is awake.
    pub(super) wants_offer: bool,
    /// Entries that change their place once its counts are known.
    pub(super) moves: Vec<Move>,
    /// Its sleepers are to be judged again.
    pub(super) wakes_sleepers: bool,
}

/// Entries of one host that change their place.
#[derive(Debug)]
pub(super) struct Move {
    pub(super) kind: MoveKind,
    pub(super) changes: Vec<Change>,
    /// Those that are in the queue now.
    pub(super) entries: Vec<QueueEntry>,
    /// Dead letters that are deferred now.
    pub(super) letters: u64,
}

/// What moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MoveKind {
    /// From the due index to the queue.
    Due,
    /// From the dead letters to the due index.
    Dead,
}

impl Move {
    /// Entries that fell due.
    pub(super) fn due() -> Self {
        Self { kind: MoveKind::Due, changes: Vec::new(), entries: Vec::new(), letters: 0 }
    }

    /// Dead letters that are tried again.
    pub(super) fn dead(letters: u64) -> Self {
        Self { kind: MoveKind::Dead, changes: Vec::new(), entries: Vec::new(), letters }
    }

    /// Moves the counts with them.
    pub(super) fn count(&self, counts: &mut HostCounts) {
        let entries = u64::try_from(self.entries.len()).unwrap_or(0);
        counts.deferred = counts.deferred.saturating_sub(entries) + self.letters;
        counts.queued += entries;
        counts.dead = counts.dead.saturating_sub(self.letters);
    }
}

/// How far a grant has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Its name is being resolved.
    Resolving,
    /// Its address is asked for a place.
    Permitting,
    /// Its row is on the way to the disk.
    Writing,
    /// With the fetchers.
    Sent,
}

/// A grant that has not ended.
#[derive(Debug)]
pub(super) struct Granted {
    pub(super) host: HostId,
    /// Shared from the moment it is written: the ledger's row and the job are one.
    pub(super) lease: Arc<Lease>,
    pub(super) stage: Stage,
    /// Its time in the ledger, from the moment it is written.
    pub(super) recorded_at: Option<Timestamp>,
    pub(super) set_by: crate::types::DelaySource,
    pub(super) policy: u64,
}

/// Pages in the store that wait for a parser and are not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Backlog {
    /// There are none.
    Empty,
    /// There are some; read when parsers have room.
    Waiting,
    /// Being read, at most this many.
    Reading(usize),
}

/// How far closing has come.
#[derive(Debug)]
pub(super) enum Closing {
    /// Not closing.
    No,
    /// Hosts retire, writes end; at the latest then the store is closed as it is.
    Settling(Answer<Result<(), String>>, Timestamp),
    /// The store is being closed.
    Closed,
}

/// The figures of a shard.
#[derive(Debug, Default)]
pub(super) struct Totals {
    pub(super) counts: HostCounts,
    pub(super) hosts: u64,
    pub(super) pages: u64,
    pub(super) outcomes: BTreeMap<Outcome, u64>,
    pub(super) bytes: u64,
    pub(super) repeated: u64,
    pub(super) restarts: u64,
    pub(super) violations: u64,
}

/// The longest time between two looks at the clock.
const TICK_MAX: Duration = Duration::from_secs(10);
/// Between two looks through all leases and domains.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Shard {
    /// Pages wait in the store for a parser.
    pub(super) fn has_backlog(&self) -> bool {
        self.backlog != Backlog::Empty
    }

    /// The time now.
    pub(super) fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    /// The settings in force.
    pub(super) fn settings(&self) -> Arc<FrontierSettings> {
        Arc::clone(&self.settings.borrow())
    }

    /// The id of a host: the hash of its key, unless another host had that first.
    pub(super) fn host_id(&self, key: &HostKey) -> HostId {
        self.aliases.get(key).copied().unwrap_or_else(|| key.id())
    }

    /// Runs a read of the store; its answer comes back as a message (S-1). While reads fail each
    /// waits first, so that nothing turns round on the spot.
    pub(super) fn read<F>(&self, read: impl FnOnce(ShardStore) -> F)
    where
        F: Future<Output = ShardMsg> + Send + 'static,
    {
        let failing = self.unreadable.is_some();
        self.run(if failing { RETRY_AFTER } else { Duration::ZERO }, read);
    }

    /// Runs work on the store after a wait.
    pub(super) fn run<F>(&self, wait: Duration, work: impl FnOnce(ShardStore) -> F)
    where
        F: Future<Output = ShardMsg> + Send + 'static,
    {
        let work = work(self.store.clone());
        let (me, clock) = (self.me.clone(), Arc::clone(&self.world.clock));
        tokio::spawn(async move {
            if !wait.is_zero() {
                clock.sleep(wait).await;
            }
            let answer = work.await;
            // A shard that has stopped needs no answer.
            me.send_message(answer).ok();
        });
    }

    /// After every message: what can go on, goes on; then the one timer is set.
    pub(super) fn go_on(&mut self) {
        if matches!(self.closing, Closing::Closed) {
            return;
        }
        self.go_on_admitting();
        self.go_on_parsing();
        self.go_on_retrying();
        self.go_on_granting();
        self.go_on_forgetting();
        self.go_on_writing();
        self.go_on_closing();
        self.arm();
    }

    /// The timer rang: what has become due is done in `go_on`.
    pub(super) fn tick(&mut self) {
        let now = self.now();
        self.alarm.rang();
        self.end_exclusions(now);
        self.nudge_forgotten();
        self.read_due();
        if now >= self.looked_at + LOOK_EVERY {
            self.looked_at = now;
            self.domains.sweep(now);
            self.expire_leases(now);
            if self.unmarked {
                self.mark_open(now);
            }
        }
    }

    /// One timer, for whatever comes first.
    fn arm(&mut self) {
        let now = self.now();
        let mut next = now + TICK_MAX;
        if self.may_grant() && self.has_credit() {
            next = next.min(self.next_grant().unwrap_or(next));
        }
        if !self.due_reading && !self.draining {
            next = next.min(self.next_due.unwrap_or(next));
        }
        next = next.min(self.exclusions.next_end().unwrap_or(next));
        if let Closing::Settling(_, deadline) = &self.closing {
            next = next.min(*deadline);
        }
        next = next.min(self.next_forgetting().unwrap_or(next));
        next = next.min(self.commit.next_wake().unwrap_or(next)).max(now);
        self.alarm.set(next);
    }
}

/// A shard that fails takes its leases with it: their places in the caps on the crawl and at their
/// addresses are free again, and its pages are counted again when it is opened.
impl Drop for Shard {
    fn drop(&mut self) {
        for granted in self.leases.values().filter(|granted| granted.stage != Stage::Resolving) {
            self.leave_address(&granted.lease, Some(granted.lease.not_before));
        }
        let mut quota = self.quota.lock();
        self.offers.iter().for_each(|_| quota.give_back());
        self.leases.iter().for_each(|_| quota.ended(false));
        if !matches!(self.closing, Closing::Closed) {
            quota.remove_pages(self.totals.pages);
        }
    }
}

/// How the protocol speaks of the store's errors.
pub(super) fn fault(error: StoreError) -> StoreFault {
    match error {
        StoreError::Fenced | StoreError::Closed => StoreFault::Fenced,
        StoreError::NewerVersion { .. }
        | StoreError::Damaged { .. }
        | StoreError::Row(_)
        | StoreError::Deadline { .. }
        | StoreError::Unavailable { .. }
        | StoreError::Engine { .. } => StoreFault::Failed(in_full(&error)),
    }
}
