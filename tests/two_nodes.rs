//! Nothing of a node is global: two live in one process, each with its own data, and neither
//! notices the other.

mod support;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mehman::config::Config;
use mehman::node::{Node, NodeError, NodeOptions, Purpose};
use mehman::protocol::discovery::{Seed, SeedResult};
use mehman::storage::DirectoryError;
use support::node::LOCAL;
use support::site::{Reply, Request, Site};
use support::{data, until};

/// Pages of each site.
const PAGES: usize = 40;
/// `politeness.min_delay` of [`LOCAL`].
const DELAY: Duration = Duration::from_millis(20);

fn pages(request: &Request) -> Reply {
    let number = match request.path.as_str() {
        "/" => 0,
        path => path.trim_start_matches('/').parse().unwrap_or(PAGES),
    };
    if number >= PAGES {
        return Reply::status(404);
    }
    let links = [2 * number + 1, 2 * number + 2].into_iter().filter(|to| *to < PAGES);
    let links: String = links.map(|to| format!("<a href=/{to}>{to}</a> ")).collect();
    Reply::html(format!("<title>{number}</title>{} {links}", request.headers["host"]))
}

async fn start(data: &Path) -> Result<Node, NodeError> {
    let mut config = Config::from_toml(LOCAL, "test").expect("a sound configuration");
    config.data.dir = data.to_owned();
    let config = Arc::new(config);
    Node::start(NodeOptions { config, purpose: Purpose::Crawl, reloader: None }).await
}

async fn seed(node: &Node, site: &Site) {
    let seeds = vec![Seed { url: site.url("/"), ..Seed::default() }];
    let answers = node.seed(seeds).await.expect("an answer");
    assert_eq!(answers[0].result, SeedResult::Accepted);
}

async fn done(node: &Node) {
    let mut quiet = 0;
    until("the end of the crawl", 60, async || {
        let found = node.progress().await;
        let over = !found.busy && found.in_flight == 0 && found.next_wake.is_none();
        quiet = if over { quiet + 1 } else { 0 };
        (quiet > 20).then_some(())
    })
    .await;
}

async fn stop(node: Node) {
    node.stop(Duration::from_secs(10)).await.expect("a clean stop");
}

/// Everything of this site, and nothing of another, lies there.
fn check(data: &Path, site: &Site) {
    let counts = site.counts();
    assert_eq!((counts.len(), counts.values().max()), (PAGES + 1, Some(&1)), "{counts:?}");
    site.assert_polite(DELAY);
    let records = data::page_counts(data);
    assert_eq!((records.len(), records.values().max()), (PAGES, Some(&1)));
    assert!(records.keys().all(|url| url.starts_with(&site.key())), "{records:?}");
    let index = data::index(data);
    let own = |url: &serde_json::Value| url.as_str().is_some_and(|u| u.starts_with(&site.key()));
    assert_eq!(index.len(), PAGES + 1);
    assert!(index.iter().all(|line| own(&line.fields["url"])));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_in_one_process_never_notice_each_other() {
    let (one_site, two_site) = (Site::start(pages).await, Site::start(pages).await);
    let (one_data, two_data) = (support::directory(), support::directory());
    let one = start(one_data.path()).await.expect("a node");
    let two = start(two_data.path()).await.expect("another node");
    seed(&one, &one_site).await;
    seed(&two, &two_site).await;
    // Nothing that both do at once may be shared, so the first ends while the second is at work.
    two_site.asked(5, 30).await;
    done(&one).await;
    let status = one.status().await;
    assert_eq!((status.pages, status.hosts.known), (40, 1), "{status:?}");
    stop(one).await;
    done(&two).await;
    let status = two.status().await;
    assert_eq!((status.pages, status.hosts.known), (40, 1), "{status:?}");
    stop(two).await;
    check(one_data.path(), &one_site);
    check(two_data.path(), &two_site);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_stopped_leaves_its_directory_to_the_next() {
    let (site, data) = (Site::start(pages).await, support::directory());
    let first = start(data.path()).await.expect("a node");
    let refused = start(data.path()).await.err();
    let in_use = Some(NodeError::Directory(DirectoryError::InUse { path: "".into(), pid: None }));
    let kind = |error: &Option<NodeError>| error.as_ref().map(std::mem::discriminant);
    assert_eq!(kind(&refused), kind(&in_use), "{refused:?}");
    seed(&first, &site).await;
    site.asked(10, 30).await;
    stop(first).await;
    let asked = site.requests().len();
    assert!(asked < PAGES, "it was over before it was stopped");
    let second = start(data.path()).await.expect("the directory is free");
    done(&second).await;
    stop(second).await;
    check(data.path(), &site);
}
