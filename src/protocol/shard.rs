//! To a ShardActor: admissions, its hosts' effects, ends of exchanges, answers of its store.
//!
//! No handler of a shard waits: what needs the store, the resolver or an address comes back as a
//! message of its own.

use std::collections::BTreeMap;

use ractor::ActorId;
use serde::{Deserialize, Serialize};

use super::purge::ForgetRead;
use super::{Answer, HostPhase, HostView, Permit};
use crate::policy::host::{Effects, Errand};
use crate::policy::why::Facts;
use crate::policy::window::{WindowRequest, WindowRows};
use crate::types::{
    Completion, ContentRecord, CrawlEvent, CrawlUrl, DeadLetter, EventSeq, ExclusionRecord,
    HostCounts, HostId, HostKey, HostOverrides, HostRecord, LeaseId, Outcome, PurgeRecord,
    QueueEntry, Reason, Response, RobotsRecord, ShardId, Timestamp, ToParse, UrlId, UrlRecord,
    UrlVersion, UrlView,
};
use crate::world::Resolved;

/// The mailbox of a ShardActor. Grants are bounded by its credit, admissions by the permits of the
/// pages they come from, store answers by one read of a kind at a time.
#[derive(Debug)]
pub enum ShardMsg {
    /// Candidates of one page or one load of seeds; answered when durable (F12).
    Admit(AdmitBatch),
    /// A host took a step.
    Stepped(Box<Stepped>),
    /// The actor of a host failed before it was started; nobody else says so.
    NotStarted {
        /// Which actor.
        actor: ActorId,
        /// Why.
        why: String,
    },
    /// A host wrote its snapshot and is about to stop.
    Retired {
        /// Which.
        host: HostId,
        /// When it wants credit again.
        next_wake: Option<Timestamp>,
    },
    /// An exchange ended: from the archive when synced, from a fetcher when nothing was stored.
    Ended(Box<EndedReport>),
    /// A parser died over this page, or read no record for it.
    ParserDied {
        /// The page.
        id: UrlId,
        /// Its version.
        version: UrlVersion,
    },
    /// Pages are in the outputs' files: drop their rows and commit the offsets in one batch (B6).
    Published(Box<PublishedBatch>),
    /// The resolver's answer for a grant.
    Resolved {
        /// The grant.
        lease: LeaseId,
        /// Its answer.
        answer: Result<Resolved, Reason>,
    },
    /// An address has a place for a grant; `None` when its owner is gone.
    Permitted {
        /// The grant.
        lease: LeaseId,
        /// The earliest time of sending.
        not_before: Option<Timestamp>,
    },
    /// The robots.txt of another shard's host redirects to a host of this one.
    RunErrand(Errand),
    /// An errand of a host of this shard has ended.
    ErrandEnded {
        /// Whose rules were asked for.
        for_host: HostKey,
        /// How it went; `None` when the other shard is gone.
        completion: Option<Box<Completion>>,
    },
    /// An answer of its store.
    Store(StoreReply),
    /// Its timer rang.
    Tick,
    /// An operator changes what is set for one host.
    Order(HostOrder, Answer<Option<HostOverrides>>),
    /// Stop granting, or go on; answered when durable, so that a restart does not forget it.
    Pause(bool, Answer<()>),
    /// R5: what this covers is asked for no more from here on; answered when durable.
    Exclude(Box<ExclusionRecord>, Answer<()>),
    /// The exclusion of this id is gone, if there was one; answered when durable.
    LiftExclusion(String, Answer<()>),
    /// Its exclusions.
    ListExclusions(Answer<Vec<ExclusionRecord>>),
    /// R5: the order to remove what is stored, or how far it is; answered when durable.
    PutPurge(Box<PurgeRecord>, Answer<()>),
    /// Its orders, those that are done too.
    ListPurges(Answer<Vec<PurgeRecord>>),
    /// Rows of what the order of this id covers lose what visits brought; answered with the number
    /// of their URLs, when durable.
    Forget(String, Answer<u64>),
    /// Dead letters go back into their queues; answered with their number, durable (F8).
    RetryDead(DeadSelection, Answer<Result<u64, String>>),
    /// One URL.
    LookUpUrl(CrawlUrl, Answer<Result<Option<Box<UrlView>>, String>>),
    /// All that bears on a URL, known or not (B1).
    Why(CrawlUrl, Answer<Result<Box<Facts>, String>>),
    /// One host; a resident one speaks for itself.
    LookUpHost(HostKey, Answer<Result<Option<Box<HostDetail>>, String>>),
    /// Hosts that have seeds.
    ListSeeded(Answer<Result<Vec<HostKey>, String>>),
    /// A page of hosts.
    ListHosts(HostFilter, Answer<Result<HostPage, String>>),
    /// A page of dead letters.
    ListDead(Option<UrlId>, u16, Answer<Result<Vec<DeadLetter>, String>>),
    /// Durable events after a place in the outbox.
    ReadEvents(EventSeq, u16, Answer<Result<Vec<(EventSeq, CrawlEvent)>, String>>),
    /// Where a payload already lies (D3).
    LookUpPayload(String, Answer<Option<Box<ContentRecord>>>),
    /// A payload is in the archive: remembered for later captures (D3).
    KnowPayload(String, Box<ContentRecord>),
    /// Which page has this text already; remembers the asker's if none has (D3).
    ClaimText(u128, Box<ContentRecord>, Answer<Option<Box<ContentRecord>>>),
    /// The store's word on a text that is being claimed.
    TextRead(
        u128,
        Option<Box<ContentRecord>>,
        Box<ContentRecord>,
        Answer<Option<Box<ContentRecord>>>,
    ),
    /// The configuration was reloaded.
    Reload,
    /// The other shards of the node are open too: grants may begin.
    Begin,
    /// Stop granting for good; in-flight work goes on.
    Drain,
    /// Make all durable, put hosts to sleep, close the store.
    Close(Answer<Result<(), String>>),
    /// Say how it stands.
    Observe(Answer<Box<ShardView>>),
}

