//! The machine of one host: the only thing that decides whether and what the host is asked.
//!
//! - H-1 A step is the only way it changes.
//! - H-2 No grant for a time before `next_allowed_at` or before the end of a wait the site asked
//!   for; none above the host's allowance in flight; none without a robots decision (I2).
//! - H-3 A grant moves `in_flight`, `next_allowed_at` and the day's count in the same step (F5).
//! - H-4 A completion counts once, at the version of its lease (F6, I5).
//! - H-5 Nothing shortens a wait that a site asked for (I3).
//!
//! It does not resolve names, watch addresses or domains, or know other hosts: its shard does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::effects::{Effects, Errand, HostEvent, OfferAnswer};
use super::settings::HostSettings;
use super::wishes::SiteWishesRead;
use crate::policy::change::Change;
use crate::policy::exclusion::Exclusions;
use crate::policy::robots::{LongUnreachable, RobotsState};
use crate::policy::window::{Window, WindowRequest, WindowRows};
use crate::types::{
    Completion, Epoch, Hindrance, HostCounts, HostId, HostKey, HostOverrides, HostRecord, Lease,
    LeaseId, Moment, Outcome, QueueEntry, Reason, ReservationsRecord, Timestamp, UrlId,
};

/// Errands of other hosts that wait at once; more come back as cancelled.
pub(super) const ERRANDS_MAX: usize = 64;

/// The machine of one host.
#[derive(Clone, Debug)]
pub struct HostMachine {
    pub(super) id: HostId,
    pub(super) epoch: Epoch,
    pub(super) settings: Arc<HostSettings>,
    /// Their version, as the ledger notes it.
    pub(super) policy: u64,
    /// R5: what of it is asked for no more.
    pub(super) exclusions: Arc<Exclusions>,
    pub(super) record: HostRecord,
    pub(super) robots: RobotsState,
    /// What the host keeps back, where that was asked for (R6).
    pub(super) reservations: Option<Box<ReservationsRecord>>,
    /// What robots.txt and reservations in force say on use, once a page has come.
    pub(super) site_wishes: Option<Box<SiteWishesRead>>,
    pub(super) asking: RobotsAsking,
    /// robots.txt has been answered and no page has gone since: the answer decides the next one,
    /// however late that comes within its day.
    pub(super) robots_unused: bool,
    /// The same of reservations.
    pub(super) reservations_unused: bool,
    pub(super) window: Window,
    /// Boxed: a node of the map has room for eleven, and most hosts have one.
    pub(super) in_flight: BTreeMap<LeaseId, Box<Lease>>,
    pub(super) errands: VecDeque<Errand>,
    /// An offer that waits for rows of the queue.
    pub(super) offered: Option<LeaseId>,
    /// A read of the queue is under way.
    pub(super) reading: Option<Reading>,
    /// The delay that the last row speaks of: after a crash the host is left alone for so long.
    pub(super) delay_kept: Duration,
    /// A grant moved the clocks without a row.
    pub(super) is_row_behind: bool,
}

/// A read of the queue, and what happened since it was asked for: the rows may be older (W-1).
#[derive(Clone, Debug)]
pub(super) struct Reading {
    pub(super) request: WindowRequest,
    /// In flight when it was asked for: a row of theirs is an old one, even if they end meanwhile.
    pub(super) granted: BTreeSet<UrlId>,
    /// Put into the queue meanwhile; bounded by the admissions under way.
    pub(super) late: Vec<QueueEntry>,
}

/// How far the host is with asking for its robots.txt.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RobotsAsking {
    /// Not asking.
    No,
    /// A lease of its own is in flight.
    InFlight,
    /// A redirect within the host: fetched next.
    Hop(Errand),
    /// A redirect to another host: that host fetches it; given up at the deadline.
    Away { hops: u8, deadline: Timestamp },
}

/// What a machine is woken from.
#[derive(Clone, Debug)]
pub struct HostSeed {
    /// Its id.
    pub id: HostId,
    /// The owner's term.
    pub epoch: Epoch,
    /// The policy in force.
    pub settings: Arc<HostSettings>,
    /// The exclusions in force (R5).
    pub exclusions: Arc<Exclusions>,
    /// Its row.
    pub record: HostRecord,
    /// Its counts, to judge the snapshot's window.
    pub counts: HostCounts,
    /// Its robots state from the row.
    pub robots: RobotsState,
    /// What it keeps back (R6), from the same row.
    pub reservations: Option<Box<ReservationsRecord>>,
    /// Its leases that are not ended.
    pub leases: Vec<Lease>,
    /// Its snapshot, if there is one that can be read.
    pub snapshot: Option<HostSnapshot>,
    /// When this process took the shard: every host counts as just visited then (I3).
    pub opened_at: Timestamp,
}

