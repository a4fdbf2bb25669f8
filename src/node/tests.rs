//! A node in a world of its own, without a network.

use std::time::Duration;

use async_trait::async_trait;

use super::*;
use crate::cluster::SingleNode;
use crate::protocol::Permit;
use crate::protocol::discovery::ParsedPage;
use crate::storage::MemorySnapshots;
use crate::telemetry::Counter;
use crate::types::{
    ArchivePointer, CrawlUrl, HostId, Reason, Timestamp, ToParse, UrlId, UrlVersion,
};
use crate::world::{
    Exchange, ExchangeFailure, ExchangeRequest, Exchanged, MemorySpool, Resolved, Resolver,
};

/// A network that is not there.
#[derive(Debug)]
struct Nowhere;

#[async_trait]
impl Resolver for Nowhere {
    async fn resolve(&self, _host: &str) -> Result<Resolved, Reason> {
        Err(Reason::Dns { why: "there is no network".to_owned() })
    }
}

#[async_trait]
impl Exchange for Nowhere {
    async fn exchange(&self, request: ExchangeRequest) -> Result<Exchanged, ExchangeFailure> {
        panic!("nothing resolves, so nothing is asked for: {request:?}");
    }
}

async fn node(config: &Config) -> Node {
    let world = World {
        clock: Arc::new(TokioClock::starting_at(Timestamp::from_secs(1_000_000))),
        dice: Arc::new(SeededDice::new(1)),
        exchange: Arc::new(Nowhere),
        resolver: Arc::new(Nowhere),
        snapshots: Arc::new(MemorySnapshots::default()),
        spool: Arc::new(MemorySpool::new()),
        objects: Objects::memory(),
        coordinator: Arc::new(SingleNode),
    };
    let config = Arc::new(config.clone());
    let options = NodeOptions { config, purpose: Purpose::Serve, reloader: None };
    Node::start_in(options, world).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_dies_is_opened_again_and_counted() {
    let mut config = Config::default();
    config.frontier.shards = 2;
    let node = node(&config).await;
    let count = || node.plan.metrics.count(Counter::ShardsReopened);
    let routes = Arc::clone(&node.plan.routes.borrow());
    let dead = &routes.all().next().unwrap().shard;
    assert_eq!(count(), 0, "the first opening is none");
    dead.kill();
    for _ in 0..100 {
        node.plan.world.clock.sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(count(), 1, "the other shard stayed");
    let routes = Arc::clone(&node.plan.routes.borrow());
    assert!(routes.all().all(|route| route.shard.get_id() != dead.get_id()));
    assert_eq!(routes.all().count(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_reload_names_what_is_in_force_and_is_counted() {
    let mut config = Config::default();
    config.frontier.shards = 1;
    let node = node(&config).await;
    config.scope.max_depth += 1;
    config.frontier.shards = 2;
    let report = node.reload(&config).unwrap();
    assert_eq!(report.applied, ["scope.max_depth"]);
    assert_eq!(report.needs_restart, ["frontier.shards"]);
    assert_eq!(node.plan.metrics.count(Counter::ConfigReloads), 1);
}

#[tokio::test(start_paused = true)]
async fn a_page_of_a_shard_that_was_opened_anew_is_left_to_its_new_parse() {
    let mut config = Config::default();
    config.frontier.shards = 1;
    let node = node(&config).await;
    let sleep = |secs| node.plan.world.clock.sleep(Duration::from_secs(secs));
    let shard = || node.plan.routes.borrow().all().next().unwrap().shard.clone();
    let dead = shard();
    dead.kill();
    sleep(10).await;
    let row = ToParse {
        id: UrlId { host: HostId(1), hash: 2, disambiguator: 0 },
        version: UrlVersion(1),
        url: CrawlUrl::parse("http://a.test/").unwrap(),
        depth: 0,
        redirects: 0,
        status: 301,
        fetched_at: Timestamp::EPOCH,
        archive: ArchivePointer { file: "a.warc.gz".into(), offset: 0, length: 1 },
        discovered_from: None,
        reason: None,
        attempts: 0,
        usage: Vec::new(),
    };
    let page = |shard| ParsedPage {
        row: row.clone(),
        document: None,
        links: Vec::new(),
        reasons: Vec::new(),
        shard,
        permit: Permit::free(),
    };
    let discovery = node.plan.routes.borrow().discovery.clone().unwrap();
    discovery.send_message(DiscoveryMsg::Page(Box::new(page(dead)))).unwrap();
    sleep(10).await;
    // An output that has a page of a shard that is gone ends, and its shard is opened once more.
    assert_eq!(node.plan.metrics.count(Counter::ShardsReopened), 1);
    let (alive, output) = (shard(), node.plan.routes.borrow().all().next().unwrap().output.clone());
    discovery.send_message(DiscoveryMsg::Page(Box::new(page(alive)))).unwrap();
    sleep(10).await;
    assert!(output.get_status() == ractor::ActorStatus::Running);
    assert_eq!(node.plan.metrics.count(Counter::ShardsReopened), 1);
}
