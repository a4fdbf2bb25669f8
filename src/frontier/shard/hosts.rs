//! Hosts come and go: woken from their rows and snapshots, offered credit, put to rest, restarted.

use std::sync::Arc;
use std::time::Duration;

use ractor::ActorRuntime;
use tracing::debug;

use super::commit::RETRY_AFTER;
use super::ends::Told;
use super::exclusions::phase_of;
use super::state::{Closing, MoveKind, Resident, Shard, Waking, fault};
use crate::frontier::host::{HostActor, HostArgs, offer_was_granted};
use crate::policy::change::Change;
use crate::policy::host::{Effects, HostSeed};
use crate::policy::robots::RobotsState;
use crate::protocol::shard::{HostRead, Stepped, StoreFault, StoreReply};
use crate::protocol::{DiscoveryMsg, HostMsg, HostPhase, ShardMsg};
use crate::types::{HostCounts, HostId, HostRecord, LeaseId, Reason, Timestamp};

/// A host that wants nothing for this long goes to rest.
pub(super) const REST_AFTER: Duration = Duration::from_secs(10);
/// Hosts whose rows are read at once, at most.
const WAKING_MAX: usize = 32;
/// As many at the start, and one more for each that is awake: nothing of the store is in memory
/// then, and the first grant would wait until the rows of all of them have come.
pub(super) const WAKING_FIRST: usize = 2;
/// A host that something above it holds back for a moment is asked again after this.
const AGAIN_AFTER: Duration = Duration::from_millis(10);
/// A crawl at its cap on pages asks again after this whether one has come free.
const CAP_AGAIN_AFTER: Duration = Duration::from_millis(250);

impl Shard {
    /// Sends a host a message; one at rest is woken first.
    pub(super) fn tell(&mut self, host: HostId, msg: HostMsg) {
        if let Some(resident) = self.residents.get_mut(&host) {
            if let Some(held) = &mut resident.retiring {
                held.push(msg);
                return;
            }
            if !matches!(msg, HostMsg::Observe(_)) {
                resident.outstanding += 1;
            }
            if resident.actor.send_message(msg).is_err() {
                debug!(host = %resident.record.key, "message to a host that is failing");
            }
        } else {
            self.wake(host).messages.push(msg);
        }
    }

    /// Begins to wake a host, or finds that it is being woken.
    pub(super) fn wake(&mut self, host: HostId) -> &mut Waking {
        if !self.waking.contains_key(&host) {
            self.read_host(host);
        }
        self.waking.entry(host).or_default()
    }

    /// I3: a row is read when all that was decided about its host is in it.
    fn read_host(&mut self, host: HostId) {
        self.read_host_after(host, Duration::ZERO);
    }

    pub(super) fn read_host_after(&mut self, host: HostId, wait: Duration) {
        self.once_written(move |shard| {
            let wait = if shard.unreadable.is_some() { wait.max(RETRY_AFTER) } else { wait };
            shard.run(wait, |store| async move {
                let read = async {
                    let Some((record, counts)) = store.host(host).await? else { return Ok(None) };
                    let robots = store.robots(host).await?;
                    Ok(Some(Box::new(HostRead { record, counts, robots })))
                };
                ShardMsg::Store(StoreReply::HostRead(host, read.await.map_err(fault)))
            });
        });
    }

    /// A host's row is here: its actor starts, unless the row has changed meanwhile.
    pub(super) fn host_read(
        &mut self,
        host: HostId,
        read: Result<Option<Box<HostRead>>, StoreFault>,
    ) {
        let Some(waking) = self.waking.get_mut(&host) else { return };
        match read {
            Ok(Some(_)) if waking.stale => {
                waking.stale = false;
                self.read_host(host);
            }
            Ok(Some(read)) => self.start_host(host, *read),
            Ok(None) => {
                // A host without a row has nothing to do; what it was told concerns nobody.
                let waking = self.waking.remove(&host).unwrap_or_default();
                let due = waking.moves.iter().filter(|part| part.kind == MoveKind::Due);
                due.for_each(|_| self.due_moved());
                self.ready.set(host, None);
            }
            Err(_) => self.read_host(host),
        }
    }

