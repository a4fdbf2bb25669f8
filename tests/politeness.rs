//! Politeness as a site sees it: delays, waits that a site asks for, robots.txt (F4, F7, F11, R1,
//! R2, R3).

mod support;

use std::time::{Duration, Instant};

use support::node::{Ended, Home, LOCAL};
use support::site::{Reply, Request, Site, assert_gaps};

/// A site of ten pages, each linked from the front page, after what `first` says of a request.
async fn site(first: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) -> Site {
    Site::start(move |request| {
        if let Some(reply) = first(request) {
            return reply;
        }
        let links: String = (0..10).map(|n| format!("<a href=/{n}>{n}</a>")).collect();
        match request.path.as_str() {
            "/" => Reply::html(format!("<title>front</title>{links}")),
            path if path.len() == 2 => Reply::html(format!("<title>{path}</title> {path}")),
            _ => Reply::status(404),
        }
    })
    .await
}

async fn crawl(home: &Home, site: &Site, patience: &str) -> Ended {
    let line = ["crawl", &site.url("/"), "--json", "--patience", patience];
    home.run(&line, 60).await.expect(0)
}

/// When the last answer of a path began to be sent, and when the next request of any path came.
fn around(site: &Site, status: u16) -> (Instant, Instant) {
    let requests = site.requests();
    let refused = requests.iter().position(|request| request.status == status);
    let refused = refused.unwrap_or_else(|| panic!("no {status} in {requests:?}"));
    let next = requests.get(refused + 1).unwrap_or_else(|| panic!("nothing after the {status}"));
    (requests[refused].ended.expect("it was answered"), next.at)
}

fn waiting(ended: &Ended, site: &Site) -> String {
    let told = ended.json();
    let hosts = told["waiting"].as_array().expect("a list").clone();
    let host = hosts.iter().find(|host| host["host_key"] == site.key());
    let host = host.unwrap_or_else(|| panic!("{} is not listed in {told}", site.key()));
    host["reason"].as_str().expect("a reason").to_owned()
}

fn robots(text: &'static str) -> impl Fn(&Request) -> Option<Reply> {
    move |request| (request.path == "/robots.txt").then(|| Reply::text(text))
}