/// Candidates for one shard.
#[derive(Debug)]
pub struct AdmitBatch {
    /// The candidates.
    pub candidates: Vec<Candidate>,
    /// Answered when the new ones are durable.
    pub answer: Answer<AdmitAnswer>,
}

/// A URL that scope allows, not yet known to be new.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Its host.
    pub host: HostKey,
    /// XXH3-64 of its recognised form: the hash of its table key.
    pub hash: u64,
    /// The row it gets when it is new.
    pub record: UrlRecord,
    /// It was given by an operator, or a seed redirects to it.
    pub is_seed: bool,
}

/// What became of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AdmitAnswer {
    /// One for each candidate, in order.
    pub results: Vec<Admission>,
}

/// What became of one candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// New, durable, queued.
    Added,
    /// Known already (I4).
    Known,
    /// Refused, counted.
    Refused(Reason),
}

/// One step of a host.
#[derive(Debug)]
pub struct Stepped {
    /// Which host.
    pub host: HostId,
    /// What it wants done.
    pub effects: Effects,
    /// Its row after the step.
    pub record: HostRecord,
    /// When it wants credit.
    pub next_wake: Option<Timestamp>,
    /// Nothing in flight, nothing asked for: it may go to sleep.
    pub idle: bool,
    /// What it is doing.
    pub phase: HostPhase,
    /// Why it waits.
    pub reason: Option<Reason>,
}

/// The end of an exchange.
#[derive(Debug)]
pub struct EndedReport {
    /// How it went.
    pub completion: Completion,
    /// The response, on its way to a parser.
    pub response: Option<Box<Response>>,
    /// The memory it takes.
    pub permit: Permit,
}

/// Pages whose documents are synced.
#[derive(Debug)]
pub struct PublishedBatch {
    /// The pages.
    pub pages: Vec<PublishedPage>,
    /// The committed state of each output.
    pub outputs: Vec<(String, Vec<u8>)>,
    /// Answered when the batch is in.
    pub answer: Answer<()>,
}

/// One published page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedPage {
    /// Its row, to be dropped.
    pub row: ToParse,
    /// Links handed to discovery.
    pub links: u32,
    /// The page with the same text.
    pub duplicate_of: Option<String>,
    /// The version of the parser; 0 where none made a document.
    pub parser_version: u32,
}