    fn start_host(&mut self, id: HostId, read: HostRead) {
        let HostRead { record, counts, robots } = read;
        // F-1 of purges: it wakes without what is being removed.
        let removed = self.exclusions.purging_host(&record.key).is_some();
        if removed {
            self.world.snapshots.remove(id);
        }
        let robots = robots.filter(|_| !removed);
        let settings = (self.settings().host)(&record.key);
        let product = &settings.robots.product;
        let reservations = robots.as_ref().and_then(|robots| robots.reservations.clone());
        let robots = robots.map(|robots| RobotsState::from_record(&robots, product));
        let leases = self.leases_of(id);
        let seed = HostSeed {
            id,
            epoch: self.store.epoch(),
            settings,
            exclusions: Arc::clone(&self.exclusions),
            record: record.clone(),
            counts,
            robots: robots.unwrap_or_default(),
            reservations,
            leases,
            snapshot: None,
            opened_at: self.opened_at,
        };
        let args = HostArgs { seed, world: self.world.clone(), shard: self.me.clone() };
        let cell = self.me.get_cell();
        let started = ActorRuntime::spawn_linked_instant(None, HostActor, args, cell);
        let Ok((actor, starting)) = started else {
            // Only a name that is taken can refuse a start, and hosts have none.
            return;
        };
        self.actors.insert(actor.get_id(), id);
        self.watch_start(actor.get_id(), starting);
        let waking = self.waking.remove(&id).unwrap_or_default();
        self.waking_places = (self.waking_places + 1).min(WAKING_MAX);
        self.asleep.forget(id);
        self.long_waits.remove(&id);
        self.residents.insert(id, Resident::starting(actor, record, counts));
        if counts == HostCounts::default() {
            // Woken for another host's errand: its row keeps its clock from now on.
            self.put_new_row(id);
        }
        for part in waking.moves {
            self.move_entries(id, part);
        }
        for msg in waking.messages {
            self.tell(id, msg);
        }
        if waking.wakes_sleepers {
            self.read_sleepers(id, None);
        }
        if waking.wants_offer {
            self.offer_to_woken(id);
        }
    }

    /// The offer that a host was woken for comes before it could be put to rest again.
    fn offer_to_woken(&mut self, host: HostId) {
        let now = self.now();
        if self.may_grant() && self.held_until.is_none() && self.has_credit() {
            self.offer(host, now);
        } else {
            self.ready.hasten(host, now);
        }
    }

    fn put_new_row(&mut self, id: HostId) {
        let Some(resident) = self.residents.get(&id) else { return };
        if resident.record.generation == 0 {
            let row = Box::new(resident.record.clone());
            self.put([Change::PutHost(id, row)]);
            self.totals.hosts += 1;
        }
    }

    /// When a host at rest may be asked at the earliest; at the start it was just visited (I3).
    pub(super) fn may_be_asked_at(&self, record: &HostRecord) -> Timestamp {
        record.rests_until().max(self.opened_at + record.delay)
    }

    /// Nothing holds the whole shard back.
    pub(super) fn may_grant(&self) -> bool {
        let wanted = !self.paused && !self.draining && !self.waits;
        wanted && self.commit.failure.is_none()
    }

    /// When a host next wants credit and no cap holds all of them back.
    pub(super) fn next_grant(&self) -> Option<Timestamp> {
        self.ready.next().max(self.held_until.filter(|_| !self.ready.is_empty()))
    }

    /// Offers credit to hosts whose time has come, while there is credit.
    pub(super) fn go_on_granting(&mut self) {
        let now = self.now();
        self.held_until.take_if(|until| *until <= now);
        while self.may_grant() && self.held_until.is_none() && self.has_credit() {
            let Some(host) = self.ready.pop_due(now) else { return };
            self.offer(host, now);
        }
    }

    /// Leases granted, and offers not answered, are within the credit. Few hosts wake at a time:
    /// the first of many that are ready is asked when it is awake, not when all are.
    pub(super) fn has_credit(&self) -> bool {
        let places = self.waking.len() < self.waking_places;
        places && self.leases.len() + self.offers.len() + self.waking.len() < self.settings().credit
    }

