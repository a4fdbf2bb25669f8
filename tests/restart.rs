//! A2: kill -9 at any moment. The same command goes on: nothing is lost, nothing appears twice,
//! no host is asked sooner than it would have been, and a wait that a site asked for stands.

#![expect(clippy::print_stdout, reason = "the seed of a run is printed before it fails")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mehman::world::{Clock as _, Dice, SeededDice, TokioClock};
use support::node::{Daemon, Home, LOCAL, Running};
use support::site::{CLOCK_STEP, Reply, Request, Site, assert_gaps};
use support::torture::{HEARD, Left, Web, assert_archived, assert_readable, assert_whole};
use support::{data, events, now, until};

/// When a crawl is killed. Each is used twice in a crawl, in an order that the seed throws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// `crawl`, while it starts, or not long after.
    Starting,
    /// `crawl`, after some requests and a little more.
    Working,
    /// `serve`, at once when the answer to `POST /v1/seeds` has come.
    Seeded,
    /// `serve`, once a site's wish to wait was heard, long before that wait ends.
    Waiting,
    /// `serve`, with a large page sent: stored or not, in a parser's hands or not.
    Sent,
    /// `serve`, once a large page is in the feed as fetched, and a parser has it in hand.
    Unparsed,
}

const MOMENTS: [Moment; 6] = [
    Moment::Starting,
    Moment::Working,
    Moment::Seeded,
    Moment::Waiting,
    Moment::Sent,
    Moment::Unparsed,
];
/// Kills of one crawl.
const KILLS: usize = 2 * MOMENTS.len();

/// A crawl that is killed again and again.
struct Torture {
    dice: SeededDice,
    web: Web,
    home: Home,
    kills: Vec<Instant>,
    left: Vec<Left>,
    /// Late pages whose seeds were acknowledged.
    late: Vec<String>,
}

impl Torture {
    fn below(&self, bound: u64) -> u64 {
        self.dice.throw() % bound
    }

    fn moments(&self) -> Vec<Moment> {
        let mut moments = [MOMENTS, MOMENTS].concat();
        for last in (1..moments.len()).rev() {
            let other = self.below(u64::try_from(last).expect("a small number") + 1);
            moments.swap(last, usize::try_from(other).expect("a small number"));
        }
        moments
    }

    fn crawl(&self) -> Running {
        let fronts = self.web.fronts();
        let line = std::iter::once("crawl").chain(fronts.iter().map(String::as_str));
        self.home.start(&line.collect::<Vec<_>>())
    }

    async fn pass(&self, bound: u64) {
        TokioClock::system().sleep(Duration::from_millis(self.below(bound))).await;
    }

    /// A daemon that has acknowledged the front pages and a late page of one site.
    async fn serve(&mut self, site: impl Fn(&Web) -> &Site) -> Daemon {
        let daemon = self.home.serve().await;
        self.pass(400).await;
        let late = Web::late(site(&self.web), self.late.len());
        let seeds = [self.web.fronts(), vec![late.clone()]].concat().join("\n");
        let answer = daemon.client.ask("POST", "/v1/seeds", "text/plain", seeds).await;
        let told = answer.json();
        assert_eq!((answer.status, &told["refused"]), (200, &0.into()), "{told}");
        self.late.push(late);
        daemon
    }

    /// Starts what is to be killed, and waits until it is time.
    async fn started(&mut self, moment: Moment) -> Running {
        let began = now();
        let since = |at: Option<Instant>| at.filter(|at| *at >= began).map(|_| ());
        match moment {
            Moment::Starting => {
                let running = self.crawl();
                self.pass(600).await;
                running
            }
            Moment::Working => {
                let mut running = self.crawl();
                let more = usize::try_from(self.below(15)).expect("a small number");
                let goal = self.web.asked() + more;
                let happened = |over| (self.web.asked() >= goal || over).then_some(());
                until("requests, or the end", 60, async || happened(!running.is_running())).await;
                self.pass(300).await;
                running
            }
            Moment::Seeded => self.serve(|web| &web.plain).await.running,
            Moment::Waiting => {
                let running = self.serve(|web| &web.asking).await.running;
                until("a wait", 60, async || since(self.web.last_wait())).await;
                TokioClock::system().sleep(HEARD).await;
                self.pass(500).await;
                running
            }
            Moment::Sent => {
                let running = self.serve(|web| &web.large).await.running;
                until("a large page", 60, async || since(self.web.last_large())).await;
                self.pass(400).await;
                running
            }
            Moment::Unparsed => {
                let Daemon { running, client, .. } = self.serve(|web| &web.large).await;
                let late = self.late.last().expect("a late page");
                let fetched = async || {
                    let found = events::read_all(&client).await;
                    (events::count(&found, "fetched", late) > 0).then_some(())
                };
                until("a large page in the feed", 60, fetched).await;
                running
            }
        }
    }

