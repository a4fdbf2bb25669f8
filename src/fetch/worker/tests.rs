//! Fetchers through their pool's channel, on paused time, with a web that does what its paths say.

use std::future::pending;
use std::sync::Mutex;

use async_channel::Sender;
use async_trait::async_trait;
use tokio::sync::mpsc;

use super::*;
use crate::fetch::classify::tests::{exchanged, lease, robots_kind};
use crate::policy::exclusion;
use crate::protocol::probe::probe;
use crate::protocol::{PoolMsg, ShardMsg};
use crate::supervise::{PoolActor, PoolSetup};
use crate::types::{ExclusionRecord, HostKey, LeaseId, LeaseKind, Validators};
use crate::world::{ExchangeLimits, ExchangeRequest, Oversize, TokioClock, Wanted};

#[derive(Debug)]
struct Web {
    clock: Arc<dyn Clock>,
    asked: Mutex<Vec<(Timestamp, ExchangeRequest)>>,
}

#[async_trait]
impl Exchange for Web {
    async fn exchange(&self, request: ExchangeRequest) -> Result<Exchanged, ExchangeFailure> {
        let sent_at = self.clock.now();
        self.asked.lock().unwrap().push((sent_at, request.clone()));
        self.clock.sleep(Duration::from_secs(1)).await;
        let ended_at = self.clock.now();
        let got = match request.url.path_and_query() {
            "/panic" => panic!("poison"),
            "/slow" => pending().await,
            "/refused" => {
                let reason = Reason::Connect { why: "refused".to_owned() };
                let outcome = Outcome::Connect;
                return Err(ExchangeFailure { outcome, reason, sent_at: Some(sent_at), ended_at });
            }
            "/robots.txt" => exchanged(200, &[], "User-agent: *"),
            "/gone" => exchanged(410, &[], "gone"),
            "/big" => exchanged(200, &[], &"x".repeat(3000)),
            _ => exchanged(200, &[("etag", "\"1\"")], "hello"),
        };
        Ok(Exchanged { sent_at, ended_at, ..got })
    }
}

struct Rig {
    pool: ActorRef<PoolMsg>,
    jobs: Sender<FetchJob>,
    web: Arc<Web>,
    clock: Arc<dyn Clock>,
    shard: (ActorRef<ShardMsg>, mpsc::Receiver<ShardMsg>),
    address: (ActorRef<AddressMsg>, mpsc::Receiver<AddressMsg>),
    archive: mpsc::Receiver<ArchiveMsg>,
    archives: watch::Sender<ActorRef<ArchiveMsg>>,
    bodies: Credit,
    excluding: watch::Sender<Arc<Exclusions>>,
}

fn settings() -> FetchSettings {
    FetchSettings {
        user_agent: "mehman/test (+https://example.org)".to_owned(),
        accept: "text/html".to_owned(),
        accept_language: None,
        limits: ExchangeLimits {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(20),
            total: Duration::from_secs(60),
            body_bytes_max: 10_000,
            oversize: Oversize::Skip,
        },
        robots_bytes_max: 500,
        wanted: Wanted::everything(),
    }
}

fn start() -> Timestamp {
    Timestamp::from_secs(1_000_000)
}

/// A response that the archive has, and answers for.
fn heard(store: ArchiveMsg) -> Box<StoreJob> {
    let ArchiveMsg::Store(mut job) = store else { panic!("{store:?}") };
    std::mem::take(&mut job.unheard).heard();
    job
}

