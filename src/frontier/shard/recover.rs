//! What a shard finds when it opens: hosts, leases that nobody ended, pages that nobody parsed.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRef;

use super::admit::Admissions;
use super::asleep::Asleep;
use super::commit::{Commit, RETRY_AFTER};
use super::hosts::WAKING_FIRST;
use super::state::{Backlog, Closing, Granted, Shard, ShardArgs, Stage, Totals, fault};
use crate::policy::change::Change;
use crate::policy::domain_clock::DomainBook;
use crate::policy::exclusion::Exclusions;
use crate::policy::ready::ReadyQueue;
use crate::protocol::ShardMsg;
use crate::protocol::shard::{StoreFault, StoreReply};
use crate::storage::{Filter, Fingerprints, OpenLease, ShardStore, StoreError};
use crate::supervise::Alarm;
use crate::types::{
    EventSeq, HostCounts, HostKey, HostRecord, Lease, LedgerRow, Outcome, Timestamp, UrlId,
};

/// Hosts are read in pages of this many.
const HOSTS_PAGE: usize = 1000;
/// Keys are read for the filter in pages of this many.
const FILTER_PAGE: usize = 5000;
/// The scan for a filter that was not kept begins this long after the start.
const FILTER_AFTER: Duration = Duration::from_secs(2);
/// URLs that a new filter has room for, at least.
const FILTER_CAPACITY: u64 = 100_000;
/// The row that counts the shard's pages.
pub(super) const PAGES_ROW: &str = "pages";
/// The row that says that an operator has paused the crawl.
pub(super) const PAUSED_ROW: &str = "paused";

/// Whether an operator has paused the crawl, as a shard remembers it.
///
/// # Errors
/// The store cannot be read.
pub async fn is_paused(store: &ShardStore) -> Result<bool, StoreError> {
    Ok(store.meta(PAUSED_ROW).await?.is_some_and(|row| row == [1]))
}

/// Opens a shard's state from its store.
pub(super) async fn recover(me: ActorRef<ShardMsg>, args: ShardArgs) -> Result<Shard, StoreError> {
    let store = args.store.clone();
    let (reopened, said) = (args.reopened, args.paused);
    let wanted = args.exclusions.clone();
    let last_event = last_event(&args).await?;
    let leases = store.open_leases().await?;
    let next_due = store.next_due().await?;
    let backlog = !store.to_parse(None, 1).await?.is_empty();
    let pages = store.meta(PAGES_ROW).await?;
    let paused = is_paused(&store).await?;
    let unjudged = store.unjudged().await?;
    let filter = store.load_filter().await;
    let exclusions = Exclusions::new(store.exclusions().await?);
    let purges = store.purges().await?.into_iter();
    let exclusions = purges.fold(exclusions, |all, order| all.with_purge(order));
    let mut shard = empty(me, args);
    // R5: before anything is granted.
    shard.exclusions = Arc::new(exclusions);
    shard.commit = Commit::new(last_event);
    shard.paused = said.unwrap_or(paused);
    shard.next_due = next_due;
    shard.backlog = if backlog { Backlog::Waiting } else { Backlog::Empty };
    shard.totals.pages = pages.and_then(|row| postcard::from_bytes(&row).ok()).unwrap_or(0);
    if !reopened {
        shard.quota.lock().add_pages(shard.totals.pages);
    }
    let mut open: BTreeMap<HostKey, Vec<&Lease>> = BTreeMap::new();
    for OpenLease { lease, .. } in &leases {
        open.entry(lease.host.clone()).or_default().push(lease);
    }
    let mut after = None;
    loop {
        let hosts = store.hosts(after, HOSTS_PAGE).await?;
        let Some((last, ..)) = hosts.last() else { break };
        after = Some(*last);
        for (id, mut record, counts) in hosts {
            let open = open.get(&record.key).into_iter().flatten().copied();
            if record.count_open(open) && !reopened {
                // Its leases are about to be taken back: the row now speaks for them.
                record.generation += 1;
                shard.put([Change::PutHost(id, Box::new(record.clone()))]);
            }
            shard.found(id, &record, counts);
            shard.count_today(&record, reopened);
        }
    }
    shard.begin_filter(filter);
    if let Some(wanted) = wanted {
        shard.agree_on_exclusions(wanted);
    }
    for host in unjudged {
        shard.wake(host).wakes_sleepers = true;
    }
    for lease in leases {
        match reopened {
            true => shard.wait_out(lease),
            false => shard.take_back(lease),
        }
    }
    Ok(shard)
}

