//! Sites for crawls that are killed, and what must hold at them and in what such a crawl leaves.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::node::{Home, LOCAL};
use super::site::{CLOCK_STEP, Reply, Request, Site, assert_gaps};
use super::{data, events};

/// The delay of the crawl, long enough that a restart could fall short of it.
pub(crate) const DELAY: Duration = Duration::from_millis(250);
/// What one site asks for in its robots.txt.
pub(crate) const CRAWL_DELAY: Duration = Duration::from_secs(1);
/// What another asks for by Retry-After, now and then.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(3);
/// A2: an answer that is so old has been heard for good. It goes through the archive's group
/// (20 ms), a batch and a flush (20 ms) first; the rest is for the disk of a busy machine.
pub(crate) const HEARD: Duration = Duration::from_millis(500);

/// Words of a large page: some 900 KB, which a parser has in hand for a while.
const WORDS: usize = 100_000;
/// Words of a large page that comes late: a parser has it in hand for longer than it takes to be
/// stored, flushed and shown in the feed, several times over.
const LATE_WORDS: usize = 4 * WORDS;
/// Pages that no link leads to, as seeds for later.
const LATE: &str = "/late-";

/// The sites of one crawl.
pub(crate) struct Web {
    /// It wants nothing but the crawl's own delay.
    pub(crate) plain: Site,
    /// Every fourth page and every late one asks for [`RETRY_AFTER`] before it is there.
    pub(crate) asking: Site,
    /// Its robots.txt asks for [`CRAWL_DELAY`].
    pub(crate) slow: Site,
    /// Its pages take a parser a while.
    pub(crate) large: Site,
}

/// What pages a site has, from `/` to the last number, and the late ones.
fn tree(pages: usize, request: &Request, body: impl Fn(usize) -> String) -> Reply {
    if let Some(number) =
        request.path.strip_prefix(LATE).and_then(|late| late.parse::<usize>().ok())
    {
        return Reply::html(format!("<title>late {number}</title>{}", body(number + pages)));
    }
    let number = match request.path.as_str() {
        "/" => Some(0),
        path => path.strip_prefix('/').and_then(|number| number.parse::<usize>().ok()),
    };
    let Some(number) = number.filter(|number| *number < pages) else { return Reply::status(404) };
    let links = [2 * number + 1, 2 * number + 2].into_iter().filter(|to| *to < pages);
    let links: String = links.map(|to| format!("<a href=/{to}>{to}</a> ")).collect();
    Reply::html(format!("<title>{number}</title>page {number} {links}{}", body(number)))
}

fn nothing(_: usize) -> String {
    String::new()
}

fn robots(rules: &str) -> Reply {
    Reply::text(format!("User-agent: *\n{rules}\nDisallow:\n"))
}

fn plain(request: &Request) -> Reply {
    if request.path == "/robots.txt" {
        return robots("");
    }
    tree(Web::PLAIN_PAGES, request, nothing)
}

fn asking(request: &Request) -> Reply {
    if request.path == "/robots.txt" {
        return robots("");
    }
    let number: usize = request.path.trim_start_matches('/').parse().unwrap_or(0);
    if (number % 4 == 1 || request.path.starts_with(LATE)) && request.earlier == 0 {
        let status = if request.path.len().is_multiple_of(2) { 429 } else { 503 };
        return Reply::status(status).header("Retry-After", RETRY_AFTER.as_secs().to_string());
    }
    tree(Web::ASKING_PAGES, request, nothing)
}

fn slow(request: &Request) -> Reply {
    if request.path == "/robots.txt" {
        return robots(&format!("Crawl-delay: {}", CRAWL_DELAY.as_secs()));
    }
    tree(Web::SLOW_PAGES, request, nothing)
}

fn large(request: &Request) -> Reply {
    if request.path == "/robots.txt" {
        return robots("");
    }
    let count = |page| match page {
        0 => 0,
        page if page < Web::LARGE_PAGES => WORDS,
        _ => LATE_WORDS,
    };
    let words = |page| (0..count(page)).map(|word| format!("w{page}x{word:x} ")).collect();
    tree(Web::LARGE_PAGES, request, words)
}

impl Web {
    const PLAIN_PAGES: usize = 30;
    const ASKING_PAGES: usize = 5;
    const SLOW_PAGES: usize = 10;
    const LARGE_PAGES: usize = 4;

    /// All of them.
    pub(crate) async fn start() -> Self {
        Self {
            plain: Site::start(plain).await,
            asking: Site::start(asking).await,
            slow: Site::start(slow).await,
            large: Site::start(large).await,
        }
    }

    /// A home with a configuration for them.
    pub(crate) fn home(flush_interval: &str) -> Home {
        let local = LOCAL.replace("20ms", &format!("{}ms", DELAY.as_millis()));
        // A busy machine may take its time for a large page.
        let patient = "[parse]\nmax_time = \"60s\"\n";
        Home::new(&format!("{local}\n{patient}[data]\nflush_interval = \"{flush_interval}\"\n"))
    }

    fn sites(&self) -> [(&Site, usize); 4] {
        [
            (&self.plain, Self::PLAIN_PAGES),
            (&self.asking, Self::ASKING_PAGES),
            (&self.slow, Self::SLOW_PAGES),
            (&self.large, Self::LARGE_PAGES),
        ]
    }

    /// Their front pages.
    pub(crate) fn fronts(&self) -> Vec<String> {
        self.sites().iter().map(|(site, _)| site.url("/")).collect()
    }

    /// A page of a site that no link leads to.
    pub(crate) fn late(site: &Site, number: usize) -> String {
        site.url(&format!("{LATE}{number}"))
    }

