//! The rows of a shard: what is durable about a URL, a host, a request.
//!
//! A URL has two rows, so that a completion writes without reading: what it is ([`UrlRecord`],
//! written when it becomes known) and how its last visit went ([`VisitRecord`]).

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    ArchivePointer, CrawlUrl, DelaySource, HostKey, Lease, LeaseId, Outcome, Reason, Timestamp,
    UrlId, UrlVersion, Validators,
};

/// What a URL is: written once, when it is admitted (D2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UrlRecord {
    /// What is requested.
    pub url: CrawlUrl,
    /// Links away from a seed.
    pub depth: u16,
    /// Priority band, 0 first.
    pub band: u8,
    /// Place in the band.
    pub order: u64,
    /// Redirects that led here in a row, and sitemaps: discovery packs and bounds both.
    pub redirects: u8,
    /// The page that named it; `None` for a seed.
    pub discovered_from: Option<CrawlUrl>,
    /// When it became known.
    pub discovered_at: Timestamp,
}

/// Where a URL stands after its last visit or refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UrlStatus {
    /// Waits in its host's queue.
    Queued,
    /// Failed, tried again later.
    Retrying,
    /// Refused by robots rules or an exclusion; judged again when those change (R2, R5).
    Sleeping,
    /// Visited; the outcome says how.
    Fetched,
    /// Tried too often.
    Dead,
    /// 404 or 410.
    Gone,
}

/// How the last visit of a URL went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitRecord {
    /// The version of that visit.
    pub version: UrlVersion,
    /// Where the URL stands.
    pub status: UrlStatus,
    /// How the exchange ended; `None` while none took place.
    pub outcome: Option<Outcome>,
    /// The status code.
    pub status_code: Option<u16>,
    /// Tries in this version.
    pub attempts: u8,
    /// When the last exchange ended.
    pub last_fetched_at: Option<Timestamp>,
    /// When it is due again.
    pub next_fetch_at: Option<Timestamp>,
    /// SHA-1 of the payload.
    pub digest: Option<String>,
    /// Where the response lies.
    pub archive: Option<ArchivePointer>,
    /// For the next visit.
    pub validators: Option<Validators>,
    /// Why it stands there.
    pub reason: Option<Reason>,
}

impl VisitRecord {
    /// F8: how a known page stands while later visits of it fail: their outcome and what follows,
    /// with what the last good visit brought. One that is no later is over.
    #[must_use]
    pub fn failing(self, later: Self) -> Self {
        if later.version <= self.version {
            return self;
        }
        Self {
            last_fetched_at: self.last_fetched_at,
            digest: self.digest,
            archive: self.archive,
            validators: self.validators,
            ..later
        }
    }
}

impl VisitRecord {
    /// R5: forgets what the visit brought and why it stands where it does, for this reason; where
    /// it stands and its version stay. False when there is nothing of the kind.
    pub fn forget(&mut self, reason: Reason) -> bool {
        let Self { outcome, status_code, last_fetched_at, digest, archive, validators, .. } = self;
        let brought = [
            outcome.take().is_some(),
            status_code.take().is_some(),
            last_fetched_at.take().is_some(),
            digest.take().is_some(),
            archive.take().is_some(),
            validators.take().is_some(),
        ];
        let any = brought.contains(&true) || self.reason.as_ref() == Some(&reason);
        if any {
            self.reason = Some(reason);
        }
        any
    }
}

/// What an operator set for one host; absent fields follow the configuration (F11).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostOverrides {
    /// Nothing is granted.
    pub paused: bool,
    /// Instead of `politeness.min_delay`.
    pub min_delay: Option<Duration>,
    /// Instead of `politeness.max_in_flight`.
    pub max_in_flight: Option<u16>,
    /// Instead of `politeness.host_daily_pages`.
    pub daily_pages: Option<u64>,
    /// Raised by every change.
    pub version: u32,
}

/// Failures of a host in a row and what they cost it (F7).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BackoffState {
    /// 429 and 503 in a row.
    pub refusals: u16,
    /// Connection failures in a row.
    pub failures: u16,
    /// How much slower than configured, at least 1; recovers slowly.
    pub slowdown: f32,
}

