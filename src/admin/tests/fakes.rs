//! A node of two shards whose actors answer from plain data.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, header};
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;
use ractor::{Actor, ActorProcessingErr, ActorRef, Message};
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::shard::{ShardData, letter};
use crate::admin::{
    AdminSettings, AdminShared, AdminState, Control, CrawlPhase, ListedExclusion, PageReader,
    PurgeStanding, Refused, ReloadReport, Token, router,
};
use crate::archive::ArchiveReader;
use crate::parse::{Limits, ParseSettings};
use crate::policy::exclusion::{self, Exclusions};
use crate::policy::why::Judged;
use crate::protocol::archive::ArchiveView;
use crate::protocol::discovery::{DiscoveryView, SeedAnswer, SeedResult};
use crate::protocol::pool::PoolView;
use crate::protocol::root::ActorNode;
use crate::protocol::{ArchiveMsg, DiscoveryMsg, PoolMsg, RootMsg, Routes, ShardRoute};
use crate::telemetry::Metrics;
use crate::types::{CrawlUrl, ExclusionRecord, HostKey, PurgeRecord, Reason, ShardId, Timestamp};
use crate::world::{Clock, MemorySpool, TokioClock};

/// An actor that is a function.
struct Fake<M>(PhantomData<fn(M)>);

type Does<M> = Box<dyn FnMut(M) + Send>;

impl<M: Message> Actor for Fake<M> {
    type Msg = M;
    type State = Does<M>;
    type Arguments = Does<M>;

    async fn pre_start(
        &self,
        _me: ActorRef<M>,
        does: Does<M>,
    ) -> Result<Does<M>, ActorProcessingErr> {
        Ok(does)
    }

    async fn handle(
        &self,
        _me: ActorRef<M>,
        message: M,
        does: &mut Does<M>,
    ) -> Result<(), ActorProcessingErr> {
        does(message);
        Ok(())
    }
}

/// Starts an actor that does this with each message.
pub(super) async fn fake<M: Message>(does: impl FnMut(M) + Send + 'static) -> ActorRef<M> {
    let does: Does<M> = Box::new(does);
    Actor::spawn(None, Fake(PhantomData), does).await.unwrap().0
}

/// A node with the ends that a test holds.
pub(super) struct Stage {
    pub(super) state: AdminState,
    pub(super) shards: Vec<Arc<Mutex<ShardData>>>,
    pub(super) routes: watch::Sender<Arc<Routes>>,
    pub(super) phase: watch::Sender<CrawlPhase>,
    pub(super) batches: Arc<Mutex<Vec<usize>>>,
}

/// An answer, read whole.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Told {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|why| panic!("{why}: {}", self.text))
    }

    pub(super) fn lines(&self) -> Vec<Value> {
        self.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub(super) fn media(&self) -> &str {
        self.headers[header::CONTENT_TYPE].to_str().unwrap()
    }
}

pub(super) fn settings() -> AdminSettings {
    AdminSettings {
        listen: "127.0.0.1:8070".parse().unwrap(),
        token: None,
        product: "mehman".into(),
        version: "0.1.0".into(),
        contact_url: Some("https://crawl.example/".into()),
        contact_email: None,
        user_agent: "mehman/0.1.0 (+https://crawl.example/)".into(),
        addresses: vec!["192.0.2.0/24".parse().unwrap(), "2001:db8::/32".parse().unwrap()],
        node: "local".into(),
    }
}

fn parsing() -> ParseSettings {
    ParseSettings {
        limits: Limits::default(),
        time_max: std::time::Duration::from_secs(5),
        product: "mehman".into(),
        extractors: Vec::new(),
        inline_bytes_max: 0,
    }
}

pub(super) fn start() -> Timestamp {
    Timestamp::from_secs(1_767_225_600)
}

pub(super) fn key(text: &str) -> HostKey {
    HostKey::parse(text).unwrap()
}

impl Stage {
    /// Two shards and all the rest, on paused time.
    pub(super) async fn set() -> Self {
        Self::with(settings()).await
    }

    pub(super) async fn with_token(token: &str) -> Self {
        Self::with(AdminSettings { token: Some(Token::new(token)), ..settings() }).await
    }

