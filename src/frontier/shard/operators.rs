//! What operators ask and order.

use std::collections::BTreeMap;

use ractor::{ActorId, ActorProcessingErr};

use super::commit::Then;
use super::state::{Closing, Move, MoveKind, Shard, chain, fault};
use crate::frontier::host::robots_view;
use crate::policy::change::Change;
use crate::policy::normalise;
use crate::policy::robots::RobotsState;
use crate::policy::window::{WindowRequest, WindowRows};
use crate::protocol::shard::{
    DeadSelection, DueRead, HostDetail, HostFilter, HostOrder, HostPage, HostSummary, StoreFault,
    StoreReply,
};
use crate::protocol::{Answer, HostMsg, HostPhase, HostView, ShardMsg};
use crate::storage::{Filter, ShardStore, StoreError};
use crate::types::{
    CrawlEvent, CrawlUrl, DeadLetter, EventSeq, HostCounts, HostId, HostKey, HostOverrides,
    HostRecord, Timestamp, UrlId, UrlVersion, UrlView,
};

/// Entries that fall due together are moved in parts of this many.
const DUE_AT_ONCE: usize = 1000;
/// Hosts read at once.
const HOSTS_AT_ONCE: usize = 1000;
/// Dead letters looked at for one retry.
const DEAD_AT_ONCE: usize = 10_000;
/// URLs of one host with the same hash that are looked at.
const COLLISIONS_LOOKED_AT: u8 = 16;
/// The deadline of closing the store.
const CLOSE_WITHIN: std::time::Duration = std::time::Duration::from_secs(10);
/// How long hosts and writes may take before it.
const SETTLE_WITHIN: std::time::Duration = std::time::Duration::from_secs(30);

impl Shard {
    /// An answer of the store.
    pub(super) fn store_replied(&mut self, reply: StoreReply) -> Result<(), ActorProcessingErr> {
        if matches!(self.closing, Closing::Closed) {
            return Ok(());
        }
        match reply.of_read() {
            Some(Err(failure)) => self.read_failed(&failure.clone())?,
            Some(Ok(())) => self.unreadable = None,
            None => {}
        }
        match reply {
            StoreReply::Written(result) => self.written(result)?,
            StoreReply::Flushed(result) => self.flushed(result)?,
            StoreReply::AdmissionRead(read) => self.admission_read(read),
            StoreReply::HostRead(host, read) => self.host_read(host, read),
            StoreReply::WindowRead(host, actor, request, read) => {
                self.window_read(host, actor, *request, read);
            }
            StoreReply::DueRead(read) => self.due_read(read),
            StoreReply::SleepersRead(host, read) => self.sleepers_read(host, read),
            StoreReply::ToParseRead(read) => self.backlog_read(read),
            StoreReply::DeadRead(read, answer) => self.dead_read(read, answer),
            StoreReply::OrderRead(order, row, answer) => self.order_read(order, row, answer),
        }
        Ok(())
    }

    /// Rows of a host's queue (F10). W-1: the read sees all that was put into the queue before.
    pub(super) fn read_window(&mut self, host: HostId, request: WindowRequest) {
        let Some(resident) = self.residents.get(&host) else { return };
        let actor = resident.actor.get_id();
        self.once_written(move |shard| {
            shard.read(|store| async move {
                let rows = window(&store, host, &request).await;
                let rows = rows.map(Box::new).map_err(fault);
                ShardMsg::Store(StoreReply::WindowRead(host, actor, Box::new(request), rows))
            });
        });
    }

    /// The rows are here; an actor that failed meanwhile has no use for them.
    fn window_read(
        &mut self,
        host: HostId,
        actor: ActorId,
        request: WindowRequest,
        read: Result<Box<WindowRows>, StoreFault>,
    ) {
        if self.actors.get(&actor) != Some(&host) {
            return;
        }
        match read {
            Ok(rows) => self.tell(host, HostMsg::WindowLoaded(request, *rows)),
            Err(_) => self.read_window(host, request),
        }
    }

