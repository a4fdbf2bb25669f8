//! A2: kill -9 at any moment. The same command goes on: nothing is lost, nothing appears twice,
//! no host is asked sooner than it would have been.

#![expect(clippy::print_stdout, reason = "the seed of a run is printed before it fails")]

mod support;

use std::time::Duration;

use mehman::world::{Clock as _, Dice, SeededDice, TokioClock};
use support::node::{Home, LOCAL};
use support::site::{Reply, Request, Site};
use support::{data, events};

/// Sites that are crawled at once.
const SITES: usize = 3;
/// Pages of each.
const PAGES: usize = 40;
/// The delay of the crawl, long enough that a restart could fall short of it.
const DELAY: Duration = Duration::from_millis(250);
/// Kills of one crawl.
const KILLS: u64 = 5;

fn pages(request: &Request) -> Reply {
    if request.path == "/robots.txt" {
        return Reply::text("User-agent: *\nDisallow:\n");
    }
    let number = request.path.strip_prefix("/").and_then(|number| match number {
        "" => Some(0),
        number => number.parse::<usize>().ok(),
    });
    let Some(number) = number.filter(|number| *number < PAGES) else { return Reply::status(404) };
    let links = [2 * number + 1, 2 * number + 2].into_iter().filter(|to| *to < PAGES);
    let links: String = links.map(|to| format!("<a href=/{to}>{to}</a> ")).collect();
    Reply::html(format!("<title>{number}</title>page {number} {links}"))
}

async fn killed_again_and_again(seed: u64) {
    let dice = SeededDice::new(seed);
    let mut sites = Vec::new();
    for _ in 0..SITES {
        sites.push(Site::start(pages).await);
    }
    let home = Home::new(&LOCAL.replace("20ms", "250ms"));
    let fronts: Vec<String> = sites.iter().map(|site| site.url("/")).collect();
    let mut line = vec!["crawl"];
    line.extend(fronts.iter().map(String::as_str));
    let asked = || sites.iter().map(|site| site.requests().len()).sum::<usize>();
    for kill in 0..KILLS {
        let mut running = home.start(&line);
        let more = usize::try_from(dice.throw() % 25).expect("a small number");
        let goal = asked() + more;
        support::until("requests, or the end", 60, async || {
            (asked() >= goal || !running.is_running()).then_some(())
        })
        .await;
        TokioClock::system().sleep(Duration::from_millis(dice.throw() % 300)).await;
        running.kill();
        println!("seed {seed}: kill {kill} after {} requests", asked());
    }
    home.run(&line, 120).await.expect(0);

    for site in &sites {
        site.assert_polite(DELAY);
    }
    let all: Vec<String> = sites
        .iter()
        .flat_map(|site| (1..PAGES).map(|number| site.url(&format!("/{number}"))))
        .chain(fronts.iter().cloned())
        .collect();
    let records = data::page_counts(&home.data());
    for url in &all {
        assert_eq!(records.get(url), Some(&1), "records of {url}");
    }
    assert_eq!(records.len(), all.len());
    check_archive(&home);
    check_events(&home, &all).await;
}

fn check_archive(home: &Home) {
    for archive in data::files(&home.data().join("archive")) {
        let name = archive.to_str().expect("a plain name");
        assert!(name.ends_with(".warc.gz"), "{name} is left open");
        assert_eq!(data::tools(&["check", name])["status"], 0, "{name}");
    }
    let index = data::index(&home.data());
    for page in data::pages(&home.data()) {
        let pointer = &page["archive"];
        let offset = pointer["offset"].to_string();
        let line = index.iter().find(|line| {
            line.fields["filename"] == pointer["file"] && line.fields["offset"] == *offset
        });
        let line = line.unwrap_or_else(|| panic!("not in the index: {pointer}"));
        assert_eq!(line.fields["url"], page["url"]);
    }
}

async fn check_events(home: &Home, all: &[String]) {
    let daemon = home.serve().await;
    let found = events::read_all(&daemon.client).await;
    events::check(&found);
    for url in all {
        for kind in ["discovered", "fetched", "parsed"] {
            assert_eq!(events::count(&found, kind, url), 1, "{kind} {url}");
        }
    }
    daemon.running.signal("-TERM");
    daemon.running.ended(20).await.expect(0);
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_9_at_any_moment_loses_nothing_and_repeats_nothing() {
    killed_again_and_again(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kill_9_at_other_moments_loses_nothing_either() {
    killed_again_and_again(2).await;
}

/// `MEHMAN_TEST_SEEDS=3..40 cargo test --test restart -- --ignored`, at night.
#[ignore = "takes ten seconds a seed"]
#[tokio::test(flavor = "multi_thread")]
async fn kill_9_at_many_more_moments() {
    let wanted = std::env::var("MEHMAN_TEST_SEEDS").unwrap_or_else(|_| "3..8".to_owned());
    let (from, to) = wanted.split_once("..").expect("seeds such as 3..40");
    let number = |text: &str| text.parse::<u64>().expect("a number");
    for seed in number(from)..number(to) {
        println!("seed {seed}");
        Box::pin(killed_again_and_again(seed)).await;
    }
}
