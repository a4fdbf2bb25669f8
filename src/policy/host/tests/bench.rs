//! A host's machine on a bench: a small model of its shard and store, with plain numbers for times.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::policy::change::Change;
use crate::policy::host::{
    Effects, Grant, HostEvent, HostMachine, HostSeed, HostSettings, HostSnapshot, OfferAnswer,
};
use crate::policy::politeness::Politeness;
use crate::policy::retry::Retries;
use crate::policy::robots::{RobotsSettings, RobotsState};
use crate::policy::window::{BANDS, WindowRequest, WindowRows};
use crate::types::{
    ArchivePointer, Completion, CrawlEvent, CrawlUrl, DeadLetter, Epoch, Happening, HostCounts,
    HostKey, HostRecord, Lease, LeaseId, LeaseKind, LedgerRow, Moment, Outcome, QueueEntry, Reason,
    RobotsRecord, Timestamp, UrlId, UrlStatus, UrlVersion, VisitRecord,
};

/// Times in these tests are milliseconds after a fixed day.
pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(1_767_225_600_000 + millis)
}

pub(super) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

pub(super) fn settings() -> HostSettings {
    HostSettings {
        politeness: Politeness {
            min_delay: secs(1),
            max_delay: secs(60),
            delay_factor: 10.0,
            jitter: 0.0,
            max_in_flight: 1,
            daily_pages: 100_000,
        },
        retries: Retries { base: secs(30), factor: 4.0, max_attempts: 5 },
        lease: secs(300),
        robots: Arc::new(RobotsSettings::default()),
        window: 8,
        bands: [8, 4, 2, 1],
        ahead: secs(1),
        revisit_after: None,
    }
}

type QueueKey = (u8, u64, UrlId);

/// The machine and what a store would hold of its host.
#[derive(Clone, Debug)]
pub(super) struct Bench {
    pub(super) machine: HostMachine,
    pub(super) settings: Arc<HostSettings>,
    pub(super) now: Timestamp,
    pub(super) opened_at: Timestamp,
    pub(super) dice: u64,
    pub(super) row: HostRecord,
    pub(super) robots_row: Option<RobotsRecord>,
    pub(super) counts: HostCounts,
    pub(super) queue: BTreeMap<QueueKey, QueueEntry>,
    pub(super) deferred: BTreeMap<UrlId, (Timestamp, QueueEntry)>,
    pub(super) sleeping: BTreeMap<UrlId, QueueEntry>,
    pub(super) dead: BTreeMap<UrlId, DeadLetter>,
    pub(super) visits: BTreeMap<UrlId, VisitRecord>,
    pub(super) failing: BTreeMap<UrlId, VisitRecord>,
    pub(super) to_parse: Vec<UrlId>,
    pub(super) events: Vec<CrawlEvent>,
    pub(super) leases: BTreeMap<LeaseId, Lease>,
    pub(super) last: Effects,
    next_lease: u64,
}

impl Bench {
    pub(super) fn new(settings: HostSettings) -> Self {
        let key = HostKey::parse("https://a.test").unwrap();
        let row = HostRecord::new(key);
        let settings = Arc::new(settings);
        let seed = seed(&settings, row.clone(), HostCounts::default(), at(0));
        Self {
            machine: HostMachine::wake(seed),
            settings,
            now: at(0),
            opened_at: at(0),
            dice: 0,
            row,
            robots_row: None,
            counts: HostCounts::default(),
            queue: BTreeMap::new(),
            deferred: BTreeMap::new(),
            sleeping: BTreeMap::new(),
            dead: BTreeMap::new(),
            visits: BTreeMap::new(),
            failing: BTreeMap::new(),
            to_parse: Vec::new(),
            events: Vec::new(),
            leases: BTreeMap::new(),
            last: Effects::default(),
            next_lease: 1,
        }
    }

    /// A bench whose host has these pages queued and has answered robots.txt with this text.
    pub(super) fn with_rules(settings: HostSettings, rules: &str, paths: &[&str]) -> Self {
        let mut bench = Self::new(settings);
        bench.admit(paths);
        let lease = bench.granted();
        bench.answer_robots(&lease, rules);
        bench.now = bench.machine.ready_at().max(bench.now);
        bench
    }