/// What a shard's store answers.
#[derive(Debug)]
pub enum StoreReply {
    /// The one write under way is in, with the number of its last event, or failed.
    Written(Result<Option<EventSeq>, StoreFault>),
    /// All writes before it are durable, or not.
    Flushed(Result<(), StoreFault>),
    /// What the admissions under way had to know.
    AdmissionRead(Result<Box<AdmissionRead>, StoreFault>),
    /// A host that is waking.
    HostRead(HostId, Result<Option<Box<HostRead>>, StoreFault>),
    /// Rows of a host's queue, for the actor that asked.
    WindowRead(HostId, ActorId, Box<WindowRequest>, Result<Box<WindowRows>, StoreFault>),
    /// Entries whose due time has come.
    DueRead(Result<DueRead, StoreFault>),
    /// Sleepers of a host whose rules changed; the flag says that there are more.
    SleepersRead(HostId, Result<(Vec<QueueEntry>, bool), StoreFault>),
    /// Pages that wait for a parser.
    ToParseRead(Result<Vec<ToParse>, StoreFault>),
    /// Keys of the URL table after this one, for a filter that has to be made again.
    FilterRead(Option<UrlId>, Result<Vec<UrlId>, StoreFault>),
    /// A page of hosts, for the exclusion that was lifted under this number.
    LiftedRead(u64, Result<Vec<(HostId, HostRecord, HostCounts)>, StoreFault>),
    /// A page of rows for the purge of this id.
    ForgetRead(String, Result<Box<ForgetRead>, StoreFault>),
    /// Dead letters to be queued again.
    DeadRead(Result<Vec<DeadLetter>, StoreFault>, Answer<Result<u64, String>>),
    /// The row of a sleeping host that an operator's order is for.
    OrderRead(HostOrder, Option<Box<(HostRecord, HostCounts)>>, Answer<Option<HostOverrides>>),
}

impl StoreReply {
    /// How a read went; `None` for writes and flushes.
    pub fn of_read(&self) -> Option<Result<(), &StoreFault>> {
        fn done<T>(result: &Result<T, StoreFault>) -> Option<Result<(), &StoreFault>> {
            Some(result.as_ref().map(drop))
        }
        match self {
            Self::Written(_) | Self::Flushed(_) => None,
            Self::AdmissionRead(read) => done(read),
            Self::HostRead(_, read) => done(read),
            Self::WindowRead(_, _, _, read) => done(read),
            Self::DueRead(read) => done(read),
            Self::SleepersRead(_, read) => done(read),
            Self::ToParseRead(read) => done(read),
            Self::FilterRead(_, read) => done(read),
            Self::LiftedRead(_, read) => done(read),
            Self::ForgetRead(_, read) => done(read),
            Self::DeadRead(read, _) => done(read),
            Self::OrderRead(..) => Some(Ok(())),
        }
    }
}

/// Entries that fell due, and when the next one will.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DueRead {
    /// With the time each is filed under.
    pub entries: Vec<(Timestamp, QueueEntry)>,
    /// The first one left.
    pub next: Option<Timestamp>,
}

/// A failure of the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreFault {
    /// Another owner has opened the store: stop at once (I1).
    Fenced,
    /// Anything else, in words; tried again.
    Failed(String),
}

/// What a gathered read for admissions found.
#[derive(Clone, Debug, Default)]
pub struct AdmissionRead {
    /// The rows at the table keys asked for, with the key.
    pub urls: BTreeMap<UrlId, Option<UrlRecord>>,
    /// The hosts asked for, by id; `None` for new ones.
    pub hosts: BTreeMap<HostId, Option<(HostRecord, HostCounts)>>,
}

/// What a waking host needs from the store.
#[derive(Clone, Debug)]
pub struct HostRead {
    /// Its row.
    pub record: HostRecord,
    /// Its counts.
    pub counts: HostCounts,
    /// Its last robots.txt.
    pub robots: Option<RobotsRecord>,
}

/// What an operator wants of one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOrder {
    /// The host.
    pub host: HostKey,
    /// Absent fields stay as they are; an inner `None` returns to the configuration.
    pub paused: Option<bool>,
    /// See [`HostOverrides::min_delay`].
    pub min_delay: Option<Option<std::time::Duration>>,
    /// See [`HostOverrides::max_in_flight`].
    pub max_in_flight: Option<Option<u16>>,
    /// See [`HostOverrides::daily_pages`].
    pub daily_pages: Option<Option<u64>>,
}

/// Which dead letters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadSelection {
    /// These.
    Urls(Vec<CrawlUrl>),
    /// All of a host.
    Host(HostKey),
    /// All.
    All,
}