/// What makes waking cheap: rules parsed, window read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostSnapshot {
    /// The row's generation it belongs to.
    pub generation: u64,
    /// The host's counts then: where they are the same, nothing has entered the queue.
    pub counts: HostCounts,
    /// The rules.
    pub robots: RobotsState,
    /// The window.
    pub window: Window,
    /// Whether robots.txt, and reservations, were answered and no page has gone since.
    pub unused: (bool, bool),
}

impl HostMachine {
    /// Wakes a host. A snapshot of another generation is not used; the row decides (I3).
    pub fn wake(seed: HostSeed) -> Self {
        let HostSeed {
            id,
            epoch,
            settings,
            exclusions,
            mut record,
            counts,
            robots,
            reservations,
            leases,
            snapshot,
            opened_at,
        } = seed;
        let snapshot = snapshot.filter(|snapshot| snapshot.generation == record.generation);
        let unused = snapshot.as_ref().map(|snapshot| snapshot.unused).unwrap_or_default();
        let (robots_unused, reservations_unused) = unused;
        let (robots, window) = match snapshot {
            Some(snapshot) if snapshot.counts == counts && leases.is_empty() => {
                (snapshot.robots, snapshot.window)
            }
            Some(snapshot) => (snapshot.robots, Window::default()),
            None => (robots, Window::default()),
        };
        record.count_open(leases.iter());
        record.visit_at(opened_at);
        let delay_kept = record.delay;
        let in_flight = leases.into_iter().map(|lease| (lease.id, Box::new(lease))).collect();
        let mut machine = Self {
            id,
            epoch,
            policy: settings.fingerprint(),
            settings,
            exclusions,
            record,
            robots,
            reservations,
            site_wishes: None,
            asking: RobotsAsking::No,
            robots_unused,
            reservations_unused,
            window,
            in_flight,
            errands: VecDeque::new(),
            offered: None,
            reading: None,
            delay_kept,
            is_row_behind: false,
        };
        if machine.in_flight.values().any(|lease| machine.is_own_robots(lease)) {
            machine.asking = RobotsAsking::InFlight;
        }
        machine
    }

    /// The only way the machine changes.
    pub fn step(&mut self, now: Moment, event: HostEvent) -> Effects {
        let mut effects = Effects::default();
        let before = self.record.clone();
        match event {
            HostEvent::Offered(lease) => {
                self.expire(now, &mut effects);
                self.offered = Some(lease);
                self.answer_offer(now, &mut effects);
            }
            HostEvent::Admitted(entries) => self.admitted(entries),
            HostEvent::WindowLoaded { request, rows } => {
                if self.window_loaded(&request, *rows) {
                    self.answer_offer(now, &mut effects);
                }
            }
            HostEvent::Moved { lease, not_before, expires_at } => {
                self.moved(lease, not_before, expires_at);
            }
            HostEvent::Ended(completion) => self.ended(now, *completion, &mut effects),
            HostEvent::ErrandCame(errand) => self.errand_came(now, errand, &mut effects),
            HostEvent::ErrandEnded(completion) => self.errand_ended(now, *completion, &mut effects),
            HostEvent::TimerRang => self.expire(now, &mut effects),
            HostEvent::Ordered(overrides) => self.ordered(overrides),
            HostEvent::Parked(reason) => self.record.parked = Some(reason),
            HostEvent::Excluded(exclusions) => {
                // R5: what slept for a rule that is gone is judged again.
                let key = &self.record.key;
                effects.wake_sleepers = self.exclusions.is_lifted_for(key, &exclusions);
                self.exclusions = exclusions;
            }
        }
        self.note_record(&before, &mut effects);
        effects
    }

    /// When the shard should offer credit or ring: the one thing the machine asks of time.
    pub fn next_wake(&self) -> Option<Timestamp> {
        let expiry = self.in_flight.values().map(|lease| lease.expires_at).min();
        let away = match &self.asking {
            RobotsAsking::Away { deadline, .. } => Some(*deadline),
            RobotsAsking::No | RobotsAsking::InFlight | RobotsAsking::Hop(_) => None,
        };
        let grant = self.wants_grant().then(|| self.ready_at() - self.settings.ahead);
        [expiry, away, grant].into_iter().flatten().min()
    }