    pub(super) async fn with(settings: AdminSettings) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(start()));
        let output = fake(|_: crate::protocol::OutputMsg| {}).await;
        let batches = Arc::new(Mutex::new(Vec::new()));
        let (mut shards, mut open) = (Vec::new(), Vec::new());
        for number in 0..2 {
            let data = ShardData { shard: ShardId(number), ..ShardData::default() };
            let data = Arc::new(Mutex::new(data));
            let held = Arc::clone(&data);
            let shard = fake(move |message| held.lock().unwrap().take(message)).await;
            open.push(Some(ShardRoute { shard, output: output.clone() }));
            shards.push(data);
        }
        let routes = Routes {
            shards: open,
            addresses: Vec::new(),
            discovery: Some(discovery(Arc::clone(&batches)).await),
            archive: Some(archive().await),
            purge: None,
            pools: vec![("fetch", pool().await), ("parse", pool().await)],
        };
        let (routes, watching) = watch::channel(Arc::new(routes));
        let (phase, phases) = watch::channel(CrawlPhase::Running);
        let state = AdminState {
            routes: watching,
            root: root().await,
            started_at: clock.now(),
            clock,
            settings: Arc::new(settings),
            metrics: Arc::new(Metrics::new()),
            control: node(phase.clone()),
            phase: phases,
            pages: PageReader {
                records: Arc::new(ArchiveReader::new(Arc::new(MemorySpool::default()))),
                settings: watch::channel(Arc::new(parsing())).1,
                clock: Arc::new(TokioClock::starting_at(start())),
            },
            shared: Arc::new(AdminShared::default()),
        };
        Self { state, shards, routes, phase, batches }
    }

    /// Makes hosts known to their shards.
    pub(super) fn know(&self, hosts: &[&str]) {
        for host in hosts {
            let host = key(host);
            self.owner(&host).lock().unwrap().hosts.push(host);
        }
        for shard in &self.shards {
            shard.lock().unwrap().hosts.sort_by_key(HostKey::id);
        }
    }

    pub(super) fn owner(&self, host: &HostKey) -> &Arc<Mutex<ShardData>> {
        let shard = self.state.routes.borrow().shard_of(host);
        &self.shards[usize::from(shard.0)]
    }

    pub(super) fn bury(&self, url: &str) {
        let url = CrawlUrl::parse(url).unwrap();
        let owner = self.owner(&url.host_key());
        let mut held = owner.lock().unwrap();
        held.dead.push(letter(&url));
        held.dead.sort_by_key(|letter| letter.entry.id);
    }

    /// A shard goes down.
    pub(super) fn lose(&self, shard: usize) {
        self.routes.send_modify(|routes| {
            let mut fewer = Routes::clone(routes);
            fewer.shards[shard] = None;
            *routes = Arc::new(fewer);
        });
    }

    pub(super) async fn get(&self, path: &str) -> Told {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub(super) async fn post(&self, path: &str, media: &str, body: impl Into<Body>) -> Told {
        let request = Request::post(path).header(header::CONTENT_TYPE, media);
        self.send(request.body(body.into()).unwrap()).await
    }

    pub(super) async fn order(&self, path: &str, body: &'static str) -> Told {
        self.post(path, "application/json", body).await
    }

    pub(super) async fn patch(&self, path: &str, body: &'static str) -> Told {
        self.send(Request::patch(path).body(body.into()).unwrap()).await
    }

    pub(super) async fn send(&self, request: Request<Body>) -> Told {
        let service = TowerToHyperService::new(router(self.state.clone()));
        let response = service.call(request).await.unwrap();
        let (head, body) = response.into_parts();
        let bytes = to_bytes(body, 16 << 20).await.unwrap();
        Told {
            status: head.status.as_u16(),
            headers: head.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }
}

/// The exclusion that the node knows from the start.
pub(in crate::admin) fn exclusion() -> ExclusionRecord {
    let rule = exclusion::parse_rule("domain:shut.test").unwrap();
    ExclusionRecord {
        id: exclusion::id_of(&rule),
        rule: rule.to_string(),
        reason: Some("they asked".to_owned()),
        until: None,
        made_at: Timestamp::from_secs(1),
    }
}

/// Does what it is told and says so in the phase.
fn node(phase: watch::Sender<CrawlPhase>) -> mpsc::Sender<Control> {
    let (control, mut orders) = mpsc::channel(4);
    let mut exclusions = Exclusions::new([exclusion()]);
    tokio::spawn(async move {
        while let Some(order) = orders.recv().await {
            match order {
                Control::Pause(answer) => {
                    phase.send_replace(CrawlPhase::Paused);
                    answer.send(());
                }
                Control::Resume(answer) => {
                    phase.send_replace(CrawlPhase::Running);
                    answer.send(());
                }
                Control::Drain(answer) => {
                    phase.send_replace(CrawlPhase::Draining);
                    answer.send(());
                }
                Control::Exclude(record, purge, answer) => {
                    let made = exclusions.renewed(*record, Timestamp::from_secs(2));
                    let order = |record: &ExclusionRecord| {
                        let ExclusionRecord { id, rule, made_at, .. } = record.clone();
                        PurgeRecord::new(id, rule, made_at)
                    };
                    let order = purge.then(|| order(&made));
                    exclusions = exclusions.with(made.clone());
                    if let Some(order) = &order {
                        exclusions = exclusions.with_purge(order.clone());
                    }
                    answer.send(Ok((made, order)));
                }
                Control::Lift(id, answer) => {
                    let purge = exclusions.purge(&id).cloned();
                    if purge.is_some() {
                        let why = "still being removed".to_owned();
                        answer.send(Err(Refused::Conflict(why)));
                        continue;
                    }
                    answer.send(Ok(exclusions.get(&id).cloned().map(|record| (record, purge))));
                    exclusions = exclusions.without(&id);
                }
                Control::Exclusions(answer) => {
                    let listed = exclusions.all().map(|record| ListedExclusion {
                        record: record.clone(),
                        purge: exclusions.purge(&record.id).map(PurgeStanding::running),
                    });
                    answer.send(listed.collect());
                }
                Control::Reload(answer) => {
                    let applied = vec!["politeness.min_delay".to_owned()];
                    answer.send(Ok(ReloadReport { applied, needs_restart: Vec::new() }));
                }
            }
        }
    });
    control
}

/// Refuses what does not begin with `http`, knows what ends in `known`.
async fn discovery(batches: Arc<Mutex<Vec<usize>>>) -> ActorRef<DiscoveryMsg> {
    fake(move |message| match message {
        DiscoveryMsg::Seeds(seeds, answer) => {
            batches.lock().unwrap().push(seeds.len());
            let results = seeds.into_iter().map(|seed| {
                let (result, reason) = if !seed.url.starts_with("http") {
                    (SeedResult::Refused, Some("not a URL".to_owned()))
                } else if seed.url.ends_with("known") {
                    (SeedResult::Known, None)
                } else {
                    (SeedResult::Accepted, None)
                };
                SeedAnswer { url: seed.url, result, reason }
            });
            answer.send(results.collect());
        }
        DiscoveryMsg::Judge(url, _, answer) => {
            let rule = "scope.mode is host".to_owned();
            let beyond = url.host_key().host() == "beyond.test";
            answer.send(Judged {
                scope: beyond.then_some(Reason::OutOfScope { rule }),
                ..Judged::default()
            });
        }
        DiscoveryMsg::Observe(answer) => answer.send(DiscoveryView::default()),
        DiscoveryMsg::Page(_)
        | DiscoveryMsg::Sitemaps(..)
        | DiscoveryMsg::Admitted { .. }
        | DiscoveryMsg::Tick
        | DiscoveryMsg::Reload => {}
    })
    .await
}

async fn pool() -> ActorRef<PoolMsg> {
    fake(|message| {
        if let PoolMsg::Observe(answer) = message {
            let view = PoolView { workers: 4, busy: 3, waiting: 2, capacity: 8, restarts: 0 };
            answer.send(view);
        }
    })
    .await
}

async fn archive() -> ActorRef<ArchiveMsg> {
    fake(|message| {
        if let ArchiveMsg::Observe(answer) = message {
            answer.send(ArchiveView { records: 5, bytes: 700, ..ArchiveView::default() });
        }
    })
    .await
}

async fn root() -> ActorRef<RootMsg> {
    fake(|message| {
        if let RootMsg::Observe(answer) = message {
            let child = ActorNode { name: "shard-0".into(), ..Default::default() };
            let tree =
                ActorNode { name: "root".into(), children: vec![child], ..Default::default() };
            answer.send(tree);
        }
    })
    .await
}
