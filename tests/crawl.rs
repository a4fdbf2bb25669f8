//! Seeds to archive, end to end: one site, every page once, politely, and what lies on the disk
//! afterwards (U1, F4, F6, O1, O3, O4).

#![expect(clippy::unwrap_used, reason = "a test stops where something is not as it should be")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use mehman::sandbox::{PageSizes, Sandbox, SandboxOptions};
use mehman::world::TokioClock;
use serde_json::Value;
use support::data;
use support::node::{Home, LOCAL};
use support::site::{Reply, Request, Site};

/// Pages of the site.
const PAGES: usize = 300;
/// `politeness.min_delay` of [`LOCAL`].
const DELAY: Duration = Duration::from_millis(20);

/// A site of [`PAGES`] pages, each linking to three others, all reachable from the front page, and
/// a part that robots.txt closes.
fn site_of_pages(request: &Request) -> Reply {
    if request.path == "/robots.txt" {
        return Reply::text("User-agent: *\nDisallow: /private/\n");
    }
    let number = match request.path.as_str() {
        "/" => Some(0),
        path => path.strip_prefix("/page/").and_then(|number| number.parse::<usize>().ok()),
    };
    match number {
        Some(number) if number < PAGES => Reply::html(page(number)),
        _ => Reply::status(404),
    }
}

fn page(number: usize) -> String {
    let links = [2 * number + 1, 2 * number + 2, (number * 7) % PAGES];
    let links: String = links
        .iter()
        .filter(|to| **to > 0 && **to < PAGES)
        .map(|to| format!("<a href=\"/page/{to}#part\">to page {to}</a> "))
        .collect();
    format!(
        "<!doctype html><html lang=en><title>Page {number}</title>\
         <meta name=description content=\"About {number}\">\
         <p>This is page {number} of the site, and it is its own. {links}\
         <a href=\"/\">front</a> <a href=\"/private/{number}\">closed</a>"
    )
}

