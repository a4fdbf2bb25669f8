//! Hosts come and go: woken from their rows and snapshots, offered credit, put to rest, restarted.

use std::time::Duration;

use ractor::{ActorId, ActorRuntime};
use tracing::{debug, warn};

use super::commit::Then;
use super::ends::Told;
use super::recover::add;
use super::state::{MoveKind, Resident, Shard, Waking, fault};
use crate::frontier::host::{HostActor, HostArgs, offer_was_granted};
use crate::policy::change::Change;
use crate::policy::host::{Effects, HostSeed};
use crate::policy::robots::RobotsState;
use crate::protocol::shard::{HostRead, ParkedHost, Stepped, StoreFault, StoreReply};
use crate::protocol::{HostMsg, HostPhase, ShardMsg};
use crate::types::{HostCounts, HostId, LeaseId, QueueEntry, Reason, Timestamp, UrlId};

/// A host that wants nothing for this long goes to rest.
const REST_AFTER: Duration = Duration::from_secs(10);
/// An actor that fails this often in a row has its host parked (A1).
const FAILURES_MAX: u32 = 3;
/// Sleepers judged again at once.
const SLEEPERS_AT_ONCE: usize = 1000;
/// Hosts that wait for long, kept for operators.
const LONG_WAITS_MAX: usize = 100;
/// How long is long.
const LONG_WAIT: Duration = Duration::from_secs(30);

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
            // Its row may be on its way to the store: it is read behind what is being written.
            if self.commit.is_settled() {
                self.read_host(host);
            } else {
                self.when_written(Then::WakeHost(host));
            }
        }
        self.waking.entry(host).or_default()
    }

    pub(super) fn read_host(&self, host: HostId) {
        self.read(|store| async move {
            let read = async {
                let Some((record, counts)) = store.host(host).await? else { return Ok(None) };
                let robots = store.robots(host).await?;
                Ok(Some(Box::new(HostRead { record, counts, robots })))
            };
            ShardMsg::Store(StoreReply::HostRead(host, read.await.map_err(fault)))
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
                self.when_written(Then::WakeHost(host));
            }
            Ok(Some(read)) => self.start_host(host, *read),
            Ok(None) => {
                // A host without a row has nothing to do; what it was told concerns nobody.
                let waking = self.waking.remove(&host).unwrap_or_default();
                let due = waking.moves.iter().filter(|part| part.kind == MoveKind::Due);
                due.for_each(|_| self.due_moved());
                self.ready.set(host, None);
            }
            Err(failure) => {
                self.commit.failure = Some(format!("{failure:?}"));
                self.when_written(Then::WakeHost(host));
            }
        }
    }

    fn start_host(&mut self, id: HostId, read: HostRead) {
        let HostRead { record, counts, robots } = read;
        let settings = (self.settings().host)(&record.key);
        let product = &settings.robots.product;
        let robots = robots.map(|robots| RobotsState::from_record(&robots, product));
        let leases = self.leases_of(id);
        let seed = HostSeed {
            id,
            epoch: self.store.epoch(),
            settings,
            record: record.clone(),
            counts,
            robots: robots.unwrap_or_default(),
            leases,
            snapshot: None,
            opened_at: self.opened_at,
        };
        let args = HostArgs { seed, world: self.world.clone(), shard: self.me.clone() };
        let cell = self.me.get_cell();
        let Ok((actor, _)) = ActorRuntime::spawn_linked_instant(None, HostActor, args, cell) else {
            // Only a name that is taken can refuse a start, and hosts have none.
            return;
        };
        self.actors.insert(actor.get_id(), id);
        let waking = self.waking.remove(&id).unwrap_or_default();
        self.long_waits.remove(&id);
        self.residents.insert(
            id,
            Resident {
                actor,
                record,
                counts,
                phase: HostPhase::Idle,
                reason: None,
                next_wake: None,
                // The step that it takes when it has started.
                outstanding: 1,
                offer: None,
                retiring: None,
                sleepers_after: None,
            },
        );
        for part in waking.moves {
            self.move_entries(id, part);
        }
        for msg in waking.messages {
            self.tell(id, msg);
        }
        if waking.wants_offer {
            self.ready.hasten(id, self.now());
        }
    }

    /// Offers credit to hosts whose time has come, while there is credit.
    pub(super) fn go_on_granting(&mut self) {
        if self.paused || self.draining || self.commit.failure.is_some() {
            return;
        }
        let now = self.now();
        while self.has_credit() {
            let Some(host) = self.ready.pop_due(now) else { return };
            self.offer(host, now);
        }
    }

    /// Leases granted, and offers not answered, are within the credit.
    pub(super) fn has_credit(&self) -> bool {
        self.leases.len() + self.offers.len() + self.waking.len() < self.settings().credit
    }

    fn offer(&mut self, host: HostId, now: Timestamp) {
        let Some(resident) = self.residents.get(&host) else {
            self.wake(host).wants_offer = true;
            return;
        };
        if resident.offer.is_some() {
            return;
        }
        let departure = now.max(resident.record.next_allowed_at);
        if let Some(reason) = self.domains.refusal(resident.record.key.domain(), departure) {
            let until = reason.until().unwrap_or(now + Duration::from_secs(1));
            let ahead = self.settings().flush_interval;
            let at = (until - ahead).max(now + Duration::from_millis(10));
            return self.withheld(host, reason, at);
        }
        let reserved = self.quota.lock().reserve(now);
        if let Err(reason) = reserved {
            let at = reason.until().unwrap_or(now + Duration::from_millis(250));
            return self.withheld(host, reason, at);
        }
        let lease = self.new_lease();
        self.offers.insert(lease);
        if let Some(resident) = self.residents.get_mut(&host) {
            resident.offer = Some(lease);
        }
        self.tell(host, HostMsg::Offer(lease));
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
        let Some(resident) = self.residents.get_mut(&host) else { return };
        resident.outstanding = resident.outstanding.saturating_sub(1);
        let ordered = resident.record.overrides != record.overrides;
        resident.record = record.clone();
        resident.phase = phase;
        resident.reason = reason;
        resident.next_wake = next_wake;
        let held = resident.retiring.take();
        let offered = resident.offer;
        if effects.offer.is_some() {
            resident.offer = None;
        }
        let waits = resident.offer.is_some();
        self.failures.remove(&host);
        if let (Some(lease), Some(answer)) = (offered, &effects.offer) {
            self.offers.remove(&lease);
            if !offer_was_granted(answer) {
                self.quota.lock().give_back();
            }
        }
        self.do_effects(host, effects);
        if ordered {
            self.order_taken(host, &record);
        }
        self.ready.set(host, next_wake.filter(|_| !waits));
        for msg in held.into_iter().flatten() {
            self.tell(host, msg);
        }
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
        let wake_sleepers = effects.wake_sleepers;
        let Effects { mut changes, grant, load, errand, errand_ended, .. } = effects;
        self.count(host, figures, &mut changes);
        let told = Told::read(&changes);
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
            self.read_sleepers(host, None);
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
            let due = changes.iter().filter_map(Change::due);
            self.next_due = due.chain(self.next_due).min();
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
            || resident.sleepers_after.is_some();
        let closing = !matches!(self.closing, super::state::Closing::No);
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
        self.ready.set(host, next_wake);
        self.note_long_wait(host, &resident, next_wake);
        let held = resident.retiring.unwrap_or_default();
        if !held.is_empty() {
            // Its row may be on its way to the store still: it is read when that is written.
            self.waking.insert(host, Waking { messages: held, ..Waking::default() });
            self.when_written(Then::WakeHost(host));
        }
    }

    fn note_long_wait(&mut self, host: HostId, resident: &Resident, wake: Option<Timestamp>) {
        let long = wake.is_some_and(|at| at > self.now() + LONG_WAIT)
            || (wake.is_none() && resident.counts.queued > 0);
        if long && self.long_waits.len() < LONG_WAITS_MAX {
            let reason = resident.reason.as_ref().map_or_else(String::new, ToString::to_string);
            let host_key = resident.record.key.clone();
            let queued = resident.counts.queued;
            let parked = ParkedHost { host_key, reason, until: wake, queued };
            self.long_waits.insert(host, parked);
        }
    }

    /// A1: a HostActor failed. It comes back from its snapshot and row; one that fails again and
    /// again is parked.
    pub(super) fn host_failed(&mut self, actor: ActorId, error: &ractor::ActorProcessingErr) {
        let Some(host) = self.actors.remove(&actor) else { return };
        let Some(resident) = self.residents.remove(&host) else { return };
        let failures = self.failures.entry(host).or_default();
        *failures += 1;
        let failures = *failures;
        warn!(host = %resident.record.key, %error, failures, "host actor failed, restarted");
        self.totals.restarts += 1;
        self.admissions.note_retired(host, &resident.record, resident.counts);
        if let Some(lease) = resident.offer {
            self.offers.remove(&lease);
            self.quota.lock().give_back();
        }
        self.ready.set(host, None);
        let mut messages = resident.retiring.unwrap_or_default();
        if failures >= FAILURES_MAX {
            messages.push(HostMsg::Park(Reason::HostParked { failures }));
        }
        self.waking.insert(host, Waking { messages, ..Waking::default() });
        self.when_written(Then::WakeHost(host));
    }

    fn read_sleepers(&mut self, host: HostId, after: Option<UrlId>) {
        if let Some(resident) = self.residents.get_mut(&host) {
            resident.sleepers_after = Some(after);
        }
        self.read(|store| async move {
            let read = store.sleepers(host, after, SLEEPERS_AT_ONCE).await;
            let read = read.map(|rows| {
                let more = rows.len() == SLEEPERS_AT_ONCE;
                (rows.into_iter().map(|(entry, _)| entry).collect(), more)
            });
            ShardMsg::Store(StoreReply::SleepersRead(host, read.map_err(fault)))
        });
    }

    /// R2: URLs that the old rules refused are back in the queue, to be judged by the new ones.
    pub(super) fn sleepers_read(
        &mut self,
        host: HostId,
        read: Result<(Vec<QueueEntry>, bool), StoreFault>,
    ) {
        let Some(resident) = self.residents.get_mut(&host) else { return };
        let after = resident.sleepers_after.take().flatten();
        match read {
            Ok((entries, more)) if !entries.is_empty() => {
                let last = entries.last().map(|entry| entry.id);
                let woken = HostCounts {
                    queued: u64::try_from(entries.len()).unwrap_or(0),
                    ..HostCounts::default()
                };
                for counts in [&mut resident.counts, &mut self.totals.counts] {
                    counts.sleeping = counts.sleeping.saturating_sub(woken.queued);
                    add(counts, woken);
                }
                let counts = resident.counts;
                for entry in &entries {
                    let entry = entry.clone();
                    self.put([Change::Unsleep(entry.id), Change::Enqueue(Box::new(entry))]);
                }
                self.put([Change::PutCounts(host, counts)]);
                self.tell(host, HostMsg::Admitted(entries));
                if more {
                    self.read_sleepers(host, last);
                }
            }
            Ok(_) => {}
            Err(failure) => {
                self.commit.failure = Some(format!("{failure:?}"));
                self.read_sleepers(host, after);
            }
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
