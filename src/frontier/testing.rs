//! A frontier on a bench: real shards and store, paused time, a world that obeys the test.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult,
};
use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use super::{AddressActor, AddressArgs, FrontierSettings, ShardActor, ShardArgs, SharedQuota};
use crate::policy::address_clock::AddressRules;
use crate::policy::domain_clock::DomainRules;
use crate::policy::host::HostSettings;
use crate::policy::normalise;
use crate::policy::politeness::Politeness;
use crate::policy::quota::{Quota, QuotaRules};
use crate::policy::retry::Retries;
use crate::policy::robots::RobotsSettings;
use crate::protocol::shard::{
    Admission, AdmitBatch, Candidate, EndedReport, PublishedBatch, PublishedPage, ShardView,
};
use crate::protocol::{
    AddressMsg, Answer, FetchJob, OutputMsg, ParseJob, Permit, Routes, ShardMsg, ShardRoute,
};
use crate::storage::{MemorySnapshots, ShardStore, StoreOptions};
use crate::types::{
    ArchivePointer, Completion, CrawlEvent, CrawlUrl, EventSeq, HostId, Lease, LeaseKind, Outcome,
    Reason, Response, ShardId, Timestamp, UrlRecord,
};
use crate::world::{
    Clock, Dice, Exchange, ExchangeFailure, ExchangeRequest, Exchanged, MemorySpool, Objects,
    Resolved, Resolver, SeededDice, SnapshotStore, TokioClock, World,
};

/// Milliseconds after the start of every test.
pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(4_000_000_000_000 + millis)
}

pub(super) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A clock that notices when a run turns round on the spot.
#[derive(Debug)]
struct WatchfulClock {
    clock: TokioClock,
    seen: AtomicU64,
    times: AtomicU32,
}

/// Questions about the time within one virtual millisecond.
const LOOKS_MAX: u32 = 200_000;

#[async_trait]
impl Clock for WatchfulClock {
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        let millis = u64::try_from(now.as_millis()).unwrap();
        if self.seen.swap(millis, Ordering::SeqCst) == millis {
            let times = self.times.fetch_add(1, Ordering::SeqCst);
            assert!(times < LOOKS_MAX, "turns round on the spot at {now}");
        } else {
            self.times.store(0, Ordering::SeqCst);
        }
        now
    }

    async fn sleep_until(&self, at: Timestamp) {
        self.clock.sleep_until(at).await;
    }
}

/// Dice that make whoever throws them panic, when told.
#[derive(Debug)]
pub(super) struct LoadedDice {
    dice: SeededDice,
    panics: AtomicU32,
}

impl LoadedDice {
    /// The next throws panic.
    pub(super) fn load(&self, panics: u32) {
        self.panics.store(panics, Ordering::SeqCst);
    }
}

impl Dice for LoadedDice {
    fn throw(&self) -> u64 {
        let left = self
            .panics
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        assert!(left.is_err(), "the dice are loaded");
        self.dice.throw()
    }
}

/// Snapshots whose reader panics, when told.
#[derive(Debug, Default)]
pub(super) struct LoadedSnapshots {
    kept: MemorySnapshots,
    pub(super) panics: AtomicU32,
}

impl SnapshotStore for LoadedSnapshots {
    fn get(&self, host: HostId) -> Option<Vec<u8>> {
        let left = self
            .panics
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        assert!(left.is_err(), "the snapshots are loaded");
        self.kept.get(host)
    }

    fn put(&self, host: HostId, snapshot: Vec<u8>) {
        self.kept.put(host, snapshot);
    }

    fn remove(&self, host: HostId) {
        self.kept.remove(host);
    }
}

/// Names to addresses: the table, else 10.0.0.1. A name that ends in `.gone` does not resolve.
#[derive(Debug, Default)]
struct Table(Mutex<BTreeMap<String, IpAddr>>);

#[async_trait]
impl Resolver for Table {
    async fn resolve(&self, host: &str) -> Result<Resolved, Reason> {
        if host.ends_with(".gone") {
            return Err(Reason::Dns { why: "no such name".to_owned() });
        }
        let table = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let address = table.get(host).copied().unwrap_or(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)));
        Ok(Resolved { addresses: vec![address], until: Timestamp::NEVER })
    }
}