    fn offer(&mut self, host: HostId, now: Timestamp) {
        let Some(resident) = self.residents.get(&host) else {
            self.wake(host).wants_offer = true;
            return;
        };
        if resident.offer.is_some() || resident.retiring.is_some() {
            // Its place in the queue is set again by its answer.
            return;
        }
        if let Some(reason) = self.shut_out(&resident.record.key) {
            return self.keep_out(host, reason);
        }
        let departure = now.max(resident.record.next_allowed_at);
        let domain = resident.record.key.domain();
        let refusal = self.domains.refusal(domain, departure);
        if let Some(reason) = refusal.or_else(|| self.domain_is_offered(domain, now)) {
            let until = reason.until().unwrap_or(now + Duration::from_secs(1));
            return self.withheld(host, reason, until.max(now + AGAIN_AFTER));
        }
        let reserved = self.quota.lock().reserve(now);
        if let Err(reason) = reserved {
            // The cap is on the whole crawl: no other host need be asked before.
            self.held_until = Some(reason.until().unwrap_or(now + CAP_AGAIN_AFTER));
            return self.withheld(host, reason, now);
        }
        let lease = self.new_lease();
        self.offers.insert(lease, host);
        if let Some(resident) = self.residents.get_mut(&host) {
            resident.offer = Some(lease);
        }
        self.tell(host, HostMsg::Offer(lease));
    }

    /// D-1: another host of a domain with a clock has an offer that may become the next request.
    fn domain_is_offered(&self, domain: &str, now: Timestamp) -> Option<Reason> {
        if self.settings().domain.min_delay.is_zero() {
            return None;
        }
        let mut offered = self.offers.values().filter_map(|host| self.residents.get(host));
        let offered = offered.any(|resident| resident.record.key.domain() == domain);
        offered.then_some(Reason::DomainClock { until: now + AGAIN_AFTER })
    }

    /// Something above the host holds it back: asked again then.
    fn withheld(&mut self, host: HostId, reason: Reason, at: Timestamp) {
        self.ready.set(host, Some(at));
        if let Some(resident) = self.residents.get_mut(&host) {
            resident.reason = Some(reason);
            resident.phase = HostPhase::Waiting;
        }
    }

    /// Shard, term and number: never used twice.
    fn new_lease(&mut self) -> LeaseId {
        self.next_lease = self.next_lease.wrapping_add(1);
        let term = u64::from(self.store.epoch().0 & 0xffff);
        LeaseId(u64::from(self.id.0) << 48 | term << 32 | u64::from(self.next_lease))
    }

    /// A host took a step: its effects are done, its place in the ready queue is set.
    pub(super) fn stepped(&mut self, stepped: Stepped) {
        let Stepped { host, effects, record, next_wake, idle, phase, reason } = stepped;
        let shut = self.shut_out(&record.key);
        let (phase, reason) = phase_of(phase, reason, shut.as_ref());
        let next_wake = next_wake.filter(|_| shut.is_none());
        let Some(resident) = self.residents.get_mut(&host) else { return };
        resident.outstanding = resident.outstanding.saturating_sub(1);
        let ordered = (resident.record.overrides != record.overrides).then(|| record.clone());
        resident.record = record;
        resident.phase = phase;
        resident.reason = reason;
        resident.next_wake = next_wake;
        let held = resident.retiring.take();
        let offered = resident.offer;
        if effects.offer.is_some() {
            resident.offer = None;
        }
        let waits = resident.offer.is_some();
        if let (Some(lease), Some(answer)) = (offered, &effects.offer) {
            self.offers.remove(&lease);
            if !offer_was_granted(answer) {
                self.quota.lock().give_back();
            }
        }
        self.do_effects(host, effects);
        if let Some(record) = ordered {
            self.order_taken(host, &record);
        }
        self.ready.set(host, next_wake.filter(|_| !waits));
        for msg in held.into_iter().flatten() {
            self.tell(host, msg);
        }
        self.judge_late_sleepers(host);
        if idle {
            self.rest(host);
        }
    }

    fn do_effects(&mut self, host: HostId, effects: Effects) {
        let figures = Figures::of(&effects);
        self.totals.repeated += u64::from(effects.repeated);
        if effects.urgent {
            self.hurry();
        }
        let new_rules = effects.wake_sleepers;
        let Effects { mut changes, grant, load, errand, errand_ended, sitemaps, .. } = effects;
        self.name_sitemaps(host, sitemaps);
        self.count(host, figures, &mut changes);
        let sleeping = self.residents.get(&host).is_some_and(|host| host.counts.sleeping > 0);
        let wake_sleepers = new_rules && sleeping;
        if wake_sleepers {
            // In the batch of the rules: a crash before they are judged forgets neither.
            changes.push(Change::PutUnjudged(host));
        }
        let told = Told::read(&changes);
        if !told.is_empty() {
            // A1: only an exchange that came to its end shows that the host's actor works.
            self.failures.remove(&host);
        }
        self.put(changes);
        self.leases_ended(told);
        if let Some(grant) = grant {
            self.granted(host, grant);
        }
        if let Some(request) = load {
            self.read_window(host, request);
        }
        if let Some(errand) = errand {
            self.send_errand(errand);
        }
        if let Some((for_host, completion)) = errand_ended {
            self.answer_errand(for_host, completion);
        }
        if wake_sleepers {
            self.judge_sleepers(host);
        }
    }