    pub(super) fn entry(&self, path: &str) -> QueueEntry {
        let url = CrawlUrl::parse(&format!("https://a.test{path}")).unwrap();
        let hash = crate::policy::normalise::url_hash(&crate::policy::normalise::recognised(&url));
        QueueEntry {
            id: UrlId { host: self.row.key.id(), hash, disambiguator: 0 },
            version: UrlVersion(1),
            url,
            depth: 0,
            band: u8::try_from(hash % 4).unwrap(),
            order: hash % 1000,
            attempts: 0,
            redirects: 0,
            validators: None,
            discovered_from: None,
        }
    }

    /// New URLs of the host: rows first, then the machine hears of them, as in a shard.
    pub(super) fn admit(&mut self, paths: &[&str]) {
        let entries: Vec<QueueEntry> = paths.iter().map(|path| self.entry(path)).collect();
        self.counts.known += u64::try_from(entries.len()).unwrap();
        self.enqueue(entries);
    }

    pub(super) fn enqueue(&mut self, entries: Vec<QueueEntry>) {
        for entry in &entries {
            let before = self.queue.insert((entry.band, entry.order, entry.id), entry.clone());
            assert!(before.is_none(), "W-1: in the queue twice");
        }
        self.counts.queued += u64::try_from(entries.len()).unwrap();
        self.step(HostEvent::Admitted(entries));
    }

    /// How a URL stands, as a store reads it.
    pub(super) fn visit(&self, id: UrlId) -> VisitRecord {
        let good = self.visits[&id].clone();
        self.failing.get(&id).map_or(good.clone(), |failing| good.failing(failing.clone()))
    }

    /// Entries whose time has come move from the due index to the queue.
    pub(super) fn move_due(&mut self) {
        let due: Vec<UrlId> = self
            .deferred
            .iter()
            .filter(|(_, (due, _))| *due <= self.now)
            .map(|(id, _)| *id)
            .collect();
        let moved: Vec<QueueEntry> =
            due.into_iter().map(|id| self.deferred.remove(&id).unwrap().1).collect();
        self.counts.deferred -= u64::try_from(moved.len()).unwrap();
        if !moved.is_empty() {
            self.enqueue(moved);
        }
    }

    /// One step, its effects done.
    pub(super) fn step(&mut self, event: HostEvent) -> Effects {
        let before = self.machine.record().clone();
        let effects = self.machine.step(Moment::new(self.now, self.dice), event);
        let after = self.machine.record();
        assert!(crate::policy::invariants::waits_only_grow(&before, after), "H-5");
        assert!(self.machine.in_flight() <= self.machine.allowed_in_flight().max(1), "H-2");
        for change in effects.changes.clone() {
            self.write(change);
        }
        let Effects { dequeued, deferred, slept, buried, .. } = effects;
        self.counts.queued -= u64::from(dequeued);
        self.counts.deferred += u64::from(deferred);
        self.counts.sleeping += u64::from(slept);
        self.counts.dead += u64::from(buried);
        if let Some(Grant { lease, .. }) = &effects.grant {
            assert!(self.leases.insert(lease.id, lease.clone()).is_none());
        }
        self.last = effects.clone();
        effects
    }

    fn write(&mut self, change: Change) {
        match change.clone() {
            Change::Dequeue { band, order, id } => {
                self.queue.remove(&(band, order, id));
            }
            Change::Defer { due, entry } => {
                let before = self.deferred.insert(entry.id, (due, *entry));
                assert!(before.is_none(), "W-1: deferred twice");
            }
            Change::Sleep { entry, .. } => {
                assert!(self.sleeping.insert(entry.id, *entry).is_none(), "W-1: asleep twice");
            }
            Change::PutDead(letter) => {
                assert!(self.dead.insert(letter.entry.id, *letter).is_none(), "dead twice");
            }
            Change::PutVisit(id, visit) => drop(self.visits.insert(id, *visit)),
            Change::PutFailing(id, visit) => drop(self.failing.insert(id, *visit)),
            Change::DropFailing(id) => drop(self.failing.remove(&id)),
            Change::PutToParse(row) => self.to_parse.push(row.id),
            Change::Emit(event) => self.events.push(*event),
            Change::PutHost(_, row) => {
                assert!(row.generation > self.row.generation, "every row has its generation");
                self.row = *row;
            }
            Change::PutRobots(_, row) => self.robots_row = Some(*row),
            Change::Record { row, .. } => {
                let LedgerRow::Ended { lease, .. } = *row else {
                    panic!("not a host's to write: {row:?}")
                };
                assert!(self.leases.remove(&lease).is_some(), "H-4: a lease ends once");
            }
            Change::PutUrl(..)
            | Change::Enqueue(_)
            | Change::Undefer { .. }
            | Change::Unsleep(_)
            | Change::PutUnjudged(_)
            | Change::DropUnjudged(_)
            | Change::PutCounts(..)
            | Change::DropToParse(..)
            | Change::DropDead(_)
            | Change::PutPayload(..)
            | Change::PutText(..)
            | Change::PutExclusion(_)
            | Change::DropExclusion(_)
            | Change::PutPurge(_)
            | Change::DropRobots(_)
            | Change::DropPayload(_)
            | Change::DropText(_)
            | Change::PutMeta(..)
            | Change::PutOutput { .. } => panic!("not a host's to write: {change:?}"),
        }
    }