#[derive(Debug)]
struct NoExchange;

#[async_trait]
impl Exchange for NoExchange {
    async fn exchange(&self, request: ExchangeRequest) -> Result<Exchanged, ExchangeFailure> {
        panic!("the frontier does not fetch: {request:?}");
    }
}

/// An object store in memory whose writes and reads fail, or take long, when told.
#[derive(Debug)]
pub(super) struct FlakyStore {
    inner: InMemory,
    pub(super) fails: AtomicBool,
    pub(super) slow_ms: AtomicU64,
}

impl FlakyStore {
    async fn trouble(&self) -> object_store::Result<()> {
        let wait = self.slow_ms.load(Ordering::SeqCst);
        if wait > 0 {
            #[expect(clippy::disallowed_methods, reason = "the store stands for the outside")]
            tokio::time::sleep(Duration::from_millis(wait)).await;
        }
        match self.fails.load(Ordering::SeqCst) {
            true => {
                Err(object_store::Error::Generic { store: "flaky", source: "told to fail".into() })
            }
            false => Ok(()),
        }
    }
}

impl fmt::Display for FlakyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("flaky")
    }
}

#[async_trait]
impl ObjectStore for FlakyStore {
    async fn put_opts(
        &self,
        location: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> object_store::Result<PutResult> {
        self.trouble().await?;
        self.inner.put_opts(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.trouble().await?;
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(
        &self,
        location: &Path,
        options: GetOptions,
    ) -> object_store::Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// An actor that takes everything and does nothing.
struct Nobody;

impl Actor for Nobody {
    type Msg = OutputMsg;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<OutputMsg>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }
}

/// The politeness of every host in these tests, unless the test says otherwise.
pub(super) fn host_settings() -> HostSettings {
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
        max_redirects: 5,
        window: 16,
        bands: [8, 4, 2, 1],
        ahead: secs(1),
        revisit_after: None,
    }
}

/// What the node of a test is set to.
#[derive(Clone)]
pub(super) struct Setting {
    pub(super) host: HostSettings,
    pub(super) domain: DomainRules,
    pub(super) address: AddressRules,
    pub(super) quota: QuotaRules,
    pub(super) shards: u16,
    pub(super) credit: usize,
    pub(super) resident_hosts: usize,
    pub(super) host_max_urls: u64,
    pub(super) parse_room: usize,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            host: host_settings(),
            domain: DomainRules { min_delay: Duration::ZERO, daily_pages: 1_000_000 },
            address: AddressRules { min_delay: Duration::from_millis(1), max_in_flight: 1000 },
            quota: QuotaRules::default(),
            shards: 1,
            credit: 100,
            resident_hosts: 1000,
            host_max_urls: 1_000_000,
            parse_room: 64,
        }
    }
}

impl Setting {
    fn frontier(&self) -> FrontierSettings {
        let host = Arc::new(self.host.clone());
        FrontierSettings {
            host: Arc::new(move |_| Arc::clone(&host)),
            domain: self.domain,
            host_max_urls: self.host_max_urls,
            domain_max_urls: 10_000_000,
            may_connect: Arc::new(|_| Ok(())),
            address_exempt: Arc::new(|_| false),
            flush_interval: secs(1),
            resident_hosts: self.resident_hosts,
            credit: self.credit,
            fingerprints: 1000,
        }
    }
}

/// One request that the test's fetchers made.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) lease: Arc<Lease>,
    pub(super) sent_at: Timestamp,
    pub(super) ended_at: Timestamp,
}

impl Visit {
    pub(super) fn url(&self) -> &str {
        self.lease.entry.url.as_str()
    }

    pub(super) fn is_page(&self) -> bool {
        self.lease.kind == LeaseKind::Page
    }
}

/// What the web answers: by URL, how and after how many milliseconds.
pub(super) type Web = Arc<dyn Fn(&Lease) -> Reply + Send + Sync>;

/// One answer of the web.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) outcome: Outcome,
    pub(super) status: Option<u16>,
    pub(super) took: Duration,
    pub(super) retry_after: Option<Duration>,
    pub(super) location: Option<String>,
    pub(super) robots: Option<&'static str>,
    /// The fetcher dies: nobody ever hears of it.
    pub(super) lost: bool,
}

