//! The truth against a crawl that knows nothing of the plans.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use url::Url;

use super::super::site::host_name;
use super::super::web::Web;
use super::super::{Sandbox, SandboxOptions, Truth};
use super::{get, links, shape, small, started};
use crate::types::Timestamp;
use crate::world::TokioClock;

/// What robots.txt of a host closes: the prefix of paths, if any.
async fn closed_by_robots(sandbox: &Sandbox, host: u16) -> Option<&'static str> {
    let mut got = get(sandbox, &sandbox.web.shape.url(host, "/robots.txt"), "").await;
    if got.status == 301 {
        let location = got.header("location").to_owned();
        got = get(sandbox, &location, "").await;
    }
    match got.status {
        503 => Some("/"),
        200 if got.body.windows(8).any(|part| part == b"/private") => Some("/private/"),
        _ => None,
    }
}

/// A crawl without delays: every link that robots.txt and nofollow leave open.
async fn crawl(sandbox: &Sandbox) -> Truth {
    let mut closed = BTreeMap::new();
    for host in 0..sandbox.web.shape.options.hosts {
        closed.insert(host_name(host), closed_by_robots(sandbox, host).await);
    }
    let mut found = Truth::default();
    let mut next: VecDeque<String> = sandbox.seeds().into();
    let mut seen = BTreeSet::new();
    while let Some(url) = next.pop_front() {
        if !seen.insert(url.clone()) {
            continue;
        }
        let parsed = Url::parse(&url).unwrap();
        let name = parsed.host_str().unwrap();
        if !closed.contains_key(name) || parsed.port() != Some(sandbox.http_port()) {
            found.unreachable.insert(url);
        } else if closed[name].is_some_and(|prefix| parsed.path().starts_with(prefix)) {
            found.refused.insert(url);
        } else {
            next.extend(fetch(sandbox, url, &mut found).await);
        }
    }
    found
}

/// Fetches a page, again when it asks for that, and says where it leads.
async fn fetch(sandbox: &Sandbox, url: String, found: &mut Truth) -> BTreeSet<String> {
    let mut got = get(sandbox, &url, "").await;
    if !got.header("retry-after").is_empty() {
        found.retried.insert(url.clone());
        got = get(sandbox, &url, "").await;
    }
    let to = got.header("location").to_owned();
    match got.status {
        200 if got.header("content-type").starts_with("text/html") => {
            let links = links(&got.body, &url);
            found.pages.insert(url);
            return links;
        }
        200 => {
            found.pages.insert(url.clone());
            found.other_types.insert(url);
        }
        300..=399 => {
            found.redirects.insert(url, to.clone());
            return [to].into();
        }
        status => {
            found.errors.insert(url, status);
        }
    }
    BTreeSet::new()
}

#[tokio::test]
async fn a_plain_crawl_finds_exactly_the_truth() {
    let sandbox = started(small()).await;
    let found = crawl(&sandbox).await;
    let truth = sandbox.expected();
    assert_eq!(found.pages, truth.pages);
    assert_eq!(found.retried, truth.retried);
    assert_eq!(found.other_types, truth.other_types);
    assert_eq!(found.redirects, truth.redirects);
    assert_eq!(found.errors, truth.errors);
    assert_eq!(found.unreachable, truth.unreachable);
    assert!(found.refused.is_subset(&truth.refused) && found.refused.len() >= 4);
    assert!(truth.hosts_unreachable.contains("site-003.test"));
    assert!(!truth.nofollow_only.is_empty() && !truth.duplicates.is_empty());
    let port = sandbox.http_port();
    let asked: BTreeSet<String> = sandbox
        .visits()
        .iter()
        .map(|visit| format!("http://{}:{port}{}", visit.host, visit.path))
        .collect();
    assert!(asked.is_disjoint(&truth.refused) && asked.is_disjoint(&truth.nofollow_only));
    let fronts = (0..12).filter(|host| *host != 3).map(|host| sandbox.web.shape.url(host, "/"));
    assert_eq!(fronts.filter(|url| !truth.pages.contains(url)).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn the_truth_of_the_default_web_knows_every_host_and_page() {
    let shape = shape(SandboxOptions::default());
    let clock = Arc::new(TokioClock::starting_at(Timestamp::EPOCH));
    let web = Web::new(shape, None, clock);
    let truth = Truth::walk(&web, [0].into_iter());
    let planned: usize = (0..40).map(|host| web.plan(host).unwrap().nodes.len()).sum();
    let known = truth.pages.len()
        + truth.redirects.len()
        + truth.errors.len()
        + truth.refused.len()
        + truth.nofollow_only.len();
    assert_eq!(known, planned);
    let nowhere = ["nowhere.test", "servfail.test", "site-003.test"];
    assert_eq!(truth.hosts_unreachable.iter().collect::<Vec<_>>(), nowhere);
}