    async fn kill(&mut self, moment: Moment) {
        let running = self.started(moment).await;
        // Taken before: what was answered later than this may have been heard by nobody.
        let at = now();
        running.kill();
        self.kills.push(at);
        self.left.push(Left::now(&self.home.data(), at));
    }
}

/// With the usual interval of flushes a kill mostly finds exchanges whose end is not durable; with
/// a short one it also finds pages that are durable and not parsed.
async fn killed_again_and_again(seed: u64) {
    let flush_interval = if seed.is_multiple_of(2) { "1s" } else { "50ms" };
    let (dice, web) = (SeededDice::new(seed), Web::start().await);
    let home = Web::home(flush_interval);
    let (kills, left, late) = (Vec::new(), Vec::new(), Vec::new());
    let mut torture = Torture { dice, web, home, kills, left, late };
    for moment in torture.moments() {
        println!("seed {seed}: {moment:?} after {} requests", torture.web.asked());
        torture.kill(moment).await;
    }
    assert_eq!(torture.kills.len(), KILLS);
    torture.crawl().ended(120).await.expect(0);

    let Torture { web, home, kills, left, late, .. } = torture;
    web.assert_polite(&kills);
    let all = [web.pages(), late].concat();
    assert_whole(&home, &all).await;
    let waits = web.waits_over_a_kill(&kills);
    let parsed_later: Vec<usize> = left.iter().map(|left| left.parsed_later(&web)).collect();
    println!("seed {seed}: {waits} waits over a kill, parsed after a kill: {parsed_later:?}");
    assert!(waits > 0, "no kill fell into a wait that was heard");
    let is_met = flush_interval == "1s" || parsed_later.iter().any(|pages| *pages > 0);
    assert!(is_met, "no kill left a page to be parsed");
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
#[ignore = "takes half a minute a seed"]
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

/// A delay that no start lasts as long as.
const LONG: Duration = Duration::from_secs(3);

/// A site is asked for a page, and the crawl killed so long after it was asked or has answered.
async fn killed_over_a_page(answers: Reply, config: &str, after: Duration) -> Vec<Request> {
    let site = Site::start(move |request: &Request| match request.path.as_str() {
        "/robots.txt" => Reply::status(404),
        "/1" => Reply::html("<title>1</title>"),
        _ if request.earlier > 0 => Reply::html("<title>0</title>"),
        _ => answers.clone(),
    })
    .await;
    let home = Home::new(config);
    let (front, other) = (site.url("/"), site.url("/1"));
    let line = ["crawl", &*front, &*other];
    let running = home.start(&line);
    until("the page", 60, async || site.paths().contains(&"/".to_owned()).then_some(())).await;
    TokioClock::system().sleep(after).await;
    running.kill();
    home.run(&line, 60).await.expect(0);
    assert_eq!(data::page_counts(&home.data()).len(), 2);
    site.requests()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_counts_as_just_visited_when_its_crawler_was_killed() {
    let config = LOCAL.replace("20ms", &format!("{}s", LONG.as_secs()));
    let page = Reply::html("<title>0</title>");
    let unanswered = page.clone().after(Duration::from_millis(1500));
    // Killed before the answer came, right behind it, and once it was heard.
    let (unheard, just, heard) = tokio::join!(
        killed_over_a_page(unanswered, &config, Duration::from_millis(1400)),
        killed_over_a_page(page.clone(), &config, Duration::ZERO),
        killed_over_a_page(page, &config, HEARD),
    );
    // From the end of what was cut off as well: the clock at the grant was not enough for that.
    for requests in [unheard, just, heard] {
        assert_gaps(&requests, LONG);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_that_a_site_asked_for_stands_when_its_crawler_was_killed() {
    let asks = |status| Reply::status(status).header("Retry-After", LONG.as_secs().to_string());
    // Nothing else happens that would make the wait durable.
    let (busy, gone) = tokio::join!(
        killed_over_a_page(asks(429), LOCAL, HEARD),
        killed_over_a_page(asks(503), LOCAL, HEARD),
    );
    for requests in [busy, gone] {
        let asked =
            requests.iter().position(|request| request.status >= 400 && request.path == "/");
        let asked = asked.expect("a wait");
        let next = requests.get(asked + 1).expect("a request after the wait");
        let gap = next.at.duration_since(requests[asked].ended.expect("an answer"));
        assert!(gap + CLOCK_STEP >= LONG, "{} came {gap:?} after a wish for {LONG:?}", next.path);
    }
}

/// Pages of the crawls whose archive is torn.
const PAGES: usize = 18;

fn chain(request: &Request) -> Reply {
    let number = request.path.trim_start_matches('/').parse::<usize>().unwrap_or(0);
    match request.path.as_str() {
        "/robots.txt" => Reply::status(404),
        _ if number >= PAGES => Reply::status(404),
        _ => Reply::html(format!("<title>{number}</title><a href=/{}>next</a>", number + 1)),
    }
}

/// A crawl that was killed with a file of the archive open.
async fn killed_with_an_open_file() -> (Site, Home, PathBuf) {
    let (site, home) = (Site::start(chain).await, Home::new(&LOCAL.replace("20ms", "100ms")));
    let running = home.start(&["crawl", &site.url("/")]);
    site.asked(12, 60).await;
    running.kill();
    let files = data::files(&home.data().join("archive"));
    let open = files.iter().find(|file| file.extension().is_some_and(|end| end == "open"));
    let open = open.unwrap_or_else(|| panic!("none is open: {files:?}")).clone();
    (site, home, open)
}

/// Where the last member of a compressed file begins.
fn last_member(bytes: &[u8]) -> usize {
    let starts = bytes.windows(4).enumerate();
    let mut starts = starts.filter(|(_, four)| *four == [0x1f, 0x8b, 8, 0]);
    starts.next_back().expect("a member").0
}

/// The same crawl again cuts the tail, says so, and ends.
async fn goes_on_and_says(home: &Home, site: &Site, open: &Path, cut: u64) {
    let ended = home.run(&["crawl", &site.url("/")], 60).await.expect(0);
    let name = open.file_stem().expect("a name").to_string_lossy();
    let said = ended.err.lines().find(|line| line.contains("torn tail cut"));
    let said = said.unwrap_or_else(|| panic!("nothing is said: {}", ended.err));
    assert!(said.contains(&*name) && said.contains(&format!("bytes={cut} ")), "{said}");
    assert_readable(home);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_tail_of_the_archive_is_cut_and_said() {
    for garbage in [false, true] {
        let (site, home, open) = killed_with_an_open_file().await;
        let mut bytes = fs::read(&open).expect("a file");
        let member = bytes.get(last_member(&bytes)..).expect("a member").to_vec();
        let half = member.get(..member.len() / 2).expect("a half");
        // A member that was not written to its end, or blocks that never were.
        let torn = if garbage { vec![0; 4096] } else { half.to_vec() };
        bytes.extend_from_slice(&torn);
        fs::write(&open, &bytes).expect("a torn tail");
        goes_on_and_says(&home, &site, &open, u64::try_from(torn.len()).expect("small")).await;
        assert_archived(&home);
        let counts = data::page_counts(&home.data());
        assert_eq!(counts.len(), PAGES, "{counts:?}");
        assert!(counts.values().all(|count| *count == 1), "{counts:?}");
    }
}

/// What no crash does: a disk forgets what it had confirmed.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_lost_its_end_is_cut_and_costs_itself_alone() {
    let (site, home, open) = killed_with_an_open_file().await;
    let bytes = fs::read(&open).expect("a file");
    let (start, end) = (last_member(&bytes), bytes.len() - 10);
    fs::write(&open, bytes.get(..end).expect("the rest")).expect("a shorter file");
    goes_on_and_says(&home, &site, &open, u64::try_from(end - start).expect("small")).await;
    assert!(site.counts().len() > PAGES, "the crawl did not go on: {:?}", site.counts());
}
