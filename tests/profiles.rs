//! S0 to S4: every profile of `config/` runs as it is. What a test adds comes by the environment:
//! who crawls, and that this machine may be asked.

mod support;

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use flate2::read::MultiGzDecoder;
use mehman::world::{Clock as _, TokioClock};
use serde_json::Value;
use support::http::Client;
use support::node::{CONTACT, Home, Running};
use support::site::{Reply, Request, Site};
use support::{data, events, torture, until};

/// The first bytes of a picture.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n and what a picture holds";
/// A body that S2 cuts.
const LONG_BYTES: usize = 400_000;
/// A body that S4 skips.
const HUGE_BYTES: usize = 6 << 20;

fn filled(bytes: usize) -> Vec<u8> {
    let words = (0..bytes / 6).map(|word| format!("{word:05} "));
    format!("<title>long</title><p>{}", words.collect::<String>()).into_bytes()
}

fn page(request: &Request) -> Reply {
    let html = |body: &str| Reply::html(format!("<title>{}</title>{body}", request.path));
    match request.path.as_str() {
        "/robots.txt" => Reply::text("User-agent: *\nDisallow: /closed\n"),
        "/" => html("<a href=/a>a</a> <a href=/closed>closed</a> <img src=/picture.png>"),
        "/a" => html("a page that anybody may have"),
        "/wish" => html("<meta name=robots content=noai>not for models"),
        "/long" => Reply::html("").body(filled(LONG_BYTES)),
        "/huge" => Reply::html("").body(filled(HUGE_BYTES)),
        "/picture.png" => Reply::status(200).header("Content-Type", "image/png").body(PICTURE),
        _ => Reply::status(404),
    }
}

/// A home of its own, where a profile of the repository runs unchanged.
struct Profile {
    home: Home,
    file: String,
}

impl Profile {
    fn new(name: &str) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("config").join(name);
        Self { home: Home::new(""), file: file.to_str().expect("a plain path").to_owned() }
    }

    fn start(&self, arguments: &[&str], more: &[(&str, &str)]) -> Running {
        let profile = ["--config", &self.file, "--data", "data"];
        let line = [arguments, &profile].concat();
        let needed = [
            ("MEHMAN__IDENTITY__CONTACT_URL", CONTACT),
            ("MEHMAN__FETCH__ALLOW_NETWORKS", "127.0.0.0/8"),
            ("MEHMAN__ADMIN__LISTEN", "127.0.0.1:0"),
        ];
        self.home.start_with(&line, &[&needed, more].concat())
    }

    /// Crawls to the end.
    async fn crawl(&self, seeds: &[String], more: &[(&str, &str)]) -> Value {
        let seeds = seeds.iter().map(String::as_str);
        let line: Vec<&str> = ["crawl", "--json"].into_iter().chain(seeds).collect();
        let told = self.start(&line, more).ended(120).await.expect(0).json();
        assert_eq!(told["ended"], "done", "{told}");
        torture::assert_archived(&self.home);
        told
    }

    /// The page record of a URL.
    fn record(&self, url: &str) -> Option<Value> {
        data::pages(&self.home.data()).into_iter().find(|page| page["url"] == url)
    }

    /// The statuses and kinds of a URL's records in the archive's index.
    fn archived(&self, url: &str) -> Vec<Value> {
        let lines = data::index(&self.home.data()).into_iter().map(|line| line.fields);
        lines.filter(|fields| fields["url"] == url).collect()
    }

    /// All that the archive holds, as text.
    fn warc(&self) -> String {
        let mut all = Vec::new();
        for file in data::files(&self.home.data().join("archive")) {
            let file = fs::File::open(file).expect("a file");
            MultiGzDecoder::new(file).read_to_end(&mut all).expect("whole members");
        }
        String::from_utf8_lossy(&all).into_owned()
    }
}

/// Waits until all of these are fetched.
async fn fetched(client: &Client, urls: &[String]) -> Vec<Value> {
    until("the pages", 60, async || {
        let mut told = Vec::new();
        for url in urls {
            let answer = client.get(&format!("/v1/urls?url={url}")).await;
            let view = (answer.status == 200).then(|| answer.json())?;
            told.push((view["state"] == "fetched").then_some(view)?);
        }
        Some(told)
    })
    .await
}