    /// Every page that a link leads to.
    pub(crate) fn pages(&self) -> Vec<String> {
        let numbered = |(site, pages): (&Site, usize)| {
            let rest = (1..pages).map(|number| site.url(&format!("/{number}")));
            std::iter::once(site.url("/")).chain(rest).collect::<Vec<_>>()
        };
        self.sites().into_iter().flat_map(numbered).collect()
    }

    /// Requests so far.
    pub(crate) fn asked(&self) -> usize {
        self.sites().iter().map(|(site, _)| site.requests().len()).sum()
    }

    /// Every request that was made, by its URL.
    fn requests(&self) -> BTreeMap<String, Vec<Request>> {
        let mut found: BTreeMap<String, Vec<Request>> = BTreeMap::new();
        for (site, _) in self.sites() {
            for request in site.requests() {
                found.entry(site.url(&request.path)).or_default().push(request);
            }
        }
        found
    }

    /// F4, F7: no site was asked sooner than the crawl or the site itself allows, whatever was
    /// killed between two requests.
    pub(crate) fn assert_polite(&self, kills: &[Instant]) {
        for (site, _) in self.sites() {
            assert_gaps(&site.requests(), DELAY);
        }
        for pair in self.slow.requests().windows(2) {
            let [before, after] = pair else { continue };
            // A robots.txt that was not heard is asked for again, before anybody knows of the wish.
            if after.path != "/robots.txt" {
                assert_gaps(pair, CRAWL_DELAY);
            } else {
                assert_eq!(before.path, "/robots.txt", "known rules were asked for again");
            }
        }
        for wait in self.waits() {
            let heard = wait.ended + HEARD;
            if kills.iter().any(|kill| *kill >= wait.ended && *kill < heard) {
                continue;
            }
            let next = wait.next.duration_since(wait.ended);
            assert!(next + CLOCK_STEP >= RETRY_AFTER, "{} was followed after {next:?}", wait.path);
        }
    }

    /// The waits that a site asked for and that were over.
    fn waits(&self) -> Vec<Wait> {
        let requests = self.asking.requests();
        let wait = |pair: &[Request]| {
            let [before, after] = pair else { return None };
            let asked = matches!(before.status, 429 | 503);
            let ended = before.ended.filter(|_| asked)?;
            Some(Wait { path: before.path.clone(), ended, next: after.at })
        };
        requests.windows(2).filter_map(wait).collect()
    }

    /// When the site that asks for waits did so last.
    pub(crate) fn last_wait(&self) -> Option<Instant> {
        let requests = self.asking.requests();
        requests.last().filter(|last| matches!(last.status, 429 | 503)).and_then(|last| last.ended)
    }

    /// How many waits were heard before a kill and ended after it.
    pub(crate) fn waits_over_a_kill(&self, kills: &[Instant]) -> usize {
        let over = |wait: &Wait, kill: &Instant| {
            *kill >= wait.ended + HEARD && *kill < wait.ended + RETRY_AFTER
        };
        self.waits().iter().filter(|wait| kills.iter().any(|kill| over(wait, kill))).count()
    }

    /// When a large page was sent last.
    pub(crate) fn last_large(&self) -> Option<Instant> {
        let requests = self.large.requests();
        let mut sent = requests.iter().filter(|request| request.path.len() > 1);
        sent.rfind(|request| request.status == 200)?.ended
    }
}

/// A wait that a site asked for.
struct Wait {
    path: String,
    ended: Instant,
    next: Instant,
}

/// What the outputs held when a crawl was killed.
pub(crate) struct Left {
    at: Instant,
    records: Vec<String>,
}

impl Left {
    /// In this data directory, now.
    pub(crate) fn now(data: &Path, at: Instant) -> Self {
        let mut records = Vec::new();
        for file in data::files(&data.join("pages")) {
            let text = std::fs::read(&file).unwrap();
            let lines = text.split(|byte| *byte == b'\n');
            let pages = lines.filter_map(|line| serde_json::from_slice(line).ok());
            let url = |page: serde_json::Value| page["url"].as_str().map(str::to_owned);
            records.extend(pages.filter_map(url));
        }
        Self { at, records }
    }

    /// Pages that were not parsed at the kill, and were not fetched again: they came from the
    /// archive.
    pub(crate) fn parsed_later(&self, web: &Web) -> usize {
        let fetched = |requests: &[Request]| {
            let good = requests.iter().filter(|request| request.status == 200);
            good.clone().count() == 1 && good.clone().all(|request| request.at < self.at)
        };
        let missing = |url: &String| !self.records.contains(url) && !url.ends_with("robots.txt");
        web.requests().iter().filter(|(url, requests)| missing(url) && fetched(requests)).count()
    }
}

/// Records, archive and events have each page once.
pub(crate) async fn assert_whole(home: &Home, all: &[String]) {
    let records = data::page_counts(&home.data());
    for url in all {
        assert_eq!(records.get(url), Some(&1), "records of {url}");
    }
    assert_eq!(records.len(), all.len());
    assert_archived(home);
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

/// Every file of the archive is published and whole, and has what the page records point at.
pub(crate) fn assert_archived(home: &Home) {
    assert_readable(home);
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

/// Every file of the archive is published, and whole for the tools people use.
pub(crate) fn assert_readable(home: &Home) {
    let files = data::files(&home.data().join("archive"));
    for file in &files {
        assert!(file.to_string_lossy().ends_with(".warc.gz"), "{} is left", file.display());
    }
    let names: Vec<&str> = files.iter().map(|file| file.to_str().unwrap()).collect();
    for name in names {
        assert_eq!(data::tools(&["check", name])["status"], 0, "{name}");
    }
}