impl Rig {
    async fn new(workers: u32) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(TokioClock::starting_at(start()));
        let web = Arc::new(Web { clock: Arc::clone(&clock), asked: Mutex::default() });
        let (archive_ref, archive) = probe().await;
        let (archives, archive_watch) = watch::channel(archive_ref);
        let (_, routes) = watch::channel(Arc::default());
        let (_, settings) = watch::channel(Arc::new(settings()));
        let (excluding, exclusions) = watch::channel(Arc::default());
        let bodies = Credit::new(4);
        let context = Arc::new(FetchContext {
            clock: Arc::clone(&clock),
            exchange: Arc::clone(&web) as Arc<dyn Exchange>,
            settings,
            exclusions,
            archive: archive_watch,
            owners: Owners { routes, clock: Arc::clone(&clock) },
            bodies: bodies.clone(),
            body_place_kib: 2,
        });
        let (jobs, receiver) = async_channel::bounded(8);
        let setup = PoolSetup {
            name: "fetch",
            kind: Arc::new(Fetchers { context }),
            workers,
            jobs: receiver,
            clock: Arc::clone(&clock),
            metrics: Arc::default(),
        };
        let (pool, _) = Actor::spawn(None, PoolActor::default(), setup).await.unwrap();
        let (shard, address) = (probe().await, probe().await);
        Self { pool, jobs, web, clock, shard, address, archive, archives, bodies, excluding }
    }

    async fn give(&self, lease: Lease) {
        let lease = Arc::new(lease);
        let (shard, address) = (self.shard.0.clone(), self.address.0.clone());
        self.jobs.send(FetchJob { lease, shard, address }).await.unwrap();
    }

    /// The address is asked, and lets the request go at `go`.
    async fn let_go(&mut self, go: Timestamp) {
        let asked = self.address.1.recv().await.unwrap();
        let AddressMsg::Depart { answer, lease, .. } = asked else { panic!("{asked:?}") };
        assert_eq!(lease, LeaseId(1));
        answer.send(go);
    }

    async fn left(&mut self) -> Option<Timestamp> {
        let left = self.address.1.recv().await.unwrap();
        let AddressMsg::Left { ended_at, .. } = left else { panic!("{left:?}") };
        ended_at
    }

    async fn stored(&mut self) -> Box<StoreJob> {
        let store = self.archive.recv().await.unwrap();
        heard(store)
    }

    async fn ended(&mut self) -> Completion {
        let ended = self.shard.1.recv().await.unwrap();
        let ShardMsg::Ended(report) = ended else { panic!("{ended:?}") };
        report.completion
    }

    /// Nobody hears anything more, whatever time passes.
    async fn quiet(&mut self) {
        self.clock.sleep(Duration::from_secs(3600)).await;
        assert!(self.shard.1.try_recv().is_err());
        assert!(self.address.1.try_recv().is_err());
        assert!(self.archive.try_recv().is_err());
    }

    fn asked(&self) -> Vec<(Timestamp, ExchangeRequest)> {
        self.web.asked.lock().unwrap().clone()
    }
}

fn page(path: &str) -> Lease {
    lease(&format!("http://site.test{path}"), LeaseKind::Page)
}

