//! A1: whatever actor fails, the crawl goes on: it is started again, its work is done again, and a
//! URL that kills its worker every time costs nobody else anything.

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use support::node::LOCAL;
use support::site::{Reply, Request, Site};
use support::world::{Crawl, Wrong};
use support::{data, events};

/// Pages of the site.
const PAGES: usize = 25;
/// `politeness.min_delay` of [`LOCAL`].
const DELAY: Duration = Duration::from_millis(20);
/// Above this a document is parsed on a thread of its own.
const LARGE: usize = 600 * 1024;

/// [`LOCAL`] with leases that run out within seconds: what a lost actor had in hand comes back
/// then.
fn local() -> String {
    let short =
        "[fetch]\nconnect_timeout = \"1s\"\nfirst_byte_timeout = \"2s\"\ntotal_timeout = \"2s\"";
    LOCAL.replace("[fetch]", short).replace("\"500ms\"", "\"500ms\"\nlease = \"3s\"")
}

fn pages(request: &Request) -> Reply {
    let number = match request.path.as_str() {
        "/" => 0,
        "/large" => return Reply::html(format!("<a href=/24>24</a>{}", "word ".repeat(LARGE / 5))),
        path => path.trim_start_matches('/').parse().unwrap_or(PAGES),
    };
    if number >= PAGES {
        return Reply::status(404);
    }
    let links = [2 * number + 1, 2 * number + 2].into_iter().filter(|to| *to < PAGES);
    let links: String = links.map(|to| format!("<a href=/{to}>{to}</a> ")).collect();
    let large = if number == 3 { "<a href=/large>large</a>" } else { "" };
    Reply::html(format!("<title>{number}</title>page {number} {links}{large}"))
}

fn all_urls(site: &Site) -> Vec<String> {
    let numbered = (1..PAGES).map(|number| site.url(&format!("/{number}")));
    numbered.chain([site.url("/"), site.url("/large")]).collect()
}

/// Everything is there once, and the site saw no impoliteness.
async fn check(crawl: &Crawl, site: &Site, data: &std::path::Path, without: &[&str]) {
    site.assert_polite(DELAY);
    let records = data::page_counts(data);
    for url in all_urls(site) {
        let expected = usize::from(!without.iter().any(|end| url.ends_with(end)));
        assert_eq!(records.get(&url).copied().unwrap_or(0), expected, "records of {url}");
    }
    events::check(&events::read_all(&crawl.client).await);
    assert!(crawl.metric("mehman_policy_violations_total").await.abs() < f64::EPSILON);
}

/// A crawl in which a part of the program panics once when it is under way; answers with the
/// restarts of the actor of that name.
async fn survives(module: &'static str, actor: &str) -> u64 {
    let (site, data) = (Site::start(pages).await, support::directory());
    let crawl = Crawl::start(&local(), data.path(), Wrong::default()).await;
    crawl.seed(&site.url("/")).await;
    site.asked(4, 30).await;
    crawl.clock.fail(module);
    crawl.failed(30).await;
    crawl.done(60).await;
    check(&crawl, &site, data.path(), &[]).await;
    let restarts = crawl.restarts(actor).await;
    crawl.stop().await;
    restarts
}

#[tokio::test]
async fn a_fetcher_that_panics_loses_nothing() {
    let (site, data) = (Site::start(pages).await, support::directory());
    let exchanges = BTreeMap::from([("/5", 2), ("/", 1)]);
    let crawl = Crawl::start(&local(), data.path(), Wrong { exchanges, snapshots: 0 }).await;
    crawl.seed(&site.url("/")).await;
    crawl.done(60).await;
    assert_eq!(crawl.exchange.died.load(Ordering::Relaxed), 3);
    check(&crawl, &site, data.path(), &[]).await;
    assert_eq!(site.counts().values().max(), Some(&1));
    assert_eq!(crawl.restarts("fetch").await, 3);
    crawl.stop().await;
}

#[tokio::test]
async fn a_url_that_always_kills_its_fetcher_becomes_a_dead_letter() {
    let (site, data) = (Site::start(pages).await, support::directory());
    let config = local().replace("\"500ms\"", "\"100ms\"\nfactor = 1\nmax_attempts = 3");
    let exchanges = BTreeMap::from([("/5", 1000)]);
    let crawl = Crawl::start(&config, data.path(), Wrong { exchanges, snapshots: 0 }).await;
    crawl.seed(&site.url("/")).await;
    crawl.done(60).await;
    assert_eq!(crawl.exchange.died.load(Ordering::Relaxed), 3);
    // Its links are known to nobody then.
    check(&crawl, &site, data.path(), &["/5", "/11", "/12", "/23"]).await;
    let dead = crawl.client.get("/v1/dead-letters").await.json();
    assert_eq!(dead["items"][0]["url"], site.url("/5"), "{dead}");
    assert_eq!((&dead["items"][0]["attempts"], &dead["items"][1]), (&3.into(), &().into()));
    assert!(dead["items"][0]["reason"].as_str().is_some_and(|why| why.contains("attempts")));
    crawl.stop().await;
}