    /// Offers credit and reads the queue until the offer is answered.
    pub(super) fn offer(&mut self) -> OfferAnswer {
        let lease = LeaseId(self.next_lease);
        self.next_lease += 1;
        let mut effects = self.step(HostEvent::Offered(lease));
        for _ in 0..64 {
            if let Some(answer) = effects.offer {
                self.last.grant = effects.grant;
                return answer;
            }
            let request = effects.load.expect("an offer is answered or waits for rows");
            let rows = self.rows(&request);
            effects = self
                .step(HostEvent::WindowLoaded { request: Box::new(request), rows: Box::new(rows) });
        }
        panic!("the offer is never answered");
    }

    /// Begins an offer and stops where the machine waits for rows.
    pub(super) fn offer_until_load(&mut self) -> WindowRequest {
        let lease = LeaseId(self.next_lease);
        self.next_lease += 1;
        self.step(HostEvent::Offered(lease)).load.expect("a window that wants rows")
    }

    /// The lease that the next offer brings.
    pub(super) fn granted(&mut self) -> Lease {
        match self.offer() {
            OfferAnswer::Granted => self.last.grant.clone().unwrap().lease,
            OfferAnswer::Withheld(reason) => panic!("withheld at {}: {reason:?}", self.now),
        }
    }

    /// Moves to the time the host asks for, then takes its lease.
    pub(super) fn next_lease(&mut self) -> Lease {
        self.now = self.machine.next_wake().expect("the host wants credit").max(self.now);
        self.granted()
    }

    pub(super) fn withheld(&mut self) -> Option<Reason> {
        match self.offer() {
            OfferAnswer::Withheld(reason) => reason,
            OfferAnswer::Granted => panic!("granted at {}", self.now),
        }
    }

    /// What the store has for a request.
    pub(super) fn rows(&self, request: &WindowRequest) -> WindowRows {
        let (mut rows, mut read) = (WindowRows::default(), 0);
        for band in 0..BANDS {
            let limit = request.rows_of(band, read);
            if limit == 0 {
                continue;
            }
            let beyond = self.queue.iter().filter(|((in_band, order, id), _)| {
                usize::from(*in_band) == band
                    && request.after[band].is_none_or(|after| (*order, *id) > after)
            });
            rows.rows[band] = beyond.take(limit).map(|(_, entry)| entry.clone()).collect();
            read += rows.rows[band].len();
            rows.exhausted[band] = rows.rows[band].len() < limit;
        }
        rows
    }

    /// The exchange of a lease, sent at its time and over after `took` milliseconds.
    pub(super) fn completion(&self, lease: &Lease, took: u64, outcome: Outcome) -> Completion {
        let sent = lease.not_before.max(self.now);
        let ended = sent + Duration::from_millis(took);
        let mut completion = Completion::failed(lease, ended, outcome, Reason::WorkerDied);
        completion.sent_at = Some(sent);
        if outcome.is_exchange() {
            completion.reason = None;
            completion.archive =
                Some(ArchivePointer { file: "f.warc.gz".into(), offset: 0, length: 9 });
            completion.status = status_of(outcome);
        }
        completion
    }

    pub(super) fn ended(&mut self, completion: Completion) -> Effects {
        self.now = self.now.max(completion.ended_at);
        self.step(HostEvent::Ended(Box::new(completion)))
    }