    /// R3: what a robots.txt names is found like a link. Discovery may be gone in between; the next
    /// robots.txt, a day later at most, names them again.
    fn name_sitemaps(&self, host: HostId, sitemaps: Vec<String>) {
        let Some(resident) = self.residents.get(&host).filter(|_| !sitemaps.is_empty()) else {
            return;
        };
        if let Some(discovery) = &self.routes.borrow().discovery {
            let host = resident.record.key.clone();
            discovery.send_message(DiscoveryMsg::Sitemaps(host, sitemaps)).ok();
        }
    }

    /// Keeps the host's counts and the shard's totals in step with the queue.
    fn count(&mut self, host: HostId, figures: Figures, changes: &mut Vec<Change>) {
        if figures == Figures::default() {
            return;
        }
        let Some(resident) = self.residents.get_mut(&host) else { return };
        for counts in [&mut resident.counts, &mut self.totals.counts] {
            counts.queued = counts.queued.saturating_sub(u64::from(figures.dequeued));
            counts.deferred += u64::from(figures.deferred);
            counts.sleeping += u64::from(figures.slept);
            counts.dead += u64::from(figures.buried);
        }
        changes.push(Change::PutCounts(host, resident.counts));
        if figures.deferred > 0 {
            changes.iter().filter_map(Change::due).for_each(|due| self.deferred_until(due));
        }
    }

    /// Something is due then, whatever a read of the index under way may find.
    pub(super) fn deferred_until(&mut self, due: Timestamp) {
        for first in [&mut self.next_due, &mut self.late_due] {
            *first = Some(first.map_or(due, |found| found.min(due)));
        }
    }

    /// A host that wants nothing soon, or one too many, is put to rest.
    fn rest(&mut self, host: HostId) {
        let crowded = self.residents.len() > self.settings().resident_hosts;
        let soon = self.now() + REST_AFTER;
        let Some(resident) = self.residents.get_mut(&host) else { return };
        let wanted = resident.next_wake.is_some_and(|at| at <= soon);
        let busy = resident.outstanding > 0
            || resident.offer.is_some()
            || resident.retiring.is_some()
            || resident.sleepers_after.is_some()
            || resident.sleepers_again;
        let closing = !matches!(self.closing, Closing::No);
        if busy || (wanted && !crowded && !closing) {
            return;
        }
        resident.outstanding += 1;
        resident.retiring = Some(Vec::new());
        let counts = resident.counts;
        if resident.actor.send_message(HostMsg::Retire(counts)).is_err() {
            debug!(host = %resident.record.key, "host is failing already");
        }
    }

    /// Every resident host goes to rest: the shard is closing.
    pub(super) fn rest_all(&mut self) {
        let hosts: Vec<HostId> = self.residents.keys().copied().collect();
        hosts.into_iter().for_each(|host| self.rest(host));
    }

    /// A host has written its snapshot. What came meanwhile wakes it again.
    pub(super) fn retired(&mut self, host: HostId, next_wake: Option<Timestamp>) {
        let Some(resident) = self.residents.remove(&host) else { return };
        self.actors.remove(&resident.actor.get_id());
        self.admissions.note_retired(host, &resident.record, resident.counts);
        let shut = self.shut_out(&resident.record.key).is_some();
        let next_wake = next_wake.filter(|_| !shut);
        self.ready.set(host, next_wake);
        self.note_long_wait(host, &resident, next_wake);
        if resident.sleepers_again {
            self.wake(host).wakes_sleepers = true;
        }
        self.asleep.remember(host, resident.record, resident.counts);
        let held = resident.retiring.unwrap_or_default();
        if !held.is_empty() {
            self.wake(host).messages = held;
        }
    }
}

/// What a step did to the queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Figures {
    dequeued: u32,
    deferred: u32,
    slept: u32,
    buried: u32,
}

impl Figures {
    fn of(effects: &Effects) -> Self {
        let Effects { dequeued, deferred, slept, buried, .. } = *effects;
        Self { dequeued, deferred, slept, buried }
    }
}