/// Which hosts to list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostFilter {
    /// After this one.
    pub after: Option<HostId>,
    /// At most.
    pub limit: u16,
    /// Only in this state.
    pub phase: Option<HostPhase>,
    /// Only of this registered domain.
    pub domain: Option<String>,
}

/// A page of hosts and where the next one begins.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostPage {
    /// The hosts.
    pub hosts: Vec<HostSummary>,
    /// The last host looked at; `None` when there are no more.
    pub next: Option<HostId>,
}

/// One line of a list of hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostSummary {
    /// The host.
    pub host_key: HostKey,
    /// What it is doing.
    pub state: HostPhase,
    /// Why it waits.
    pub reason: Option<String>,
    /// I2: no request before.
    pub next_allowed_at: Option<Timestamp>,
    /// Requests in flight.
    pub in_flight: u32,
    /// URLs queued.
    pub queued: u64,
    /// Requests today.
    pub pages_today: u64,
}

/// One host, with what its shard knows of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostDetail {
    /// The HostActor's own state; of a sleeping host, made from its row.
    #[serde(flatten)]
    pub view: HostView,
    /// URLs queued.
    pub queued: u64,
    /// All its counts.
    pub urls: HostCounts,
    /// An actor is resident.
    pub resident: bool,
    /// Restarts of its actor.
    pub restarts: u32,
    /// Its shard.
    pub shard: ShardId,
    /// The addresses its name resolves to, where known.
    pub address: Vec<std::net::IpAddr>,
}

/// The state of a ShardActor: its part of `GET /v1/status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ShardView {
    /// Which.
    pub shard: ShardId,
    /// Its owner's term.
    pub epoch: u32,
    /// Nothing is granted because an operator paused it.
    pub paused: bool,
    /// Why it is degraded, if it is (A4).
    pub degraded: Vec<String>,
    /// URLs known, queued, deferred, sleeping, dead.
    pub urls: HostCounts,
    /// Leases granted and not ended.
    pub in_flight: u32,
    /// Those of them that are for pages: their URLs are still among the queued ones.
    pub pages_in_flight: u32,
    /// Hosts known.
    pub hosts_known: u64,
    /// Hosts with an actor.
    pub hosts_resident: u32,
    /// Hosts with something queued whose time has come.
    pub hosts_ready: u32,
    /// Hosts with something queued whose clock runs, and without a request in flight.
    pub hosts_waiting: u32,
    /// Hosts parked.
    pub hosts_parked: u32,
    /// Hosts with a request in flight that are not parked.
    pub hosts_in_flight: u32,
    /// Exchanges ended other than robots.txt.
    pub pages: u64,
    /// All exchanges ended, by outcome.
    pub outcomes: BTreeMap<Outcome, u64>,
    /// Bytes of bodies as received.
    pub bytes: u64,
    /// When a host may next be asked, or a deferred URL falls due.
    pub next_wake: Option<Timestamp>,
    /// Batches of candidates under way.
    pub admitting: u32,
    /// Pages that wait for a parser or are being parsed.
    pub parsing: u32,
    /// Pages that a parser or what follows it has.
    pub being_parsed: u32,
    /// Writes not yet durable.
    pub unwritten: u32,
    /// Offers of credit that hosts have not answered, and hosts that are waking.
    pub offers: u32,
    /// How late the most overdue host is, in seconds (F9).
    pub lag_seconds: f64,
    /// Completions that came twice (I5).
    pub repeated: u64,
    /// HostActors restarted.
    pub restarts: u64,
    /// Requests that broke a rule when they were checked at sending (must be 0).
    pub violations: u64,
    /// Up to a hundred hosts that wait for long, with reason and time.
    pub parked: Vec<ParkedHost>,
    /// The last event made durable.
    pub last_event: u64,
}

impl ShardView {
    /// URLs in the queue that are not in flight.
    pub fn queued(&self) -> u64 {
        self.urls.queued.saturating_sub(u64::from(self.pages_in_flight))
    }
}

/// A host that waits for long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ParkedHost {
    /// The host.
    pub host_key: HostKey,
    /// Why.
    pub reason: String,
    /// Until when.
    pub until: Option<Timestamp>,
    /// URLs it has queued.
    pub queued: u64,
    /// It waits until an operator does something, however long that takes.
    #[serde(default)]
    pub needs_operator: bool,
}