/// What is durable about a host: its waits, budgets and policy versions.
///
/// Enough to wake it safely when its snapshot is missing, older or damaged (I3).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostRecord {
    /// The host.
    pub key: HostKey,
    /// Raised by every write of this row; a snapshot of another generation is not used.
    pub generation: u64,
    /// I2: no request before.
    pub next_allowed_at: Timestamp,
    /// What set it.
    pub set_by: DelaySource,
    /// I3: until when the site asked to stay away; never shortened.
    pub site_wait_until: Option<Timestamp>,
    /// The delay in force, to count the host as just visited at the start.
    pub delay: Duration,
    /// Failures in a row.
    pub backoff: BackoffState,
    /// The day `requests_today` counts for.
    pub budget_day: u32,
    /// Requests of that day, robots included (F11). A row counts those that have ended: the leases
    /// of the others stand in the ledger, and say the rest ([`HostRecord::count_open`]).
    pub requests_today: u64,
    /// What the operator set.
    pub overrides: HostOverrides,
    /// Why the host's actor is parked, if it is (A1).
    pub parked: Option<Reason>,
    /// Changes of state so far, the version of its events.
    pub state_changes: u64,
    /// Why nothing is known of its robots.txt that decides (R2).
    pub hindered: Option<Box<Hindrance>>,
}

/// R2: why nothing goes out until robots.txt has been asked for again.
///
/// Either asking failed on our side: a worker died, the archive refused the answer, the address
/// may not be connected to. That says nothing of the site, so what is known of its rules stays as
/// it is. Or the site did not give it and there is no good copy: then the robots row decides, and
/// this says so to whoever has the host's row only.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hindrance {
    /// When it is tried again.
    pub retry_at: Timestamp,
    /// Tries in a row.
    pub tries: u16,
    /// What went wrong.
    pub reason: Reason,
}

impl HostRecord {
    /// The row of a host never visited.
    pub fn new(key: HostKey) -> Self {
        Self {
            key,
            generation: 0,
            next_allowed_at: Timestamp::EPOCH,
            set_by: DelaySource::MinDelay,
            site_wait_until: None,
            delay: Duration::ZERO,
            backoff: BackoffState::default(),
            budget_day: 0,
            requests_today: 0,
            overrides: HostOverrides::default(),
            parked: None,
            state_changes: 0,
            hindered: None,
        }
    }

    /// What stops it until an operator says otherwise: failures of its actor, a pause.
    pub fn stopped(&self) -> Option<Reason> {
        let paused = self.overrides.paused.then_some(Reason::Paused);
        self.parked.clone().or(paused)
    }

    /// Requests of a day.
    pub fn requests_on(&self, day: u32) -> u64 {
        if self.budget_day == day { self.requests_today } else { 0 }
    }

    /// The next day, where the requests of the day on which it may be asked again are used up.
    pub fn used_up_until(&self, budget: u64) -> Option<Timestamp> {
        let asked = self.site_wait_until.unwrap_or(Timestamp::EPOCH);
        let next = self.next_allowed_at.max(asked);
        (self.requests_on(next.day()) >= budget && self.budget_day == next.day())
            .then(|| next.next_day())
    }

    /// I3: after a start a host that was visited counts as just visited.
    pub fn visit_at(&mut self, opened_at: Timestamp) {
        let just_visited = opened_at + self.delay;
        if !self.delay.is_zero() && self.next_allowed_at < just_visited {
            self.next_allowed_at = just_visited;
            self.set_by = DelaySource::Start;
        }
    }

    /// When it may be asked at the earliest: its clock, what the site asked for, our own trouble.
    pub fn rests_until(&self) -> Timestamp {
        let asked = self.site_wait_until.unwrap_or(self.next_allowed_at);
        let hindered = self.hindered.as_ref().map_or(asked, |hindrance| hindrance.retry_at);
        self.next_allowed_at.max(asked).max(hindered)
    }

    /// What a row of this record says while these leases of the host are open.
    pub fn row<'a>(&self, open: impl Iterator<Item = &'a Lease>) -> Self {
        let today = open.filter(|lease| lease.not_before.day() == self.budget_day).count();
        let today = u64::try_from(today).unwrap_or(u64::MAX);
        Self { requests_today: self.requests_today.saturating_sub(today), ..self.clone() }
    }

    /// Takes into account the open leases that a row leaves to their own rows: each is a request
    /// of its day, and the next one keeps its distance from it (I3). False when there are none.
    pub fn count_open<'a>(&mut self, open: impl Iterator<Item = &'a Lease>) -> bool {
        let mut any = false;
        for lease in open {
            any = true;
            let day = lease.not_before.day();
            if day > self.budget_day {
                (self.budget_day, self.requests_today) = (day, 0);
            }
            self.requests_today += u64::from(day == self.budget_day);
            self.next_allowed_at = self.next_allowed_at.max(lease.not_before + self.delay);
        }
        any
    }
}

/// How many URLs a host has; kept by its shard, beside the host's row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostCounts {
    /// URLs known.
    pub known: u64,
    /// URLs in the queue.
    pub queued: u64,
    /// URLs with a later due time: retries and revisits.
    pub deferred: u64,
    /// URLs that robots rules or exclusions refuse.
    pub sleeping: u64,
    /// Dead letters.
    pub dead: u64,
    /// Seeds among the known ones: the scope of later runs goes on from them.
    pub seeds: u64,
}