    pub(super) fn answer(&mut self, lease: &Lease, took: u64, outcome: Outcome) -> Effects {
        let completion = self.completion(lease, took, outcome);
        self.ended(completion)
    }

    /// 200 with this text, after a tenth of a second.
    pub(super) fn answer_robots(&mut self, lease: &Lease, text: &str) -> Effects {
        assert!(matches!(lease.kind, LeaseKind::Robots { .. }), "not robots: {lease:?}");
        let mut completion = self.completion(lease, 100, Outcome::Ok);
        completion.robots_body = Some(bytes::Bytes::copy_from_slice(text.as_bytes()));
        self.ended(completion)
    }

    pub(super) fn answer_robots_status(&mut self, lease: &Lease, status: u16) -> Effects {
        let outcome = Outcome::of_status(status).unwrap();
        let mut completion = self.completion(lease, 100, outcome);
        completion.status = Some(status);
        self.ended(completion)
    }

    /// The process dies, another one opens the shard: leases come back, the host is just visited.
    pub(super) fn reopen(&mut self) {
        if self.row.count_open(self.leases.values()) {
            self.row.generation += 1;
        }
        for lease in std::mem::take(&mut self.leases).into_values() {
            if lease.kind == LeaseKind::Page {
                let entry = lease.entry;
                self.queue.insert((entry.band, entry.order, entry.id), entry);
            }
        }
        self.opened_at = self.now;
        self.wake(None);
    }

    /// The host is put to rest and wakes again.
    pub(super) fn rest_and_wake(&mut self) {
        assert!(self.machine.is_idle());
        let snapshot = self.machine.snapshot(self.counts);
        let bytes = postcard::to_stdvec(&snapshot).unwrap();
        self.wake(Some(postcard::from_bytes(&bytes).unwrap()));
    }

    fn wake(&mut self, snapshot: Option<HostSnapshot>) {
        let mut seed = seed(&self.settings, self.row.clone(), self.counts, self.opened_at);
        seed.snapshot = snapshot;
        seed.robots = self
            .robots_row
            .as_ref()
            .map(|row| RobotsState::from_record(row, &self.settings.robots.product))
            .unwrap_or_default();
        seed.reservations = self.robots_row.as_ref().and_then(|row| row.reservations.clone());
        self.machine = HostMachine::wake(seed);
    }

    /// The names of the events so far.
    pub(super) fn event_kinds(&self) -> Vec<&'static str> {
        self.events.iter().map(|event| event.happening.kind()).collect()
    }

    /// W-1: where a URL is: in exactly one place, or visited.
    pub(super) fn place_of(&self, id: UrlId) -> Vec<&'static str> {
        let mut places = Vec::new();
        let queued = self.queue.keys().any(|(.., queued)| *queued == id);
        let leased = self.leases.values().any(|lease| lease.entry.id == id);
        if queued || leased {
            places.push("queued");
        }
        if self.deferred.contains_key(&id) {
            places.push("deferred");
        }
        if self.sleeping.contains_key(&id) {
            places.push("asleep");
        }
        if self.dead.contains_key(&id) {
            places.push("dead");
        }
        let ended = [UrlStatus::Fetched, UrlStatus::Gone];
        if self.visits.get(&id).is_some_and(|visit| ended.contains(&visit.status))
            && !self.deferred.contains_key(&id)
        {
            places.push("visited");
        }
        places
    }

    pub(super) fn tombstones(&self) -> usize {
        let gone = |event: &&CrawlEvent| matches!(event.happening, Happening::Tombstone { .. });
        self.events.iter().filter(gone).count()
    }
}

fn seed(
    settings: &Arc<HostSettings>,
    record: HostRecord,
    counts: HostCounts,
    opened_at: Timestamp,
) -> HostSeed {
    HostSeed {
        id: record.key.id(),
        epoch: Epoch(1),
        settings: Arc::clone(settings),
        exclusions: Arc::default(),
        record,
        counts,
        robots: RobotsState::Unfetched,
        reservations: None,
        leases: Vec::new(),
        snapshot: None,
        opened_at,
    }
}

/// The status that a test means by an outcome.
fn status_of(outcome: Outcome) -> Option<u16> {
    [404, 500, 429, 301, 304, 200]
        .into_iter()
        .find(|code| Outcome::of_status(*code) == Some(outcome))
}