    /// Nothing in flight, nothing asked for: it can go to sleep.
    pub fn is_idle(&self) -> bool {
        self.in_flight.is_empty()
            && self.offered.is_none()
            && self.reading.is_none()
            && self.errands.is_empty()
            && matches!(self.asking, RobotsAsking::No)
    }

    /// What is worth keeping for a cheap wake-up.
    pub fn snapshot(&self, counts: HostCounts) -> HostSnapshot {
        HostSnapshot {
            generation: self.record.generation,
            counts,
            robots: self.robots.clone(),
            window: self.window.clone(),
            unused: (self.robots_unused, self.reservations_unused),
        }
    }

    /// Another policy; running waits are not shortened (I3).
    pub fn set_settings(&mut self, settings: Arc<HostSettings>) {
        self.policy = settings.fingerprint();
        self.settings = settings;
    }

    /// Its row.
    pub fn record(&self) -> &HostRecord {
        &self.record
    }

    /// Its key.
    pub fn key(&self) -> &HostKey {
        &self.record.key
    }

    /// Its robots state.
    pub fn robots(&self) -> &RobotsState {
        &self.robots
    }

    /// Leases in flight.
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Entries of the queue in memory.
    pub fn window_len(&self) -> usize {
        self.window.len()
    }

    /// The owner's term.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// How many may be in flight at once.
    pub fn allowed_in_flight(&self) -> usize {
        let configured = self.settings.politeness.max_in_flight;
        usize::from(self.record.overrides.max_in_flight.unwrap_or(configured).max(1))
    }

    /// Requests a day.
    pub fn daily_budget(&self) -> u64 {
        self.record.overrides.daily_pages.unwrap_or(self.settings.politeness.daily_pages)
    }

    /// I2: nothing is sent before.
    pub fn ready_at(&self) -> Timestamp {
        let clock = self.record.next_allowed_at;
        let asked = self.record.site_wait_until.unwrap_or(Timestamp::EPOCH);
        let robots = match self.errands.is_empty() {
            true => self.robots_wait().max(self.hindered_until()).unwrap_or(Timestamp::EPOCH),
            false => Timestamp::EPOCH,
        };
        let budget = match self.budget_is_used_up(clock.max(asked)) {
            true => clock.max(asked).next_day(),
            false => Timestamp::EPOCH,
        };
        clock.max(asked).max(robots).max(budget)
    }

    /// When robots.txt is asked for again after we failed to; where the site did not give it, the
    /// state of its robots.txt decides, by the settings in force.
    pub(super) fn hindered_until(&self) -> Option<Timestamp> {
        self.hindrance().map(|hindrance| hindrance.retry_at)
    }

    /// Our own failure to ask for robots.txt.
    pub(super) fn hindrance(&self) -> Option<&Hindrance> {
        let hindrance = self.record.hindered.as_deref();
        hindrance.filter(|one| !matches!(one.reason, Reason::RobotsUnreachable { .. }))
    }

    /// Robots that cannot be had and leave no good copy: nothing until the next try, or until they
    /// count as missing for good.
    pub(super) fn robots_wait(&self) -> Option<Timestamp> {
        match &self.robots {
            RobotsState::Unreachable { since, retry_at, last_good: None, .. } => {
                Some(match self.settings.robots.long_unreachable {
                    LongUnreachable::AllowAfter(span) => (*retry_at).min(*since + span),
                    LongUnreachable::Refuse => *retry_at,
                })
            }
            RobotsState::Unreachable { .. }
            | RobotsState::Unfetched
            | RobotsState::Fresh { .. } => None,
        }
    }

    /// W-1: entries put into the queue; those that a read under way may have missed are kept.
    fn admitted(&mut self, entries: Vec<QueueEntry>) {
        match &mut self.reading {
            Some(reading) => reading.late.extend(entries),
            None => {
                let capacity = self.settings.window;
                entries.into_iter().for_each(|entry| self.window.admit(entry, capacity));
            }
        }
    }