async fn last_event(args: &ShardArgs) -> Result<EventSeq, StoreError> {
    // The numbers of the store go on; only what is durable may be read, and at the start all is.
    Ok(args.store.last_event().await)
}

#[expect(clippy::too_many_lines, reason = "a line for each field, and nothing else")]
fn empty(me: ActorRef<ShardMsg>, args: ShardArgs) -> Shard {
    let opened_at = args.world.clock.now();
    let settings = Arc::clone(&args.settings.borrow());
    let alarm = Alarm::new(Arc::clone(&args.world.clock), me.clone(), || ShardMsg::Tick);
    let secret = args.world.dice.throw();
    Shard {
        me,
        id: args.shard,
        store: args.store,
        routes: args.routes,
        settings: args.settings,
        quota: args.quota,
        fetch: args.fetch,
        parse: args.parse,
        metrics: args.metrics,
        opened_at,
        paused: false,
        draining: args.draining,
        waits: args.waits,
        exclusions: Arc::default(),
        lifting: BTreeMap::new(),
        lifted: 0,
        forgetting: BTreeMap::new(),
        forgetting_looked_at: Timestamp::EPOCH,
        closing: Closing::No,
        alarm,
        looked_at: opened_at,
        ready: ReadyQueue::default(),
        residents: BTreeMap::new(),
        waking: BTreeMap::new(),
        waking_places: WAKING_FIRST,
        actors: BTreeMap::new(),
        aliases: BTreeMap::new(),
        failures: BTreeMap::new(),
        long_waits: BTreeMap::new(),
        domains: DomainBook::new(settings.domain, opened_at),
        domain_urls: BTreeMap::new(),
        leases: BTreeMap::new(),
        offers: BTreeMap::new(),
        held_until: None,
        next_lease: 0,
        marked_at: None,
        unmarked: false,
        arriving: BTreeMap::new(),
        ends: BTreeMap::new(),
        fingerprints: Fingerprints::new(settings.fingerprints, secret),
        filter: Filter::unknown(FILTER_CAPACITY, secret),
        admissions: Admissions::default(),
        asleep: Asleep::default(),
        next_due: None,
        late_due: None,
        due_reading: false,
        due_moves: 0,
        commit: Commit::default(),
        unreadable: None,
        parsing: BTreeMap::new(),
        backlog: Backlog::Empty,
        dropped: BTreeMap::new(),
        texts: BTreeMap::new(),
        texts_in_order: VecDeque::new(),
        ordered: Vec::new(),
        retries: VecDeque::new(),
        retrying: false,
        totals: Totals::default(),
        world: args.world,
    }
}

impl Shard {
    /// D2: the filter that was kept, if it is of this very store; else one that says "maybe" until
    /// the table has been read behind the crawl, so that a large table delays no start.
    fn begin_filter(&mut self, kept: Option<Filter>) {
        let known = self.totals.counts.known;
        match kept {
            Some(filter) => self.filter = filter,
            None => {
                let seed = self.world.dice.throw();
                self.filter = Filter::unknown(FILTER_CAPACITY.max(known * 2), seed);
                if known == 0 {
                    self.filter.complete();
                } else {
                    self.read_filter(None);
                }
            }
        }
    }