impl Reply {
    pub(super) fn of(outcome: Outcome) -> Self {
        let status = match outcome {
            Outcome::Ok => Some(200),
            Outcome::ClientError => Some(404),
            Outcome::ServerError => Some(500),
            Outcome::RateLimited => Some(429),
            Outcome::Redirect => Some(301),
            _ => None,
        };
        Self {
            outcome,
            status,
            took: Duration::from_millis(20),
            retry_after: None,
            location: None,
            robots: None,
            lost: false,
        }
    }

    pub(super) fn lost() -> Self {
        Self { lost: true, ..Self::of(Outcome::Ok) }
    }
}

/// A web where robots.txt is missing and every page is there.
pub(super) fn open_web() -> Web {
    Arc::new(|lease| match lease.kind {
        LeaseKind::Page => Reply::of(Outcome::Ok),
        LeaseKind::Robots { .. } => Reply::of(Outcome::ClientError),
    })
}

/// A node's frontier and all around it.
pub(super) struct Rig {
    pub(super) setting: Setting,
    pub(super) objects: Objects,
    pub(super) flaky: Arc<FlakyStore>,
    pub(super) snapshots: Arc<LoadedSnapshots>,
    pub(super) dice: Arc<LoadedDice>,
    names: Arc<Table>,
    pub(super) world: World,
    pub(super) quota: SharedQuota,
    routes: watch::Sender<Arc<Routes>>,
    settings: watch::Sender<Arc<FrontierSettings>>,
    pub(super) addresses: ActorRef<AddressMsg>,
    output: ActorRef<OutputMsg>,
    pub(super) shards: Vec<ActorRef<ShardMsg>>,
    pub(super) stores: Vec<ShardStore>,
    fetch: async_channel::Sender<FetchJob>,
    pub(super) jobs: async_channel::Receiver<FetchJob>,
    parse: async_channel::Sender<ParseJob>,
    pub(super) pages: async_channel::Receiver<ParseJob>,
    pub(super) visits: Arc<Mutex<Vec<Visit>>>,
    fetching: Arc<Mutex<JoinSet<()>>>,
    pub(super) parsed: Arc<Mutex<Vec<String>>>,
}

impl Rig {
    pub(super) async fn new(setting: Setting) -> Self {
        let clock = Arc::new(WatchfulClock {
            clock: TokioClock::starting_at(at(0)),
            seen: AtomicU64::new(0),
            times: AtomicU32::new(0),
        });
        let dice = Arc::new(LoadedDice { dice: SeededDice::new(7), panics: AtomicU32::new(0) });
        let snapshots = Arc::new(LoadedSnapshots::default());
        let names = Arc::new(Table::default());
        let world = World {
            clock,
            dice: Arc::<LoadedDice>::clone(&dice),
            exchange: Arc::new(NoExchange),
            resolver: Arc::<Table>::clone(&names),
            snapshots: Arc::<LoadedSnapshots>::clone(&snapshots),
            spool: Arc::new(MemorySpool::new()),
            objects: Objects::memory(),
            coordinator: Arc::new(crate::cluster::SingleNode),
        };
        let flaky = Arc::new(FlakyStore {
            inner: InMemory::new(),
            fails: AtomicBool::new(false),
            slow_ms: AtomicU64::new(0),
        });
        let (fetch, jobs) = async_channel::bounded(10_000);
        let (parse, pages) = async_channel::bounded(setting.parse_room);
        let args = AddressArgs { rules: setting.address, world: world.clone() };
        let (addresses, _) = Actor::spawn(None, AddressActor, args).await.unwrap();
        let (output, _) = Actor::spawn(None, Nobody, ()).await.unwrap();
        let routes = Routes {
            shards: vec![None; usize::from(setting.shards)],
            addresses: vec![addresses.clone()],
            ..Routes::default()
        };
        let mut rig = Self {
            objects: Objects::from_store(Arc::<FlakyStore>::clone(&flaky), "flaky"),
            flaky,
            snapshots,
            dice,
            names,
            world,
            quota: SharedQuota::new(Quota::new(setting.quota, 0)),
            routes: watch::Sender::new(Arc::new(routes)),
            settings: watch::Sender::new(Arc::new(setting.frontier())),
            addresses,
            output,
            shards: Vec::new(),
            stores: Vec::new(),
            fetch,
            jobs,
            parse,
            pages,
            visits: Arc::default(),
            fetching: Arc::default(),
            parsed: Arc::default(),
            setting,
        };
        rig.open().await;
        rig
    }