/// Answers a path with a status once.
fn once(path: &'static str, reply: Reply) -> impl Fn(&Request) -> Option<Reply> {
    move |request| (request.path == path && request.earlier == 0).then(|| reply.clone())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_delay_is_kept_from_robots_txt_on() {
    let site = site(robots("User-agent: *\nCrawl-delay: 0.5\n")).await;
    crawl(&Home::local(), &site, "10s").await;
    assert_eq!(site.requests().len(), 12);
    site.assert_polite(Duration::from_millis(500));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rules_of_robots_txt_are_those_of_our_group() {
    let rules = "User-agent: *\nDisallow: /\n\nUser-agent: mehman\nDisallow: /3\nDisallow: /4\n";
    let site = site(robots(rules)).await;
    let ended = crawl(&Home::local(), &site, "10s").await;
    let counts = site.counts();
    assert_eq!((counts.len(), counts.values().max()), (10, Some(&1)), "{counts:?}");
    assert!(!counts.contains_key("/3") && !counts.contains_key("/4"));
    assert_eq!(ended.json()["urls"]["sleeping"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_says_429_is_left_alone_for_the_seconds_it_asks_for() {
    let busy = Reply::status(429).header("Retry-After", "3");
    let site = site(once("/4", busy)).await;
    crawl(&Home::local(), &site, "20s").await;
    let (refused, next) = around(&site, 429);
    assert!(next.duration_since(refused) >= Duration::from_millis(2999), "{:?}", next - refused);
    let counts = site.counts();
    assert_eq!((counts["/4"], counts.len()), (2, 12), "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_says_429_is_left_alone_until_the_date_it_names() {
    let site = site(|request| {
        let busy = request.path == "/4" && request.earlier == 0;
        busy.then(|| Reply::status(429).header("Retry-After", date_in(4)))
    })
    .await;
    crawl(&Home::local(), &site, "20s").await;
    let (refused, next) = around(&site, 429);
    // The date has whole seconds, so up to one of the four may be cut off.
    assert!(next.duration_since(refused) >= Duration::from_millis(2999), "{:?}", next - refused);
    assert_eq!(site.counts()["/4"], 2);
}

/// A date of HTTP so many seconds from now.
#[expect(clippy::disallowed_methods, reason = "the site has a clock of its own")]
fn date_in(seconds: u64) -> String {
    httpdate::fmt_http_date(std::time::SystemTime::now() + Duration::from_secs(seconds))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_site_that_says_503_without_a_time_gets_a_growing_rest() {
    let site =
        site(|request| (request.path == "/4" && request.earlier == 0).then(|| Reply::status(503)))
            .await;
    let ended = crawl(&Home::local(), &site, "1s").await;
    let requests = site.requests();
    let refused = requests.iter().position(|request| request.status == 503).expect("a 503");
    assert_eq!(refused + 1, requests.len(), "the host was asked again within a second");
    let reason = waiting(&ended, &site);
    assert!(reason.contains("backoff"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_beyond_the_patience_ends_the_crawl_and_is_listed() {
    let site = site(once("/4", Reply::status(429).header("Retry-After", "3600"))).await;
    let home = Home::local();
    let ended = crawl(&home, &site, "2s").await;
    let reason = waiting(&ended, &site);
    assert!(reason.contains("the site asked to wait until"), "{reason}");
    let asked = site.requests().len();
    // I3: a restart does not shorten the wait.
    let again = crawl(&home, &site, "2s").await;
    assert_eq!(site.requests().len(), asked, "the wait was forgotten");
    assert_eq!(waiting(&again, &site), reason);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_over_the_last_page_is_listed_too() {
    let site = Site::start(|request| match request.path.as_str() {
        "/" => Reply::status(429).header("Retry-After", "3600"),
        _ => Reply::status(404),
    })
    .await;
    let home = Home::local();
    let ended = crawl(&home, &site, "2s").await;
    let reason = waiting(&ended, &site);
    assert!(reason.contains("the site asked to wait until"), "{reason}");
    let again = crawl(&home, &site, "2s").await;
    assert_eq!((site.requests().len(), waiting(&again, &site)), (2, reason));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_fetched_where_robots_txt_is_unreachable() {
    let site = site(|request| (request.path == "/robots.txt").then(|| Reply::status(503))).await;
    let ended = crawl(&Home::local(), &site, "2s").await;
    assert_eq!(site.paths(), ["/robots.txt"]);
    assert!(!waiting(&ended, &site).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_allowed_where_there_is_no_robots_txt() {
    let site = site(|_| None).await;
    crawl(&Home::local(), &site, "10s").await;
    let counts = site.counts();
    assert_eq!((counts.len(), counts.values().max()), (12, Some(&1)), "{counts:?}");
    assert_eq!(site.paths()[0], "/robots.txt");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_redirected_robots_txt_is_obeyed() {
    let site = site(|request| match request.path.as_str() {
        "/robots.txt" => Some(Reply::redirect(301, "/rules/robots.txt")),
        "/rules/robots.txt" => Some(Reply::text("User-agent: *\nDisallow: /5\n")),
        _ => None,
    })
    .await;
    crawl(&Home::local(), &site, "10s").await;
    let counts = site.counts();
    assert_eq!(site.paths()[..2], ["/robots.txt", "/rules/robots.txt"]);
    assert!(!counts.contains_key("/5"), "{counts:?}");
    assert_eq!((counts.len(), counts.values().max()), (12, Some(&1)), "{counts:?}");
    site.assert_polite(Duration::from_millis(20));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_robots_txt_that_redirects_to_another_host_obeys_that_hosts_clock() {
    let other = site(robots("User-agent: *\nDisallow: /5\n")).await;
    let to = other.url("/robots.txt");
    let site = site(move |request| {
        (request.path == "/robots.txt").then(|| Reply::redirect(302, to.clone()))
    })
    .await;
    let home = Home::local();
    let line = ["crawl", &site.url("/"), &other.url("/"), "--json", "--patience", "10s"];
    home.run(&line, 60).await.expect(0);
    assert!(!site.counts().contains_key("/5"));
    assert_eq!(site.requests().len(), 1 + 10);
    site.assert_polite(Duration::from_millis(20));
    other.assert_polite(Duration::from_millis(20));
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_of_one_address_keep_its_delay() {
    let (one, two) = (site(|_| None).await, site(|_| None).await);
    let delay = "per_address_min_delay = \"150ms\"";
    let home = Home::new(&LOCAL.replace("per_address_min_delay = \"0s\"", delay));
    let line = ["crawl", &one.url("/"), &two.url("/"), "--patience", "10s"];
    home.run(&line, 60).await.expect(0);
    let mut requests = [one.requests(), two.requests()].concat();
    requests.sort_by_key(|request| request.at);
    assert_eq!(requests.len(), 24);
    for pair in requests.windows(2) {
        let gap = pair[1].at.duration_since(pair[0].at);
        assert!(gap >= Duration::from_millis(149), "{gap:?} at {}", pair[1].path);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_gets_no_more_requests_a_day_than_its_budget() {
    let site = site(|_| None).await;
    let home = Home::new(&format!(
        "{LOCAL}\n[[politeness.allowance]]\nhost = \"{}\"\n\
        host_daily_pages = 5\n",
        site.key()
    ));
    let ended = crawl(&home, &site, "2s").await;
    // F11: every request counts, robots.txt too.
    assert_eq!(site.requests().len(), 5, "{:?}", site.paths());
    let reason = waiting(&ended, &site);
    assert!(reason.contains("day") || reason.contains("budget"), "{reason}");
    let again = crawl(&home, &site, "2s").await;
    assert_eq!(site.requests().len(), 5, "a restart gave a new budget");
    waiting(&again, &site);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_site_rests_so_many_times_as_long() {
    let site = site(|request| {
        (request.path == "/")
            .then(|| Reply::html("<a href=/1>one</a>").after(Duration::from_millis(200)))
    })
    .await;
    let home = Home::new(&LOCAL.replace("delay_factor = 0.0", "delay_factor = 5.0"));
    crawl(&home, &site, "10s").await;
    let requests = site.requests();
    assert_eq!(site.paths(), ["/robots.txt", "/", "/1"]);
    assert_gaps(&requests[1..], Duration::from_millis(1000));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_not_allowed_is_not_connected_to() {
    let site = site(|_| None).await;
    let home = Home::new(&LOCAL.replace("127.0.0.0/8", "10.0.0.0/8"));
    crawl(&home, &site, "1s").await;
    assert!(site.requests().is_empty(), "{:?}", site.paths());
}