fn all_paths() -> BTreeMap<String, usize> {
    let mut paths: BTreeMap<String, usize> =
        (1..PAGES).map(|number| (format!("/page/{number}"), 1)).collect();
    paths.extend([("/".to_owned(), 1), ("/robots.txt".to_owned(), 1)]);
    paths
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_of_a_site_is_fetched_once_and_politely() {
    let site = Site::start(site_of_pages).await;
    let home = Home::local();
    let front = site.url("/");
    let ended = home.run(&["crawl", &front, "--json"], 120).await.expect(0);

    let requests = site.requests();
    assert_eq!(site.counts(), all_paths());
    assert_eq!(requests[0].path, "/robots.txt");
    site.assert_polite(DELAY);
    let agent = format!("mehman/{} (+https://operator.test/crawler)", env!("CARGO_PKG_VERSION"));
    assert!(requests.iter().all(|request| request.headers["user-agent"] == agent));

    let told = ended.json();
    assert_eq!((&told["ended"], &told["pages"]), (&"done".into(), &PAGES.into()), "{told}");
    assert_eq!(told["outcomes"]["ok"], PAGES + 1, "{told}");
    check_records(&home, &site);
    check_archive(&home, &site);

    // Once more: everything is known, so nothing is asked for.
    let again = home.run(&["crawl", &front, "--json"], 20).await.expect(0);
    assert_eq!(site.requests().len(), PAGES + 1, "a second run asked again");
    assert_eq!(again.json()["pages"], 0);
    assert_eq!(data::pages(&home.data()).len(), PAGES);
}

/// O4: a record for each page, with the fields of docs/interface.md.
fn check_records(home: &Home, site: &Site) {
    let pages = data::pages(&home.data());
    let counts = data::page_counts(&home.data());
    assert_eq!((pages.len(), counts.len()), (PAGES, PAGES));
    let fields = [
        "url",
        "url_id",
        "version",
        "fetched_at",
        "status",
        "content_type",
        "charset",
        "language",
        "title",
        "description",
        "canonical",
        "text",
        "links",
        "digest",
        "simhash",
        "duplicate_of",
        "near_duplicate_of",
        "reason",
        "usage",
        "robots",
        "depth",
        "discovered_from",
        "parser_version",
        "archive",
        "fields",
    ];
    for page in &pages {
        let missing: Vec<_> = fields.iter().filter(|name| page.get(name).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?} not in {page}");
    }
    let find = |path: &str| pages.iter().find(|page| page["url"] == site.url(path)).unwrap();
    let (front, other) = (find("/"), find("/page/5"));
    assert_eq!((&front["depth"], &front["discovered_from"]), (&0.into(), &Value::Null));
    assert_eq!((&other["title"], &other["status"]), (&"Page 5".into(), &200.into()));
    assert_eq!((&other["language"], &other["charset"]), (&"en".into(), &"UTF-8".into()));
    assert_eq!((&other["description"], &other["depth"]), (&"About 5".into(), &2.into()));
    assert_eq!(other["discovered_from"], site.url("/page/2"));
    assert_eq!(other["digest"], blake3::hash(page(5).as_bytes()).to_hex().to_string());
    assert!(other["text"].as_str().unwrap().contains("This is page 5 of the site"), "{other}");
    let link = &other["links"][0];
    assert_eq!((&link["url"], &link["text"]), (&site.url("/page/11").into(), &"to page 11".into()));
}

/// O1, O3: what the tools people use read is what the site said.
fn check_archive(home: &Home, site: &Site) {
    let archives = data::files(&home.data().join("archive"));
    let mut found = BTreeSet::new();
    for archive in &archives {
        let name = archive.to_str().unwrap();
        assert!(name.ends_with(".warc.gz"), "{name}");
        assert_eq!(data::tools(&["check", name])["status"], 0);
        for record in data::tools(&["records", name]).as_array().unwrap() {
            if record["type"] == "response" {
                found.insert(record["url"].as_str().unwrap().to_owned());
            }
        }
    }
    let all: BTreeSet<String> = all_paths().keys().map(|path| site.url(path)).collect();
    assert_eq!(found, all);

    let index = data::index(&home.data());
    let urls: BTreeSet<String> =
        index.iter().map(|line| line.fields["url"].as_str().unwrap().to_owned()).collect();
    assert_eq!((index.len(), &urls), (all.len(), &all));
    for page in data::pages(&home.data()) {
        let line = index.iter().find(|line| line.fields["url"] == page["url"]).unwrap();
        let pointer = &page["archive"];
        assert_eq!(line.fields["filename"], pointer["file"]);
        assert_eq!(line.fields["offset"], pointer["offset"].to_string());
        assert_eq!(line.fields["length"], pointer["length"].to_string());
    }

    let line = index.iter().find(|line| line.fields["url"] == site.url("/page/7")).unwrap();
    let path = format!("{}id_/{}", line.timestamp, site.url("/page/7"));
    let replayed = data::tools(&["replay", home.data().to_str().unwrap(), &path]);
    assert_eq!(
        (&replayed[0]["status"], &replayed[0]["sha1"]),
        (&200.into(), &sha1(&page(7)).into())
    );
}

fn sha1(text: &str) -> String {
    use sha1::Digest as _;
    sha1::Sha1::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_stops_at_exactly_so_many_pages_and_goes_on_with_more() {
    let site = Site::start(site_of_pages).await;
    let home = Home::local();
    let front = site.url("/");
    let ended = home.run(&["crawl", &front, "--max-pages", "17", "--json"], 60).await.expect(0);
    assert_eq!(ended.json()["ended"], "max_pages");
    assert_eq!(site.requests().len(), 1 + 17);
    let ended = home.run(&["crawl", &front, "--max-pages", "30", "--json"], 60).await.expect(0);
    assert_eq!(ended.json()["pages"], 13);
    assert_eq!(site.counts().values().max(), Some(&1), "{:?}", site.counts());
    assert_eq!(site.requests().len(), 1 + 30);
    site.assert_polite(DELAY);
    assert_eq!(data::pages(&home.data()).len(), 30);
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_crawl_stops_within_seconds_and_is_completed_by_the_same_command() {
    let site = Site::start(site_of_pages).await;
    let home = Home::local();
    let line = ["crawl", &site.url("/"), "--json"];
    let running = home.start(&line);
    site.asked(60, 60).await;
    running.signal("-INT");
    let ended = running.ended(8).await.expect(130);
    assert_eq!(ended.json()["ended"], "interrupted");
    let before = site.requests().len();
    assert!(before < PAGES, "it was over before it was interrupted");
    home.run(&line, 120).await.expect(0);
    assert_eq!(site.counts(), all_paths());
    site.assert_polite(DELAY);
    let counts = data::page_counts(&home.data());
    assert_eq!((counts.len(), counts.values().max()), (PAGES, Some(&1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delay_of_a_second_is_kept_to_the_millisecond() {
    let site = Site::start(site_of_pages).await;
    let home = Home::new(&LOCAL.replace("20ms", "1s"));
    home.run(&["crawl", &site.url("/"), "--max-pages", "3"], 60).await.expect(0);
    site.assert_polite(Duration::from_secs(1));
    assert_eq!(site.requests().len(), 4);
}

/// The sandbox, and what a crawl of it has to be told.
async fn sandbox(hosts: u16, pages_per_host: u32) -> (Sandbox, Home) {
    let options = SandboxOptions {
        hosts,
        pages_per_host,
        sizes: PageSizes::Small,
        retry_after: Duration::from_secs(1),
        crawl_delay: Duration::from_secs(1),
        ..SandboxOptions::default()
    };
    let web = Sandbox::start(options, Arc::new(TokioClock::system())).await.unwrap();
    let own = LOCAL.replace("base = \"500ms\"", "base = \"500ms\"\nmax_attempts = 2");
    let dns = web.dns_address();
    let own = format!("{own}\n[dns]\nnameservers = [\"{dns}\"]\n[scope]\nmode = \"any\"\n");
    (web, Home::new(&own))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crawl_of_the_sandbox_finds_exactly_the_truth() {
    let (web, home) = sandbox(12, 8).await;
    let seeds = web.seeds();
    let mut line: Vec<&str> = seeds.iter().map(String::as_str).collect();
    line.extend(["--json", "--patience", "6s"]);
    line.insert(0, "crawl");
    let told = home.run(&line, 120).await.expect(0).json();

    let truth = web.expected();
    let mut statuses: BTreeMap<String, Vec<u16>> = BTreeMap::new();
    for visit in web.visits().into_iter().filter(|visit| visit.path != "/robots.txt") {
        let url = format!("http://{}:{}{}", visit.host, web.http_port(), visit.path);
        statuses.entry(url).or_default().push(visit.status);
    }
    let refused: Vec<_> = truth.refused.iter().filter(|url| statuses.contains_key(*url)).collect();
    assert!(refused.is_empty(), "robots.txt refuses {refused:?}");
    let unwished: Vec<_> =
        truth.nofollow_only.iter().filter(|url| statuses.contains_key(*url)).collect();
    assert!(unwished.is_empty(), "nofollow leads to {unwished:?}");
    for page in &truth.pages {
        let seen = statuses.remove(page).unwrap_or_else(|| panic!("{page} was not fetched"));
        match truth.retried.contains(page) {
            true => assert!(seen.len() == 2 && seen[0] != 200 && seen[1] == 200, "{page} {seen:?}"),
            false => assert_eq!(seen, [200], "{page}"),
        }
    }
    for redirect in truth.redirects.keys() {
        let seen = statuses.remove(redirect).unwrap_or_else(|| panic!("{redirect} not followed"));
        assert!(seen.len() == 1 && (300..400).contains(&seen[0]), "{redirect} {seen:?}");
    }
    for (url, status) in &truth.errors {
        let seen = statuses.remove(url).unwrap_or_else(|| panic!("{url} was not fetched"));
        let tries = if *status >= 500 { 2 } else { 1 };
        assert_eq!(seen, vec![*status; tries], "{url}");
    }
    assert!(statuses.is_empty(), "nobody links to {statuses:?}");

    let html: BTreeSet<String> = truth.pages.difference(&truth.other_types).cloned().collect();
    let records = data::page_counts(&home.data());
    assert!(records.values().all(|count| *count == 1));
    let missing: Vec<_> = html.iter().filter(|url| !records.contains_key(*url)).collect();
    assert!(missing.is_empty(), "no record of {missing:?}");
    let waiting: BTreeSet<&str> = told["waiting"]
        .as_array()
        .unwrap()
        .iter()
        .map(|w| w["host_key"].as_str().unwrap())
        .collect();
    for host in &truth.hosts_unreachable {
        assert!(waiting.iter().any(|key| key.contains(host.as_str())), "{host} not in {told}");
    }
    web.shutdown().await;
}