/// By a calendar whose months have 31 days, which is near enough.
fn days_until(time: &Value) -> u64 {
    let days = |text: &str| {
        let (date, _) = text.split_once('T').expect("a time");
        let parts: Vec<u64> = date.split('-').map(|part| part.parse().expect("digits")).collect();
        parts[0] * 372 + parts[1] * 31 + parts[2]
    };
    days(time.as_str().expect("a time")) - days(&TokioClock::system().now().to_string())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_archive_keeps_pictures_and_whatever_is_linked_and_comes_back() {
    let (site, other) = (Site::start(page).await, Site::start(page).await);
    let front = site.url("/");
    let linked = other.url("/a");
    let profile = Profile::new("archive.toml");
    let daemon = profile.start(&["serve"], &[]);
    let client = Client::new(daemon.address().await);
    let seeds = format!("{front}\n{linked}\n");
    client.ask("POST", "/v1/seeds", "text/plain", seeds).await;
    let wanted = [front.clone(), site.url("/a"), site.url("/picture.png"), linked];
    let told = fetched(&client, &wanted).await;
    for view in &told {
        assert_eq!(view["outcome"], "ok", "{view}");
        // As far away as `recrawl.max_interval`: nothing is known of its changes yet.
        let days = days_until(&view["next_fetch_at"]);
        assert!((28..=31).contains(&days), "{days} days: {view}");
    }
    daemon.signal("-TERM");
    daemon.ended(30).await.expect(0);
    torture::assert_archived(&profile.home);
    for url in &wanted {
        assert_eq!(profile.archived(url).len(), 1, "{url}");
    }
    let picture = &profile.archived(&site.url("/picture.png"))[0];
    assert_eq!((&picture["status"], &picture["mime"]), (&"200".into(), &"image/png".into()));
    assert!(profile.warc().contains("what a picture holds"), "the picture has no body");
    assert!(!site.paths().contains(&"/closed".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_domain_of_the_billion_pages_is_asked_every_seventy_seconds() {
    let site = Site::start(page).await;
    let profile = Profile::new("billion-pages.toml");
    let front = site.url("/");
    let mut crawl = profile.start(&["crawl", &front, "--admin-listen", "127.0.0.1:0"], &[]);
    let client = Client::new(crawl.address().await);
    let key = site.key().replace(':', "%3A").replace('/', "%2F");
    // The first request of a host is for its robots.txt; the next is for the page.
    let host = until("the host's next time", 30, async || {
        let answer = client.get(&format!("/v1/hosts/{key}")).await;
        let host = (answer.status == 200).then(|| answer.json())?;
        let known = host["robots"]["state"] == "obey" && host["state"] == "waiting";
        let domain = host["reason"].as_str().is_some_and(|reason| reason.contains("domain"));
        (known && domain).then_some(host)
    })
    .await;
    let allowed = host["next_allowed_at"].as_str().expect("a time").to_owned();
    let soon = TokioClock::system().now() + Duration::from_secs(60);
    assert!(allowed > soon.to_string(), "{host}");
    assert_eq!(site.paths(), ["/robots.txt"]);
    // It waits for the domain, longer than for a host that makes difficulties.
    events::silence(&client).await;
    assert!(crawl.is_running(), "it gave up: {}", crawl.said());
    crawl.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_billion_pages_are_cut_and_kept_at_250_kilobytes() {
    let site = Site::start(page).await;
    let profile = Profile::new("billion-pages.toml");
    let long = site.url("/long");
    let quick = [("MEHMAN__POLITENESS__PER_DOMAIN_MIN_DELAY", "0s")];
    profile.crawl(&[site.url("/"), long.clone()], &quick).await;
    let record = profile.record(&long).expect("its record");
    let reasons = record["reason"].to_string();
    assert!(reasons.contains("the body limit of 250000"), "{reasons}");
    let text = record["text"].as_str().expect("text");
    assert!((240_000..250_000).contains(&text.len()), "{} bytes of text", text.len());
    let warc = profile.warc();
    let mut records = warc.split("WARC/1.1\r\n");
    let header = |record: &str, name: &str, value: &str| {
        record.lines().any(|line| line == format!("{name}: {value}"))
    };
    let cut = records.find(|record| {
        header(record, "WARC-Target-URI", &long) && header(record, "WARC-Type", "response")
    });
    let cut = cut.expect("a response in the archive");
    assert!(header(cut, "WARC-Truncated", "length"), "not marked as cut");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_search_index_and_the_ring_crawl_to_their_end() {
    for name in ["search-index.toml", "ring.toml"] {
        let site = Site::start(page).await;
        let profile = Profile::new(name);
        profile.crawl(&[site.url("/")], &[]).await;
        for path in ["/", "/a"] {
            assert!(profile.record(&site.url(path)).is_some(), "{name}: {path}");
        }
        assert!(!site.paths().contains(&"/closed".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_for_training_leaves_out_wishes_and_skips_what_is_too_long() {
    let site = Site::start(page).await;
    let profile = Profile::new("training-text.toml");
    let seeds = ["/", "/wish", "/huge"].map(|path| site.url(path));
    let told = profile.crawl(&seeds, &[]).await;
    assert_eq!(told["outcomes"]["too_large"], 1, "{told}");
    assert!(profile.record(&site.url("/a")).is_some());
    // Left out of the output, kept in the archive.
    assert!(profile.record(&site.url("/wish")).is_none());
    assert_eq!(profile.archived(&site.url("/wish")).len(), 1);
    assert!(!profile.warc().contains("00100 00101"), "the long body was kept");
}