    /// A node with the open web and parsers that publish all.
    pub(super) async fn crawling(setting: Setting, web: Web) -> Self {
        let rig = Self::new(setting).await;
        rig.serve(web);
        rig.publish();
        rig
    }

    /// Opens every shard.
    pub(super) async fn open(&mut self) {
        self.shards.clear();
        self.stores.clear();
        for shard in 0..self.setting.shards {
            let store = ShardStore::open(StoreOptions {
                objects: self.objects.clone(),
                path: shard.to_string(),
                clock: Arc::clone(&self.world.clock),
                seed: 7,
                memory_bytes_max: 16 << 20,
                cache: None,
                shard: ShardId(shard),
            })
            .await
            .unwrap();
            self.stores.push(store.clone());
            let args = ShardArgs {
                shard: ShardId(shard),
                store,
                world: self.world.clone(),
                routes: self.routes.subscribe(),
                settings: self.settings.subscribe(),
                quota: self.quota.clone(),
                fetch: self.fetch.clone(),
                parse: self.parse.clone(),
                reopened: false,
            };
            let (actor, _) = Actor::spawn(None, ShardActor, args).await.unwrap();
            let route = ShardRoute { shard: actor.clone(), output: self.output.clone() };
            self.routes.send_modify(|routes| {
                let mut next = Routes::clone(routes);
                next.shards[usize::from(shard)] = Some(route);
                *routes = Arc::new(next);
            });
            self.shards.push(actor);
        }
    }

    /// A clean stop of every shard, what is in flight first.
    pub(super) async fn close(&mut self) {
        for shard in &self.shards {
            shard.send_message(ShardMsg::Drain).unwrap();
        }
        while self.fetching() > 0 {
            self.pass(Duration::from_millis(10)).await;
        }
        self.pass(Duration::from_millis(100)).await;
        for shard in self.shards.drain(..) {
            let (answer, closed) = Answer::channel();
            shard.send_message(ShardMsg::Close(answer)).unwrap();
            tokio::time::timeout(secs(60), closed).await.expect("it closes").unwrap().unwrap();
            shard.get_cell().wait(None).await.unwrap();
        }
    }

    /// The process dies: what is not durable is gone.
    pub(super) async fn kill(&mut self) {
        for shard in self.shards.drain(..) {
            shard.kill_and_wait(None).await.unwrap();
        }
        self.fetching.lock().unwrap().abort_all();
        while self.jobs.try_recv().is_ok() {}
        while self.pages.try_recv().is_ok() {}
        self.quota = SharedQuota::new(Quota::new(self.setting.quota, 0));
    }

    pub(super) fn shard(&self) -> &ActorRef<ShardMsg> {
        &self.shards[0]
    }

    pub(super) fn now(&self) -> Timestamp {
        self.world.clock.now()
    }

    pub(super) async fn pass(&self, span: Duration) {
        self.world.clock.sleep(span).await;
    }

    pub(super) fn resolve(&self, host: &str, address: IpAddr) {
        let mut table = self.names.0.lock().unwrap_or_else(PoisonError::into_inner);
        table.insert(host.to_owned(), address);
    }