    /// W-1: takes the rows that were asked for; false when it was an actor before that asked.
    fn window_loaded(&mut self, request: &WindowRequest, rows: WindowRows) -> bool {
        let Some(reading) = self.reading.take_if(|reading| reading.request == *request) else {
            return false;
        };
        let in_flight: BTreeSet<UrlId> =
            self.in_flight.values().map(|lease| lease.entry.id).collect();
        self.window
            .load(request, rows, |id| in_flight.contains(&id) || reading.granted.contains(&id));
        self.admitted(reading.late);
        true
    }

    /// Its address's clock moved a lease: the next request keeps its distance from the new time.
    fn moved(&mut self, lease: LeaseId, not_before: Timestamp, expires_at: Timestamp) {
        let Some(lease) = self.in_flight.get_mut(&lease) else { return };
        lease.not_before = lease.not_before.max(not_before);
        lease.expires_at = lease.expires_at.max(expires_at);
        let next = lease.not_before + self.record.delay;
        self.record.next_allowed_at = self.record.next_allowed_at.max(next);
    }

    fn wants_grant(&self) -> bool {
        let stopped = self.record.overrides.paused || self.record.parked.is_some();
        let full = self.in_flight.len() >= self.allowed_in_flight();
        let asking = matches!(self.asking, RobotsAsking::InFlight | RobotsAsking::Away { .. });
        let work = !self.errands.is_empty()
            || (!asking
                && (matches!(self.asking, RobotsAsking::Hop(_)) || !self.window.is_exhausted()));
        work && !stopped && !full && self.offered.is_none()
    }

    pub(super) fn budget_is_used_up(&self, at: Timestamp) -> bool {
        self.record.budget_day == at.day() && self.record.requests_today >= self.daily_budget()
    }

    pub(super) fn is_own_robots(&self, lease: &Lease) -> bool {
        match &lease.kind {
            crate::types::LeaseKind::Robots { for_host, .. } => *for_host == self.record.key,
            crate::types::LeaseKind::Page => false,
        }
    }

    pub(super) fn answer(&mut self, answer: OfferAnswer, effects: &mut Effects) {
        self.offered = None;
        effects.offer = Some(answer);
    }

    /// F5: leases that ran out come back; so does an errand nobody answered.
    fn expire(&mut self, now: Moment, effects: &mut Effects) {
        let late: Vec<LeaseId> = self
            .in_flight
            .values()
            .filter(|lease| lease.expires_at <= now.at)
            .map(|lease| lease.id)
            .collect();
        for id in late {
            if let Some(lease) = self.in_flight.get(&id) {
                let reason = Reason::LeaseExpired;
                let completion = Completion::failed(lease, now.at, Outcome::Timeout, reason);
                self.ended(now, completion, effects);
            }
        }
        if let RobotsAsking::Away { deadline, .. } = &self.asking
            && *deadline <= now.at
        {
            self.robots_failed(now, "the host it redirects to did not answer", effects);
        }
    }

    fn ordered(&mut self, overrides: HostOverrides) {
        let resumed = self.record.overrides.paused && !overrides.paused;
        if resumed || !overrides.paused {
            // An operator's word ends a parking that failures caused (A1).
            self.record.parked = None;
        }
        let version = self.record.overrides.version + 1;
        self.record.overrides = HostOverrides { version, ..overrides };
    }

    /// One row per step, with a new generation, if anything durable changed.
    ///
    /// A step that only granted needs none where the row before is as good: the lease is a row
    /// itself, and after a crash the host is left alone for the delay that its row speaks of.
    fn note_record(&mut self, before: &HostRecord, effects: &mut Effects) {
        debug_assert!(
            self.record.next_allowed_at >= before.next_allowed_at,
            "H-5: next_allowed_at never goes back"
        );
        debug_assert!(
            self.record.site_wait_until >= before.site_wait_until,
            "H-5: a wait the site asked for is never shortened"
        );
        let only_granted = effects.grant.is_some() && effects.changes.is_empty();
        if only_granted && self.delay_kept >= self.least_delay() {
            self.is_row_behind = true;
            return;
        }
        let behind = self.is_row_behind && !effects.changes.is_empty();
        if behind || self.record != *before {
            self.record.generation = before.generation + 1;
            self.is_row_behind = false;
            self.delay_kept = self.record.delay;
            let row = Box::new(self.record.row(self.in_flight.values().map(Box::as_ref)));
            effects.changes.push(Change::PutHost(self.id, row));
        }
    }
}
