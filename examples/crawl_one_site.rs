//! Crawls one site with the library: start a node, give it a seed, wait, stop.
//!
//! `cargo run --example crawl_one_site -- https://example.org/ you@example.org`
//!
//! The environment is read like by the command line, such as `MEHMAN__SCOPE__MAX_PAGES=20`.
#![expect(clippy::print_stdout, reason = "an example speaks to its reader")]

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use mehman::config::{Config, Identity};
use mehman::node::{Node, NodeOptions, Purpose};
use mehman::protocol::discovery::Seed;
use mehman::world::{Clock as _, TokioClock};

/// Hosts that wait for longer than this are not waited for.
const PATIENCE: Duration = Duration::from_secs(10);

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let url = arguments.next().context("give the URL of a site")?;
    let contact = arguments.next().context("give a page or address where you can be reached")?;
    let set = [
        (Identity::contact_key(&contact).to_owned(), contact),
        ("data.dir".to_owned(), "crawl-one-site".to_owned()),
    ];
    let config = Arc::new(Config::load(None, std::env::vars(), &set)?);
    config.crawlable()?;

    let options = NodeOptions { config, purpose: Purpose::Crawl, reloader: None };
    let node = Box::pin(Node::start(options)).await?;
    for answer in node.seed(vec![Seed { url, ..Seed::default() }]).await? {
        println!("{}: {:?} {}", answer.url, answer.result, answer.reason.unwrap_or_default());
    }
    wait(&node).await;
    let status = Box::pin(node.status()).await;
    println!("{} pages, {} URLs known", status.pages, status.urls.known);
    for host in node.progress().await.waiting {
        println!("{} waits: {}", host.host_key, host.reason);
    }
    println!("results are in {:?}", node.data_dir().unwrap_or_default());
    Box::pin(node.stop(Duration::from_secs(10))).await?;
    Ok(())
}

/// Until three looks in a row find nothing to do within the patience: stages are asked one after
/// the other, and work may have moved between two questions.
async fn wait(node: &Node) {
    let clock = TokioClock::system();
    let mut quiet = 0;
    while quiet < 3 {
        clock.sleep(Duration::from_millis(200)).await;
        let found = node.progress().await;
        let soon = found.next_wake.is_some_and(|at| at <= clock.now() + PATIENCE);
        let done = found.page_cap_reached || !soon;
        quiet = if found.busy || !done { 0 } else { quiet + 1 };
    }
}