    /// Asks the first shard; an answer must come within a virtual minute.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(Answer<T>) -> ShardMsg,
    ) -> T {
        let (answer, answered) = Answer::channel();
        self.shard().send_message(question(answer)).unwrap();
        tokio::time::timeout(secs(60), answered).await.expect("an answer in time").unwrap()
    }

    pub(super) async fn view(&self) -> ShardView {
        *self.ask(ShardMsg::Observe).await
    }

    /// Admits URLs to their shards, a batch each, and waits for the answers.
    pub(super) async fn admit(&self, urls: &[String]) -> Vec<Admission> {
        let mut batches: BTreeMap<ShardId, Vec<Candidate>> = BTreeMap::new();
        for url in urls {
            let candidate = candidate(url, self.now());
            let shard = self.routes.borrow().shard_of(&candidate.host);
            batches.entry(shard).or_default().push(candidate);
        }
        let mut results = Vec::new();
        for (shard, candidates) in batches {
            let (answer, answered) = Answer::channel();
            let batch = AdmitBatch { candidates, answer };
            self.shards[usize::from(shard.0)].send_message(ShardMsg::Admit(batch)).unwrap();
            let answered = tokio::time::timeout(secs(60), answered).await;
            results.extend(answered.expect("an answer in time").unwrap().results);
        }
        results
    }

    pub(super) async fn admit_paths(&self, host: &str, count: usize) {
        let urls: Vec<String> = (0..count).map(|n| format!("https://{host}/{n}")).collect();
        for chunk in urls.chunks(1000) {
            let results = self.admit(chunk).await;
            assert!(results.iter().all(|result| *result == Admission::Added));
        }
    }

    /// Fetchers: each job is sent at its time and answered as the web says.
    pub(super) fn serve(&self, web: Web) -> JoinHandle<()> {
        let jobs = self.jobs.clone();
        let (world, visits) = (self.world.clone(), Arc::clone(&self.visits));
        let fetching = Arc::clone(&self.fetching);
        tokio::spawn(async move {
            while let Ok(job) = jobs.recv().await {
                let reply = web(&job.lease);
                let work = fetch(world.clone(), Arc::clone(&visits), job, reply);
                fetching.lock().unwrap().spawn(work);
            }
        })
    }

    /// Plays the fetcher and the archive for one lease: its response comes along.
    pub(super) async fn answer_next_with_body(&self, permit: Permit) {
        let job = tokio::time::timeout(secs(60), self.jobs.recv()).await.unwrap().unwrap();
        self.world.clock.sleep_until(job.lease.not_before).await;
        let now = self.now();
        let completion = completion(&job.lease, now, now, &Reply::of(Outcome::Ok));
        let response = Response {
            lease: Arc::clone(&job.lease),
            request_head: bytes::Bytes::new(),
            protocol: "HTTP/1.1",
            status: 200,
            headers: Vec::new(),
            body: "body".into(),
            truncated: None,
            sent_at: now,
            ended_at: now,
            address: (job.lease.address.unwrap(), 443).into(),
        };
        let report = EndedReport { completion, response: Some(Box::new(response)), permit };
        job.shard.send_message(ShardMsg::Ended(Box::new(report))).unwrap();
    }

    fn fetching(&self) -> usize {
        let mut fetching = self.fetching.lock().unwrap();
        while fetching.try_join_next().is_some() {}
        fetching.len()
    }

    /// Parsers and outputs: every page is published at once.
    pub(super) fn publish(&self) {
        let (pages, parsed) = (self.pages.clone(), Arc::clone(&self.parsed));
        tokio::spawn(async move {
            while let Ok(job) = pages.recv().await {
                parsed.lock().unwrap().push(job.row.url.to_string());
                let shard = job.shard.clone();
                // A shard that is gone publishes it again.
                shard.send_message(published(job)).ok();
            }
        });
    }

    pub(super) fn visits(&self) -> Vec<Visit> {
        self.visits.lock().unwrap().clone()
    }

    /// The pages visited, in order, without their host.
    pub(super) fn paths(&self) -> Vec<String> {
        let pages = self.visits().into_iter().filter(Visit::is_page);
        pages.map(|visit| visit.lease.entry.url.path_and_query().to_owned()).collect()
    }

    /// Waits until nothing is queued, in flight or to be parsed; at most this long.
    pub(super) async fn until_done(&self, within: Duration) {
        let deadline = self.now() + within;
        loop {
            let view = self.view().await;
            let urls = view.urls;
            let left = urls.queued + urls.deferred;
            let moving = view.in_flight + view.offers + view.parsing + view.unwritten;
            if left == 0 && moving == 0 {
                return;
            }
            assert!(self.now() < deadline, "not done in {within:?}: {view:#?}");
            self.pass(secs(1)).await;
        }
    }

    /// Waits until as many visits were made; at most this long.
    pub(super) async fn until_visits(&self, count: usize, within: Duration) {
        let deadline = self.now() + within;
        while self.visits().len() < count {
            if self.now() >= deadline {
                let urls: Vec<String> =
                    self.visits().iter().map(|visit| visit.url().to_owned()).collect();
                panic!("{count} visits not made: {urls:?} {:#?}", self.view().await);
            }
            self.pass(Duration::from_millis(50)).await;
        }
    }

    /// The durable events, by kind, in order.
    pub(super) async fn events(&self) -> Vec<(u64, CrawlEvent)> {
        let events = self
            .ask(|answer| ShardMsg::ReadEvents(EventSeq(0), 10_000, answer))
            .await
            .expect("the outbox can be read");
        events.into_iter().map(|(seq, event)| (seq.0, event)).collect()
    }
}

