//! A frontier on a bench: real shards and store, paused time, a world that obeys the test.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ractor::{Actor, ActorRef};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

mod fakes;
mod judge;
mod setting;

pub(super) use judge::{assert_polite, published};
pub(super) use setting::Setting;

use fakes::{FlakyStore, LoadedDice, LoadedSnapshots, NoExchange, Nobody, Table, WatchfulClock};

use super::{AddressActor, AddressArgs, FrontierSettings, ShardActor, ShardArgs, SharedQuota};
use crate::policy::normalise;
use crate::policy::quota::Quota;
use crate::protocol::shard::{Admission, AdmitBatch, Candidate, EndedReport, ShardView};
use crate::protocol::{
    AddressMsg, Answer, FetchJob, OutputMsg, ParseJob, Permit, Routes, ShardMsg, ShardRoute,
};
use crate::storage::{ShardStore, StoreOptions};
use crate::telemetry::Metrics;
use crate::types::{
    ArchivePointer, Completion, CrawlEvent, CrawlUrl, EventSeq, Lease, LeaseKind, Outcome, Reason,
    Response, ShardId, Timestamp, UrlRecord,
};
use crate::world::{MemorySpool, Objects, World};

/// Milliseconds after the start of every test.
pub(super) fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(4_000_000_000_000 + millis)
}

pub(super) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
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
        let codes = [200, 404, 500, 429, 301];
        let status = codes.into_iter().find(|code| Outcome::of_status(*code) == Some(outcome));
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
    pub(super) metrics: Arc<Metrics>,
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
        let clock = Arc::new(WatchfulClock::starting_at(at(0)));
        let dice = Arc::new(LoadedDice::new(7));
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
        let flaky = Arc::new(FlakyStore::new());
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
            metrics: Arc::default(),
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

    /// Opens the store of a shard that is not running.
    pub(super) async fn store(&self, shard: u16) -> ShardStore {
        let options = StoreOptions {
            objects: self.objects.clone(),
            path: shard.to_string(),
            clock: Arc::clone(&self.world.clock),
            seed: 7,
            memory_bytes_max: 16 << 20,
            cache: None,
            shard: ShardId(shard),
        };
        ShardStore::open(options).await.unwrap()
    }

    /// Opens every shard.
    pub(super) async fn open(&mut self) {
        self.shards.clear();
        self.stores.clear();
        for shard in 0..self.setting.shards {
            let store = self.store(shard).await;
            self.stores.push(store.clone());
            let args = ShardArgs {
                waits: false,
                shard: ShardId(shard),
                store,
                world: self.world.clone(),
                routes: self.routes.subscribe(),
                settings: self.settings.subscribe(),
                quota: self.quota.clone(),
                fetch: self.fetch.clone(),
                parse: self.parse.clone(),
                metrics: Arc::clone(&self.metrics),
                reopened: false,
                paused: None,
                exclusions: None,
                draining: false,
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
        self.admit_as(urls, false).await
    }

    /// As links of pages, or as seeds.
    pub(super) async fn admit_as(&self, urls: &[String], is_seed: bool) -> Vec<Admission> {
        let mut batches: BTreeMap<ShardId, Vec<Candidate>> = BTreeMap::new();
        for url in urls {
            let candidate = Candidate { is_seed, ..candidate(url, self.now()) };
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
            status_line: None,
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