    /// Retries and revisits whose time has come (F8, C1).
    pub(super) fn read_due(&mut self) {
        let now = self.now();
        if self.due_reading || self.draining || self.next_due.is_none_or(|at| at > now) {
            return;
        }
        self.due_reading = true;
        self.late_due = None;
        self.once_written(move |shard| {
            shard.read(|store| async move {
                let read = async {
                    let end = now + std::time::Duration::from_millis(1);
                    let entries = store.due_before(end, DUE_AT_ONCE).await?;
                    let next = match entries.len() {
                        DUE_AT_ONCE => Some(now),
                        _ => store.next_due_after(end).await?,
                    };
                    Ok(DueRead { entries, next })
                };
                ShardMsg::Store(StoreReply::DueRead(read.await.map_err(fault)))
            });
        });
    }

    fn due_read(&mut self, read: Result<DueRead, StoreFault>) {
        self.due_reading = false;
        let Ok(read) = read else { return };
        self.next_due = [read.next, self.late_due].into_iter().flatten().min();
        let mut moves: BTreeMap<HostId, Move> = BTreeMap::new();
        for (due, entry) in read.entries {
            let id = entry.id;
            let found = moves.entry(id.host).or_insert_with(Move::due);
            found.changes.push(Change::Undefer { due, id });
            found.changes.push(Change::Enqueue(Box::new(entry.clone())));
            found.entries.push(entry);
        }
        // Rows stay in the index until their host is awake, so the next read waits for all (F8).
        self.due_moves = moves.len();
        self.due_reading = self.due_moves > 0;
        moves.into_iter().for_each(|(host, part)| self.move_entries(host, part));
    }

    /// Entries of a host change their place, with its counts, in one batch; one at rest is woken.
    pub(super) fn move_entries(&mut self, host: HostId, part: Move) {
        let Some(resident) = self.residents.get_mut(&host) else {
            self.wake(host).moves.push(part);
            return;
        };
        for counts in [&mut resident.counts, &mut self.totals.counts] {
            part.count(counts);
        }
        let counts = resident.counts;
        self.put(part.changes);
        self.put([Change::PutCounts(host, counts)]);
        if !part.entries.is_empty() {
            self.tell(host, HostMsg::Admitted(part.entries));
        }
        if part.kind == MoveKind::Due {
            self.due_moved();
        }
    }

    /// One host has taken what fell due; after the last, and its write, the index is read again.
    pub(super) fn due_moved(&mut self) {
        self.due_moves = self.due_moves.saturating_sub(1);
        if self.due_moves == 0 {
            self.when_written(Then::DueMoved);
        }
    }