/// I2, judged from outside: per host one at a time, and a delay from each end to the next start.
pub(super) fn assert_polite(visits: &[Visit], delay: Duration) {
    let mut last: BTreeMap<String, Timestamp> = BTreeMap::new();
    let mut visits: Vec<&Visit> = visits.iter().collect();
    visits.sort_by_key(|visit| visit.sent_at);
    for visit in visits {
        let host = visit.lease.host.to_string();
        if let Some(ended_at) = last.get(&host) {
            let allowed = *ended_at + delay;
            assert!(
                visit.sent_at >= allowed,
                "{} at {}, not {allowed}",
                visit.url(),
                visit.sent_at
            );
        }
        last.insert(host, visit.ended_at);
        assert!(visit.sent_at >= visit.lease.not_before && visit.sent_at < visit.lease.expires_at);
    }
}

pub(super) fn candidate(url: &str, now: Timestamp) -> Candidate {
    let url = CrawlUrl::parse(url).unwrap();
    let recognised = normalise::recognised(&url).into_owned();
    let hash = normalise::url_hash(&recognised);
    Candidate {
        host: url.host_key(),
        hash,
        record: UrlRecord {
            url,
            depth: 0,
            band: u8::try_from(hash % 4).unwrap(),
            order: hash % 100_000,
            redirects: 0,
            discovered_from: None,
            discovered_at: now,
        },
        is_seed: false,
    }
}

async fn fetch(world: World, visits: Arc<Mutex<Vec<Visit>>>, job: FetchJob, reply: Reply) {
    let lease = Arc::clone(&job.lease);
    world.clock.sleep_until(lease.not_before).await;
    let (answer, departs) = Answer::channel();
    let address = lease.address.expect("G-1");
    let depart = AddressMsg::Depart { address, lease: lease.id, answer };
    job.address.send_message(depart).unwrap();
    let Ok(_) = departs.await else { return };
    let sent_at = world.clock.now();
    world.clock.sleep(reply.took).await;
    let ended_at = world.clock.now();
    visits.lock().unwrap().push(Visit { lease: Arc::clone(&lease), sent_at, ended_at });
    if reply.lost {
        return;
    }
    let completion = completion(&lease, sent_at, ended_at, &reply);
    let report = EndedReport { completion, response: None, permit: Permit::free() };
    // A shard that is gone has its lease come back.
    job.shard.send_message(ShardMsg::Ended(Box::new(report))).ok();
}

pub(super) fn completion(
    lease: &Lease,
    sent_at: Timestamp,
    ended_at: Timestamp,
    reply: &Reply,
) -> Completion {
    let mut completion = Completion::failed(lease, ended_at, reply.outcome, Reason::WorkerDied);
    completion.sent_at = Some(sent_at);
    completion.status = reply.status;
    completion.retry_after = reply.retry_after;
    completion.location.clone_from(&reply.location);
    if reply.outcome.is_exchange() {
        completion.reason = None;
        completion.archive = Some(ArchivePointer { file: "a".into(), offset: 1, length: 2 });
        completion.bytes = 10;
    }
    completion.robots_body = reply.robots.map(|text| bytes::Bytes::from_static(text.as_bytes()));
    completion
}

pub(super) fn published(job: ParseJob) -> ShardMsg {
    let page = PublishedPage { row: job.row, links: 0, duplicate_of: None, parser_version: 1 };
    let answer = Answer::ignored();
    ShardMsg::Published(Box::new(PublishedBatch { pages: vec![page], outputs: Vec::new(), answer }))
}