/// R2: the last robots.txt of a host, as it must survive a lost snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RobotsRecord {
    /// When the answer came.
    pub fetched_at: Timestamp,
    /// When the decision ends.
    pub expires_at: Timestamp,
    /// What it was.
    pub answer: RobotsKept,
    /// R6: what the host keeps back, where that was asked for. Last, so that a row without it is
    /// one byte short of a row with none.
    pub reservations: Option<Box<ReservationsRecord>>,
}

/// R6: the last `/.well-known/tdmrep.json` of a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationsRecord {
    /// When the answer came.
    pub fetched_at: Timestamp,
    /// When it is asked for again.
    pub expires_at: Timestamp,
    /// Its text, cut at `robots.max_size`; empty where there is none.
    pub text: bytes::Bytes,
    /// It was longer than is read, so what it keeps back is not known.
    pub is_cut: bool,
}

/// What a robots.txt exchange left behind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RobotsKept {
    /// 2xx: the text, cut at `robots.max_size`.
    Rules(bytes::Bytes),
    /// 4xx: everything is allowed.
    AllowAll,
    /// 5xx, 429 or no answer: everything waits, the last good copy serves on.
    Unreachable {
        /// Since when.
        since: Timestamp,
        /// One phrase.
        why: String,
        /// The last 2xx text.
        last_good: Option<bytes::Bytes>,
        /// Answers like this in a row.
        attempts: u16,
    },
}

/// F8: a URL that was given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    /// The URL and all that a retry needs.
    pub entry: super::QueueEntry,
    /// Why.
    pub reason: Reason,
    /// Tries made.
    pub attempts: u8,
    /// When the last one ended.
    pub last_at: Timestamp,
}

/// B2: two rows a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum LedgerRow {
    /// Written with the grant.
    Granted {
        /// The lease as it was written.
        lease: Arc<Lease>,
        /// What set `not_before`.
        set_by: DelaySource,
        /// Version of the policy in force: a hash of the politeness settings and overrides.
        policy: u64,
    },
    /// Written with the completion.
    Ended {
        /// The lease.
        lease: LeaseId,
        /// When the request was sent; `None` when it never was.
        sent_at: Option<Timestamp>,
        /// When the exchange ended.
        ended_at: Timestamp,
        /// How.
        outcome: Outcome,
        /// Where it went.
        address: Option<IpAddr>,
    },
}

impl LedgerRow {
    /// The lease that it speaks of.
    pub fn lease(&self) -> LeaseId {
        match self {
            Self::Granted { lease, .. } => lease.id,
            Self::Ended { lease, .. } => *lease,
        }
    }
}

/// D3: where identical content lies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContentRecord {
    /// The first URL that had it.
    pub url: CrawlUrl,
    /// When it was fetched.
    pub fetched_at: Timestamp,
    /// The record that holds the payload.
    pub archive: ArchivePointer,
}

/// R5: a rule made at runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExclusionRecord {
    /// Its id.
    pub id: String,
    /// `host:…`, `domain:…` or `surt:…`.
    pub rule: String,
    /// The operator's words.
    pub reason: Option<String>,
    /// When it ends; `None` for good.
    pub until: Option<Timestamp>,
    /// When it was made.
    pub made_at: Timestamp,
}

/// A URL and its last visit together, as `GET /v1/urls` shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlView {
    /// Its identity.
    pub id: UrlId,
    /// What it is.
    pub record: UrlRecord,
    /// How its last visit went.
    pub visit: Option<VisitRecord>,
    /// The lease in flight, if any.
    pub lease: Option<LeaseId>,
    /// What holds the crawl or its host, in one sentence.
    pub held: Option<String>,
}

impl UrlView {
    /// Why it stands where it stands: what its last visit left behind, or what holds its host
    /// where it waits in the queue.
    pub fn reason(&self, now: Timestamp) -> Option<String> {
        let visit = self.visit.as_ref();
        let told = visit.and_then(|visit| visit.reason.as_ref()).map(ToString::to_string);
        let queued = self.lease.is_none()
            && visit.is_none_or(|visit| match visit.status {
                UrlStatus::Queued => true,
                UrlStatus::Retrying => visit.next_fetch_at.is_none_or(|due| due <= now),
                UrlStatus::Sleeping | UrlStatus::Fetched | UrlStatus::Dead | UrlStatus::Gone => {
                    false
                }
            });
        self.held.clone().filter(|_| queued).or(told)
    }
}