    /// Stop granting, or go on.
    pub(super) fn pause(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Stop granting for good.
    pub(super) fn drain(&mut self) {
        self.draining = true;
    }

    /// Another configuration for every resident host; sleeping ones get it when they wake.
    pub(super) fn reload(&mut self) {
        let settings = self.settings();
        self.domains.set_rules(settings.domain);
        let hosts: Vec<(HostId, HostKey)> = self
            .residents
            .iter()
            .map(|(id, resident)| (*id, resident.record.key.clone()))
            .collect();
        for (id, key) in hosts {
            self.tell(id, HostMsg::Reload((settings.host)(&key)));
        }
    }

    /// F11: what an operator sets for one host; durable when answered.
    pub(super) fn order(&mut self, order: HostOrder, answer: Answer<Option<HostOverrides>>) {
        let id = self.host_id(&order.host);
        let resident = self.residents.get(&id).map(|resident| &resident.record.overrides);
        if let Some(before) = self.last_order(id).or(resident) {
            let overrides = applied(&order, before);
            return self.give_order(id, overrides, answer);
        }
        self.once_written(move |shard| {
            shard.read(|store| async move {
                let row = store.host(id).await.ok().flatten().map(Box::new);
                ShardMsg::Store(StoreReply::OrderRead(order, row, answer))
            });
        });
    }

    /// What an order that the host has not taken yet makes of its overrides.
    fn last_order(&self, host: HostId) -> Option<&HostOverrides> {
        let mut orders = self.ordered.iter().rev().filter(|(id, ..)| *id == host);
        orders.next().map(|(_, overrides, _)| overrides)
    }

    fn order_read(
        &mut self,
        order: HostOrder,
        row: Option<Box<(HostRecord, HostCounts)>>,
        answer: Answer<Option<HostOverrides>>,
    ) {
        let id = self.host_id(&order.host);
        match row.filter(|row| row.0.key == order.host) {
            Some(row) => {
                let resident = self.residents.get(&id).map(|resident| &resident.record.overrides);
                let before = self.last_order(id).or(resident).unwrap_or(&row.0.overrides);
                let overrides = applied(&order, before);
                self.give_order(id, overrides, answer);
            }
            None => answer.send(None),
        }
    }

    fn give_order(
        &mut self,
        id: HostId,
        overrides: HostOverrides,
        answer: Answer<Option<HostOverrides>>,
    ) {
        self.tell(id, HostMsg::Order(overrides.clone()));
        self.ordered.push((id, overrides, answer));
    }

    /// A host has taken an order: its row is in the next batch.
    pub(super) fn order_taken(&mut self, host: HostId, record: &HostRecord) {
        if let Some(first) = self.ordered.iter().position(|(id, ..)| *id == host) {
            let (_, _, answer) = self.ordered.remove(first);
            self.failures.remove(&host);
            self.hurry();
            self.when_durable(Then::Ordered(answer, record.overrides.clone()));
        }
    }

    /// F8: dead letters go back into their queues.
    pub(super) fn retry_dead(
        &mut self,
        selection: DeadSelection,
        answer: Answer<Result<u64, String>>,
    ) {
        self.retries.push_back((selection, answer));
    }

    /// One retry at a time, so that none sees letters that another one has taken (I5).
    pub(super) fn go_on_retrying(&mut self) {
        if self.retrying {
            return;
        }
        if let Some((selection, answer)) = self.retries.pop_front() {
            self.retrying = true;
            self.once_written(|shard| shard.read_dead(selection, answer));
        }
    }

    fn read_dead(&self, selection: DeadSelection, answer: Answer<Result<u64, String>>) {
        let wanted: Option<Vec<String>> = match &selection {
            DeadSelection::Urls(urls) => {
                Some(urls.iter().map(|url| normalise::recognised(url).into_owned()).collect())
            }
            DeadSelection::Host(_) | DeadSelection::All => None,
        };
        self.read(|store| async move {
            let read = store.dead(None, DEAD_AT_ONCE).await.map(|letters| {
                let chosen = letters.into_iter().filter(|letter| match (&selection, &wanted) {
                    (DeadSelection::Host(host), _) => letter.entry.url.host_key() == *host,
                    (DeadSelection::Urls(_), Some(wanted)) => {
                        wanted.contains(&normalise::recognised(&letter.entry.url).into_owned())
                    }
                    (DeadSelection::All | DeadSelection::Urls(_), _) => true,
                });
                chosen.collect()
            });
            ShardMsg::Store(StoreReply::DeadRead(read.map_err(fault), answer))
        });
    }

    fn dead_read(
        &mut self,
        read: Result<Vec<DeadLetter>, StoreFault>,
        answer: Answer<Result<u64, String>>,
    ) {
        self.retrying = false;
        let letters = match read {
            Ok(letters) => letters,
            Err(failure) => return answer.send(Err(format!("{failure:?}"))),
        };
        let count = u64::try_from(letters.len()).unwrap_or(0);
        let now = self.now();
        let mut moved: BTreeMap<HostId, u64> = BTreeMap::new();
        for letter in letters {
            let mut entry = letter.entry;
            entry.attempts = 0;
            // A version of its own: the events of the old one have been given (F6).
            entry.version = UrlVersion(entry.version.0.saturating_add(1));
            *moved.entry(entry.id.host).or_default() += 1;
            self.put([
                Change::DropDead(entry.id),
                Change::Defer { due: now, entry: Box::new(entry) },
            ]);
        }
        moved.into_iter().for_each(|(host, letters)| self.move_entries(host, Move::dead(letters)));
        self.deferred_until(now);
        self.hurry();
        self.when_durable(Then::Requeued(answer, count));
    }

    /// One URL, with its last visit and its lease.
    pub(super) fn look_up_url(
        &self,
        url: CrawlUrl,
        answer: Answer<Result<Option<Box<UrlView>>, String>>,
    ) {
        let host = self.host_id(&url.host_key());
        let leases: Vec<(UrlId, crate::types::LeaseId)> = self
            .leases
            .values()
            .map(|granted| (granted.lease.entry.id, granted.lease.id))
            .collect();
        let store = self.store.clone();
        tokio::spawn(async move {
            let found = find_url(&store, host, &url).await.map_err(|error| chain(&error));
            answer.send(found.map(|view| {
                view.map(|mut view| {
                    view.lease =
                        leases.iter().find(|(id, _)| *id == view.id).map(|(_, lease)| *lease);
                    Box::new(view)
                })
            }));
        });
    }

    /// One host: a resident one speaks for itself, another one's row does.
    pub(super) fn look_up_host(
        &mut self,
        key: HostKey,
        answer: Answer<Result<Option<Box<HostDetail>>, String>>,
    ) {
        let id = self.host_id(&key);
        let settings = (self.settings().host)(&key);
        let shard = self.id;
        let restarts = self.failures.get(&id).copied().unwrap_or(0);
        let address = self.leases.values().filter(|granted| granted.host == id);
        let address: Vec<std::net::IpAddr> =
            address.filter_map(|granted| granted.lease.address).collect();
        let detail = move |view: HostView, counts: HostCounts, resident: bool| HostDetail {
            view,
            queued: counts.queued,
            urls: counts,
            resident,
            restarts,
            shard,
            address: address.clone(),
        };
        if let Some(resident) = self.residents.get(&id) {
            let counts = resident.counts;
            let port = Answer::to(move |view: Option<Box<HostView>>| {
                let view = view.map(|view| Box::new(detail(*view, counts, true)));
                answer.send(view.map(Some).ok_or_else(|| "the host is restarting".to_owned()));
            });
            return self.tell(id, HostMsg::Observe(port));
        }
        let (store, epoch) = (self.store.clone(), self.store.epoch().0);
        let now = self.now();
        tokio::spawn(async move {
            let read = async {
                let Some((record, counts)) = store.host(id).await? else { return Ok(None) };
                if record.key != key {
                    return Ok(None);
                }
                let robots = store.robots(id).await?;
                let robots = robots
                    .map(|robots| RobotsState::from_record(&robots, &settings.robots.product))
                    .unwrap_or_default();
                let view = resting_view(&record, counts, &robots, epoch, now);
                Ok::<_, StoreError>(Some(Box::new(detail(view, counts, false))))
            };
            answer.send(read.await.map_err(|error| chain(&error)));
        });
    }

    /// Hosts that have seeds: the scope of this run goes on from them.
    pub(super) fn list_seeded(&self, answer: Answer<Result<Vec<HostKey>, String>>) {
        let store = self.store.clone();
        tokio::spawn(async move {
            answer.send(seeded(&store).await.map_err(|error| chain(&error)));
        });
    }

    /// A page of hosts, in the order of their ids.
    pub(super) fn list_hosts(&self, filter: HostFilter, answer: Answer<Result<HostPage, String>>) {
        let now = self.now();
        let residents: BTreeMap<HostId, HostSummary> =
            self.residents.iter().map(|(id, resident)| (*id, resident.summary())).collect();
        let store = self.store.clone();
        tokio::spawn(async move {
            let page = page_of_hosts(&store, &filter, &residents, now).await;
            answer.send(page.map_err(|error| chain(&error)));
        });
    }

    /// A page of dead letters.
    pub(super) fn list_dead(
        &self,
        after: Option<UrlId>,
        limit: u16,
        answer: Answer<Result<Vec<DeadLetter>, String>>,
    ) {
        let store = self.store.clone();
        tokio::spawn(async move {
            let letters = store.dead(after, usize::from(limit)).await;
            answer.send(letters.map_err(|error| chain(&error)));
        });
    }

    /// O5: durable events after a place in the outbox.
    pub(super) fn read_events(
        &self,
        after: EventSeq,
        limit: u16,
        answer: Answer<Result<Vec<(EventSeq, CrawlEvent)>, String>>,
    ) {
        let store = self.store.clone();
        tokio::spawn(async move {
            let events = store.events(after, usize::from(limit)).await;
            answer.send(events.map_err(|error| chain(&error)));
        });
    }

    /// All that is under way becomes durable, then the store is closed.
    pub(super) fn close(&mut self, answer: Answer<Result<(), String>>) {
        self.draining = true;
        self.closing = Closing::Settling(answer, self.now() + SETTLE_WITHIN);
        self.flush_now();
        self.rest_all();
    }

    /// Closes the store once hosts are at rest and all is written.
    pub(super) fn go_on_closing(&mut self) {
        let Closing::Settling(_, deadline) = &self.closing else { return };
        let late = *deadline <= self.now();
        let resting = self
            .residents
            .values()
            .all(|resident| resident.outstanding == 0 && resident.retiring.is_none());
        if !late && !(resting && self.waking.is_empty() && self.commit.is_settled()) {
            return;
        }
        let Closing::Settling(answer, _) = std::mem::replace(&mut self.closing, Closing::Closed)
        else {
            return;
        };
        let (store, me) = (self.store.clone(), self.me.clone());
        let filter = std::mem::replace(&mut self.filter, Filter::unknown(1, 0));
        tokio::spawn(async move {
            let flushed = store.flush(CLOSE_WITHIN).await;
            let batch = store.last_batch().await;
            store.save_filter(&filter, batch).await;
            let closed = match flushed {
                Ok(()) => store.close(CLOSE_WITHIN).await,
                Err(error) => Err(error),
            };
            answer.send(closed.map_err(|error| chain(&error)));
            me.stop(None);
        });
    }
}

impl super::state::Resident {
    fn summary(&self) -> HostSummary {
        HostSummary {
            host_key: self.record.key.clone(),
            state: self.phase,
            reason: self.reason.as_ref().map(ToString::to_string),
            next_allowed_at: Some(self.record.next_allowed_at),
            in_flight: u32::from(self.phase == HostPhase::InFlight),
            queued: self.counts.queued,
            pages_today: self.record.requests_today,
        }
    }
}

fn applied(order: &HostOrder, before: &HostOverrides) -> HostOverrides {
    HostOverrides {
        paused: order.paused.unwrap_or(before.paused),
        min_delay: order.min_delay.unwrap_or(before.min_delay),
        max_in_flight: order.max_in_flight.unwrap_or(before.max_in_flight),
        daily_pages: order.daily_pages.unwrap_or(before.daily_pages),
        version: before.version,
    }
}

async fn window(
    store: &ShardStore,
    host: HostId,
    request: &WindowRequest,
) -> Result<WindowRows, StoreError> {
    let mut rows = WindowRows::default();
    for (at, limit) in request.limit.iter().enumerate().filter(|(_, limit)| **limit > 0) {
        let band = u8::try_from(at).unwrap_or(0);
        let after = request.after[at];
        let read = store.queue_window(host, band, after, usize::from(*limit)).await?;
        (rows.rows[at], rows.exhausted[at]) = read;
    }
    Ok(rows)
}

async fn find_url(
    store: &ShardStore,
    host: HostId,
    url: &CrawlUrl,
) -> Result<Option<UrlView>, StoreError> {
    let recognised = normalise::recognised(url);
    let hash = normalise::url_hash(&recognised);
    for disambiguator in 0..COLLISIONS_LOOKED_AT {
        let id = UrlId { host, hash, disambiguator };
        let Some(record) = store.url(id).await? else { return Ok(None) };
        if normalise::recognised(&record.url) == recognised {
            let visit = store.visit(id).await?;
            return Ok(Some(UrlView { id, record, visit, lease: None }));
        }
    }
    Ok(None)
}

async fn seeded(store: &ShardStore) -> Result<Vec<HostKey>, StoreError> {
    let (mut after, mut seeded) = (None, Vec::new());
    loop {
        let hosts = store.hosts(after, HOSTS_AT_ONCE).await?;
        let Some((last, ..)) = hosts.last() else { return Ok(seeded) };
        after = Some(*last);
        let hosts = hosts.into_iter().filter(|(_, _, counts)| counts.seeds > 0);
        seeded.extend(hosts.map(|(_, record, _)| record.key));
    }
}

async fn page_of_hosts(
    store: &ShardStore,
    filter: &HostFilter,
    residents: &BTreeMap<HostId, HostSummary>,
    now: Timestamp,
) -> Result<HostPage, StoreError> {
    let limit = usize::from(filter.limit.max(1));
    let mut page = HostPage { hosts: Vec::new(), next: filter.after };
    loop {
        let rows = store.hosts(page.next, limit).await?;
        let last_page = rows.len() < limit;
        for (id, record, counts) in rows {
            if page.hosts.len() == limit {
                return Ok(page);
            }
            page.next = Some(id);
            let summary = match residents.get(&id) {
                Some(summary) => summary.clone(),
                None => resting_summary(&record, counts, now),
            };
            let phase = filter.phase.is_none_or(|phase| phase == summary.state);
            let domain = filter.domain.as_ref();
            if phase && domain.is_none_or(|domain| record.key.domain() == *domain) {
                page.hosts.push(summary);
            }
        }
        if last_page {
            page.next = None;
            return Ok(page);
        }
    }
}

/// A host without an actor: at rest, waiting for its clock, or parked.
fn resting_phase(record: &HostRecord, counts: HostCounts, now: Timestamp) -> HostPhase {
    let asked = record.site_wait_until.unwrap_or(Timestamp::EPOCH);
    if record.parked.is_some() || record.overrides.paused {
        HostPhase::Parked
    } else if counts.queued == 0 {
        HostPhase::Idle
    } else if record.next_allowed_at.max(asked) > now {
        HostPhase::Waiting
    } else {
        HostPhase::Ready
    }
}

fn resting_summary(record: &HostRecord, counts: HostCounts, now: Timestamp) -> HostSummary {
    HostSummary {
        host_key: record.key.clone(),
        state: resting_phase(record, counts, now),
        reason: record.parked.as_ref().map(ToString::to_string),
        next_allowed_at: Some(record.next_allowed_at),
        in_flight: 0,
        queued: counts.queued,
        pages_today: record.requests_today,
    }
}

fn resting_view(
    record: &HostRecord,
    counts: HostCounts,
    robots: &RobotsState,
    epoch: u32,
    now: Timestamp,
) -> HostView {
    HostView {
        host_key: record.key.clone(),
        state: resting_phase(record, counts, now),
        reason: record.parked.as_ref().map(ToString::to_string),
        next_allowed_at: Some(record.next_allowed_at),
        delay_seconds: record.delay,
        delay_set_by: record.set_by,
        in_flight: 0,
        pages_today: record.requests_today,
        budget: 0,
        robots: robots_view(robots),
        backoff: record.backoff,
        allowance: record.overrides.clone(),
        window: 0,
        epoch,
    }
}