fn seconds(seconds: u64) -> Timestamp {
    start() + Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_sent_when_host_and_address_allow_and_goes_to_the_archive() {
    let mut rig = Rig::new(1).await;
    rig.give(page("/a")).await;
    rig.clock.sleep(Duration::from_secs(4)).await;
    assert!(rig.address.1.try_recv().is_err(), "not before the lease's time");
    rig.let_go(seconds(8)).await;
    assert!(rig.clock.now() >= seconds(5));
    assert_eq!(rig.left().await, Some(seconds(9)));
    let job = rig.stored().await;
    assert_eq!(job.completion.outcome, Outcome::Ok);
    assert_eq!(job.completion.sent_at, Some(seconds(8)));
    assert_eq!(job.response.body, "hello");
    assert_eq!(job.response.lease.id, LeaseId(1));
    assert_eq!(rig.bodies.used(), 2, "a small body takes its place among the parsers' pages");
    drop(job);
    assert_eq!(rig.bodies.used(), 0);
    let (at, request) = rig.asked().remove(0);
    assert_eq!((at, request.address.to_string()), (seconds(8), "192.0.2.1:80".to_owned()));
    let names: Vec<_> = request.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["User-Agent", "Accept", "Accept-Encoding"]);
    rig.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn any_response_is_stored_and_a_failure_is_reported() {
    let mut rig = Rig::new(1).await;
    rig.give(page("/gone")).await;
    rig.let_go(seconds(5)).await;
    assert_eq!(rig.left().await, Some(seconds(6)));
    assert_eq!(rig.stored().await.completion.outcome, Outcome::ClientError);
    rig.give(page("/refused")).await;
    rig.let_go(seconds(6)).await;
    assert_eq!(rig.left().await, Some(seconds(7)));
    let ended = rig.ended().await;
    assert_eq!((ended.outcome, ended.sent_at), (Outcome::Connect, Some(seconds(6))));
    rig.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_reported_once_and_the_worker_comes_back() {
    let mut rig = Rig::new(1).await;
    rig.give(page("/panic")).await;
    rig.let_go(seconds(5)).await;
    assert_eq!(rig.left().await, Some(seconds(6)), "it was sent, so it counts as a visit");
    let ended = rig.ended().await;
    assert_eq!((ended.outcome, ended.reason), (Outcome::Cancelled, Some(Reason::WorkerDied)));
    assert_eq!(ended.sent_at, Some(seconds(5)));
    rig.give(page("/a")).await;
    rig.let_go(seconds(6)).await;
    rig.left().await;
    assert_eq!(rig.stored().await.completion.outcome, Outcome::Ok);
    rig.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn kill_ends_what_waits_and_what_runs() {
    let mut rig = Rig::new(2).await;
    rig.give(page("/slow")).await;
    rig.let_go(seconds(5)).await;
    rig.clock.sleep(Duration::from_secs(2)).await;
    rig.give(Lease { not_before: seconds(200), ..page("/late") }).await;
    rig.clock.sleep(Duration::from_secs(1)).await;
    ask(&rig.pool, PoolMsg::Kill).await.unwrap();
    let mut ends = [rig.ended().await, rig.ended().await];
    ends.sort_by_key(|end| end.sent_at);
    assert_eq!(ends.each_ref().map(|end| end.sent_at), [None, Some(seconds(5))]);
    assert!(ends.iter().all(|end| end.reason == Some(Reason::Stopping)));
    let mut left = [rig.left().await, rig.left().await];
    left.sort();
    assert_eq!(left, [None, Some(rig.clock.now())]);
    rig.quiet().await;
    assert_eq!(rig.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_has_run_out_is_not_sent() {
    let mut rig = Rig::new(1).await;
    rig.give(Lease { not_before: seconds(400), ..page("/a") }).await;
    assert_eq!(rig.left().await, None);
    assert_eq!(rig.ended().await.reason, Some(Reason::LeaseExpired));
    assert_eq!(rig.clock.now(), start(), "at once");
    rig.give(page("/a")).await;
    rig.let_go(seconds(300)).await;
    assert_eq!(rig.left().await, None);
    let ended = rig.ended().await;
    assert_eq!((ended.outcome, ended.sent_at), (Outcome::Cancelled, None));
    assert!(rig.asked().is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_exchange_ends_before_its_lease_does() {
    let mut rig = Rig::new(1).await;
    rig.give(page("/a")).await;
    rig.let_go(seconds(290)).await;
    rig.stored().await;
    assert_eq!(rig.asked()[0].1.limits.total, Duration::from_secs(10));
}

#[tokio::test(start_paused = true)]
async fn an_address_without_owner_is_asked_again_and_then_given_up() {
    let mut rig = Rig::new(1).await;
    rig.give(page("/a")).await;
    drop(rig.address.1.recv().await.unwrap());
    rig.let_go(seconds(5)).await;
    assert_eq!(rig.stored().await.completion.outcome, Outcome::Ok);
    rig.left().await;
    rig.give(page("/a")).await;
    for _ in 0..DEPARTURE_ASKS {
        drop(rig.address.1.recv().await.unwrap());
    }
    let ended = rig.ended().await;
    assert_eq!((ended.outcome, ended.sent_at), (Outcome::Cancelled, None));
    assert_eq!(rig.left().await, None);
    assert_eq!(rig.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lease_without_address_is_refused() {
    let mut rig = Rig::new(1).await;
    rig.give(Lease { address: None, ..page("/a") }).await;
    assert_eq!(rig.ended().await.outcome, Outcome::EgressRefused);
    rig.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn without_memory_a_body_waits_and_its_address_does_not() {
    let mut rig = Rig::new(2).await;
    let held = rig.bodies.take(2).await;
    rig.give(page("/big")).await;
    rig.let_go(seconds(5)).await;
    assert_eq!(rig.left().await, Some(seconds(6)));
    rig.clock.sleep(Duration::from_secs(10)).await;
    assert!(rig.archive.try_recv().is_err(), "3 KiB are not free");
    drop(held);
    assert_eq!(rig.stored().await.response.body.len(), 3000);
}

#[tokio::test(start_paused = true)]
async fn an_archive_that_comes_back_gets_what_waited_for_it() {
    let mut rig = Rig::new(1).await;
    let old = rig.archives.borrow().clone();
    old.stop_and_wait(None, None).await.unwrap();
    rig.give(page("/a")).await;
    rig.let_go(seconds(5)).await;
    rig.clock.sleep(Duration::from_secs(3)).await;
    let (archive, mut stored) = probe().await;
    rig.archives.send_replace(archive.clone());
    heard(stored.recv().await.unwrap());
    archive.stop_and_wait(None, None).await.unwrap();
    rig.left().await;
    rig.give(page("/a")).await;
    rig.let_go(seconds(5)).await;
    assert!(rig.left().await.is_some());
    let ended = rig.ended().await;
    assert_eq!((ended.outcome, ended.sent_at.is_some()), (Outcome::Cancelled, true));
    assert_eq!(rig.bodies.used(), 0);
    rig.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn robots_are_cut_and_read_whole_whatever_pages_may_be() {
    let mut rig = Rig::new(1).await;
    rig.give(lease("http://site.test/robots.txt", robots_kind())).await;
    rig.let_go(seconds(5)).await;
    let job = rig.stored().await;
    assert_eq!(job.completion.robots_body.as_deref(), Some(&b"User-agent: *"[..]));
    let (_, request) = rig.asked().remove(0);
    assert_eq!(request.limits.body_bytes_max, 500);
    assert_eq!(request.limits.oversize, Oversize::Truncate);
}

#[test]
fn revisits_are_conditional() {
    let sent = |etag: Option<&str>, at: Option<&str>| {
        let mut lease = page("/a");
        let validators = Validators {
            etag: etag.map(str::to_owned),
            last_modified: at.map(str::to_owned),
            digest: None,
        };
        lease.entry.validators = Some(validators);
        let settings = FetchSettings { accept_language: Some("de".to_owned()), ..settings() };
        settings.request(&lease, start()).unwrap().headers
    };
    let last = |headers: Vec<(String, String)>| headers.last().cloned().unwrap();
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(last(sent(Some("\"1\""), Some("then"))), pair("If-None-Match", "\"1\""));
    assert_eq!(last(sent(None, Some("then"))), pair("If-Modified-Since", "then"));
    assert_eq!(last(sent(None, None)), pair("Accept-Language", "de"));
    let https = Lease {
        host: HostKey::parse("https://a.test").unwrap(),
        ..lease("https://a.test/", LeaseKind::Page)
    };
    let request = settings().request(&https, start()).unwrap();
    assert_eq!(request.address.port(), 443);
}

fn excluded(rule: &str) -> Arc<Exclusions> {
    let rule = exclusion::parse_rule(rule).unwrap();
    Arc::new(Exclusions::new([ExclusionRecord {
        id: "e".to_owned(),
        rule: rule.to_string(),
        reason: None,
        until: None,
        made_at: start(),
    }]))
}

#[tokio::test(start_paused = true)]
async fn an_exchange_under_way_is_cut_by_an_exclusion_and_by_no_other() {
    let mut rig = Rig::new(1).await;
    rig.give(page("/slow")).await;
    rig.let_go(seconds(5)).await;
    rig.clock.sleep_until(seconds(7)).await;
    assert_eq!(rig.asked().len(), 1);
    rig.excluding.send_replace(excluded("surt:test,site)/other"));
    rig.clock.sleep_until(seconds(9)).await;
    assert!(rig.shard.1.try_recv().is_err(), "another path goes on");
    rig.excluding.send_replace(excluded("surt:test,site)/slow"));
    let left = tokio::time::timeout(Duration::from_secs(60), rig.left()).await;
    assert_eq!(left.expect("it is cut"), Some(seconds(9)));
    let ended = rig.ended().await;
    assert_eq!((ended.outcome, ended.reason), (Outcome::Cancelled, Some(by("e"))));
    assert_eq!((ended.sent_at, ended.ended_at), (Some(seconds(5)), seconds(9)));
    rig.quiet().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_excluded_is_not_sent_and_robots_txt_goes_with_its_whole_host() {
    let mut rig = Rig::new(1).await;
    rig.excluding.send_replace(excluded("surt:test,site)/a"));
    rig.give(page("/a/1")).await;
    rig.let_go(seconds(5)).await;
    assert_eq!(rig.left().await, None);
    let ended = rig.ended().await;
    assert_eq!((ended.reason, ended.sent_at), (Some(by("e")), None));
    let robots = || lease("http://site.test/robots.txt", robots_kind());
    rig.excluding.send_replace(excluded("surt:test,site)/r"));
    rig.give(robots()).await;
    rig.let_go(seconds(5)).await;
    rig.left().await;
    assert_eq!(rig.stored().await.completion.outcome, Outcome::Ok);
    rig.excluding.send_replace(excluded("host:site.test"));
    rig.give(robots()).await;
    rig.let_go(seconds(5)).await;
    rig.left().await;
    assert_eq!(rig.ended().await.reason, Some(by("e")));
    assert_eq!(rig.asked().len(), 1);
    rig.quiet().await;
}

fn by(id: &str) -> Reason {
    Reason::Excluded { id: id.to_owned() }
}