#[tokio::test]
async fn a_host_that_panics_when_it_goes_to_rest_comes_back() {
    let (site, data) = (Site::start(pages).await, support::directory());
    let wrong = Wrong { snapshots: 2, ..Wrong::default() };
    let crawl = Crawl::start(&local(), data.path(), wrong).await;
    crawl.seed(&site.url("/")).await;
    crawl.done(60).await;
    check(&crawl, &site, data.path(), &[]).await;
    assert!(crawl.metric("mehman_host_restarts_total").await >= 1.0);
    crawl.stop().await;
}

#[tokio::test]
async fn a_host_that_panics_at_work_comes_back() {
    let (site, data) = (Site::start(pages).await, support::directory());
    let crawl = Crawl::start(&local(), data.path(), Wrong::default()).await;
    crawl.seed(&site.url("/")).await;
    for asked in [3, 8, 15] {
        site.asked(asked, 30).await;
        crawl.clock.fail("mehman::frontier::host");
        crawl.failed(30).await;
    }
    crawl.done(60).await;
    check(&crawl, &site, data.path(), &[]).await;
    assert!(crawl.metric("mehman_host_restarts_total").await >= 3.0);
    crawl.stop().await;
}

#[tokio::test]
async fn a_parser_that_panics_parses_again_from_the_archive() {
    let restarts = survives("mehman::parse::worker", "parse").await;
    assert_eq!(restarts, 1);
}

#[tokio::test]
async fn a_document_that_always_kills_its_parser_costs_itself_only() {
    let (site, data) = (Site::start(pages).await, support::directory());
    let crawl = Crawl::start(&local(), data.path(), Wrong::default()).await;
    crawl.seed(&site.url("/")).await;
    let counted = async || site.counts().get("/large").copied().unwrap_or(0);
    support::until("the large page", 30, async || (counted().await > 0).then_some(())).await;
    for _ in 0..3 {
        crawl.clock.fail("mehman::parse::worker");
        crawl.failed(30).await;
    }
    crawl.done(60).await;
    site.assert_polite(DELAY);
    // Three panics, whichever documents they hit: at most one is given up.
    let records = data::page_counts(data.path());
    assert!(records.len() > PAGES / 2 && records.values().all(|count| *count == 1), "{records:?}");
    assert_eq!(crawl.restarts("parse").await, 3);
    crawl.stop().await;
}

#[tokio::test]
async fn a_shard_that_panics_is_opened_again() {
    assert!(survives("mehman::frontier::shard", "shard").await >= 1);
}

#[tokio::test]
async fn a_paused_crawl_stays_paused_when_its_shards_come_back() {
    let (site, data) = (Site::start(pages).await, support::directory());
    let crawl = Crawl::start(&local(), data.path(), Wrong::default()).await;
    crawl.seed(&site.url("/")).await;
    site.asked(4, 30).await;
    crawl.client.post("/v1/pause", &serde_json::json!({})).await;
    let rest = async || {
        let told = crawl.client.get("/v1/status").await.json();
        (told["urls"]["in_flight"] == 0).then_some(())
    };
    support::until("the end of what is in flight", 30, rest).await;
    let asked = site.requests().len();
    assert!(asked < PAGES, "it was over before it was paused");
    for _ in 0..4 {
        crawl.clock.fail("mehman::frontier::shard");
        crawl.client.get("/v1/status").await;
        crawl.failed(30).await;
    }
    support::until("all shards", 30, async || {
        (crawl.client.get("/readyz").await.status == 200).then_some(())
    })
    .await;
    events::silence(&crawl.client).await;
    assert_eq!(site.requests().len(), asked, "the order was forgotten");
    crawl.client.post("/v1/resume", &serde_json::json!({})).await;
    crawl.done(60).await;
    check(&crawl, &site, data.path(), &[]).await;
    crawl.stop().await;
}

#[tokio::test]
async fn a_discovery_that_panics_loses_no_link() {
    assert!(survives("mehman::discovery", "discovery").await >= 1);
}

#[tokio::test]
async fn an_archive_that_panics_loses_no_response() {
    assert!(survives("mehman::archive::actor", "archive").await >= 1);
}

#[tokio::test]
async fn an_output_that_panics_writes_every_record_once() {
    assert!(survives("mehman::output::actor", "output").await >= 1);
}

#[tokio::test]
async fn an_owner_of_addresses_that_panics_is_started_again() {
    assert!(survives("mehman::frontier::addresses", "address").await >= 1);
}