    /// The next keys of the table, for the filter; the first when the crawl is under way.
    fn read_filter(&self, after: Option<UrlId>) {
        let wait = if after.is_none() { FILTER_AFTER } else { Duration::ZERO };
        let wait = if self.unreadable.is_some() { wait.max(RETRY_AFTER) } else { wait };
        self.run(wait, |store| async move {
            let ids = store.url_ids(after, FILTER_PAGE).await;
            ShardMsg::Store(StoreReply::FilterRead(after, ids.map_err(fault)))
        });
    }

    /// Keys of the table; those that were admitted meanwhile are in the filter already.
    pub(super) fn filter_read(
        &mut self,
        after: Option<UrlId>,
        read: Result<Vec<UrlId>, StoreFault>,
    ) {
        match read {
            Ok(ids) => {
                ids.iter().for_each(|id| self.filter.insert(id));
                match ids.last() {
                    Some(last) if ids.len() == FILTER_PAGE => self.read_filter(Some(*last)),
                    Some(_) | None => self.filter.complete(),
                }
            }
            // The filter only saves reads; it is read on when the store answers again.
            Err(_) => self.read_filter(after),
        }
    }

    /// A host of the store: at rest until its time comes (I3: as if it was just visited).
    fn found(&mut self, id: crate::types::HostId, record: &HostRecord, counts: HostCounts) {
        if record.key.id() != id {
            self.aliases.insert(record.key.clone(), id);
        }
        if record.next_allowed_at > Timestamp::EPOCH {
            self.domains.visited_before(record.key.domain());
        }
        self.totals.hosts += 1;
        add(&mut self.totals.counts, counts);
        *self.domain_urls.entry(record.key.domain().into()).or_default() += counts.known;
        if let Some(reason) = self.shut_out(&record.key).filter(|_| counts.queued > 0) {
            self.note_shut_out(id, record, counts, &reason);
        } else if counts.queued > 0 {
            let at = self.may_be_asked_at(record);
            self.ready.set(id, Some(at));
            self.note_found_waiting(id, record, counts.queued, at);
        } else if let Some(asked) = record.site_wait_until.filter(|_| counts.deferred > 0) {
            self.note_found_waiting(id, record, 0, asked);
        }
    }

    /// F11: what was asked today counts for the domain's day and the crawl's, whoever asked it.
    fn count_today(&mut self, record: &HostRecord, reopened: bool) {
        let today = self.opened_at.day();
        if record.budget_day != today {
            return;
        }
        self.domains.asked_before(record.key.domain(), today, record.requests_today);
        if !reopened {
            self.quota.lock().asked_before(today, record.requests_today);
        }
    }

    /// I2: an exchange of this process may still run under it, so it is waited out.
    fn wait_out(&mut self, open: OpenLease) {
        let OpenLease { recorded_at, lease } = open;
        let host = self.host_id(&lease.host);
        self.ready.hasten(host, lease.expires_at);
        let (id, lease) = (lease.id, Arc::new(lease));
        let set_by = crate::types::DelaySource::Start;
        let (stage, recorded_at) = (Stage::Sent, Some(recorded_at));
        self.leases.insert(id, Granted { host, lease, stage, recorded_at, set_by, policy: 0 });
    }

    /// F5: a lease that the process before did not end comes back, without a failed try. Its entry
    /// is still in the queue.
    fn take_back(&mut self, open: OpenLease) {
        let OpenLease { recorded_at, lease } = open;
        let now = self.opened_at;
        let row = LedgerRow::Ended {
            lease: lease.id,
            sent_at: None,
            ended_at: now,
            outcome: Outcome::Cancelled,
            address: lease.address,
        };
        // Behind its grant also where the clock was set back, so that it is not found again.
        let at = now.max(recorded_at);
        self.put([Change::Record { at, row: Box::new(row) }]);
        let host = self.host_id(&lease.host);
        self.ready.hasten(host, now);
    }
}

/// Adds up counts.
pub(super) fn add(total: &mut HostCounts, part: HostCounts) {
    total.known += part.known;
    total.queued += part.queued;
    total.deferred += part.deferred;
    total.sleeping += part.sleeping;
    total.dead += part.dead;
    total.seeds += part.seeds;
}
